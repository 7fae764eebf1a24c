"""Scores of an answer and its evidence, from 0 to 1 (best).

Answers are compared after the normalisation of SQuAD (Rajpurkar et al., 2016), and before it, signs
are made plain (``normalise``). The score is that for the best-matching gold answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from arag_search.agent.wording import distinct, normalise
from arag_search.query.analysis import is_unspaced, terms
from arag_search.query.typography import PLAIN
from arag_search.questions.question import Question

_MARKS = re.compile(r"\W+")
_BRACKETS = re.compile(r"\s*\([^()]*\)\s*$")
YES_OR_NO = frozenset({"yes", "no", "noanswer"})
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_MEANT = re.compile(r"[+#$%<=>^~]|(?<=\d)[.,:/-](?=\d)|(?<!\w)[-.](?=\.?\d)")
"""Marks that change what a text means: C++, -5, 1.5, 1914-1918, 5%."""


def whole_words(text: str) -> str:
    """Return the words of a text with a space around each, for ``stands_in``.

    A text is contained in another only as whole words. Unlike in ``normalise``, the parts of a word
    on both sides of a mark are words too ("New York's", "1916-2002").
    """
    words = _MARKS.sub(" ", " ".join(terms(text))).split()
    return f" {' '.join(words)} " if words else ""


def stands_in(text: str, whole: str) -> bool:
    """Return whether ``whole``, made by ``whole_words``, contains the words of a text.

    A text without words is contained in none.
    """
    words = whole_words(text)
    return bool(words) and words in whole


def exact_match(answer: str, golds: Sequence[str]) -> float:
    """Return 1 if the answer is one of the gold answers, else 0.

    Unlike in SQuAD's script, texts without words in their normal form (``The``, ``+``) are
    not all the same, here and in the other measures.
    """
    return float(distinct(answer) in map(distinct, golds))


def rests_on_a_mark(answer: str, golds: Sequence[str]) -> bool:
    """Return whether an exact match is none if marks that mean something count: of ``C`` and C++,
    5 and -5, 15 and 1.5. The comma of thousands means nothing."""
    same = [gold for gold in golds if distinct(gold) == distinct(answer)]
    return bool(same) and _meant(answer) not in map(_meant, same)


def _meant(text: str) -> list[str]:
    return _MEANT.findall(_THOUSANDS.sub("", text.translate(PLAIN)))


def f1(answer: str, golds: Sequence[str]) -> float:
    """Return the harmonic mean of precision and recall of words, counted with repeats, for the best
    gold answer. In scripts without blanks, characters count.

    As in HotpotQA, yes, no and noanswer agree only with themselves.
    """
    return max((_f1(answer, gold) for gold in golds), default=0.0)


def _f1(answer: str, gold: str) -> float:
    words, wanted = normalise(answer), normalise(gold)
    if not words or not wanted or YES_OR_NO & {words, wanted}:
        return float(distinct(answer) == distinct(gold))
    counted, counted_gold = (Counter(_words(text)) for text in (words, wanted))
    shared = (counted & counted_gold).total()
    return 2 * shared / (counted.total() + counted_gold.total())


def _words(normal: str) -> list[str]:
    if normal.isascii():
        return normal.split()
    return "".join(f" {sign} " if is_unspaced(sign) else sign for sign in normal).split()


def contains(answer: str, golds: Sequence[str]) -> float:
    """Return 1 if the answer contains a gold answer, else 0 (A-RAG's contain-match).

    As in the paper, this compares characters, not words: "Norway" contains "no".
    """
    normal = normalise(answer)
    return float(
        any(
            (words in normal) if (words := normalise(gold)) else distinct(gold) == distinct(answer)
            for gold in golds
        )
    )


def evidence_recall(question: Question, shown_titles: Iterable[str]) -> float | None:
    """Return the share of the question's gold titles that were shown, None if it has none. If there
    are several sets of titles, the best one counts.

    Titles are the same if they are equal after ``normalise``. Subjects of evidence are names,
    not titles: a title also matches them if it adds something in brackets ("Camille" by
    "Camille (1936 film)").
    """
    wanted = set(map(normalise, question.gold_titles))
    if not wanted:
        return None
    of_subjects = not question.supporting_titles
    shown = {
        name for title in set(shown_titles) for name in title_names(title, of_subjects=of_subjects)
    }
    alternatives = [set(map(normalise, titles)) for titles in question.alternative_titles]
    return max(len(names & shown) / len(names) for names in (wanted, *alternatives))


def title_names(title: str, *, of_subjects: bool) -> set[str]:
    """Return the names that a title matches: the title itself and, where subjects are looked for,
    also the title without brackets at its end."""
    names = {normalise(title)}
    return names | {normalise(without_brackets(title))} if of_subjects else names


def without_brackets(title: str) -> str:
    """Return a title without the brackets at its end."""
    return _BRACKETS.sub("", title)

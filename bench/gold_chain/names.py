"""The searcher's knowledge of a hop: the revealed name, and the relation in question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from arag_search.agent.models.offline import JOINS, STOP_WORDS, capitalised_spans
from arag_search.evaluation.text_match import without_brackets
from arag_search.query import analysis
from arag_search.questions.question import Hop, Question
from bench.ablation.suite import Names

_ANSWER_OF = re.compile(r"#(\d+)")
_ARROW = ">>"
_AROUND_RELATIONS = " ?!.,;:"


@dataclass(frozen=True, slots=True)
class Known:
    """A hop as the searcher knows it before the search.

    ``canonical`` is the name as the data has it, ``surface`` as it was revealed: in the question,
    else as the answer of an earlier hop. ``relation`` is the question about it, in words. None of
    them holds the answer of the hop, but where the name that was revealed does.
    """

    canonical: str
    surface: str
    relation: str

    def name(self, names: Names, seed: str) -> str:
        """Return the name in a regime; ``seed`` determines which of several words is dropped."""
        if names == "canonical":
            return self.canonical
        return self.surface if names == "surface" else dropped(self.canonical, seed)


def known(question: Question) -> tuple[Known, ...]:
    """Return what the searcher knows of each hop once the hops before it are answered."""
    answers = [hop.answer for hop in question.hops]
    return tuple(
        _of_triple(hop, question.text, answers[:number])
        if hop.subject is not None
        else _of_step(hop, question.text, answers[:number])
        for number, hop in enumerate(question.hops)
    )


def dropped(name: str, seed: str) -> str:
    """Return the name without one of its words; a name of one word as it is."""
    words = name.split()
    if len(words) > 1:
        del words[Random(seed).randrange(len(words))]
    return " ".join(words)


def _of_triple(hop: Hop, question: str, previous: Sequence[str]) -> Known:
    """Convert a hop that the data gives as subject, relation and object."""
    subject = _bare(hop.subject or "")
    return Known(
        subject,
        _as_written(subject, question) or _revealed(subject, question, previous),
        without_words(hop.relation or "", hop.answer),
    )


def _revealed(subject: str, question: str, previous: Sequence[str]) -> str:
    """Return the name under which a subject was revealed if it was not its own. Candidates are the
    earlier answers (the last one first), then the names in the question. Return the first that
    shares the most words with the subject, apart from small words. If none shares any, return the
    longest name in the question."""
    words = set(analysis.terms(subject)) - JOINS
    spans = capitalised_spans(question)
    candidates = [*map(_bare, reversed(previous)), *spans]
    shared = [len(words & set(analysis.terms(candidate))) for candidate in candidates]
    if any(shared):
        return candidates[shared.index(max(shared))]
    return longest(spans) or subject


def _of_step(hop: Hop, question: str, previous: Sequence[str]) -> Known:
    """Convert a hop that the data gives as a question, in which ``#k`` stands for the answer of hop
    k."""
    text = " ".join((hop.question or "").replace(_ARROW, f" {_ARROW} ").split())
    numbers = [
        int(number) for number in _ANSWER_OF.findall(text) if 0 < int(number) <= len(previous)
    ]
    if numbers:
        last = max(numbers)
        name = _bare(previous[last - 1])
        rest = re.sub(rf"#{last}\b", " ", text)
        rest = _ANSWER_OF.sub(lambda match: _earlier_answer(match, previous), rest)
        return Known(name, name, _relation(rest, hop.answer))
    before, arrow, after = text.partition(_ARROW)
    if arrow:
        name, rest = _bare(before.strip()), after
    else:
        name = longest(capitalised_spans(text)) or content_span(text)
        rest = text.replace(name, " ", 1)
    return Known(name, _as_written(name, question) or name, _relation(rest, hop.answer))


def _earlier_answer(match: re.Match[str], previous: Sequence[str]) -> str:
    number = int(match[1])
    return _bare(previous[number - 1]) if 0 < number <= len(previous) else " "


def _relation(text: str, answer: str) -> str:
    return without_words(text.replace(_ARROW, " "), answer)


def _bare(name: str) -> str:
    """Return the name without brackets at its end."""
    return without_brackets(name).strip() or name.strip()


def _as_written(name: str, text: str) -> str:
    """Return the name as the text spells it, whatever its capitals, or "" if the text lacks it."""
    pattern = r"\s+".join(map(re.escape, name.split()))
    match = re.search(rf"(?<!\w){pattern}(?!\w)", text, re.IGNORECASE) if pattern else None
    return match[0] if match else ""


def without_words(text: str, answer: str) -> str:
    """Return the text without the answer, with single blanks and no punctuation at its ends."""
    terms = analysis.terms(answer)
    tokens = analysis.tokens(text)
    kept: list[str] = []
    end = at = 0
    while terms and at < len(tokens):
        if [token.term for token in tokens[at : at + len(terms)]] == terms:
            kept.append(text[end : tokens[at].start])
            at += len(terms)
            end = tokens[at - 1].end
        else:
            at += 1
    kept.append(text[end:])
    return " ".join(" ".join(kept).split()).strip(_AROUND_RELATIONS)


def longest(spans: Sequence[str]) -> str:
    """Return the span with the most words, the first of equals, or "" if there is none."""
    return max(spans, key=lambda span: len(span.split()), default="")


def content_span(text: str) -> str:
    """Return the longest run of words that are not small, the first of equals, or the whole text if
    there is none."""
    best: tuple[int, int, int] = (0, 0, len(text))
    run: list[analysis.Token] = []
    for token in analysis.tokens(text):
        run = [] if token.term in STOP_WORDS else [*run, token]
        if len(run) > best[0]:
            best = (len(run), run[0].start, run[-1].end)
    return text[best[1] : best[2]]

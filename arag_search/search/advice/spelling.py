"""Advice on words of a query that occur nowhere: the nearest words of the index. The search itself
does not use them.

The nearest words come from passages in scope that a fuzzy word or a prefix finds. So every engine
has the same words, and no word is shown that a scope hides.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, islice

from arag_search.engines.base import (
    MAX_QUICK_VALUES,
    FieldsRequest,
    Page,
    SearchEngine,
    SearchRequest,
)
from arag_search.engines.hits import Hit
from arag_search.plan.clauses import Clause, ResolvedPlan, value_of, wanted_leaves
from arag_search.plan.lower import lower
from arag_search.plan.matching import Words, patterns_of, terms_of, within_edits
from arag_search.query import analysis
from arag_search.query.analysis import has_token, is_fuzzy
from arag_search.query.fields import CONTENT, TITLE, index_field, searched_fields
from arag_search.query.forms import HOLE, normal_spellings
from arag_search.query.lemmas import with_other_digraphs
from arag_search.query.operators import SPELLED
from arag_search.query.printing import quoted
from arag_search.query.tree import EXACT_MARK, Fuzzy, Phrase, Term
from arag_search.search.advice.questions import Advice, Answers, Counted, Questions, Subject
from arag_search.search.advice.told import Told, Unseen, count_text

MAX_UNSEEN_WORDS = 3
"""The number of words without a match for which others are looked up."""
MAX_SHOWN = 3
_MAX_COUNTED = 6
_MAX_LOOKED_UP = 16
_MAX_CHARACTERS = 24
_PASSAGES = 8
_PATH = "path"
_LEAST_CHARACTERS = 4
"""Other words of fewer letters are no typing mistakes of a word."""
_CAPITALS = re.compile("[A-Z]{2,4}")
_LONG = 8
"""Words of so many letters may have two mistakes."""


def spelling(subject: Subject, page: Page | None) -> Advice[Told]:
    """Tell which words of a query occur nowhere, unless the reply names such clauses itself, and
    the words nearest to them. It takes no step if a hit has each word as written, one for counts,
    and up to four for the nearest.

    If the page is not known, all words are counted with it; then none of the rest may need a step.
    """
    request, unit = subject.request, subject.request.granularity
    counts: Mapping[Counted, int] = {}
    if page is None:
        either = _unseen(subject.query, (), False) | _unseen(subject.query, (), True)
        answers: Answers = yield Questions([(word, unit) for word in either])
        page, counts = answers.page, answers.counts
    is_told = not page.total.number and subject.asked.after is None  # by feedback
    words = _unseen(subject.query, page.hits, is_told)
    if not page.total.number:
        counts = {**counts, (subject.query, unit): 0}
    if any((word, unit) not in counts for word in words):
        answers = yield Questions([(word, unit) for word in words])
        counts = {**counts, **answers.counts}
    nowhere = [word for word in words if not counts[word, unit]]
    nearest = yield from nearest_words(subject.engine, request, nowhere[:MAX_UNSEEN_WORDS])
    if nowhere and not page.total.number:
        folders = yield from _folders(subject, nowhere[:MAX_UNSEEN_WORDS])
        nearest = {word: nearest.get(word, {}) | folders.get(word, {}) for word in nowhere}
    near = {
        word: ", ".join(f"{other} {count_text(count)}" for other, count in others.items())
        for word, others in nearest.items()
    }
    return Told(unseen=tuple(Unseen(word, words[word], near.get(word, "")) for word in nowhere))


def dotted(subject: Subject) -> Advice[Told]:
    """Tell how often texts have words with dots (U.S.) that words in capitals (US) do not find."""
    asked: dict[str, Counted] = {}
    for word in wanted_leaves(subject.query):
        text, language = f"{'.'.join(word.typed)}.", word.language
        is_short = word.kind == "word" and language and _CAPITALS.fullmatch(word.typed)
        if is_short and set(normal_spellings(text, language)).isdisjoint(word.words):
            exact = lower(Phrase(f"{EXACT_MARK}{text}", 0, word.text_field))
            asked[f"{word.typed} does not find {text}; alone: {text}"] = exact, "chunk"
    answers: Answers = yield Questions(tuple(asked.values())[:MAX_UNSEEN_WORDS])
    counts = [(note, answers.counts.get(question, 0)) for note, question in asked.items()]
    return Told(dotted=tuple([f"{note} {count_text(count)}." for note, count in counts if count]))


def titles_in_texts(subject: Subject, page: Page | None) -> Advice[Told]:
    """Tell which clauses on titles find nothing although texts have their words. It takes one step
    if no hit has the title or the words of such a clause, or if the page is not known."""
    scope, deadline = subject.request.scope, subject.request.deadline
    in_text = {
        leaf: replace(leaf, text=quoted(leaf.typed), field=CONTENT)
        for leaf in wanted_leaves(subject.query)
        if leaf.field == TITLE and leaf.kind in ("word", "phrase")
    }

    def lacking(page: Page) -> list[Clause]:
        on_page = subject.counts_on(page, [*in_text, *in_text.values()])
        return [leaf for leaf, text in in_text.items() if on_page.keys().isdisjoint((leaf, text))]

    if page is None and len(in_text) > MAX_UNSEEN_WORDS:  # which of them the page lacks decides
        known: Answers = yield Questions()
        page = known.page
    left = list(in_text) if page is None else lacking(page)[:MAX_UNSEEN_WORDS]
    if not left:
        return Told()
    plans = [ResolvedPlan(in_text[leaf]) for leaf in left]
    searches = [
        SearchRequest(plan, 1, scope=scope, with_text=False, deadline=deadline) for plan in plans
    ]
    answers: Answers = yield Questions([(leaf, "chunk") for leaf in left], searches)
    unmet: list[Unseen] = []
    lacked = lacking(answers.page)
    for leaf, best in zip(left, answers.pages, strict=True):
        if best.hits and not answers.counts[leaf, "chunk"] and leaf in lacked:
            have = "passage has" if best.total.number == 1 else "passages have"
            number, id = count_text(best.total.number), " ".join(best.hits[0].id.split())
            unmet.append(
                Unseen(leaf, "", f"{number} {have} {leaf.typed} in the text: [{id}].", True)
            )
    return Told(unseen=tuple(unmet))


def _unseen(query: Clause, hits: Sequence[Hit], in_fields: bool) -> dict[Clause, str]:
    """Return the words of a query that no hit has as written, each with the exact phrase around it.

    The phrase is empty if there is none. A word that the analyser splits stays whole, because it
    may be one in the index. Unless ``in_fields``, a word of a title may be anywhere: models write
    titles that may not exist, to rank by them.
    """
    low_text = cache(analysis.fold)  # most words are in the text of the first hit
    words: dict[Clause, str] = {}
    for leaf in wanted_leaves(query):
        if leaf.kind not in ("word", "phrase"):
            continue
        field = leaf.text_field if in_fields else None
        is_exact = leaf.typed.startswith(EXACT_MARK)
        for piece in leaf.typed.removeprefix(EXACT_MARK).split():
            low = analysis.fold(piece)
            is_seen = any(
                (field != CONTENT and _has(low_text("\n".join(hit.heading)), low))
                or (field != TITLE and _has(low_text(hit.content), low))
                for hit in hits
            )
            if is_seen or piece.upper() in SPELLED:  # of which another note tells
                continue
            if tokens := analysis.tokens(piece):
                word = piece[tokens[0].start : tokens[-1].end]
                clause = lower(Term(word, field), leaf.language)
                words[clause] = leaf.text if is_exact else ""
    return dict(list(words.items())[:_MAX_LOOKED_UP])


def _has(text: str, word: str) -> bool:
    """Return whether a text has a word with neither letters nor digits around it."""
    at = text.find(word)
    while at >= 0:
        if not (text[at - 1 : at].isalnum() or text[at + len(word) : at + len(word) + 1].isalnum()):
            return True
        at = text.find(word, at + 1)
    return False


def nearest_words(
    engine: SearchEngine, request: SearchRequest, words: Sequence[Clause]
) -> Advice[dict[Clause, dict[str, int]]]:
    """Return for each word up to MAX_SHOWN others, with their counts.

    1. Words of one edit, and two words that it may consist of.
    2. If there are none and the word is long: words of two edits that several passages have.
       A server is asked for both at once.

    The scope and the deadline of the request apply.
    """
    nearest: dict[Clause, dict[str, int]] = {}
    for edits in ((1, 2),) if engine.is_remote else ((1,), (2,)):
        searches = {
            (word, most): list(_searches(word, request, most))
            for most in edits
            for word in words
            if word not in nearest and (most == 1 or len(word.typed) >= _LONG)
        }
        if not searches:
            break
        near: Answers = yield Questions(pages=list(chain(*searches.values())))
        pages = iter(near.pages)
        others: dict[tuple[Clause, int], list[Clause]] = {}
        for (word, most), own in searches.items():
            parts = list(_parts(word, engine)) if most == 1 else []
            candidates = _candidates(word, list(islice(pages, len(own))), most)
            others[word, most] = [*parts, *candidates]
        unit = request.granularity
        counted: Answers = yield Questions([(o, unit) for o in chain(*others.values())])
        for (word, most), own in others.items():
            counts = {other.text: counted.counts[other, unit] for other in own}
            shown = [(other, count) for other, count in counts.items() if count >= most]
            if shown and word not in nearest:
                nearest[word] = dict(shown[:MAX_SHOWN])
    return nearest


def _folders(subject: Subject, words: Sequence[Clause]) -> Advice[dict[Clause, dict[str, int]]]:
    """Return up to MAX_SHOWN clauses on folders for each word, with their numbers of passages. The
    name of such a folder has the word; nothing else finds names of folders."""
    if _PATH not in subject.engine.manifest.query_schema.metadata:
        return {}
    request = subject.request
    scope, deadline = request.scope, request.deadline
    values = FieldsRequest((_PATH,), MAX_QUICK_VALUES, scope, quick=True, deadline=deadline)
    answers: Answers = yield Questions(values=values)
    frequent = answers.values.fields[0].frequent if answers.values is not None else ()
    patterns = {word: patterns_of(word) for word in words}
    named: dict[Clause, dict[str, int]] = {word: {} for word in words}
    for value, count in frequent:
        if value.endswith("/") and count is not None:
            name = Words(value[:-1].rpartition("/")[2])
            for word, own in named.items():
                if len(own) < MAX_SHOWN and any(map(name.match, patterns[word])):
                    own[value_of(_PATH, value).text] = count
    return named


def _searches(word: Clause, request: SearchRequest, edits: int) -> Iterator[SearchRequest]:
    """Yield the search whose passages may have words like this one; another number is no typing
    mistake. Words as they are written suffice, and take half of the time."""
    if is_fuzzy(word.typed, edits) and not any(map(str.isdigit, word.typed)):
        yield SearchRequest(
            ResolvedPlan(lower(Fuzzy(word.typed, edits, word.text_field))),
            _PASSAGES,
            granularity="chunk",
            scope=request.scope,
            deadline=request.deadline,
            only_alike=True,
        )


def _parts(word: Clause, engine: SearchEngine) -> Iterator[Clause]:
    """Yield other ways to write a word: with other digraphs, its parts as one word, or the word as
    a phrase of two. A phrase is left out if the engine does not know both words."""
    text, language, field = word.typed, word.language, word.text_field
    for other in with_other_digraphs(text.lower(), language):
        yield lower(Term(other, field), language)
    tokens = analysis.terms(text)
    if len(tokens) > 1:
        yield lower(Term("".join(tokens), field), language)
    if not text.isalnum() or len(text) > _MAX_CHARACTERS:
        return
    pairs = [f"{text[:at]} {text[at:]}" for at in range(2, len(text) - 1)]
    of_pairs = {pair: set(terms_of(pair, language, "")) - {HOLE} for pair in pairs}
    left = set[str]().union(*of_pairs.values())
    known = set[str]()
    for name in searched_fields(word.field):
        known.update(engine.known(index_field(name, language), tuple(left - known)))
    for pair, terms in of_pairs.items():
        if terms <= known and has_token(pair):
            yield lower(Phrase(pair, 0, field), language)


def _candidates(word: Clause, pages: Sequence[Page], most: int) -> list[Clause]:
    """Return the words of passages that are like a word, fewest edits first, and among equals the
    word in most passages first."""
    low = "".join(analysis.terms(word.typed))
    letters = set(low)
    passages: Counter[str] = Counter()
    for hit in {hit.id: hit for page in pages for hit in page.hits}.values():
        texts = [hit.title] * (word.field != CONTENT) + [hit.content] * (word.field != TITLE)
        passages.update({term for text in texts for term in analysis.terms(text)})
    ranked: list[tuple[int, int, str]] = []
    for term, count in passages.items():
        if len(term) < _LEAST_CHARACTERS or not -most <= len(term) - len(low) <= most:
            continue
        # An edit changes at most two letters of the set of all.
        may_be_near = len(letters.symmetric_difference(term)) <= 2 * most
        if may_be_near and is_fuzzy(low, most) and within_edits(low, term, most):
            ranked.append((1 if within_edits(low, term, 1) else most, -count, term))
    others = (lower(Term(term, word.text_field), word.language) for *_, term in sorted(ranked))
    distinct = {other.words: other for other in reversed(list(others))}
    return list(reversed(distinct.values()))[:_MAX_COUNTED]

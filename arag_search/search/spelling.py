"""What a search says about words of a query that the passages found do not have as they are
written: which occur nowhere, with the nearest words of the index, and which match by their forms
alone. Nothing is searched that was not asked.

The nearest words are taken from passages in scope that a fuzzy word or a prefix finds, so that
every engine has the same ones, and none is shown that a scope hides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from arag_search.engines.base import Granularity, Hit, Page, SearchEngine, SearchRequest
from arag_search.errors import ArgumentError, QueryTimeoutError
from arag_search.query import analysis
from arag_search.query.analysis import is_fuzzy, is_prefix
from arag_search.query.fields import CONTENT, TITLE
from arag_search.query.matching import within_edits
from arag_search.query.printing import OPERATOR_WORDS, quoted
from arag_search.query.tree import (
    EXACT_MARK,
    Fuzzy,
    Node,
    Phrase,
    Prefix,
    Term,
    TextLeaf,
    positive_leaves,
)
from arag_search.search.feedback import count_text

MAX_WORDS = 3
"""The number of words without a match for which others are looked up."""
MAX_SHOWN = 3
_MAX_COUNTED = 6
_MAX_LOOKED_UP = 16
_MAX_KNOWN = 1_000
_MAX_CHARACTERS = 24
_PASSAGES = 10
_LEAST_CHARACTERS = 4
"""Other words of fewer letters are no typing mistakes of a word."""
_OTHER_ENDING = 3  # more than the edits of a fuzzy word
_ENDING = 2
"""Letters at the end of a word that may be another ending."""


class Spelling:
    """What is known of the words of an index. Safe to use from several threads."""

    def __init__(self, engine: SearchEngine) -> None:
        self._engine = engine
        self._known: dict[tuple[Term, str, Granularity], tuple[int, int]] = {}

    def notes(self, request: SearchRequest, hits: Sequence[Hit], *, is_told: bool) -> list[str]:
        """Return the notes on the words of a query that are on no hit as they are written. The hits
        carry their text. ``is_told`` says that the reply names the clauses that occur nowhere.

        It takes no request if all are there or their counts in the whole index are known, one more
        for counts, and two more for the nearest words if any occurs nowhere. What takes too long is
        left out.
        """
        words = _unseen(request.query, hits)
        if not words:
            return []
        try:
            counts = self._counts(request, words)
            return _notes(self._engine, request, dict(zip(words, counts, strict=True)), is_told)
        except QueryTimeoutError:  # the search itself was in time
            return []

    def _counts(self, request: SearchRequest, words: Sequence[Term]) -> list[tuple[int, int]]:
        """Return in how many units of the scope each word is, by its forms and as written."""
        unit = request.granularity
        known = self._known if request.scope is None else {}
        keys: list[tuple[Term, str, Granularity]] = [(word, word.language, unit) for word in words]
        if unknown := [key for key in keys if key not in known]:
            queries: list[tuple[Node, Granularity]] = [
                (term, unit) for word, *_ in unknown for term in (word, replace(word, language=""))
            ]
            counts = self._engine.counts(queries, request.scope, request.deadline)
            if len(known) >= _MAX_KNOWN:
                known.clear()
            known.update(zip(unknown, zip(counts[::2], counts[1::2], strict=True), strict=True))
        return [known[key] for key in keys]


def _unseen(query: Node, hits: Sequence[Hit]) -> list[Term]:
    """Return the words that a query looks for, also in phrases, that no hit has as written. A word
    that the analyser splits stays whole, because it may be one in the index."""
    titles, contents = _low(hit.title for hit in hits), _low(hit.content or "" for hit in hits)
    words: dict[Term, None] = {}
    for leaf in positive_leaves(query):
        if not isinstance(leaf, Term | Phrase):
            continue
        for piece in leaf.text.removeprefix(EXACT_MARK).split():
            low = analysis.fold(piece)
            is_seen = (leaf.field != CONTENT and _has(titles, low)) or (
                leaf.field != TITLE and _has(contents, low)
            )
            if is_seen or piece.upper() in OPERATOR_WORDS:  # of which another note tells
                continue
            if tokens := analysis.tokens(piece):
                word = piece[tokens[0].start : tokens[-1].end]
                words[Term(word, leaf.field, language=leaf.language)] = None
    return list(words)[:_MAX_LOOKED_UP]


def _low(texts: Iterable[str]) -> str:
    return analysis.fold("\n".join(texts))


def _has(text: str, word: str) -> bool:
    """Return whether a text has a word with neither letters nor digits around it."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not (at and text[at - 1].isalnum()) and not text[end : end + 1].isalnum():
            return True
        at = text.find(word, at + 1)
    return False


def _notes(
    engine: SearchEngine,
    request: SearchRequest,
    counts: Mapping[Term, tuple[int, int]],
    is_told: bool,
) -> list[str]:
    notes: list[str] = []
    bare = {leaf.text for leaf in positive_leaves(request.query) if isinstance(leaf, Term)}
    mostly_forms = {
        word: f"{word} in {count_text(as_written)} of {count_text(all_forms)}"
        for word, (all_forms, as_written) in counts.items()
        if word.text in bare and word.language and 2 * as_written < all_forms and not is_told
    }
    if mostly_forms:
        exact = quoted(f"{EXACT_MARK}{next(iter(mostly_forms)).text}")
        notes.append(f"as written: {', '.join(mostly_forms.values())}; {exact} is exact.")
    nowhere = [word for word, (all_forms, _) in counts.items() if not all_forms]
    nearest = _nearest(engine, request, nowhere[:MAX_WORDS])
    for word in nowhere:
        near = ", ".join(nearest.get(word, ()))
        if is_told:
            notes += [f"nearest to {word}: {near}."] if near else []
        else:
            notes.append(f"{word} occurs nowhere{f'; nearest: {near}' if near else ''}.")
    return notes


def _nearest(
    engine: SearchEngine, request: SearchRequest, words: Sequence[Term]
) -> dict[Term, list[str]]:
    """Return for each word up to MAX_SHOWN others of the index, with their counts."""
    if not words:
        return {}
    searches = {word: list(_searches(word, request)) for word in words}
    parts = {word: list(_parts(word)) for word in words}
    queries: list[tuple[Node, Granularity]] = [
        (phrase, request.granularity) for word in words for phrase in parts[word]
    ]
    requests = [search for word in words for search in searches[word]]
    counts, pages = engine.counts_and_pages(queries, requests, request.scope, request.deadline)
    counted: dict[Term, list[tuple[Node, int]]] = {}
    candidates: dict[Term, list[Term]] = {}
    for word in words:
        of_word, counts = counts[: len(parts[word])], counts[len(parts[word]) :]
        own, pages = pages[: len(searches[word])], pages[len(searches[word]) :]
        counted[word] = [pair for pair in zip(parts[word], of_word, strict=True) if pair[1]]
        candidates[word] = _candidates(word, own)
    queries = [(other, request.granularity) for word in words for other in candidates[word]]
    counts = engine.counts(queries, request.scope, request.deadline) if queries else []
    for word in words:
        others, counts = counts[: len(candidates[word])], counts[len(candidates[word]) :]
        pairs = zip(candidates[word], others, strict=True)
        counted[word] += [pair for pair in pairs if pair[1]]
    return {
        word: [f"{other} {count_text(count)}" for other, count in counted[word][:MAX_SHOWN]]
        for word in words
    }


def _searches(word: Term, request: SearchRequest) -> Iterator[SearchRequest]:
    """Yield the searches whose passages may have words like this one."""
    text, field, language = word.text, word.field, word.language
    likes: list[TextLeaf] = [
        Fuzzy(text, edits, field, language=language) for edits in (1, 2) if is_fuzzy(text, edits)
    ]
    beginning = text[:-_ENDING]
    if is_prefix(beginning):
        likes.append(Prefix(beginning, field, language=language))
    for like in likes:
        yield SearchRequest(
            like, _PASSAGES, granularity="chunk", scope=request.scope, deadline=request.deadline
        )


def _parts(word: Term) -> Iterator[Term | Phrase]:
    """Yield the phrases of two words that a word may be, or the word that one of several parts may
    be."""
    text = word.text
    tokens = analysis.terms(text)
    if len(tokens) > 1:
        yield Term("".join(tokens), word.field, language=word.language)
    if not text.isalnum() or len(text) > _MAX_CHARACTERS:
        return
    for at in range(2, len(text) - 1):
        try:
            yield Phrase(f"{text[:at]} {text[at:]}", field=word.field, language=word.language)
        except ArgumentError:  # a part that is no word
            continue


def _candidates(word: Term, pages: Sequence[Page]) -> list[Term]:
    """Return the words of passages that are like a word: first those of fewer edits, then those of
    the same beginning, and of equal ones those in more passages."""
    low = "".join(analysis.terms(word.text))
    beginning = low[:-_ENDING]
    passages: Counter[str] = Counter()
    for hit in {hit.id: hit for page in pages for hit in page.hits}.values():
        texts = [hit.title] * (word.field != CONTENT) + [hit.content or ""] * (word.field != TITLE)
        passages.update({term for text in texts for term in analysis.terms(text)})
    ranked: list[tuple[int, int, str]] = []
    for term, count in passages.items():
        edits = next(
            (n for n in (1, 2) if is_fuzzy(low, n) and within_edits(low, term, n)), _OTHER_ENDING
        )
        if len(term) < _LEAST_CHARACTERS:
            continue
        is_ending = term.startswith(beginning) and is_prefix(beginning)
        if edits < _OTHER_ENDING or is_ending:
            ranked.append((edits, -count, term))
    others = (Term(term, word.field, language=word.language) for *_, term in sorted(ranked))
    distinct = {other.spellings: other for other in reversed(list(others))}
    return list(reversed(distinct.values()))[:_MAX_COUNTED]

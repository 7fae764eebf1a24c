"""The sentences of a chunk to show for a query, the same for every engine.

Only the content counts, and not leaves on the title. A snippet is a list of sentence numbers
(0-based, ascending); tools decide how to write them out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from arag_search.corpus import Chunk, TextKind, chunk_ordinal, heading_of, kind_of, split_at
from arag_search.engines.base import Matching
from arag_search.engines.hits import GAP, Hit, snippet_pieces
from arag_search.plan.clauses import Clause, any_clause, wanted_leaves
from arag_search.plan.lower import lower
from arag_search.plan.matching import Pattern, Words, patterns_of, typed_patterns
from arag_search.query import analysis
from arag_search.query.analysis import spellings_of
from arag_search.query.fields import CONTENT, TITLE
from arag_search.query.forms import HOLE
from arag_search.query.regexes import Stopwatch, stopwatch
from arag_search.query.tree import Phrase
from arag_search.search.reading.occurrences import (
    AnalysedTexts,
    Mark,
    MarkedField,
    Sentences,
    merged,
    spans,
)
from arag_search.vectors.base import Nearest, VectorUnit, row_key, rows_of

MAX_SENTENCES = 3
"""The number of sentences that a logical search shows of one chunk."""


class Snippets:
    """The choice of sentences for one query, made once per search and used for every hit.

    A sentence has a point for each distinct positive leaf that matches it, and the best three are
    shown. If more match, sentences with leaves that no earlier one has go first. Among equals,
    sentences with more words and phrases as typed go first, then earlier ones. If no leaf matches,
    sentences with a word of a phrase are shown, or else the first sentence.
    """

    def __init__(self, query: Clause, texts: AnalysedTexts | None = None) -> None:
        """Choose for a query. ``texts`` are texts that its search has analysed, if there are
        any."""
        self._query = query
        self._texts = texts or AnalysedTexts()
        # Leaves that differ only in weight or field count once.
        patterns: dict[object, Pattern] = {}
        wanted = wanted_leaves(query)
        on_text = [leaf for leaf in wanted if leaf.is_text]
        for leaf in on_text:
            if leaf.field != "title":
                for pattern in patterns_of(leaf):
                    patterns[leaf.kind, leaf.typed, pattern] = pattern
        self._patterns = list(patterns.values())
        self._lookups = [leaf.lookup for leaf in wanted if leaf.lookup is not None]
        self._titles = [
            pattern for leaf in on_text if leaf.field == TITLE for pattern in patterns_of(leaf)
        ]
        self._names = [
            (pattern, leaf.kind == "phrase" or leaf.field == TITLE)
            for leaf in on_text
            if leaf.field != CONTENT
            for pattern in patterns_of(leaf)
        ]

    def names(self, hit: Hit) -> bool:
        """Return whether the query names the title or the path of a hit.

        It does so by a phrase or a clause on titles, or by a word that is half of them or more. The
        names of units in the passage do not count.
        """
        title, _ = self._texts.of(hit)
        if hit.outline.units or hit.outline.beside:
            heading = heading_of(hit.title, hit.outline._replace(units=(), beside=()))
            title = Words(*heading, kind=kind_of(hit.doc_id))
        for pattern, is_name in self._names:
            if title.match(pattern):
                words = 2 * len(pattern.spellings[0])
                if is_name or words >= len(title.terms(pattern.language)):
                    return True
        return False

    def choose(self, hit: Hit, *, every: bool = False) -> list[int]:
        """Return sentence numbers for a hit, which must carry its text. O(length of its content).

        At sentence granularity these are the sentences that matched. With ``every``, all sentences
        of the most points are chosen.
        """
        return sorted(self._ranked(hit, every=every))

    def _ranked(self, hit: Hit, *, every: bool = False) -> list[int]:
        """Return what ``choose`` does, the best sentence first."""
        if hit.matched_sentences:
            return list(hit.matched_sentences)
        text = self._texts.of(hit)[1]
        points = _points(self._patterns, text)
        if hit.outline.units:
            points.update(self._named_units(hit))
        for lookup in self._lookups:
            points.update(lookup.sentences(hit))
        if every:
            most = max(points.values(), default=0)
            return sorted(n for n in points if points[n] == most) or first_sentence(hit)
        best = _best(points, text, lambda: self._typed, cover=self._patterns)
        return best or first_sentence(hit)

    @cached_property
    def _typed(self) -> list[Pattern]:
        patterns = typed_patterns(self._query)
        return list(dict.fromkeys(pattern for field, pattern in patterns if field != TITLE))

    def shown(self, hit: Hit, *, every: bool = False, lowered: tuple[str, ...] = ()) -> Hit:
        """Return a hit with the sentences to show, and what else its reply says of it."""
        ranked = self._ranked(hit, every=every)
        sentences, best = tuple(sorted(ranked)), next(iter(ranked), 0)
        named = self.names(hit)
        hit = hit._replace(sentences=sentences, best=best, lowered=lowered, is_named=named)
        return hit._replace(beside=self._beside(hit)) if hit.outline.beside else hit

    def _beside(self, hit: Hit) -> tuple[str, ...]:
        """Return the texts beside a passage that the query matches, but for the name of the file,
        which the id shows."""
        patterns = [pattern for pattern, _ in self._names]
        return tuple(
            text
            for text in hit.outline.beside
            if any(map(Words(text).match, patterns))
            and not all(word in hit.doc_id for word in text.split())
        )

    def _named_units(self, hit: Hit) -> Iterator[int]:
        """Yield the first sentence of each unit whose name a clause on titles matches."""
        for unit in hit.outline.units:
            name = Words(unit.name, kind=kind_of(hit.doc_id))
            yield from (unit.first for pattern in self._titles if name.match(pattern))


def keyword_sentences(hit: Hit, words: Sequence[str], matching: Matching, most: int) -> list[int]:
    """Return the numbers of the sentences with a keyword (A-RAG Eq. 2), or else the first. Token
    matching returns the ``most`` best for all keywords, if need be by single words."""
    if matching == "substring":
        wanted = [keyword.lower() for keyword in words if keyword]
        sentences = split_at(hit.content, hit.sentence_ends)
        numbers = [
            number
            for number, sentence in enumerate(sentences)
            if any(keyword in sentence.lower() for keyword in wanted)
        ]
        return numbers or first_sentence(hit)
    patterns = [Pattern(spellings_of(word)) for word in words if analysis.terms(word)]
    text = Sentences(hit.content, hit.sentence_ends)
    best = _best(_points(patterns, text), text, list, most, cover=patterns)
    return sorted(best) or first_sentence(hit)


def best_sentence(words: str, text: Sentences, language: str) -> int | None:
    """Return the number of the sentence with most of the words, the first of several; None if no
    sentence has any."""
    points = _points(_words_of(words, language), text)
    return next(iter(_best(points, text, lambda: _words_of(words, ""), 1)), None)


def sentences_with(
    words: str, content: str, sentence_ends: Sequence[int], language: str
) -> list[int]:
    """Return the numbers of at most MAX_SENTENCES sentences with most of the words, in their order.
    If no sentence has any, return the number of the first."""
    text = Sentences(content, sentence_ends)
    best = _best(_points(_words_of(words, language), text), text, lambda: _words_of(words, ""))
    return sorted(best) or [0][: len(sentence_ends)]


def first_sentence(hit: Hit) -> list[int]:
    """Return the first sentence of a hit that has any."""
    return [0] if hit.sentence_ends else []


def _points(patterns: Sequence[Pattern], text: Sentences) -> Counter[int]:
    """Return how many of the patterns each sentence matches, by its number.

    If no sentence matches any pattern, the single words of the patterns are used instead.
    Sentences that match nothing are left out.
    """
    points = Counter(chain.from_iterable(map(text.matching, patterns)))
    if points:
        return points
    words = dict.fromkeys(
        Pattern(((word,),), language=pattern.language)
        for pattern in patterns
        for word in pattern.words()
    )
    return Counter(number for word in words for number in text.matching(word))


def _best(
    points: Mapping[int, int],
    text: Sentences,
    typed: Callable[[], Sequence[Pattern]],
    most: int = MAX_SENTENCES,
    cover: Sequence[Pattern] = (),
) -> list[int]:
    """Return the numbers of the sentences with most points. Among equals, a sentence that matches
    more ``typed`` patterns goes first, then the earlier. With patterns to ``cover``, the next
    sentence is the one with most patterns that no sentence before matches; rarer patterns weigh
    more."""
    best = sorted(points, key=lambda number: (-points[number], number))
    if len(best) > most and points[best[most - 1]] == points[best[most]]:
        also = Counter(number for pattern in typed() for number in text.matching(pattern))
        best.sort(key=lambda number: (-points[number], -also[number]))
    if len(best) <= most or not cover:
        return best[:most]
    chosen: list[int] = []
    unseen = [set(text.matching(pattern)) for pattern in cover]
    while len(chosen) < most:
        left = [number for number in best if number not in chosen]
        chosen.append(max(left, key=lambda number: sum(1 / len(n) for n in unseen if number in n)))
        unseen = [numbers for numbers in unseen if chosen[-1] not in numbers]
    return chosen


def _words_of(text: str, language: str) -> list[Pattern]:
    words = dict.fromkeys(Words(text).terms(language))
    return [Pattern(((word,),), language=language) for word in words if word != HOLE]


# The vectors nearest to a query -> passages, best first (A-RAG Eq. 3).
#
# With sentence vectors a passage has the score of its best sentence, with passage vectors its
# own.


_FIRST_SENTENCES = 16
_SENTENCES_A_PASSAGE = 3
_GROWTH = 4


class NearPassage(NamedTuple):
    """The ordinal of a passage's chunk, and its cosine with the query.

    ``sentences`` are the numbers (0-based, ascending) of its sentences that were fetched, including
    the best; empty with passage vectors. ``keys`` are the row keys of the sentences, or the row key
    of the passage.
    """

    ordinal: int
    score: float
    sentences: tuple[int, ...] = ()
    keys: tuple[bytes, ...] = ()

    def is_of(self, chunk: Chunk) -> bool:
        """Return whether this passage was found by vectors of the chunk's present text, which of a
        sentence may have the title above it."""
        unit: VectorUnit = "sentence" if self.sentences else "passage"
        return any(
            self._is_of_rows(chunk, dict(rows_of(chunk, unit, sentence_titles=titled)))
            for titled in ((False, True) if self.sentences else (False,))
        )

    def _is_of_rows(self, chunk: Chunk, texts: Mapping[int, str]) -> bool:
        return all(
            (text := texts.get(chunk.ordinal + number)) is not None and row_key(text) == key
            for number, key in zip(self.sentences or (0,), self.keys, strict=True)
        )


class NearPassages(NamedTuple):
    """The first passages in order. ``complete`` says that there are no more within."""

    passages: list[NearPassage]
    complete: bool


def near_passages(
    nearest: Callable[[int], list[Nearest]], unit: VectorUnit, n: int
) -> NearPassages:
    """Return the ``n`` passages nearest to a query, or all if fewer; ``nearest`` returns so many of
    the nearest texts of the unit.

    The best comes first, equal scores are in corpus order. Sentences are fetched until they cover
    ``n`` passages, or all.
    """
    if unit == "passage":
        texts = nearest(n)
        passages = [NearPassage(text.ordinal, text.score, (), (text.key,)) for text in texts]
        return NearPassages(passages, len(texts) < n)
    fetch = max(_FIRST_SENTENCES, _SENTENCES_A_PASSAGE * n)
    while True:
        texts = nearest(fetch)
        passages = _by_chunk(texts)
        complete = len(texts) < fetch
        if complete or len(passages) >= n:
            return NearPassages(passages[:n], complete and len(passages) <= n)
        fetch *= _GROWTH


def _by_chunk(sentences: list[Nearest]) -> list[NearPassage]:
    """Return the chunks of sentences, which come best first, with the best score of each."""
    best: dict[int, float] = {}
    keys: dict[int, dict[int, bytes]] = {}
    for sentence, score, key in sentences:
        chunk = chunk_ordinal(sentence)
        best.setdefault(chunk, score)
        keys.setdefault(chunk, {})[sentence - chunk] = key
    passages: list[NearPassage] = []
    for chunk, score in best.items():
        numbers, own_keys = zip(*sorted(keys[chunk].items()), strict=True)
        passages.append(NearPassage(chunk, score, numbers, own_keys))
    return passages


# Where the words of a query occur in what a result shows: its titles and snippets
#
# A phrase may begin in one sentence and end in the next, and is never found across sentences that
# are left out.


class Highlights(NamedTuple):
    """The marks of a hit, in order, none overlapping: offsets in code points of the first character
    and after the last."""

    title: tuple[Mark, ...]
    snippet: tuple[Mark, ...]

    def to_dict(self) -> dict[str, list[list[int]]]:
        """Return the marks in types of JSON."""
        return {
            "title": [list(mark) for mark in self.title],
            "snippet": [list(mark) for mark in self.snippet],
        }


@dataclass(frozen=True, slots=True)
class Highlighter:
    """What to highlight for a query: the matches of leaves, and of substrings in any case.

    With ``by_sentence``, a match is within one sentence. Patterns have the time that ``watch`` has
    left for their query.
    """

    query: Clause | None = None
    substrings: tuple[str, ...] = ()
    by_sentence: bool = False
    watch: Stopwatch = field(default_factory=stopwatch, compare=False)

    @staticmethod
    def of_keywords(keywords: Sequence[str], *, as_substrings: bool) -> Highlighter:
        """Return the highlighter of keywords, as words or as substrings."""
        if as_substrings:
            return Highlighter(substrings=tuple(keywords))
        phrases = [lower(Phrase(word)) for word in keywords if analysis.terms(word)]
        return Highlighter(any_clause(phrases) if phrases else None)

    def highlights(
        self,
        title: str,
        content: str,
        ends: Sequence[int],
        sentences: Sequence[int],
        kind: TextKind = "",
    ) -> Highlights:
        """Return the marks in a title and in the snippet of the given sentences (0-based numbers).
        ``kind`` is as in ``normal_forms``. O(length of the texts x (leaves + substrings))."""
        leaves = [] if self.query is None else wanted_leaves(self.query)
        texts: list[str] = []
        for piece in snippet_pieces(split_at(content, tuple(ends)), sentences):
            if texts and not self.by_sentence and GAP not in (piece, texts[-1]):
                texts[-1] += f" {piece}"
            else:
                texts.append(piece)
        located: list[Mark] = []
        offset = 0
        for text in texts:
            marks = merged(self._spans(text, leaves, CONTENT, kind))
            located += [(offset + start, offset + end) for start, end in marks]
            offset += len(text) + 1
        in_title = merged(self._spans(title, leaves, TITLE, kind))
        return Highlights(tuple(in_title), tuple(located))

    def typed_in(self, hit: Hit) -> int:
        """Return how many words and phrases of the query a hit has as they were typed. Words that
        the query wants only as written do not count."""
        if self.query is None:
            return 0
        title, content = Words(hit.title), Words(hit.content)
        return sum(
            (field != CONTENT and title.match(pattern))
            or (field != TITLE and content.match(pattern))
            for field, pattern in typed_patterns(self.query)
        )

    def typed_mark(self, text: str, marks: Sequence[Mark]) -> Mark | None:
        """Return the first mark in a text on words as typed, else the first mark, or None."""
        typed = typed_patterns(self.query) if self.query is not None and marks[1:] else []
        for start, end in marks:
            words = Words(text[start:end])
            if any(words.match(pattern) for _, pattern in typed):
                return start, end
        return next(iter(marks), None)

    def _spans(
        self, text: str, leaves: Sequence[Clause], field: MarkedField, kind: TextKind
    ) -> list[Mark]:
        with self.watch:
            places = set(spans(text, leaves, field, kind))
        for substring in self.substrings:
            matches = re.finditer(re.escape(substring), text, re.IGNORECASE) if substring else ()
            places.update(match.span() for match in matches)
        return sorted(places)

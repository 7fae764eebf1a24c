"""Queries drawn from a corpus, as a model writes them; the same queries for the same seed.

Words are drawn by document frequency, from very rare words to words that most passages have. The
clauses of a query mostly come from one passage, so that an AND can match; excluded words come from
another passage. bench/studies/speed.md has the shares of shapes and kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

from arag_search.corpus import Chunk
from arag_search.plan.clauses import ResolvedPlan
from arag_search.plan.lower import lower
from arag_search.query import analysis
from arag_search.query.analysis import Token, is_prefix
from arag_search.query.fields import Schema
from arag_search.query.limits import MIN_PREFIX_CHARACTERS
from arag_search.query.reading import parse
from arag_search.query.tree import Phrase, Prefix, Term, TextLeaf
from bench import BenchError

# Upper bounds of document frequency as a share of the passages; each band is drawn as often.
BANDS = {"rare": 0.001, "medium": 0.01, "frequent": 0.1, "very frequent": 1.0}
LEAF_SHARES = {1: 15, 2: 30, 3: 30, 4: 15, 5: 10}
KIND_SHARES = {
    "word": 50,
    "phrase": 20,
    "loose phrase": 7,
    "prefix": 8,
    "title word": 10,
    "title phrase": 5,
}
SAME_PASSAGE = 0.8
WEIGHTED = 0.1
WEIGHTS = (0.5, 2.0, 3.0)

# By number of clauses; a to e are found, n is excluded. A space is OR.
SHAPES = {
    1: ("{a}",),
    2: ("{a} AND {b}", "{a} OR {b}", "{a} {b}", "{a} AND NOT {n}"),
    3: (
        "{a} AND {b} AND {c}",
        "{a} AND ({b} OR {c})",
        "{a} {b} {c}",
        "({a} OR {b}) AND NOT {n}",
        "{a} AND {b} NOT {n}",
    ),
    4: (
        "({a} OR {b}) AND ({c} OR {d})",
        "{a} AND ({b} OR {c}) AND NOT {n}",
        "{a} {b} {c} {d}",
        "{a} AND {b} AND {c} AND NOT {n}",
        "({a} AND {b}) OR ({c} AND {d})",
    ),
    5: (
        "({a} OR {b}) AND ({c} OR {d}) AND NOT {n}",
        "{a} AND ({b} OR {c} OR {d}) AND NOT {n}",
        "{a} {b} {c} {d} {e}",
        "({a} AND {b}) OR ({c} AND {d} AND {e})",
        "({a} OR {b} OR {c})^2 AND {d} AND NOT {n}",
    ),
}
_NAMES = "abcde"
_LEAVES = {"phrase": Phrase, "prefix": Prefix}
MAX_DRAWS = 20
"""The largest number of draws for each query."""

_Choice = TypeVar("_Choice")

SEED = 1678


def logical_queries(chunks: Sequence[Chunk], count: int, seed: int = SEED) -> list[str]:
    """Draw ``count`` queries that are read differently.

    Raises BenchError if the corpus is too small for so many.
    """
    drawer = _Drawer(chunks, seed)
    queries: dict[ResolvedPlan, str] = {}
    for _ in range(count * MAX_DRAWS):
        text = drawer.query()
        queries.setdefault(ResolvedPlan(lower(parse(text, Schema()).tree)), text)
        if len(queries) == count:
            return list(queries.values())
    raise BenchError(
        f"{len(chunks):,} passages make {len(queries):,} different queries, not {count:,}.",
        do="Ask for fewer with --queries, or take a larger corpus.",
    )


def class_queries(
    chunks: Sequence[Chunk], count: int, classes: Mapping[str, tuple[str, str]], seed: int
) -> dict[str, list[str]]:
    """Draw up to ``count`` different queries of each class: a shape (``{a} AND NOT {n}``) and the
    kind of its clauses. ``chunks`` may be a sample; words that are rare in it count as rare."""
    drawer = _Drawer(chunks, seed)
    queries: dict[str, list[str]] = {}
    for name, (shape, kind) in classes.items():
        drawn: dict[str, None] = {}
        for _ in range(count * MAX_DRAWS):
            drawn[drawer.of_shape(shape, kind)] = None
            if len(drawn) == count:
                break
        queries[name] = list(drawn)
    return queries


def keyword_sets(chunks: Sequence[Chunk], count: int, seed: int = 1685) -> list[tuple[str, ...]]:
    """Draw ``count`` sets of one to three keywords of a passage: names, phrases and words."""
    drawer = _Drawer(chunks, seed)
    return [drawer.keywords() for _ in range(count)]


class _Drawer:
    def __init__(self, chunks: Sequence[Chunk], seed: int) -> None:
        self._random = Random(seed)
        self._chunks = [chunk for chunk in chunks if analysis.terms(chunk.content)]
        if not self._chunks:
            raise BenchError("There is no passage with words to draw from.")
        self._frequency: Counter[str] = Counter()
        for chunk in self._chunks:
            self._frequency.update(set(analysis.terms(chunk.content)))

    def query(self) -> str:
        home = self._passage()
        shape = self._random.choice(SHAPES[_drawn(self._random, LEAF_SHARES)])
        clauses: dict[str, str] = {}
        for name in _NAMES:
            if f"{{{name}}}" in shape:
                same = not clauses or self._random.random() < SAME_PASSAGE
                clauses[name] = str(self._leaf(home if same else self._passage()))
        excluded = self._text_leaf("word", self._passage())
        return shape.format(n=excluded, **clauses)

    def of_shape(self, shape: str, kind: str) -> str:
        """Draw a query of this shape, with clauses of this kind from one passage."""
        home = self._passage()
        leaves = {name: str(self._of_kind(kind, home)) for name in _NAMES if f"{{{name}}}" in shape}
        return shape.format(n=self._text_leaf("word", self._passage()), **leaves)

    def _of_kind(self, kind: str, passage: Chunk) -> TextLeaf:
        """Draw a leaf of this kind, from another passage if this one hardly has any."""
        for draw in range(1, MAX_DRAWS**2):
            leaf = self._text_leaf(kind, passage)
            if isinstance(leaf, _LEAVES.get(kind, Term)):
                return leaf
            if draw % MAX_DRAWS == 0:
                passage = self._passage()
        raise BenchError(f"The passages give no {kind} for a query.", do="Take a larger corpus.")

    def keywords(self) -> tuple[str, ...]:
        home = self._passage()
        kinds = self._random.choices(("phrase", "word"), k=self._random.randint(1, 3))
        return tuple(self._text_leaf(kind, home).text for kind in kinds)

    def _passage(self) -> Chunk:
        return self._random.choice(self._chunks)

    def _leaf(self, passage: Chunk) -> TextLeaf:
        leaf = self._text_leaf(_drawn(self._random, KIND_SHARES), passage)
        if self._random.random() < WEIGHTED:
            return replace(leaf, weight=self._random.choice(WEIGHTS))
        return leaf

    def _text_leaf(self, kind: str, passage: Chunk) -> TextLeaf:
        """Draw a leaf of this kind, or a word if the passage has none of it."""
        title = analysis.tokens(passage.title)
        if kind == "title word" and title:
            return Term(_cut(passage.title, title, self._random.randrange(len(title))), "title")
        if kind == "title phrase" and len(title) > 1:
            return Phrase(_cut(passage.title, title, 0, len(title) - 1), field="title")
        tokens = analysis.tokens(passage.content)
        at = self._anchor(tokens)
        word = _cut(passage.content, tokens, at)
        if kind == "phrase" and len(tokens) > 1:
            first = min(at, len(tokens) - 2)
            last = min(len(tokens) - 1, first + self._random.randint(1, 3))
            return Phrase(_cut(passage.content, tokens, first, last))
        if kind == "loose phrase" and at + 2 < len(tokens):
            other = min(len(tokens) - 1, at + self._random.randint(2, 4))
            slop = other - at - 1 + self._random.randint(0, 2)
            return Phrase(f"{word} {_cut(passage.content, tokens, other)}", slop)
        if kind == "prefix" and len(word) > MIN_PREFIX_CHARACTERS + 1:
            stem = word[: self._random.randint(MIN_PREFIX_CHARACTERS + 1, len(word) - 1)]
            if is_prefix(stem):
                return Prefix(stem)
        return Term(word)

    def _anchor(self, tokens: Sequence[Token]) -> int:
        """Draw the place of a word of a random band, or of any word if the band is empty."""
        band = self._random.choice(list(BANDS))
        places = [at for at, token in enumerate(tokens) if self._band(token.term) == band]
        return self._random.choice(places or range(len(tokens)))

    def _band(self, term: str) -> str:
        share = self._frequency[term] / len(self._chunks)
        return next(name for name, limit in BANDS.items() if share <= limit)


def _drawn(random: Random, shares: Mapping[_Choice, int]) -> _Choice:
    return random.choices(list(shares), list(shares.values()))[0]


def _cut(text: str, tokens: Sequence[Token], first: int, last: int | None = None) -> str:
    """Return the text of one token, or from one token to another."""
    return text[tokens[first].start : tokens[first if last is None else last].end]

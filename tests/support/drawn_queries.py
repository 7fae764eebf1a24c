"""Logical queries of every form, and sets of keywords, drawn from passages by a seed.

The clauses of a query mostly come from one passage, so that an AND can match.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

from arag_search.corpus import Chunk
from arag_search.plan.clauses import ResolvedPlan
from arag_search.plan.lower import lower
from arag_search.query import analysis
from arag_search.query.fields import Schema
from arag_search.query.reading import parse
from arag_search.query.tree import Phrase, Term, TextLeaf
from bench.scale.queries import MAX_DRAWS, Drawer, cut

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

_Choice = TypeVar("_Choice")


def logical_queries(chunks: Sequence[Chunk], count: int, seed: int = 1678) -> list[str]:
    """Draw ``count`` queries that are read differently; the corpus must be large enough."""
    drawer = _QueryDrawer(chunks, seed)
    queries: dict[ResolvedPlan, str] = {}
    for _ in range(count * MAX_DRAWS):
        text = drawer.logical()
        queries.setdefault(ResolvedPlan(lower(parse(text, Schema()).tree)), text)
        if len(queries) == count:
            return list(queries.values())
    raise ValueError(f"{len(chunks):,} passages make {len(queries):,} queries, not {count:,}")


def keyword_sets(chunks: Sequence[Chunk], count: int, seed: int = 1685) -> list[tuple[str, ...]]:
    """Draw ``count`` sets of one to three keywords of a passage: names, phrases and words."""
    drawer = _QueryDrawer(chunks, seed)
    return [drawer.keywords() for _ in range(count)]


class _QueryDrawer(Drawer):
    def logical(self) -> str:
        home = self.passage()
        shape = self.random.choice(SHAPES[_drawn(self.random, LEAF_SHARES)])
        clauses: dict[str, str] = {}
        for name in "abcde":
            if f"{{{name}}}" in shape:
                same = not clauses or self.random.random() < SAME_PASSAGE
                clauses[name] = str(self._clause(home if same else self.passage()))
        return shape.format(n=self.leaf("word", self.passage()), **clauses)

    def keywords(self) -> tuple[str, ...]:
        home = self.passage()
        kinds = self.random.choices(("phrase", "word"), k=self.random.randint(1, 3))
        return tuple(self.leaf(kind, home).text for kind in kinds)

    def leaf(self, kind: str, passage: Chunk) -> TextLeaf:
        title, tokens = analysis.tokens(passage.title), analysis.tokens(passage.content)
        if kind == "title word" and title:
            return Term(cut(passage.title, title, self.random.randrange(len(title))), "title")
        if kind == "title phrase" and len(title) > 1:
            return Phrase(cut(passage.title, title, 0, len(title) - 1), field="title")
        if kind == "loose phrase":
            at = self.anchor(tokens)
            if at + 2 < len(tokens):
                other = min(len(tokens) - 1, at + self.random.randint(2, 4))
                words = (cut(passage.content, tokens, place) for place in (at, other))
                return Phrase(" ".join(words), other - at - 1 + self.random.randint(0, 2))
        return super().leaf(kind, passage)

    def _clause(self, passage: Chunk) -> TextLeaf:
        leaf = self.leaf(_drawn(self.random, KIND_SHARES), passage)
        if self.random.random() < WEIGHTED:
            return replace(leaf, weight=self.random.choice(WEIGHTS))
        return leaf


def _drawn(random: Random, shares: Mapping[_Choice, int]) -> _Choice:
    return random.choices(list(shares), list(shares.values()))[0]

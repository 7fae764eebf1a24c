"""Classes of queries, drawn from a corpus; the same queries for the same seed.

Words are drawn by document frequency, from very rare words to words that most passages have. The
clauses of a query come from one passage, so that an AND can match; excluded words come from another
one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from arag_search.corpus import Chunk
from arag_search.engines.base import Granularity
from arag_search.query import analysis
from arag_search.query.analysis import Token, is_prefix
from arag_search.query.limits import MIN_PREFIX_CHARACTERS
from arag_search.query.tree import Phrase, Prefix, Term, TextLeaf
from bench import BenchError

# Upper bounds of document frequency as a share of the passages; each band is drawn as often.
BANDS = {"rare": 0.001, "medium": 0.01, "frequent": 0.1, "very frequent": 1.0}
_LEAVES = {"phrase": Phrase, "prefix": Prefix}
MAX_DRAWS = 20
"""The largest number of draws for each query."""


@dataclass(frozen=True, slots=True)
class QueryClass:
    """Queries of one shape: clauses a to c of one kind are found, a word n is excluded."""

    shape: str
    kind: str = "word"
    granularity: Granularity = "chunk"


CLASSES: Mapping[str, QueryClass] = {
    "term": QueryClass("{a}"),
    "AND": QueryClass("{a} AND {b}"),
    "OR": QueryClass("{a} OR {b} OR {c}"),
    "phrase": QueryClass("{a}", "phrase"),
    "NOT": QueryClass("{a} AND NOT {n}"),
    "prefix": QueryClass("{a}", "prefix"),
    "sentence": QueryClass("{a} AND {b}", granularity="sentence"),
}


def drawn_queries(chunks: Sequence[Chunk], count: int, seed: int) -> dict[str, list[str]]:
    """Draw up to ``count`` different queries of each class; clauses of queries for sentences come
    from a single sentence. ``chunks`` may be a sample; words that are rare in it count as rare."""
    sentences = [
        replace(chunk, content=sentence, sentence_ends=(len(sentence),))
        for chunk in chunks
        for sentence in chunk.sentences()
    ]
    drawers = {"chunk": Drawer(chunks, seed), "sentence": Drawer(sentences, seed)}
    queries: dict[str, list[str]] = {}
    for name, of in CLASSES.items():
        drawn: dict[str, None] = {}
        for _ in range(count * MAX_DRAWS):
            drawn[drawers[of.granularity].query(of)] = None
            if len(drawn) == count:
                break
        queries[name] = list(drawn)
    return queries


class Drawer:
    """Draws passages, and clauses from them. Raises BenchError for passages without a word."""

    def __init__(self, chunks: Sequence[Chunk], seed: int) -> None:
        self.random = Random(seed)
        self._chunks = [chunk for chunk in chunks if analysis.terms(chunk.content)]
        if not self._chunks:
            raise BenchError("There is no passage with words to draw from.")
        self._frequency: Counter[str] = Counter()
        for chunk in self._chunks:
            self._frequency.update(set(analysis.terms(chunk.content)))

    def query(self, of: QueryClass) -> str:
        """Draw a query of a class."""
        home = self.passage()
        clauses = {
            name: str(self._of_kind(of.kind, home)) for name in "abc" if f"{{{name}}}" in of.shape
        }
        return of.shape.format(n=self.leaf("word", self.passage()), **clauses)

    def passage(self) -> Chunk:
        """Draw a passage."""
        return self.random.choice(self._chunks)

    def leaf(self, kind: str, passage: Chunk) -> TextLeaf:
        """Draw a leaf of this kind, or a word if the passage has none of it."""
        tokens = analysis.tokens(passage.content)
        at = self.anchor(tokens)
        word = cut(passage.content, tokens, at)
        if kind == "phrase" and len(tokens) > 1:
            first = min(at, len(tokens) - 2)
            last = min(len(tokens) - 1, first + self.random.randint(1, 3))
            return Phrase(cut(passage.content, tokens, first, last))
        if kind == "prefix" and len(word) > MIN_PREFIX_CHARACTERS + 1:
            stem = word[: self.random.randint(MIN_PREFIX_CHARACTERS + 1, len(word) - 1)]
            if is_prefix(stem):
                return Prefix(stem)
        return Term(word)

    def _of_kind(self, kind: str, passage: Chunk) -> TextLeaf:
        """Draw a leaf of this kind, from another passage if this one hardly has any."""
        for draw in range(1, MAX_DRAWS**2):
            leaf = self.leaf(kind, passage)
            if isinstance(leaf, _LEAVES.get(kind, Term)):
                return leaf
            if draw % MAX_DRAWS == 0:
                passage = self.passage()
        raise BenchError(f"The passages give no {kind} for a query.", do="Take a larger corpus.")

    def anchor(self, tokens: Sequence[Token]) -> int:
        """Draw the place of a word of a random band, or of any word if the band is empty."""
        band = self.random.choice(list(BANDS))
        places = [at for at, token in enumerate(tokens) if self._band(token.term) == band]
        return self.random.choice(places or range(len(tokens)))

    def _band(self, term: str) -> str:
        share = self._frequency[term] / len(self._chunks)
        return next(name for name, limit in BANDS.items() if share <= limit)


def cut(text: str, tokens: Sequence[Token], first: int, last: int | None = None) -> str:
    """Return the text of one token, or from one token to another."""
    return text[tokens[first].start : tokens[first if last is None else last].end]

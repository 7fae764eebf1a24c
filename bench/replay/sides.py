"""The open sides of the replay.

The input of a side decides what it can be compared with: the query as recorded, its words, or its
parts as keywords. The first side of each kind is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from arag_search.engines.lucene.compile import compiled
from arag_search.engines.lucene.jvm import java
from arag_search.search.index import Index, open_index
from arag_search.tools.logical_search import LogicalSearch
from arag_search.vectors.opening import QueryCache
from bench import BenchError
from bench.cluster.opensearch_search import Bare, requests_of
from bench.quality.question_words import words_query
from bench.replay.build_cost import indexed_words, scanned_texts
from bench.replay.builds import Builds
from bench.replay.peers import Bm25s
from bench.replay.recorded import RecordedQuery
from bench.report.rounds import Ask, Played, Player, threads
from bench.speed.bare import BareSearcher, scan, without_query_cache

TOP_K = 5

Given = Literal["query", "words", "keywords"]
GIVEN: Mapping[Given, str] = {
    "query": "the logical query as recorded",
    "words": "the words of the query, as alternatives",
    "keywords": "the parts of the query, as keywords",
}


@dataclass(frozen=True, slots=True)
class ReplaySide:
    """A side of the replay. ``note`` describes work beyond searching, or work done beforehand."""

    name: str
    input: Given
    player: Player
    note: str = ""


def open_embedded(builds: Builds) -> Index:
    """Open the index on this machine's disk, with vectors if they were built."""
    has_vectors = "hybrid" not in builds.gaps
    index = open_index(
        builds.place("embedded"),
        vectors=builds.vectors if has_vectors else None,
        encoder=builds.encoder if has_vectors else None,
        search_timeout_s=None,
    )
    return builds.stack.enter_context(index)


def open_sides(builds: Builds, index: Index, queries: Sequence[RecordedQuery]) -> list[ReplaySide]:
    """Open all sides that are available for these queries; ``index`` is that of
    ``open_embedded``."""
    builds.stack.enter_context(without_query_cache())
    opened = _Opened(builds, index, queries)
    opened.with_queries()
    opened.with_words()
    opened.with_keywords()
    return opened.sides


def open_bm25s(builds: Builds) -> Bm25s:
    """Open bm25s over the words of all passages. Raise MissingExtraError."""
    peer = indexed_words(builds.sources, builds.k1, builds.b)
    builds.versions["bm25s"] = peer.version
    return peer


@dataclass(slots=True)
class _Opened:
    """The sides that are open so far."""

    builds: Builds
    index: Index
    queries: Sequence[RecordedQuery]
    sides: list[ReplaySide] = field(default_factory=list[ReplaySide])

    def _add(
        self, built: str, name: str, input: Given, player: Callable[[], Player], note: str = ""
    ) -> None:
        """Open a side on the build of this name."""
        add = self.sides.append
        self.builds.attempt(built, lambda: add(ReplaySide(name, input, player(), note)))

    def _asking(self, ask: Ask) -> Player:
        return threads(ask, len(self.queries))

    def with_queries(self) -> None:
        """Add the sides that take logical queries."""
        index, queries = self.index, self.queries
        tool = LogicalSearch(index)
        self._add(
            "embedded",
            "embedded",
            "query",
            lambda: self._logical(index),
            "no snippets, no feedback",
        )
        self._add(
            "embedded",
            "embedded, tool reply",
            "query",
            lambda: self._asking(lambda n: tool.run({"query": queries[n].text})),
            "all that a model gets: snippets, feedback, tokens counted",
        )
        self._add("bare Lucene", "bare Lucene", "query", self._bare, "queries prebuilt")
        self._add("OpenSearch", "OpenSearch", "query", self._served)
        self._add(
            "OpenSearch",
            "bare OpenSearch",
            "query",
            self._bare_served,
            "opensearch-py, requests prebuilt",
        )

    def _logical(self, asked: Index) -> Player:
        texts = [query.text for query in self.queries]
        return self._asking(
            lambda n: asked.logical_search(texts[n], top_k=TOP_K, snippets=False, feedback=False)
        )

    def _bare(self) -> Player:
        bare = BareSearcher(self.builds.place("bare Lucene"), self.builds.k1, self.builds.b)
        self.builds.stack.callback(bare.close)
        read = java("arag.Queries").read
        prebuilt = [read(compiled(query.tree)[0]) for query in self.queries]
        return self._asking(lambda n: bare.search(prebuilt[n], TOP_K))

    def _served(self) -> Player:
        return self._logical(
            self.builds.stack.enter_context(open_index(self.builds.served(), search_timeout_s=None))
        )

    def _bare_served(self) -> Player:
        location = self.builds.served()
        with open_index(location, search_timeout_s=None) as served:
            name, bodies = requests_of(served, [query.tree for query in self.queries])
        bare = Bare(location.rsplit("/", 1)[0], name, [body for body, _ in bodies])
        self.builds.stack.callback(bare.close)
        return self._asking(bare.ask)

    def with_words(self) -> None:
        """Add the sides that take words."""
        index = self.index
        words = [words_query(" ".join(query.words)) for query in self.queries]
        self._add(
            "embedded",
            "embedded, words",
            "words",
            lambda: self._asking(
                lambda n: index.logical_search(
                    words[n], top_k=TOP_K, operators=False, snippets=False, feedback=False
                )
            ),
        )
        self._add("pyserini", "pyserini", "words", self._pyserini, "timed in its own process")
        self._add("bm25s", "bm25s", "words", self._bm25s, "words cut beforehand")
        self._add(
            "hybrid",
            "hybrid",
            "words",
            self._hybrid,
            f"by words, and by vectors of {self.builds.encoder}; encodes the query",
        )

    def _hybrid(self) -> Player:
        """Return a player that forgets the encoded queries of the last round, which the index
        caches."""
        plain = [" ".join(query.words) for query in self.queries]
        encoder = self.index.open_vectors().encoder
        if not isinstance(encoder, QueryCache):
            raise BenchError("The queries of hybrid search are not encoded as expected.")
        play = self._asking(
            lambda n: self.index.hybrid_search(plain[n], top_k=TOP_K, snippets=False)
        )

        def play_anew(clients: int) -> Played:
            encoder.forget()
            return play(clients)

        return play_anew

    def _bm25s(self) -> Player:
        peer = open_bm25s(self.builds)
        return self._asking(lambda n: peer.search(self.queries[n].words, TOP_K))

    def _pyserini(self) -> Player:
        peer, builds = self.builds.pyserini, self.builds
        if peer is None:
            raise BenchError("Pyserini does not run.")
        words = [query.words for query in self.queries]
        peer.open(builds.place("pyserini"), words, builds.k1, builds.b)
        return lambda clients: peer.play(clients, TOP_K)

    def with_keywords(self) -> None:
        """Add the sides that take keywords."""
        index = self.index
        keywords = [query.keywords for query in self.queries]
        texts = scanned_texts(list(index.scan()))
        self._add(
            "embedded",
            "keyword_search",
            "keywords",
            lambda: self._asking(
                lambda n: index.keyword_search(keywords[n], top_k=TOP_K, snippets=False)
            ),
        )
        self._add(
            "scan",
            "A-RAG's scan",
            "keywords",
            lambda: self._asking(lambda n: scan(texts, keywords[n], TOP_K)),
            "substrings, in texts lower-cased beforehand",
        )

"""The sides of the rates: ours and, after each, the rivals that get the same input.

A rival gets what it can take: the query as recorded, its words, or its parts as keywords. Bare
clients get their queries compiled beforehand; Pyserini, bm25s and the scan get words, keywords and
texts prepared beforehand. A search ends with the names of five passages.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import orjson

from arag_search import Index, open_index
from arag_search.corpus import Chunk
from arag_search.engines.base import SearchRequest
from arag_search.engines.lucene.compile import compiled
from arag_search.engines.lucene.jvm import java
from arag_search.engines.opensearch.reader import OpenSearchEngine
from arag_search.plan.clauses import ResolvedPlan
from arag_search.plan.lower import lower
from arag_search.query import analysis
from arag_search.query.reading import parse
from arag_search.system.extras import missing_extra
from arag_search.vectors.faiss_index import LEAST_POINTS_A_LIST, lists_for
from arag_search.vectors.opening import QueryCache
from bench import BenchError, nodes
from bench.processes import Process, quiet_environment
from bench.report.rounds import Played, played
from bench.speed.bare import BareSearcher, index_bare, scan
from bench.speed.recorded import RecordedQuery
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.options import EmbedOptions

TOP_K = 5
RECALLED = 10
"""The nearest passages, of which packed vectors should find as many as exact search."""
NUMBERS_A_CODE = 8
"""The numbers of a vector that a byte of a packed one stands for."""
SCANNED = 20
"""The queries of a round that the scan takes, a hundred times as long for each as the others."""
_TOLERANCE = 1e-6

Scored = Sequence[tuple[str, float]]
"""Ids and scores of hits, best first."""


@dataclass(frozen=True, slots=True)
class Passages:
    """An index, the file that it was built from, and the queries of a round."""

    index: Index
    source: Path
    options: BuildOptions
    queries: Sequence[RecordedQuery]
    folder: Path

    def plans(self, *, operators: bool) -> list[ResolvedPlan]:
        """Return the queries as plans, or plans of their words."""
        texts = [query.text if operators else query.words_query for query in self.queries]
        schema = self.index.manifest.query_schema
        parsed = [parse(text, schema, operators=operators) for text in texts]
        return [ResolvedPlan(lower(query.tree, query.language)) for query in parsed]

    def words(self) -> Sequence[tuple[str, list[str]]]:
        """Return id and words of each passage, beginning with the words of its title."""
        terms = analysis.terms
        return [(of.id, [*terms(of.title), *terms(of.content)]) for of in self.index.scan()]


@dataclass(frozen=True, slots=True)
class Setup:
    """What rivals need beside the passages: a folder, the interpreter that has Pyserini, and the
    encoder of hybrid search."""

    folder: Path
    python: str = sys.executable
    encoder: str | None = None


class Side:
    """One side. It is made, which fails if a library is missing, before anything is built.

    ``beside`` is the side of ours that gets the same input, and ``option`` the name by which this
    side is left out. ``aims`` has the rate of ours over its own by clients. ``same_work`` is
    whether both must find the same. ``measured`` has what else was measured while it was built.
    """

    name: ClassVar[str]
    beside: ClassVar[type[Side] | None] = None
    option: ClassVar[str] = ""
    aims: ClassVar[Mapping[int, float]] = {}
    same_work: ClassVar[bool] = False
    version: str | None = None
    measured: Mapping[str, float] = {}

    def __init__(self, setup: Setup, stack: ExitStack, ours: Any) -> None:
        self.setup, self.stack, self.ours = setup, stack, ours

    def build(self, passages: Passages) -> None:
        """Make what searches need."""
        self.passages = passages

    def search(self, number: int) -> Any:
        """Run the query of a number, and read the names of its hits."""
        raise NotImplementedError

    def scored(self, number: int) -> Scored:
        """Run the query of a number, and return ids and scores of its hits, best first."""
        return self.search(number)

    def play(self, clients: int) -> Played:
        """Run all queries once with this many clients."""
        return played(self.search, self.count, clients)

    @property
    def count(self) -> int:
        """The number of queries of a round."""
        return len(self.passages.queries)


class Ours(Side):
    name = "ours"
    operators = True

    def open(self) -> Index:
        """Return the index that is searched."""
        return self.passages.index

    def build(self, passages: Passages) -> None:
        self.passages = passages
        self.index = self.open()
        queries = passages.queries
        self._texts = [of.text if self.operators else of.words_query for of in queries]

    def search(self, number: int) -> Scored:
        text, operators = self._texts[number], self.operators
        result = self.index.logical_search(
            text, top_k=TOP_K, operators=operators, snippets=False, feedback=False
        )
        return [(hit.id, hit.score) for hit in result.hits]


class BareLucene(Side):
    name, beside, same_work, aims = "bare Lucene", Ours, True, {1: 0.42}

    def build(self, passages: Passages) -> None:
        self.passages, manifest = passages, passages.index.manifest
        folder = passages.folder / "bare"
        if not folder.exists():
            index_bare(passages.index.scan(), folder, manifest.language)
        self._bare = BareSearcher(folder, manifest.k1, manifest.b)
        self.stack.callback(self._bare.close)
        plans = passages.plans(operators=self.ours.operators)
        read = java("arag.Queries").read
        self._queries = [read(compiled(plan.root)[0]) for plan in plans]

    def search(self, number: int) -> Any:
        return self._bare.search(self._queries[number], TOP_K)

    def scored(self, number: int) -> Scored:
        return self._bare.scored(self._queries[number], TOP_K)


class Served(Ours):
    name, option = "ours on OpenSearch", "OpenSearch"

    def __init__(self, setup: Setup, stack: ExitStack, ours: None) -> None:
        super().__init__(setup, stack, ours)
        self._started = stack.enter_context(nodes.running(setup.folder / "cluster"))

    def open(self) -> Index:
        location = f"{nodes.address(self._started)}/arag-speed"
        build_index([str(self.passages.source)], location, self.passages.options)
        return self.stack.enter_context(open_index(location, search_timeout_s=None))


class BareClient(Side):
    """opensearch-py as its documentation shows it, with bodies that are ready to be sent."""

    name, beside, option, same_work = "bare OpenSearch", Served, "OpenSearch", True
    aims: ClassVar = {1: 0.85, 16: 0.9}

    def build(self, passages: Passages) -> None:
        from opensearchpy import OpenSearch

        self.passages, engine = passages, self.ours.index.engine
        assert isinstance(engine, OpenSearchEngine)
        plans = passages.plans(operators=True)
        requests = [SearchRequest(plan, TOP_K, with_text=False) for plan in plans]
        self._bodies = [engine.request_body(request)[0] for request in requests]
        url, _, self._index = self.ours.index.location.rpartition("/")
        self._client = OpenSearch(url, pool_maxsize=16)
        self.stack.callback(self._client.close)
        no_cache = {"index": {"requests.cache.enable": False}}
        self._client.indices.put_settings(index=f"{self._index}*", body=no_cache)

    def search(self, number: int) -> Scored:
        answer: Any = self._client.search(index=self._index, body=self._bodies[number])
        hits = answer["hits"]["hits"]
        return [(hit["_source"]["id"], float(hit["_score"] or 0.0)) for hit in hits]


class Words(Ours):
    name, operators = "ours, words", False


class BareWords(BareLucene):
    name, beside, aims = "bare Lucene, words", Words, {}


class Pyserini(Side):
    """Pyserini's searcher in a process of its own, which also times its searches.

    Its Java is the JDK of ``JAVA_HOME``: the runtime of embedded Lucene lacks a module that it
    needs.
    """

    name, beside, option, aims = "Pyserini", Words, "pyserini", {1: 0.8, 16: 1.1}

    def __init__(self, setup: Setup, stack: ExitStack, ours: Any) -> None:
        super().__init__(setup, stack, ours)
        worker = Path(__file__).with_name("pyserini_worker.py")
        command = (setup.python, "-P", worker)  # modules beside it are not those of Python
        try:
            # Some releases make a client of a model as they are imported, and never use it.
            environment = quiet_environment(**{"OPENAI_API_KEY": "none", **os.environ})
            self._process = Process(stack, command, environment)
            self.version = self._ask("hello")
        except (OSError, BenchError) as error:
            why = error.what if isinstance(error, BenchError) else error.strerror
            raise BenchError(
                f"Pyserini does not start ({str(why).rstrip('.')}).",
                where=setup.python,
                allowed="Python 3.12 or later with the extra pyserini, and a JDK that has "
                "the module jdk.incubator.vector",
                do="Name the interpreter with --pyserini-python, and the JDK with JAVA_HOME.",
            ) from error

    def build(self, passages: Passages) -> None:
        folder, manifest = passages.folder / "pyserini", passages.index.manifest
        source = passages.folder / "words.jsonl"
        with source.open("wb") as file:
            for name, words in passages.words():
                file.write(orjson.dumps({"id": name, "contents": " ".join(words)}) + b"\n")
        self._ask("build", source=str(source), folder=str(folder))
        queries = [" ".join(query.words) for query in passages.queries]
        self._ask("open", folder=str(folder), queries=queries, k1=manifest.k1, b=manifest.b)

    def play(self, clients: int) -> Played:
        return Played(*self._ask("play", clients=clients, top_k=TOP_K))

    def _ask(self, what: str, **arguments: Any) -> Any:
        answer = self._process.ask({"do": what, **arguments})
        if "error" in answer:
            raise BenchError(f"Pyserini failed: {answer['error']}.")
        return answer["answer"]


class Bm25s(Side):
    """bm25s over tokenised passages, in Lucene's variant of BM25."""

    name, beside, option = "bm25s", Words, "bm25s"

    def __init__(self, setup: Setup, stack: ExitStack, ours: Any) -> None:
        super().__init__(setup, stack, ours)
        try:
            import bm25s
        except ImportError as error:
            raise missing_extra("bench", "bm25s") from error
        self._make: Any = bm25s.BM25
        self.version = version("bm25s")

    def build(self, passages: Passages) -> None:
        self.passages, manifest = passages, passages.index.manifest
        self._ids, words = zip(*passages.words(), strict=True)
        self._index = self._make(k1=manifest.k1, b=manifest.b, method="lucene")
        self._index.index(list(words), show_progress=False)

    def search(self, number: int) -> Scored:
        words = [list(self.passages.queries[number].words)]
        hits = self._index.retrieve(words, k=min(TOP_K, len(self._ids)), show_progress=False)
        pairs = zip(hits.documents[0], hits.scores[0], strict=True)
        return [(self._ids[int(place)], float(score)) for place, score in pairs if score > 0]


class Hybrid(Side):
    """Our hybrid search on an inverted file of packed vectors (IVF-PQ), which encodes its queries
    anew in each round."""

    name, beside, option = "hybrid", Words, "hybrid"

    def build(self, passages: Passages) -> None:
        self.passages, rows = passages, passages.index.manifest.chunks
        exact = self._open("flat")
        nearest = self._nearest(exact)
        codes = exact.open_vectors().encoder.identity.dimension // NUMBERS_A_CODE
        lists = max(1, min(lists_for(rows), rows // LEAST_POINTS_A_LIST))
        factory = f"IVF{2 ** int(math.log2(lists))},PQ{codes}"
        self._index = self._open(factory)
        pairs = zip(nearest, self._nearest(self._index), strict=True)
        recall = statistics.mean(len(of & hits) / len(of) for of, hits in pairs)
        self.measured = {f"hybrid, recall@{RECALLED} of {factory}": recall}

    def _open(self, factory: str) -> Index:
        """Open the index with its vectors, which are encoded once, in an index of this kind."""
        location, encoder = self.passages.index.location, self.setup.encoder
        assert encoder is not None
        vectors = self.passages.folder / "vectors"
        options = EmbedOptions(vectors=vectors, unit="passage", index=factory)
        embed_index(location, encoder, options)
        opened = open_index(location, vectors=vectors, encoder=encoder, search_timeout_s=None)
        return self.stack.enter_context(opened)

    def _nearest(self, index: Index) -> list[set[str]]:
        texts = [" ".join(query.words) for query in self.passages.queries]
        search = index.naive_embedding_search
        results = [search(text, top_k=RECALLED, snippets=False) for text in texts]
        return [{hit.id for hit in result.hits} for result in results]

    def search(self, number: int) -> Scored:
        text = " ".join(self.passages.queries[number].words)
        hits = self._index.hybrid_search(text, top_k=TOP_K, snippets=False).hits
        return [(hit.id, hit.score) for hit in hits]

    def play(self, clients: int) -> Played:
        encoder = self._index.open_vectors().encoder
        assert isinstance(encoder, QueryCache)
        encoder.forget()
        return super().play(clients)


class Keywords(Side):
    name, option = "keyword_search", "scan"

    @property
    def count(self) -> int:
        return min(SCANNED, len(self.passages.queries))

    def search(self, number: int) -> Scored:
        keywords = self.passages.queries[number].keywords
        hits = self.passages.index.keyword_search(keywords, top_k=TOP_K, snippets=False).hits
        return [(hit.id, hit.score) for hit in hits]


class Scan(Keywords):
    """A-RAG's Eq. 1 in plain Python over texts in memory."""

    name, beside = "A-RAG's scan", Keywords

    def build(self, passages: Passages) -> None:
        super().build(passages)
        self._texts = [searched_text(chunk) for chunk in passages.index.scan()]

    def search(self, number: int) -> Scored:
        hits = scan(self._texts, self.passages.queries[number].keywords, TOP_K)
        return [(str(-place), score) for score, place in hits]


def searched_text(chunk: Chunk) -> str:
    """Return what the scan reads of a passage: title and text, because keyword_search counts
    both."""
    return f"{chunk.title}\n{chunk.content}".lower()


SIDES: Sequence[type[Side]] = (
    Ours, BareLucene, Served, BareClient, Words, BareWords, Pyserini, Bm25s, Hybrid,
    Keywords, Scan,
)  # fmt: skip
RIVALS = tuple(dict.fromkeys(side.option for side in SIDES if side.option not in ("", "hybrid")))
"""The rivals that can be left out."""


def check_hits(
    texts: Sequence[str], ours: Callable[[int], Scored], rival: Callable[[int], Scored]
) -> None:
    """Raise BenchError unless both find the same passages with the same scores; which of equal
    scores come first, or at all, may differ."""
    for number, text in enumerate(texts):
        here, there = ours(number), rival(number)
        same = len(here) == len(there) and all(
            math.isclose(score, other, rel_tol=_TOLERANCE)
            for (_, score), (_, other) in zip(here, there, strict=True)
        )
        least = here[-1][1] if here else 0.0
        above = [
            {name for name, score in hits if not math.isclose(score, least, rel_tol=_TOLERANCE)}
            for hits in (here, there)
        ]
        if not same or above[0] != above[1]:
            raise BenchError(
                "The bare client finds other passages than ours.", where=f"{text}: {here} | {there}"
            )

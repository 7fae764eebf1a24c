"""Rates of searches beside those of rivals, on the same passages, in rounds that alternate.

Each rival gets what it can take: the query as recorded, its words, or its parts as keywords. Bare
clients get their queries compiled beforehand; Pyserini, bm25s and the scan get words, keywords and
texts prepared beforehand. A search ends with the names of five passages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import orjson

from arag_search import Index, open_index
from arag_search.agent.presets import load_preset
from arag_search.agent.toolbox import tools_of
from arag_search.corpus import Chunk
from arag_search.engines.lucene.jvm import java
from arag_search.errors import AragError
from arag_search.evaluation.interfaces import words_query
from arag_search.query import analysis
from bench import BenchError
from bench.cluster.cluster import LocalCluster, local_cluster
from bench.replay.hybrid import TOP, packed
from bench.replay.peers import Bm25s, Pyserini, check_bm25s
from bench.replay.prebuilt import READER, TOP_K, for_lucene, for_opensearch
from bench.replay.recorded import RecordedQueries
from bench.report.rounds import (
    Ask,
    Latencies,
    Player,
    Timings,
    interleaved,
    percentile,
    threads,
    timed,
)
from bench.report.rows import Figure, Row, Target
from bench.speed.bare import BareSearcher, index_with_stored_names, scan, without_query_cache
from bench.workbench import say
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

RIVALS = ("OpenSearch", "pyserini", "bm25s", "scan")
"""The rivals that can be left out."""
SMALL_ONES = ("OpenSearch", "bm25s", "scan")
LARGE = 200_000
"""The passages beyond which only bare Lucene and Pyserini are rivals: the memory and the time of
the others grow with the corpus."""
SCANNED = 20
"""The queries of a round that the scan takes, a hundred times as long for each as the others."""
OURS, REPLY, LUCENE = "ours", "tool reply", "bare Lucene"
SERVED, CLIENT = "ours on OpenSearch", "bare OpenSearch"
WORDS, LUCENE_WORDS, PYSERINI, BM25S = "ours, words", "bare Lucene, words", "Pyserini", "bm25s"
HYBRID = "hybrid"
KEYWORDS, SCAN = "keyword_search", "A-RAG's scan"
PAIRS = (
    (OURS, LUCENE),
    (OURS, REPLY),
    (SERVED, CLIENT),
    (WORDS, LUCENE_WORDS),
    (WORDS, PYSERINI),
    (WORDS, BM25S),
    (WORDS, HYBRID),
    (KEYWORDS, SCAN),
)
"""The sides that take the same input: ours, and the other."""
AIMS = {
    (LUCENE, 1): 0.42,
    (PYSERINI, 1): 0.8,
    (PYSERINI, 16): 1.1,
    (CLIENT, 1): 0.85,
    (CLIENT, 16): 0.9,
}
BM25S_FROM = 60_000
"""The passages from which ours is to be faster than bm25s."""

_Made = TypeVar("_Made")
_NAME = "arag-speed"
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Passages:
    """An index, the file that it was built from, and the queries of a round."""

    index: Index
    source: Path
    options: BuildOptions
    asked: RecordedQueries
    folder: Path

    @property
    def count(self) -> int:
        """The passages of the corpus."""
        return self.index.manifest.documents


class Rivals:
    """The rivals that are not left out, started or imported before anything is built."""

    def __init__(self, stack: ExitStack, folder: Path, names: Sequence[str], python: str) -> None:
        """Raises BenchError for one that is missing."""
        self.names = names
        self.versions: dict[str, str] = {}
        self.cluster: LocalCluster | None = None
        self.pyserini: Pyserini | None = None
        if "bm25s" in names:
            self.versions["bm25s"] = _needed("bm25s", check_bm25s)
        if "pyserini" in names:
            self.pyserini = stack.enter_context(_needed("pyserini", lambda: Pyserini(python)))
            self.versions |= self.pyserini.versions
        if "OpenSearch" in names:
            cluster = local_cluster(folder / "cluster", 1)
            self.cluster = _needed("OpenSearch", lambda: stack.enter_context(cluster))


def _needed(name: str, make: Callable[[], _Made]) -> _Made:
    try:
        return make()
    except AragError as error:
        raise BenchError(
            f"A rival is missing: {error.what}",
            where=error.where or name,
            allowed=error.allowed or ", ".join(RIVALS),
            do=f"{error.do} Or leave it out with --without {name}.".strip(),
        ) from error


class BareClient:
    """opensearch-py as its documentation shows it, with bodies that are ready to be sent."""

    def __init__(self, location: str, bodies: Sequence[Any], clients: int) -> None:
        from opensearchpy import OpenSearch

        url, _, self._index = location.rpartition("/")
        host = urlsplit(url)
        hosts = [{"host": host.hostname, "port": host.port}]
        self._client = OpenSearch(hosts=hosts, pool_maxsize=clients)
        self._bodies = bodies

    def ask(self, number: int) -> list[tuple[str, float]]:
        """Send a request and return ids and scores."""
        answer: Any = self._client.search(index=self._index, body=self._bodies[number])
        hits = answer["hits"]["hits"]
        return [(hit["_source"]["id"], float(hit["_score"] or 0.0)) for hit in hits]

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def measure(
    passages: Passages,
    rivals: Rivals,
    clients: Sequence[int],
    rounds: int,
    warm_up: int,
    encoder: str | None = None,
) -> Figure:
    """Measure all sides with each number of clients; with an encoder, hybrid search too.

    Raises BenchError if a bare client finds other passages than ours.
    """
    with ExitStack() as stack:
        stack.enter_context(without_query_cache())
        sides = _Sides(stack, passages, rivals, max(clients))
        sides.open()
        if encoder is not None:
            sides.open_hybrid(encoder)
        count = len(passages.asked.queries)
        say(f"rates: {count:,} queries, {warm_up} + {rounds} rounds")
        latencies = Latencies()
        timings = interleaved(
            {
                _of(name, number): latencies.side(_of(name, number), player, number)
                for name, player in sides.players.items()
                for number in clients
            },
            rounds,
            warm_up=warm_up,
        )
    return _figure(sides, timings, latencies, passages, clients)


def bare_lucene(index: Index, folder: Path) -> Path:
    """Index the passages of an index for bare searches, and return the folder."""
    if not folder.exists():
        index_with_stored_names(index.scan(), folder, index.manifest.language)
    return folder


@dataclass(slots=True)
class _Sides:
    """The sides that are open, by name, and the seconds of building for them."""

    stack: ExitStack
    passages: Passages
    rivals: Rivals
    clients: int
    players: dict[str, Player] = field(default_factory=dict[str, Player])
    built_s: dict[str, float] = field(default_factory=dict[str, float])
    recalls: list[Row] = field(default_factory=list[Row])

    def open(self) -> None:
        """Open all sides."""
        index, queries = self.passages.index, self.passages.asked.queries
        texts = [query.text for query in queries]
        words = [words_query(" ".join(query.words)) for query in queries]
        tool = tools_of(load_preset("logical_read"), index)["logical_search"]
        self._add(OURS, _search(index, texts))
        self._add(REPLY, lambda number: tool.run({"query": texts[number]}))
        self._add(WORDS, _search(index, words, operators=False))
        self._lucene(texts, words)
        if self.rivals.cluster is not None:
            self._served(self.rivals.cluster, texts)
        if self.rivals.pyserini is not None:
            self._pyserini(self.rivals.pyserini)
        if "bm25s" in self.rivals.names:
            self._bm25s()
        if "scan" in self.rivals.names:
            self._scan()

    def open_hybrid(self, encoder: str) -> None:
        """Open hybrid search on packed vectors of this encoder."""
        words = [" ".join(query.words) for query in self.passages.asked.queries]
        vectors = self.passages.folder / "vectors"
        say(f"rates: vectors of {encoder}")
        opened = self.stack.enter_context(
            packed(self.passages.index.location, encoder, vectors, words)
        )
        self.recalls.append(Row(f"{HYBRID}, recall@{TOP} of {opened.factory}", opened.recall, ""))
        self.players[HYBRID] = opened.player(words, TOP_K)

    def _add(self, name: str, ask: Ask, count: int | None = None) -> None:
        self.players[name] = threads(ask, count or len(self.passages.asked.queries))

    def _built(self, name: str, build: Callable[[], object]) -> None:
        say(f"rates: building for {name}")
        self.built_s[name] = round(timed(build), 1)

    def _lucene(self, texts: Sequence[str], words: Sequence[str]) -> None:
        index, folder = self.passages.index, self.passages.folder / "bare"
        self._built(LUCENE, lambda: bare_lucene(index, folder))
        bare = BareSearcher(folder, index.manifest.k1, index.manifest.b)
        self.stack.callback(bare.close)
        read = java(READER).read
        for name, asked, operators in ((LUCENE, texts, True), (LUCENE_WORDS, words, False)):
            compiled = for_lucene(index, asked, operators=operators)
            prebuilt = [read(query) for query in compiled]
            search = _search(index, asked, operators=operators)
            check_hits(asked, search, lambda n, of=prebuilt: bare.scored(of[n], TOP_K))
            self._add(name, lambda n, of=prebuilt: bare.search(of[n], TOP_K))

    def _served(self, cluster: LocalCluster, texts: Sequence[str]) -> None:
        location = f"{cluster.url}/{_NAME}"
        source, options = str(self.passages.source), self.passages.options
        self._built("OpenSearch", lambda: build_index([source], location, options))
        cluster.set(f"{_NAME}*", {"requests.cache.enable": False})
        served = self.stack.enter_context(open_index(location, search_timeout_s=None))
        client = BareClient(location, for_opensearch(served, texts), self.clients)
        self.stack.callback(client.close)
        search = _search(served, texts)
        check_hits(texts, search, client.ask)
        self._add(SERVED, search)
        self._add(CLIENT, client.ask)

    def _pyserini(self, peer: Pyserini) -> None:
        folder, manifest = self.passages.folder / "pyserini", self.passages.index.manifest
        source = self.passages.folder / "words.jsonl"
        with source.open("wb") as file:
            for chunk in self.passages.index.scan():
                line = {"id": chunk.id, "contents": " ".join(_words(chunk))}
                file.write(orjson.dumps(line) + b"\n")
        self._built(PYSERINI, lambda: peer.build(source, folder))
        source.unlink()
        words = [query.words for query in self.passages.asked.queries]
        peer.open(folder, words, manifest.k1, manifest.b)
        self.players[PYSERINI] = lambda clients: peer.play(clients, TOP_K)

    def _bm25s(self) -> None:
        index, queries = self.passages.index, self.passages.asked.queries
        texts = [(chunk.id, _words(chunk)) for chunk in index.scan()]
        peers: list[Bm25s] = []
        k1, b = index.manifest.k1, index.manifest.b
        ids, words = zip(*texts, strict=True)
        self._built(BM25S, lambda: peers.append(Bm25s(ids, words, k1, b)))
        self._add(BM25S, lambda number: peers[0].search(queries[number].words, TOP_K))

    def _scan(self) -> None:
        index = self.passages.index
        keywords = [query.keywords for query in self.passages.asked.queries[:SCANNED]]
        texts = [f"{chunk.title}\n{chunk.content}".lower() for chunk in index.scan()]
        self._add(
            KEYWORDS,
            lambda number: index.keyword_search(keywords[number], top_k=TOP_K, snippets=False),
            len(keywords),
        )
        self._add(SCAN, lambda number: scan(texts, keywords[number], TOP_K), len(keywords))


def _search(index: Index, texts: Sequence[str], *, operators: bool = True) -> Callable[[int], Any]:
    return lambda number: index.logical_search(
        texts[number], top_k=TOP_K, operators=operators, snippets=False, feedback=False
    )


def _words(chunk: Chunk) -> list[str]:
    """Return all words of a passage, those of its title first."""
    return [*analysis.terms(chunk.title), *analysis.terms(chunk.content)]


def check_hits(
    texts: Sequence[str],
    search: Callable[[int], Any],
    rival: Callable[[int], Sequence[tuple[str, float]]],
) -> None:
    """Raise BenchError unless both find the same passages with the same scores; which of equal
    scores come first, or at all, may differ."""
    for number, text in enumerate(texts):
        ours = [(str(hit.id), float(hit.score)) for hit in search(number).hits]
        theirs = list(rival(number))
        if not _same(ours, theirs):
            raise BenchError(
                "The bare client finds other passages than ours.",
                where=f"{text}: {ours} | {theirs}",
            )


def _same(ours: Sequence[tuple[str, float]], theirs: Sequence[tuple[str, float]]) -> bool:
    if [score for _, score in ours] != [score for _, score in theirs] and (
        len(ours) != len(theirs)
        or not all(
            math.isclose(here, there, rel_tol=_TOLERANCE)
            for (_, here), (_, there) in zip(ours, theirs, strict=True)
        )
    ):
        return False
    above = [
        {name for name, score in hits if not math.isclose(score, ours[-1][1], rel_tol=_TOLERANCE)}
        for hits in (ours, theirs)
    ]
    return above[0] == above[1]


# Figures


def _of(side: str, clients: int) -> str:
    return f"{side}, {clients} client{'s' if clients > 1 else ''}"


def _figure(
    sides: _Sides,
    timings: Timings,
    latencies: Latencies,
    passages: Passages,
    clients: Sequence[int],
) -> Figure:
    rows = [*sides.recalls]
    for ours, rival in PAIRS:
        for number in clients if ours in sides.players and rival in sides.players else ():
            ratio = timings.paired(_of(rival, number), _of(ours, number))
            aim = AIMS.get((rival, number))
            if rival == BM25S and passages.count >= BM25S_FROM:
                aim = 1.0
            target = None if aim is None else Target("at least", aim)
            rows.append(Row.of_ratio(f"rate of {ours} over {_of(rival, number)}", ratio, target))
    latency_ms: dict[str, Mapping[str, float]] = {}
    for name, seconds in timings.seconds.items():
        spent = latencies.of(name, timings.rounds)
        count = len(spent) / timings.rounds
        rates = [count / round_s for round_s in seconds]
        middle = count / timings.median_s(name)
        rows.append(Row(f"{name}: QPS", middle, "queries/s", min(rates), max(rates)))
        shares = {f"P{share}": 1000 * percentile(spent, share / 100) for share in (50, 95, 99)}
        latency_ms[name] = {"mean": 1000 * sum(spent) / len(spent), **shares}
    queries = passages.asked.queries
    details: Mapping[str, Any] = {
        "recorded": dict(passages.asked.counts),
        "asked": len(queries),
        "left out": [name for name in RIVALS if name not in sides.rivals.names],
        "built_s": sides.built_s,
        "latency_ms": latency_ms,
        "seconds": timings.seconds,
        "examples": [
            {"query": query.text, "words": query.words, "keywords": query.keywords}
            for query in queries[:10]
        ],
    }
    return Figure("rates", tuple(rows), details)

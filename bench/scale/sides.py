"""The two engines at one size: an index is built and measured, and nothing is left behind."""

from __future__ import annotations

import shutil
import statistics
import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from arag_search.corpus import Chunk
from arag_search.engines.base import Granularity
from arag_search.search.index import Index, open_index
from arag_search.system.progress import Progress, SilentProgress
from bench.report.rounds import percentile, timed
from bench.speed.bare import without_query_cache
from bench.speed.indexing import size_of
from bench.speed.queries import class_queries
from index_jobs.build.build import build_index
from index_jobs.build.options import BuildOptions

EngineName = Literal["lucene", "opensearch"]
ENGINES: tuple[EngineName, ...] = ("lucene", "opensearch")
TOP_K = 5
SEEDS = (1607, 1714)
"""Of the queries to warm up with, and of those that count."""
WARM_UP_ROUNDS = 3
WARM_UP_PASSAGES = 2_000
"""Size of an index that is built before the first one that counts."""
FIRST_ROUNDS = 12
"""Over that index: until Java has compiled what queries use, on a server by thousands of them."""


@dataclass(frozen=True, slots=True)
class QueryClass:
    """Queries of one shape; see ``bench.speed.queries``."""

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


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of a class of queries, each asked once, after others had warmed the engine."""

    queries: int
    without_hits: int
    median_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One engine at one size. ``seconds`` are those of the whole build."""

    passages: int
    seconds: float
    bytes: int
    sentences: int
    latency: Mapping[str, Latency]

    def to_dict(self) -> dict[str, Any]:
        """The values for JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(found: Mapping[str, Any]) -> Measured:
        """The opposite of ``to_dict``."""
        latency = {name: Latency(**each) for name, each in found["latency"].items()}
        return Measured(**{**found, "latency": latency})


class Side(Protocol):
    """Where an engine keeps the index that is measured."""

    def location(self) -> str:
        """Where the next index goes."""
        ...

    def bytes(self, location: str) -> int: ...

    def remove(self, location: str) -> None: ...


class LuceneSide:
    """A folder below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def location(self) -> str:
        return str(self._folder / "lucene-index")

    def bytes(self, location: str) -> int:
        return size_of(Path(location))

    def remove(self, location: str) -> None:
        shutil.rmtree(location, ignore_errors=True)


class OpenSearchSide:
    """An index on the server at ``url``, all of whose names begin with ``name``."""

    def __init__(self, url: str, name: str) -> None:
        self._location = f"{url.rstrip('/')}/{name}"

    def location(self) -> str:
        return self._location

    def bytes(self, location: str) -> int:
        with _client(location) as (client, name):
            stats = client.call("GET", f"/{name}*/_stats/store")
            return int(stats["_all"]["primaries"]["store"]["size_in_bytes"])

    def remove(self, location: str) -> None:
        with _client(location) as (client, name):
            for index in client.call("GET", f"/{name}*/_alias"):
                client.call("DELETE", f"/{index}")


@contextmanager
def _client(location: str) -> Generator[tuple[Any, str]]:
    from arag_search.engines.opensearch.address import parse_address
    from arag_search.engines.opensearch.client import Client

    address = parse_address(location)
    client = Client.connect(address)
    try:
        yield client, address.name
    finally:
        client.close()


@contextmanager
def open_side(engine: EngineName, folder: Path, url: str | None, heap: str) -> Generator[Side]:
    """An engine to measure; OpenSearch at ``url``, or one node of our own below ``folder``."""
    if engine == "lucene":
        with without_query_cache():
            yield LuceneSide(folder)
        return
    with ExitStack() as stack:
        server = url or stack.enter_context(_node(folder / "node", heap))
        yield OpenSearchSide(server, f"arag-bench-{uuid.uuid4().hex}")


@contextmanager
def _node(data: Path, heap: str) -> Generator[str]:
    from arag_search.engines.opensearch.nodes import cluster

    started = cluster.up(data, port=0, heap=heap, owned=True)
    try:
        yield started.url
    finally:
        cluster.down(data)


def measure(
    side: Side,
    corpus: Path,
    sample: Sequence[Chunk],
    queries: int,
    progress: Progress | None = None,
    warm_up_rounds: int = WARM_UP_ROUNDS,
) -> Measured:
    """Build an index of the corpus, measure it, and delete it. ``sample`` gives the queries."""
    location = side.location()
    options = BuildOptions(format="documents")
    shown = progress or SilentProgress()
    warm_up, drawn = (drawn_queries(sample, queries, seed) for seed in SEEDS)
    try:
        seconds = timed(lambda: build_index([str(corpus)], location, options, shown))
        with open_index(location, search_timeout_s=None) as index:
            manifest = index.manifest
            for _ in range(warm_up_rounds):
                for name, texts in warm_up.items():
                    _latency(index, texts, CLASSES[name].granularity)
            latency = {
                name: _latency(index, texts, CLASSES[name].granularity)
                for name, texts in drawn.items()
            }
        return Measured(manifest.chunks, seconds, side.bytes(location), manifest.sentences, latency)
    finally:
        side.remove(location)


def drawn_queries(sample: Sequence[Chunk], count: int, seed: int) -> dict[str, list[str]]:
    """Queries of each class; the clauses of one for sentences come from one sentence."""
    found: dict[str, list[str]] = {}
    for granularity, pieces in (("chunk", sample), ("sentence", _sentences(sample))):
        classes = {
            name: (each.shape, each.kind)
            for name, each in CLASSES.items()
            if each.granularity == granularity
        }
        found |= class_queries(pieces, count, classes, seed)
    return found


def _sentences(chunks: Sequence[Chunk]) -> list[Chunk]:
    """The sentences of chunks, each as a chunk."""
    return [
        replace(chunk, content=sentence, sentence_ends=(len(sentence),))
        for chunk in chunks
        for sentence in chunk.sentences()
    ]


def _latency(index: Index, queries: Sequence[str], granularity: Granularity) -> Latency:
    results = [index.logical_search(each, top_k=TOP_K, granularity=granularity) for each in queries]
    spent = [result.milliseconds for result in results]
    without_hits = sum(not result.hits for result in results)
    return Latency(len(spent), without_hits, statistics.median(spent), percentile(spent, 0.95))

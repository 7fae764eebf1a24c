"""The two engines at one size: an index is built, measured and removed."""

from __future__ import annotations

import shutil
import statistics
import time
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from arag_search.agent.presets import DEFAULT_PRESET, load_preset
from arag_search.corpus import Chunk
from arag_search.engines.base import Granularity
from arag_search.search.index import Index, open_index
from arag_search.system.progress import Progress
from arag_search.tools.logical_search import LogicalSearch
from bench import BenchError
from bench.cluster.cluster import client_of, local_cluster, remove_indexes
from bench.report.rounds import percentile, timed
from bench.speed.bare import without_query_cache
from bench.speed.indexing import size_of
from bench.speed.queries import class_queries
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

EngineName = Literal["lucene", "opensearch"]
ENGINES: tuple[EngineName, ...] = ("lucene", "opensearch")
TOP_K = 5
SEEDS = (1607, 1714)
"""The seeds of the queries of the warm-up, and of those that count."""
WARM_UP_ROUNDS = 3
WARM_UP_PASSAGES = 2_000
"""The size of an index that is built before the first one that counts."""
FIRST_ROUNDS = 12
"""The rounds over that index, until Java has compiled the code of queries; on a server, this takes
thousands of queries."""


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
    """One engine at one size. ``seconds`` are those of the whole build, ``replies`` the time of a
    whole reply of logical_search over that of its search, by class of query."""

    passages: int
    seconds: float
    bytes: int
    sentences: int
    latency: Mapping[str, Latency]
    replies: Mapping[str, float] = field(default_factory=dict[str, float])

    def to_dict(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(content: Mapping[str, Any]) -> Measured:
        """Invert ``to_dict``."""
        latency = {name: Latency(**entry) for name, entry in content["latency"].items()}
        return Measured(**{**content, "latency": latency})


class Side(Protocol):
    """The place where an engine keeps the measured index."""

    def location(self) -> str:
        """Return the location of the next index."""
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
        with client_of(location) as (client, name):
            stats = client.call("GET", f"/{name}*/_stats/store")
            return int(stats["_all"]["primaries"]["store"]["size_in_bytes"])

    def remove(self, location: str) -> None:
        remove_indexes(location)


@contextmanager
def open_side(engine: EngineName, folder: Path, url: str | None, heap: str) -> Generator[Side]:
    """Open an engine to measure; OpenSearch at ``url``, or one node of our own below ``folder``."""
    if engine == "lucene":
        with without_query_cache():
            yield LuceneSide(folder)
        return
    with ExitStack() as stack:
        server = url or stack.enter_context(local_cluster(folder / "node", 1, heap=heap)).url
        yield OpenSearchSide(server, f"arag-bench-{uuid.uuid4().hex}")


def measure(
    side: Side,
    corpus: Path,
    sample: Sequence[Chunk],
    queries: int,
    progress: Progress | None = None,
    warm_up_rounds: int = WARM_UP_ROUNDS,
) -> Measured:
    """Build an index of the corpus, measure it, and delete it. Queries are drawn from
    ``sample``."""
    location = side.location()
    options = BuildOptions(format="documents")
    shown = progress or Progress()
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
            replies = {
                name: _reply_ratio(index, texts, CLASSES[name].granularity)
                for name, texts in drawn.items()
                if isinstance(side, LuceneSide)
            }
        size = side.bytes(location)
        return Measured(manifest.chunks, seconds, size, manifest.sentences, latency, replies)
    finally:
        side.remove(location)


def drawn_queries(sample: Sequence[Chunk], count: int, seed: int) -> dict[str, list[str]]:
    """Draw queries of each class; clauses of queries for sentences come from a single sentence."""
    queries_by_class: dict[str, list[str]] = {}
    for granularity, pieces in (("chunk", sample), ("sentence", _sentences(sample))):
        classes = {
            name: (query_class.shape, query_class.kind)
            for name, query_class in CLASSES.items()
            if query_class.granularity == granularity
        }
        queries_by_class |= class_queries(pieces, count, classes, seed)
    return queries_by_class


def _sentences(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return the sentences of chunks, each as a chunk."""
    return [
        replace(chunk, content=sentence, sentence_ends=(len(sentence),))
        for chunk in chunks
        for sentence in chunk.sentences()
    ]


def _latency(index: Index, queries: Sequence[str], granularity: Granularity) -> Latency:
    results = [
        index.logical_search(query, top_k=TOP_K, granularity=granularity) for query in queries
    ]
    spent = [result.milliseconds for result in results]
    without_hits = sum(not result.hits for result in results)
    return Latency(len(spent), without_hits, statistics.median(spent), percentile(spent, 0.95))


def _reply_ratio(index: Index, queries: Sequence[str], granularity: Granularity) -> float:
    """Return the median time of replies with the settings of logical_read over that of the searches
    in them, without snippets and feedback. Each query is asked in both ways, in turn. The time is
    that of the processor in this thread, which is where embedded Lucene searches."""
    tool = LogicalSearch.of(index, load_preset(DEFAULT_PRESET))
    shown = {"granularity": granularity} if granularity == "sentence" else {}

    def reply(query: str) -> None:
        result = tool.run({"query": query, "top_k": TOP_K, **shown})
        if result.status == "error":
            raise BenchError("A reply is an error.", where=query, do=result.text)

    def search(query: str) -> None:
        index.logical_search(
            query, top_k=TOP_K, granularity=granularity, snippets=False, feedback=False
        )

    spent: dict[Callable[[str], None], list[float]] = {reply: [], search: []}
    for at, query in enumerate(queries):
        for side in (reply, search) if at % 2 else (search, reply):
            began = time.thread_time()
            side(query)
            spent[side].append(time.thread_time() - began)
    return statistics.median(spent[reply]) / statistics.median(spent[search])

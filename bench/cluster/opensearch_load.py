"""Rate of our build on OpenSearch over that of ``parallel_bulk``.

    python -m bench opensearch_load
    python -m bench opensearch_load --passages 12000 --rounds 2 --json load.json

Our side reads the corpus, chunks it, counts tokens, serialises, sends, verifies and publishes. The
other side has the same actions ready in memory and only sends them, with the same limit on the
bytes of a bulk and on concurrent requests, into indexes with the same settings. Both end with a
refresh. The passages are copies of a corpus, which cost the server as much work as any text.
See bench/studies/opensearch.md.
"""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from arag_search.engines.opensearch import schema
from arag_search.engines.opensearch.address import parse_address
from arag_search.engines.opensearch.bulk import BULK_TIMEOUT_S, MAX_BULK_BYTES, SENDERS
from arag_search.engines.opensearch.client import Client
from arag_search.search.opening import open_index
from bench import BenchError
from bench.arguments import BenchParser, positive
from bench.cluster.cluster import local_cluster
from bench.data import corpus_in
from bench.report.rounds import Side, Timings, interleaved, timed
from bench.report.rows import Figure, Row, Target, circumstances, show
from bench.speed.copies import SEED, copies, write
from bench.workbench import say, set_up
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.build.report import BuildReport

PASSAGES = 100_000
ROUNDS = 5
OURS, BARE = "ours", "parallel_bulk"
TARGET = Target("at least", 0.7)


def main(arguments: Sequence[str]) -> int:
    """Measure and return the exit code; a missed target is not a failure."""
    return parser().run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    with set_up(corpus_in(options.data), options.work) as bench, bench.room() as room:
        source = room / "copies.jsonl"
        times = -(-options.passages // len(bench.chunks))
        passages = write(islice(copies(bench.chunks, times), options.passages), source)
        run = circumstances(command, bench.manifest, seed=SEED)
        with local_cluster(room / "cluster", 1, heap=options.heap) as cluster:
            name = f"arag-bench-{uuid.uuid4().hex[:8]}"
            figure = measure(source, passages, f"{cluster.url}/{name}", options)
    show(options.json, [figure], run)
    return 0


def measure(source: Path, passages: int, address: str, options: argparse.Namespace) -> Figure:
    """Measure the rates of both sides in interleaved rounds. Our index is loaded at ``address``,
    the other side's next to it, and both are deleted. Raises BenchError if they hold different
    numbers of documents."""
    say(f"load: {passages:,} passages, {options.warm_up} + {options.rounds} rounds")
    build_options = BuildOptions(workers=options.workers)
    client = Client.connect(parse_address(address))
    load = _Load(address, client)
    try:
        load.remember(build_index([str(source)], address, build_options), address)
        sides: dict[str, Side] = {
            OURS: load.fresh(lambda: build_index([str(source)], address, build_options)),
            BARE: load.fresh(load.bare),
        }
        timings = interleaved(sides, options.rounds, warm_up=options.warm_up)
    finally:
        load.clean()
        client.close()
    return _figure(timings, passages, load, options)


def _figure(timings: Timings, passages: int, load: _Load, options: argparse.Namespace) -> Figure:
    ratio = timings.ratio(BARE, OURS)
    documents = len(load.actions)
    rows = [
        Row.of_ratio("rate of ours to parallel_bulk", ratio, TARGET),
        *(Row(side, passages / timings.median_s(side), "passages/s") for side in (OURS, BARE)),
        *(Row(side, documents / timings.median_s(side), "documents/s") for side in (OURS, BARE)),
    ]
    details = {
        "seconds": timings.seconds,
        "passages": passages,
        "documents": documents,
        "bulk_bytes": load.bytes,
        "max_bulk_bytes": MAX_BULK_BYTES,
        "at_once": SENDERS,
        "workers": options.workers,
        "heap": options.heap,
        "corpus": "copies with other ids and shuffled sentences",
    }
    return Figure("opensearch load", tuple(rows), details)


class _Load:
    """An index name that is loaded repeatedly, and the actions that the other side sends."""

    def __init__(self, address: str, client: Client) -> None:
        from opensearchpy import OpenSearch

        url, _, name = address.rpartition("/")
        self.actions: list[dict[str, Any]] = []
        self.bytes = 0
        self._library = OpenSearch(url, timeout=BULK_TIMEOUT_S)
        self._client = client
        self._name = name
        self._indexes = [f"{name}-bare", f"{name}-bare.sentences"]

    def remember(self, report: BuildReport, address: str) -> None:
        """Make the actions of the other side from the index that our side has built."""
        self.bytes = report.bulk_bytes
        with open_index(address, search_timeout_s=None) as index:
            for chunk in index.scan():
                chunk_document = schema.chunk_document(chunk, {})
                self._remember(self._indexes[0], chunk.doc_id, chunk_document)
                for sentence in schema.sentence_documents(chunk, {}):
                    self._remember(self._indexes[1], chunk.doc_id, sentence)

    def _remember(self, index: str, routing: str, document: dict[str, Any]) -> None:
        action = {"_op_type": "create", "_index": index, "_id": str(document[schema.ORDINAL])}
        self.actions.append({**action, "routing": routing, "_source": document})

    def bare(self) -> None:
        """Create the indexes and send all actions; refreshed at the end."""
        from opensearchpy.helpers import parallel_bulk

        settings: dict[str, Any] = {"k1": 1.2, "b": 0.75, "shards": 1, "meta": {}}
        for index, kind in zip(self._indexes, ("chunks", "sentences"), strict=True):
            body = schema.index_body(kind, {}, **settings)
            self._client.call("PUT", f"/{index}", body, attempt_timeout_s=60)
        sent = parallel_bulk(
            self._library,
            self.actions,
            thread_count=SENDERS,
            queue_size=SENDERS,
            chunk_size=len(self.actions),
            max_chunk_bytes=MAX_BULK_BYTES,
        )
        for succeeded, item in sent:
            if not succeeded:
                raise BenchError("The other side could not write all.", where=str(item)[:300])
        self._client.call("POST", f"/{self._name}-bare*/_refresh", attempt_timeout_s=300)

    def fresh(self, work: Callable[[], object]) -> Side:
        """Return a side that loads into an empty server and raises BenchError if documents are
        missing."""

        def run() -> float:
            self.clean()
            seconds = timed(work)
            counted = self._client.call("GET", f"/{self._name}*/_count", attempt_timeout_s=60)
            if self.actions and counted["count"] != len(self.actions):
                raise BenchError(
                    f"{counted['count']:,} of {len(self.actions):,} documents are in the indexes.",
                    where=self._name,
                )
            return seconds

        return run

    def clean(self) -> None:
        """Delete the loaded indexes."""
        aliases = self._client.call("GET", f"/{self._name}-*/_alias", attempt_timeout_s=60)
        if aliases:
            self._client.call("DELETE", f"/{','.join(aliases)}", attempt_timeout_s=60)


def parser() -> BenchParser:
    """Return the parser of the command."""
    parser = BenchParser("opensearch_load", __doc__)
    add = parser.add_argument
    parser.add_default("--passages", positive, PASSAGES, "passages to load")
    parser.add_rounds(ROUNDS)
    parser.add_default("--warm-up", int, 1, "rounds that do not count")
    add("--workers", type=int, help="our worker processes (default: as in arag-search index)")
    parser.add_default("--heap", str, "1g", "memory of the node")
    parser.add_data()
    parser.add_results()
    parser.add_work()
    return parser

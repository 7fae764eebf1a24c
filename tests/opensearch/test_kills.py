"""Jobs and nodes that are killed during a build on a server."""

import random
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from arag_search.engines.base import SearchRequest
from arag_search.engines.opensearch.address import ConnectionOptions, parse_address
from arag_search.engines.opensearch.client import Client
from arag_search.errors import UnavailableError
from arag_search.manifest import Manifest
from arag_search.search.opening import open_index
from arag_search.system.progress import Progress
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support.builds import (
    PLAIN,
    QUERY,
    checkpoint_every_batch,
    corpus,
    in_own_folder,  # noqa: F401
    kill_build_at_random,
)
from tests.support.cluster import LocalCluster
from tests.support.opensearch_indexes import Site
from tests.support.plans import written

Contents = tuple[Manifest, list[object], list[tuple[str, float]]]


def contents(location: str | Path) -> Contents:
    """Return manifest, chunks and hits of a query, without what differs between engines."""
    with open_index(location) as index:
        page = index.engine.search(SearchRequest(written(QUERY), top_k=50))
        hits = [(hit.id, hit.score) for hit in page.hits]
        manifest = replace(index.manifest, created="", engine="", engine_version="", sources=())
        return manifest, list(index.scan()), hits


def check_same_as_uninterrupted(address: str, source: str) -> None:
    """Compare the index with an uninterrupted build in a folder, scores included."""
    build_index([source], Path("whole"), PLAIN)
    (manifest, chunks, hits), (manifest_whole, chunks_whole, hits_whole) = (
        contents(address),
        contents(Path("whole")),
    )
    assert manifest == manifest_whole
    assert chunks == chunks_whole
    assert [hit_id for hit_id, _ in hits] == [hit_id for hit_id, _ in hits_whole]
    scores = [score for _, score in hits_whole]
    assert [score for _, score in hits] == pytest.approx(scores, rel=1e-5)


def test_a_job_killed_again_and_again_loses_and_duplicates_nothing(opensearch: Site) -> None:
    corpus("c.jsonl", 1200)
    chance = random.Random(5)
    for moment, workers in ((100, 0), (400, 2), (700, 1)):
        kill_build_at_random(chance, moment, "c.jsonl", to=opensearch.address, workers=workers)
        assert opensearch.live() == []
        assert len(opensearch.indexes()) == 2
    report = build_index(["c.jsonl"], opensearch.address, BuildOptions(workers=2, language="en"))
    assert 400 < report.continued < 1200
    check_same_as_uninterrupted(opensearch.address, "c.jsonl")
    physical = report.generation
    assert opensearch.indexes() == [physical, f"{physical}.sentences"]
    assert opensearch.deleted(f"{physical}*") == 0


class NodeKillingProgress(Progress):
    """Progress that kills the node after so many documents, and restarts it if it should."""

    def __init__(self, cluster: LocalCluster, documents: int, *, restart: bool) -> None:
        self._cluster = cluster
        self._documents = documents
        self.restart = threading.Thread(target=cluster.revive) if restart else None

    def update(self, read_bytes: int, documents: int, details: str = "") -> None:
        if documents < self._documents:
            return
        self._documents = 1 << 40
        (node,) = self._cluster.nodes
        node.signal(signal.SIGKILL)
        while node.pid is not None:  # until then it runs
            time.sleep(0.05)
        if self.restart:
            self.restart.start()


@pytest.mark.long
def test_a_build_waits_for_a_killed_node_and_names_it_if_it_stays_away(
    own_node: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint_every_batch(monkeypatch)
    corpus("c.jsonl", 900)
    address = f"{own_node.url}/arag-test-kills"
    impatient = BuildOptions(node_wait_s=1, language="en")
    killing = NodeKillingProgress(own_node, 300, restart=False)
    with pytest.raises(UnavailableError) as caught:
        build_index(["c.jsonl"], address, impatient, killing)
    client = Client(parse_address(address), ConnectionOptions())
    own_node.revive()
    (physical,) = (name for name in client.call("GET", "/arag-test-kills-*") if name[-1] != "s")
    client.close()
    assert caught.value.where == (f"{physical}, {physical}.sentences: no node answers for shard 0")
    assert caught.value.do == "Check the cluster. Then run the same command again to resume."
    patient = BuildOptions(node_wait_s=120, language="en")
    killing = NodeKillingProgress(own_node, 600, restart=True)
    report = build_index(["c.jsonl"], address, patient, killing)
    assert killing.restart
    killing.restart.join()
    assert (report.generation, report.documents) == (physical, 900)
    assert 200 <= report.continued < 600
    check_same_as_uninterrupted(address, "c.jsonl")

"""Building to an address: whole or not at all, resumable, and only over what is ours."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from arag_search.engines.lucene.location import hold_live
from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.engines.opensearch.bulk import Bulks
from arag_search.errors import (
    AragError,
    ArgumentError,
    IndexExistsError,
    IndexLockedError,
    SourceError,
    UnavailableError,
)
from arag_search.system.progress import SilentProgress
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support.builds import (
    OVERWRITE,
    PLAIN,
    corpus,
    in_own_folder,  # noqa: F401
    troublesome_corpus,
)
from tests.support.commands import SAMPLE, Command
from tests.support.opensearch_indexes import Site, comparable, live_manifest
from tests.support.shared_data import DATA

SAMPLE_OPTIONS = BuildOptions(metadata={"year": "number", "kind": "keyword"}, shards=3)


def refusal(site: Site, source: str, options: BuildOptions = PLAIN) -> str:
    with pytest.raises(AragError) as caught:
        build_index([source], site.address, options)
    return str(caught.value)


def test_the_sample_is_the_same_index_as_in_a_folder(opensearch: Site) -> None:
    report = build_index([SAMPLE], opensearch.address, SAMPLE_OPTIONS)
    build_index([SAMPLE], Path("folder"), replace(SAMPLE_OPTIONS, shards=None))
    held = hold_live(Path("folder"))
    engine = LuceneEngine.open(held.path, "folder")
    manifest = live_manifest(opensearch)
    assert comparable(manifest) == comparable(engine.manifest)
    assert opensearch.chunks() == list(engine.scan(None))
    engine.close()
    held.release()
    assert (manifest.engine, manifest.engine_version[0]) == ("opensearch", "3")
    assert opensearch.live() == [report.generation, f"{report.generation}.sentences"]
    assert len(opensearch.documents(f"{report.generation}.sentences")) == manifest.sentences
    settings = opensearch.client.call("GET", f"/{report.generation}/_settings")
    index = settings[report.generation]["settings"]["index"]
    assert (index["number_of_shards"], index["refresh_interval"]) == ("3", "-1")
    meta = opensearch.meta(report.generation)
    assert set(meta.chunk_terms) == set(meta.sentence_terms) == {"title", "content"}


def test_workers_make_the_same_index_on_a_server(opensearch: Site) -> None:
    source = troublesome_corpus("a.jsonl", 100)
    options = BuildOptions(metadata={"year": "number"}, skip_bad_lines=True, chunk_tokens=300)
    found: list[object] = []
    for workers in (0, 2):
        report = build_index(
            [source], opensearch.address, replace(options, workers=workers, overwrite=True)
        )
        physical = report.generation
        documents = [opensearch.documents(each) for each in opensearch.live()]
        found.append(
            [
                documents,
                comparable(live_manifest(opensearch)),
                opensearch.meta(physical).chunk_terms,
            ]
        )
        assert report.bulk_bytes > 50_000
    assert found[0] == found[1]


@pytest.mark.shared_data
def test_hotpotqa_is_built(opensearch: Site) -> None:
    build_index([str(DATA / "hotpotqa/corpus.jsonl")], opensearch.address, PLAIN)
    manifest = live_manifest(opensearch)
    assert (manifest.documents, manifest.sentences, manifest.tokens) == (994, 4137, 123_073)
    body = {"query": {"match_phrase": {"content": "american football"}}, "size": 3}
    reply = opensearch.client.call("POST", f"/{opensearch.name}/_search", body)
    assert reply["hits"]["total"]["value"] > 3


def test_what_is_left_out_is_not_made(opensearch: Site) -> None:
    options = BuildOptions(without=("sentences", "exact"))
    report = build_index([corpus("c.jsonl", 3)], opensearch.address, options)
    assert opensearch.indexes() == opensearch.live() == [report.generation]
    assert live_manifest(opensearch).without == ("sentences", "exact")
    body = opensearch.client.call("GET", f"/{report.generation}/_mapping")
    assert "fields" not in body[report.generation]["mappings"]["properties"]["title"]


def test_an_index_is_replaced_with_overwrite_only_and_the_one_before_is_kept(
    opensearch: Site,
) -> None:
    first = build_index([corpus("c.jsonl", 2)], opensearch.address, PLAIN)
    assert refusal(opensearch, "absent.jsonl") == (
        f"There is an index already.\nWhere: {opensearch.address}\n"
        "Do: Add --overwrite to replace it, or name another index."
    )
    with pytest.raises(SourceError):
        build_index(["absent.jsonl"], opensearch.address, OVERWRITE)
    assert opensearch.live()[0] == first.generation
    second = build_index([corpus("c.jsonl", 3)], opensearch.address, OVERWRITE)
    assert opensearch.live() == [second.generation, f"{second.generation}.sentences"]
    assert len(opensearch.indexes()) == 4
    no_sentences = replace(OVERWRITE, without=("sentences",))
    third = build_index(["c.jsonl"], opensearch.address, no_sentences)
    assert opensearch.live() == [third.generation], "the alias of sentences is gone too"
    kept = [second.generation, f"{second.generation}.sentences", third.generation]
    assert opensearch.indexes() == kept


@pytest.mark.parametrize("as_alias", [True, False])
def test_an_index_that_is_not_ours_is_never_replaced(opensearch: Site, as_alias: bool) -> None:
    name = opensearch.name
    foreign = f"{name}-20260101000000-00000000" if as_alias else name
    body = {"aliases": {name: {}}} if as_alias else {}
    opensearch.client.call("PUT", f"/{foreign}", body)
    assert refusal(opensearch, corpus("c.jsonl", 2), OVERWRITE) == (
        "There is an index of that name that arag-search index did not build"
        f" ({foreign}).\nWhere: {opensearch.address}\n"
        "Allowed: a name that is free, or that of an index of ours with --overwrite\n"
        "Do: Name another index."
    )
    assert opensearch.indexes() == [foreign]


def test_an_index_that_only_looks_like_ours_survives_builds(opensearch: Site) -> None:
    foreign = f"{opensearch.name}-20260101000000-00000000"
    opensearch.client.call("PUT", f"/{foreign}")
    for _ in range(3):
        build_index([corpus("c.jsonl", 2)], opensearch.address, OVERWRITE)
    assert foreign in opensearch.indexes()
    assert len(opensearch.indexes()) == 5


def test_an_empty_corpus_and_a_bad_line_leave_nothing(opensearch: Site) -> None:
    corpus("c.jsonl", 3)
    with Path("c.jsonl").open("a") as file:
        file.write('{"id": "d1", "text": "again"}\n')
    assert refusal(opensearch, "c.jsonl") == (
        'The id "d1" was there before.\nWhere: c.jsonl, line 4\n'
        "Do: Correct it, or leave it out with --skip-bad-lines."
    )
    assert opensearch.indexes() == []


def test_a_build_that_another_overtook_is_not_published(opensearch: Site) -> None:
    class Overtaken(SilentProgress):
        def update(self, read_bytes: int, documents: int, details: str = "") -> None:
            if not opensearch.live():
                other = f"{opensearch.name}-20990101000000-00000000"
                meta = {"_meta": opensearch_meta(opensearch)}
                body = {"mappings": meta, "aliases": {opensearch.name: {}}}
                opensearch.client.call("PUT", f"/{other}", body)

    with pytest.raises(AragError) as caught:
        build_index([corpus("c.jsonl", 100)], opensearch.address, PLAIN, Overtaken())
    assert str(caught.value) == (
        "Another build was published under this name meanwhile.\n"
        f"Where: {opensearch.address}\n"
        "Do: Add --overwrite to replace it with this one; the same command then resumes."
    )
    assert opensearch.live() == [f"{opensearch.name}-20990101000000-00000000"]
    report = build_index(["c.jsonl"], opensearch.address, OVERWRITE)
    assert report.continued == 100


def opensearch_meta(site: Site) -> dict[str, object]:
    unfinished = site.indexes()[0]
    found = site.client.call("GET", f"/{unfinished}/_mapping")
    return found[unfinished]["mappings"]["_meta"]


def test_a_cluster_that_takes_nothing_ends_the_build_which_then_goes_on(
    opensearch: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus("c.jsonl", 300)
    options = BuildOptions(checkpoint_s=0)
    with monkeypatch.context() as patch:
        drain = Bulks.drain

        def fail_later(self: Bulks) -> None:
            drain(self)
            if self.counts.created > 600:
                raise UnavailableError("The server took no documents.")

        patch.setattr(Bulks, "drain", fail_later)
        assert refusal(opensearch, "c.jsonl", options) == (
            "The server took no documents.\n"
            "Do: Check the cluster. Then run the same command again to resume."
        )
    report = build_index(["c.jsonl"], opensearch.address, options)
    assert 0 < report.continued < 300
    assert report.why == (
        f"after {report.continued} documents, nothing has changed since it was stopped"
    )
    assert len(opensearch.chunks()) == 300


# Killed


CHILD = """
import os, signal, sys, time
import arag_search.system.progress
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

moment, interval, address, source = sys.argv[1:]

class Stopping(arag_search.system.progress.SilentProgress):
    def update(self, read_bytes, documents, details=""):
        if documents >= int(moment):
            print(documents, flush=True)
            time.sleep(60)

build_index([source], address, BuildOptions(checkpoint_s=float(interval)), Stopping())
"""


def stopped_at(site: Site, moment: int, source: str) -> "subprocess.Popen[str]":
    """A build in a process of its own that has come so far, and waits."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(moment), "0", site.address, source],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    assert child.stdout is not None
    assert child.stdout.readline().strip().isdecimal(), "it came so far"
    return child


def killed(child: "subprocess.Popen[str]") -> None:
    child.kill()
    child.communicate()
    assert child.returncode == -signal.SIGKILL


def test_a_build_killed_at_any_moment_ends_like_one_that_was_not(
    opensearch: Site,
) -> None:
    corpus("c.jsonl", 600)
    for moment in (100, 350):
        killed(stopped_at(opensearch, moment, "c.jsonl"))
        assert opensearch.live() == []
        assert len(opensearch.indexes()) == 2
    report = build_index(["c.jsonl"], opensearch.address, PLAIN)
    assert report.continued > 100
    build_index(["c.jsonl"], Path("folder"), PLAIN)
    held = hold_live(Path("folder"))
    engine = LuceneEngine.open(held.path, "folder")
    assert comparable(live_manifest(opensearch)) == comparable(engine.manifest)
    assert opensearch.chunks() == list(engine.scan(None))
    engine.close()
    held.release()
    physical = report.generation
    assert opensearch.live() == opensearch.indexes() == [physical, f"{physical}.sentences"]
    sentences = opensearch.documents(f"{physical}.sentences")
    assert len({each["_id"] for each in sentences}) == len(sentences) == 1800
    assert opensearch.deleted(f"{physical}*") == 0


def test_a_second_builder_is_refused_until_the_first_is_dead(opensearch: Site) -> None:
    corpus("c.jsonl", 300)
    child = stopped_at(opensearch, 100, "c.jsonl")
    for options in (PLAIN, BuildOptions(chunk_tokens=50)):
        with pytest.raises(IndexLockedError) as caught:
            build_index(["c.jsonl"], opensearch.address, options)
        assert str(caught.value) == (
            f"Another build is running there (process {child.pid} on {os.uname().nodename}).\n"
            f"Where: {opensearch.address}\n"
            "Do: Wait for it, or stop it; or name another index."
        )
    killed(child)
    report = build_index(["c.jsonl"], opensearch.address, BuildOptions(chunk_tokens=50))
    assert (report.continued, report.why) == (0, "changed since it was stopped: --chunk-tokens")
    physical = report.generation
    assert opensearch.indexes() == [physical, f"{physical}.sentences"]


# The command


def test_the_command_builds_to_an_address(opensearch: Site, arag: Command) -> None:
    corpus("c.jsonl", 3)
    done = arag("index", "c.jsonl", "--to", opensearch.address, "--shards", "2")
    assert (done.code, done.err) == (0, "c.jsonl: recognised as documents\n")
    assert done.out.startswith(f"Built {opensearch.address}: 3 documents in 3 chunks, 9 sentences")
    again = arag("index", "c.jsonl", "--to", opensearch.address)
    assert again.code == 1
    assert "There is an index already." in again.err
    with pytest.raises(IndexExistsError):
        build_index(["c.jsonl"], opensearch.address, PLAIN)


def test_info_describes_and_verifies_an_index_on_a_server(opensearch: Site, arag: Command) -> None:
    options = BuildOptions(shards=2, without=("exact",))
    build_index([corpus("c.jsonl", 3)], opensearch.address, options)
    done = arag("info", opensearch.address)
    assert (done.code, done.err) == (0, "")
    assert done.lines[0] == f"Index {opensearch.address}"
    assert done.lines[3] == (
        "  serves       chunks and sentences, no keyword search; fields title, content, doc_id"
    )
    assert done.lines[-1] == (
        "  verified     counts agree; --checksums reads passages, vectors and files too"
    )
    assert " bytes in 2 shards, " in done.lines[-2]
    shown = arag("info", opensearch.address, "--json").json
    assert shown["files"]["sentences"]["documents"] == shown["manifest"]["sentences"] == 9
    assert shown["verified"] == ["counts"]
    read = arag("info", opensearch.address, "--checksums")
    assert read.lines[-1] == "  verified     counts and passages agree"
    physical = opensearch.live()[0]
    path = f"/{physical}/_delete_by_query"
    query = {"query": {"term": {"doc_id": "d1"}}}
    opensearch.client.call("POST", path, query, {"refresh": "true"}, attempt_timeout_s=60)
    damaged = arag("info", opensearch.address)
    assert damaged.code == 1
    assert "The manifest says 3 chunks, the index holds 2." in damaged.err


def test_what_was_built_is_searched(opensearch: Site, arag: Command) -> None:
    build_index([SAMPLE], opensearch.address, SAMPLE_OPTIONS)
    build_index([SAMPLE], Path("folder"), replace(SAMPLE_OPTIONS, shards=None))
    query = "opera AND NOT title:griselda"
    for more in ([], ["--granularity", "sentence"], ["--explain"]):
        here, there = (
            arag("search", at, query, "--json", *more).json for at in (opensearch.address, "folder")
        )
        assert here["total"] == there["total"] > 3
        assert [hit["id"] for hit in here["hits"]] == [hit["id"] for hit in there["hits"]]
        for ours, theirs in zip(here["hits"], there["hits"], strict=True):
            assert ours["score"] == pytest.approx(theirs["score"], rel=1e-5)


def test_an_address_that_is_none_is_told_before_anything_is_read() -> None:
    with pytest.raises(ArgumentError) as caught:
        build_index(["absent"], "http://localhost:9200/", PLAIN)
    assert caught.value.what == "The address names no index."

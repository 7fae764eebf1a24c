"""Building to an address: complete or not at all, resumable, and only over our own indexes."""

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
    IndexProblemError,
    SourceError,
    UnavailableError,
)
from arag_search.search.opening import open_index
from arag_search.system.progress import Progress
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.updates.addition import add_documents
from index_jobs.updates.deletion import delete_documents
from tests.support.builds import (
    OVERWRITE,
    PLAIN,
    checkpoint_every_batch,
    corpus,
    in_own_folder,  # noqa: F401
)
from tests.support.commands import SAMPLE, Command, file_of
from tests.support.opensearch_indexes import Site, comparable, live_manifest

SAMPLE_OPTIONS = BuildOptions(metadata={"year": "number", "kind": "keyword"}, shards=3)


def refusal(site: Site, source: str, options: BuildOptions = PLAIN) -> str:
    with pytest.raises(AragError) as caught:
        build_index([source], site.address, options)
    return str(caught.value)


def test_the_sample_is_the_same_index_as_in_a_folder(opensearch: Site) -> None:
    report = build_index([SAMPLE], opensearch.address, SAMPLE_OPTIONS)
    build_index([SAMPLE], Path("folder"), replace(SAMPLE_OPTIONS, shards=None))
    generation = hold_live(Path("folder"))
    engine = LuceneEngine.open(generation.path, "folder")
    manifest = live_manifest(opensearch)
    assert comparable(manifest) == comparable(engine.manifest)
    assert opensearch.chunks() == list(engine.scan(None))
    engine.close()
    generation.release()
    assert (manifest.engine, manifest.engine_version[0]) == ("opensearch", "3")
    assert opensearch.live() == [report.generation, f"{report.generation}.sentences"]
    assert len(opensearch.documents(f"{report.generation}.sentences")) == manifest.sentences
    settings = opensearch.client.call("GET", f"/{report.generation}/_settings")
    index = settings[report.generation]["settings"]["index"]
    assert (index["number_of_shards"], index["refresh_interval"]) == ("3", "-1")
    meta = opensearch.meta(report.generation)
    fields = {"title", "content", "title_forms", "content_forms"}
    assert set(meta.chunk_terms) == set(meta.sentence_terms) == fields


def test_equal_scores_with_words_as_typed_first_are_the_same_in_a_folder(opensearch: Site) -> None:
    names = ("Dori", "Doris", "Peter", "Peters", "window", "Windows", "Alexi", "Alexis")
    texts = [f"{name} is in row {number}." for number, name in enumerate(names * 2, 10)]
    source = file_of("rows.jsonl", *({"id": str(n), "text": t} for n, t in enumerate(texts)))
    for location in (opensearch.address, "folder"):
        build_index([source], location, BuildOptions(language="en"))
        with open_index(location) as index:
            for at, (other, name) in enumerate(zip(names[::2], names[1::2], strict=True)):
                first = [2 * at + 1, 2 * at + 9, 2 * at, 2 * at + 8]
                for query, order in ((name, first), (other, first[2:] + first[:2])):
                    hits = index.logical_search(query).hits
                    assert len({hit.score for hit in hits}) == 1
                    assert [int(hit.doc_id) for hit in hits] == order


def test_parts_that_are_left_out_are_not_built(opensearch: Site) -> None:
    options = BuildOptions(without=("sentences", "exact"))
    report = build_index([corpus("c.jsonl", 3)], opensearch.address, options)
    assert opensearch.indexes() == opensearch.live() == [report.generation]
    assert live_manifest(opensearch).without == ("sentences", "exact")
    body = opensearch.client.call("GET", f"/{report.generation}/_mapping")
    assert "fields" not in body[report.generation]["mappings"]["properties"]["title"]


def test_an_index_is_replaced_only_with_overwrite_and_the_previous_one_is_kept(
    opensearch: Site,
) -> None:
    first = build_index([corpus("c.jsonl", 2)], opensearch.address, PLAIN)
    assert refusal(opensearch, "absent.jsonl") == (
        f"There is an index already.\nWhere: {opensearch.address}\n"
        "Do: Add `overwrite=True` to replace it, or name another index."
    )
    with pytest.raises(SourceError):
        build_index(["absent.jsonl"], opensearch.address, OVERWRITE)
    assert opensearch.live()[0] == first.generation
    second = build_index([corpus("c.jsonl", 3)], opensearch.address, OVERWRITE)
    assert opensearch.live() == [second.generation, f"{second.generation}.sentences"]
    assert len(opensearch.indexes()) == 4
    no_sentences = replace(OVERWRITE, without=("sentences",))
    third = build_index(["c.jsonl"], opensearch.address, no_sentences)
    assert opensearch.live() == [third.generation], "the alias of the sentences is removed too"
    remaining = [second.generation, f"{second.generation}.sentences", third.generation]
    assert opensearch.indexes() == remaining


@pytest.mark.parametrize("as_alias", [True, False])
def test_an_index_that_is_not_ours_is_never_replaced(opensearch: Site, as_alias: bool) -> None:
    name = opensearch.name
    foreign = f"{name}-20260101000000-00000000" if as_alias else name
    body = {"aliases": {name: {}}} if as_alias else {}
    opensearch.client.call("PUT", f"/{foreign}", body)
    assert refusal(opensearch, corpus("c.jsonl", 2), OVERWRITE) == (
        "There is an index of that name that arag-search index did not build"
        f" ({foreign}).\nWhere: {opensearch.address}\n"
        "Allowed: a name that is free, or that of an index of ours with `overwrite=True`\n"
        "Do: Name another index."
    )
    assert opensearch.indexes() == [foreign]


@pytest.mark.parametrize(
    ("narrowing", "kinds"),
    [
        ({"filter": {"term": {"doc_id": "d0"}}}, "filter"),
        ({"routing": "d0"}, "routing"),
        ({"filter": {"match_all": {}}, "search_routing": "d0"}, "filter and a routing"),
        (None, ""),
    ],
)
def test_a_name_of_part_of_an_index_or_of_several_is_refused_for_all_uses(
    opensearch: Site, narrowing: dict[str, object] | None, kinds: str
) -> None:
    whole = build_index([corpus("c.jsonl", 2)], opensearch.address).generation
    part, address = f"{opensearch.name}-part", f"{opensearch.address}-part"
    named = [whole] if narrowing is not None else [whole, f"{whole}.sentences"]
    actions = [{"add": {"index": index, "alias": part, **(narrowing or {})}} for index in named]
    opensearch.client.call("POST", "/_aliases", {"actions": actions})
    for use in (
        lambda: open_index(address),
        lambda: delete_documents(address, ["d0"]),
        lambda: build_index(["c.jsonl"], address, OVERWRITE),
    ):
        with pytest.raises(IndexProblemError) as caught:
            use()
        error = caught.value
        assert type(error) is IndexProblemError
        if narrowing is None:
            assert error.what == f"The name stands for 2 indexes: {whole}, {whole}.sentences."
            continue
        assert str(error) == (
            f"The name is an alias with a {kinds}.\nWhere: {address}\n"
            "Allowed: an alias of a whole index\n"
            f"Do: Name the index {whole} instead, and narrow searches by --filter CONDITIONS."
        )
    assert len(opensearch.chunks()) == 2


def test_pipelines_of_a_template_change_neither_builds_nor_searches(opensearch: Site) -> None:
    """Check that templates for all indexes may name pipelines: each use of these would fail."""
    name, call = opensearch.name, opensearch.client.call

    def set_for_all(*kinds: str) -> None:
        template = {"settings": {"index": dict.fromkeys(kinds, "that-is-missing")}}
        body = {"index_patterns": [f"{name}*"], "template": template}
        call("PUT", f"/_index_template/{name}", body)

    try:
        set_for_all("default_pipeline", "final_pipeline", "search.default_pipeline")
        build_index([corpus("c.jsonl", 5)], opensearch.address)
        set_for_all("default_pipeline", "search.default_pipeline")
        add_documents([file_of("more.jsonl", {"id": "m", "text": "w1 w1"})], opensearch.address)
        live = f"{opensearch.live()[0]}*"
        call("PUT", f"/{live}/_settings", {"index": {"search.default_pipeline": "that-is-missing"}})
        with open_index(opensearch.address) as index:
            assert index.logical_search("w1").total > 1
            assert index.words("w1")[0].passages > 1
            assert len([*index.documents()]) == 6
    finally:
        call("DELETE", f"/_index_template/{name}")


def test_an_index_that_only_looks_like_ours_survives_builds(opensearch: Site) -> None:
    foreign = f"{opensearch.name}-20260101000000-00000000"
    opensearch.client.call("PUT", f"/{foreign}")
    for _ in range(3):
        build_index([corpus("c.jsonl", 2)], opensearch.address, OVERWRITE)
    assert foreign in opensearch.indexes()
    assert len(opensearch.indexes()) == 5


def test_a_build_with_a_bad_line_leaves_nothing(opensearch: Site) -> None:
    corpus("c.jsonl", 3)
    with Path("c.jsonl").open("a") as file:
        file.write('{"id": "d1", "text": "again"}\n')
    assert refusal(opensearch, "c.jsonl") == (
        'Duplicate id "d1": two records have it.\nWhere: c.jsonl, line 4\n'
        "Do: Fix it, or skip it with `skip_bad_lines=True`."
    )
    assert opensearch.indexes() == []


def test_a_build_that_another_overtook_is_not_published(opensearch: Site) -> None:
    class OvertakenProgress(Progress):
        def update(self, read_bytes: int, documents: int, details: str = "") -> None:
            if not opensearch.live():
                other = f"{opensearch.name}-20990101000000-00000000"
                meta = {"_meta": opensearch_meta(opensearch)}
                body = {"mappings": meta, "aliases": {opensearch.name: {}}}
                opensearch.client.call("PUT", f"/{other}", body)

    with pytest.raises(AragError) as caught:
        build_index([corpus("c.jsonl", 100)], opensearch.address, PLAIN, OvertakenProgress())
    assert str(caught.value) == (
        "Another build was published under this name in the meantime.\n"
        f"Where: {opensearch.address}\n"
        "Do: Add `overwrite=True` to replace it with this one; the same command then resumes."
    )
    assert opensearch.live() == [f"{opensearch.name}-20990101000000-00000000"]
    report = build_index(["c.jsonl"], opensearch.address, OVERWRITE)
    assert report.continued == 100


def opensearch_meta(site: Site) -> dict[str, object]:
    unfinished = site.indexes()[0]
    mappings = site.client.call("GET", f"/{unfinished}/_mapping")
    return mappings[unfinished]["mappings"]["_meta"]


def test_a_cluster_that_accepts_nothing_ends_the_build_which_is_then_resumed(
    opensearch: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus("c.jsonl", 300)
    checkpoint_every_batch(monkeypatch)
    options = BuildOptions(language="en")
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


# Builds that are killed


CHILD = """
import os, signal, sys, time
import arag_search.system.progress
from index_jobs.build import new_index
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.updates.deletion import delete_documents

moment, interval, address, source = sys.argv[1:]

class Stopping(arag_search.system.progress.Progress):
    def update(self, read_bytes, documents, details=""):
        if documents >= int(moment):
            print(documents, flush=True)
            time.sleep(600)

new_index.CHECKPOINT_S = float(interval)
new_index.CHECKPOINT_SHARE = 0
build_index([source], address, BuildOptions(language="en"), Stopping())
"""


def build_paused_at(site: Site, moment: int, source: str) -> "subprocess.Popen[str]":
    """Start a build in a separate process, and return it paused after ``moment`` documents."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(moment), "0", site.address, source],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    assert child.stdout is not None
    assert child.stdout.readline().strip().isdecimal(), "the build reaches the moment"
    return child


def kill(child: "subprocess.Popen[str]") -> None:
    child.kill()
    child.communicate()
    assert child.returncode == -signal.SIGKILL


def test_a_second_builder_is_refused_until_the_first_is_dead(opensearch: Site) -> None:
    corpus("c.jsonl", 300)
    child = build_paused_at(opensearch, 100, "c.jsonl")
    for options in (PLAIN, BuildOptions(chunk_tokens=50, language="en")):
        with pytest.raises(IndexLockedError) as caught:
            build_index(["c.jsonl"], opensearch.address, options)
        assert caught.value.what.startswith(
            f"Another build is running there: process {child.pid} on {os.uname().nodename}, since "
        )
    kill(child)
    report = build_index(
        ["c.jsonl"], opensearch.address, BuildOptions(chunk_tokens=50, language="en")
    )
    assert (report.continued, report.why) == (0, "changed since it was stopped: `chunk_tokens`")
    physical = report.generation
    assert opensearch.indexes() == [physical, f"{physical}.sentences"]


# The command line


def test_the_command_builds_to_an_address(opensearch: Site, arag: Command) -> None:
    corpus("c.jsonl", 3)
    result = arag("index", "c.jsonl", "--to", opensearch.address, "--shards", "2")
    assert (result.code, result.err) == (0, "c.jsonl: recognised as documents\n")
    assert result.out.startswith(
        f"Built {opensearch.address}: 3 documents in 3 passages, 9 sentences"
    )
    second = arag("index", "c.jsonl", "--to", opensearch.address)
    assert second.code == 1
    assert "There is an index already." in second.err
    with pytest.raises(IndexExistsError):
        build_index(["c.jsonl"], opensearch.address, PLAIN)


def test_info_describes_and_verifies_an_index_on_a_server(opensearch: Site, arag: Command) -> None:
    options = BuildOptions(shards=2, without=("exact",))
    build_index([corpus("c.jsonl", 3)], opensearch.address, options)
    result = arag("info", opensearch.address)
    assert (result.code, result.err) == (0, "")
    assert result.lines[0] == f"Index {opensearch.address}"
    assert result.lines[5] == (
        "  serves       passages and sentences, no keyword search; fields title, content, doc_id"
    )
    verified = "  verified     counts agree; --checksums reads passages, vectors and files too"
    assert verified in result.lines
    assert sum(" bytes in 2 shards, " in line for line in result.lines) == 2
    report = arag("info", opensearch.address, "--json").json
    assert report["files"]["sentences"]["documents"] == report["manifest"]["sentences"] == 9
    assert report["verified"] == ["counts"]
    thorough = arag("info", opensearch.address, "--checksums")
    assert "  verified     counts and passages agree" in thorough.lines
    physical = opensearch.live()[0]
    path = f"/{physical}/_delete_by_query"
    query = {"query": {"term": {"doc_id": "d1"}}}
    opensearch.client.call("POST", path, query, {"refresh": "true"}, attempt_timeout_s=60)
    damaged = arag("info", opensearch.address)
    assert damaged.code == 4
    assert "The manifest says 3 passages, the index holds 2." in damaged.err


def test_an_invalid_address_is_rejected_before_anything_is_read() -> None:
    with pytest.raises(ArgumentError) as caught:
        build_index(["absent"], "http://localhost:9200/", PLAIN)
    assert caught.value.what == "The address names no index."

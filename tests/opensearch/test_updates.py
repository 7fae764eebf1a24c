"""Updates of an index on a server: complete or not at all, finished or undone by the next one."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from arag_search.engines.base import check_compact
from arag_search.engines.open import open_update
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.lease import Lease
from arag_search.engines.opensearch.update import OpenSearchUpdate
from arag_search.engines.write import UpdateRecord
from arag_search.errors import IndexDamagedError, IndexLockedError, IndexNotFoundError
from arag_search.search.opening import open_index
from arag_search.system.progress import Progress
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.updates.addition import add_documents
from index_jobs.updates.deletion import delete_documents
from index_jobs.updates.maintenance import compact_index
from index_jobs.updates.synchronisation import sync_documents
from tests.support import front_matter
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.commands import Command, file_of
from tests.support.examples import examples, some_of
from tests.support.opensearch_indexes import Site
from tests.support.updated_corpora import (
    OPTIONS,
    document,
    error_message,
    random_updates,
    run_until_killed,
)

SHARDED = BuildOptions(shards=2)
OVERWRITE = BuildOptions(shards=2, overwrite=True)


def ids(site: Site) -> list[str]:
    with open_index(site.address) as index:
        return [chunk.id for chunk in index.scan()]


def build(site: Site, *names: str) -> None:
    file = file_of("built.jsonl", *(document(name, f"Old {name}. Sea.") for name in names))
    build_index([file], site.address, SHARDED)


def test_an_updated_index_equals_a_fresh_build_in_a_folder(
    opensearch: Site, tmp_path: Path
) -> None:
    options = BuildOptions(
        chunk_tokens=OPTIONS.chunk_tokens,
        metadata=dict(OPTIONS.metadata),
        shards=2,
        language=OPTIONS.language,
    )
    actions = ("add", "delete")
    random_updates(5, opensearch.address, tmp_path, examples(10), options=options, actions=actions)
    with open_index(opensearch.address) as index:
        check_compact(index.engine.deletions(), index.location)
    assert opensearch.indexes() == opensearch.live()


@pytest.mark.long
def test_an_index_on_a_server_follows_the_front_matter_of_its_notes(opensearch: Site) -> None:
    options = replace(front_matter.OPTIONS, shards=2)
    report = front_matter.follow_changes(opensearch.address, options)
    assert report.front_fields == {"mood": "keyword", "extra": "keyword"}


def test_a_field_of_an_update_that_was_undone_keeps_its_type_on_a_server(opensearch: Site) -> None:
    front_matter.write_notes(front_matter.NOTES)
    build_index(["notes"], opensearch.address, front_matter.OPTIONS)
    with open_update(opensearch.address) as target:
        target.begin(UpdateRecord("x", "x", 2), {**target.manifest.metadata, "n": "number"})
        target.give_up()
    front_matter.write_notes({"a": "---\nn: one\n---\nText."})
    message = error_message(sync_documents, ["notes"], opensearch.address)
    assert message.startswith("The server does not take the new fields (")
    assert message.endswith("Do: Build the index again with `overwrite=True`.")
    front_matter.write_notes({"a": "---\nn: 1\n---\nText."})
    assert sync_documents(["notes"], opensearch.address).front_fields == {"n": "number"}
    assert front_matter.found(opensearch.address, "n:>0") == ["a.md"]


def test_no_part_of_an_update_is_visible_before_all_of_it_is_written(opensearch: Site) -> None:
    snapshots: list[list[str]] = []

    class ReadingProgress(Progress):
        def update(self, read_bytes: int, documents: int, details: str = "") -> None:
            opensearch.client.call("POST", f"/{opensearch.live()[0]}/_flush")
            snapshots.append(ids(opensearch))

    build(opensearch, "a", "b")
    new = [document("a", "New. Sea."), *(document(f"n{n}", "New.") for n in range(150))]
    report = add_documents(
        [file_of("new.jsonl", *new)], opensearch.address, None, ReadingProgress()
    )
    assert (report.added, report.replaced) == (150, 1)
    assert len(snapshots) >= 2
    assert snapshots == [["a.1", "b.1"]] * len(snapshots)
    assert ids(opensearch) == ["b.1", "a.1", *(f"n{n}.1" for n in range(150))]
    Path("new.jsonl").write_text('{"id": "a", "text": "Newer."}\noops\n')
    assert "not JSON" in error_message(add_documents, ["new.jsonl"], opensearch.address)
    with open_index(opensearch.address) as index:
        assert index.chunk_read(["a.1"])[0].chunk.content == "New. Sea."
    assert opensearch.meta(opensearch.live()[0]).unfinished_update == ""
    assert opensearch.indexes() == opensearch.live()


def test_readers_find_whole_documents_while_updates_run(opensearch: Site) -> None:
    build(opensearch, "a", "b")
    stop = threading.Event()
    wrong: list[object] = []
    states: set[str] = set()

    def read() -> None:
        with open_index(opensearch.address) as index:
            while not stop.is_set():
                for granularity in ("chunk", "sentence"):
                    hits = index.logical_search("sea", granularity=granularity).hits
                    if sorted(hit.doc_id for hit in hits) != ["a", "b"]:
                        wrong.append((granularity, [hit.id for hit in hits]))
                    states.update(hit.content for hit in hits)
                    for hit in hits:
                        first_sentence = (
                            [hit.content[: hit.sentence_ends[0]]] if hit.sentence_ends else []
                        )
                        if "Sea." not in hit.content or not first_sentence:
                            wrong.append(hit)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for turn in range(6):
            text = "More. " * (turn % 3) + f"State {turn}. Sea."
            add_documents([file_of("a.jsonl", document("a", text))], opensearch.address)
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert not wrong, wrong[:3]
    assert len(states) > 2


def test_updates_of_threads_queue_and_add_records(opensearch: Site) -> None:
    build(opensearch, "a")

    def added(name: str) -> int:
        records = [{"id": name, "text": "Open."}]
        return add_documents(records, opensearch.address, source="tickets", wait_s=120).documents

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(added, "bcde")) == [2, 3, 4, 5]
    assert sorted(ids(opensearch)) == ["a.1", "b.1", "c.1", "d.1", "e.1"]


def test_one_update_at_a_time_on_an_index_of_ours(opensearch: Site, arag: Command) -> None:
    address = opensearch.address
    for call in (delete_documents, compact_index):
        with pytest.raises(IndexNotFoundError):
            call(address, *([["a"]] if call is delete_documents else []))
    opensearch.client.call("PUT", f"/{opensearch.name}", {})
    assert error_message(delete_documents, address, ["a"]).startswith(
        "The index was not built by arag_search: its mapping has no _meta of ours."
    )
    assert opensearch.indexes() == [opensearch.name]
    opensearch.remove()
    build(opensearch, "a", "b", "c")
    physical = opensearch.live()[0]
    lease = Lease(opensearch.client, physical, address, "update")
    assert lease.take() == {}
    with pytest.raises(IndexLockedError) as caught:
        add_documents(["built.jsonl"], address, wait_s=0)
    assert caught.value.where == str(address)
    assert str(os.getpid()) in caught.value.what
    lease.release()
    assert "unknown ids" in error_message(delete_documents, address, ["a", "z"]).lower()
    report = delete_documents(address, ["a"])
    assert (report.deleted, report.documents, ids(opensearch)) == (1, 2, ["b.1", "c.1"])
    info = arag("info", address, "--json").json
    assert (info["unfinished_update"], info["verified"]) == ("", ["counts"])
    assert info["deleted_share"] > 0.3


def test_an_index_that_is_deleted_or_replaced_during_an_update_is_reported(
    opensearch: Site,
) -> None:
    class ReplacingProgress(Progress):
        def __init__(self, action: str) -> None:
            self.action = action

        def update(self, read_bytes: int, documents: int, details: str = "") -> None:
            if self.action == "rollback":
                opensearch.roll_back(second, first)
            elif self.action:
                opensearch.remove()
            self.action = ""

    build(opensearch, "a", "b")
    first = opensearch.live()[0]
    second = build_index(["built.jsonl"], opensearch.address, OVERWRITE).generation
    source = file_of("many.jsonl", *(document(f"n{n}", "New.") for n in range(70)))
    message = error_message(
        add_documents, [source], opensearch.address, None, ReplacingProgress("rollback")
    )
    assert message == (
        "Another build was published under this name in the meantime, without this update.\n"
        f"Where: {opensearch.address}\nDo: Run the same command again: it updates that build."
    )
    assert ids(opensearch) == ["a.1", "b.1"]
    assert add_documents([source], opensearch.address).added == 70
    message = error_message(
        add_documents, [source], opensearch.address, None, ReplacingProgress("delete")
    )
    assert message.splitlines()[0] in (
        "The index was deleted while it was being written.",  # The bulk reports it.
        "The index was deleted during the update.",
    )
    assert not [name for name in opensearch.indexes() if not name.endswith(".lock")]


# Updates that are killed

KILLED = """
import os, signal, sys
from arag_search.engines.opensearch import update, lease, client
moment, *command = sys.argv[1:]
place, _, after = moment.partition(":")
left = int(after)
owner, name = {
    "written": (update.OpenSearchUpdate, "publish"),
    "remove": (update.OpenSearchUpdate, "_remove_from"),
    "refresh": (client.Client, "call"),
    "aliases": (update.OpenSearchUpdate, "_remove_aliases"),
    "release": (lease.Lease, "release"),
    "close": (client.Client, "close"),
}[place]
call = getattr(owner, name)
def dying(self, *arguments, **options):
    global left
    if place != "refresh" or arguments[1].endswith("/_refresh"):
        if not left:
            if place == "written":
                self._bulks.drain()
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
    return call(self, *arguments, **options)
setattr(owner, name, dying)
from arag_search.cli.app import run
sys.exit(run(command))
"""


@pytest.mark.parametrize("moment", some_of(["refresh:1", "written:0", "remove:0", "aliases:0"], 2))
def test_an_addition_that_is_killed_is_completed_by_the_same_command(
    moment: str, opensearch: Site, arag: Command
) -> None:
    build(opensearch, "a", "b", "c")
    new = [document("b", "New. Sea."), *(document(f"n{n}", "New. Sea.") for n in range(40))]
    source = file_of("new.jsonl", *new)
    command = ["add", source, "--to", opensearch.address]
    run_until_killed(KILLED, moment, *command)
    before, after = ["a.1", "b.1", "c.1"], ["a.1", "c.1", "b.1", *(f"n{n}.1" for n in range(40))]
    visible = moment in ("refresh:1", "aliases:0")
    if moment != "refresh:1":  # Between the refreshes, the chunks are the old ones.
        assert ids(opensearch) == (after if visible else before)
    else:
        assert ids(opensearch) == before
        with open_index(opensearch.address) as index:
            assert index.logical_search("new", granularity="sentence").total == 41
            with pytest.raises(IndexDamagedError) as caught:
                index.logical_search("new", granularity="sentence", full_text=True)
        assert str(caught.value).startswith(
            f"There are sentences whose passages are missing.\nWhere: {opensearch.address}\n"
        )
    if moment in ("written:0", "refresh:1"):
        last_line = arag("info", opensearch.address).lines[-1]
        assert last_line.startswith(
            "  unfinished   an update is running or was interrupted: arag-search add"
        )
    retry = arag(*command, "--json")
    assert retry.code == 0, retry.err
    assert (retry.json["added"], retry.json["replaced"]) == (40, 1)
    assert retry.json["finished_before"] is (moment != "written:0")
    assert ids(opensearch) == after
    with open_index(opensearch.address) as index:
        assert index.manifest.update == 2
        result = index.logical_search("sea", granularity="sentence", top_k=50)
        assert result.total == 43
    assert opensearch.indexes() == opensearch.live()
    deleted = opensearch.deleted(opensearch.live()[0])
    assert deleted <= 3, "one document, and a mark for each time that it was deleted"


@pytest.mark.parametrize("moment", some_of(["written:0", "refresh:1"]))
def test_a_synchronised_index_equals_its_source_also_after_a_kill(
    moment: str, opensearch: Site, arag: Command
) -> None:
    build(opensearch, "a", "b", "c", "d")
    add_documents([file_of("other.jsonl", document("o", "Other."))], opensearch.address)
    kept = [document(name, f"Old {name}. Sea.") for name in "ab"]
    source = file_of("built.jsonl", *kept, document("c", "New. Sea."), document("e", "New."))
    command = ["sync", opensearch.address, source]
    run_until_killed(KILLED, moment, *command)
    done = arag(*command, "--json")
    assert done.code == 0, done.err
    assert [done.json[name] for name in ("added", "replaced", "deleted")] == [1, 1, 1]
    assert ids(opensearch) == ["a.1", "b.1", "o.1", "c.1", "e.1"]
    again = arag(*command, "--json")
    assert (again.json["unchanged"], again.json["update"]) == (4, 3)
    assert opensearch.indexes() == opensearch.live()


class InterruptedProgress(Progress):
    def begin(self, counted: str, total: int, done: int = 0, count: int | None = None) -> None:
        raise KeyboardInterrupt


def test_another_command_names_the_unfinished_update_which_is_then_undone_or_finished(
    opensearch: Site, arag: Command
) -> None:
    address = opensearch.address
    build(opensearch, "a", "b", "c")
    source = file_of("new.jsonl", document("b", "New."), document("n", "New."))
    command = f"arag-search add {source} --to {address}"
    run_until_killed(KILLED, "written:0", "add", source, "--to", address)
    assert arag("delete", address, "a").err == (
        f"arag-search: An update of the index was interrupted: {command}\n"
        f"Where: {address}\n"
        f"Do: Run that command again; or undo it: arag-search compact {address}\n"
    )
    stat, written = os.stat(source), Path(source).read_text()
    Path(source).write_text(written.replace("New.", "Newer."))
    assert arag("add", source, "--to", address).err.endswith(
        "arag-search: This update was interrupted, and what it reads, its options or this program "
        f"have changed since: {command}\nWhere: {address}\nDo: Undo what it has written: "
        f"arag-search compact {address}. Then run this command again.\n"
    )
    Path(source).write_text(written)
    os.utime(source, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(KeyboardInterrupt):
        add_documents([source], address, None, InterruptedProgress())
    physical = opensearch.live()[0]
    assert opensearch.meta(physical).unfinished_update == command, "it is not all of this process"
    assert arag("add", source, "--dry-run", "--to", address).code == 0
    with open_update(address) as target:  # As compact does, but without waiting for merges.
        note = target.recover(None).note
    assert note == f"An interrupted update has been undone: {command}"
    assert ids(opensearch) == ["a.1", "b.1", "c.1"]
    with open_index(address) as index:
        assert index.chunk_read(["b.1"])[0].chunk.content != "New.", "nothing is lost"
    run_until_killed(KILLED, "remove:1", "delete", address, "a", "b")
    result = arag("add", source, "--to", address)
    assert result.err.splitlines()[1] == (
        f'An interrupted update has been completed: arag-search delete {address} "a", "b"'
    )
    assert ids(opensearch) == ["c.1", "b.1", "n.1"]
    with open_index(address) as index:
        assert index.chunk_read(["b.1"])[0].chunk.content == "New."
        assert index.manifest.update == 3
    run_until_killed(KILLED, "release:0", "delete", address, "c")
    retry = arag("delete", address, "c", "--json")
    assert (retry.code, retry.json["finished_before"]) == (0, True)
    assert arag("delete", address, "c", "z").code == 1, "another command"


def test_a_cluster_that_refuses_writes_leaves_the_update_to_the_next_command(
    opensearch: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(opensearch, "a", "b")
    source = file_of("new.jsonl", document("b", "New."), document("n", "New."))
    physical = opensearch.live()[0]
    block = {"index.blocks.write": True}
    begin = OpenSearchUpdate.begin

    def blocked(self: OpenSearchUpdate, *arguments: object, **options: object) -> None:
        begin(self, *arguments, **options)  # type: ignore[arg-type]
        opensearch.client.call("PUT", f"/{physical}/_settings", block)

    with monkeypatch.context() as patch:
        patch.setattr(OpenSearchUpdate, "begin", blocked)
        message = error_message(add_documents, [source], opensearch.address)
    assert "blocked by: [FORBIDDEN/8/index write (api)]" in message
    assert ids(opensearch) == ["a.1", "b.1"]
    message = error_message(delete_documents, opensearch.address, ["a"])
    assert "An update of the index was interrupted" in message
    opensearch.client.call("PUT", f"/{physical}/_settings", {"index.blocks.write": None})
    assert add_documents([source], opensearch.address).added == 1
    assert ids(opensearch) == ["a.1", "b.1", "n.1"]
    assert isinstance(opensearch.client, Client)

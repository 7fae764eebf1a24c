"""An update of a local index is all or nothing, and its result equals a fresh build."""

import errno
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from arag_search.engines.base import check_compact
from arag_search.engines.lucene.location import BuildSite, hold_live
from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.engines.lucene.snapshot import Snapshot
from arag_search.errors import (
    IndexLockedError,
    IndexNotFoundError,
    IndexProblemError,
    SourceError,
)
from arag_search.search.opening import open_index
from arag_search.system.progress import Progress
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.updates.addition import add_documents
from index_jobs.updates.deletion import delete_documents
from index_jobs.updates.maintenance import compact_index
from index_jobs.updates.options import AddOptions
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.commands import SAMPLE, Command, file_of, process
from tests.support.examples import examples, some_of
from tests.support.updated_corpora import (
    INDEX,
    add_report,
    document,
    error_message,
    random_updates,
    run_until_killed,
)


def build_from(*documents: dict[str, object], options: BuildOptions | None = None) -> None:
    build_index([file_of("built.jsonl", *documents)], INDEX, options or BuildOptions())


def ids() -> list[str]:
    with open_index(INDEX) as index:
        return [chunk.id for chunk in index.scan()]


@pytest.mark.parametrize("seed", some_of(range(examples(30))))
def test_an_updated_index_equals_a_fresh_build_of_what_it_holds(seed: int, tmp_path: Path) -> None:
    random_updates(seed, "index", tmp_path, steps=8)


@pytest.mark.parametrize("change", ["add", "compact"])
def test_an_update_that_is_published_does_not_fail_if_readers_cannot_be_told(
    monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    def failing(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    build_from(document("a", "One."), document("b", "Two."))
    with open_index(INDEX) as reader:
        with monkeypatch.context() as patch:
            patch.setattr(BuildSite, "note_commit", failing)
            if change == "add":
                add_report(document("c", "Three."))
            else:
                compact_index(INDEX)
        assert not reader.is_outdated()
        delete_documents(INDEX, ["a"])
        assert reader.is_outdated()
    assert ids() == (["b.1", "c.1"] if change == "add" else ["b.1"])


def test_added_documents_come_after_all_others_and_replaced_ones_move_there() -> None:
    build_from(document("a", "One."), document("b", "Two."), document("c", "Three."))
    report = add_report(document("b", "Two anew. " * 400), document("d", "Four."))
    assert (report["added"], report["replaced"], report["documents"]) == (1, 1, 4)
    assert ids() == ["a.1", "c.1", "b.1", "b.2", "d.1"]
    with open_index(INDEX) as index:
        assert index.manifest.sources == ("built.jsonl", "added.jsonl")
        assert (index.manifest.update, index.manifest.chunks) == (2, 5)
        ordinals = [chunk.ordinal for chunk in index.scan()]
        assert ordinals == sorted(ordinals)
        assert ordinals[2] >> 51 == 1, "the next source shard"
        assert index.logical_search("two").hits[0].id == "b.1"
    add_report(document("e", "Five."))
    delete_documents(INDEX, ["e"])
    add_report(document("f", "Six."))
    assert ids()[-1] == "f.1"


def test_a_document_of_which_the_metadata_alone_changed_is_replaced() -> None:
    build_from(
        {**document("a", "One."), "year": 1}, options=BuildOptions(metadata={"year": "number"})
    )
    for year, replaced in ((1, 0), (2, 1)):
        report = add_report({**document("a", "One."), "year": year})
        assert (report["replaced"], report["unchanged"]) == (replaced, 1 - replaced)


def test_pre_chunked_passages_skip_deleted_neighbours_and_accept_only_their_kind() -> None:
    Path("chunks.json").write_text(json.dumps([f"{n}:Text {n}." for n in range(5)]))
    build_index(["chunks.json"], INDEX, BuildOptions())
    delete_documents(INDEX, ["2", "3"])
    Path("more.json").write_text(json.dumps(["7:Text 7.", "0:Text nil."]))
    add_documents(["more.json"], INDEX)
    with open_index(INDEX) as index:
        chunks = index.chunk_read(["1", "4", "7", "0"])
        assert [(chunk.previous_id, chunk.next_id) for chunk in chunks] == [
            (None, "4"),
            ("1", "7"),
            ("4", "0"),
            ("7", None),
        ]
    assert error_message(add_documents, [file_of("d.jsonl", document("d", "x"))], INDEX) == (
        "The index holds pre-chunked passages, but these sources do not: d.jsonl (documents).\n"
        "Where: index\nAllowed: arag-chunks, dpr, pre-chunked\nDo: Build a separate index for them."
    )
    build_index(["d.jsonl"], Path("other"), BuildOptions())
    assert error_message(add_documents, ["more.json"], Path("other")) == (
        "The index holds documents, but these sources do not: more.json (arag-chunks).\n"
        "Where: other\nAllowed: every format but arag-chunks, dpr, pre-chunked\n"
        "Do: Build a separate index for them."
    )


def test_every_pre_chunked_format_is_added_to_an_index_of_such_passages_and_to_no_other() -> None:
    Path("chunks.json").write_text(json.dumps(["1:Text 1."]))
    Path("rows.tsv").write_text("id\ttext\ttitle\n7\tText 7.\tSeven\n")
    build_index(["chunks.json"], INDEX, BuildOptions())
    assert add_documents(["rows.tsv"], INDEX).added == 1
    assert ids() == ["1", "7"]
    build_index([file_of("d.jsonl", document("d", "x"))], Path("other"), BuildOptions())
    assert error_message(add_documents, ["rows.tsv"], Path("other")).startswith(
        "The index holds documents, but these sources do not: rows.tsv (dpr).\n"
    )


def test_an_addition_with_workers_equals_one_without() -> None:
    source = file_of("new.jsonl", *(document(f"n{n}", f"New {n}. Sea.") for n in range(300)))
    manifests: list[object] = []
    for workers, folder in ((0, Path("here")), (2, Path("there"))):
        build_index([file_of("b.jsonl", document("n7", "Old."))], folder, BuildOptions())
        report = add_documents([source], folder, AddOptions(workers=workers))
        assert (report.added, report.replaced) == (299, 1)
        with open_index(folder) as index:
            manifests.append(replace(index.manifest, created=""))
    assert manifests[0] == manifests[1]


def test_an_addition_without_a_document_says_what_was_left_out() -> None:
    build_from(document("a", "One."))
    Path("notes").mkdir()
    Path("notes/a.png").touch()
    assert error_message(add_documents, ["notes"], INDEX).splitlines()[0] == (
        "There is nothing to add: no document was found; left out: 1 .png (not read;"
        " `include` reads text)."
    )


def test_a_duplicate_that_an_addition_skips_takes_no_place() -> None:
    build_from(document("a", "One."))
    source = file_of("n.jsonl", document("b", "B."), document("b", "B."), document("c", "C."))
    add_documents([source], INDEX, AddOptions(skip_bad_lines=True))
    with open_index(INDEX) as index:
        places = [chunk.ordinal >> 26 for chunk in index.scan()]
    assert places == [0, 1 << 25, (1 << 25) + 1]


def test_documents_are_added_with_the_fields_of_the_index() -> None:
    build_from(document("a", "One.", year=3), options=BuildOptions(metadata={"year": "number"}))
    report = add_report(document("b", "Two.", year=5, x=1))
    assert report["undeclared_metadata"] == {"x": 1}
    with open_index(INDEX) as index:
        assert [hit.id for hit in index.logical_search("year:5").hits] == ["b.1"]
        assert index.manifest.undeclared_metadata == {"x": 1}


def test_a_bad_record_leaves_the_index_as_it_was() -> None:
    build_from(document("a", "One."))
    bad = file_of("bad.jsonl", document("a", "New."), "oops", document("a", "Again."))
    with pytest.raises(SourceError, match="not JSON"):
        add_documents([bad], INDEX)
    with open_index(INDEX) as index:
        assert (index.manifest.update, index.chunk_read(["a.1"])[0].chunk.content) == (1, "One.")
    report = add_documents([bad], INDEX, AddOptions(skip_bad_lines=True))
    assert (report.added, report.replaced, report.skipped_lines) == (0, 1, 2)
    assert report.skipped_examples[1] == 'bad.jsonl, line 3: Duplicate id "a": two records have it.'
    Path("empty.jsonl").write_text('{"id": "a", "text": 1}\n')
    assert error_message(add_documents, ["empty.jsonl"], INDEX, AddOptions(format="documents",
                   skip_bad_lines=True)) == (
        "There is nothing to add: no document was found; bad records skipped: 1.\n"
        "Where: empty.jsonl\nDo: Name a folder with files that can be read, or files of records;"
        " see `include`."
    )  # fmt: skip
    assert not Path("index/update.json").exists()


# Deleting


def test_unknown_ids_are_named_and_nothing_is_deleted() -> None:
    build_from(document("a", "One."), document("b", "Two."), document("ÿ", "Three."))
    advice = (
        "\nWhere: index\n"
        "Allowed: ids of documents, which searches show without the part (vivaldi of vivaldi.1)\n"
        "Do: Correct them, or use `missing_ok=True` to delete the others."
    )
    assert error_message(delete_documents, INDEX, ["a", "A"]) == (
        'Unknown ids: "A"; nothing was deleted.' + advice
    )
    strange_ids = ["a", "a.1", "", " b", "\ud800", "x" * 40_000]
    assert error_message(delete_documents, INDEX, strange_ids).startswith('Unknown ids: "a.1", "",')
    assert ids() == ["a.1", "b.1", "ÿ.1"]
    report = delete_documents(INDEX, [*strange_ids, "ÿ", "ÿ"], missing_ok=True)
    assert (report.deleted, len(report.missing), report.documents) == (2, 5, 1)
    assert (report.update, ids()) == (2, ["b.1"])
    report = delete_documents(INDEX, ["nobody"], missing_ok=True)
    assert (report.deleted, report.update) == (0, 2), "nothing to do is no update"
    assert error_message(delete_documents, INDEX, ["b"]) == (
        "That would delete every document of the index.\nWhere: index\n"
        "Allowed: deletions that leave at least one document\n"
        "Do: Build the index again from other sources with `overwrite=True`, or remove the index"
        " itself."
    )
    assert error_message(delete_documents, INDEX, []) == (
        "No document id is given.\nAllowed: ids of documents\nDo: Name one or more."
    )


def test_the_commands_read_ids_from_everywhere_and_report(
    arag: Command, give_input: Callable[[bytes], None]
) -> None:
    assert arag("index", SAMPLE, "--to", "index").code == 0
    give_input("\ufeffvivaldi\r\n\n  goldoni \n".encode())
    done = arag("delete", "index", "none", "-", "--missing-ok")
    assert done.lines == [
        "Deleted 2 documents of index; it holds 61 documents in 61 passages.",
        'not in the index: "none"',
    ]
    assert arag("delete", "index", "vivaldi", "--json").code == 1
    assert arag("delete", "index", "zeno", "--json").json["documents"] == 60
    assert arag("delete", "index", "byron", "irene").code == 0
    assert arag("info", "index", "--json").json["deleted_share"] > 0.05
    advice = "  advice       8.7% deleted: scores are off until arag-search compact index"
    assert advice in arag("info", "index").lines
    assert arag("compact", "index", "--json").json["left"] == 0
    assert arag("info", "index", "--json").json["deleted_share"] == 0
    done = arag("add", SAMPLE, "--to", "index", "--json")
    assert [done.json[name] for name in ("added", "replaced", "unchanged")] == [5, 0, 58]
    assert done.json["sources"] == [{"name": SAMPLE, "format": "documents"}]
    give_input(b"a\n\xff")
    assert arag("delete", "index", "-").err == (
        "arag-search: The ids are not UTF-8.\nWhere: standard input, line 2\n"
        "Allowed: one id per line, in UTF-8\nDo: Convert the file.\n"
    )


# Readers


def test_a_reader_sees_the_state_it_opened_and_the_next_sees_the_update() -> None:
    build_from(document("a", "One sea."), document("b", "Two."))
    with open_index(INDEX) as before:
        add_report(document("a", "Another."))
        delete_documents(INDEX, ["b"])
        compact_index(INDEX)
        assert [chunk.content for chunk in before.scan()] == ["One sea.", "Two."]
        hits = before.logical_search("sea", granularity="sentence").hits
        assert [hit.content for hit in hits] == ["One sea."]
    with open_index(INDEX) as after:
        assert [chunk.content for chunk in after.scan()] == ["Another."]
        check_compact(after.engine.deletions(), "index")


def test_measurements_refuse_an_index_with_deleted_documents() -> None:
    build_from(*(document(f"d{n}", f"Text {n}.") for n in range(9)))
    delete_documents(INDEX, ["d3"])
    with open_index(INDEX) as index, pytest.raises(IndexProblemError) as caught:
        check_compact(index.engine.deletions(), "index")
    assert str(caught.value) == (
        "11.1% of the index are deleted documents, which change its scores.\nWhere: index\n"
        "Allowed: an index without deleted documents\nDo: Run: arag-search compact index"
    )


def test_one_writer_at_a_time_and_only_where_there_is_an_index() -> None:
    assert error_message(delete_documents, INDEX, ["a"]).startswith(
        "There is no index.\nWhere: index"
    )
    with pytest.raises(IndexNotFoundError):
        add_documents(["absent.jsonl"], INDEX)
    with pytest.raises(IndexNotFoundError):
        compact_index(INDEX)
    assert not INDEX.exists()
    build_from(document("a", "One."), document("b", "Two."))
    with BuildSite(INDEX, overwrite=True):
        for call in (
            lambda: delete_documents(INDEX, ["a"], wait_s=0),
            lambda: add_documents(["built.jsonl"], INDEX, wait_s=0),
            lambda: compact_index(INDEX),
        ):
            with pytest.raises(IndexLockedError) as caught:
                call()
            assert str(caught.value).startswith("Another build or update is running there (proc")


def test_ctrl_c_while_an_index_is_being_opened_says_what_the_command_does_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class NotedAdvice(Progress):
        def note(self, text: str) -> None:
            notes.append(text)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    build_from(document("a", "One."))
    monkeypatch.setattr(BuildSite, "__enter__", interrupted)
    for call in (
        lambda: add_documents(["built.jsonl"], INDEX, None, NotedAdvice()),
        lambda: delete_documents(INDEX, ["a"], progress=NotedAdvice()),
        lambda: compact_index(INDEX, NotedAdvice()),
    ):
        notes: list[str] = []
        with pytest.raises(KeyboardInterrupt):
            call()
        assert [note.partition(".")[0] for note in notes] == ["Stopped"]


# Killed updates (``test_random_kills`` has what every command leaves)

KILLED = """
import os, signal, sys
from arag_search.cli.app import run
from arag_search.engines.lucene import update, writer
done = update.LuceneUpdate, "_remove_record"
owner, name = done if sys.argv[1] == "done" else (writer._Index, "prepare")
setattr(owner, name, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
sys.exit(run(sys.argv[2:]))
"""


@pytest.mark.server
def test_after_a_kill_the_next_command_says_what_the_update_had_done(arag: Command) -> None:
    build_from(document("a", "One."))
    source = file_of("new.jsonl", document("b", "Two."))
    add = ("add", source, "--to", "index")
    run_until_killed(KILLED, "done", *add)
    assert ids() == ["a.1", "b.1"]
    retry = arag(*add, "--json").json
    assert (retry["added"], retry["finished_before"], retry["update"]) == (1, True, 2)
    assert not Path("index/update.json").exists()
    run_until_killed(KILLED, "begun", "add", file_of("more.jsonl", document("c", "3.")), *add[2:])
    assert arag("delete", "index", "z", "--missing-ok").err.splitlines()[0] == (
        "An update was interrupted and changed nothing: arag-search add more.jsonl --to index"
    )


def test_a_deletion_counts_as_done_only_while_it_is_the_last_update(arag: Command) -> None:
    build_from(*(document(name, "Text.") for name in "abcd"))
    assert arag("delete", "index", "a", "b").code == 0
    retry = arag("delete", "index", "b", "a")
    assert (retry.code, retry.lines[-1]) == (0, "The same command had already done this.")
    assert arag("compact", "index").code == 0
    assert arag("delete", "index", "a", "b").code == 0
    assert arag("delete", "index", "c").code == 0
    assert arag("delete", "index", "a", "b").code == 1
    add_report(document("c", "Text."))
    assert arag("delete", "index", "c", "--json").json["finished_before"] is False


WRITER = """
import sys
from arag_search.cli.app import run
from tests.support.commands import file_of
for number in range(1, 5):
    lines = ({"id": name, "text": f"State {number}. Sea."} for name in "abc")
    assert run(["add", file_of("new.jsonl", *lines), "--to", "index"]) == 0
    assert number % 3 or run(["compact", "index"]) == 0
"""


def test_readers_beside_a_writer_see_complete_states_and_each_search_one_state() -> None:
    build_from(*(document(name, "State 0. Sea.") for name in "abc"))
    child = process(WRITER, PYTHONPATH=str(Path(__file__).parents[2]))
    states: set[str] = set()

    def read() -> None:
        with open_index(INDEX) as index:
            for search in (index.logical_search("sea"), index.keyword_search(["Sea"])):
                passages = index.chunk_read([hit.id for hit in search.hits])
                contents = {passage.chunk.content for passage in passages}
                assert len(search.hits) == 3
                assert len(contents) == 1, "passages of two states"
                states.update(contents)

    def count() -> None:
        generation = hold_live(INDEX)
        engine = LuceneEngine.open(generation.path, "index")
        assert sorted(chunk.id for chunk in engine.scan(None)) == ["a.1", "b.1", "c.1"]
        statistics = engine.statistics()
        assert statistics.sentences is not None
        assert statistics.sentences.documents == engine.manifest.sentences == 6
        engine.close()
        generation.release()

    def beside(call: Callable[[], None]) -> None:
        call()
        while child.poll() is None:
            time.sleep(0.1)
            call()

    with ThreadPoolExecutor(2) as readers:
        for done in [readers.submit(beside, call) for call in (read, count)]:
            done.result()
    _, errors = child.communicate()
    assert child.returncode == 0, errors
    assert states >= {"State 0. Sea.", "State 4. Sea."}


def test_documents_stay_in_order_of_ordinal_through_updates() -> None:
    build_from(*(document(f"d{n}", f"Text {n}.") for n in range(9)))
    add_report(document("d2", "New."))
    delete_documents(INDEX, ["d4"])
    compact_index(INDEX)
    generation = hold_live(INDEX)
    snapshot = Snapshot(generation.path / "chunks", "index")
    assert "arag-last-ordinal" in snapshot.user_data()
    snapshot.close()
    generation.release()

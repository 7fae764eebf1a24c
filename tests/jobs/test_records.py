"""Records that a program gives: indexed as the lines of a file are, and read once, as they come."""

import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest

import index_jobs
from arag_search.corpus import Document
from arag_search.engines.lucene.location import BuildSite
from arag_search.errors import IndexLockedError, SourceError
from arag_search.search.opening import open_index
from index_jobs import BuildOptions, Progress, ProgressEvent, SyncOptions, build_index
from index_jobs.build.report import AddReport
from index_jobs.sources.folders.selection import FileSelection
from index_jobs.sources.lines.files import Fields
from tests.support.builds import in_own_folder, same_index  # noqa: F401
from tests.support.commands import file_of, process
from tests.support.updated_corpora import error_message

OPTIONS = BuildOptions(language="en", metadata={"year": "number", "tags": "keyword", "on": "date"})
VIVALDI = {"id": "a", "title": "Vivaldi", "text": "An opera.", "year": 1678, "tags": ["x", "y"]}
GOLDONI = {"id": 7, "text": "Goldoni wrote plays. He left.", "on": "1762-04-15", "more": 1}
TITLE = {"id": "c", "title": "Only a title", "text": ""}
RECORDS: list[dict[str, Any]] = [VIVALDI, GOLDONI, TITLE]
OBJECTS = [
    Document("a", "Vivaldi", "An opera.", {"year": 1678, "tags": ("x", "y")}),
    GOLDONI | {"on": date(1762, 4, 15)},
    TITLE,
]


class Text(str):
    """A text that knows whether it is held."""


def doc_ids() -> list[str]:
    with open_index("index") as index:
        return [chunk.doc_id for chunk in index.scan()]


def generated(count: int, stop: BaseException | None = None) -> Iterator[dict[str, str]]:
    record: dict[str, str] = {}
    for number in range(count):
        record |= {"id": f"d{number}", "text": f"The opera of number {number} is in Venice."}
        yield record  # the same object each time, as some drivers of databases do
    if stop is not None:
        raise stop


@pytest.mark.parametrize(
    "given",
    [RECORDS, tuple(RECORDS), dict(enumerate(RECORDS)).values(), iter(RECORDS), OBJECTS],
    ids=["list", "tuple", "iterable", "iterator", "objects"],
)
def test_records_are_indexed_as_the_lines_of_a_file(given: Iterable[Any]) -> None:
    lines = build_index([file_of("records.jsonl", *RECORDS)], "lines", OPTIONS)
    report = build_index(given, to="index", options=OPTIONS)
    assert report.sources == (("records", "documents"),)
    assert (
        report.warnings()[0]
        == "not kept as fields, because `metadata` does not declare them: more (1)"
    )
    assert lines.warnings() == report.warnings()
    (ours, *shown), (theirs, *expected) = same_index("index"), same_index("lines")
    assert shown == expected
    unlike: dict[str, Any] = {"shard_sources": (), "reading": {}}
    assert replace(ours, **unlike) == replace(theirs, **unlike)
    assert ours.shard_sources == ("records:records",)


@pytest.mark.parametrize("options", [BuildOptions(), BuildOptions(language="en", workers=1)])
def test_a_generator_is_read_once_and_never_held(options: BuildOptions) -> None:
    alive: WeakSet[Text] = WeakSet()
    most = 0

    def counted() -> Iterator[dict[str, str]]:
        nonlocal most
        for record in generated(3_000):
            text = Text(record["text"])
            alive.add(text)
            most = max(most, len(alive))
            yield {**record, "text": text}
            del text

    build_index(counted(), "index", options)
    assert doc_ids() == [f"d{number}" for number in range(3_000)]
    assert 64 <= most < 1_000


def test_options_tell_the_format_and_the_fields() -> None:
    whole = [{"id": "a.1", "text": "One. Two.", "pre_chunked": True}]
    report = build_index(whole, "one", BuildOptions(format="pre-chunked"))
    assert (report.sources, report.undeclared_metadata) == ((("records", "pre-chunked"),), {})
    sentences = [{"id": "a", "sentences": ["One.", "Two."]}]
    assert build_index(sentences, "two", BuildOptions(format="passages")).sentences == 2
    options = BuildOptions(fields=Fields(text_field="body"))
    assert build_index([{"id": 1, "body": "One."}], "three", options).documents == 1
    message = error_message(build_index, RECORDS, "four", BuildOptions(format="files"))
    assert message.startswith("Records cannot be read as files.")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"id": "a", "text": "One."}, "sources is {'id': 'a', 'text': 'One.'}."),
        (b"notes", "sources is b'notes'."),
        (Path("notes"), "sources is PosixPath('notes')."),
        ([Path("notes")], "sources is [PosixPath('notes')]."),
        (["notes", VIVALDI], "sources is ['notes', {"),
        ([], "No source is given."),
        (iter(()), "The corpus is empty: no document was found.\nWhere: records"),
        (iter(["notes"]), "The record is a string.\nWhere: records, record 1"),
        ([VIVALDI, "notes"], "The record is a string.\nWhere: records, record 2"),
        ([VIVALDI, None], "The record is null.\nWhere: records, record 2"),
        ([{"text": "One."}], 'There is no field "id".\nWhere: records, record 1'),
        ([{"id": "a"}], 'There is no field "text".\nWhere: records, record 1'),
        ([{"id": "a", "text": 5}], 'The field "text" is a number.'),
        ([{"id": "a", "text": float("nan")}], 'The field "text" is a number.'),
        ([{"id": float("nan"), "text": "x"}], 'The field "id" is a number.'),
        ([{"id": 10**5000, "text": "x"}], 'The field "id" is a number.'),
        ([{"id": "\ud800", "text": "x"}], "The id '\\ud800' cannot be used."),
        ([{"id": "a", "text": "\ud800"}], 'The field "text" holds a lone surrogate'),
        ([Document("a", "", None)], 'The field "text" is null.'),  # type: ignore[arg-type]
        ([VIVALDI | {"year": float("nan")}], 'The metadata field "year" has the value nan.'),
        ([VIVALDI | {"tags": [float("nan")]}], 'The metadata field "tags" has the value nan.'),
        ([VIVALDI | {"tags": {"x": 1}}], 'The metadata field "tags" has the value {'),
        ([VIVALDI, GOLDONI, VIVALDI], 'Duplicate id "a": two records have it.'),
    ],
)
def test_what_is_no_record_is_refused_with_its_number(given: Any, message: str) -> None:
    assert error_message(build_index, given, "index", OPTIONS).startswith(message)
    assert not Path("index").exists()


def test_bad_records_are_skipped_and_odd_keys_counted() -> None:
    bad = [{"id": "b"}, {"id": "a", "text": "Again."}, 7]
    good = {"id": "d", "text": "Two.", 8: "x", "\ud800": 1}
    options = replace(OPTIONS, skip_bad_lines=True)
    report = build_index([VIVALDI, *bad, good], "index", options)
    assert doc_ids() == ["a", "d"]
    assert report.skipped_lines == 3
    assert report.undeclared_metadata == {"8": 1, "?": 1}


@pytest.mark.parametrize("source", ["", " tickets", "a\nb", "x" * 101, "\ud800"])
def test_a_source_has_a_name_that_can_be_shown(source: str) -> None:
    assert error_message(build_index, RECORDS, "index", source=source).startswith("source is ")
    assert error_message(build_index, ["notes"], "index", source="x").startswith("source is 'x'")


@pytest.mark.parametrize("count", [0, 10, 500])
@pytest.mark.parametrize("stop", [ConnectionResetError("lost"), KeyError("x"), KeyboardInterrupt()])
def test_an_error_of_a_generator_passes_through_and_nothing_is_published(
    count: int, stop: BaseException
) -> None:
    with pytest.raises(type(stop)) as caught:
        build_index(generated(count, stop), "index")
    assert caught.value is stop
    assert not Path("index").exists()
    build_index(RECORDS, "index", OPTIONS)
    with pytest.raises(type(stop)):
        build_index(generated(count, stop), "index", replace(OPTIONS, overwrite=True))
    assert doc_ids() == ["a", "7", "c"]


def test_a_build_from_records_starts_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("index_jobs.build.new_index.CHECKPOINT_S", 0.0)
    notes: list[str] = []
    progress = index_jobs.Progress(lambda event: notes.append(event.text))
    with pytest.raises(KeyboardInterrupt):
        build_index(generated(500, KeyboardInterrupt()), "index", OPTIONS, progress)
    assert "Stopped. Run the same command again: it starts over." in notes
    assert build_index(generated(500), "index", OPTIONS).continued == 0


@pytest.mark.server
def test_a_program_that_is_killed_while_it_adds_records_loses_nothing_published() -> None:
    build_index([VIVALDI], "index", OPTIONS)
    script = (
        "import os, signal, index_jobs\n"
        "def records():\n"
        "    yield from ({'id': f't{n}', 'text': 'Open.'} for n in range(300))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "index_jobs.add(records(), to='index', source='tickets')\n"
    )
    child = process(script)
    child.communicate(timeout=300)
    assert child.returncode == -signal.SIGKILL
    assert doc_ids() == ["a"]
    assert add(ticket("t1")).added == 1


def ticket(id: str, text: str = "Open.") -> dict[str, str]:
    return {"id": id, "text": text}


def add(*records: Any, **options: Any) -> AddReport:
    return index_jobs.add(records, to="index", source="tickets", **options)


def test_records_are_added_replaced_left_alone_and_deleted() -> None:
    build_index([VIVALDI], "index", OPTIONS)
    report = add(ticket("t1"), ticket("t2") | {"year": 2024, "more": 1})
    assert report.added == 2
    assert report.warnings() == [
        "not kept as fields, because `metadata` does not declare them: more (1)"
    ]
    report = add(ticket("t1", "Closed."), ticket("t2") | {"year": 2024}, VIVALDI)
    assert (report.added, report.replaced, report.unchanged) == (0, 1, 2)
    report = index_jobs.add((ticket(id) for id in ("t3", "t4")), "index", source="tickets")
    assert index_jobs.delete("index", ["t2", "t3"]).deleted == 2
    assert doc_ids() == ["a", "t1", "t4"]
    with open_index("index") as index:
        assert index.manifest.sources == ("records", "tickets")
        assert index.logical_search("closed").hits[0].doc_id == "t1"
    for given in (iter(()), generated(3, ConnectionResetError()), [ticket("t5"), ticket("t5")]):
        with pytest.raises((SourceError, ConnectionResetError)):
            index_jobs.add(given, "index")
    assert doc_ids() == ["a", "t1", "t4"]
    assert not index_jobs.add([ticket("t1", "Closed.")], "index").has_changes


def test_a_nightly_synchronisation_of_files_leaves_the_documents_of_records_alone() -> None:
    notes = Path("notes")
    notes.mkdir()
    for name in ("a.txt", "b.txt", "c.txt"):
        (notes / name).write_text(f"The note {name} is about operas.")
    build_index(["notes"], "index", BuildOptions(language="en"))
    add(ticket("t1"), ticket("t2"))
    for night, name in enumerate(("a.txt", "b.txt")):
        (notes / name).unlink()
        (notes / f"new{night}.txt").write_text("A new note.")
        add(ticket("t1", f"Changed {night}."), ticket(f"n{night}"))
        report = index_jobs.sync(["notes"], "index")
        assert (report.added, report.deleted, report.unchanged) == (1, 1, 2)
        assert report.others == {"records:tickets": 3 + night}
    assert sorted(doc_ids()) == ["c.txt", "n0", "n1", "new0.txt", "new1.txt", "t1", "t2"]
    (notes / "t1").write_text("A file with the id of a record.")
    with pytest.raises(SourceError, match='"t1" of these sources is in the index from another'):
        index_jobs.sync([str(notes)], "index", SyncOptions(files=FileSelection(include=("t1",))))


def test_updates_of_threads_queue_and_none_is_lost() -> None:
    build_index([VIVALDI], "index", OPTIONS)
    with ThreadPoolExecutor(10) as pool:
        reports = list(pool.map(lambda number: add(ticket(f"t{number}"), wait_s=60), range(10)))
    assert sorted(report.documents for report in reports) == list(range(2, 12))
    assert sorted(doc_ids()) == sorted(["a", *(f"t{number}" for number in range(10))])
    with BuildSite(Path("index"), overwrite=True):
        for wait_s in (0.0, -1.0, float("nan"), 0.3):
            with pytest.raises(IndexLockedError, match="is running there"):
                add(ticket("t"), wait_s=wait_s)
            with pytest.raises(IndexLockedError):
                index_jobs.delete("index", ["a"], wait_s=wait_s)
        events: list[ProgressEvent] = []
        with pytest.raises(IndexLockedError):
            add(ticket("t"), wait_s=0.3, progress=Progress(events.append))
    (event,) = events
    assert event.text == "Waiting up to 0.3 s for another update of the index."

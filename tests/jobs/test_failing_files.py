"""What a run does when many files need more time than they may take: after ten minutes of them the
others get less, what can be read is published, and the next run reads the rest."""

import pickle
import signal
import weakref
from pathlib import Path

import pytest

from arag_search.errors import BadFileError, FileLimitError, NotInTimeError
from arag_search.search.opening import open_index
from arag_search.search.standing import Standing, standing_of
from index_jobs.build.new_index import BuildReport, build_index
from index_jobs.build.options import BuildOptions
from index_jobs.sources import conversion
from index_jobs.sources.conversion import FileLimits
from index_jobs.sources.folders.selection import FileSelection
from index_jobs.sources.folders.source import FileSource
from index_jobs.sources.lines.files import Fields
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import open_source
from index_jobs.updates.folder_index import OPTIONS
from index_jobs.updates.options import SyncOptions
from index_jobs.updates.synchronisation import sync_documents
from index_jobs.updates.watching import Watcher
from tests.support.converted import pdf_bytes, written

pytestmark = pytest.mark.usefixtures("own_cache")
FILES = FileSelection(skip_bad_files=True)
ADD = SyncOptions(files=FILES)
STANDS = "The file cannot be read: it needs more than 60 s."
LAST = ["11.pdf", "12.pdf"]


class Stuck:
    """The names of files whose conversion takes all of its time, and ``tried``: the files that were
    converted, each with the seconds that it had."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.tried: list[tuple[str, float]] = []

    def taken(self) -> list[tuple[str, float]]:
        tried, self.tried = self.tried, []
        return tried


@pytest.fixture(name="stuck")
def files_that_are_stuck(monkeypatch: pytest.MonkeyPatch) -> Stuck:
    stuck = Stuck()
    receive = conversion._Child.receive

    def received(self: conversion._Child) -> conversion.Reply:
        name = Path(self._where).name
        stuck.tried.append((name, self.limit_s))
        if name not in stuck.names:
            return receive(self)
        self.left_s = 0.0
        self.is_late, self._excess = True, self._limits.shown_seconds
        self._process.send_signal(signal.SIGKILL)
        raise self._ended()

    monkeypatch.setattr(conversion._Child, "receive", received)
    return stuck


@pytest.fixture(name="papers")
def a_folder_of_papers(tmp_path: Path, stuck: Stuck) -> Path:
    """Return a folder of twelve papers that are stuck, a page and a note."""
    papers = tmp_path / "papers"
    fill(papers, stuck, range(1, 13))
    written(papers / "page.html", "<p>The sea.")
    written(papers / "note.md", "The sea.")
    return papers


def fill(folder: Path, stuck: Stuck, numbers: range) -> None:
    folder.mkdir()
    for number in numbers:
        written(folder / f"{number:02}.pdf", pdf_bytes([[(12, f"The sea {number}.")]]))
        stuck.names.add(f"{number:02}.pdf")


def built(*folders: Path) -> BuildReport:
    index = folders[0].parent / "i"
    return build_index([*map(str, folders)], index, BuildOptions(files=FILES))


def ids(papers: Path) -> set[str]:
    with open_index(papers.parent / "i") as index:
        return {chunk.doc_id for chunk in index.scan()}


def standing(papers: Path) -> Standing:
    known = standing_of(papers.parent / "i")
    assert known is not None
    return known


def test_after_ten_minutes_of_failed_files_a_build_gives_five_seconds_and_publishes(
    papers: Path, stuck: Stuck
) -> None:
    report = built(papers)
    expected = [(f"{number:02}.pdf", 60.0 if number <= 10 else 5.0) for number in range(1, 13)]
    taken = stuck.taken()
    assert taken[:12] == expected
    # Before it is read, the language is detected; a busy machine makes a second attempt.
    assert taken[12:] in ([("page.html", 5.0)] * count for count in (2, 3, 4))
    assert ids(papers) == {"page.html", "note.md"}
    assert report.skipped_files == 10
    assert report.skipped_file_examples[9] == f"{papers}/10.pdf: {STANDS}"
    assert report.unread == {NotInTimeError.kind: [2, *(f"{papers}/{name}" for name in LAST)]}
    again = f"arag-search sync {papers.parent}/i {papers} --skip-bad-files"
    lines = report.to_text().splitlines()
    assert f"to read them, with the options of this command: {again}" in lines
    assert NotInTimeError.kind in report.to_dict()["unread"]
    assert (standing(papers).changed_files, standing(papers).changed) == (2, tuple(LAST))


def test_the_next_run_tries_those_that_had_less_time_and_no_bad_file_again(
    papers: Path, stuck: Stuck
) -> None:
    built(papers)
    stuck.taken()
    report = sync_documents([str(papers)], papers.parent / "i", ADD)
    assert stuck.taken() == [("11.pdf", 60.0), ("12.pdf", 60.0)]
    assert (report.skipped_files, report.unchanged, report.unread) == (12, 2, {})
    assert report.skipped_file_examples[0] == f"{papers}/11.pdf: {STANDS}"
    assert report.skipped_file_examples[2].startswith(f"{papers}/01.pdf: It needed more than ")
    assert not standing(papers).line()
    assert standing(papers).not_read == {"pdf could not be read": 12}
    assert sync_documents([str(papers)], papers.parent / "i", ADD).skipped_files == 12
    assert not stuck.taken()
    written(papers / "03.pdf", pdf_bytes([[(12, "The lantern, changed.")]]))
    stuck.names.clear()
    report = sync_documents([str(papers)], papers.parent / "i", ADD)
    assert (report.skipped_files, report.added) == (11, 1)
    assert set(stuck.taken()) == {("03.pdf", 60.0)}  # in more than one reply


def test_a_bad_file_is_tried_again_with_other_limits_and_where_bad_files_are_not_skipped(
    papers: Path, stuck: Stuck
) -> None:
    built(papers)
    index = papers.parent / "i"
    with pytest.raises(BadFileError, match="it needs more than 60 s"):
        sync_documents([str(papers)], index, SyncOptions())
    stuck.names.clear()
    more = FileSelection(skip_bad_files=True, file_limits=FileLimits(90.0))
    assert sync_documents([str(papers)], index, SyncOptions(files=more)).added == 12


def test_a_file_that_had_less_time_is_read_by_the_next_run(papers: Path, stuck: Stuck) -> None:
    built(papers)
    stuck.names.clear()
    report = sync_documents([str(papers)], papers.parent / "i", ADD)
    assert (report.added, report.skipped_files) == (2, 10)
    assert ids(papers) == {"page.html", "note.md", *LAST}
    assert not standing(papers).line()


def test_a_document_whose_file_had_less_time_stays_until_the_file_is_read(
    papers: Path, stuck: Stuck
) -> None:
    stuck.names.clear()
    built(papers)
    stuck.names.update(f"{number:02}.pdf" for number in range(1, 13))
    for file in papers.glob("*.pdf"):
        written(file, pdf_bytes([[(12, "The lantern.")]]))
    report = sync_documents([str(papers)], papers.parent / "i", ADD)
    assert (report.skipped_files, report.deleted, report.unread[NotInTimeError.kind][0]) == (
        10,
        0,
        2,
    )
    assert len(ids(papers)) == 14
    assert standing(papers).changed == tuple(LAST)
    stuck.names.clear()
    assert sync_documents([str(papers)], papers.parent / "i", ADD).replaced == 2


def test_a_bad_file_that_now_had_less_time_is_tried_again(
    papers: Path, stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(papers)
    stuck.names.clear()
    written(papers / "13.docx", b"no archive")
    sync_documents([str(papers)], papers.parent / "i", ADD)
    stuck.names.add("13.docx")
    with monkeypatch.context() as patched:
        patched.setattr(conversion, "FAILED_S", 0.0)
        report = sync_documents([str(papers)], papers.parent / "i", ADD)
    assert (report.skipped_files, report.unread[NotInTimeError.kind][0]) == (10, 1)
    stuck.taken()
    sync_documents([str(papers)], papers.parent / "i", ADD)
    assert stuck.taken() == [("13.docx", 60.0)]


def test_all_sources_of_a_run_share_the_time(tmp_path: Path, stuck: Stuck) -> None:
    for number in range(1, 13):
        fill(tmp_path / f"s{number:02}", stuck, range(number, number + 1))
    written(tmp_path / "s12" / "note.md", "The sea.")
    report = built(*(tmp_path / f"s{number:02}" for number in range(1, 13)))
    assert (report.skipped_files, report.unread[NotInTimeError.kind][0]) == (10, 2)


def test_an_answer_does_not_wait_for_a_file_that_had_less_time(papers: Path, stuck: Stuck) -> None:
    watcher = Watcher([str(papers)], papers.parent / "i", OPTIONS)
    watcher.synchronise()
    stuck.taken()
    written(papers / "note.md", "The lantern.")
    watcher.compare()
    assert not stuck.taken()
    assert (standing(papers).changed_files, standing(papers).slow_files) == (2, 2)
    with open_index(papers.parent / "i") as index:
        assert index.logical_search("lantern").total == 1


def test_other_machines_do_not_try_what_was_not_counted_in_time(
    tmp_path: Path, stuck: Stuck
) -> None:
    for number in range(1, 13):
        name = f"{number:02}.mbox"
        written(tmp_path / name, "From a@b.c Tue Jan  2 10:00:00 2024\nFrom: a@b.c\n\nThe sea.\n")
        stuck.names.add(name)
    source = open_source(
        str(tmp_path), "files", Fields(), MetadataReader({}), FILES.rooted([str(tmp_path)])
    )
    *parts, _ = source.parts(0, 0, 1)
    stuck.taken()
    stuck.names.clear()
    read = [
        entry
        for part in parts
        for _, entry in pickle.loads(pickle.dumps(part)).source.documents(part.first)
    ]
    assert [type(entry) for entry in read] == [BadFileError] * 10 + [NotInTimeError]
    assert not stuck.taken()


def test_a_file_that_is_stuck_indeed_is_broken_off_sooner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion, "FAILED_S", 1.0)
    monkeypatch.setattr(conversion, "SHORT_S", 0.5)
    package = tmp_path / "with" / "pypdfium2"
    package.mkdir(parents=True)
    written(package / "__init__.py", "import time\ntime.sleep(600)\n")
    monkeypatch.syspath_prepend(str(tmp_path / "with"))
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(3):
        written(folder / f"{number}.pdf", pdf_bytes([[(12, "The sea.")]]))
    files = FileSelection(skip_bad_files=True, file_limits=FileLimits(2.0)).rooted([str(folder)])
    source = open_source(str(folder), "files", Fields(), MetadataReader({}), files)
    assert isinstance(source, FileSource)
    read = [entry for _, entry in source.documents()]
    assert [type(entry) for entry in read] == [BadFileError, NotInTimeError, NotInTimeError]
    assert [type(error) for error in source.over_limits.values()] == [
        FileLimitError,
        NotInTimeError,
        NotInTimeError,
    ]
    conversions = weakref.ref(source.conversions)
    del source
    assert conversions() is None  # and its children have ended

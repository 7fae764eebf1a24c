"""What an answer reads of a folder that changed: files that another process converts, for a bounded
time; what is left of them for the next answer; and what is named because it takes longer."""

import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
from docx import Document

from arag_search.search.opening import open_index
from arag_search.search.standing import Standing, standing_of
from index_jobs.build.new_index import build_index
from index_jobs.sources import conversion
from index_jobs.sources.folders import source as files
from index_jobs.updates import watching
from index_jobs.updates.folder_index import OPTIONS
from index_jobs.updates.watching import Watcher
from tests.support.converted import pdf_bytes, written
from tests.support.watched_folders import digest_of, eventually, fresh_digest, make_notes
from tests.support.watched_folders import watching as running


@pytest.fixture(name="notes", autouse=True)
def a_folder_of_notes_and_pages(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Return a folder, whose conversions take as long as they like."""
    del own_cache
    monkeypatch.setattr(watching, "CONVERSION_S", 600.0)
    notes = make_notes(tmp_path / "notes", 10)
    for number in range(5):
        page(notes / f"page{number}.html", "The sea.")
    written(notes / "paper.pdf", pdf_bytes([[(12, "The sea.")]]))
    letter(notes / "letter.docx", "The sea.")
    build_index([str(notes)], tmp_path / "i", OPTIONS)
    return notes


def page(path: Path, text: str) -> None:
    path.write_text(f"<p>{text}")


def letter(path: Path, text: str) -> None:
    document = Document()
    document.add_paragraph(text)
    document.save(str(path))


def compared(notes: Path) -> Standing:
    """Compare the files before an answer, and return how the index stands."""
    Watcher([str(notes)], notes.parent / "i", OPTIONS).compare()
    standing = standing_of(notes.parent / "i")
    assert standing is not None
    return standing


def hits(notes: Path, query: str) -> list[str]:
    """Return the ids of the documents with a word."""
    with open_index(notes.parent / "i") as index:
        return sorted(hit.doc_id for hit in index.logical_search(query, top_k=50).hits)


def costs(seconds: float, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the conversion of each file take so many seconds of the time of all. Return the files
    that are converted from now on."""
    converted: list[str] = []
    receive, begin = conversion._Child.receive, conversion._Child.begin

    def received(self: conversion._Child) -> conversion.Reply:
        left_s = self.left_s
        reply = receive(self)
        self.left_s = left_s - seconds * reply.is_last
        return reply

    def begun(self: conversion._Child, request: conversion.Request, *within_s: float) -> None:
        converted.append(Path(request.where).name)
        begin(self, request, *within_s)

    monkeypatch.setattr(conversion._Child, "receive", received)
    monkeypatch.setattr(conversion._Child, "begin", begun)
    return converted


@pytest.fixture(name="stuck")
def papers_that_take_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let conversions of PDF wait until there is the file that is returned."""
    package = tmp_path / "with" / "pypdfium2"
    package.mkdir(parents=True)
    code = """
        import os, sys, time
        folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        while not os.path.exists(f"{folder}/go"):
            time.sleep(0.01)
        sys.path.remove(folder)
        del sys.modules["pypdfium2"]
        import pypdfium2
    """
    (package / "__init__.py").write_text(dedent(code))
    monkeypatch.setattr(sys, "path", [str(package.parent), *sys.path])
    return package.parent / "go"


def test_changed_pages_papers_and_letters_are_found_and_deleted_ones_are_not(notes: Path) -> None:
    page(notes / "page1.html", "The lantern.")
    page(notes / "new.html", "The lantern.")
    written(notes / "paper.pdf", pdf_bytes([[(12, "The lantern.")]]))
    letter(notes / "letter.docx", "The lantern.")
    (notes / "page2.html").unlink()
    assert not compared(notes).line()
    assert hits(notes, "lantern") == ["letter.docx", "new.html", "page1.html", "paper.pdf"]
    assert not {"page1.html", "page2.html", "letter.docx"} & set(hits(notes, "sea"))


def test_the_next_answer_goes_on_behind_what_was_converted(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted = costs(300.0, monkeypatch)
    for number in range(5):
        page(notes / f"page{number}.html", "The lantern.")
    (notes / "note1.md").write_text("# Note\n\nThe harbour.\n")
    (notes / "note2.md").unlink()
    for done, left in ((2, 3), (4, 1), (5, 0)):
        assert compared(notes).changed_files == left
        assert hits(notes, "lantern") == [f"page{number}.html" for number in range(done)]
        assert hits(notes, "harbour") == ["note1.md"]
        assert "note2.md" not in hits(notes, "sea")
    assert sorted(converted) == [f"page{number}.html" for number in range(5)]


def test_a_file_that_alone_takes_longer_is_named_and_not_tried_until_it_changes(
    notes: Path, stuck: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted = costs(0.0, monkeypatch)
    written(notes / "big.pdf", pdf_bytes([[(12, "The lantern.")]]))
    page(notes / "page1.html", "The lantern.")
    page(notes / "page2.html", "The lantern.")
    (notes / "note1.md").write_text("# Note\n\nThe lantern.\n")
    (notes / "page3.html").unlink()
    with monkeypatch.context() as patched:
        patched.setattr(watching, "CONVERSION_S", 0.2)
        standing = compared(notes)
    assert (standing.changed_files, standing.slow_files, standing.changed[0]) == (3, 1, "big.pdf")
    assert hits(notes, "lantern") == ["note1.md"]
    assert "page3.html" not in hits(notes, "sea")
    for _ in range(2):
        standing = compared(notes)
        assert (standing.changed_files, standing.slow_files) == (1, 1)
        assert hits(notes, "lantern") == ["note1.md", "page1.html", "page2.html"]
    assert converted.count("big.pdf") == 1
    written(notes / "big.pdf", pdf_bytes([[(12, "The lantern, again.")]]))
    monkeypatch.setattr(watching, "CONVERSION_S", 0.2)
    assert compared(notes).slow_files == 1
    assert converted.count("big.pdf") == 2
    stuck.touch()
    Watcher([str(notes)], notes.parent / "i", OPTIONS).synchronise()
    assert not compared(notes).line()
    assert "big.pdf" in hits(notes, "again")


def test_a_file_that_had_only_the_rest_of_the_time_is_tried_again(
    notes: Path, stuck: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs(599.9, monkeypatch)
    page(notes / "a.html", "The lantern.")
    (notes / "paper.pdf").touch()
    standing = compared(notes)
    assert (standing.changed, standing.slow_files) == (("paper.pdf",), 0)
    assert hits(notes, "lantern") == ["a.html"]
    stuck.touch()
    assert not compared(notes).line()


def change_folder(notes: Path) -> None:
    (notes / "pages").mkdir()
    for file in notes.glob("page?.html"):
        file.rename(notes / "pages" / file.name)


def change_to_folder(notes: Path) -> None:
    (notes / "paper.pdf").unlink()
    (notes / "paper.pdf").mkdir()
    page(notes / "paper.pdf" / "new.html", "The lantern.")


def change_nothing(notes: Path) -> None:
    for file in notes.rglob("*"):
        file.touch()


def change_times(notes: Path) -> None:
    import os

    page(notes / "page1.html", "The pea.")
    os.utime(notes / "page1.html", (1, 1))


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [((change_folder, change_nothing), 150.0), ((change_to_folder, change_times), 0.0)],
)
def test_after_some_answers_an_index_equals_a_new_build(
    notes: Path,
    changes: tuple[Callable[[Path], None], ...],
    seconds: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    costs(seconds, monkeypatch)
    for change in changes:
        change(notes)
        for _ in range(1 if not seconds else 3):
            standing = compared(notes)
            with open_index(notes.parent / "i") as index:
                ids = {chunk.doc_id for chunk in index.scan()}
            assert all((notes / id).exists() for id in ids)
        assert not standing.line()
        assert digest_of(notes.parent / "i") == fresh_digest(notes, notes.parent / "new")


def test_a_folder_whose_pages_all_moved_keeps_them_until_one_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "other" / "pages"
    (folder / "a").mkdir(parents=True)
    for number in range(4):
        page(folder / "a" / f"{number}.html", "The lantern.")
    build_index([str(folder)], folder.parent / "i", OPTIONS)
    (folder / "a").rename(folder / "b")
    with monkeypatch.context() as patched:
        patched.setattr(files, "HELD_CHARACTERS", 5)
        assert compared(folder).changed_files == 8
        assert len(hits(folder, "lantern")) == 4
    Watcher([str(folder)], folder.parent / "i", OPTIONS).synchronise()
    assert hits(folder, "lantern") == [f"b/{number}.html" for number in range(4)]


def test_a_page_that_can_no_longer_be_read_keeps_its_text_and_is_counted(notes: Path) -> None:
    (notes / "letter.docx").write_bytes(b"no archive")
    standing = compared(notes)
    assert not standing.line()
    assert "1 docx could not be read" in standing.missing()
    assert "letter.docx" in hits(notes, "sea")
    letter(notes / "letter.docx", "The lantern.")
    assert not compared(notes).missing()
    assert hits(notes, "lantern") == ["letter.docx"]


def test_an_answer_that_is_killed_while_it_converts_has_read_the_rest(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page(notes / "page1.html", "The lantern.")
    (notes / "note1.md").write_text("# Note\n\nThe lantern.\n")
    (notes / "note2.md").unlink()

    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(conversion._Child, "receive", killed)
        with pytest.raises(KeyboardInterrupt):
            compared(notes)
    standing = standing_of(notes.parent / "i")
    assert standing is not None
    assert standing.changed_files
    assert hits(notes, "lantern") == ["note1.md"]
    assert "note2.md" not in hits(notes, "sea")
    assert not compared(notes).line()
    assert hits(notes, "lantern") == ["note1.md", "page1.html"]


def test_a_watcher_reads_also_what_takes_long(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "HELD_CHARACTERS", 5)
    with running(Watcher([str(notes)], notes.parent / "i", OPTIONS)):
        for number in range(3):
            page(notes / f"page{number}.html", "The lantern.")
        (notes / "note1.md").write_text("# Note\n\nThe lantern.\n")
        eventually(lambda: len(hits(notes, "lantern")) == 4)

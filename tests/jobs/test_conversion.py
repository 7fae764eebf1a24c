"""Files that a library converts are converted by children, within limits: none stops or fills the
process that reads a folder, and the files after it are read."""

import gc
import os
import resource
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import psutil
import pytest

from arag_search.corpus import Document
from arag_search.errors import ArgumentError, BadFileError, SourceError
from index_jobs.sources.conversion import Conversions, FileLimits
from index_jobs.sources.converters.child import Request
from index_jobs.sources.folders.safe_open import Place
from index_jobs.sources.folders.selection import FileSelection, parse_limits
from index_jobs.sources.lines.files import MAX_COLUMNS, Fields
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import open_source
from index_jobs.sources.source import Source
from tests.support.converted import archive, document_of, pdf_bytes, refusal_of, written
from tests.support.examples import some_of
from tests.support.patience import PATIENCE_S

LIMITS = FileLimits(2.0, 256 << 20)
PATIENT = FileLimits(PATIENCE_S, 256 << 20)


def opened(folder: Path, limits: FileLimits = PATIENT, *, at_once: int = 1) -> Source:
    files = FileSelection(skip_bad_files=True, file_limits=limits).rooted([str(folder)])
    source = open_source(str(folder), "files", Fields(), MetadataReader({}), files)
    source.at_once = at_once
    return source


def entries(source: Source) -> list[Document | SourceError | None]:
    return [entry for _, entry in source.documents()]


def deflated_twice(megabytes: int) -> bytes:
    """Return a small PDF whose page is this long."""
    once = zlib.compressobj(9)
    stream = b"".join(once.compress(b" " * (1 << 20)) for _ in range(megabytes)) + once.flush()
    content = zlib.compress(stream, 9)
    page = b"/Contents 6 0 R"
    filters = b"/Filter [/FlateDecode /FlateDecode]"
    body = b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), filters, content)
    return pdf_bytes([[(12, "x")]], page=page, more=[body])


def header(name: str, words: str) -> str:
    return f"From: ada@example.org\nSubject: s\n{name}: {words}\n\nBody.\n"


def bomb() -> bytes:
    """Return a small book that unpacks to 400 MiB."""
    file = BytesIO()
    with (
        ZipFile(file, "w", ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("META-INF/container.xml", "w") as member,
    ):
        member.writelines([b"<a>", *[bytes(1 << 20)] * 400])
    return file.getvalue()


HOSTILE: dict[str, Callable[[], bytes]] = {
    "bomb.epub": bomb,
    "words.eml": lambda: header("To", " ".join(["=?utf-8?b?YQ==?="] * 60_000)).encode(),
    "nested.html": lambda: b"<div>" * 100_000,
    "deflated.pdf": lambda: deflated_twice(1500),
    "parameters.eml": lambda: header(
        "Content-Type", "text/plain; " + "; ".join(f"a{n}=b" for n in range(20_000))
    ).encode(),
    "attributes.html": lambda: b"<p " + b" ".join(b"a%d=1" % n for n in range(64_000)) + b">x",
    "readings.html": lambda: b"<rt>a" * 100_000,
}


@pytest.mark.parametrize("name", some_of(list(HOSTILE), 3))
def test_a_file_that_needs_too_much_is_counted_and_the_next_is_read(
    tmp_path: Path, name: str
) -> None:
    written(tmp_path / "a.html", "<p>Before.")
    written(tmp_path / f"b {name}", HOSTILE[name]())
    written(tmp_path / "c.html", "<p>After.")
    source = opened(tmp_path, LIMITS)
    before, error, after = entries(source)
    assert isinstance(error, BadFileError)
    assert error.what.startswith("The file cannot be read: it needs more than ")
    assert error.what.removesuffix(".").endswith(("2 s", "256 MiB of memory"))
    assert error.where == str(tmp_path / f"b {name}")
    assert "`file_limits`" in error.do
    assert isinstance(before, Document)
    assert isinstance(after, Document)
    assert after.text == "After."
    assert source.damaged == {f"b {name}"}


def test_a_file_that_ends_its_child_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "with" / "selectolax"
    package.mkdir(parents=True)
    written(package / "__init__.py", "")
    written(package / "lexbor.py", "import os\nos.abort()\n")
    monkeypatch.syspath_prepend(str(package.parent))
    folder = tmp_path / "folder"
    folder.mkdir()
    written(folder / "a.html", "<p>Before.")
    written(folder / "b.pdf", pdf_bytes([[(12, "After.")]]))
    error, after = entries(opened(folder))
    assert isinstance(error, BadFileError)
    assert error.what == (
        "The file cannot be read: it ends the process that converts it (SIGABRT)."
    )
    assert isinstance(after, Document)


def test_many_children_give_the_documents_of_one(tmp_path: Path) -> None:
    for number in range(40):
        written(tmp_path / f"{number:02}.html", f"<p>Page {number}." * (number % 7 + 1))
        if number % 3 == 0:
            written(tmp_path / f"{number:02}.txt", f"Text {number}.")
        if number % 10 == 0:
            message = f"From a@b.c Tue Jan  2 10:00:00 2024\nFrom: a@b.c\nSubject: {number}\n\n"
            written(tmp_path / f"{number:02}.mbox", (message + "Body.\n\n") * 150)
    single, three = opened(tmp_path), opened(tmp_path, at_once=3)
    expected = list(single.documents())
    assert len(expected) == 40 + 14 + 600
    assert list(three.documents()) == expected
    assert [entry for _, entry in single.documents()] == [entry for _, entry in expected]
    for place in (5, 300):
        assert list(three.documents(expected[place][0])) == expected[place + 1 :]


def test_a_reading_that_is_broken_off_leaves_nothing_behind(tmp_path: Path) -> None:
    before = set(psutil.Process().children())  # of other tests
    for number in range(20):
        written(tmp_path / f"{number:02}.html", "<p>Page.")
    source = opened(tmp_path, at_once=2)
    for _ in source.documents():
        break
    assert len(entries(source)) == 20
    del source
    gc.collect()
    assert set(psutil.Process().children()) <= before


def test_files_with_line_ends_in_their_names_are_converted(tmp_path: Path) -> None:
    for number in range(10):
        written(tmp_path / f"{number}\n.html", "<p>Page.")
    read = [entry for entry in entries(opened(tmp_path)) if isinstance(entry, Document)]
    assert [document.id for document in read] == [rf"{number}\x0a.html" for number in range(10)]


def test_a_child_starts_fast_and_alone(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = "import index_jobs.sources.converters.child, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.6
    loaded = set(done.stdout.split())
    assert not loaded & {"pydantic", "jpype", "numpy", "email", "index_jobs.sources.folders.source"}


def test_a_child_that_is_killed_is_replaced(tmp_path: Path) -> None:
    path = written(tmp_path / "a.html", "<p>Page.")
    conversions = Conversions(LIMITS)
    request = Request("html", Place(str(path)), "a.html", Fields())
    assert len(list(conversions.entries(conversions.begin(request)))) == 1
    (child,) = conversions._children
    os.kill(child._process.pid, signal.SIGKILL)
    with pytest.raises(SourceError, match="SIGKILL"):
        list(conversions.entries(conversions.begin(request)))
    assert len(list(conversions.entries(conversions.begin(request)))) == 1


def test_a_book_within_the_limits_is_read_as_before(tmp_path: Path) -> None:
    path = archive(
        tmp_path / "a.epub",
        {
            "META-INF/container.xml": '<container><rootfile full-path="p.opf"/></container>',
            "p.opf": '<package><title>T</title><item id="c" href="c.html"'
            ' media-type="text/html"/><itemref idref="c"/></package>',
            "c.html": "<p>Chapter.",
        },
    )
    (document,) = entries(opened(tmp_path))
    assert isinstance(document, Document)
    assert document.text == document_of(path).text


def test_a_table_has_a_bounded_number_of_columns(tmp_path: Path) -> None:
    names = ",".join(["c"] * MAX_COLUMNS)
    path = written(tmp_path / "a.csv", f"{names}\n{names}\n")
    assert len(document_of_row(path)) == MAX_COLUMNS
    error = refusal_of(written(tmp_path / "b.csv", f"{names},c\n"))
    assert error.allowed == "at most 16,384"


def document_of_row(path: Path) -> list[str]:
    (document,) = entries(opened(path.parent))
    assert isinstance(document, Document)
    return document.text.splitlines()


@pytest.mark.parametrize(
    "text", ["60", "0,1GB", "60,1MB", "a,1GB", "60,none", "nan,1GB", "1e9,1GB"]
)
def test_limits_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="`file_limits`"):
        parse_limits(text)
    assert parse_limits("300,4GB") == FileLimits(300.0, 4_000_000_000)

"""Folders and files as sources: which files are read, their ids and fields, and bad files."""

import io
import os
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arag_search.corpus import Document
from arag_search.errors import (
    ArgumentError,
    BadFileError,
    DuplicateIdError,
    LeftOutError,
    MissingExtraError,
    SourceError,
)
from index_jobs.build.report import left_out_kinds
from index_jobs.sources.converters.registry import ConvertedDocument, FileType
from index_jobs.sources.folders.ids import path_id
from index_jobs.sources.folders.listing import LeftOut, SourceFile
from index_jobs.sources.folders.safe_open import Place
from index_jobs.sources.folders.selection import FileSelection, parse_size, shown_size
from index_jobs.sources.folders.source import FileSource
from index_jobs.sources.lines.files import Fields
from index_jobs.sources.lines.formats import checked_id
from index_jobs.sources.metadata import FILE_FIELDS, MetadataReader
from index_jobs.sources.opening import open_source, open_sources
from index_jobs.sources.registry import FORMATS, RECORDS
from index_jobs.sources.source import CorpusReader, Position, SeenIds, Source
from tests.support.corpus_files import documents, in_own_folder, problems, resumes, source_at  # noqa: F401
from tests.support.examples import examples

START = Position()


def write(**files: str | bytes) -> None:
    """Write files; in their names, ``__`` stands for a slash and ``_`` for the dot."""
    for name, content in files.items():
        path = Path(name.replace("__", "/").replace("_", "."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def ids_of(*names: str, files: FileSelection | None = None) -> list[str]:
    sources = open_sources(names, None, Fields(), MetadataReader({}), files or FileSelection())
    return [document.id for source in sources for document in documents(source)]


def reader_of(
    source: Source, *, skip_lines: bool = False, skip_files: bool = False
) -> CorpusReader:
    return CorpusReader(
        [source],
        MetadataReader({}),
        START,
        SeenIds(),
        lambda _: True,
        skip_bad_lines=skip_lines,
        skip_bad_files=skip_files,
    )


# Ids


@pytest.mark.parametrize(
    ("names", "root", "expected"),
    [
        (["notes"], None, ["a.md", "sub/b.md"]),
        (["notes/"], None, ["a.md", "sub/b.md"]),
        (["notes", "reports"], None, ["notes/a.md", "notes/sub/b.md", "reports/a.md"]),
        (["./notes/sub", "reports/a.md"], None, ["notes/sub/b.md", "reports/a.md"]),
        (["notes/a.md"], None, ["a.md"]),
        (["notes/a.md", "reports/a.md"], None, ["notes/a.md", "reports/a.md"]),
        (["notes", "records.jsonl"], None, ["notes/a.md", "notes/sub/b.md", "7"]),
        (["notes/sub"], ".", ["notes/sub/b.md"]),
        (["reports", "-"], None, ["a.md", "stdin"]),
    ],
)
def test_ids_are_paths_from_what_all_sources_have_in_common_or_from_the_root(
    names: list[str], root: str | None, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(notes__a_md="a", notes__sub__b_md="b", reports__a_md="c")
    Path("records.jsonl").write_text('{"id": 7, "text": "d"}')
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"piped")))
    assert ids_of(*names, files=FileSelection(root=root)) == expected


_PIECES = [
    *(" ", "\n", "\t", "\x85", "\u2028", "\xa0", "\x1b", "\x7f", "\x9b", "\x0e", "\udce9",
    "\udcff"),
    *("\\", "x", "0", "a", "e", "9", "/", ".md", "é", "e\u0301", "\u0301", "\N{VIOLIN}", "ä" * 200),
]  # fmt: skip


@settings(max_examples=examples(2_000))
@given(
    st.lists(st.lists(st.sampled_from(_PIECES), max_size=8).map("".join), min_size=2, max_size=2)
)
def test_any_paths_have_valid_ids_that_differ_unless_the_paths_are_canonically_equal(
    paths: list[str],
) -> None:
    first, second = ("/".join(filter(None, path.split("/"))) or "a" for path in paths)
    assert checked_id(path_id(first), "") == path_id(first)
    equal = unicodedata.normalize("NFC", first) == unicodedata.normalize("NFC", second)
    assert (path_id(first) == path_id(second)) == equal
    if len(path_id(f"{first}/{second}")) < 200:
        assert path_id(f"{first}/{second}") == f"{path_id(first)}/{path_id(second)}"


@pytest.mark.parametrize(
    ("path", "identifier"),
    [
        (" a.md", r"\x20a.md"),
        ("b /c.md", r"b\x20/c.md"),
        ("a b/c d.md", "a b/c d.md"),
        ("a\nb\t.md", r"a\x0ab\x09.md"),
        ("a\u2028.md", r"a\xe2\x80\xa8.md"),
        ("caf\udce9.md", r"caf\xe9.md"),
        (r"caf\xe9.md", r"caf\x5cxe9.md"),
        (r"a\b.md", r"a\b.md"),
        ("cafe\u0301.md", "café.md"),
    ],
)
def test_what_cannot_be_in_an_id_is_escaped(path: str, identifier: str) -> None:
    assert path_id(path) == identifier


def test_the_id_of_a_long_path_keeps_its_beginning_and_ending() -> None:
    first, second = (f"{'ä' * 120}/{'ö' * 120}/{name}.py" for name in ("a", "b"))
    assert path_id(first)[:200] == path_id(second)[:200] == first[:200]
    assert path_id(first) != path_id(second)
    assert path_id(first).endswith(".py")


def test_ids_of_several_sources_do_not_depend_on_what_exists() -> None:
    selection = FileSelection().rooted(["data/one", "data/two.md"])
    assert selection.relative("data/one") == "one"
    assert selection.relative("data/two.md") == "two.md"


def test_a_source_outside_of_the_root_is_refused() -> None:
    write(notes__a_md="a", reports__a_md="b")
    with pytest.raises(ArgumentError, match=r"^`root`: a source is outside of it\."):
        ids_of("notes", files=FileSelection(root="reports"))


def test_a_duplicate_id_of_files_is_an_error() -> None:
    names = [unicodedata.normalize(form, "café.md") for form in ("NFC", "NFD")]
    for name in names:
        Path("notes").mkdir(exist_ok=True)
        Path("notes", name).write_text("text")
    if len(os.listdir("notes")) == 1:
        pytest.skip("the file system takes both names for one")
    with pytest.raises(DuplicateIdError) as caught:
        list(reader_of(source_at("notes")).batches())
    assert str(caught.value) == (
        'Duplicate id "café.md": two files would get it.\n'
        f"Where: notes/{max(names)}\n"
        "Do: Name the file once, or rename it, or skip it with `skip_bad_files=True`."
    )
    (*_, last) = reader_of(source_at("notes"), skip_files=True).batches()
    assert last.position.skipped_files == 1
    assert last.position.skipped == 0


# What is read


def test_plain_text_is_read_by_its_ending_or_without_one_where_it_is_text() -> None:
    texts = ("app.log", "conf.yaml", "book.tex", "a.srt", "Dockerfile", "README", "b/LICENSE")
    for name in texts:
        Path("n", name).parent.mkdir(parents=True, exist_ok=True)
        Path("n", name).write_text("Some text.")
    write(
        n__b_log=b"\0\1\2", n__tool=b"\x7fELF\0\1", n__c_rtf="{}", n__d_mdx="# D", n__e_css="a {}"
    )
    Path("n/wide").write_bytes("Some text.".encode("utf-16-le"))
    Path("n/zero").touch()
    os.mkfifo("n/Makefile")
    Path("n/z").symlink_to("b/LICENSE")
    entries = [entry for _, entry in source_at("n").documents()]
    read = [entry for entry in entries if isinstance(entry, Document)]
    assert {entry.id for entry in read} == {*texts, "d.mdx", "wide", "zero", "z"}
    assert {entry.text for entry in read} == {"Some text.", "# D", ""}
    left_out = [str(entry) for entry in entries if isinstance(entry, LeftOutError)]
    assert left_out == ["no text\nWhere: b.log", "no text\nWhere: tool"]
    assert source_at("n").left_out == {".rtf": 1, ".css": 1, "pipes, sockets and devices": 1}
    (*_, last) = reader_of(source_at("n")).batches()
    assert last.position.unread["left out, no text"] == [2, "b.log", "tool"]
    for name in ("app.log", "README", "b/LICENSE", "wide", "zero"):
        (document,) = documents(source_at(f"n/{name}"))
        in_folder = next(entry for entry in read if entry.id == name)
        assert (document.title, document.text) == (in_folder.title, in_folder.text)
        assert document.metadata["type"] == in_folder.metadata["type"]
    with pytest.raises(SourceError, match="format is not recognised"):
        source_at("n/tool")


def test_json_is_text_in_a_folder_and_records_where_it_is_named() -> None:
    write(n__a_json='[{"id": 1, "text": "a"}]', n__b_json='{\n  "name": "b"\n}\n')
    assert ids_of("n") == ["a.json", "b.json"]
    assert ids_of("n/a.json") == ["1"]
    assert ids_of("n/b.json") == ["b.json"]


def test_large_logs_and_data_are_left_out_unless_they_are_included_or_named() -> None:
    write(n__a_log="a" * 1_000_001, n__b_json="1" * 1_000_000, n__c_txt="c" * 1_000_001)
    assert ids_of("n") == ["b.json", "c.txt"]
    assert source_at("n").left_out == {"logs, data and code above 1 MB": 1}
    assert ids_of("n", files=FileSelection(include=("*.log",))) == ["a.log", "b.json", "c.txt"]
    assert ids_of("n/a.log") == ["a.log"]


def test_lock_files_and_minified_code_are_left_out() -> None:
    names = (
        *("package-lock.json", "yarn.lock", "pnpm-lock.yaml", "Cargo.lock", "go.sum", "bun.lockb"),
        *("a.min.js", "b.min.css", "a.js.map", "npm-shrinkwrap.json", "gradle.lockfile"),
    )
    for name in (*names, "go.mod.txt", "locks.json", "a.js"):
        Path("n").mkdir(exist_ok=True)
        Path("n", name).write_text("text")
    files = FileSelection(include=("*.js", "*.map"))
    (source,) = open_sources(["n"], None, Fields(), MetadataReader({}), files)
    assert [document.id for document in documents(source)] == ["a.js", "go.mod.txt", "locks.json"]
    assert source.left_out == {"generated code, lock files of packages": len(names)}
    everything = FileSelection(include=("*",), no_ignore=True)
    assert len(ids_of("n", files=everything)) == len(names) + 3


def test_data_with_a_private_key_in_it_is_left_out() -> None:
    write(n__a_json='{"private_key": "-----BEGIN PRIVATE KEY-----\\nMII"}', n__b_yaml=" " * 900_000)
    entries = [entry for _, entry in source_at("n").documents()]
    assert [str(entry) for entry in entries if isinstance(entry, LeftOutError)] == [
        "a private key\nWhere: a.json\nDo: to read: index --include NAME or --no-ignore"
    ]


def test_front_matter_and_language_are_not_asked_of_data() -> None:
    write(n__a_json="{}", n__b_md="text", n__c_org="text")
    assert [document.id for document in documents(source_at("n").prose())] == ["b.md", "c.org"]


def test_an_included_file_is_read_as_text_and_the_rest_is_counted() -> None:
    write(
        src__a_css="a {}",
        src__sub__b_css="b {}",
        src__sub__c_tf="select 1",
        src__d_asm="int x;",
        src__Makefile="all:",
        src__e_md="text",
    )
    selection = FileSelection(include=("*.css", "sub/*.tf", "Makefile"))
    metadata = MetadataReader({})
    (source,) = open_sources(["src"], None, Fields(), metadata, selection)
    expected = ["Makefile", "a.css", "e.md", "sub/b.css", "sub/c.tf"]
    assert [document.id for document in documents(source)] == expected
    assert source.left_out == {".asm": 1}
    assert left_out_kinds(source.left_out) == ["1 .asm (not read; `include` reads text)"]
    with pytest.raises(ArgumentError, match=r'^`include`: "!" is not a pattern'):
        FileSelection(include=("!",))


def test_an_excluded_file_or_folder_is_not_read_and_is_counted() -> None:
    for name in (
        *("_sources/a.txt", "_sources/deep/b.md", "sub/_sources/c.txt", "a.md"),
        *("keep.py", "drop.py", "sources.txt"),
    ):
        Path("src", name).parent.mkdir(parents=True, exist_ok=True)
        Path("src", name).write_text("text")

    def read(*patterns: str) -> tuple[list[str], dict[str, int]]:
        selection = FileSelection(include=("*.py",), exclude=patterns)
        (source,) = open_sources(["src"], None, Fields(), MetadataReader({}), selection)
        return [document.id for document in documents(source)], dict(source.left_out)

    everything, nothing = read()
    assert (len(everything), nothing) == (7, {})
    kept = ["a.md", "keep.py", "sources.txt"]
    assert read("_sources/", "drop.*") == (kept, {"excluded": 4})
    kept = ["_sources/deep/b.md", "drop.py", "keep.py", "sources.txt", "sub/_sources/c.txt"]
    assert read("/_sources", "*.md", "!b.md") == (kept, {"excluded": 2})
    with pytest.raises(ArgumentError, match=r'^`exclude`: "#x" is not a pattern'):
        FileSelection(exclude=("#x",))


def test_a_named_file_is_read_as_text_if_it_is_neither_records_nor_binary() -> None:
    write(a_py="[1, 2]", b__a_py="", c_odd=b"caf\xe9", d_png=b"\x89PNG\r\n\0\0")
    Path("d.jsonl").write_text("oops")
    Path("e").write_text('{"no": "text"}')
    assert ids_of("a.py", "b/a.py") == ["a.py", "b/a.py"]
    assert documents(source_at("c.odd"))[0].text == "café"
    for name in ("d.png", "d.jsonl", "e"):
        with pytest.raises(SourceError, match=r"^The format is not recognised"):
            source_at(name)


def test_files_of_a_folder_that_are_too_large_are_left_out_and_named() -> None:
    write(notes__a_md="a" * 2_000, notes__b_md="b" * 1_000, notes__c_md="c")
    selection = FileSelection(max_file_size=1_000)
    (source,) = open_sources(["notes"], None, Fields(), MetadataReader({}), selection)
    assert [document.id for document in documents(source)] == ["b.md", "c.md"]
    assert source.left_out == {"too large": 1}
    assert source.large_files == ["a.md (2 kB)"]
    assert source.size == 1_001
    assert ids_of("notes/a.md", files=selection) == ["a.md"], "it was named"


@pytest.mark.parametrize(
    ("text", "size"),
    [("7", 7), ("50MB", 50_000_000), ("1.5 GB", 1_500_000_000), ("2k", 2_000), ("none", None)],
)
def test_a_size_has_a_unit(text: str, size: int | None) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "-1", "5 XB", "MB", "1e3", "٣"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"^`max_file_size`: "):
        parse_size(text)


def test_sizes_are_shown_with_a_unit() -> None:
    sizes = [1, 999, 1_000, 999_999, 120_000_000, 2_500_000_000]
    assert [shown_size(size) for size in sizes] == [
        *("1 byte", "999 bytes", "1 kB", "1,000 kB", "120 MB", "2.5 GB")
    ]


def test_text_folders_hold_only_plain_text() -> None:
    write(notes__a_md="a", notes__b_html="<p>b</p>")
    assert [document.id for document in documents(source_at("notes", "text"))] == ["a.md"]
    assert [document.id for document in documents(source_at("notes"))] == ["a.md", "b.html"]


# Fields


def test_documents_from_files_have_the_fields_of_files() -> None:
    write(notes__old__sea_MD="text")
    os.utime("notes/old/sea.MD", (1_700_000_000.75, 1_700_000_000.75))
    metadata = MetadataReader({})
    (source,) = open_sources(["notes"], None, Fields(), metadata)
    assert metadata.fields == FILE_FIELDS
    assert documents(source)[0].metadata == {
        "file": "sea.MD",
        "type": "md",
        "path": ("old/", "old/sea.MD"),
        "modified": "2023-11-14T22:13:20Z",
    }


def test_a_time_before_the_year_1_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    file = SourceFile("a.md", Place("a.md"), "a.md", ROWS, 1, "", modified_s=-1e12)
    assert "modified" not in next(iter(documents(files_source(file)))).metadata


def test_a_declared_field_wins_over_that_of_files() -> None:
    write(notes__a_md="text")
    metadata = MetadataReader({"type": "number", "file": "keyword"})
    (source,) = open_sources(["notes"], None, Fields(), metadata)
    assert list(metadata.fields) == ["type", "file", "path", "modified", "passage_kind"]
    values = documents(source)[0].metadata
    assert (values["file"], "type" in values) == ("a.md", False)
    assert metadata.seen == {"file"}


def test_an_index_without_the_fields_of_files_leaves_them_out_without_counting_them() -> None:
    write(notes__a_md="text")
    metadata = MetadataReader({"year": "number"}, file_fields=())
    (source,) = open_sources(["notes"], None, Fields(), metadata)
    assert documents(source)[0].metadata == {}
    assert (metadata.fields, metadata.undeclared) == ({"year": "number"}, {})


def test_records_do_not_set_the_fields_of_files() -> None:
    write(notes__a_md="text")
    Path("c.jsonl").write_text('{"id": "r", "text": "x", "modified": "yesterday"}')
    metadata = MetadataReader({})
    sources = open_sources(["notes", "c.jsonl"], None, Fields(), metadata)
    assert documents(sources[1])[0].metadata == {}
    assert metadata.undeclared == {"modified": 1}


# Bad files


def test_a_bad_file_stops_reading_or_is_counted_and_named() -> None:
    write(notes__a_md="a", notes__b_txt=b"\0\1", notes__c_md="c")
    with pytest.raises(BadFileError) as caught:
        list(reader_of(source_at("notes"), skip_lines=True).batches())
    assert caught.value.where == "notes/b.txt, byte 1"
    assert str(caught.value).endswith("Fix the file, or skip it with `skip_bad_files=True`.")
    (*_, last) = reader_of(source_at("notes"), skip_files=True).batches()
    assert (last.position.skipped_files, last.position.skipped) == (1, 0)
    examples = last.position.skipped_file_examples
    assert examples == ("notes/b.txt, byte 1: The file is binary, not text.",)
    assert len(problems(source_at("notes"))) == 1


def test_a_folder_or_file_that_cannot_be_listed_is_a_bad_file() -> None:
    write(notes__a_md="a", notes__deep__b_md="b", notes__z_md="z")
    os.chmod("notes/deep", 0)
    try:
        if os.access("notes/deep", os.R_OK):
            pytest.skip("this user may read every folder")
        (problem,) = problems(source_at("notes"))
        assert problem.startswith("The file cannot be read (Permission denied).\nWhere: notes/deep")
    finally:
        os.chmod("notes/deep", 0o700)


class _Rows(FileType):
    """A type of file whose lines are documents: ``bad`` is a bad record, and ``end`` cannot be read
    beyond."""

    readings = 0

    def converter(self) -> Any:
        def convert(path: Path, where: str, fields: Fields) -> Iterator[Any]:
            _Rows.readings += 1
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if line == "end":
                    raise SourceError("The rows end in a quote.", where=where)
                if line == "bad":
                    yield SourceError("The row is bad.", where=f"{where}, row {number}")
                else:
                    yield ConvertedDocument(str(number), "", line, {"year": "7"})

        return convert


ROWS = _Rows("rows", (".rows",), "", "")


def files_source(
    *files: SourceFile, skip_bad_files: bool = False, year: bool = False
) -> FileSource:
    def listing(left_out: LeftOut) -> Iterator[SourceFile]:
        return iter(files)

    for file in files:
        if not Path(file.place.path).exists():
            Path(file.place.path).write_text("row")
    metadata = MetadataReader({"year": "number"} if year else {})
    selection = FileSelection(skip_bad_files=skip_bad_files)
    return FileSource("f", "files", listing, Fields(), metadata, selection, recognised=True)


def rows_file(name: str, *lines: str) -> SourceFile:
    Path(name).write_text("\n".join(lines))
    return SourceFile(name, Place(name), name, ROWS, 20_000, "")


def test_rows_are_records_of_their_file() -> None:
    source = files_source(rows_file("a", "one", "bad", "three"), rows_file("b", "four"), year=True)
    read = documents(files_source(rows_file("c", "one", "two"), year=True))
    assert [(row.id, row.title, row.metadata, row.is_file) for row in read] == [
        ("c#1", "c", {"year": 7}, False),
        ("c#2", "c", {"year": 7}, False),
    ]
    assert resumes(source)
    (*_, last) = reader_of(source, skip_lines=True).batches()
    assert (last.position.skipped, last.position.skipped_files) == (1, 0)
    with pytest.raises(SourceError, match=r"^The row is bad\."):
        list(reader_of(source, skip_files=True).batches())


@pytest.mark.parametrize("length", [1, 3 << 20])
def test_nothing_of_a_file_that_cannot_be_read_to_its_end_is_read_if_it_is_skipped(
    length: int,
) -> None:
    files = [rows_file("a", *["x" * length] * 3, "end"), rows_file("b", *["y" * length] * 3)]
    _Rows.readings = 0
    source = files_source(*files, skip_bad_files=True, year=True)
    batches = list(reader_of(source, skip_files=True).batches())
    read = [document.id for batch in batches for _, _, document in batch.documents]
    assert read == ["b#1", "b#2", "b#3"]
    assert batches[-1].position.skipped_file_examples == ("a: The rows end in a quote.",)
    assert _Rows.readings == (2 if length == 1 else 3), "only a large file is read twice"
    with pytest.raises(BadFileError, match=r"^The rows end in a quote\."):
        list(reader_of(files_source(*files)).batches())


def test_time_passes_while_a_large_file_is_checked() -> None:
    lines = ["x" * 1_000] * 20_000
    source = files_source(rows_file("a", *lines), skip_bad_files=True)
    entries = list(source.documents())
    assert [entry for _, entry in entries[:4]] == [None] * 4
    assert sum(isinstance(entry, Document) for _, entry in entries) == 20_000
    positions = [position for position, _ in entries]
    assert positions == sorted(positions)


def test_a_source_of_files_resumes_after_any_file_and_notices_changes() -> None:
    write(notes__a_md="a", notes__b_txt=b"\0", notes__c_md="c", notes__sub__d_md="d")
    source = source_at("notes")
    assert resumes(source)
    before = source.signature()
    assert before == source.signature() == source_at("notes").signature()
    other = open_source("notes", None, Fields(), MetadataReader({}), FileSelection(root="/"))
    assert other.signature() != before, "its ids are others"
    Path("notes/a.md").write_text("ab")
    assert source.signature() == source_at("notes").signature() != before


# Standard input


def piped(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_standard_input_is_records_or_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    piped(b"# Sea\nThe sea.", monkeypatch)
    (document,) = documents(source_at("-"))
    assert (document.id, document.title, document.metadata) == ("stdin", "stdin", {})
    assert documents(source_at("-")) == [document], "it can be read again"
    piped(b'{"text": "a"}\n{"text": "b"}\n', monkeypatch)
    source = source_at("-")
    assert [document.id for document in documents(source)] == ["stdin-1", "stdin-2"]
    assert documents(source)[1].where == "standard input, line 2"
    assert (source.format, source.name) == ("documents", "-")
    assert source_at("-", "text").format == "text"


def test_equal_input_has_an_equal_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    signatures: list[object] = []
    for data in (b"one", b"one", b"two"):
        piped(data, monkeypatch)
        signatures.append(source_at("-").signature())
    assert signatures[0] == signatures[1] != signatures[2]


@pytest.mark.parametrize("data", [b"", b"\0\1\2"])
def test_input_without_text_is_refused(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    piped(data, monkeypatch)
    with pytest.raises(SourceError):
        source_at("-")


def test_input_is_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    piped(b"text", monkeypatch)
    folders = [name for name in FORMATS if name not in (*RECORDS, "files", "text")]
    for name in folders:
        with pytest.raises(SourceError, match=r"^Standard input cannot be read as "):
            source_at("-", name)


# The extra


def test_files_that_the_extra_would_read_are_left_out_and_the_report_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pypdfium2", None)  # as if it were not installed
    write(notes__a_md="a", notes__b_pdf="%PDF", notes__c_png="PNG")
    source = open_sources(
        ["notes"], None, Fields(), MetadataReader({}), FileSelection(include=("*.pdf",))
    )[0]
    assert [document.id for document in documents(source)] == ["a.md"]
    extra, rest = left_out_kinds(source.left_out)
    assert extra.startswith('1 .pdf (the extra "files" reads them. Install the extra: ')
    assert rest == "1 .png (not read; `include` reads text)"
    with pytest.raises(MissingExtraError):
        source_at("notes/b.pdf")


def test_json_lines_and_rotated_logs_are_read_in_folders() -> None:
    lines = '{"id": "12", "title": "Pump", "text": "It runs."}\n\n{"role": "user", "n": 7}\n'
    names = ("a.jsonl", "b.ndjson", "part-00000", "wiki_00")
    for name, content in {
        **dict.fromkeys(names, lines),
        **dict.fromkeys(("x.log.1", "x.log-20240105", "x.log.old"), "It ran."),
        "one": '{"a": 1}',
        "two": '{"a": 1}\n{"b"\n',
    }.items():
        Path("notes").mkdir(exist_ok=True)
        Path("notes", name).write_text(content)
    source = open_source("notes", None, Fields(), MetadataReader({}))
    read = {document.id: (document.title, document.text) for document in documents(source)}
    for name in names:
        assert read.pop(f"{name}#1") == ("Pump", "It runs.")
        assert read.pop(f"{name}#3")[1] == "role: user\nn: 7"
    assert sorted(read) == ["one", "two", "x.log-20240105", "x.log.1", "x.log.old"]
    (part,) = source.parts(0, 0, 1 << 20)
    assert len(list(part.source.documents())) == len(read) + 2 * len(names)


def test_pages_of_wikiextractor_are_records_in_a_folder_and_alone() -> None:
    url = "https://e.org/?curid="
    pages = (
        f'<doc id="12" url="{url}12" title="AT&amp;T">\nAT&amp;T\n\nA &lt;b> company.\n\n</doc>\n'
        f'<doc id="7" revid="3" title=""Heroes" (song)">\n"Heroes" (song)\n\n</doc>\n'
        f'<doc id="9" url="{url}9" title="Cut off">\nText of a file that\nends too early.'
    )
    Path("extracted/AA").mkdir(parents=True)
    Path("extracted/AA/wiki_00").write_text(pages)
    Path("extracted/AA/wiki_01").write_text(f"A page begins with {pages}")
    for name, prefix in (("extracted", "AA/"), ("extracted/AA/wiki_00", "")):
        reader = MetadataReader({"id": "keyword"})
        source = open_source(name, None, Fields(), reader)
        read = [document for document in documents(source) if "#" in document.id]
        assert [(d.id, d.title, d.text, d.metadata["id"]) for d in read] == [
            (f"{prefix}wiki_00#1", "AT&T", "A <b> company.", "12"),
            (f"{prefix}wiki_00#2", '"Heroes" (song)', "", "7"),
            (f"{prefix}wiki_00#3", "Cut off", "Text of a file that\nends too early.", "9"),
        ]
        (part,) = source.parts(0, 0, 1 << 20)
        assert len(list(part.source.documents())) == len(read) + (name == "extracted")


def test_conversations_of_assistants_are_read_in_a_folder_and_alone() -> None:
    chat = '[{"uuid": "7f", "name": "Fans", "chat_messages": [{"sender": "human", "text": "?"}]}%s]'
    name = "export/conversations.json"
    Path("export").mkdir()
    Path(name).write_text(chat % (" " * 1_000_001))
    for source in ("export", name):
        (document,) = documents(open_source(source, None, Fields(), MetadataReader({})))
        assert (document.id, document.title) == ("conversations.json#7f", "Fans")
    Path(name).write_text('[{"id": "a", "text": "A record."}]')
    (document,) = documents(open_source(name, None, Fields(), MetadataReader({})))
    assert (document.id, document.text) == ("a", "A record.")

"""Sources of corpora: every format is read, and every mistake is reported with file and line."""

import bz2
import gzip
import io
import json
import lzma
import os
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from arag_search.corpus import Document, nfc, split_at
from arag_search.errors import AragError, ArgumentError, SourceError
from index_jobs.build.report import left_out_kinds
from index_jobs.sources.lines.files import Fields
from index_jobs.sources.metadata import FILE_FIELDS, MetadataReader, parse_metadata
from index_jobs.sources.opening import open_source, open_sources
from index_jobs.sources.registry import FORMATS
from index_jobs.sources.source import CorpusReader, Position, SeenIds
from tests.support.corpus_files import FIX, documents, in_own_folder, problems, source_of  # noqa: F401
from tests.support.shared_data import DATA

ANYTHING = (
    "Allowed: files (see `format`), JSON lines, a JSON array, or rows with tabs and a header (id,"
    " text, title); packed by gzip, bzip2, xz or zip too\n"
    "Do: To read the file as plain text, use `format=text`."
)


def message(error: pytest.ExceptionInfo[AragError]) -> str:
    return str(error.value)


# Text


def test_a_folder_gives_its_text_files_in_the_order_of_their_paths() -> None:
    for name, text in {
        "notes/b.md": "Before\n```\n# code\n```\n## The B side ##\nText.",
        "notes/a/z.txt": "no heading",
        "notes/a.md": "---\ntitle: x\n# y\n---\n# A\u0301ria",
        "notes/a/.hidden.md": "hidden",
        "notes/.git/x.md": "hidden",
        "notes/photo.png": "PNG",
        "notes/README": "none",
        "notes/a/tool.CSS": "x = 1",
        "notes/c.TXT": "#hashtag\n#!/bin/sh\n",
    }.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    source = open_source("notes", None, Fields(), MetadataReader({}))
    texts = documents(source)
    assert [(document.id, document.title) for document in texts] == [
        ("README", "README"),
        ("a.md", "x"),
        ("a/z.txt", "z"),
        ("b.md", "The B side"),
        ("c.TXT", "c"),
    ]
    assert texts[2].text == "no heading"
    assert source.left_out == {".png": 1, ".css": 1, "hidden": 2}
    (second, _) = list(source.documents())[2]
    assert [document.id for document in documents(source, skip=second)] == ["b.md", "c.TXT"]
    assert source.bytes_read == source.size


def test_links_and_special_files_of_a_folder_are_left_out_and_counted() -> None:
    Path("secret").mkdir()
    Path("secret/passwd.txt").write_text("root")
    Path("notes/inner").mkdir(parents=True)
    Path("notes/a.txt").write_text("text")
    Path("notes/inner/b.txt").symlink_to("../a.txt")
    Path("notes/c.txt").symlink_to(Path("secret/passwd.txt").absolute())
    Path("notes/d.txt").symlink_to("inner/../../secret/passwd.txt")
    Path("notes/e.txt").symlink_to("/dev/zero")
    Path("notes/f.txt").symlink_to("nowhere.txt")
    Path("notes/g.txt").symlink_to("g.txt")
    Path("notes/h").symlink_to("inner")
    Path("notes/i").symlink_to("../secret")
    Path("notes/j.txt").symlink_to("pipe.txt")
    os.mkfifo("notes/pipe.txt")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("notes/socket.txt")
        source = open_source("notes", None, Fields(), MetadataReader({}))
        assert [document.id for document in documents(source)] == ["a.txt", "inner/b.txt"]
    assert source.left_out == {
        "links out of the folder": 4,
        "links to nothing": 2,
        "links to folders": 1,
        "pipes, sockets and devices": 3,
    }
    assert left_out_kinds({**source.left_out, ".png": 3}) == [
        "3 .png (not read; `include` reads text)",
        "links out of the folder (4), pipes, sockets and devices (3), links to nothing (2),"
        " links to folders (1)",
    ]
    Path("linked").symlink_to("notes/inner")  # the folder itself may be a link
    source = open_source("linked", None, Fields(), MetadataReader({}))
    assert source.left_out == {"links out of the folder": 1}


def test_the_corpus_of_a_beir_folder_may_not_be_a_link_out_of_it() -> None:
    Path("corpus.jsonl").write_text('{"_id": "1", "title": "", "text": "x"}\n')
    Path("beir").mkdir()
    Path("beir/corpus.jsonl").symlink_to("../corpus.jsonl")
    with pytest.raises(SourceError) as caught:
        open_source("beir", None, Fields(), MetadataReader({}))
    assert message(caught) == (
        "corpus.jsonl is a link that leads out of the folder.\nWhere: beir\n"
        "Do: Give the file that it leads to as the source."
    )


def test_a_single_text_file_is_a_document_and_any_ending_can_be_text() -> None:
    (document,) = documents(source_of("a.md", "\ufeff# One\n\ntext"))
    assert (document.id, document.title, document.text) == ("a.md", "One", "# One\n\ntext")
    assert (document.where, document.is_file) == ("a.md", True)
    assert documents(source_of("a.odd", "text", "text"))[0].title == "a"


def test_a_folder_is_not_read_as_records() -> None:
    Path("folder").mkdir()
    with pytest.raises(SourceError) as caught:
        open_source("folder", "documents", Fields(), MetadataReader({}))
    assert message(caught) == (
        "A folder cannot be read as documents.\nWhere: folder\n"
        "Allowed: `format`: files for a folder of files, text for one of plain text, beir"
        " for one with corpus.jsonl, anserini for a Lucene index\n"
        "Do: Give the files themselves as sources."
    )


def test_missing_sources_duplicate_sources_and_pipes_are_rejected() -> None:
    with pytest.raises(SourceError, match=r'^No such file or folder: "absent\.jsonl"\.\nWhere: /'):
        open_source("absent.jsonl", None, Fields(), MetadataReader({}))
    Path("a.txt").write_text("text")
    with pytest.raises(ArgumentError, match=r"^The source \./a\.txt is given twice\.$"):
        open_sources(["a.txt", "./a.txt"], None, Fields(), MetadataReader({}))
    with pytest.raises(ArgumentError, match=r"^No source is given\."):
        open_sources([], None, Fields(), MetadataReader({}))
    os.mkfifo("Makefile")
    with pytest.raises(SourceError, match=r"^The source is neither a file nor a folder\."):
        open_sources(["Makefile"], None, Fields(), MetadataReader({}))


# JSON lines


def test_documents_have_ids_titles_and_declared_metadata() -> None:
    lines = (
        '\ufeff{"id": "x", "title": " A\\n B ", "text": "One.", "year": 1678,'
        ' "lang": ["en", "de"]}\n'
        "\n"
        '{"id": 7, "text": "Cafe\\u0301", "year": "1.5", "lang": true, "author": "W", "pages": 3}\n'
        '{"title": "Only a title", "text": " ", "year": null, "lang": [], "published": "2001-05"}'
    )
    source = source_of("c.jsonl", lines, metadata="year:number,lang:keyword,published:date")
    assert (source.format, source.recognised) == ("documents", True)
    assert documents(source) == [
        Document("x", "A B", "One.", {"year": 1678, "lang": ("en", "de")}, where="c.jsonl, line 1"),
        Document("7", "", "Café", {"year": 1.5, "lang": "true"}, where="c.jsonl, line 3"),
        Document("c-4", "Only a title", "", {"published": "2001-05"}, where="c.jsonl, line 4"),
    ]
    assert [document.id for document in documents(source, skip=1)] == ["7", "c-4"]


def test_a_record_with_text_and_sentences_is_a_document_as_long_as_no_field_is_named() -> None:
    record = '{"id": 1, "text": "A. B.", "sentences": ["C."]}'
    assert source_of("c.jsonl", record).format == "documents"
    assert source_of("c.jsonl", record, fields=Fields(text_field="sentences")).format == "passages"
    assert source_of("c.jsonl", record.replace("id", "_id")).format == "beir"


def test_undeclared_keys_are_counted() -> None:
    Path("c.jsonl").write_text('{"text": "a", "x": 1, "y": 2}\n{"text": "b", "y": null}\n')
    metadata = MetadataReader({})
    documents(open_source("c.jsonl", None, Fields(), metadata))
    assert metadata.undeclared == {"x": 1, "y": 2}


def test_fields_may_have_other_names() -> None:
    fields = Fields(id_field="key", title_field="name", text_field="body")
    source = source_of("c.jsonl", '{"key": 1, "name": "N", "body": "B", "id": 3}', fields=fields)
    assert documents(source) == [Document("1", "N", "B", where="c.jsonl, line 1")]
    source = source_of("c.jsonl", '{"name": "N", "body": "B"}', fields=fields)
    assert problems(source) == [
        'There is no field "key".\nWhere: c.jsonl, line 1\n'
        "Allowed: one of the existing fields: name, body\n"
        f"Do: Name the field of the id with `id_field`. {FIX}"
    ]


def test_gzip_is_recognised_by_content_and_left_out_of_generated_ids() -> None:
    compressed = gzip.compress(b'{"text": "a"}\n{"text": "b"}\n')
    assert [document.id for document in documents(source_of("x.jsonl.gz", compressed))] == [
        "x-1",
        "x-2",
    ]
    compressed = gzip.compress(b'["0:a", "1:b"]')
    assert [document.id for document in documents(source_of("chunks", compressed))] == ["0", "1"]
    big = gzip.compress(json.dumps({"text": "".join(map(chr, range(33, 9000)))}).encode() * 9, 0)
    with pytest.raises(
        SourceError, match=r"^The compressed file is damaged \(.*\)\.\nWhere: c\.gz"
    ):
        documents(source_of("c.gz", big[:-30_000], "documents"))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            '{"text": "a"',
            "The line is not JSON (unexpected end of data, column 13).\n"
            "Where: c.jsonl, line 2\nDo: F",
        ),
        (
            b'{"text": "\xff"}',
            "The line is not JSON (not UTF-8 at byte 11 of the line).\n"
            "Where: c.jsonl, line 2\nDo: F",
        ),
        (
            '{"text": "\\ud800"}',
            "The line is not JSON (no low surrogate in string, column 11).\n"
            "Where: c.jsonl, line 2\nDo: F",
        ),
        (
            "[1]",
            "The record is a list.\nWhere: c.jsonl, line 2\n"
            'Allowed: an object such as {"id": "7", "title": "Vivaldi", "text": "..."}\nDo: F',
        ),
        (
            '{"title": "t", "body": "b"}',
            'There is no field "text".\nWhere: c.jsonl, line 2\n'
            "Allowed: one of the existing fields: title, body\n"
            "Do: Name the field of the text with `text_field`. F",
        ),
        (
            '{"text": 3}',
            'The field "text" is a number.\nWhere: c.jsonl, line 2\nAllowed: a string\nDo: F',
        ),
        (
            '{"text": "a", "title": ["t"]}',
            'The field "title" is a list.\nWhere: c.jsonl, line 2\nAllowed: a string\nDo: F',
        ),
        (
            '{"text": " \\t\\u00a0 ", "title": ""}',
            "There is neither text nor title.\nWhere: c.jsonl, line 2\nDo: F",
        ),
        (
            '{"text": "a", "id": true}',
            'The field "id" is a boolean.\nWhere: c.jsonl, line 2\n'
            "Allowed: a string, or a number of at most 19 digits\nDo: F",
        ),
        (
            '{"text": "a", "id": 12345678901234567890123}',
            'The field "id" is a number.\nWhere: c.jsonl, line 2\n'
            "Allowed: a string, or a number of at most 19 digits\nDo: F",
        ),
        (
            '{"text": "a", "lang": 12345678901234567890123}',
            'The metadata field "lang" has the value 1.2345678901234568e+22.\nWhere: c.jsonl, line'
            " 2\nAllowed: an integer of so many digits in quotes, for JSON rounds it\nDo: F",
        ),
        (
            '{"text": "a", "id": ""}',
            "The id '' cannot be used.\nWhere: c.jsonl, line 2\n"
            "Allowed: 1 to 512 bytes of UTF-8, without control characters and without white space"
            " at either end\nDo: F",
        ),
        (
            '{"text": "a", "year": "old"}',
            "The metadata field \"year\" has the value 'old'.\nWhere: c.jsonl, line 2\n"
            "Allowed: a number, or a list of numbers\nDo: F",
        ),
        (
            '{"text": "a", "year": [1, true]}',
            'The metadata field "year" has the value True.\nWhere: c.jsonl, line 2\n'
            "Allowed: a number, or a list of numbers\nDo: F",
        ),
        (
            '{"text": "a", "lang": {"a": 1}}',
            "The metadata field \"lang\" has the value {'a': 1}.\nWhere: c.jsonl, line 2\n"
            "Allowed: a string, number or boolean, or a list of them\nDo: F",
        ),
        (
            '{"text": "a", "published": "2001-13"}',
            "The metadata field \"published\" has the value '2001-13'.\nWhere: c.jsonl, line 2\n"
            "Allowed: a year, month, day or moment, such as 2001, 2001-05, 2001-05-31 or"
            " 2001-05-31T12:00 (month must be in 1..12)\nDo: F",
        ),
    ],
)
def test_a_bad_line_is_reported_with_what_is_allowed(line: str | bytes, expected: str) -> None:
    raw = line.encode() if isinstance(line, str) else line
    source = source_of(
        "c.jsonl",
        b'{"text": "first"}\n' + raw + b'\n{"text": "last"}',
        metadata="year:number,lang:keyword,published:date",
    )
    assert problems(source) == [expected.removesuffix("F") + FIX]
    assert [number for number, _ in source.documents()] == [1, 2, 3]


def test_where_bad_lines_are_skipped_a_bad_value_is_left_out_alone() -> None:
    table = "opera;year;first;done\nA;1.234,50;1735-02-30;yes\nB;1727;1727-11;true\n"
    Path("t.csv").write_text(table)
    lines = (
        '{"id": "x", "text": "X.", "year": ["1727", "n/a"], "done": "maybe"}\n{"id": 1, "title": 2}'
    )
    Path("c.jsonl").write_text(lines)
    metadata = MetadataReader(parse_metadata("year:number,first:date,done:boolean"))
    sources = open_sources(["t.csv", "c.jsonl"], None, Fields(title_field="opera"), metadata)
    reader = CorpusReader(
        sources, metadata, Position(), SeenIds(), lambda _: False, skip_bad_lines=True
    )
    (*_, last) = batches = list(reader.batches())
    read = [document for batch in batches for _, _, document in batch.documents]
    declared = [
        {name: value for name, value in document.metadata.items() if name not in FILE_FIELDS}
        for document in read
    ]
    assert list(zip([document.id for document in read], declared, strict=True)) == [
        ("t.csv#1", {}),
        ("t.csv#2", {"year": 1727, "first": "1727-11", "done": True}),
        ("x", {"year": (1727,)}),
    ]
    assert "1.234,50" in read[0].text
    assert last.position.skipped == 1
    assert last.position.unread == {
        'values of "year" that are no number, left out (records)': [2, "t.csv#1", "x"],
        'values of "first" that are no date, left out (records)': [1, "t.csv#1"],
        'values of "done" that are no boolean, left out (records)': [2, "t.csv#1", "x"],
    }


def zipped(*contents: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__MACOSX/._0", b"no record")
        for number, content in enumerate(contents):
            archive.writestr(f"folder/{number}", content)
    return packed.getvalue()


@pytest.mark.parametrize("packed", [gzip.compress, bz2.compress, lzma.compress, zipped])
def test_compressed_records_and_tables_are_read(packed: Callable[[bytes], bytes]) -> None:
    Path("c.jsonl.xz").write_bytes(packed(b'{"text": "a"}\n'))
    Path("t.csv.zip").write_bytes(packed(b"name;year\nx;1\ny;2\n"))
    records, table = (
        documents(open_source(name, None, Fields(), MetadataReader({})))
        for name in ("c.jsonl.xz", "t.csv.zip")
    )
    assert [(document.id, document.text) for document in records] == [("c-1", "a")]
    assert [document.text for document in table] == ["name: x\nyear: 1", "name: y\nyear: 2"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (lzma.compress(b'{"text": "a"}')[:-9], "damaged"),
        (bz2.compress(b'{"text": "a"}')[:-9], "damaged"),
        (b"PK\3\4 an archive", "damaged .File is not a zip file"),
        (zipped(b"a", b"b"), "archive holds 2 files"),
        (zipped(), "archive holds 0 files"),
        (zipped(b"a").replace(b"PK\1\2\24\3\24\0\0", b"PK\1\2\24\3\24\0\1"), "is encrypted"),
    ],
)
def test_what_cannot_be_unpacked_is_refused(data: bytes, problem: str) -> None:
    Path("c.xz").write_bytes(data)
    with pytest.raises(SourceError, match=problem):
        documents(open_source("c.xz", None, Fields(), MetadataReader({})))


def test_a_table_that_ends_lines_with_carriage_returns_is_read() -> None:
    Path("c.tsv").write_bytes(b"id\ttext\r7\ta\r8\tb\r")
    texts = documents(open_source("c.tsv", None, Fields(), MetadataReader({})))
    assert [document.text for document in texts] == ["id: 7\ntext: a", "id: 8\ntext: b"]


@pytest.mark.parametrize(
    ("record", "format"),
    [
        ('{"title": "@up", "text": "pump @on"}', None),
        ('{"_id": "1", "title": "@up", "text": "pump @on", "metadata": {}}', "beir"),
        ('["7:pump @on"]', "arag-chunks"),
        ('{"corpus_name": "up", "context": "pump @on"}', None),
        (
            '{"wikipedia_id": "1", "wikipedia_title": "@up", "text": ["pump @on"]}',
            "kilt",
        ),
    ],
)
def test_records_are_read_without_codes_for_terminals(record: str, format: str | None) -> None:
    Path("c.json").write_text(record.replace("@", "\\u001b[1m"))
    (document,) = documents(open_source("c.json", format, Fields(), MetadataReader({})))
    assert document.text.rstrip("\n") == "pump on"
    assert document.title in ("up", "")
    assert document.unread == {"terminal codes left out": record.count("@")}


def test_a_text_whose_sentences_are_given_keeps_its_codes() -> None:
    lines = '{"text": "\\u001b[1ma b.", "sentence_ends": [8]}'
    (document,) = documents(source_of("c.jsonl", lines))
    assert (document.text, document.sentence_ends) == ("\x1b[1ma b.", (8,))


def test_metadata_keeps_its_codes_since_filters_ask_for_the_whole_value() -> None:
    Path("c.jsonl").write_text('{"text": "\\u001b[1ma", "owner": "\\u001b[1mb"}')
    reader = MetadataReader({"owner": "keyword"})
    (document,) = documents(open_source("c.jsonl", None, Fields(), reader))
    assert (document.text, document.metadata["owner"]) == ("a", "\x1b[1mb")


@pytest.mark.parametrize(
    "identifier", ["a\nb", "\7y", " a", "a ", "é" * 257, "x" * 513, "a\u2028b"]
)
def test_ids_that_cannot_be_shown_or_looked_up_are_rejected(identifier: str) -> None:
    source = source_of("c.jsonl", json.dumps({"id": identifier, "text": "a"}))
    assert problems(source)[0].startswith("The id ")


def test_numbers_keep_their_type_if_possible() -> None:
    values = [3, "-7", "+2.50", 1e3, 2.0**60, "1e2"]
    source = source_of("c.jsonl", json.dumps({"text": "a", "n": values}), metadata="n:number")
    assert documents(source)[0].metadata == {"n": (3, -7, 2.5, 1000.0, float(1 << 60), 100.0)}


@pytest.mark.parametrize("value", [(1 << 53) + 1, str(1 << 60), -(1 << 53) - 1])
def test_an_integer_that_a_number_does_not_tell_from_its_neighbours_is_refused(
    value: int | str,
) -> None:
    source = source_of("c.jsonl", json.dumps({"text": "a", "n": value}), metadata="n:number")
    ((_, error),) = source.documents()
    assert isinstance(error, SourceError)
    assert "declare it as a keyword for ids" in error.allowed


# Other formats


def test_passages_keep_their_sentences() -> None:
    record = {"title": "T", "sentences": ["One.", "", "Two. ", "Thre\u0301e."]}
    source = source_of("p.jsonl", json.dumps(record))
    assert source.format == "passages"
    (document,) = documents(source)
    assert document.text == "One. Two. Thrée."
    assert document.sentence_ends is not None
    assert split_at(document.text, document.sentence_ends) == ["One. ", "Two. ", "Thrée."]
    source = source_of("p.jsonl", '{"sentences": ["a", 1]}')
    assert problems(source) == [
        f'The field "sentences[]" is a number.\nWhere: p.jsonl, line 1\n'
        f"Allowed: a string\nDo: {FIX}"
    ]


def test_arag_chunks_keep_ids_and_order() -> None:
    source = source_of("c.json", '\ufeff["9:text: one", "4:two"]')
    assert source.format == "arag-chunks"
    assert documents(source) == [
        Document("9", "", "text: one", whole=True, where="c.json, item 1"),
        Document("4", "", "two", whole=True, where="c.json, item 2"),
    ]
    assert [document.id for document in documents(source, skip=1)] == ["4"]
    example = f'Allowed: a string such as "17:text"\nDo: {FIX}'
    assert problems(source_of("c.json", '["no id", 3, "5:"]', "arag-chunks")) == [
        f"The passage has no id.\nWhere: c.json, item 1\n{example}",
        f"The item is a number.\nWhere: c.json, item 2\n{example}",
        f"There is no text.\nWhere: c.json, item 3\nDo: {FIX}",
    ]


def test_graphrag_bench_documents_are_named_by_their_corpus() -> None:
    records = [{"corpus_name": name, "context": "text"} for name in ("Novel", "Other", "Novel")]
    source = source_of("g.json", json.dumps(records))
    assert source.format == "graphrag-bench"
    assert [document.id for document in documents(source)] == ["Novel", "Other", "Novel-2"]
    assert [document.id for document in documents(source, skip=2)] == ["Novel-2"]
    assert documents(source)[2].title == "Novel"


def test_an_array_of_documents_is_read_item_by_item() -> None:
    source = source_of("d.json", '[{"text": "a", "x": {"y": [1.5, {}]}}, {"text": 3}]')
    assert source.format == "documents"
    assert [
        document.id for _, document in source.documents() if isinstance(document, Document)
    ] == ["d-1"]
    assert problems(source) == [
        f'The field "text" is a number.\nWhere: d.json, item 2\nAllowed: a string\nDo: {FIX}'
    ]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "q.jsonl",
            '{"id": 1, "question": "Who?"}',
            'The format is not recognised: the first record has neither "text" nor "sentences".\n'
            "Where: q.jsonl\nAllowed: one of the existing fields: id, question\n"
            "Do: Name the field of the text with `text_field`, and the format with `format`: "
            f"{', '.join(FORMATS)}.",
        ),
        (
            "n.json",
            "[1, 2]",
            "The format is not recognised: its items are neither strings nor objects.\n"
            "Where: n.json\nAllowed: a JSON array of objects, or of passages of A-RAG\n"
            f"Do: Name the format with `format`: {', '.join(FORMATS)}.",
        ),
        (
            "p.json",
            '{"text": "a"\n}',
            "The line is not JSON (unexpected end of data, column 13).\nWhere: p.json, line 1\n"
            "Allowed: one JSON object a line, or a JSON array\n"
            "Do: Write each record on one line, or name the format with `format`.",
        ),
        (
            "p.jsonl",
            "id,text\n1,a\n",
            'The format is not recognised: the file begins with "id,text 1,a".\nWhere: p.jsonl\n'
            + ANYTHING,
        ),
        (
            "e.jsonl",
            "",
            "The file is empty.\nWhere: e.jsonl\n" + ANYTHING,
        ),
    ],
)
def test_an_unrecognised_source_is_an_error_that_says_what_to_do(
    name: str, content: str, expected: str
) -> None:
    with pytest.raises(SourceError) as caught:
        source_of(name, content)
    assert message(caught) == expected


def test_json_lines_are_no_array_of_chunks() -> None:
    with pytest.raises(SourceError) as caught:
        source_of("d.jsonl", '{"text": "a"}', "arag-chunks")
    assert message(caught) == (
        "The file is not a JSON array.\nWhere: d.jsonl\n"
        'Allowed: for --format arag-chunks: ["0:text", "1:text", ...]\n'
        "Do: Use `format=documents` or `format=passages` for JSON lines."
    )


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "format", "count"),
    [
        ("hotpotqa/corpus.jsonl", "passages", 994),
        ("musique/corpus.jsonl", "documents", 1890),
        ("2wikimultihopqa/arag_chunks.json", "arag-chunks", 658),
        ("medical/corpus.json", "graphrag-bench", 1),
    ],
)
def test_the_real_corpora_are_recognised_and_read(name: str, format: str, count: int) -> None:
    source = open_source(str(DATA / name), None, Fields(), MetadataReader({}))
    corpus = documents(source)
    assert (source.format, len(corpus)) == (format, count)
    assert all(document.text and document.text == nfc(document.text) for document in corpus)


# Metadata declarations


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        (
            "year",
            '`metadata`: "year" has no type.\n'
            "Allowed: name:type pairs with commas between them, such as year:number,lang:keyword",
        ),
        (
            "year:integer",
            '`metadata`: "year" has the type "integer".\nAllowed: keyword, number, date, boolean',
        ),
        ("a:date,a:number", '`metadata`: "a" is declared twice.'),
        (
            "title:keyword",
            '`metadata`: "title" is a reserved name.\nAllowed: any name but content, doc_id,'
            " id, part, parts, pre_chunked, sentence_ends, sentences, text, title\nDo: Rename the "
            "field in the source.",
        ),
        (
            "2nd:number",
            '`metadata`: the name "2nd" cannot be used in a query.\n'
            "Allowed: a letter, then letters, digits\nDo: Rename the field in the source.",
        ),
        (
            " , ",
            "`metadata`: nothing is declared.\n"
            "Allowed: name:type pairs with commas between them, such as year:number,lang:keyword",
        ),
    ],
)
def test_declarations_are_checked(declaration: str, expected: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_metadata(declaration)
    assert message(caught) == expected

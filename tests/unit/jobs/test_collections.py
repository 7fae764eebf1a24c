"""KILT, DPR and BEIR: collections of retrieval research, read as published."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from arag_search.corpus import Document
from arag_search.errors import SourceError
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.sources.lines.files import Fields
from tests.support.corpus_files import (
    FIX,
    ROWS,
    documents,
    in_own_folder,  # noqa: F401
    problems,
    resumes,
    source_at,
    source_of,
    table,
)


def lines(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


ARTICLE = {
    "_id": "731",
    "wikipedia_id": "731",
    "wikipedia_title": "Salt mill",
    "text": [
        "Salt mill\n",
        "A salt mill grinds salt.\n",
        "Section::::History.\n",
        "The first stood in Lu\u0308beck.",
        "Section::::History.:Later years.\n",
        "BULLET::::- Mill of 1704\n",
        "BULLET::::1. Mill of 1711\n",
    ],
    "anchors": [{"text": "salt", "href": "Salt", "paragraph_id": 1, "start": 2, "end": 6}],
    "categories": "Mills,Salt production,,Buildings in Hanover, Germany",
    "history": {"revid": 9},
    "sections": 2,
}


# KILT


def test_an_article_of_kilt_is_a_document_with_readable_headings() -> None:
    source = source_of("kilt.json", lines(ARTICLE), metadata="categories:keyword,sections:number")
    assert (source.format, source.recognised) == ("kilt", True)
    assert documents(source) == [
        Document(
            "731",
            "Salt mill",
            "Salt mill\nA salt mill grinds salt.\n# History.\nThe first stood in Lübeck.\n"
            "# History.:Later years.\n- Mill of 1704\n1. Mill of 1711\n",
            {
                "categories": ("Mills", "Salt production", "Buildings in Hanover", "Germany"),
                "sections": 2,
            },
            where="kilt.json, line 1",
        )
    ]


def test_kilt_may_be_compressed_or_an_array() -> None:
    source = source_of("k.json.gz", gzip.compress(lines(ARTICLE, ARTICLE).encode()))
    assert [document.id for document in documents(source)] == ["731", "731"]
    assert documents(source_of("k.json", json.dumps([ARTICLE]), "kilt"))[0].id == "731"


def test_a_bad_article_of_kilt_is_named_with_its_line() -> None:
    number_in_text = {**ARTICLE, "text": ["a", 3]}
    without_id = {"wikipedia_title": "T", "text": ["a"]}
    text_as_string = {**ARTICLE, "text": "a"}
    source = source_of("k.json", lines(ARTICLE, number_in_text, without_id, text_as_string), "kilt")
    assert problems(source) == [
        f'The field "text[]" is a number.\nWhere: k.json, line 2\nAllowed: a string\nDo: {FIX}',
        'There is no field "wikipedia_id".\nWhere: k.json, line 3\n'
        "Allowed: one of the existing fields: wikipedia_title, text\n"
        f"Do: Name the field of the id with `id_field`. {FIX}",
        'The field "text" is a string.\nWhere: k.json, line 4\n'
        f"Allowed: a list of strings\nDo: {FIX}",
    ]
    assert resumes(source)


# DPR


def test_rows_with_tabs_are_passages_that_keep_their_ids() -> None:
    source = source_of("psgs.tsv.gz", gzip.compress(b"\xef\xbb\xbf" + table(ROWS).encode()))
    assert (source.format, source.recognised) == ("dpr", True)
    assert documents(source) == [
        Document("1", "Anna", 'He said "yes", and\tleft.', {}, None, True, "psgs.tsv.gz, line 2"),
        Document("2", "Anna", "Two lines\nin one field.", {}, None, True, "psgs.tsv.gz, line 3"),
        Document("3", 'The "Sea"', "Café", {}, None, True, "psgs.tsv.gz, line 5"),
    ]
    assert resumes(source)


def test_columns_are_found_by_name_and_others_are_metadata() -> None:
    rows = "title\tyear\tid\ttext\nT\t1704\t9\tBody\nT\t\t10\tBody\n"
    assert documents(source_of("p.tsv", rows, metadata="year:number")) == [
        Document("9", "T", "Body", {"year": 1704}, None, True, "p.tsv, line 2"),
        Document("10", "T", "Body", {}, None, True, "p.tsv, line 3"),
    ]
    fields = Fields(id_field="pid", title_field="name", text_field="passage")
    source = source_of("p.tsv", "pid\tpassage\tname\r\n9\tBody\tN\r\n", fields=fields)
    assert documents(source) == [Document("9", "N", "Body", {}, None, True, "p.tsv, line 2")]


def test_three_columns_without_names_are_id_text_and_title() -> None:
    source = source_of("p.tsv", "1\tBody\tTitle\n\n2\tMore\tTitle", "dpr")
    assert [(document.id, document.title, document.text) for document in documents(source)] == [
        ("1", "Title", "Body"),
        ("2", "Title", "More"),
    ]
    with pytest.raises(SourceError) as caught:
        source_of("p.tsv", "1\tBody\n", "dpr")
    assert caught.value.where == "p.tsv, line 1"


def test_a_bad_row_is_named_with_its_line_and_the_next_is_read() -> None:
    raw = b"id\ttext\ttitle\n1\tonly two\n2\tcaf\xe9\tT\n3\ta\rb\tT\n4\t \t\n5\tfine\tT\n"
    source = source_of("p.tsv", raw)
    assert problems(source) == [
        "The row has 2 columns.\nWhere: p.tsv, line 2\nAllowed: 3: id, text, title\n"
        f"Do: Check its quotes. {FIX}",
        f"The row is not UTF-8 (byte 6 of line 3).\nWhere: p.tsv, line 3\nDo: {FIX}",
        "The row cannot be read (new-line character seen in unquoted field).\n"
        f"Where: p.tsv, line 4\nDo: {FIX}",
        f"There is neither text nor title.\nWhere: p.tsv, line 5\nDo: {FIX}",
    ]
    assert resumes(source)


def test_an_unclosed_quote_ends_the_reading() -> None:
    source = source_of("p.tsv", 'id\ttext\ttitle\n1\ta\tT\n2\t"b\tT\n3\tc\tT\n')
    with pytest.raises(SourceError) as caught:
        documents(source)
    assert caught.value.where == "p.tsv, line 3"


def test_a_field_may_be_longer_than_the_csv_module_allows_by_itself() -> None:
    source = source_of("p.tsv", table([ROWS[0], ["1", 'a "b" ' * 100_000, "T"]]))
    assert len(documents(source)[0].text) == 600_000


def test_documents_and_pre_chunked_passages_are_not_mixed() -> None:
    Path("p.tsv").write_text(table(ROWS))
    Path("k.json").write_text(lines(ARTICLE))
    with pytest.raises(SourceError) as caught:
        build_index(["p.tsv", "k.json"], "index", BuildOptions())
    assert str(caught.value) == (
        "Pre-chunked passages and documents cannot be in one index.\n"
        "Where: p.tsv (dpr), k.json (kilt)\nDo: Build an index for each."
    )


# BEIR

CORPUS = (
    {"_id": "MED-1", "title": "Salt", "text": "On salt.", "metadata": {"url": "u", "year": 1704}},
    {"_id": "MED-2", "title": "", "text": "On mills.", "metadata": {}},
)


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz"])
def test_a_beir_folder_is_recognised_by_its_corpus(name: str) -> None:
    raw = lines(*CORPUS).encode()
    Path("nf/qrels").mkdir(parents=True)
    Path("nf/queries.jsonl").write_text('{"_id": "q", "text": "not this"}')
    Path("nf/README.md").write_text("nor this")
    Path("nf", name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    source = source_at("nf/", metadata="year:number")
    assert (source.format, source.recognised, source.name) == ("beir", True, f"nf/{name}")
    assert documents(source) == [
        Document("MED-1", "Salt", "On salt.", {"year": 1704}, where=f"nf/{name}, line 1"),
        Document("MED-2", "", "On mills.", where=f"nf/{name}, line 2"),
    ]
    assert resumes(source)
    assert source_at(f"nf/{name}").format == source_at("nf", "beir").format == "beir"


def test_a_folder_with_another_corpus_file_stays_a_folder_of_files() -> None:
    Path("notes").mkdir()
    Path("notes/a.md").write_text("text")
    Path("notes/corpus.jsonl").write_text('{"id": "1", "text": "a"}')
    assert source_at("notes").format == "files"
    with pytest.raises(SourceError, match=r'^There is no field "_id"\.'):
        documents(source_at("notes", "beir"))


def test_a_folder_without_a_corpus_is_no_beir_folder() -> None:
    Path("nf").mkdir()
    with pytest.raises(SourceError) as caught:
        source_at("nf", "beir")
    assert str(caught.value) == (
        "There is no corpus.jsonl in the folder.\nWhere: nf\n"
        "Allowed: `format`: files for a folder of files, text for one of plain text, beir"
        " for one with corpus.jsonl, anserini for a Lucene index\n"
        "Do: Give the files themselves as sources."
    )


def test_of_two_corpora_of_a_beir_folder_the_unpacked_one_is_read() -> None:
    Path("nf").mkdir()
    Path("nf/corpus.jsonl").write_text(lines(*CORPUS))
    Path("nf/corpus.jsonl.gz").write_bytes(b"")
    source = source_at("nf")
    assert source.format == "beir"
    assert len(documents(source)) == len(CORPUS)

"""Lucene indexes of Anserini and Pyserini as corpora, with and without the text of documents."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from arag_search.corpus import Document
from arag_search.engines.lucene.jvm import java
from arag_search.errors import SourceError
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.sources.lines.files import Fields
from tests.support.corpus_files import FIX, documents, in_own_folder, problems, resumes, source_at  # noqa: F401

TABLES = Path(__file__).parents[1] / "support" / "tables"
DOCUMENT = "org.apache.lucene.document"


def write(
    name: str, records: Sequence[Mapping[str, Any]], *, stored: bool = True, delete: str = ""
) -> None:
    """Write a Lucene index as Anserini does: ``id`` and stored fields, two documents a segment."""
    path = java("java.nio.file.Path").of(str(Path(name).absolute()))
    directory = java("org.apache.lucene.store.FSDirectory").open(path)
    config = java("org.apache.lucene.index.IndexWriterConfig")()
    config.setMergePolicy(java("org.apache.lucene.index.NoMergePolicy").INSTANCE)
    writer = java("org.apache.lucene.index.IndexWriter")(directory, config)
    yes = java(f"{DOCUMENT}.Field$Store").YES
    for number, record in enumerate(records):
        document = java(f"{DOCUMENT}.Document")()
        for key, value in record.items():
            if key == "id":
                document.add(java(f"{DOCUMENT}.StringField")(key, value, yes))
            elif stored:
                document.add(java(f"{DOCUMENT}.StoredField")(key, value))
        writer.addDocument(document)
        if number % 2:
            writer.flush()
    if delete:
        writer.deleteDocuments([java("org.apache.lucene.index.Term")("id", delete)])
    writer.close()
    directory.close()


def test_raw_objects_are_documents_in_the_order_of_the_index() -> None:
    raw = '{"id": "%s", "contents": "Text %s", "title": "T", "year": 1704, "url": "u"}'
    write("index", [{"id": name, "raw": raw % (name, name)} for name in "edcba"], delete="d")
    source = source_at("index", metadata="year:number")
    assert (source.format, source.recognised) == ("anserini", True)
    assert documents(source) == [
        Document(name, "T", f"Text {name}", {"year": 1704}, where=f"index, document {number}")
        for number, name in ((0, "e"), (2, "c"), (3, "b"), (4, "a"))
    ]
    assert resumes(source)
    assert source.bytes_read == source.size > 0


def test_text_may_be_stored_as_contents_or_plainly_or_in_another_field() -> None:
    write("index", [{"id": "1", "contents": "Caf\u0065\u0301", "title": "T", "year": 1704}])
    assert documents(source_at("index", metadata="year:number")) == [
        Document("1", "T", "Café", {"year": 1704}, where="index, document 0")
    ]
    write("plain", [{"id": "1", "raw": "{plain} text"}, {"id": "2", "raw": "<DOC>x</DOC>"}])
    assert [document.text for document in documents(source_at("plain"))] == [
        "{plain} text",
        "<DOC>x</DOC>",
    ]
    write("other", [{"id": "1", "raw": '{"abstract": "A", "name": "N", "text": "no"}'}])
    fields = Fields(title_field="name", text_field="abstract")
    assert documents(source_at("other", fields=fields)) == [
        Document("1", "N", "A", where="other, document 0")
    ]


def test_a_document_without_text_among_others_is_named() -> None:
    write("index", [{"id": "1", "contents": "a"}, {"id": "2"}, {"contents": "c"}])
    assert problems(source_at("index")) == [
        'There is no field "text".\nWhere: index, document 1\n'
        "Allowed: one of the existing fields: id\n"
        f"Do: Name the field of the text with `text_field`. {FIX}",
        'There is no field "id".\nWhere: index, document 2\n'
        "Allowed: one of the existing fields: contents\n"
        f"Do: Name the field of the id with `id_field`. {FIX}",
    ]


def test_an_index_that_stores_no_text_is_refused_with_advice() -> None:
    write("index", [{"id": "1", "contents": "a"}], stored=False)
    with pytest.raises(SourceError) as caught:
        source_at("index")
    advice = (
        "Do: Build it again with --storeRaw or --storeContents, or give the original collection"
        " as the source. `text_field` names another field."
    )
    assert str(caught.value) == (
        "The Lucene index does not store the text of its documents (raw or contents).\n"
        f"Where: index\nAllowed: one of the fields it stores: id\n{advice}"
    )
    write("raw", [{"id": "1", "raw": '{"name": "N"}'}])
    with pytest.raises(SourceError) as caught:
        source_at("raw", fields=Fields(text_field="body"))
    assert str(caught.value) == (
        "The Lucene index does not store the field body.\nWhere: raw\n"
        f"Allowed: one of the fields it stores: id, raw\n{advice}"
    )
    write("empty", [])
    with pytest.raises(SourceError, match=r"^The Lucene index is empty\.\nWhere: empty$"):
        source_at("empty")


def test_a_folder_or_file_without_an_index_is_refused() -> None:
    Path("folder").mkdir()
    with pytest.raises(SourceError) as caught:
        source_at("folder", "anserini")
    assert str(caught.value) == (
        "There is no Lucene index in the folder.\nWhere: folder\n"
        "Allowed: a folder with a file segments_..."
    )
    Path("file.jsonl").write_text("{}")
    with pytest.raises(SourceError) as caught:
        source_at("file.jsonl", "anserini")
    assert str(caught.value) == (
        "A file cannot be read as anserini.\nWhere: file.jsonl\nAllowed: a folder: a Lucene index"
    )


def test_a_damaged_index_is_reported() -> None:
    write("index", [{"id": "1", "contents": "a"}])
    for path in Path("index").glob("_*"):
        path.unlink()
    with pytest.raises(SourceError, match=r"^The Lucene index cannot be read \(.*\nWhere: index\n"):
        source_at("index")


def test_an_index_of_lucene_9_is_read() -> None:
    ZipFile(TABLES / "lucene_9.zip").extractall("index")
    report = build_index(["index"], "ours", BuildOptions(metadata={"year": "number"}))
    assert (report.documents, report.sources) == (3, (("index", "anserini"),))
    assert documents(source_at("index"))[1] == Document(
        "doc1", "", "A sea chart of 1502.", where="index, document 1"
    )


def test_an_index_of_lucene_8_is_refused_with_advice() -> None:
    ZipFile(TABLES / "lucene_8.zip").extractall("index")
    with pytest.raises(SourceError, match=r"does not read \(.*Lucene version 8") as caught:
        source_at("index")
    assert caught.value.allowed.startswith("indexes of Lucene 9 and 10, up to 10.")


def test_a_changed_index_is_a_different_source() -> None:
    write("index", [{"id": "1", "contents": "a"}])
    before = source_at("index").signature()
    shutil.rmtree("index")
    write("index", [{"id": "1", "contents": "b"}, {"id": "2", "contents": "c"}])
    assert source_at("index").signature() != before

"""Exported documents, which become the same passages again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag_search.corpus import Document, Unit, nfc
from arag_search.errors import SourceError
from arag_search.manifest import Manifest
from arag_search.search.reading.documents import IndexDocument
from index_jobs.build.export import build_command, record_of
from index_jobs.cutting.chunking import cut
from index_jobs.sources.lines.files import Fields
from index_jobs.sources.lines.formats import Documents, PreChunked, joined
from index_jobs.sources.metadata import MetadataReader
from tests.support.oracle.engine import MemoryEngine

METADATA: Any = {"year": "number", "lang": "keyword", "day": "date", "draft": "boolean"}
MANIFEST = MemoryEngine([], metadata=METADATA).manifest
PIECES = (
    "Antonio Vivaldi was born in Venice. ", "Dr. No met J. S. Bach. ", ' He said "no. ', "\n\n",
    "山田さんは東京に行った。", "それから帰った。", "word " * 20, "x" * 90, "\t", "😀 ",
    "I caffe\u0301 di Roma", "a\u0300",
)  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join)
metadata = st.fixed_dictionaries(
    {},
    optional={
        "year": st.sampled_from([1678, 0.5, -3]),
        "lang": st.sampled_from([("en", "it"), "fr", "caf\u00e9"]),
        "day": st.just("1678-03"),
        "draft": st.sampled_from([True, False, (True, False)]),
    },
)


def manifest_of(chunk_tokens: int, *, already_chunked: bool = False) -> Manifest:
    return replace(MANIFEST, chunk_tokens=chunk_tokens, already_chunked=already_chunked)


def read_again(document: Document, manifest: Manifest) -> tuple[dict[str, Any], IndexDocument]:
    """Cut, export, read and cut a document; return its record, and what became of that."""
    tokens = manifest.chunk_tokens
    first, _ = cut(document, shard=0, number=0, chunk_tokens=tokens)
    record = json.loads(json.dumps(record_of(IndexDocument(tuple(first)), manifest)))
    kind = PreChunked if manifest.already_chunked else Documents
    again = kind("file", Fields(), MetadataReader(METADATA)).document(record, 1, "line 1")
    chunks, _ = cut(again, shard=0, number=0, chunk_tokens=tokens)
    assert chunks == first
    return record, IndexDocument(tuple(chunks))


def test_a_document_with_an_outline_becomes_the_same_passages() -> None:
    text = "## Use\n$ run\n$ stop\n## Links\n- a\n- b\n" + "A setting of the server. " * 30
    outline = (
        Unit(0, 3, "section", "Use"),
        Unit(1, 3, "block"),
        Unit(3, 6, "section", "Links"),
        Unit(4, 6, "index"),
    )
    values: Any = {"passage_kind": "text"}
    document = Document("a.md", "T", text, values, is_file=True, outline=outline, beside=("b",))
    chunks, _ = cut(document, shard=0, number=0, chunk_tokens=16)
    manifest = manifest_of(16)
    record = json.loads(json.dumps(record_of(IndexDocument(tuple(chunks)), manifest)))
    assert record["passage_outlines"][0] == {
        "sentences": 3, "path": "Use", "line": 1, "units": [[0, 3, "Use"]], "beside": ["b"],
    }  # fmt: skip
    assert record["passage_kind"] == "text"
    reader = Documents("f", Fields(), MetadataReader({"passage_kind": "keyword"}))
    again = reader.document(record, 1, "line 1")
    assert cut(again, shard=0, number=0, chunk_tokens=16)[0] == chunks
    whole = {"sentences": len(record["sentence_ends"])}
    for wrong in (3, [], [{"sentences": 1}], [{**whole, "units": [[2, 1, "a"]]}]):
        with pytest.raises(SourceError, match="passage_outlines"):
            reader.document({**record, "passage_outlines": wrong}, 1, "line 1")


@given(texts, metadata, st.sampled_from([16, 40, 1000]))
def test_a_document_of_text_becomes_the_same_passages(
    text: str, values: dict[str, Any], chunk_tokens: int
) -> None:
    # As a reader of a source makes it: in NFC, and empty if there is only white space.
    text = "" if text.isspace() else nfc(text)
    document = Document("a/1.md", "Title" * (not text), text, values)
    record, again = read_again(document, manifest_of(chunk_tokens))
    assert "sentence_ends" not in record
    assert (again.text, record["text"], dict(again.metadata)) == (text, text, values)


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8), st.sampled_from([16, 40, 1000]))
def test_a_document_with_its_own_sentences_keeps_them(
    sentences: list[str], chunk_tokens: int
) -> None:
    text, ends = joined([nfc(sentence) for sentence in sentences if not sentence.isspace()])
    document = Document("p", "Title", text, {}, ends)
    read_again(document, manifest_of(chunk_tokens))


@given(texts, st.booleans())
def test_a_pre_chunked_passage_keeps_its_id_and_is_not_cut(text: str, by_line: bool) -> None:
    text = "" if text.isspace() else nfc(text)
    ends = (len(text),) if by_line and text else None
    document = Document("7", "Title", text, {}, ends, whole=True)
    record, again = read_again(document, manifest_of(16, already_chunked=True))
    assert [chunk.id for chunk in again.chunks] == ["7"]
    assert PreChunked.recognises(record, Fields())
    assert not PreChunked.recognises({"id": "7", "text": text}, Fields())


@pytest.mark.parametrize("ends", [[3], [2, 2, 4], [0, 4], [4, 2], ["4"], [True, 4], 4, [], [4.0]])
def test_ends_of_sentences_that_do_not_fit_the_text_are_a_fault_of_the_record(ends: object) -> None:
    reader = Documents("file", Fields(), MetadataReader({}))
    with pytest.raises(SourceError, match='The field "sentence_ends" does not fit the text'):
        reader.document({"text": "abcd", "sentence_ends": ends}, 1, "line 1")
    assert reader.document({"text": "abcd", "sentence_ends": [1, 4]}, 1, "").sentence_ends == (1, 4)
    assert reader.document({"text": "abcd", "sentence_ends": None}, 1, "").sentence_ends is None


def test_the_command_builds_with_the_settings_of_the_index() -> None:
    manifest = replace(manifest_of(40), k1=0.9, b=0.4, without=("sentences",))
    assert build_command("my file.jsonl", manifest) == (
        "arag-search index 'my file.jsonl' --to INDEX --metadata "
        "year:number,lang:keyword,day:date,draft:boolean --chunk-tokens 40 --bm25 0.9,0.4 "
        "--without sentences"
    )
    plain = replace(manifest_of(1000), metadata={})
    assert build_command("d.jsonl", plain) == "arag-search index d.jsonl --to INDEX"

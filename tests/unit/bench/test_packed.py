"""Packing published passages into longer documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arag_search.corpus import Document
from arag_search.errors import SourceError
from arag_search.tokens import count_tokens
from bench import BenchError
from bench.quality.packed import Packing, documents_of, pack, packed_corpus


def document(number: int, words: int, title: str | None = None) -> Document:
    return Document(f"d{number}", f"T{number}" if title is None else title, "word " * words)


def test_passages_are_packed_in_order_up_to_the_tokens() -> None:
    documents = [document(number, 20) for number in range(7)]
    packed = list(pack(documents, Packing(80)))
    assert [document.title for document in packed] == ["T0; T1; T2", "T3; T4; T5", "T6"]
    assert [document.id for document in packed] == ["packed-1", "packed-2", "packed-3"]
    assert all(count_tokens(document.text) <= 80 for document in packed)


def test_titles_are_in_the_text_and_above_it() -> None:
    (packed,) = pack([document(1, 1, "A"), document(2, 1, ""), document(3, 1, "B")], Packing(99))
    assert packed.title == "A; B"
    assert packed.text == "A\nword \n\nword \n\nB\nword "


def test_a_passage_that_is_too_long_alone_stays_whole() -> None:
    packed = list(pack([document(1, 5), document(2, 500), document(3, 5)], Packing(50)))
    assert [result.title for result in packed] == ["T1", "T2", "T3"]
    assert list(pack([], Packing(50))) == []


def test_levels_name_packings() -> None:
    assert Packing.of("published") is None
    assert Packing.of("packed 500") == Packing(500)
    with pytest.raises(BenchError) as caught:
        Packing.of("packed 0")
    assert str(caught.value) == (
        '"packed 0" is not a packing of passages.\n'
        'Allowed: "published", or "packed N" with N tokens a document'
    )


def test_a_packed_corpus_is_written_again_only_if_it_changed(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"title": "A", "text": "Eins."}\n{"title": "B", "sentences": ["Zwei."]}\n')
    with pytest.raises(SourceError, match="line 2"):
        list(documents_of(corpus))
    corpus.write_text('{"title": "Ä", "text": "Eins."}\n{"title": "B", "text": "Zwei."}\n')
    path = packed_corpus(corpus, tmp_path / "packed", Packing(100))
    assert json.loads(path.read_text("utf-8")) == {
        "id": "packed-1", "title": "Ä; B", "text": "Ä\nEins.\n\nB\nZwei.",
    }  # fmt: skip
    before = path.stat().st_mtime_ns
    packed_corpus(corpus, tmp_path / "packed", Packing(100))
    assert path.stat().st_mtime_ns == before
    packed_corpus(corpus, tmp_path / "packed", Packing(9))
    assert len(path.read_text("utf-8").splitlines()) == 2


def test_a_missing_corpus_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        packed_corpus(tmp_path / "none.jsonl", tmp_path, Packing(10))

"""Searches by vectors of a real model, over the sample corpus as the command embeds it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from arag_search.cli.app import run
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from tests.support.commands import SAMPLE

ARTICLES = 12


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, minilm: str) -> Iterator[Index]:
    """Index and embed the first articles of the sample, among them that of Vivaldi."""
    folder = tmp_path_factory.mktemp("model")
    lines = Path(SAMPLE).read_text("utf-8").splitlines(keepends=True)
    (folder / "some.jsonl").write_text("".join(lines[:ARTICLES]), "utf-8")
    location = str(folder / "index")
    with contextlib.redirect_stdout(io.StringIO()):
        assert run(["index", str(folder / "some.jsonl"), "--to", location, "--metadata",
                    "year:number,kind:keyword"]) == 0  # fmt: skip
        assert run(["embed", location, "--encoder", minilm, "--no-sentence-titles"]) == 0
    with open_index(location) as opened:
        yield opened


def test_a_passage_is_found_by_its_meaning(index: Index) -> None:
    question = "In which town was the composer of the Four Seasons born?"
    for result in (
        index.semantic_search(question, filter="kind:person"),
        index.hybrid_search(question, filter="kind:person"),
        index.hybrid_search(question, filter="kind:person", vectors="sentence"),
    ):
        assert result.hits[0].id == "vivaldi.1"
        assert {hit.metadata["kind"] for hit in result.hits} == {"person"}
    nearest = index.semantic_search(question, filter="kind:person").hits[0]
    assert "born in Venice" in nearest.snippet
    assert 0.4 < nearest.score < 1
    assert index.open_vectors().encoder.identity.dimension == 384


def test_a_sentence_of_the_corpus_is_nearest_to_itself(index: Index) -> None:
    for chunk in list(index.scan())[::4]:
        sentence = chunk.sentences()[0].strip()
        hit = index.semantic_search(sentence, top_k=1).hits[0]
        assert (hit.id, hit.score) == (chunk.id, pytest.approx(1, abs=1e-5))
        text = f"{chunk.title}\n{chunk.content}"
        assert index.naive_embedding_search(text[:2000], top_k=1).hits[0].id == chunk.id

"""Sentences below the title of their passage: in new vectors, and not in those that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from arag_search.errors import VectorsMismatchError
from arag_search.search.opening import open_index
from arag_search.search.reading.snippets import NearPassage
from arag_search.vectors.base import row_key, rows_of
from index_jobs.build.new_index import build_index
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.options import EmbedOptions
from index_jobs.updates.addition import add_documents
from index_jobs.updates.options import AddOptions
from tests.support.builds import PLAIN, in_own_folder  # noqa: F401
from tests.support.commands import file_of
from tests.support.embeddings import ENCODER, InterruptingProgress, fitting
from tests.support.passages import chunk

TITLED = chunk(0, "d", "Blue Door", "It is a film. ", "Ann Lee made it.")
USUAL = EmbedOptions(batch_size=1)


def build(count: int = 12) -> None:
    rows = [
        {"id": f"d{number}", "title": f"Film {number}", "text": f"It ran {number} days. Nice."}
        for number in range(count)
    ]
    build_index([file_of("films.jsonl", *rows)], Path("index"), PLAIN)


def has_titles() -> bool:
    return fitting()[1].record.sentence_titles


def test_a_row_of_a_sentence_has_the_title_above_it_if_wanted_and_if_there_is_one() -> None:
    assert [text for _, text in rows_of(TITLED, "sentence", sentence_titles=True)] == [
        "Blue Door\nIt is a film.",
        "Blue Door\nAnn Lee made it.",
    ]
    bare = chunk(0, "d", "", "It is a film.")
    for unit in ("sentence", "passage"):
        assert rows_of(bare, unit, sentence_titles=True) == rows_of(bare, unit)
    passage = rows_of(TITLED, "passage")
    assert rows_of(TITLED, "passage", sentence_titles=True) == passage


@pytest.mark.parametrize("titles", [True, False])
def test_a_row_proves_that_it_is_of_the_present_text_and_title(titles: bool) -> None:
    (_, text), *_ = rows_of(TITLED, "sentence", sentence_titles=titles)
    near = NearPassage(TITLED.ordinal, 1.0, (0,), (row_key(text),))
    assert near.is_of(TITLED)
    assert not near.is_of(chunk(0, "d", "Blue Door", "It was a film. ", "Ann Lee made it."))
    renamed = chunk(0, "d", "Red Door", "It is a film. ", "Ann Lee made it.")
    assert near.is_of(renamed) is not titles


def test_new_vectors_have_titles_and_later_ones_are_as_those_before() -> None:
    build()
    embed_index("index", ENCODER, USUAL)
    assert has_titles()
    with open_index("index") as index:
        hit = index.semantic_search("Film 7\nIt ran 7 days.", top_k=1).hits[0]
    assert (hit.doc_id, hit.score) == ("d7", pytest.approx(1))
    added = file_of("new.jsonl", {"id": "n", "title": "New", "text": "It ran. Nice."})
    add_documents([added], "index", AddOptions(embed=False))
    report = embed_index("index", ENCODER, USUAL)
    assert (report.encoded_rows, report.reused_rows) == (3, 36)
    assert embed_index("index", ENCODER, USUAL).up_to_date


def test_vectors_without_titles_stay_so_unless_they_are_made_again() -> None:
    build()
    embed_index("index", ENCODER, EmbedOptions(sentence_titles=False))
    assert embed_index("index", ENCODER, USUAL).up_to_date
    assert not has_titles()
    with pytest.raises(VectorsMismatchError, match="sentence titles True instead of False"):
        embed_index("index", ENCODER, EmbedOptions(sentence_titles=True))
    report = embed_index("index", ENCODER, EmbedOptions(sentence_titles=True, overwrite=True))
    assert report.encoded_rows == 36
    assert has_titles()
    assert embed_index("index", ENCODER, USUAL).up_to_date


@pytest.mark.parametrize("titles", [None, True, False])
def test_an_interrupted_embedding_continues_as_it_began(titles: bool | None) -> None:
    build(60)
    options = EmbedOptions(sentence_titles=titles, batch_size=1)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, options, InterruptingProgress(60))
    assert embed_index("index", ENCODER, USUAL).reused_rows == (61 if titles is False else 64)
    assert has_titles() is (titles is not False)

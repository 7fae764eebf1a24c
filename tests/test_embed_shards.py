"""Chunks are cut into shards of rows, and each is written whole."""

from pathlib import Path

import numpy as np
import pytest

from arag_search.corpus import MAX_SENTENCES
from arag_search.vectors.base import VECTOR_UNITS
from arag_search.vectors.encoders.choose import open_encoder
from arag_search.vectors.shards import shard_file, vectors_role
from index_jobs.embed_shards import cut_shards, make_shard
from tests.embeddings import ENCODER
from tests.lucene_indexes import chunk

pytestmark = pytest.mark.engine


def test_chunks_are_cut_into_shards_of_whole_chunks_always_the_same() -> None:
    chunks = [chunk(number, "One two.\nThree.\n...\n", title="T") for number in range(5)]
    shards = list(cut_shards(chunks, VECTOR_UNITS, 7))
    assert [len(shard.chunks) for shard in shards] == [2, 2, 1]
    assert [shard.number for shard in shards] == [0, 1, 2]
    assert shards[2].texts == {
        "sentence": ["One two.", "Three."],
        "passage": ["T\nOne two.\nThree.\n...\n"],
    }
    assert [shard.texts for shard in cut_shards(iter(chunks), VECTOR_UNITS, 7)] == [
        shard.texts for shard in shards
    ]


def test_a_chunk_with_more_rows_than_a_shard_is_one_of_its_own(tmp_path: Path) -> None:
    large = chunk(1, "a\n" * MAX_SENTENCES)
    shards = list(cut_shards([chunk(0, "b\n"), large, chunk(2, "c\n")], VECTOR_UNITS, 10))
    assert [shard.rows for shard in shards] == [2, MAX_SENTENCES + 1, 2]
    encoder = open_encoder(ENCODER)
    record = make_shard(
        shards[1], encoder.encode, encoder.identity, tmp_path, piece_rows=100, dtype="float32"
    )
    assert record.rows == {"sentence": MAX_SENTENCES, "passage": 1}
    found = np.load(shard_file(tmp_path, 1, vectors_role("sentence")))
    np.testing.assert_array_equal(found, encoder.encode(["a"] * MAX_SENTENCES))


def test_a_shard_without_a_row_is_written_too(tmp_path: Path) -> None:
    (shard,) = cut_shards([chunk(0, ""), chunk(1, "...\n")], VECTOR_UNITS, 10)
    encoder = open_encoder(ENCODER)
    record = make_shard(
        shard, encoder.encode, encoder.identity, tmp_path, piece_rows=10, dtype="float16"
    )
    assert (record.chunks, record.rows) == (2, {"sentence": 0, "passage": 0})
    found = np.load(shard_file(tmp_path, 0, vectors_role("passage")))
    assert (found.shape, found.dtype) == ((0, 16), np.float16)

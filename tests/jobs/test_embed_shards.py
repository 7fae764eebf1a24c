"""The texts that need a vector are cut into shards, and each is written whole."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from arag_search.vectors.base import VECTOR_UNITS, VectorUnit, row_key
from arag_search.vectors.encoders.choose import open_encoder
from arag_search.vectors.storage.shards import StoredShard, shard_file, vectors_role
from index_jobs.embedding.making import TO_ENCODE, Wanted, cut_shards, make_shard
from tests.support.embeddings import ENCODER


def to_encode(*sentences: str, passage: str = "P") -> Wanted:
    """Return the rows of a chunk, none of which has a vector yet."""
    return {
        "sentence": [(text, TO_ENCODE) for text in sentences],
        "passage": [(passage, TO_ENCODE)],
    }


def no_copies(unit: VectorUnit, rows: Sequence[int]) -> np.ndarray:
    raise AssertionError("a vector was copied")


def test_texts_are_always_cut_into_the_same_shards_of_whole_chunks() -> None:
    chunks = [to_encode("One two.", "Three.", passage=f"P{number}") for number in range(5)]
    shards = list(cut_shards(chunks, VECTOR_UNITS, 7, no_copies, 4))
    assert [shard.rows for shard in shards] == [6, 6, 3]
    assert [shard.number for shard in shards] == [4, 5, 6]
    assert shards[2].texts == {"sentence": ["One two.", "Three."], "passage": ["P4"]}
    repeated = cut_shards(iter(chunks), VECTOR_UNITS, 7, no_copies, 4)
    assert [shard.texts for shard in repeated] == [shard.texts for shard in shards]


def test_a_chunk_with_more_rows_than_a_shard_gets_its_own_shard(tmp_path: Path) -> None:
    chunks = [to_encode("b"), to_encode(*["a"] * 30), to_encode("c")]
    shards = list(cut_shards(chunks, VECTOR_UNITS, 10, no_copies))
    assert [shard.rows for shard in shards] == [2, 31, 2]
    encoder = open_encoder(ENCODER)
    record = make_shard(
        shards[1], encoder.encode, encoder.identity, tmp_path, piece_rows=7, dtype="float32"
    )
    assert record.rows == {"sentence": 30, "passage": 1}
    vectors = np.load(shard_file(tmp_path, 1, vectors_role("sentence")))
    np.testing.assert_array_equal(vectors, encoder.encode(["a"] * 30))
    keys = StoredShard(tmp_path, record).keys("sentence")
    assert {key.tobytes() for key in keys} == {row_key("a")}


def test_known_vectors_are_copied_and_only_the_others_encoded(tmp_path: Path) -> None:
    encoder = open_encoder(ENCODER)
    known_vectors = encoder.encode(["zero", "one", "two"])
    chunk: Wanted = {
        "sentence": [("two", 2), ("new", TO_ENCODE), ("one", 1)],
        "passage": [("two one", TO_ENCODE)],
    }
    (shard,) = cut_shards([chunk], VECTOR_UNITS, 10, lambda _, rows: known_vectors[list(rows)])
    assert shard.rows == 4
    encoded_texts: list[str] = []

    def encode(texts: Sequence[str]) -> np.ndarray:
        encoded_texts.extend(texts)
        return encoder.encode(texts)

    make_shard(shard, encode, encoder.identity, tmp_path, piece_rows=1, dtype="float32")
    assert encoded_texts == ["new", "two one"]
    vectors = np.load(shard_file(tmp_path, 0, vectors_role("sentence")))
    np.testing.assert_array_equal(vectors, encoder.encode(["two", "new", "one"]))


def test_without_texts_to_encode_there_are_no_shards() -> None:
    assert list(cut_shards([], VECTOR_UNITS, 10, no_copies)) == []

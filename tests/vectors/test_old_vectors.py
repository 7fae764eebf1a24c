"""Indexes and vectors of version 0.1.0: opened, refused, checked, and converted."""

import json
import random
from pathlib import Path

import pytest

from arag_search.errors import VectorsStaleError, VectorsVersionError
from arag_search.manifest import CorpusDigest, fingerprint_hex
from arag_search.search.index import open_index
from arag_search.vectors.storage.shards import shard_file
from index_jobs.build.new_index import build_index
from index_jobs.embedding.job import embed_index
from index_jobs.updates.addition import add_documents
from index_jobs.updates.deletion import delete_documents
from tests.support.builds import OVERWRITE, in_own_folder  # noqa: F401
from tests.support.commands import Command, file_of
from tests.support.embeddings import (
    ENCODER,
    SMALL,
    NotingProgress,
    build_small_index,
    check_rows_of_live_chunks,
)
from tests.support.old_vectors import forget_placement, write_old_vectors


def shuffle(documents: int = 40) -> None:
    """Build the index again from the same documents in another order."""
    lines = Path("index.jsonl").read_text().splitlines()[:documents]
    random.Random(5).shuffle(lines)
    build_index([file_of("shuffled.jsonl", *lines)], Path("index"), OVERWRITE)


def test_an_index_without_a_placement_is_searched_and_the_next_update_or_embedding_adds_it() -> (
    None
):
    for change in (
        lambda: delete_documents("index", ["d3"]),
        lambda: add_documents([file_of("n.jsonl", {"id": "n", "text": "New."})], "index"),
        lambda: embed_index("index", ENCODER, SMALL),
    ):
        build_small_index(20) if not Path("index").exists() else build_index(
            ["index.jsonl"], Path("index"), OVERWRITE
        )
        forget_placement("index")
        with open_index("index") as index:
            assert index.manifest.placement == ""
            assert index.logical_search("sea").total == 20
        change()
        with open_index("index") as index:
            placement = fingerprint_hex(CorpusDigest.of(index.scan()).placement)
            assert index.manifest.placement == placement


def test_old_vectors_are_refused_with_the_command_that_converts_them() -> None:
    build_small_index(20)
    folder = write_old_vectors("index", ENCODER)
    with open_index("index") as index, pytest.raises(VectorsVersionError) as raised:
        index.semantic_search("sea")
    assert str(raised.value) == (
        f"The vectors have format version 1.\nWhere: {folder}\nAllowed: version 2\n"
        "Do: Run arag-search embed index: it checks and converts vectors of version 1, and "
        "encodes all others again."
    )
    forget_placement("index")
    with open_index("index", allow_stale=True) as index, pytest.raises(VectorsVersionError):
        index.semantic_search("sea")
    embed_index("index", None, SMALL)
    forget_placement("index")
    with open_index("index", allow_stale=True) as index, pytest.raises(VectorsStaleError):
        index.semantic_search("sea")


def test_old_vectors_are_converted_without_encoding() -> None:
    build_small_index(40)
    folder = write_old_vectors("index", ENCODER)
    forget_placement("index")
    noting = NotingProgress()
    report = embed_index("index", None, SMALL, noting)
    assert noting.notes == [
        "Adding the placement of the passages to the manifest of the index.",
        f"Loading the encoder {ENCODER}.",
        "Converted vectors from format version 1.",
        "Reusing the vectors of 160 of 160 texts.",
    ]
    assert (report.encoded_rows, report.reused_rows) == (0, 160)
    check_rows_of_live_chunks()
    old_file, new_file = (
        shard_file(path, 0, "sentence.npy") for path in (folder, Path(report.sidecar))
    )
    assert old_file.samefile(new_file)
    assert embed_index("index", None, SMALL).up_to_date


def test_after_a_new_build_old_vectors_of_sentences_are_encoded_again() -> None:
    # Nothing proves that the previous build split the same text into the same sentences.
    build_small_index(40)
    write_old_vectors("index", ENCODER, created="2000-01-01T00:00:00+00:00")
    shuffle()
    forget_placement("index")
    report = embed_index("index", None, SMALL)
    assert (report.encoded_rows, report.reused_rows) == (120, 40)
    check_rows_of_live_chunks()


def test_of_old_vectors_only_those_of_unchanged_passages_are_reused() -> None:
    build_small_index(40)
    write_old_vectors("index", ENCODER)
    lines = [json.loads(line) for line in Path("index.jsonl").read_text().splitlines()]
    lines[4]["text"] = "Another text."
    lines[9]["title"] = "Another title"
    build_index([file_of("c.jsonl", *lines)], Path("index"), OVERWRITE)
    report = embed_index("index", None, SMALL)
    # The sentences of the passage with another title are encoded too: its fingerprint differs.
    assert report.encoded_rows == 2 + 3  # "Sea." occurs in other passages too.
    check_rows_of_live_chunks()


def test_old_vectors_that_are_damaged_are_not_converted() -> None:
    build_small_index(20)
    folder = write_old_vectors("index", ENCODER)
    path = shard_file(folder, 1, "fingerprints.npy")
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    noting = NotingProgress()
    report = embed_index("index", None, SMALL, noting)
    assert (report.remade_shards, report.encoded_rows) == (1, 7 * 3)
    assert noting.notes[1].startswith(f"Shard 1 of {folder} is damaged, and its texts are being")
    check_rows_of_live_chunks()


@pytest.mark.parametrize(
    "text", ["{", '{"format_version": 1}', '{"format_version": 1, "shards": 3}']
)
def test_old_vectors_that_cannot_be_read_do_not_prevent_embedding(arag: Command, text: str) -> None:
    build_small_index(5)
    folder = write_old_vectors("index", ENCODER)
    (folder / "vectors.json").write_text(text)
    assert "damaged: " in arag("info", "index", "--checksums").lines[-1]
    assert embed_index("index", ENCODER, SMALL).encoded_rows == 20
    assert arag("info", "index").code == (1 if text == "{" else 0)


def test_info_reports_the_affected_indexes(arag: Command) -> None:
    build_small_index(40)
    write_old_vectors("index", ENCODER)
    intact = arag("info", "index", "--checksums", "--json")
    (vectors,) = intact.json["vectors"]
    assert (intact.code, vectors["affected"], vectors["wrong_passages"]) == (0, False, 0)
    shuffle()
    result = arag("info", "index", "--checksums")
    assert result.code == 1
    assert "AFFECTED: " in result.lines[-1]
    assert "of 40 passages have the vectors of others, and 0 have none" in result.lines[-1]
    two_indexes = arag("info", "index", "index", "--checksums", "--json")
    assert (two_indexes.code, [entry["vectors"][0]["affected"] for entry in two_indexes.json]) == (
        1,
        [True] * 2,
    )
    assert arag("info", "index").lines[-1].endswith("--checksums says whether it was wrong")
    assert "index: format version 1" not in arag("info", "index").out
    embed_index("index", None, SMALL)
    result = arag("info", "index", "--checksums")
    assert result.code == 0
    assert "  verified     counts, checksums, passages and vectors agree" in result.lines
    assert result.lines[-1].endswith("replaced by the above; the folder may be deleted")

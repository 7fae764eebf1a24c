"""Sidecars: published, opened and searched exactly; every kind of damage is an error."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arag_search.errors import (
    ArgumentError,
    IndexClosedError,
    NotServedError,
    VectorsDamagedError,
    VectorsMismatchError,
    VectorsNotFoundError,
    VectorsVersionError,
)
from arag_search.vectors import exact
from arag_search.vectors.base import (
    VECTOR_UNITS,
    EncoderIdentity,
    VectorUnit,
)
from arag_search.vectors.storage.manifest import MANIFEST, VectorManifest
from arag_search.vectors.storage.shards import StoredType, shard_file
from arag_search.vectors.storage.sidecar import open_vectors
from tests.support.examples import examples
from tests.support.passages import chunk
from tests.support.vector_shards import (
    DIMENSION,
    ENCODER,
    PublishedVectors,
    chunks_of,
    manifest_of,
    nearly_equal,
    publish,
    publish_shards,
    unit_vectors,
    verify,
    write_shards,
)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> PublishedVectors:
    """Publish 1,200 chunks of 3 sentences in three shards."""
    return publish(tmp_path_factory.mktemp("flat"), chunks_of(1_200), size=500)


# Searches


@pytest.mark.parametrize("unit", VECTOR_UNITS)
@pytest.mark.parametrize("queries", [1, 2, 7, 64])
def test_flat_search_is_the_exact_cosine_in_order(
    published: PublishedVectors, unit: VectorUnit, queries: int
) -> None:
    query_vectors = unit_vectors(queries, seed=5)
    sidecar = published.open()
    results = sidecar.nearest(unit, query_vectors, 20)
    sidecar.close()
    assert len(results) == queries
    for query, hits in zip(query_vectors, results, strict=True):
        assert nearly_equal(hits, published.expected(unit, query, 20))


def test_half_precision_search_is_the_exact_cosine_of_the_stored_vectors(tmp_path: Path) -> None:
    half = publish(tmp_path, chunks_of(300), size=100, dtype="float16")
    queries = unit_vectors(3, seed=5)
    results = half.open().nearest("sentence", queries, 10)
    for query, hits in zip(queries, results, strict=True):
        assert nearly_equal(hits, half.expected("sentence", query, 10, dtype="float16"))


@given(
    seed=st.integers(0, 1000),
    n=st.sampled_from((1, 3, 10, 100, 5_000)),
    queries=st.sampled_from((1, 5)),
    distinct=st.sampled_from((1, 3, 40, 900)),
)
@settings(max_examples=examples(12))
def test_equal_vectors_are_found_in_corpus_order(
    tied: tuple[Path, Iterator[int]], seed: int, n: int, queries: int, distinct: int
) -> None:
    folder, number = tied
    chunks = chunks_of(300)
    distinct_vectors = unit_vectors(distinct, seed)
    rows = np.random.default_rng(seed).integers(0, distinct, 900)
    vectors = {"sentence": distinct_vectors[rows], "passage": distinct_vectors[rows[:300]]}
    published = publish(folder / f"{next(number)}", chunks, size=110, vectors=vectors)
    sidecar = published.open()
    query_vectors = distinct_vectors[:queries] if queries <= distinct else distinct_vectors[:1]
    for query, hits in zip(
        query_vectors, sidecar.nearest("sentence", query_vectors, n), strict=True
    ):
        assert nearly_equal(hits, published.expected("sentence", query, n))
    sidecar.close()


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Iterator[int]]:
    return tmp_path_factory.mktemp("tied"), iter(range(10_000))


def test_blocks_that_divide_shards_do_not_change_the_results(
    published: PublishedVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "block_rows", lambda *_, **__: 7)
    monkeypatch.setattr(exact, "_RESCORED", 5)
    queries = unit_vectors(3, seed=6)
    for query, hits in zip(queries, published.open().nearest("sentence", queries, 30), strict=True):
        assert nearly_equal(hits, published.expected("sentence", query, 30))


def test_a_search_for_more_rows_than_exist_returns_all_rows(published: PublishedVectors) -> None:
    (hits,) = published.open().nearest("passage", unit_vectors(1), 10_000)
    assert len(hits) == 1_200
    assert published.open().nearest("passage", unit_vectors(0), 5) == []


def test_a_unit_without_rows_finds_nothing(tmp_path: Path) -> None:
    published = publish(tmp_path, [chunk(0, "a", "Title")])
    assert published.open().nearest("sentence", unit_vectors(2), 5) == [[], []]
    assert [hit.ordinal for hit in published.open().nearest("passage", unit_vectors(1), 5)[0]] == [
        0
    ]


def test_a_unit_that_was_left_out_is_not_served(tmp_path: Path) -> None:
    chunks = chunks_of(3)
    write_shards(tmp_path / "work", chunks, units=("passage",))
    publish_shards(tmp_path / "work", tmp_path, chunks, units=("passage",))
    sidecar = open_vectors(tmp_path, manifest_of(chunks), "index")
    assert sidecar.units == ("passage",)
    with pytest.raises(NotServedError) as raised:
        sidecar.nearest("sentence", unit_vectors(1), 5)
    assert str(raised.value) == (
        f"There are no vectors of the unit sentence.\nWhere: {sidecar.path}\nAllowed: passage\n"
        "Do: Embed the index again with --unit both."
    )


@pytest.mark.parametrize(
    ("queries", "n", "what"),
    [
        (unit_vectors(1, dimension=8), 5, "The queries have the shape 1 x 8."),
        (unit_vectors(1)[0], 5, "The queries have the shape 16."),
        (np.full((1, DIMENSION), np.nan, np.float32), 5, "A query is not finite."),
        (unit_vectors(1), 0, "n is 0."),
    ],
)
def test_queries_that_cannot_be_answered_are_refused(
    published: PublishedVectors, queries: np.ndarray, n: int, what: str
) -> None:
    with pytest.raises(ArgumentError) as raised:
        published.open().nearest("passage", queries, n)
    assert raised.value.what == what


# The files of a sidecar


def test_the_manifest_describes_the_embedding(published: PublishedVectors) -> None:
    manifest = published.vector_manifest
    assert manifest.encoder == ENCODER
    assert (manifest.rows, manifest.chunks) == ({"sentence": 3_600, "passage": 1_200}, 1_200)
    assert (manifest.index, manifest.nprobe) == (
        {"sentence": "flat", "passage": "flat"},
        {"sentence": 0, "passage": 0},
    )
    assert manifest.fingerprint == published.manifest.fingerprint
    assert len(manifest.shards) == 3
    text = (published.folder / MANIFEST).read_text()
    assert VectorManifest.from_json(text, "here") == manifest == published.open().manifest


def test_nothing_but_the_sidecar_is_left_in_its_folder(published: PublishedVectors) -> None:
    assert [path.name for path in published.root.iterdir()] == [published.folder.name]
    assert not list(published.folder.glob("*.new")) + list(published.folder.glob("plan*"))


def test_opening_reads_no_vectors_and_verifying_reads_them(tmp_path: Path) -> None:
    published = publish(tmp_path, chunks_of(30))
    path = shard_file(published.folder, 0, "sentence.npy")
    path.unlink()  # It is linked to the file in the work folder.
    data = bytearray(shard_file(tmp_path / "work", 0, "sentence.npy").read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    sidecar = published.open()
    with pytest.raises(VectorsDamagedError) as raised:
        verify(sidecar)
    assert str(raised.value) == (
        f"The file has changed since it was written: its SHA-256 differs.\nWhere: {path}\n"
        "Do: Embed the index again: arag-search embed INDEX --overwrite"
    )


@pytest.mark.parametrize(
    "name", ["sentence.ordinals.npy", "column-00.text.npy", "shard-00000.passage.npy"]
)
def test_opening_detects_a_truncated_or_missing_file(tmp_path: Path, name: str) -> None:
    published = publish(tmp_path, chunks_of(30))
    path = published.folder / name
    size = path.stat().st_size
    os.truncate(path, size - 8)
    with pytest.raises(VectorsDamagedError) as raised:
        published.open()
    assert raised.value.what == f"The file has {size - 8:,} bytes, not {size:,}."
    path.unlink()
    with pytest.raises(VectorsDamagedError) as raised:
        published.open()
    assert raised.value.what == "A file is missing."
    assert raised.value.where == str(path)


def test_the_error_of_missing_vectors_names_the_command_that_makes_them(tmp_path: Path) -> None:
    manifest = manifest_of(chunks_of(3))
    for root in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(VectorsNotFoundError) as raised:
            open_vectors(root, manifest, "index")
        assert str(raised.value) == (
            f"The index has no vectors, or none that were finished.\nWhere: {root}\n"
            f"Do: Make them: arag-search embed index --vectors {root} --encoder NAME"
        )


def test_a_sidecar_of_another_version_is_refused(tmp_path: Path) -> None:
    published = publish(tmp_path, chunks_of(3))
    path = published.folder / MANIFEST
    path.write_text(path.read_text().replace('"format_version":3', '"format_version":9', 1))
    with pytest.raises(VectorsVersionError) as raised:
        published.open()
    assert str(raised.value) == (
        f"The vectors have format version 9.\nWhere: {published.folder}\nAllowed: version 3\n"
        f"Do: Embed the index again: arag-search embed index --vectors {published.root} --overwrite"
    )


def test_other_declared_metadata_are_refused(tmp_path: Path) -> None:
    chunks = chunks_of(3)
    publish(tmp_path, chunks, metadata={"lang": "keyword"})
    manifest = manifest_of(chunks, {"year": "number"})
    with pytest.raises(VectorsMismatchError, match=r"^The vectors do not fit the index"):
        open_vectors(tmp_path / "vectors", manifest, "index")


# Closing


def test_calls_after_closing_are_refused(published: PublishedVectors) -> None:
    sidecar = published.open()
    sidecar.close()
    sidecar.close()
    with pytest.raises(IndexClosedError):
        sidecar.nearest("sentence", unit_vectors(4), 10)


def test_closing_frees_the_maps(tmp_path: Path) -> None:
    published = publish(tmp_path, chunks_of(80), index="IVF2,Flat")
    sidecar = published.open()
    sidecar.nearest("sentence", unit_vectors(1), 3)
    assert str(published.folder) in Path("/proc/self/maps").read_text()
    sidecar.close()
    assert str(published.folder) not in Path("/proc/self/maps").read_text()


# Publishing


def _publish(folder: Path, chunks: list, **options: object) -> VectorManifest:
    return publish_shards(folder / "work", folder / "vectors", chunks, **options)


def test_nothing_to_publish_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(VectorsNotFoundError) as raised:
        _publish(tmp_path, chunks_of(3))
    assert str(raised.value) == (
        "There are no shards of vectors.\n"
        f"Where: {tmp_path / 'work' / 'placement'}\nDo: Embed the index first."
    )


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_shards_of_another_type_or_dimension_are_not_published(
    tmp_path: Path, dtype: StoredType
) -> None:
    chunks = chunks_of(3)
    write_shards(tmp_path / "work", chunks, dtype=dtype)
    encoder = EncoderIdentity(kind="hashing", name="words", revision="1", dimension=8)
    with pytest.raises(VectorsDamagedError) as raised:
        _publish(tmp_path, chunks, encoder=encoder)
    assert raised.value.what == f"The array is {dtype} of shape (9, 16)."
    assert raised.value.allowed == "float32 of shape (9, 8)"


def test_publishing_again_replaces_the_previous_sidecar(tmp_path: Path) -> None:
    chunks = chunks_of(30)
    first = publish(tmp_path, chunks)
    reader = first.open()
    other = EncoderIdentity(kind="hashing", name="others", revision="2", dimension=DIMENSION)
    write_shards(tmp_path / "work", chunks, seed=9)
    _publish(tmp_path, chunks, encoder=other)
    assert first.open().encoder == other
    query = unit_vectors(1, seed=3)
    assert nearly_equal(
        reader.nearest("sentence", query, 5)[0], first.expected("sentence", query[0], 5)
    )


_KILLED = """
import os, sys
from pathlib import Path
from arag_search.vectors.storage import faiss_index
from tests.support.vector_shards import chunks_of, publish_shards
faiss_index.PART_BYTES = 1  # each shard is a part of its own
class Killer:
    def stage(self, name, done, total):
        if (name, done) == (sys.argv[2], int(sys.argv[3])):
            os.kill(os.getpid(), 9)
folder = Path(sys.argv[1])
options = {"index": "IVF2,PQ8x4", "progress": Killer(), "threads": 1}
publish_shards(folder / "work", folder / "vectors", chunks_of(90), **options)
"""


@pytest.mark.parametrize(
    ("stage", "done"),
    [
        ("writing ordinals", 1),
        ("training sentence vectors", 1),
        ("adding sentence vectors", 1),
        ("merging sentence vectors", 0),
        ("merging sentence vectors", 1),
        ("taking checksums", 3),
    ],
)
def test_publishing_that_was_killed_leaves_nothing_half_done_and_is_resumed(
    tmp_path: Path, stage: str, done: int
) -> None:
    chunks = chunks_of(90)
    vectors = write_shards(tmp_path / "work", chunks, size=30)
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, str(tmp_path), stage, str(done)], check=False
    )
    assert killed.returncode == -9
    manifest = manifest_of(chunks)
    with pytest.raises(VectorsNotFoundError):
        open_vectors(tmp_path / "vectors", manifest, "index")
    vector_manifest = _publish(tmp_path, chunks, index="IVF2,PQ8x4")
    published = PublishedVectors(tmp_path / "vectors", chunks, vectors, manifest, vector_manifest)
    sidecar = published.open()
    verify(sidecar)
    query = unit_vectors(1, seed=2)
    assert nearly_equal(
        sidecar.nearest("sentence", query, 20)[0], published.expected("sentence", query[0], 20)
    )
    assert not list(published.root.glob("*.new")) + list(published.folder.glob("*.part"))


def test_a_replacement_interrupted_between_two_renames_is_undone(tmp_path: Path) -> None:
    published = publish(tmp_path, chunks_of(5))
    published.folder.rename(published.folder.with_name(published.folder.name + ".old"))
    (tmp_path / "work" / "shard-00000.json").unlink()
    with pytest.raises(VectorsNotFoundError, match="There are no shards"):
        _publish(tmp_path, chunks_of(5))
    published.open().close()

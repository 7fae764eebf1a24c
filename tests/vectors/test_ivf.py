"""Inverted files: the choice of a factory, searches, and lists that stay on disk."""

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from arag_search.errors import ArgumentError, VectorsDamagedError
from arag_search.query.tree import KeywordEquals, Scope
from arag_search.vectors import faiss_index
from arag_search.vectors.base import VECTOR_UNITS, EncoderIdentity
from arag_search.vectors.faiss_index import (
    check_factory,
    factory_of,
    lists_for,
    points_needed,
    sample,
    usual_nprobe,
)
from arag_search.vectors.storage.publish import publish_sidecar
from arag_search.vectors.storage.shards import MappedRows
from arag_search.vectors.storage.sidecar import open_vectors
from tests.support.examples import some_of
from tests.support.plans import scoped
from tests.support.vector_shards import (
    DIMENSION,
    ENCODER,
    PublishedVectors,
    chunks_of,
    manifest_of,
    nearly_equal,
    publish,
    publish_shards,
    shards_in,
    unit_vectors,
    verify,
    write_placement,
    write_shards,
)

ALLOWED = (
    "auto, flat, or a FAISS factory with an inverted file, such as IVF1024,Flat or "
    "OPQ64_256,IVF4096,PQ64"
)


@pytest.fixture(scope="module")
def quantised(tmp_path_factory: pytest.TempPathFactory) -> PublishedVectors:
    return publish(tmp_path_factory.mktemp("pq"), chunks_of(1_000), size=300, index="IVF16,PQ8")


# The choice of a factory


@pytest.mark.parametrize(
    ("rows", "lists"),
    [(1, 4), (16, 16), (32_047, 512), (1_000_000, 4_096), (22_000_000, 16_384),
     (110_000_000, 32_768), (10**9, 65_536)],
)  # fmt: skip
def test_there_are_about_four_square_roots_of_lists(rows: int, lists: int) -> None:
    assert lists_for(rows) == lists


@pytest.mark.parametrize(
    ("rows", "dimension", "factory"),
    [
        (999_999, 384, "flat"),
        (1_000_000, 384, "OPQ64_256,IVF4096,PQ64"),
        (110_000_000, 1024, "OPQ64_256,IVF32768,PQ64"),
        (1_000_000, 256, "OPQ64_256,IVF4096,PQ64"),
        (1_000_000, 255, "OPQ48_240,IVF4096,PQ48"),
        (1_000_000, 100, "OPQ24_96,IVF4096,PQ24"),
        (1_000_000, 3, "OPQ1_3,IVF4096,PQ1"),
    ],
)
def test_auto_is_flat_below_a_million_rows(rows: int, dimension: int, factory: str) -> None:
    assert factory_of("auto", rows, dimension) == factory
    assert factory_of("flat", rows, dimension) == "flat"
    assert factory_of("IVF8,SQ8", rows, dimension) == "IVF8,SQ8"
    check_factory(factory, dimension)


@pytest.mark.parametrize(
    ("factory", "what"),
    [
        ("PQ8", 'The index "PQ8" has no inverted file that is merged on disk.'),
        ("HNSW32", 'The index "HNSW32" has no inverted file that is merged on disk.'),
        ("IVF16,PQ8x4fs", 'The index "IVF16,PQ8x4fs" has no inverted file that is merged on disk.'),
    ],
)
def test_factories_without_an_inverted_file_on_disk_are_refused(factory: str, what: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        check_factory(factory, DIMENSION)
    assert str(raised.value) == f"{what}\nAllowed: {ALLOWED}"


@pytest.mark.parametrize("factory", ["nonsense", "IVF16,PQ7", "IVF16,PQ8+8", "IVF,Flat", ""])
def test_a_factory_that_faiss_rejects_is_refused_with_its_reason(factory: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        check_factory(factory, DIMENSION)
    assert raised.value.what.startswith(
        f'The index "{factory}" cannot be made for {DIMENSION} dimensions ('
    )
    assert "\n" not in raised.value.what
    assert raised.value.allowed == ALLOWED


def test_training_needs_39_rows_a_list_and_the_codes_of_a_quantiser() -> None:
    assert points_needed("IVF16,Flat", DIMENSION) == 39 * 16
    assert points_needed("IVF4,PQ8", DIMENSION) == 256
    assert points_needed("IVF4,PQ8x4", DIMENSION) == 39 * 4
    assert points_needed("OPQ8,IVF4,PQ8", DIMENSION) == 39 * 256


def test_too_few_rows_for_training_are_reported_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError) as raised:
        publish(tmp_path, chunks_of(200), index="IVF8,Flat")
    assert str(raised.value) == (
        "IVF8,Flat needs at least 312 rows for training, and there are 200.\n"
        f"Where: the passage vectors in {tmp_path / 'work'}\nAllowed: {ALLOWED}\n"
        "Do: Use --index flat, or a factory with fewer lists."
    )
    assert not any((tmp_path / "vectors").iterdir())


def test_the_sample_is_drawn_from_all_shards_and_is_the_same_each_time(tmp_path: Path) -> None:
    vectors = write_shards(tmp_path, chunks_of(1_000), size=250)["sentence"]
    mapped = MappedRows(shards_in(tmp_path), "sentence", DIMENSION, "float32")
    drawn = sample(mapped, "IVF16,Flat")
    assert len(drawn) == 64 * 16
    assert (drawn == sample(mapped, "IVF16,Flat")).all()
    row_of = {vector.tobytes(): row for row, vector in enumerate(vectors)}
    rows = [row_of[vector.tobytes()] for vector in drawn]
    assert len(set(rows)) == len(rows)
    shares = np.bincount(np.array(rows) // 750, minlength=4)
    assert shares.min() > 200


# Searches


def test_candidates_are_rescored_by_their_stored_vectors(quantised: PublishedVectors) -> None:
    sidecar = quantised.open()
    queries = unit_vectors(30, seed=8)
    rescored = sidecar.nearest("sentence", queries, 10, nprobe=16)
    before = sidecar.nearest("sentence", queries, 10, nprobe=16, rescore=False)
    recalls = [0.0, 0.0]
    for query, candidates, unrescored in zip(queries, rescored, before, strict=True):
        expected = quantised.expected("sentence", query, 10)
        score_of = {row[0]: row[1] for row in quantised.expected("sentence", query, 3_000)}
        assert all(abs(score_of[hit.ordinal] - hit.score) < 1e-5 for hit in candidates)
        assert candidates == sorted(candidates, key=lambda hit: (-hit.score, hit.ordinal))
        expected_ordinals = {hit.ordinal for hit in expected}
        recalls[0] += len(expected_ordinals & {hit.ordinal for hit in candidates}) / 300
        recalls[1] += len(expected_ordinals & {hit.ordinal for hit in unrescored}) / 300
    assert recalls[0] > 0.95
    assert recalls[1] < recalls[0]
    assert quantised.vector_manifest.rescore == 10


def test_a_search_of_all_lists_finds_what_a_flat_search_finds(tmp_path: Path) -> None:
    published = publish(tmp_path, chunks_of(400), size=150, index="IVF8,Flat")
    sidecar = published.open()
    queries = unit_vectors(5, seed=1)
    for query, hits in zip(queries, sidecar.nearest("passage", queries, 25, nprobe=8), strict=True):
        assert nearly_equal(hits, published.expected("passage", query, 25))
    for query, hits in zip(
        queries, sidecar.nearest("passage", queries, 25, nprobe=8, rescore=False), strict=True
    ):
        assert nearly_equal(hits, published.expected("passage", query, 25))


def test_vectors_may_be_opened_with_another_number_of_lists_to_probe(
    quantised: PublishedVectors,
) -> None:
    queries = unit_vectors(20, seed=3)
    few, many = (
        open_vectors(quantised.root, quantised.manifest, "index", nprobe=lists) for lists in (1, 16)
    )
    usual = quantised.open()
    assert few.nearest("passage", queries, 10) == usual.nearest("passage", queries, 10, nprobe=1)
    assert few.nearest("passage", queries, 10) != many.nearest("passage", queries, 10)
    assert many.nearest("passage", queries, 10) == usual.nearest("passage", queries, 10)


def test_a_search_finds_more_rows_than_one_list_has(quantised: PublishedVectors) -> None:
    (hits,) = quantised.open().nearest("passage", unit_vectors(1), 5_000, nprobe=1)
    assert len(hits) == 1_000


def test_half_precision_is_searched_by_lists_too(tmp_path: Path) -> None:
    published = publish(tmp_path, chunks_of(400), index="IVF8,SQ8", dtype="float16")
    query = unit_vectors(1, seed=1)
    (hits,) = published.open().nearest("sentence", query, 10)
    assert nearly_equal(hits, published.expected("sentence", query[0], 10, dtype="float16"))


def test_the_manifest_names_the_factory_and_the_number_of_lists_to_search(
    quantised: PublishedVectors,
) -> None:
    assert quantised.vector_manifest.index == {"sentence": "IVF16,PQ8", "passage": "IVF16,PQ8"}
    assert quantised.vector_manifest.nprobe == {"sentence": 16, "passage": 16}
    assert (usual_nprobe(1_024), usual_nprobe(32_768)) == (64, 1_024)


def test_a_moved_folder_with_lists_on_disk_opens(tmp_path: Path) -> None:
    published = publish(tmp_path, chunks_of(400), index="IVF8,Flat")
    before = published.open().nearest("sentence", unit_vectors(2), 5)
    published.root.rename(tmp_path / "elsewhere")
    moved = open_vectors(tmp_path / "elsewhere", published.manifest, "index")
    assert moved.nearest("sentence", unit_vectors(2), 5) == before
    maps = Path("/proc/self/maps").read_text()
    assert str(tmp_path / "elsewhere" / published.folder.name / "sentence.ivfdata") in maps
    verify(moved)


def test_a_damaged_byte_in_any_file_besides_the_vectors_is_an_error(tmp_path: Path) -> None:
    published = publish(tmp_path, chunks_of(100), index="IVF2,Flat")
    names = published.vector_manifest.files
    assert len(names) > 5
    for name in names:
        path = published.folder / name
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(VectorsDamagedError, match="SHA-256 differs") as raised:
            published.open()
        assert raised.value.where == str(path)
        path.write_bytes(data)
    published.open().close()


def test_a_large_faiss_index_that_is_damaged_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arag_search.vectors.storage.sidecar.CHECKED_BYTES", 0)
    published = publish(tmp_path, chunks_of(100), index="IVF2,Flat")
    path = published.folder / "sentence.faiss"
    data = bytearray(path.read_bytes())
    data[:4] = b"what"
    path.write_bytes(data)
    with pytest.raises(VectorsDamagedError) as raised:
        published.open()
    assert raised.value.what.startswith("FAISS cannot read the index (")
    assert raised.value.where == str(path)


def test_threads_are_bounded_during_calls_of_faiss_and_nowhere_else(
    quantised: PublishedVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    import faiss

    before = faiss.omp_get_max_threads()
    thread_counts: list[int] = []
    search = faiss.IndexIVFPQ.search

    def watched(self: object, *arguments: object, **options: object) -> object:
        thread_counts.append(faiss.omp_get_max_threads())
        return search(self, *arguments, **options)

    monkeypatch.setattr(faiss.IndexIVFPQ, "search", watched)
    sidecar = open_vectors(quantised.root, quantised.manifest, "index", threads=1)
    sidecar.nearest("sentence", unit_vectors(1), 5)
    assert thread_counts == [1]
    assert faiss.omp_get_max_threads() == before


def test_several_threads_search_lists_on_disk_at_once(quantised: PublishedVectors) -> None:
    sidecar = quantised.open()
    queries = unit_vectors(40, seed=9)
    english = scoped(Scope((KeywordEquals("lang", "en"),)))
    expected = [sidecar.nearest("sentence", query[None], 10) for query in queries]
    in_english = [sidecar.nearest("sentence", query[None], 10, english) for query in queries]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            results = pool.map(lambda query: sidecar.nearest("sentence", query[None], 10), queries)
            assert list(results) == expected
            results = pool.map(
                lambda query: sidecar.nearest("sentence", query[None], 10, english), queries
            )
            assert list(results) == in_english


# Publishing


def test_publishing_resumes_after_the_error_of_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = shutil.disk_usage(tmp_path)._replace(free=1_000)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: full)
        with pytest.raises(OSError, match="No space left on device"):
            publish(tmp_path, chunks_of(100), index="IVF2,Flat")
    verify(publish(tmp_path, chunks_of(100), index="IVF2,Flat").open())


def test_nothing_is_printed_to_stdout(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    publish(tmp_path, chunks_of(700), index="IVF4,PQ8").open()
    assert capfd.readouterr() == ("", "")


def test_quantisers_lists_and_shards_of_an_earlier_sidecar_are_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks = chunks_of(500)
    previous = publish(tmp_path, chunks[:400], size=200, index="IVF8,PQ8")
    vectors = write_shards(tmp_path / "more", chunks[400:], seed=5)
    manifest = manifest_of(chunks)
    filled: list[range] = []
    fill = faiss_index.fill
    monkeypatch.setattr(
        faiss_index,
        "fill",
        lambda t, m, shards, *rest: (filled.append(shards), fill(t, m, shards, *rest)),
    )
    vector_manifest = publish_sidecar(
        [*previous.vector_manifest.shards_in(previous.folder), *shards_in(tmp_path / "more")],
        write_placement(tmp_path / "placement", chunks),
        previous.root,
        encoder=ENCODER,
        units=VECTOR_UNITS,
        dtype="float32",
        index="IVF8,PQ8",
        manifest=manifest,
        previous=previous.folder,
    )
    all_vectors = {
        unit: np.concatenate((previous.vectors[unit], vectors[unit])) for unit in VECTOR_UNITS
    }
    later = PublishedVectors(previous.root, chunks, all_vectors, manifest, vector_manifest)
    earlier_file, later_file = (
        previous.folder / "shard-00000.sentence.npy",
        later.folder / "shard-00000.sentence.npy",
    )
    assert earlier_file.samefile(later_file)
    assert filled == [range(2, 3)] * len(VECTOR_UNITS)
    trained = [published.folder / "sentence.trained.faiss" for published in (previous, later)]
    assert trained[0].read_bytes() == trained[1].read_bytes()
    query = unit_vectors(1, seed=3)
    for published in (previous, later):  # A roll-back finds the earlier one.
        sidecar = published.open()
        verify(sidecar)
        hits = sidecar.nearest("sentence", query, 10)[0]
        assert nearly_equal(hits, published.expected("sentence", query[0], 10))


_BOUNDED = """
import sys
from pathlib import Path
import numpy as np
from tests.support.vector_shards import *
from arag_search.vectors.storage.shards import write_shard
from arag_search.vectors.storage.publish import publish_sidecar
import faiss, resource
folder, index = Path(sys.argv[1]), sys.argv[2]
encoder = EncoderIdentity(kind="hashing", name="wide", revision="1", dimension=512)
chunks = chunks_of(24_000, sentences=1)
(folder / "work").mkdir()
for number in range(12):
    part = chunks[2_000 * number : 2_000 * number + 2_000]
    rows = {unit: unit_vectors(2_000, number, 512) for unit in ("sentence", "passage")}
    write_shard(folder / "work", number, keys_of(part), rows, dtype="float32")
manifest = manifest_of(chunks)
placement = write_placement(folder / "placement", chunks)
del chunks, rows, part
faiss.omp_set_num_threads(1)
some = unit_vectors(1_000, 1, 512)
faiss.knn(some, some, 1)  # both libraries take their buffers for good
some @ some.T
now = int(next(l for l in open("/proc/self/status") if l.startswith("VmData")).split()[1]) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (now + (60 << 20), now + (60 << 20)))
publish_sidecar(shards_in(folder / "work"), placement, folder / "vectors", encoder=encoder,
                units=VECTOR_UNITS, dtype="float32", index=index, manifest=manifest, threads=1)
sidecar = open_vectors(folder / "vectors", manifest, "index", threads=1)
sidecar.nearest("sentence", unit_vectors(3, 1, 512), 10)
print(sum(f.stat().st_size for f in sidecar.path.glob("shard-*.npy") if "keys" not in f.name))
"""


@pytest.mark.parametrize("index", some_of(["IVF16,SQ8", "flat"]))
def test_memory_is_bounded_by_a_shard_and_the_sample(tmp_path: Path, index: str) -> None:
    # There are 98 MB of vectors in shards of 8 MB, and 60 MB to publish and search them.
    process = subprocess.run(
        [sys.executable, "-c", _BOUNDED, str(tmp_path), index],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    assert process.returncode == 0, process.stderr[-2_000:]
    assert int(process.stdout) > 98_000_000


@pytest.mark.long
def test_rotated_and_quantised_vectors_of_the_usual_kind_are_found(tmp_path: Path) -> None:
    rows, dimension = 10_000, 20  # A rotation needs at least these rows for training.
    near = unit_vectors(300, 1, dimension)[np.arange(rows) % 300]
    vectors = near + 0.6 * unit_vectors(rows, 2, dimension)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    chunks = chunks_of(rows, sentences=1)
    written = write_shards(
        tmp_path / "work", chunks, size=4_000, units=("passage",), vectors={"passage": vectors}
    )
    manifest = manifest_of(chunks)
    vector_manifest = publish_shards(
        tmp_path / "work",
        tmp_path,
        chunks,
        encoder=EncoderIdentity(kind="hashing", name="rotated", revision="1", dimension=dimension),
        units=("passage",),
        index="OPQ4_16,IVF64,PQ4",
        manifest=manifest,
        threads=1,
    )
    published = PublishedVectors(tmp_path, chunks, written, manifest, vector_manifest)
    sidecar = published.open()
    queries = vectors[::500] + 0.2 * unit_vectors(20, 3, dimension)
    recalls = {True: 0.0, False: 0.0}
    for rescore in recalls:
        results = sidecar.nearest("passage", queries, 10, rescore=rescore)
        for query, hits in zip(queries, results, strict=True):
            expected_ordinals = {hit.ordinal for hit in published.expected("passage", query, 10)}
            recalls[rescore] += len(expected_ordinals & {hit.ordinal for hit in hits}) / 200
    assert recalls[True] >= 0.9
    assert recalls[True] > recalls[False]

"""Inverted files: which ones are made, what they find, and that they stay on disk."""

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from arag_search.errors import ArgumentError, VectorsDamagedError
from arag_search.query.tree import KeywordEquals, Scope
from arag_search.vectors.base import VECTOR_UNITS, EncoderIdentity
from arag_search.vectors.faiss_index import (
    check_factory,
    factory_of,
    lists_for,
    points_needed,
    sample,
    usual_nprobe,
)
from arag_search.vectors.storage.mapped import MappedRows
from arag_search.vectors.storage.publish import publish_sidecar
from arag_search.vectors.storage.sidecar import open_vectors
from tests.support.vector_shards import (
    DIMENSION,
    ENCODER,
    PublishedVectors,
    Untouched,
    chunks_of,
    manifest_of,
    nearly_equal,
    publish,
    publish_shards,
    shards_in,
    unit_vectors,
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


# Which index


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
def test_what_faiss_does_not_make_is_refused_with_its_reason(factory: str) -> None:
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


def test_too_few_rows_to_train_on_are_told_before_anything_is_done(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError) as raised:
        publish(tmp_path, chunks_of(200), index="IVF8,Flat")
    assert str(raised.value) == (
        "IVF8,Flat needs at least 312 rows for training, and there are 200.\n"
        f"Where: the passage vectors in {tmp_path / 'work'}\nAllowed: {ALLOWED}\n"
        "Do: Use --index flat, or a factory with fewer lists."
    )
    assert [path.name for path in (tmp_path / "vectors").iterdir()] == ["publishing.lock"]


def test_the_sample_is_drawn_from_all_shards_and_is_the_same_each_time(tmp_path: Path) -> None:
    vectors = write_shards(tmp_path, chunks_of(1_000), size=250)["sentence"]
    mapped = MappedRows(shards_in(tmp_path), "sentence", DIMENSION, "float32")
    drawn = sample(mapped, "IVF16,Flat")
    assert len(drawn) == 64 * 16
    assert (drawn == sample(mapped, "IVF16,Flat")).all()
    places = {each.tobytes(): at for at, each in enumerate(vectors)}
    rows = [places[each.tobytes()] for each in drawn]
    assert len(set(rows)) == len(rows)
    shares = np.bincount(np.array(rows) // 750, minlength=4)
    assert shares.min() > 200


# What it finds


def test_candidates_are_scored_anew_by_their_stored_vectors(quantised: PublishedVectors) -> None:
    sidecar = quantised.open()
    asked = unit_vectors(30, seed=8)
    rescored = sidecar.nearest("sentence", asked, 10, nprobe=16)
    before = sidecar.nearest("sentence", asked, 10, nprobe=16, rescore=False)
    recalls = [0.0, 0.0]
    for query, one, other in zip(asked, rescored, before, strict=True):
        expected = quantised.expected("sentence", query, 10)
        score_of = {row[0]: row[1] for row in quantised.expected("sentence", query, 3_000)}
        assert all(abs(score_of[each.ordinal] - each.score) < 1e-5 for each in one)
        assert one == sorted(one, key=lambda each: (-each.score, each.ordinal))
        wanted = {each.ordinal for each in expected}
        recalls[0] += len(wanted & {each.ordinal for each in one}) / 300
        recalls[1] += len(wanted & {each.ordinal for each in other}) / 300
    assert recalls[0] > 0.95
    assert recalls[1] < recalls[0]
    assert quantised.vector_manifest.rescore == 10


def test_lists_that_are_all_searched_find_what_flat_search_finds(tmp_path: Path) -> None:
    one = publish(tmp_path, chunks_of(400), size=150, index="IVF8,Flat")
    sidecar = one.open()
    asked = unit_vectors(5, seed=1)
    for query, found in zip(asked, sidecar.nearest("passage", asked, 25, nprobe=8), strict=True):
        assert nearly_equal(found, one.expected("passage", query, 25))
    for query, found in zip(
        asked, sidecar.nearest("passage", asked, 25, nprobe=8, rescore=False), strict=True
    ):
        assert nearly_equal(found, one.expected("passage", query, 25))


def test_more_rows_than_a_list_has_are_found(quantised: PublishedVectors) -> None:
    (found,) = quantised.open().nearest("passage", unit_vectors(1), 5_000, nprobe=1)
    assert len(found) == 1_000


def test_half_precision_is_searched_by_lists_too(tmp_path: Path) -> None:
    one = publish(tmp_path, chunks_of(400), index="IVF8,SQ8", dtype="float16")
    query = unit_vectors(1, seed=1)
    (found,) = one.open().nearest("sentence", query, 10)
    assert nearly_equal(found, one.expected("sentence", query[0], 10, dtype="float16"))


def test_the_manifest_tells_factory_and_lists_to_search(quantised: PublishedVectors) -> None:
    assert quantised.vector_manifest.index == {"sentence": "IVF16,PQ8", "passage": "IVF16,PQ8"}
    assert quantised.vector_manifest.nprobe == {"sentence": 16, "passage": 16}
    assert (usual_nprobe(1_024), usual_nprobe(32_768)) == (64, 1_024)


def test_a_moved_folder_with_lists_on_disk_opens(tmp_path: Path) -> None:
    one = publish(tmp_path, chunks_of(400), index="IVF8,Flat")
    before = one.open().nearest("sentence", unit_vectors(2), 5)
    one.root.rename(tmp_path / "elsewhere")
    moved = open_vectors(tmp_path / "elsewhere", Untouched(one.manifest), "index")
    assert moved.nearest("sentence", unit_vectors(2), 5) == before
    maps = Path("/proc/self/maps").read_text()
    assert str(tmp_path / "elsewhere" / one.folder.name / "sentence.ivfdata") in maps
    moved.verify()


def test_a_faiss_index_that_is_damaged_is_an_error(tmp_path: Path) -> None:
    one = publish(tmp_path, chunks_of(100), index="IVF2,Flat")
    path = one.folder / "sentence.faiss"
    data = bytearray(path.read_bytes())
    data[:4] = b"what"
    path.write_bytes(data)
    with pytest.raises(VectorsDamagedError) as raised:
        one.open()
    assert raised.value.what.startswith("FAISS cannot read the index (")
    assert raised.value.where == str(path)


def test_threads_are_bounded_where_faiss_is_asked_and_nowhere_else(
    quantised: PublishedVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    import faiss

    before = faiss.omp_get_max_threads()
    seen: list[int] = []
    search = faiss.IndexIVFPQ.search

    def watched(self: object, *arguments: object, **named: object) -> object:
        seen.append(faiss.omp_get_max_threads())
        return search(self, *arguments, **named)

    monkeypatch.setattr(faiss.IndexIVFPQ, "search", watched)
    sidecar = open_vectors(quantised.root, Untouched(quantised.manifest), "index", threads=1)
    sidecar.nearest("sentence", unit_vectors(1), 5)
    assert seen == [1]
    assert faiss.omp_get_max_threads() == before


def test_threads_search_lists_on_disk_at_once(quantised: PublishedVectors) -> None:
    sidecar = quantised.open()
    asked = unit_vectors(40, seed=9)
    english = Scope((KeywordEquals("lang", "en"),))
    expected = [sidecar.nearest("sentence", query[None], 10) for query in asked]
    in_english = [sidecar.nearest("sentence", query[None], 10, english) for query in asked]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            found = pool.map(lambda query: sidecar.nearest("sentence", query[None], 10), asked)
            assert list(found) == expected
            found = pool.map(
                lambda query: sidecar.nearest("sentence", query[None], 10, english), asked
            )
            assert list(found) == in_english


# Publishing


def test_a_disk_without_room_for_the_lists_is_an_error_that_is_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = shutil.disk_usage(tmp_path)._replace(free=1_000)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: full)
        with pytest.raises(OSError, match="No space left on device"):
            publish(tmp_path, chunks_of(100), index="IVF2,Flat")
    publish(tmp_path, chunks_of(100), index="IVF2,Flat").open().verify()


def test_nothing_is_printed_to_stdout(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    publish(tmp_path, chunks_of(700), index="IVF4,PQ8").open()
    assert capfd.readouterr() == ("", "")


def test_quantisers_and_shards_of_an_earlier_sidecar_are_taken_over(tmp_path: Path) -> None:
    chunks = chunks_of(500)
    one = publish(tmp_path, chunks[:400], size=200, index="IVF8,PQ8")
    vectors = write_shards(tmp_path / "more", chunks[400:], seed=5)
    manifest = manifest_of(chunks)
    made = publish_sidecar(
        [*one.vector_manifest.shards_in(one.folder), *shards_in(tmp_path / "more")],
        write_placement(tmp_path / "placement", chunks),
        one.root,
        encoder=ENCODER,
        units=VECTOR_UNITS,
        dtype="float32",
        index="IVF8,PQ8",
        manifest=manifest,
        earlier=one.folder,
    )
    both = {unit: np.concatenate((one.vectors[unit], vectors[unit])) for unit in VECTOR_UNITS}
    two = PublishedVectors(one.root, chunks, both, manifest, made)
    first, second = one.folder / "shard-00000.sentence.npy", two.folder / "shard-00000.sentence.npy"
    assert first.samefile(second)
    trained = [each.folder / "sentence.trained.faiss" for each in (one, two)]
    assert trained[0].read_bytes() == trained[1].read_bytes()
    query = unit_vectors(1, seed=3)
    for each in (one, two):  # a roll-back finds the old one
        sidecar = each.open()
        sidecar.verify()
        found = sidecar.nearest("sentence", query, 10)[0]
        assert nearly_equal(found, each.expected("sentence", query[0], 10))


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
chunks = chunks_of(48_000, sentences=1)
(folder / "work").mkdir()
for number in range(24):
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
sidecar = open_vectors(folder / "vectors", Untouched(manifest), "index", threads=1)
sidecar.nearest("sentence", unit_vectors(3, 1, 512), 10)
print(sum(f.stat().st_size for f in sidecar.path.glob("shard-*.npy") if "keys" not in f.name))
"""


@pytest.mark.parametrize("index", ["flat", "IVF16,SQ8"])
def test_memory_is_bounded_by_a_shard_and_the_sample(tmp_path: Path, index: str) -> None:
    # 197 MB of vectors in shards of 8 MB, and 60 MB to publish and search them
    done = subprocess.run(
        [sys.executable, "-c", _BOUNDED, str(tmp_path), index],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert int(done.stdout) > 196_000_000


def test_rotated_and_quantised_vectors_of_the_usual_kind_are_found(tmp_path: Path) -> None:
    rows, dimension = 10_000, 40  # a rotation is trained on no fewer rows
    near = unit_vectors(300, 1, dimension)[np.arange(rows) % 300]
    vectors = near + 0.6 * unit_vectors(rows, 2, dimension)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    chunks = chunks_of(rows, sentences=1)
    written = write_shards(
        tmp_path / "work", chunks, size=4_000, units=("passage",), vectors={"passage": vectors}
    )
    manifest = manifest_of(chunks)
    made = publish_shards(
        tmp_path / "work",
        tmp_path,
        chunks,
        encoder=EncoderIdentity(kind="hashing", name="rotated", revision="1", dimension=dimension),
        units=("passage",),
        index="OPQ8_32,IVF64,PQ8",
        manifest=manifest,
        threads=2,
    )
    one = PublishedVectors(tmp_path, chunks, written, manifest, made)
    sidecar = one.open()
    asked = vectors[::500] + 0.2 * unit_vectors(20, 3, dimension)
    recalls = {True: 0.0, False: 0.0}
    for rescore in recalls:
        found = sidecar.nearest("passage", asked, 10, rescore=rescore)
        for query, some in zip(asked, found, strict=True):
            wanted = {each.ordinal for each in one.expected("passage", query, 10)}
            recalls[rescore] += len(wanted & {each.ordinal for each in some}) / 200
    assert recalls[True] >= 0.9
    assert recalls[True] > recalls[False]

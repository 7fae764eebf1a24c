"""Inverted files: the choice of a factory, making them on disk, searches in their lists."""

import errno
import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from arag_search.errors import ArgumentError, VectorsDamagedError
from arag_search.system.progress import Progress
from arag_search.vectors import faiss_index
from arag_search.vectors.base import VectorUnit
from arag_search.vectors.encoders.choose import open_encoder
from arag_search.vectors.faiss_index import (
    build,
    check_factory,
    factory_of,
    lists_for,
    read_index,
    sample,
    usual_nprobe,
)
from arag_search.vectors.state import UnitTexts
from arag_search.vectors.store import Store
from tests.support.commands import SAMPLE
from tests.support.stored_vectors import (
    StoredVectors,
    nearly_equal,
    selection,
    share_found,
    stored_vectors,
    with_state,
)
from tests.support.vector_stores import DIMENSION, Vectors, append, new_store, unit_vectors

ALLOWED = (
    "auto, flat, or a FAISS factory with an inverted file, such as IVF1024,Flat or "
    "OPQ64_256,IVF4096,PQ64"
)


LISTS = 16


@pytest.fixture(scope="module")
def quantised(tmp_path_factory: pytest.TempPathFactory) -> StoredVectors:
    stored = stored_vectors(tmp_path_factory.mktemp("pq"), 1_000)
    stored.build(f"IVF{LISTS},PQ8")
    return stored


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
        (1_000_000, 255, "OPQ63_252,IVF4096,PQ63"),
        (1_000_000, 100, "OPQ25_100,IVF4096,PQ25"),
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
        ("PQ8", 'The index "PQ8" has no inverted file that can be mapped.'),
        ("HNSW32", 'The index "HNSW32" has no inverted file that can be mapped.'),
        ("IVF16,PQ8x4fs", 'The index "IVF16,PQ8x4fs" has no inverted file that can be mapped.'),
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


def test_training_needs_39_rows_a_list_and_the_codes_of_a_quantiser(tmp_path: Path) -> None:
    stored = stored_vectors(tmp_path, 100)
    needed = {"IVF16,Flat": 39 * 16, "IVF4,PQ8": 256, "IVF4,PQ8x4": 39 * 4}
    for factory, rows in (needed | {"OPQ8,IVF4,PQ8": 39 * 256}).items():
        with pytest.raises(ArgumentError, match=f"needs at least {rows:,} rows"):
            stored.build(factory, ("passage",))


def test_too_few_rows_for_training_are_reported_before_any_work(tmp_path: Path) -> None:
    stored = stored_vectors(tmp_path, 200)
    with pytest.raises(ArgumentError) as raised:
        stored.build("IVF8,Flat", ("passage",))
    assert raised.value.where == f"the passage vectors in {stored.store.folder}"
    assert "312" in raised.value.what
    assert not [*stored.store.folder.glob("passage-*")]


def test_the_sample_is_drawn_evenly_from_all_rows_and_is_the_same_each_time(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    vectors = append(store, "sentence", range(3_000))
    drawn = sample(store.vectors("sentence"), 64 * 16)
    assert len(drawn) == 64 * 16
    assert (drawn == sample(store.vectors("sentence"), 64 * 16)).all()
    row_of = {vector.tobytes(): row for row, vector in enumerate(vectors)}
    rows = [row_of[vector.tobytes()] for vector in drawn]
    assert len(set(rows)) == len(rows)
    assert np.bincount(np.array(rows) // 750).tolist() == [256] * 4


# Searches


def test_candidates_are_rescored_by_their_stored_vectors(quantised: StoredVectors) -> None:
    queries = unit_vectors(30, seed=8)
    vectors = quantised.open(nprobe=LISTS)
    recall = 0.0
    for query, hits in zip(queries, vectors.nearest("sentence", queries, 10), strict=True):
        expected = quantised.expected("sentence", query, 3_000)
        score_of = {text.ordinal: text.score for text in expected}
        assert all(abs(score_of[hit.ordinal] - hit.score) < 1e-5 for hit in hits)
        assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.ordinal))
        recall += share_found(expected[:10], hits) / len(queries)
    assert recall > 0.95


def test_vectors_may_be_opened_with_another_number_of_lists_to_probe(
    quantised: StoredVectors,
) -> None:
    queries = unit_vectors(20, seed=3)
    few, many, usual = (
        quantised.open(nprobe).nearest("passage", queries, 10) for nprobe in (1, LISTS, None)
    )
    assert few != many == usual


def test_a_search_finds_more_rows_than_one_list_has(quantised: StoredVectors) -> None:
    (hits,) = quantised.open(nprobe=1).nearest("passage", unit_vectors(1), 5_000)
    assert len(hits) == 1_000


def test_the_record_names_the_factory_and_the_rows(quantised: StoredVectors) -> None:
    record = read_index(quantised.store.folder, "sentence")
    assert record is not None
    assert (record.factory, record.rows) == ("IVF16,PQ8", 3_000)
    assert (usual_nprobe(1_024), usual_nprobe(32_768)) == (64, 1_024)
    assert read_index(quantised.store.folder.parent, "sentence") is None


def test_a_moved_folder_with_lists_on_disk_opens(tmp_path: Path) -> None:
    before = stored_vectors(tmp_path / "here", 400)
    before.build("IVF8,Flat")
    expected = before.open().nearest("sentence", unit_vectors(2), 5)
    (tmp_path / "here").rename(tmp_path / "elsewhere")
    moved = before.moved(tmp_path / "elsewhere")
    assert moved.open().nearest("sentence", unit_vectors(2), 5) == expected
    assert str(tmp_path / "elsewhere" / "store-00001") in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda index: index.unlink(), "The file is missing."),
        (lambda index: index.write_bytes(index.read_bytes()[:-1]), "The file has "),
        (lambda index: _overwrite(index, 0, b"what"), "FAISS cannot read the index ("),
        (lambda index: _overwrite(index, 8, b"\x01"), "The index is one of other rows."),
    ],
)
def test_an_index_of_another_size_or_header_is_an_error_and_made_again(
    tmp_path: Path, damage: Callable[[Path], object], what: str
) -> None:
    stored = stored_vectors(tmp_path, 100)
    stored.build("IVF2,Flat")
    expected = stored.open().nearest("sentence", unit_vectors(1), 5)
    record = read_index(stored.store.folder, "sentence")
    assert record is not None
    assert not _built(stored.store, "IVF2,Flat")
    index = stored.store.folder / record.file
    damage(index)
    with pytest.raises(VectorsDamagedError) as raised:
        stored.open()
    assert raised.value.what.startswith(what)
    assert raised.value.where == str(index)
    assert raised.value.do == (
        "Make the index again, which encodes nothing: arag-search embed INDEX"
    )
    assert _built(stored.store, "IVF2,Flat")
    assert stored.open().nearest("sentence", unit_vectors(1), 5) == expected


def _overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def test_threads_are_bounded_during_calls_of_faiss_and_nowhere_else(
    quantised: StoredVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    import faiss

    before = faiss.omp_get_max_threads()
    thread_counts: list[int] = []
    search = faiss.IndexIVFPQ.search

    def watched(self: object, *arguments: object, **options: object) -> object:
        thread_counts.append(faiss.omp_get_max_threads())
        return search(self, *arguments, **options)

    monkeypatch.setattr(faiss.IndexIVFPQ, "search", watched)
    quantised.open().nearest("sentence", unit_vectors(1), 5)
    assert thread_counts == [1]
    assert faiss.omp_get_max_threads() == before


def test_several_threads_search_lists_on_disk_at_once(quantised: StoredVectors) -> None:
    vectors = quantised.open()
    scopes = [None, *(selection(quantised.chunks[at::2], f"half{at}") for at in range(2))]
    asked = [(query[None], scope) for query in unit_vectors(40, seed=9) for scope in scopes]
    expected = [vectors.nearest("sentence", query, 10, scope) for query, scope in asked]
    again = quantised.open()
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            results = pool.map(
                lambda question: again.nearest("sentence", question[0], 10, question[1]), asked
            )
            assert list(results) == expected


# Making


def _built(store: Store, index: str) -> bool:
    return build(store, "sentence", index, Progress())


def _files(store: Store) -> list[str]:
    return sorted(path.name for path in store.folder.glob("sentence-*"))


def test_new_rows_are_added_to_the_lists_without_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = stored_vectors(tmp_path, 400)
    stored.build("IVF8,PQ8")
    before = stored.open()
    assert not _built(stored.store, "IVF8,PQ8")
    append(stored.store, "sentence", range(130), seed=3)
    assert not _built(stored.store, "IVF8,PQ8")
    append(stored.store, "sentence", range(130, 140), seed=4)
    monkeypatch.setattr(faiss_index, "sample", None)
    assert _built(stored.store, "IVF8,PQ8")
    record = read_index(stored.store.folder, "sentence")
    assert record is not None
    assert record.rows == 1_340
    assert _files(stored.store) == [record.file]
    queries = unit_vectors(3, seed=3)
    later = stored.open(nprobe=8).nearest(
        "sentence", queries, 10
    )  # of a state without the new rows
    assert later == before.nearest("sentence", queries, 10)
    for query, hits in zip(queries, later, strict=True):
        assert nearly_equal(hits, stored.expected("sentence", query, 10))


def test_a_quantiser_is_taken_from_the_store_that_was_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = stored_vectors(tmp_path, 400)
    stored.build("IVF8,PQ8")
    live = {"sentence": np.arange(0, 1_200, 2), "passage": np.arange(400)}
    copy, _ = stored.store.copy_to(tmp_path / "store-00002", live)
    monkeypatch.setattr(faiss_index, "sample", None)
    assert not _built(copy, "auto")
    assert build(copy, "sentence", None, Progress(), stored.store.folder)
    made = read_index(copy.folder, "sentence")
    assert made is not None
    assert made.rows == 600


def test_auto_keeps_a_quantiser_until_there_would_be_more_than_twice_as_many_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faiss_index, "MOST_FLAT_ROWS", 1_000)
    store = new_store(tmp_path)
    append(store, "sentence", range(900))
    assert not _built(store, "auto")
    _built(store, "IVF4,Flat")
    monkeypatch.setattr(faiss_index, "lists_for", lambda _: 8)
    assert not _built(store, "auto")
    assert _built(store, "IVF8,Flat")
    monkeypatch.setattr(faiss_index, "lists_for", lambda _: 128)
    assert _built(store, "auto")
    assert read_index(store.folder, "sentence") is None
    assert _files(store) == []


def test_flat_stays_flat_where_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faiss_index, "MOST_FLAT_ROWS", 300)
    stored = stored_vectors(tmp_path, 400)
    assert _built(stored.store, "flat")
    for index in ("flat", "auto"):
        assert not _built(stored.store, index)
    copy, _ = stored.store.copy_to(tmp_path / "store-00002", {"sentence": np.arange(900)})
    assert build(copy, "sentence", "auto", Progress(), stored.store.folder)
    assert not _built(copy, "auto")
    assert stored.open().nearest("sentence", unit_vectors(1), 3)
    assert _built(copy, "IVF4,Flat")
    assert _files(copy)


def _full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_an_interrupted_build_leaves_the_index_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = stored_vectors(tmp_path, 400)
    stored.build("IVF8,Flat")
    expected = stored.open(nprobe=8).nearest("sentence", unit_vectors(1), 5)
    with monkeypatch.context() as patch:
        patch.setattr(faiss_index, "_fill", _full_disk)
        with pytest.raises(OSError, match="No space left on device"):
            stored.build("IVF4,Flat")
    assert stored.open(nprobe=8).nearest("sentence", unit_vectors(1), 5) == expected
    build(stored.store, "sentence", "IVF4,Flat", Progress())
    assert stored.open(nprobe=8).nearest("sentence", unit_vectors(1), 5) == expected
    record = read_index(stored.store.folder, "sentence")
    assert record is not None
    assert _files(stored.store) == [record.file]


def test_nothing_is_printed_to_stdout(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    stored = stored_vectors(tmp_path, 700)
    stored.build("IVF4,PQ8")
    stored.open()
    assert capfd.readouterr() == ("", "")


_BOUNDED = """
import sys
from pathlib import Path
import faiss, resource
import numpy as np
from arag_search.system.progress import Progress
from arag_search.vectors import faiss_index
from arag_search.vectors.folder import StoreRecord
from arag_search.vectors.store import Store
from tests.support.vector_stores import ENCODER, keys_of, unit_vectors
from tests.support.stored_vectors import with_state, StoredVectors
from arag_search.vectors.state import UnitTexts
from dataclasses import replace
root = Path(sys.argv[1])
faiss_index.share_cores = lambda: 1
record = StoreRecord(encoder=replace(ENCODER, dimension=512), dtype="float32", probes=())
store = Store.create(root / "store-00001", record)
for number in range(24):
    keys = keys_of(range(2_000 * number, 2_000 * number + 2_000))
    store.append("sentence", keys, unit_vectors(2_000, number, 512))
rows = np.arange(48_000)
state = with_state(root, store, {"sentence": UnitTexts(rows << 11, rows)})
faiss.omp_set_num_threads(1)
some = unit_vectors(1_000, 1, 512)
faiss.knn(some, some, 1)  # both libraries take their buffers for good
some @ some.T
now = int(next(l for l in open("/proc/self/status") if l.startswith("VmData")).split()[1]) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (now + (60 << 20), now + (60 << 20)))
StoredVectors(state, store).open().nearest("sentence", unit_vectors(3, 1, 512), 10)
print((store.folder / "sentence.vectors").stat().st_size)
"""


@pytest.mark.long
def test_memory_does_not_grow_with_flat_rows(tmp_path: Path) -> None:
    # There are 98 MB of vectors, and 60 MB to search them.
    process = subprocess.run(
        [sys.executable, "-c", _BOUNDED, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    assert process.returncode == 0, process.stderr[-2_000:]
    assert int(process.stdout) > 98_000_000


# Real sentences


@pytest.mark.parametrize("state", ["as built", "half dead", "half new"])
def test_recall_of_real_sentences_stays_where_half_of_the_rows_are_dead_or_new(
    tmp_path: Path, real_sentences: Vectors, state: str
) -> None:
    rows = np.random.default_rng(4).permutation(len(real_sentences))
    half = len(rows) // 2
    store = new_store(tmp_path, dimension=real_sentences.shape[1])
    numbers = [key.to_bytes(16, "big") for key in range(len(rows))]
    first = half if state == "half new" else len(rows)
    store.append("sentence", numbers[:first], real_sentences[rows[:first]])
    build(store, "sentence", "IVF5,Flat", Progress())
    store.append("sentence", numbers[first:], real_sentences[rows[first:]])
    live = np.arange(0, len(rows), 2 if state == "half dead" else 1)
    units: dict[VectorUnit, UnitTexts] = {"sentence": UnitTexts(np.arange(len(live)) << 11, live)}
    stored = StoredVectors(with_state(tmp_path, store, units), store)
    vectors = stored.open(nprobe=4)
    queries = real_sentences[::5]
    recall = [
        share_found(stored.expected("sentence", query, 10), texts)
        for query, texts in zip(queries, vectors.nearest("sentence", queries, 10), strict=True)
    ]
    assert sum(recall) / len(recall) >= 0.95


@pytest.fixture(scope="module")
def real_sentences(minilm: str) -> Vectors:
    """Encode the sentences of the sample."""
    lines = Path(SAMPLE).read_text("utf-8").splitlines()
    texts = [text for line in lines for text in json.loads(line)["text"].split(". ")]
    encoder = open_encoder(minilm)
    try:
        return encoder.encode(texts)
    finally:
        encoder.close()

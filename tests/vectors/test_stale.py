"""Vectors older than their index: those of unchanged passages are served, the rest refused."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from arag_search.corpus import Chunk
from arag_search.errors import VectorsMismatchError, VectorsStaleError
from arag_search.query.tree import KeywordEquals, Scope
from arag_search.vectors.base import VECTOR_UNITS, VectorUnit
from arag_search.vectors.storage.manifest import VectorManifest
from arag_search.vectors.storage.publish import publish_sidecar
from arag_search.vectors.storage.rows import rows_of
from arag_search.vectors.storage.sidecar import Sidecar, open_vectors
from index_jobs.embedding.reuse import find_reuse
from tests.support.oracle.engine import MemoryEngine
from tests.support.strategies import METADATA
from tests.support.vector_shards import (
    ENCODER,
    PublishedVectors,
    Untouched,
    chunks_of,
    manifest_of,
    nearly_equal,
    publish,
    shards_in,
    unit_vectors,
    write_placement,
    write_shards,
)

QUERY = unit_vectors(1, seed=4)


@pytest.fixture(params=["flat", "IVF2,Flat"])
def published(request: pytest.FixtureRequest, tmp_path: Path) -> PublishedVectors:
    return publish(tmp_path, chunks_of(120), size=50, index=request.param)


class ScannedIndex:
    """An index of chunks that counts how often it is read through."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._engine = MemoryEngine(chunks, metadata=METADATA)
        self.manifest = self._engine.manifest
        self.chunks_at = self._engine.chunks_at
        self.ordinals = self._engine.ordinals
        self.scans = 0

    def scan(self, scope: Scope | None) -> Iterator[Chunk]:
        self.scans += 1
        return self._engine.scan(scope)


def _open(
    published: PublishedVectors, chunks: Sequence[Chunk], *, allow_stale: bool = False
) -> Sidecar:
    return open_vectors(published.root, ScannedIndex(chunks), "index", allow_stale=allow_stale)


def _is_exact_over(sidecar: Sidecar, published: PublishedVectors, chunks: Sequence[Chunk]) -> bool:
    """Return whether a search finds what numpy finds among the vectors of these chunks."""
    ordinals = {chunk.ordinal for chunk in chunks}
    inside = np.array(
        [
            chunk.ordinal in ordinals
            for chunk in published.chunks
            for _ in rows_of(chunk, "sentence")
        ]
    )
    hits = sidecar.nearest("sentence", QUERY, 500)[0]
    return nearly_equal(hits, published.expected("sentence", QUERY[0], 500, inside))


def test_deleted_passages_are_not_found(published: PublishedVectors) -> None:
    remaining = [chunk for number, chunk in enumerate(published.chunks) if number % 5]
    sidecar = _open(published, remaining)
    assert sidecar.stale is None
    assert _is_exact_over(sidecar, published, remaining)
    german = Scope((KeywordEquals("lang", "de"),))
    assert len(sidecar.nearest("passage", QUERY, 500, german)[0]) == 48


def test_deletions_are_stored_in_a_file_and_not_computed_again(published: PublishedVectors) -> None:
    remaining = published.chunks[7:]
    before = {path.name: path.stat().st_mtime_ns for path in published.folder.iterdir()}
    _open(published, remaining)
    sidecar = open_vectors(published.root, Untouched(manifest_of(remaining)), "index")
    assert _is_exact_over(sidecar, published, remaining)
    name = f"served-{manifest_of(remaining).placement[:16]}.bits"
    after = {path.name: path.stat().st_mtime_ns for path in published.folder.iterdir()}
    assert {**before, name: after[name]} == after  # No other file was touched.
    published.open().verify()


def test_each_state_of_an_index_has_its_own_file_of_deletions(published: PublishedVectors) -> None:
    for remaining in (published.chunks[3:], published.chunks[9:], published.chunks[:60]):
        assert _is_exact_over(_open(published, remaining), published, remaining)
    assert _is_exact_over(published.open(), published, published.chunks)


def test_a_damaged_file_of_deletions_is_rewritten(published: PublishedVectors) -> None:
    remaining = published.chunks[7:]
    _open(published, remaining)
    (path,) = published.folder.glob("served-*")
    data = path.read_bytes()
    for damage in (data[:-2] + bytes([data[-2] ^ 1]) + data[-1:], b"", b"{}\n", data[:40]):
        path.write_bytes(damage)
        assert _is_exact_over(_open(published, remaining), published, remaining)
        assert path.read_bytes() == data


def test_only_the_most_recent_files_of_deletions_are_kept(published: PublishedVectors) -> None:
    for deleted in range(1, 12):
        _open(published, published.chunks[deleted:]).close()
    assert len(list(published.folder.glob("served-*"))) == 8


def test_deletions_are_masked_although_the_folder_cannot_be_written(
    published: PublishedVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr("arag_search.vectors.storage.finding.write_difference", refuse)
    remaining = published.chunks[7:]
    assert _is_exact_over(_open(published, remaining), published, remaining)


def test_an_index_from_which_all_was_deleted_finds_nothing(published: PublishedVectors) -> None:
    assert _open(published, []).nearest("sentence", QUERY, 5) == [[]]


def test_added_passages_are_an_error_that_names_only_missing(published: PublishedVectors) -> None:
    grown = [*published.chunks[3:], *chunks_of(4, first=120)]
    with pytest.raises(VectorsStaleError) as raised:
        _open(published, grown)
    assert str(raised.value) == (
        "The vectors are older than the index: 4 of 121 passages have no vectors.\n"
        f"Where: {published.folder}\n"
        "Allowed: vectors of the index as it is, or of one from which passages were deleted\n"
        f"Do: Run arag-search embed index --vectors {published.root} --only-missing, or search with"
        " --allow-stale."
    )


def test_stale_vectors_are_served_with_a_note_if_allowed(published: PublishedVectors) -> None:
    grown = [*published.chunks[3:], *chunks_of(4, first=120)]
    sidecar = _open(published, grown, allow_stale=True)
    assert sidecar.stale == (
        "the vectors are older than the index: 4 of 121 passages have no vectors, and are not"
        " found by meaning."
    )
    assert _is_exact_over(sidecar, published, published.chunks[3:])
    # The difference is stored for the next opening.
    reopened = open_vectors(
        published.root, Untouched(manifest_of(grown)), "index", allow_stale=True
    )
    assert reopened.stale == sidecar.stale
    assert _is_exact_over(reopened, published, published.chunks[3:])


def test_only_the_text_of_new_passages_is_read_if_that_proves_the_others(
    published: PublishedVectors,
) -> None:
    index = ScannedIndex([*published.chunks[3:], *chunks_of(4, first=120)])
    open_vectors(published.root, index, "index", allow_stale=True).close()
    assert index.scans == 0


def test_vectors_of_other_passages_at_the_same_places_are_refused(
    published: PublishedVectors,
) -> None:
    changed = chunks_of(120, sentences=2)
    for allow_stale in (False, True):
        with pytest.raises(VectorsMismatchError) as raised:
            _open(published, changed, allow_stale=allow_stale)
        assert str(raised.value) == (
            "The vectors belong to other passages, or to the same ones in another order: none of "
            f"the 120 passages of the index is where they place it.\nWhere: {published.folder}\n"
            "Allowed: vectors of the index as it is\n"
            f"Do: Run arag-search embed index --vectors {published.root}: it reuses the vectors of "
            "texts that have moved."
        )


def _reversed_from(chunks: Sequence[Chunk], first: int) -> list[Chunk]:
    """Reverse the order of the passages from ``first`` on, at the same places."""
    tail = chunks[first:]
    reversed_tail = [
        replace(chunk, ordinal=original.ordinal)
        for chunk, original in zip(reversed(tail), tail, strict=True)
    ]
    return [*chunks[:first], *reversed_tail]


def test_of_reordered_passages_only_those_in_their_old_places_are_served(
    published: PublishedVectors,
) -> None:
    moved = _reversed_from(published.chunks, 50)
    assert manifest_of(moved).fingerprint == published.manifest.fingerprint
    with pytest.raises(VectorsStaleError, match="70 of 120 passages have no vectors"):
        _open(published, moved)
    sidecar = _open(published, moved, allow_stale=True)
    assert _is_exact_over(sidecar, published, published.chunks[:50])


def test_passages_whose_metadata_or_sentences_changed_are_not_served(
    published: PublishedVectors,
) -> None:
    first, second, *rest = published.chunks
    other_year = replace(first, metadata={**first.metadata, "year": 1})
    one_sentence = replace(second, sentence_ends=second.sentence_ends[-1:])
    changed = [other_year, one_sentence, *rest]
    with pytest.raises(VectorsStaleError, match="2 of 120 passages have no vectors"):
        _open(published, changed)
    sidecar = _open(published, changed, allow_stale=True)
    assert _is_exact_over(sidecar, published, rest)


def test_an_index_without_a_placement_is_refused_with_the_command_that_adds_it(
    published: PublishedVectors,
) -> None:
    index = Untouched(replace(published.manifest, placement=""))
    with pytest.raises(VectorsStaleError) as raised:
        open_vectors(published.root, index, "index", allow_stale=True)
    assert str(raised.value) == (
        "The index does not record which passage is where: an earlier version wrote it.\n"
        "Where: index\nAllowed: an index with a placement in its manifest\n"
        f"Do: Run arag-search embed index --vectors {published.root}: it adds the placement, and"
        " encodes only what is missing."
    )


def test_a_roll_back_finds_the_previous_vectors(published: PublishedVectors) -> None:
    grown, vector_manifest = _grow(published, published.chunks)
    assert _is_exact_over(grown.open(), grown, grown.chunks)
    assert _is_exact_over(published.open(), published, published.chunks)
    assert vector_manifest != published.vector_manifest


def test_of_several_sidecars_the_complete_one_is_used(published: PublishedVectors) -> None:
    grown, _ = _grow(published, published.chunks)
    remaining = grown.chunks[5:]
    sidecar = _open(published, remaining)
    assert sidecar.path == grown.folder
    assert _is_exact_over(sidecar, grown, remaining)


def test_rows_of_deleted_texts_are_dead_and_not_found(published: PublishedVectors) -> None:
    remaining = [chunk for number, chunk in enumerate(published.chunks) if number % 7]
    grown, vector_manifest = _grow(published, remaining)
    assert vector_manifest.dead_rows == {"sentence": 54, "passage": 18}
    sidecar = grown.open()
    assert sidecar.stale is None
    assert _is_exact_over(sidecar, grown, grown.chunks)
    sidecar.verify()
    # Further deletions are served as well.
    fewer = grown.chunks[10:]
    assert _is_exact_over(_open(grown, fewer), grown, fewer)


def test_rows_keep_their_vectors_wherever_their_texts_move(published: PublishedVectors) -> None:
    moved = _reversed_from(published.chunks, 0)
    manifest = manifest_of(moved)
    placement = write_placement(published.root.parent / "placement", moved)
    shards = published.vector_manifest.shards_in(published.folder)
    reuse = find_reuse(placement, VECTOR_UNITS, shards, lambda *_: None)
    assert (reuse.linked, reuse.missing_rows()) == (shards, 0)
    vector_manifest = publish_sidecar(
        shards,
        placement,
        published.root,
        encoder=ENCODER,
        units=VECTOR_UNITS,
        dtype="float32",
        index=published.vector_manifest.index["sentence"],
        manifest=manifest,
        earlier=published.folder,
    )
    reversed_vectors = {
        unit: np.concatenate(
            [
                published.vectors[unit][rows]
                for rows in reversed(_rows_of_chunks(published.chunks, unit))
            ]
        )
        for unit in VECTOR_UNITS
    }
    republished = PublishedVectors(
        published.root, moved, reversed_vectors, manifest, vector_manifest
    )
    sidecar = republished.open()
    assert _is_exact_over(sidecar, republished, moved)
    german = Scope((KeywordEquals("lang", "de"),))
    inside = np.array(
        [chunk.metadata["lang"] == "de" for chunk in moved for _ in rows_of(chunk, "sentence")]
    )
    in_scope = sidecar.nearest("sentence", QUERY, 500, german)[0]
    assert nearly_equal(in_scope, republished.expected("sentence", QUERY[0], 500, inside))
    for name in ("shard-00000.sentence.npy", "sentence.faiss", "sentence.ivfdata"):
        if (published.folder / name).exists():
            assert (published.folder / name).samefile(republished.folder / name)


def _rows_of_chunks(chunks: Sequence[Chunk], unit: VectorUnit) -> list[list[int]]:
    counts = [len(rows_of(chunk, unit)) for chunk in chunks]
    ends = np.cumsum(counts).tolist()
    return [list(range(end - count, end)) for end, count in zip(ends, counts, strict=True)]


def _grow(
    published: PublishedVectors, remaining: Sequence[Chunk]
) -> tuple[PublishedVectors, VectorManifest]:
    """Publish the sidecar of an index of the ``remaining`` chunks and 90 added ones."""
    new = chunks_of(90, first=120)
    work = published.root.parent / "more"
    added = write_shards(work, new, size=60, seed=8)
    chunks = [*remaining, *new]
    manifest = manifest_of(chunks)
    placement = write_placement(work / "placement", chunks)
    reuse = find_reuse(
        placement,
        VECTOR_UNITS,
        [*published.vector_manifest.shards_in(published.folder), *shards_in(work)],
        lambda *_: None,
    )
    assert reuse.missing_rows() == 0
    vector_manifest = publish_sidecar(
        reuse.linked,
        placement,
        published.root,
        encoder=ENCODER,
        units=VECTOR_UNITS,
        dtype="float32",
        manifest=manifest,
        earlier=published.folder,
    )
    remaining_ids = {chunk.id for chunk in remaining}
    vectors = {
        unit: np.concatenate(
            (
                published.vectors[unit][
                    [
                        chunk.id in remaining_ids
                        for chunk in published.chunks
                        for _ in rows_of(chunk, unit)
                    ]
                ],
                added[unit],
            )
        )
        for unit in VECTOR_UNITS
    }
    return PublishedVectors(
        published.root, chunks, vectors, manifest, vector_manifest
    ), vector_manifest

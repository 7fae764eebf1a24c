"""Vectors fit their index exactly, also after deletions, or are refused."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from arag_search.corpus import Chunk
from arag_search.errors import VectorsDamagedError, VectorsMismatchError
from arag_search.vectors.base import rows_of
from arag_search.vectors.storage.files import map_array
from arag_search.vectors.storage.folders import fitting_sidecar, write_deletions
from arag_search.vectors.storage.sidecar import Sidecar, open_vectors
from tests.support.vector_shards import (
    PublishedVectors,
    chunks_of,
    manifest_of,
    nearly_equal,
    publish,
    unit_vectors,
    verify,
)

QUERY = unit_vectors(1, seed=4)


@pytest.fixture(params=["flat", "IVF2,Flat"])
def published(request: pytest.FixtureRequest, tmp_path: Path) -> PublishedVectors:
    return publish(tmp_path, chunks_of(120), size=50, index=request.param)


def _deleted(published: PublishedVectors, remaining: Sequence[Chunk]) -> Sidecar:
    """Record that all chunks but the remaining ones are deleted, and open the sidecar."""
    manifest = manifest_of(remaining)
    kept = {chunk.ordinal for chunk in remaining}
    gone = [chunk.ordinal for chunk in published.chunks if chunk.ordinal not in kept]
    fitting = fitting_sidecar(published.root, published.manifest.placement)
    assert fitting is not None
    write_deletions(fitting, gone, manifest.placement)
    return open_vectors(published.root, manifest, "index")


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


def test_a_deletion_writes_one_small_file_and_reads_no_vectors(
    published: PublishedVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    remaining = published.chunks[7:]
    before = {path.name: path.stat().st_mtime_ns for path in published.folder.iterdir()}
    opened: list[str] = []
    monkeypatch.setattr(
        "arag_search.vectors.storage.folders.map_array",
        lambda path, *shape: opened.append(path.name) or map_array(path, *shape),
    )
    sidecar = _deleted(published, remaining)
    assert opened == ["chunks.npy"]
    assert _is_exact_over(sidecar, published, remaining)
    name = f"deleted-{manifest_of(remaining).placement[:16]}.bits"
    after = {path.name: path.stat().st_mtime_ns for path in published.folder.iterdir()}
    assert {**before, name: after[name]} == after
    assert (published.folder / name).stat().st_size < 300
    verify(published.open())


def test_deletions_follow_each_other_and_each_state_stays_for_its_readers(
    published: PublishedVectors,
) -> None:
    states = [published.chunks[3:], published.chunks[9:], published.chunks[9:60]]
    before = published.chunks
    for remaining in states:
        fitting = fitting_sidecar(published.root, manifest_of(before).placement)
        assert fitting is not None
        kept = {chunk.ordinal for chunk in remaining}
        held = {chunk.ordinal for chunk in before}
        gone = sorted(held - kept)
        write_deletions(fitting, gone, manifest_of(remaining).placement)
        before = remaining
    for remaining in states:
        sidecar = open_vectors(published.root, manifest_of(remaining), "index")
        assert _is_exact_over(sidecar, published, remaining)
    assert _is_exact_over(published.open(), published, published.chunks)


def test_a_damaged_file_of_deletions_is_an_error(published: PublishedVectors) -> None:
    remaining = published.chunks[7:]
    _deleted(published, remaining)
    (path,) = published.folder.glob("deleted-*")
    data = path.read_bytes()
    for damage in (data[:-2] + bytes([data[-2] ^ 1]) + data[-1:], b"", b"{}\n", data[:40]):
        path.write_bytes(damage)
        with pytest.raises(VectorsDamagedError) as raised:
            open_vectors(published.root, manifest_of(remaining), "index")
        assert raised.value.do == (
            f"Embed the index again: arag-search embed index --vectors {published.root}"
        )


def test_only_the_most_recent_files_of_deletions_are_kept(published: PublishedVectors) -> None:
    for deleted in range(1, 12):
        _deleted(published, published.chunks[deleted:]).close()
    assert len(list(published.folder.glob("deleted-*"))) == 8


def test_an_index_from_which_all_was_deleted_finds_nothing(published: PublishedVectors) -> None:
    assert _deleted(published, []).nearest("sentence", QUERY, 5) == [[]]


def _changed(chunks: Sequence[Chunk]) -> Iterator[list[Chunk]]:
    """Yield other states of an index: one grew, one lost a passage, one has other passages at the
    same ordinals, one the same in another order, two other metadata and sentences."""
    first, second, *rest = chunks
    yield [*chunks[3:], *chunks_of(4, first=120)]
    yield [*chunks[1:]]
    yield chunks_of(120, sentences=2)
    yield _reversed_from(chunks, 50)
    yield [replace(first, metadata={**first.metadata, "year": 1}), second, *rest]
    yield [first, replace(second, sentence_ends=second.sentence_ends[-1:]), *rest]


def test_vectors_that_do_not_fit_the_index_are_refused_with_the_command_that_makes_them(
    published: PublishedVectors,
) -> None:
    for chunks in _changed(published.chunks):
        with pytest.raises(VectorsMismatchError) as raised:
            open_vectors(published.root, manifest_of(chunks), "index")
        assert str(raised.value) == (
            "The vectors do not fit the index: it has changed since they were made, or they are"
            f" those of another index.\nWhere: {published.root}\n"
            "Allowed: vectors of the index as it is\n"
            f"Do: Run arag-search embed index --vectors {published.root}: it encodes new texts"
            " only."
        )


def _reversed_from(chunks: Sequence[Chunk], first: int) -> list[Chunk]:
    """Reverse the order of the passages from ``first`` on, at the same places."""
    tail = chunks[first:]
    reversed_tail = [
        replace(chunk, ordinal=original.ordinal)
        for chunk, original in zip(reversed(tail), tail, strict=True)
    ]
    return [*chunks[:first], *reversed_tail]

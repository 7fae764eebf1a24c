"""Vectors that are older than their index: masked where passages were deleted, else refused."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from arag_search.corpus import Chunk
from arag_search.errors import VectorsDamagedError, VectorsMismatchError, VectorsStaleError
from arag_search.query.tree import KeywordEquals, Scope
from arag_search.vectors.base import VECTOR_UNITS
from arag_search.vectors.publish import publish_sidecar
from arag_search.vectors.rows import rows_of
from arag_search.vectors.sidecar import Sidecar, open_vectors
from tests.vector_shards import (
    ENCODER,
    Published,
    chunks_of,
    close,
    manifest_of,
    not_asked,
    publish,
    unit_vectors,
    write_shards,
)

pytestmark = pytest.mark.vectors

QUERY = unit_vectors(1, seed=4)


@pytest.fixture(params=["flat", "IVF2,Flat"])
def published(request: pytest.FixtureRequest, tmp_path: Path) -> Published:
    return publish(tmp_path, chunks_of(120), size=50, index=request.param)


def _streamed(chunks: Sequence[Chunk]) -> Callable[[], Iterator[int]]:
    return lambda: (each.ordinal for each in chunks)


def _open(one: Published, chunks: Sequence[Chunk], *, allow_stale: bool = False) -> Sidecar:
    return open_vectors(one.root, manifest_of(chunks), _streamed(chunks), allow_stale=allow_stale)


def _is_exact_over(sidecar: Sidecar, one: Published, chunks: Sequence[Chunk]) -> bool:
    """Whether a search finds what numpy finds among the vectors of these chunks."""
    kept = {each.ordinal for each in chunks}
    inside = np.array(
        [each.ordinal in kept for each in one.chunks for _ in rows_of(each, "sentence")]
    )
    found = sidecar.nearest("sentence", QUERY, 500)[0]
    return close(found, one.expected("sentence", QUERY[0], 500, inside))


def test_deleted_passages_are_not_found(published: Published) -> None:
    left = [each for number, each in enumerate(published.chunks) if number % 5]
    sidecar = _open(published, left)
    assert sidecar.stale is None
    assert _is_exact_over(sidecar, published, left)
    german = Scope((KeywordEquals("lang", "de"),))
    assert len(sidecar.nearest("passage", QUERY, 500, german)[0]) == 48


def test_what_is_deleted_is_kept_in_a_file_and_not_asked_for_again(published: Published) -> None:
    left = published.chunks[7:]
    before = {path.name: path.stat().st_mtime_ns for path in published.folder.iterdir()}
    _open(published, left)
    sidecar = open_vectors(published.root, manifest_of(left), not_asked)
    assert _is_exact_over(sidecar, published, left)
    name = f"deleted-{manifest_of(left).fingerprint[:16]}.bits"
    after = {path.name: path.stat().st_mtime_ns for path in published.folder.iterdir()}
    assert {**before, name: after[name]} == after  # nothing else was touched
    published.open().verify()


def test_each_state_of_an_index_has_its_own_deletions(published: Published) -> None:
    for left in (published.chunks[3:], published.chunks[9:], published.chunks[:60]):
        assert _is_exact_over(_open(published, left), published, left)
    assert _is_exact_over(published.open(), published, published.chunks)


def test_a_file_of_deletions_that_is_damaged_is_an_error(published: Published) -> None:
    left = published.chunks[7:]
    _open(published, left)
    (path,) = published.folder.glob("deleted-*")
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    with pytest.raises(VectorsDamagedError) as raised:
        _open(published, left)
    assert str(raised.value) == (
        f"The file is not what was written: its SHA-256 differs.\nWhere: {path}\n"
        "Do: Delete the file: it is made anew where it is needed."
    )
    path.unlink()
    assert _is_exact_over(_open(published, left), published, left)


def test_deletions_are_masked_where_the_folder_cannot_be_written(
    published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr("arag_search.vectors.finding.write_deletions", refuse)
    left = published.chunks[7:]
    assert _is_exact_over(_open(published, left), published, left)


def test_an_index_from_which_all_was_deleted_finds_nothing(published: Published) -> None:
    assert _open(published, []).nearest("sentence", QUERY, 5) == [[]]


def test_added_passages_are_an_error_that_names_only_missing(published: Published) -> None:
    grown = [*published.chunks[3:], *chunks_of(4, first=120)]
    with pytest.raises(VectorsStaleError) as raised:
        _open(published, grown)
    assert str(raised.value) == (
        "The vectors are older than the index: 4 of 121 passages have no vectors.\n"
        f"Where: {published.folder}\n"
        "Allowed: vectors of the index as it is, or of one from which passages were deleted\n"
        "Do: Run arag-search embed INDEX --only-missing, or search with --allow-stale."
    )


def test_stale_vectors_are_served_where_that_is_allowed_and_say_so(published: Published) -> None:
    grown = [*published.chunks[3:], *chunks_of(4, first=120)]
    sidecar = _open(published, grown, allow_stale=True)
    assert sidecar.stale == (
        "the vectors are older than the index: 4 of 121 passages have no vectors, and are not"
        " found by meaning."
    )
    assert _is_exact_over(sidecar, published, published.chunks[3:])
    assert not list(published.folder.glob("deleted-*"))


def test_vectors_of_other_passages_at_the_same_places_are_refused(published: Published) -> None:
    changed = chunks_of(120, sentences=2)
    for allow_stale in (False, True):
        with pytest.raises(VectorsMismatchError) as raised:
            _open(published, changed, allow_stale=allow_stale)
        assert raised.value.what == (
            "The vectors are of another corpus: the index has other passages at the same places."
        )
        assert published.manifest.fingerprint[:12] in raised.value.where
        assert manifest_of(changed).fingerprint[:12] in raised.value.where


def test_a_roll_back_finds_the_vectors_of_before(published: Published) -> None:
    grown, made = _grow(published, published.chunks)
    assert _is_exact_over(grown.open(), grown, grown.chunks)
    assert _is_exact_over(published.open(), published, published.chunks)
    assert made != published.made


def test_of_several_sidecars_the_one_that_lacks_nothing_is_taken(published: Published) -> None:
    grown, _ = _grow(published, published.chunks)
    left = grown.chunks[5:]
    sidecar = open_vectors(published.root, manifest_of(left), _streamed(left))
    assert sidecar.path == grown.folder
    assert _is_exact_over(sidecar, grown, left)


def test_an_earlier_sidecar_is_taken_over_with_its_deletions(published: Published) -> None:
    left = [each for number, each in enumerate(published.chunks) if number % 7]
    grown, made = _grow(published, left)
    assert made.deleted_chunks == 18
    kept = [*left, *grown.chunks[120:]]
    sidecar = open_vectors(published.root, manifest_of(kept), not_asked)
    assert sidecar.stale is None
    assert _is_exact_over(sidecar, grown, kept)
    sidecar.verify()
    # and once more, with deletions after those
    fewer = kept[10:]
    again = open_vectors(published.root, manifest_of(fewer), _streamed(fewer))
    assert _is_exact_over(again, grown, fewer)


def test_an_earlier_sidecar_of_another_encoder_is_not_taken_over(published: Published) -> None:
    with pytest.raises(VectorsMismatchError) as raised:
        publish_sidecar(
            published.root,
            published.root,
            encoder=type(ENCODER)(kind="hashing", name="other", revision="1", dimension=16),
            units=VECTOR_UNITS,
            dtype="float32",
            manifest=published.manifest,
            earlier=published.folder,
        )
    assert raised.value.what == "The earlier vectors are of words, the new ones of other."


def _grow(one: Published, left: Sequence[Chunk]) -> tuple[Published, object]:
    """The sidecar of an index of which ``left`` remained and to which 90 chunks were added."""
    new = chunks_of(90, first=120)
    work = one.root.parent / "more"
    added = write_shards(work, new, size=60, seed=8)
    now = [*left, *new]
    manifest = manifest_of(now)
    made = publish_sidecar(
        work,
        one.root,
        encoder=ENCODER,
        units=VECTOR_UNITS,
        dtype="float32",
        manifest=manifest,
        earlier=one.folder,
        ordinals=_streamed(now),
    )
    every = {unit: np.concatenate((one.vectors[unit], added[unit])) for unit in VECTOR_UNITS}
    return Published(one.root, [*one.chunks, *new], every, manifest, made), made

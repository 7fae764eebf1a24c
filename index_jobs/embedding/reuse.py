"""Vectors that exist before an embedding: which encoder made them, and which texts of an index have
one in shards that were made before.

Texts and rows are matched by their keys, wherever each is stored. A row belongs to one text; if
several texts have its key, its vector is copied for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from arag_search.errors import ArgumentError, VectorsError
from arag_search.vectors.base import KEY_BYTES, EncoderIdentity, FloatArray, VectorUnit
from arag_search.vectors.storage.folders import fitting_sidecar, readable_sidecars
from arag_search.vectors.storage.manifest import VectorManifest
from arag_search.vectors.storage.placement import rows_file, wanted_keys
from arag_search.vectors.storage.shards import MappedRows, StoredShard, StoredType, shard_numbers
from index_jobs.embedding.making import TO_ENCODE
from index_jobs.embedding.plan import EmbedOptions, Plan, read_plan

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Keys = NDArray[np.uint8]
    Numbers = NDArray[np.int64]

LEAST_LIVE_SHARE = 0.5
"""The minimum share of a shard's rows that must be in use for the shard to be linked. Below it, the
rows in use are copied out of the shard."""

_ROWS_AT_ONCE = 1 << 22
_BLOCK_ROWS = 1 << 20
_PREFIX_BYTES = 8
_NONE = -1


class Existing:
    """The vectors in a folder, and those of an interrupted embedding. ``fitting`` are those that
    fit the index, if any; ``sidecars`` are all that can be read, the newest first."""

    def __init__(self, root: Path, work: Path, placement: str) -> None:
        self._root = root
        self._planned = read_plan(work) if shard_numbers(work) else None
        self.fitting: VectorManifest | None = None
        with suppress(VectorsError):  # embedding again replaces it
            fitting = fitting_sidecar(root, placement)
            self.fitting = None if fitting is None else fitting.manifest
        self.sidecars = readable_sidecars(root)

    def encoder(self) -> EncoderIdentity | None:
        """Return the encoder that an interrupted embedding uses, else the one of the vectors that
        fit the index, else that of all other vectors; None if there are none. Raises ArgumentError
        if the others were made by several."""
        if self._planned is not None:
            return self._planned.encoder
        if self.fitting is not None:
            return self.fitting.encoder
        encoders = {manifest.encoder: None for _, manifest in self.sidecars}
        if len(encoders) > 1:
            raise ArgumentError(
                "No encoder is named, none of the vectors fit the index, and several encoders made"
                " them.",
                where=str(self._root),
                allowed=", ".join(sorted({encoder.name for encoder in encoders})),
                do="Name the one of this index with --encoder.",
            )
        return next(iter(encoders), None)

    def plan(self, identity: EncoderIdentity, options: EmbedOptions) -> Plan:
        """Return the plan of an embedding by this encoder: sentences are encoded below their titles
        as the options say, else as in existing vectors by this encoder, else yes (better on real
        questions: ``bench retrieval --titles``)."""
        titles = options.sentence_titles
        if titles is None and not options.overwrite:
            own = [] if self.fitting is None else [Plan.of(self.fitting)]
            plans = [self._planned, *own, *(Plan.of(manifest) for _, manifest in self.sidecars)]
            known = (plan for plan in plans if plan is not None and plan.encoder == identity)
            titles = next((plan.sentence_titles for plan in known), None)
        return Plan(identity, options.units, options.dtype, titles is None or titles)

    def like(self, plan: Plan) -> tuple[list[StoredShard], Path | None]:
        """Return the shards of the vectors with this plan, those of the newest first, and the
        newest sidecar, whose trained quantisers may be reused."""
        matching = [sidecar for sidecar in self.sidecars if not Plan.of(sidecar[1]).changes(plan)]
        shards: list[StoredShard] = []
        known: set[frozenset[str]] = set()  # sidecars may share shards
        for path, manifest in matching:
            for shard in manifest.shards_in(path):
                checksums = frozenset(file.sha256 for file in shard.record.files.values())
                if checksums not in known:
                    known.add(checksums)
                    shards.append(shard)
        return shards, matching[0][0] if matching else None


@dataclass(frozen=True, slots=True)
class Reuse:
    """The vectors to reuse: whole shards that are ``linked``, and rows copied from ``lenders``.

    ``live`` counts the rows in use of each linked shard. For each unit, ``linked_rows`` counts the
    rows of the linked shards. ``sources`` has an entry, in corpus order, for each text without a
    row in a linked shard: the row (of the linked shards, then the lenders) to copy its vector from,
    or TO_ENCODE."""

    linked: Sequence[StoredShard]
    lenders: Sequence[StoredShard]
    live: Sequence[int]
    linked_rows: Mapping[VectorUnit, int]
    sources: Mapping[VectorUnit, Numbers]

    def encoded_rows(self) -> int:
        """Return how many texts have no vector."""
        return sum(int((rows == TO_ENCODE).sum()) for rows in self.sources.values())

    def missing_rows(self) -> int:
        """Return how many texts get a new row, including those whose vectors are copied."""
        return sum(map(len, self.sources.values()))

    def copier(
        self, dimension: int, dtype: StoredType
    ) -> Callable[[VectorUnit, Sequence[int]], FloatArray]:
        """Return a function that reads the vectors of the rows that ``sources`` names."""
        import numpy as np

        mapped: dict[VectorUnit, MappedRows] = {}

        def copy(unit: VectorUnit, rows: Sequence[int]) -> FloatArray:
            if unit not in mapped:
                mapped[unit] = MappedRows([*self.linked, *self.lenders], unit, dimension, dtype)
            return mapped[unit].gather(np.array(rows, np.int64))

        return copy


def find_reuse(
    placement: Path,
    units: Sequence[VectorUnit],
    shards: Sequence[StoredShard],
    on_damage: Callable[[StoredShard, VectorsError], None],
) -> Reuse:
    """Match the texts of a placement with the rows of shards, preferring the first shards.

    Writes the row of each text: a row of the linked shards, or a row after them in the shards that
    are still to be made, in corpus order. Every shard in use is read and verified; ``on_damage`` is
    called for a damaged shard, which is then not used. Memory: some 60 bytes for each row matched
    at once (at most 4 million), and 16 bytes for each text.
    """
    import numpy as np

    verified: set[Path] = set()
    while True:
        matched: dict[VectorUnit, _Matched] = {
            unit: _match(placement, unit, shards) for unit in units
        }
        live = _live_rows(matched, shards)
        used = [shard for shard, rows in zip(shards, live, strict=True) if rows]
        sound = _without_damaged(used, verified, on_damage)
        if len(sound) == len(used):
            break
        damaged = [shard for shard in used if shard not in sound]
        shards = [shard for shard in shards if shard not in damaged]
    del matched
    linked: list[StoredShard] = []
    lenders: list[StoredShard] = []
    linked_live: list[int] = []
    for shard, rows in zip(shards, live, strict=True):
        if rows and rows >= LEAST_LIVE_SHARE * shard.record.all_rows:
            linked.append(shard)
            linked_live.append(rows)
        elif rows:
            lenders.append(shard)
    linked_rows: dict[VectorUnit, int] = {}
    sources: dict[VectorUnit, Numbers] = {}
    for unit in units:
        rows_of_texts, copied = _match(placement, unit, [*linked, *lenders])
        total = linked_rows[unit] = sum(shard.record.rows[unit] for shard in linked)
        missing = (rows_of_texts < 0) | (rows_of_texts >= total)
        from_lender = rows_of_texts[missing]
        sources[unit] = np.where(from_lender >= 0, from_lender, copied[missing])
        rows_of_texts[missing] = total + np.arange(len(sources[unit]))
        with rows_file(placement, unit).open("wb") as file:
            np.save(file, rows_of_texts)
    return Reuse(linked, lenders, linked_live, linked_rows, sources)


def _without_damaged(
    shards: Sequence[StoredShard],
    verified: set[Path],
    on_damage: Callable[[StoredShard, VectorsError], None],
) -> list[StoredShard]:
    """Return the undamaged shards. Those in ``verified`` are not read again; the others are added
    to it."""
    sound: list[StoredShard] = []
    for shard in shards:
        name = shard.file("")
        try:
            if name not in verified:
                shard.verify()
        except VectorsError as error:
            on_damage(shard, error)
        else:
            verified.add(name)
            sound.append(shard)
    return sound


class _Matched(NamedTuple):
    """The row of each text that no other text has, and the row from which its vector may be copied;
    -1 for no row."""

    own: Numbers
    copied: Numbers


def _live_rows(matched: Mapping[VectorUnit, _Matched], shards: Sequence[StoredShard]) -> list[int]:
    """Return how many rows of each shard are in use."""
    import numpy as np

    live = np.zeros(len(shards), np.int64)
    for unit, rows in matched.items():
        ends = np.cumsum([shard.record.rows[unit] for shard in shards])
        own = rows.own[rows.own >= 0]
        live += np.bincount(np.searchsorted(ends, own, side="right"), minlength=len(shards))
    return live.tolist()


def _match(placement: Path, unit: VectorUnit, shards: Sequence[StoredShard]) -> _Matched:
    """Match the texts of a unit with rows, in parts that fit in memory: each part has a range of
    first bytes of the keys."""
    import numpy as np

    wanted = [wanted_keys(placement, unit)]
    known = [shard.keys(unit) for shard in shards]
    texts, rows = len(wanted[0]), sum(map(len, known))
    matched = _Matched(np.full(texts, _NONE, np.int64), np.full(texts, _NONE, np.int64))
    parts = max(1, -(-(texts + rows) // _ROWS_AT_ONCE))
    for part in range(parts):
        _match_part(_selected(wanted, part, parts), _selected(known, part, parts), matched)
    return matched


class _Selected(NamedTuple):
    """Keys with their numbers, sorted by their first 8 bytes, equal ones by number."""

    numbers: Numbers
    prefixes: NDArray[np.uint64]
    keys: Keys


def _selected(arrays: Sequence[Keys], part: int, parts: int) -> _Selected:
    """Return the keys of a part; numbers count from 0 over all arrays."""
    import numpy as np

    numbers: list[Numbers] = [np.empty(0, np.int64)]
    keys: list[Keys] = [np.empty((0, KEY_BYTES), np.uint8)]
    start = 0
    for array in arrays:
        for first in range(0, len(array), _BLOCK_ROWS):
            block = np.asarray(array[first : first + _BLOCK_ROWS])
            begins = block[:, 0].astype(np.int64) * 256 + block[:, 1]
            mine = np.flatnonzero(begins * parts >> 16 == part)
            numbers.append(mine + start + first)
            keys.append(block[mine])
        start += len(array)
    joined = np.concatenate(keys)
    prefixes = joined[:, :_PREFIX_BYTES].copy().view(np.uint64)[:, 0]
    order = np.argsort(prefixes, kind="stable")
    return _Selected(np.concatenate(numbers)[order], prefixes[order], joined[order])


def _match_part(wanted: _Selected, known: _Selected, matched: _Matched) -> None:
    """Match the n-th text with a key with the n-th row of that key. If there are fewer rows, the
    first row is the one to copy."""
    import numpy as np

    first_text = np.searchsorted(wanted.prefixes, wanted.prefixes, side="left")
    rank = np.arange(len(wanted.prefixes)) - first_text
    first = np.searchsorted(known.prefixes, wanted.prefixes, side="left")
    behind = np.searchsorted(known.prefixes, wanted.prefixes, side="right")
    for target, at in ((matched.own, first + rank), (matched.copied, first)):
        hits = np.flatnonzero(at < behind)
        # Keys may share their first bytes and still differ.
        hits = hits[(known.keys[at[hits]] == wanted.keys[hits]).all(axis=1)]
        target[wanted.numbers[hits]] = known.numbers[at[hits]]

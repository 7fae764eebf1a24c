"""Publishing shards and a placement as a sidecar, with FAISS indexes trained and merged on disk.

The work is done in ``<folder of the sidecar>.new`` next to it. Interrupted work is resumed if it is
the same. The manifest is written last, and the folder renamed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from arag_search.errors import VectorsMismatchError, VectorsNotFoundError
from arag_search.manifest import Manifest
from arag_search.system.durable import sync, write_atomically
from arag_search.system.extras import check_extra
from arag_search.system.processes import share_cores
from arag_search.system.progress import Progress
from arag_search.vectors.base import KEY_BYTES, EncoderIdentity, VectorUnit
from arag_search.vectors.storage import faiss_index
from arag_search.vectors.storage.columns import column_files
from arag_search.vectors.storage.files import (
    ArrayWriter,
    FileRecord,
    file_record,
    link_or_copy,
    map_array,
)
from arag_search.vectors.storage.folders import is_sidecar_name, sidecar_folder
from arag_search.vectors.storage.manifest import (
    FLAT,
    MANIFEST,
    VectorManifest,
    index_files,
    keys_file,
    ordinals_file,
    read_manifest,
    trained_file,
)
from arag_search.vectors.storage.placement import (
    chunks_file,
    ends_file,
    rows_file,
    texts_file,
    wanted_keys,
)
from arag_search.vectors.storage.shards import (
    MappedRows,
    ShardRecord,
    StoredShard,
    StoredType,
    take_shard,
    vectors_role,
    write_record,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESCORE = 10
"""The number of candidates rescored by their stored vectors, as a multiple of the requested
number."""

_PLAN = "plan.json"
_BLOCK_ROWS = 1 << 20


def publish_sidecar(
    shards: Sequence[StoredShard],
    placement: Path,
    root: Path,
    *,
    encoder: EncoderIdentity,
    units: Sequence[VectorUnit],
    dtype: StoredType,
    index: str = "auto",
    manifest: Manifest,
    progress: Progress | None = None,
    previous: Path | None = None,
    threads: int | None = None,
    sentence_titles: bool = False,
) -> VectorManifest:
    """Publish shards as the sidecar of an index, in a folder of ``root``.

    ``placement`` is the folder of the placement that ``manifest``, the manifest of the index,
    states; its ``rows`` name for each text a row of the shards (see placement.py). ``index`` is
    "auto", "flat" or a FAISS factory with an inverted file. ``previous`` is the folder of a sidecar
    whose trained quantisers are reused if the factory is the same, and whose inverted lists are
    reused if its shards are the first of these. Shards are linked, or copied from another file
    system. Memory grows with the size of a shard and of the training sample, not with the number of
    rows. ``threads`` defaults to the number of cores. ``sentence_titles`` says how the placement
    was written.

    After a kill, the same call resumes. An existing sidecar of this placement is replaced. Raises
    ArgumentError for an index that cannot be created or trained, VectorsNotFoundError if there are
    no shards, VectorsMismatchError if a text is not that of its row, VectorsDamagedError,
    MissingExtraError, OSError. The content of the shards must have been verified, and the folder
    locked.
    """
    check_extra("vectors", "numpy")
    faiss_index.check_factory(index, encoder.dimension)
    root.mkdir(parents=True, exist_ok=True)
    publication = _Publication(
        sidecar_folder(root, manifest.placement),
        encoder,
        tuple(units),
        dtype,
        index,
        manifest,
        progress or Progress(),
        threads or share_cores(),
        sentence_titles,
    )
    return publication.run(shards, placement, previous)


@dataclass(frozen=True)
class _Publication:
    """The publication of one sidecar in the folder ``_target``."""

    _target: Path
    _encoder: EncoderIdentity
    _units: tuple[VectorUnit, ...]
    _dtype: StoredType
    _index: str
    _manifest: Manifest
    _progress: Progress
    _threads: int
    _sentence_titles: bool

    @property
    def _folder(self) -> Path:
        """The folder in which the work is done."""
        return self._target.with_name(self._target.name + ".new")

    def run(
        self, shards: Sequence[StoredShard], placement: Path, previous: Path | None
    ) -> VectorManifest:
        """Do all steps. Raises the errors of ``publish_sidecar``."""
        restore_swapped(self._target.parent)
        self._check(shards, placement)
        self._begin(shards, placement, previous)
        taken = [self._take(number, shard) for number, shard in enumerate(shards)]
        self._take_placement(placement)
        dead: dict[VectorUnit, int] = {
            unit: self._bind(unit, taken, placement) for unit in self._units
        }
        factories: dict[VectorUnit, str] = {
            unit: self._build(unit, taken, previous) for unit in self._units
        }
        made = self._describe(taken, factories, dead)
        write_atomically(self._folder / MANIFEST, made.to_json().encode())
        self._swap()
        return made

    # Shards and placement

    def _check(self, shards: Sequence[StoredShard], placement: Path) -> None:
        """Check that there are enough rows to publish."""
        if not shards:
            raise VectorsNotFoundError(
                "There are no shards of vectors.", where=str(placement), do="Embed the index first."
            )
        for unit in self._units:
            rows = sum(shard.record.rows.get(unit, 0) for shard in shards)
            where = f"the {unit} vectors in {placement.parent}"
            faiss_index.check_rows(self._index, rows, self._encoder.dimension, where)

    def _begin(self, shards: Sequence[StoredShard], placement: Path, previous: Path | None) -> None:
        """Keep the results of the same interrupted work, or begin with an empty folder."""
        plan = orjson.dumps(
            {
                "encoder": self._encoder,
                "units": self._units,
                "dtype": self._dtype,
                "index": self._index,
                "placement": self._manifest.placement,
                "metadata": self._manifest.metadata,
                "shards": [shard.record.files for shard in shards],
                "rows": [file_record(rows_file(placement, unit)) for unit in self._units],
                "previous": None if previous is None else read_manifest(previous).files,
            },
            option=orjson.OPT_SORT_KEYS,
        )
        try:
            is_same = (self._folder / _PLAN).read_bytes() == plan
        except FileNotFoundError:
            is_same = False
        if not is_same:
            for begun in self._folder.parent.glob("*.new"):  # of other placements too
                if is_sidecar_name(begun.stem):
                    shutil.rmtree(begun, ignore_errors=True)
            self._folder.mkdir()
            write_atomically(self._folder / _PLAN, plan)

    def _take(self, number: int, shard: StoredShard) -> StoredShard:
        record = take_shard(shard, self._folder, number)
        write_record(self._folder, record)
        return StoredShard(self._folder, record)

    def _placement_files(self, folder: Path) -> list[Path]:
        files = [chunks_file(folder), *column_files(folder, self._manifest.metadata)]
        for unit in self._units:
            files += [ends_file(folder, unit), rows_file(folder, unit)]
        return files

    def _take_placement(self, placement: Path) -> None:
        for path in self._placement_files(placement):
            link_or_copy(path, self._folder / path.name)

    def _bind(self, unit: VectorUnit, shards: Sequence[StoredShard], placement: Path) -> int:
        """Write for each row its key and the ordinal of its text; return how many rows have none.

        Raises VectorsMismatchError if the key of a text differs from that of its row.
        """
        import numpy as np

        self._progress.stage("writing ordinals", self._units.index(unit), len(self._units))
        with ArrayWriter(keys_file(self._folder, unit), "uint8", KEY_BYTES) as writer:
            for shard in shards:
                writer.write(shard.keys(unit))
        total = sum(shard.record.rows[unit] for shard in shards)
        keys = map_array(keys_file(self._folder, unit), "uint8", (total, KEY_BYTES))
        wanted = wanted_keys(placement, unit)
        rows = map_array(rows_file(placement, unit), "int64", (len(wanted),))
        texts = map_array(texts_file(placement, unit), "int64", (len(wanted),))
        path = ordinals_file(self._folder, unit)
        with ArrayWriter(path, "int64") as writer:
            for start in range(0, total, _BLOCK_ROWS):
                writer.write(np.full(min(_BLOCK_ROWS, total - start), -1))
        ordinals: NDArray[np.int64] = (
            np.load(path, mmap_mode="r+") if total else np.empty(0, np.int64)
        )
        for start in range(0, len(wanted), _BLOCK_ROWS):
            block = np.asarray(rows[start : start + _BLOCK_ROWS])
            if not (keys[block] == wanted[start : start + _BLOCK_ROWS]).all():
                raise VectorsMismatchError(
                    "A vector is not that of the text it would be found by: their keys differ.",
                    where=str(self._target.parent),
                    do="Embed the index again, and do not change it in the meantime.",
                )
            ordinals[block] = texts[start : start + _BLOCK_ROWS]
        if isinstance(ordinals, np.memmap):
            ordinals.flush()
        del ordinals
        sync(path)
        return total - len(wanted)

    # FAISS

    def _build(self, unit: VectorUnit, shards: Sequence[StoredShard], previous: Path | None) -> str:
        """Build the index of a unit, and return what it is: "flat", or its factory."""
        mapped = MappedRows(shards, unit, self._encoder.dimension, self._dtype)
        factory = faiss_index.factory_of(self._index, mapped.rows, mapped.dimension)
        reused = _trained_before(previous, unit, self._index, mapped.rows)
        if reused is not None:
            factory = reused[0]
        if factory == FLAT:
            return FLAT
        index, lists = index_files(self._folder, unit)
        trained = trained_file(self._folder, unit)
        if index.exists():
            return factory
        before: tuple[Path, Path] | None = None
        first = 0
        if reused is not None:
            folder = reused[1].parent
            link_or_copy(reused[1], trained)
            first = _same_shards(folder, unit, shards)
            if first:
                before = folder / index.name, folder / lists.name
            if before is not None and first == len(shards):
                for path, earlier in zip((index, lists), before, strict=True):
                    link_or_copy(earlier, path)
                return factory
        elif not trained.exists():
            self._progress.stage(f"training {unit} vectors", 0, 1)
            # No name holds the sample, so that its memory is free while lists are filled.
            faiss_index.train(factory, faiss_index.sample(mapped, factory), trained, self._threads)
            self._progress.stage(f"training {unit} vectors", 1, 1)
        parts: list[Path] = []
        for numbers in faiss_index.parts_of(mapped, factory, first):
            self._progress.stage(f"adding {unit} vectors", numbers.start, len(shards))
            part = self._folder / f"{unit}-{numbers.start:05}-{numbers.stop:05}.part"
            if not part.exists():
                faiss_index.fill(trained, mapped, numbers, part, self._threads)
            parts.append(part)
        self._progress.stage(f"adding {unit} vectors", len(shards), len(shards))
        self._progress.stage(f"merging {unit} vectors", 0, 1)
        lists.unlink(missing_ok=True)
        faiss_index.merge(trained, before, parts, index, lists, self._threads)
        self._progress.stage(f"merging {unit} vectors", 1, 1)
        return factory

    # Publishing

    def _describe(
        self,
        shards: Sequence[StoredShard],
        factories: dict[VectorUnit, str],
        dead: dict[VectorUnit, int],
    ) -> VectorManifest:
        files: dict[str, FileRecord] = {}
        paths = self._placement_files(self._folder)
        nprobe: dict[VectorUnit, int] = {}
        for unit, factory in factories.items():
            paths += [ordinals_file(self._folder, unit), keys_file(self._folder, unit)]
            nprobe[unit] = 0
            if factory != FLAT:
                paths += [*index_files(self._folder, unit), trained_file(self._folder, unit)]
                lists = faiss_index.lists_in(factory, self._encoder.dimension)
                nprobe[unit] = faiss_index.usual_nprobe(lists)
        for done, path in enumerate(paths):
            self._progress.stage("taking checksums", done, len(paths))
            files[path.name] = file_record(path)
        self._progress.stage("taking checksums", len(paths), len(paths))
        records: list[ShardRecord] = [shard.record for shard in shards]
        return VectorManifest(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            encoder=self._encoder,
            dtype=self._dtype,
            units=self._units,
            rows={unit: sum(record.rows[unit] for record in records) for unit in self._units},
            dead_rows=dead,
            chunks=self._manifest.chunks,
            index=factories,
            nprobe=nprobe,
            rescore=RESCORE,
            fingerprint=self._manifest.fingerprint,
            placement=self._manifest.placement,
            sentence_titles=self._sentence_titles,
            metadata=dict(self._manifest.metadata),
            shards=tuple(records),
            files=files,
        )

    def _swap(self) -> None:
        for left in (*self._folder.glob("*.part"), *self._folder.glob("*.new")):
            left.unlink()
        (self._folder / _PLAN).unlink()
        sync(self._folder)
        old = self._target.with_name(self._target.name + ".old")
        if self._target.exists():
            os.rename(self._target, old)
        os.rename(self._folder, self._target)
        sync(self._target.parent)
        shutil.rmtree(old, ignore_errors=True)


def restore_swapped(root: Path) -> None:
    """Undo each swap, of any placement, that was interrupted between its two renames."""
    for old in root.glob("*.old"):
        target = old.with_suffix("")
        if not is_sidecar_name(target.name):
            continue
        if target.exists():
            shutil.rmtree(old)
        else:
            os.rename(old, target)


def _same_shards(previous: Path, unit: VectorUnit, shards: Sequence[StoredShard]) -> int:
    """Return how many shards an earlier sidecar has, if they are the first of these; otherwise 0.
    Only then do its rows have the same numbers."""
    role = vectors_role(unit)
    before = [record.files[role].sha256 for record in read_manifest(previous).shards]
    first = [shard.record.files[role].sha256 for shard in shards[: len(before)]]
    return len(before) if before == first else 0


def _trained_before(
    previous: Path | None, unit: VectorUnit, index: str, rows: int
) -> tuple[str, Path] | None:
    """Return factory and trained index of an earlier sidecar, if they suit so many rows of a unit.

    They do if the factory is the requested one, or if that is ``auto`` and would not have more than
    twice as many lists now.
    """
    if previous is None:
        return None
    before = read_manifest(previous)
    factory = before.index.get(unit, FLAT)
    if factory == FLAT or index not in (factory, faiss_index.AUTO):
        return None
    lists = faiss_index.lists_in(factory, before.encoder.dimension)
    if index == faiss_index.AUTO and faiss_index.lists_for(rows) > 2 * lists:
        return None
    return factory, trained_file(previous, unit)

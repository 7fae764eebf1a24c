"""From shards to a sidecar: FAISS indexes trained and merged on disk, published as one.

Work lies in ``<folder of the sidecar>.new`` beside it. What is there of the same shards and options
is gone on with; the manifest is written last, and the folder renamed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from arag_search.durable import sync_folder, write_atomically
from arag_search.errors import (
    VectorsLockedError,
    VectorsMismatchError,
    VectorsNotFoundError,
)
from arag_search.extras import check_extra
from arag_search.file_lock import HeldError, hold
from arag_search.manifest import Manifest
from arag_search.vectors import faiss_index
from arag_search.vectors.base import EncoderIdentity, VectorUnit
from arag_search.vectors.columns import ColumnsWriter, column_files
from arag_search.vectors.files import ArrayWriter, FileRecord, file_record, map_array
from arag_search.vectors.layout import (
    chunks_file,
    ends_file,
    index_files,
    ordinals_file,
    read_manifest,
    trained_file,
)
from arag_search.vectors.manifest import FLAT, MANIFEST, VectorManifest
from arag_search.vectors.mapped import MappedRows
from arag_search.vectors.place import sidecar_folder
from arag_search.vectors.shards import (
    CHUNKS,
    ShardRecord,
    StoredType,
    load_metadata,
    ordinals_role,
    shard_file,
    shard_record,
    take_shard,
    verify_shard,
    write_record,
)
from arag_search.vectors.stale import (
    IndexOrdinals,
    deletion_file,
    fingerprint_of_kept,
    read_deletions,
    write_deletions,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

RESCORE = 10
"""Times as many candidates as are wanted are scored anew by their stored vectors."""

_LOCK = "publishing.lock"
_OWNER = "vectors "
_PLAN = "plan.json"


class PublishProgress(Protocol):
    """What publishing tells while it works."""

    def stage(self, name: str, done: int, total: int) -> None:
        """So many of the steps of a stage are done, as ``training sentence``."""
        ...


def publish_sidecar(
    work: Path,
    root: Path,
    *,
    encoder: EncoderIdentity,
    units: Sequence[VectorUnit],
    dtype: StoredType,
    index: str = "auto",
    manifest: Manifest,
    progress: PublishProgress | None = None,
    earlier: Path | None = None,
    ordinals: Callable[[], Iterator[int]] | None = None,
    threads: int | None = None,
) -> VectorManifest:
    """Make the shards of ``work`` the sidecar of an index, in a folder of ``root``.

    ``manifest`` is the manifest of the index. ``index`` is "auto", "flat" or a FAISS factory with
    an inverted file. ``earlier`` is the folder of a sidecar whose shards are taken over, and whose
    trained quantisers are where the factory is the same; ``ordinals`` then streams the chunks of
    the index, by which those that it holds no more are told. Shards are linked, or copied from
    another file system; ``work`` stays as it is. The memory it takes grows with a shard and the
    sample to train on, not with the number of rows. ``threads`` default to the processors.

    The same call continues after a kill. A sidecar of this index that is there is replaced.
    Raises ArgumentError for an index that cannot be made or trained, VectorsNotFoundError where
    there are no shards, VectorsMismatchError where they are not of this index, units and dtype,
    VectorsDamagedError, VectorsLockedError, MissingExtraError, OSError.
    """
    for package, module in (("numpy", "numpy"), ("faiss-cpu", "faiss")):
        check_extra("semantic", package, module)
    faiss_index.check_factory(index, encoder.dimension)
    root.mkdir(parents=True, exist_ok=True)
    try:
        lock = hold(root / _LOCK, _OWNER)
    except HeldError as error:
        raise VectorsLockedError(
            f"Process {error.process} publishes vectors there.",
            where=str(root),
            do="Wait until it has ended, or name another folder.",
        ) from None
    try:
        publication = _Publication(
            root,
            encoder,
            tuple(units),
            dtype,
            index,
            manifest,
            progress,
            threads or faiss_index.usual_threads(),
        )
        return publication.run(work, earlier, ordinals)
    finally:
        os.close(lock)


@dataclass(frozen=True, slots=True)
class _Source:
    """A shard, and which of its chunks were gone already."""

    folder: Path
    record: ShardRecord
    deleted: Mask


class _Publication:
    """One sidecar on its way."""

    def __init__(
        self,
        root: Path,
        encoder: EncoderIdentity,
        units: tuple[VectorUnit, ...],
        dtype: StoredType,
        index: str,
        manifest: Manifest,
        progress: PublishProgress | None,
        threads: int,
    ) -> None:
        self._target = sidecar_folder(root, manifest.fingerprint)
        self._folder = self._target.with_name(self._target.name + ".new")
        self._old = self._target.with_name(self._target.name + ".old")
        self._encoder = encoder
        self._units = units
        self._dtype: StoredType = dtype
        self._index = index
        self._manifest = manifest
        self._progress = progress
        self._threads = threads

    def run(
        self, work: Path, earlier: Path | None, ordinals: Callable[[], Iterator[int]] | None
    ) -> VectorManifest:
        """All steps. Raises what ``publish_sidecar`` does."""
        self._restore()
        sources = self._sources(work, earlier)
        self._begin(sources)
        shards = self._take(sources)
        self._write_arrays(shards)
        deleted = self._prove(shards, sources, ordinals)
        factories: dict[VectorUnit, str] = {
            unit: self._build(unit, shards, earlier) for unit in self._units
        }
        made = self._describe(shards, factories, deleted)
        write_atomically(self._folder / MANIFEST, made.to_json().encode())
        self._swap()
        return made

    def _tell(self, stage: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress.stage(stage, done, total)

    # Shards

    def _sources(self, work: Path, earlier: Path | None) -> list[_Source]:
        """All shards in order of their first ordinal, read and found whole."""
        import numpy as np

        found: list[_Source] = []
        if earlier is not None:
            before = read_manifest(earlier)
            self._check_earlier(before, earlier)
            gone = read_deletions(earlier, before.fingerprint, before.chunks)
            if gone is None:
                gone = np.zeros(before.chunks, np.bool_)
            start = 0
            for record in before.shards:
                found.append(_Source(earlier, record, gone[start : start + record.chunks]))
                start += record.chunks
        for number in _numbers(work):
            record = shard_record(work, number)
            if record is not None:
                found.append(_Source(work, record, np.zeros(record.chunks, np.bool_)))
        if not found:
            raise VectorsNotFoundError(
                "There are no shards of vectors.", where=str(work), do="Embed the index first."
            )
        for unit in self._units:
            rows = sum(source.record.rows.get(unit, 0) for source in found)
            faiss_index.check_rows(
                self._index, rows, self._encoder.dimension, f"the {unit} vectors in {work}"
            )
        for done, source in enumerate(found):
            self._tell("verifying shards", done, len(found))
            self._check_shard(source)
        self._tell("verifying shards", len(found), len(found))
        return sorted(found, key=lambda source: source.record.first_ordinal)

    def _check_earlier(self, before: VectorManifest, where: Path) -> None:
        for of_what, was, now in (
            ("of", before.encoder.name, self._encoder.name),
            ("of", before.encoder, self._encoder),
            ("in", before.dtype, self._dtype),
        ):
            if was != now:
                raise VectorsMismatchError(
                    f"The earlier vectors are {of_what} {was}, the new ones {of_what} {now}.",
                    where=str(where),
                    allowed="vectors of one encoder and one dtype",
                    do="Embed the whole index anew.",
                )

    def _check_shard(self, source: _Source) -> None:
        record = source.record
        verify_shard(source.folder, record)
        where = f"shard {record.number} in {source.folder}"
        if missing := [unit for unit in self._units if unit not in record.rows]:
            raise VectorsMismatchError(
                f"The shard has no vectors of the unit {' and '.join(missing)}.",
                where=where,
                allowed=" and ".join(record.rows),
            )
        for unit in self._units:
            MappedRows(source.folder, [record], unit, self._encoder.dimension, self._dtype)

    def _begin(self, sources: Sequence[_Source]) -> None:
        """Keep what is there of the same work, else begin with an empty folder."""
        plan = orjson.dumps(
            {
                "encoder": self._encoder,
                "units": self._units,
                "dtype": self._dtype,
                "index": self._index,
                "fingerprint": self._manifest.fingerprint,
                "metadata": self._manifest.metadata,
                "shards": [
                    [source.record.files, hashlib.sha256(source.deleted.tobytes()).hexdigest()]
                    for source in sources
                ],
            },
            option=orjson.OPT_SORT_KEYS,
        )
        try:
            is_same = (self._folder / _PLAN).read_bytes() == plan
        except FileNotFoundError:
            is_same = False
        if not is_same:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder.mkdir()
            write_atomically(self._folder / _PLAN, plan)

    def _take(self, sources: Sequence[_Source]) -> list[ShardRecord]:
        shards: list[ShardRecord] = []
        for number, source in enumerate(sources):
            record = take_shard(source.folder, source.record, self._folder, number)
            write_record(self._folder, record)
            shards.append(record)
        return shards

    # Arrays over all shards

    def _write_arrays(self, shards: Sequence[ShardRecord]) -> None:
        """Ordinals of chunks and rows, which rows a chunk has, and the columns of metadata."""
        for done, unit in enumerate(self._units):
            self._tell("writing ordinals and metadata", done, len(self._units) + 1)
            self._write_unit(unit, shards)
        with (
            ArrayWriter(chunks_file(self._folder), "int64") as chunks,
            ColumnsWriter(self._folder, self._manifest.metadata) as columns,
        ):
            for shard in shards:
                chunks.write(self._mapped(shard, CHUNKS))
                columns.add_shard(load_metadata(self._folder, shard))

    def _write_unit(self, unit: VectorUnit, shards: Sequence[ShardRecord]) -> None:
        import numpy as np

        with (
            ArrayWriter(ordinals_file(self._folder, unit), "int64") as ordinals,
            ArrayWriter(ends_file(self._folder, unit), "int64") as ends,
        ):
            for shard in shards:
                rows = self._mapped(shard, ordinals_role(unit))
                behind = np.append(self._mapped(shard, CHUNKS)[1:], np.iinfo(np.int64).max)
                ends.write(ordinals.length + np.searchsorted(rows, behind))
                ordinals.write(rows)

    def _mapped(self, shard: ShardRecord, role: str) -> NDArray[Any]:
        return map_array(shard_file(self._folder, shard.number, role))

    def _prove(
        self,
        shards: Sequence[ShardRecord],
        sources: Sequence[_Source],
        ordinals: Callable[[], Iterator[int]] | None,
    ) -> int:
        """How many chunks the index holds no more. Raises VectorsMismatchError unless the others
        are, to the last letter, those of the index."""
        import numpy as np

        deleted = np.concatenate([source.deleted for source in sources])
        if ordinals is not None and self._differs(shards, deleted):
            chunks = map_array(chunks_file(self._folder))
            deleted = IndexOrdinals(ordinals).difference(chunks, deleted).deleted
        if self._differs(shards, deleted):
            raise VectorsMismatchError(
                "The shards are not those of the index: the fingerprints of their passages do not"
                " add up to its own.",
                where=str(self._target.parent),
                do="Embed the index again, and let nobody change it meanwhile.",
            )
        if deleted.any():
            write_deletions(self._folder, self._manifest.fingerprint, deleted)
        return int(deleted.sum())

    def _differs(self, shards: Sequence[ShardRecord], deleted: Mask) -> bool:
        kept = fingerprint_of_kept(self._folder, shards, deleted)
        return kept != self._manifest.fingerprint

    # FAISS

    def _build(self, unit: VectorUnit, shards: Sequence[ShardRecord], earlier: Path | None) -> str:
        """Make the index of a unit; what it is: "flat", or its factory."""
        mapped = MappedRows(self._folder, shards, unit, self._encoder.dimension, self._dtype)
        factory = faiss_index.factory_of(self._index, mapped.rows, mapped.dimension)
        reused = _trained_before(earlier, unit, self._index, mapped.rows)
        if reused is not None:
            factory = reused[0]
        if factory == FLAT:
            return FLAT
        index, lists = index_files(self._folder, unit)
        trained = trained_file(self._folder, unit)
        if index.exists():
            return factory
        self._tell(f"training {unit} vectors", 0, 1)
        if not trained.exists():
            if reused is None:
                points = faiss_index.sample(mapped, factory)
                faiss_index.train(factory, points, trained, self._threads)
            else:
                temporary = trained.with_name(trained.name + ".new")
                shutil.copyfile(reused[1], temporary)
                os.replace(temporary, trained)
        self._tell(f"training {unit} vectors", 1, 1)
        parts: list[Path] = []
        for number in range(len(shards)):
            self._tell(f"adding {unit} vectors", number, len(shards))
            part = self._folder / f"{unit}-{number:05}.part"
            if not part.exists():
                faiss_index.fill(trained, mapped, number, part, self._threads)
            parts.append(part)
        self._tell(f"adding {unit} vectors", len(shards), len(shards))
        self._tell(f"merging {unit} vectors", 0, 1)
        lists.unlink(missing_ok=True)
        faiss_index.merge(trained, parts, index, lists, self._threads)
        self._tell(f"merging {unit} vectors", 1, 1)
        return factory

    # Publishing

    def _describe(
        self, shards: Sequence[ShardRecord], factories: dict[VectorUnit, str], deleted: int
    ) -> VectorManifest:
        files: dict[str, FileRecord] = {}
        paths = [chunks_file(self._folder), *column_files(self._folder, self._manifest.metadata)]
        nprobe: dict[VectorUnit, int] = {}
        for unit, factory in factories.items():
            paths += [ordinals_file(self._folder, unit), ends_file(self._folder, unit)]
            nprobe[unit] = 0
            if factory != FLAT:
                paths += [*index_files(self._folder, unit), trained_file(self._folder, unit)]
                lists = faiss_index.lists_in(factory, self._encoder.dimension)
                nprobe[unit] = faiss_index.usual_nprobe(lists)
        if deleted:
            paths.append(deletion_file(self._folder, self._manifest.fingerprint))
        for done, path in enumerate(paths):
            self._tell("taking checksums", done, len(paths))
            files[path.name] = file_record(path)
        self._tell("taking checksums", len(paths), len(paths))
        return VectorManifest(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            encoder=self._encoder,
            dtype=self._dtype,
            units=self._units,
            rows={unit: sum(shard.rows[unit] for shard in shards) for unit in self._units},
            chunks=sum(shard.chunks for shard in shards),
            deleted_chunks=deleted,
            index=factories,
            nprobe=nprobe,
            rescore=RESCORE,
            fingerprint=self._manifest.fingerprint,
            metadata=dict(self._manifest.metadata),
            shards=tuple(shards),
            files=files,
        )

    def _restore(self) -> None:
        """Undo a swap that was cut off between its two renames."""
        if self._old.exists():
            if self._target.exists():
                shutil.rmtree(self._old)
            else:
                os.rename(self._old, self._target)

    def _swap(self) -> None:
        for left in (*self._folder.glob("*.part"), *self._folder.glob("*.new")):
            left.unlink()
        (self._folder / _PLAN).unlink()
        sync_folder(self._folder)
        if self._target.exists():
            os.rename(self._target, self._old)
        os.rename(self._folder, self._target)
        sync_folder(self._target.parent)
        shutil.rmtree(self._old, ignore_errors=True)


def _numbers(work: Path) -> list[int]:
    """The numbers of all shards that have a record."""
    return sorted(int(path.stem.removeprefix("shard-")) for path in work.glob("shard-*.json"))


def _trained_before(
    earlier: Path | None, unit: VectorUnit, index: str, rows: int
) -> tuple[str, Path] | None:
    """Factory and trained index of an earlier sidecar that serve for so many rows of a unit.

    Those of the factory that is asked for, or where it is ``auto``, those that the sidecar has, as
    long as it would not have more than twice as many lists now.
    """
    if earlier is None:
        return None
    before = read_manifest(earlier)
    factory = before.index.get(unit, FLAT)
    if factory == FLAT or index not in (factory, faiss_index.AUTO):
        return None
    lists = faiss_index.lists_in(factory, before.encoder.dimension)
    if index == faiss_index.AUTO and faiss_index.lists_for(rows) > 2 * lists:
        return None
    return factory, trained_file(earlier, unit)

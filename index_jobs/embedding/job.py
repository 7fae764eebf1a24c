"""Embedding an index: texts are matched with existing vectors, the others are encoded shard by
shard, and the result is published as a sidecar."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from arag_search.engines.opensearch.address import is_address
from arag_search.errors import (
    AragError,
    ArgumentError,
    BuildError,
    SourceError,
    VectorsDamagedError,
    VectorsError,
    VectorsLockedError,
    VectorsMismatchError,
    VectorsVersionError,
)
from arag_search.manifest import fingerprint_hex
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.system.arguments import checked
from arag_search.system.durable import full_disk_advice
from arag_search.system.extras import check_extra
from arag_search.system.lock import HeldError, hold
from arag_search.system.progress import Progress, counted
from arag_search.vectors.base import Encoder, EncoderIdentity, VectorUnit, row_key, rows_of
from arag_search.vectors.encoders.choose import DEFAULT_ENCODER
from arag_search.vectors.faiss_index import check_factory, factory_of
from arag_search.vectors.storage.files import map_array
from arag_search.vectors.storage.folders import (
    is_own_root,
    outgrown_sidecars,
    readable_sidecars,
    sidecar_folder,
    sidecars,
    vectors_root,
)
from arag_search.vectors.storage.manifest import MANIFEST, VectorManifest, read_manifest
from arag_search.vectors.storage.placement import (
    PlacementWriter,
    chunk_ends,
    rows_file,
    wanted_keys,
)
from arag_search.vectors.storage.publish import publish_sidecar, restore_swapped
from arag_search.vectors.storage.shards import StoredShard, shard_numbers, shard_record
from index_jobs.build.corpus import reporting_full_disk, resume_advice
from index_jobs.embedding.making import (
    EncoderChoice,
    LocalMaking,
    ShardMaking,
    Wanted,
    cut_shards,
)
from index_jobs.embedding.plan import EmbedOptions, EmbedReport, Plan, begin
from index_jobs.embedding.reuse import Existing, Reuse, find_reuse
from index_jobs.workers.pool import PeakMemory, highest, own_peak

WORK = "embedding"
"""The folder of an unfinished embedding, next to the sidecars. If several indexes may share a
folder of vectors, a digest that identifies the index is appended to this name."""

_PLACEMENT = "placement"
"""The folder of the placement, inside the work folder."""

_LOCK = "embed.lock"
_OWNER = "arag-search embed, process "


@checked
def embed_index(
    location: str | Path,
    encoder: str | Encoder | None = None,
    options: EmbedOptions | None = None,
    progress: Progress | None = None,
) -> EmbedReport:
    """Make vectors of the text of an index, and publish them as its sidecar.

    ``encoder`` is a name that ``open_encoder`` accepts, or an open encoder if neither workers nor
    Ray are used. None chooses the encoder of the vectors that the index has (see ``Existing``), or
    else the default one. Existing vectors of a text are reused, even if the text has moved. An
    interrupted embedding is resumed after its finished shards. Raises what
    ``open_index`` and ``open_encoder`` raise, ArgumentError, VectorsMismatchError if there are
    vectors made with other options, VectorsLockedError, SourceError for an index
    that has no text or changes in the meantime, BuildError.
    """
    shown = progress or Progress()
    options = options or EmbedOptions()
    try:
        root = vectors_root(str(location), options.vectors)
        with open_index(location, search_timeout_s=None) as index, _locked(root):
            return _Embedding(index, root, options, shown).run(encoder)
    finally:
        shown.end()


def open_making(encoder: str | Encoder | EncoderIdentity, options: EmbedOptions) -> ShardMaking:
    """Open the encoders that the options specify. Raises ArgumentError."""
    if isinstance(encoder, str | EncoderIdentity):
        choice = EncoderChoice.of(
            encoder,
            options.device,
            options.batch_size,
            options.query_prefix,
            options.document_prefix,
        )
        if options.ray is not None:
            from index_jobs.embedding.making import ClusterMaking

            return ClusterMaking(options.ray, choice, options.workers, options.piece_rows)
        return LocalMaking(choice, options.workers or 0, options.piece_rows)
    if options.ray is not None or options.workers:
        raise ArgumentError(
            "An open encoder cannot be passed to other processes.",
            allowed="the name of an encoder",
            do="Name the encoder, or use neither workers nor Ray.",
        )
    return LocalMaking(encoder, 0, options.piece_rows)


def work_folder(root: Path, location: str) -> Path:
    """Return the work folder of an embedding of this index."""
    if is_own_root(location, root):
        return root / WORK
    identity = location if is_address(location) else str(Path(location).resolve())
    return root / f"{WORK}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


class _Embedding:
    """One run of an embedding."""

    def __init__(self, index: Index, root: Path, options: EmbedOptions, progress: Progress) -> None:
        self._began = time.monotonic()
        self._index = index
        self._root = root
        self._work = work_folder(root, index.location)
        self._placement = self._work / _PLACEMENT
        self._options = options
        self._progress = progress
        self._encoded_rows = 0
        self._encode_s = self._publish_s = 0.0
        self._resumed_shards = 0
        self._remade_shards = 0
        self._reused_rows = 0
        self._notes: list[str] = []
        self._noted_damage: set[str] = set()

    def run(self, encoder: str | Encoder | None) -> EmbedReport:
        with resume_advice(self._next_run, self._progress.note):
            return self._run(encoder)

    def _run(self, encoder: str | Encoder | None) -> EmbedReport:
        check_extra("vectors", "numpy")
        restore_swapped(self._root)
        known = Existing(self._root, self._work, self._index.manifest.placement)
        chosen = encoder or known.encoder()
        if chosen is None:
            chosen = DEFAULT_ENCODER
            self._progress.note(
                f"There are no vectors in {self._root} yet: loading the default encoder {chosen}."
            )
        elif isinstance(chosen, str | EncoderIdentity):
            name = chosen if isinstance(chosen, str) else chosen.name
            self._progress.note(f"Loading the encoder {name}.")
        with open_making(chosen, self._options) as making:
            identity = making.identity()
            rows = max(self._index.manifest.chunks, self._index.manifest.sentences)
            self._plan = plan = known.plan(identity, self._options)
            factory = factory_of(self._options.index, rows, identity.dimension)
            check_factory(factory, identity.dimension)
            existing = self._published()
            if existing is not None:
                if self._work.exists() and self._is_published(existing):
                    shutil.rmtree(self._work)  # the run was interrupted just after publishing
                return self._report(existing, making.peaks(), up_to_date=True)
            with reporting_full_disk(str(self._work), self._next_run, "vectors"):
                if note := begin(self._work, plan, overwrite=self._options.overwrite):
                    self._progress.note(note)
            with self._resumable():
                began = time.monotonic()
                self._write_placement()
                reuse, trained = self._find_reuse(known)
                new_shards = self._make_missing(making, reuse)
                self._encode_s = time.monotonic() - began
        with self._resumable():
            began = time.monotonic()
            manifest = self._publish([*reuse.linked, *new_shards], trained)
            self._publish_s = time.monotonic() - began
        self._remove_earlier()
        self._note_index_changes()
        return self._report(manifest, making.peaks(), up_to_date=False)

    @contextmanager
    def _resumable(self) -> Generator[None]:
        """Report how to resume if the disk is full; after any error, remove a work folder that has
        no finished shard."""
        try:
            with reporting_full_disk(str(self._work), self._next_run, "vectors"):
                yield
        except BaseException:
            if not shard_numbers(self._work):
                shutil.rmtree(self._work, ignore_errors=True)
            raise

    # Beginning

    def _published(self) -> VectorManifest | None:
        """Return the published vectors if their files are complete, judged by their sizes. Raises
        VectorsMismatchError if they differ from what the options specify."""
        from arag_search.vectors.storage.sidecar import Sidecar  # which needs numpy

        manifest, options = self._index.manifest, self._options
        folder = sidecar_folder(self._root, manifest.placement)
        if options.overwrite or not (folder / MANIFEST).exists():
            return None
        try:
            existing = read_manifest(folder)
            if existing.metadata != manifest.metadata:
                return None
            changed = Plan.of(existing).changes(self._plan)
            was = ", ".join(sorted(set(existing.index.values())))
            if options.index not in ("auto", was):
                changed = "; ".join(
                    filter(None, (changed, f"--index was {was}, is {options.index}"))
                )
            if changed:
                raise VectorsMismatchError(
                    f"This index has vectors made with other options: {changed}.",
                    where=str(folder),
                    allowed="the same options, which leave the vectors unchanged",
                    do="Use --overwrite to replace them, or give another --vectors.",
                )
            Sidecar(folder, existing).close()
        except (VectorsDamagedError, VectorsVersionError) as error:
            error.do = "Use --overwrite to make the vectors again."
            raise
        return existing

    def _is_published(self, existing: VectorManifest) -> bool:
        """Return whether all finished shards of the work folder are in the published vectors."""
        published_files = [record.files for record in existing.shards]
        try:
            records = [shard_record(self._work, number) for number in shard_numbers(self._work)]
        except VectorsError:
            return False
        return all(record is None or record.files in published_files for record in records)

    def _write_placement(self) -> None:
        """Read the whole index, and write the placement of its texts."""
        manifest = self._index.manifest
        shutil.rmtree(self._placement, ignore_errors=True)
        self._placement.mkdir()
        with PlacementWriter(
            self._placement,
            self._options.units,
            manifest.metadata,
            sentence_titles=self._plan.sentence_titles,
        ) as writer:
            for number, chunk in enumerate(self._index.scan()):
                writer.add(chunk)
                if number % 1_000 == 0:
                    self._progress.stage("reading passages", number, manifest.chunks)
        if fingerprint_hex(writer.digest.placement) != manifest.placement:
            raise self._changed()
        if not any(len(wanted_keys(self._placement, unit)) for unit in self._options.units):
            raise SourceError(
                "The index holds no text to embed.",
                where=self._index.location,
                allowed="passages with a letter or a digit",
            )

    def _changed(self) -> SourceError:
        return SourceError(
            "The index was changed while it was embedded.",
            where=self._index.location,
            do=f"Run the same command again once nothing is updating it: {self._next_run()}.",
        )

    # Existing vectors

    def _find_reuse(self, known: Existing) -> tuple[Reuse, Path | None]:
        """Return the vectors to reuse, and the sidecar whose trained quantisers may be reused."""
        for path, sidecar in sidecars(self._root):
            if isinstance(sidecar, VectorsDamagedError):
                self._progress.note(f"Skipping vectors that cannot be read: {path}: {sidecar.what}")
        finished = self._finished_shards()
        shards, trained = ([], None) if self._options.overwrite else known.like(self._plan)
        # In this order, the lists of earlier vectors are kept, and new rows follow.
        reuse = self._match([*shards, *finished])
        self._resumed_shards = sum(shard in finished for shard in reuse.linked)
        texts = sum(len(wanted_keys(self._placement, unit)) for unit in self._options.units)
        pairs = zip(reuse.linked, reuse.live, strict=True)
        own = sum(rows for shard, rows in pairs if shard in finished)
        self._reused_rows = texts - reuse.encoded_rows() - own
        if self._reused_rows:
            self._progress.note(f"Reusing the vectors of {self._reused_rows:,} of {texts:,} texts.")
        return reuse, trained

    def _finished_shards(self) -> list[StoredShard]:
        """Return the shards that an interrupted run has finished."""
        shards: list[StoredShard] = []
        for number in shard_numbers(self._work):
            try:
                record = shard_record(self._work, number)
            except VectorsError as error:
                self._damaged(f"Shard {number}", error)
            else:
                if record is not None:
                    shards.append(StoredShard(self._work, record))
        return shards

    def _match(self, shards: list[StoredShard]) -> Reuse:
        return find_reuse(
            self._placement,
            self._options.units,
            shards,
            lambda shard, error: self._damaged(
                f"Shard {shard.record.number}"
                + ("" if shard.folder == self._work else f" of {shard.folder}"),
                error,
            ),
        )

    def _damaged(self, name: str, error: VectorsError) -> None:
        if name in self._noted_damage:
            return
        self._noted_damage.add(name)
        self._progress.note(
            f"{name} is damaged, and its texts are being encoded again: {error.what}"
        )
        self._remade_shards += 1

    # Making shards

    def _make_missing(self, making: ShardMaking, reuse: Reuse) -> list[StoredShard]:
        """Make the shards of all texts that have no row yet."""
        options = self._options
        self._progress.begin("rows encoded", reuse.encoded_rows(), 0, 0)
        if not reuse.missing_rows():
            return []
        shards = cut_shards(
            self._wanted(reuse),
            options.units,
            options.shard_rows,
            reuse.copier(self._plan.encoder.dimension, options.dtype),
            max(shard_numbers(self._work), default=-1) + 1,
        )
        new_shards = [
            StoredShard(self._work, record)
            for record in making.make(shards, self._work, options.dtype, self._count)
        ]
        return sorted(new_shards, key=lambda shard: shard.record.number)

    def _count(self, rows: int) -> None:
        """Count rows that were encoded."""
        self._encoded_rows += rows
        self._progress.update(self._encoded_rows, self._encoded_rows)

    def _wanted(self, reuse: Reuse) -> Iterator[Wanted]:
        """Yield the texts of each chunk that have no row yet. Raises SourceError if a text has
        changed since the placement was written."""
        folder, units = self._placement, self._options.units
        ends = {unit: chunk_ends(folder, unit) for unit in units}
        rows = {unit: map_array(rows_file(folder, unit)) for unit in units}
        keys = {unit: wanted_keys(folder, unit) for unit in units}
        chunks = self._index.manifest.chunks
        number = -1
        for number, chunk in enumerate(self._index.scan()):
            if number >= chunks:
                raise self._changed()
            wanted: dict[VectorUnit, list[tuple[str, int]]] = {}
            for unit in units:
                linked = reuse.linked_rows[unit]
                start = int(ends[unit][number - 1]) if number else 0
                texts = wanted[unit] = []
                pairs = rows_of(chunk, unit, sentence_titles=self._plan.sentence_titles)
                for at, (_, text) in enumerate(pairs, start):
                    if at >= len(keys[unit]) or keys[unit][at].tobytes() != row_key(text):
                        raise self._changed()
                    if (row := int(rows[unit][at])) >= linked:
                        texts.append((text, int(reuse.sources[unit][row - linked])))
            if any(wanted.values()):
                yield wanted
        if number + 1 < chunks:
            raise self._changed()

    def _next_run(self) -> str:
        count = len(shard_numbers(self._work))
        return f"it resumes after {counted(count, 'shard')}" if count else "it starts over"

    # Publishing

    def _publish(self, shards: list[StoredShard], previous: Path | None) -> VectorManifest:
        options = self._options
        manifest = publish_sidecar(
            shards,
            self._placement,
            self._root,
            encoder=self._plan.encoder,
            units=options.units,
            dtype=options.dtype,
            index=options.index,
            manifest=self._index.manifest,
            progress=self._progress,
            previous=previous,
            sentence_titles=self._plan.sentence_titles,
        )
        shutil.rmtree(self._work, ignore_errors=True)
        return manifest

    def _remove_earlier(self) -> None:
        """Remove the sidecars of earlier states from the index's own folder, and from another one
        those of states that an update has changed, to which no rollback leads. The newest stays,
        because readers that opened the index before may still open it."""
        if is_own_root(self._index.location, self._root):
            placement = self._index.manifest.placement
            previous = [
                path
                for path, manifest in readable_sidecars(self._root)
                if manifest.placement != placement
            ]
        else:
            previous = outgrown_sidecars(self._root)
        for path in previous[1:]:
            shutil.rmtree(path, ignore_errors=True)

    def _note_index_changes(self) -> None:
        """Add a note to the report if the index has changed since it was opened."""
        try:
            with open_index(self._index.location, search_timeout_s=None) as reopened:
                is_same = reopened.manifest.placement == self._index.manifest.placement
        except AragError as error:
            self._notes.append(
                f"could not check whether the index has changed in the meantime: {error.what}"
            )
        else:
            if not is_same:
                self._notes.append(
                    "the index has changed since this began, and does not fit these vectors: run"
                    " the same command again"
                )

    def _report(
        self, manifest: VectorManifest, peaks: list[PeakMemory], *, up_to_date: bool
    ) -> EmbedReport:
        path = sidecar_folder(self._root, manifest.placement)
        memory = highest([*peaks, own_peak()])
        return EmbedReport(
            location=self._index.location,
            sidecar=str(path),
            encoder=manifest.encoder,
            index=manifest.index,
            dtype=manifest.dtype,
            rows=manifest.live_rows,
            dead_rows=manifest.dead_rows,
            chunks=manifest.chunks,
            shards=len(manifest.shards),
            bytes=sum(file.stat().st_size for file in path.iterdir()),
            fingerprint=manifest.fingerprint,
            placement=manifest.placement,
            up_to_date=up_to_date,
            encoded_rows=self._encoded_rows,
            reused_rows=self._reused_rows,
            encode_seconds=round(self._encode_s, 3),
            rows_per_second=round(self._encoded_rows / max(self._encode_s, 1e-3), 1),
            publish_seconds=round(self._publish_s, 3),
            seconds=round(time.monotonic() - self._began, 3),
            continued_shards=self._resumed_shards,
            remade_shards=self._remade_shards,
            workers=self._options.workers or 0,
            ray=self._options.ray,
            processes=len(memory),
            peak_bytes=sum(memory.values()),
            notes=tuple(self._notes),
        )


@contextmanager
def _locked(root: Path) -> Generator[None]:
    """Lock the folder of the vectors for this process; create it if needed, and remove it again if
    nothing was written to it."""
    is_new = not root.exists()
    try:
        root.mkdir(parents=True, exist_ok=True)
        descriptor = hold(root / _LOCK, _OWNER)
    except HeldError as error:
        raise VectorsLockedError(
            f"Another process is embedding into this folder ({error.holder}).",
            where=str(root),
            do="Wait for it, or stop it; or give another --vectors.",
        ) from None
    except OSError as error:
        raise BuildError(
            f"The folder of the vectors cannot be written ({error.strerror}).",
            where=str(root),
            do=full_disk_advice(error),
        ) from error
    try:
        yield
    finally:
        if is_new and os.listdir(root) == [_LOCK]:
            (root / _LOCK).unlink()
            with suppress(OSError):  # another process may just have started there
                root.rmdir()
        os.close(descriptor)

"""Embedding an index: its text is streamed, cut into shards, encoded, published as a sidecar."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from arag_search.corpus import Chunk
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
    WorkerLostError,
)
from arag_search.extras import check_extra
from arag_search.file_lock import HeldError, hold
from arag_search.index import Index, open_index
from arag_search.manifest import add_fingerprints, chunk_fingerprint, fingerprint_hex
from arag_search.vectors.base import Encoder, EncoderIdentity, VectorUnit
from arag_search.vectors.faiss_index import check_factory
from arag_search.vectors.manifest import VectorManifest
from arag_search.vectors.place import sidecar_folder, vectors_root
from arag_search.vectors.publish import publish_sidecar
from arag_search.vectors.sidecar import Sidecar
from index_jobs.build import room
from index_jobs.embed_earlier import (
    Earlier,
    EarlierVectors,
    differences,
    index_difference,
    newest,
    published,
)
from index_jobs.embed_plan import EmbedOptions, Plan, begin, is_like
from index_jobs.embed_progress import EmbedProgress, SilentEmbedProgress
from index_jobs.embed_report import EmbedReport
from index_jobs.embed_shards import (
    CutShard,
    cut_shards,
    finished_shards,
    is_made,
    remove_shards_from,
    steps_of,
    steps_of_chunk,
)
from index_jobs.embed_workers import EncoderChoice, LocalMaking, ShardMaking
from index_jobs.memory import PeakMemory, highest, own_peak
from index_jobs.report import counted

if TYPE_CHECKING:
    from arag_search.vectors.base import FloatArray

WORK = "embedding"
"""The folder, beside the sidecars, of an embedding that is not finished."""

_LOCK = "embed.lock"
_OWNER = "arag-search embed, process "


def embed_index(
    location: str | Path,
    encoder: str | Encoder,
    options: EmbedOptions,
    progress: EmbedProgress | None = None,
) -> EmbedReport:
    """Make vectors of the text of an index, and publish them as its sidecar.

    ``encoder`` is a name, as ``open_encoder`` takes it, or one that is open, where neither workers
    nor Ray are asked for. Vectors that are there and are the same are left as they are. An
    embedding that was stopped goes on after its finished shards. Raises what ``open_index`` and
    ``open_encoder`` raise, ArgumentError, VectorsMismatchError where there are other vectors,
    VectorsLockedError, SourceError for an index without text or one that changed meanwhile,
    BuildError.
    """
    shown = progress or SilentEmbedProgress()
    try:
        root = vectors_root(str(location), options.vectors)
        with open_index(location, search_timeout_s=None) as index, _held(root):
            return _Embedding(index, root, options, shown).run(encoder)
    finally:
        shown.end()


def open_making(encoder: str | Encoder, options: EmbedOptions) -> ShardMaking:
    """Who encodes, as the options say. Raises ArgumentError."""
    if isinstance(encoder, str):
        choice = EncoderChoice(encoder, options.device, options.batch_size)
        if options.ray:
            from index_jobs.embed_ray import RayMaking

            return RayMaking(choice, options.workers, options.piece_rows)
        return LocalMaking(choice, options.workers or 0, options.piece_rows)
    if options.ray or options.workers:
        raise ArgumentError(
            "Other processes cannot be given an encoder that is open.",
            allowed="its name",
            do="Name the encoder, or ask for neither workers nor Ray.",
        )
    return LocalMaking(encoder, 0, options.piece_rows)


class _Embedding:
    """One run."""

    def __init__(
        self, index: Index, root: Path, options: EmbedOptions, progress: EmbedProgress
    ) -> None:
        self._began = time.monotonic()
        self._index = index
        self._root = root
        self._work = root / WORK
        self._options = options
        self._progress = progress
        self._earlier: Earlier | None = None
        self._copied: EarlierVectors | None = None
        self._fingerprint = 0
        self._done = 0
        self._encoded = 0
        self._rows = 0
        self._encode_s = self._publish_s = 0.0
        self._made = 0
        self._kept = 0
        self._remade = 0
        self._taken_over = 0
        self._under_way: dict[int, CutShard] = {}
        self._notes: list[str] = []

    def run(self, encoder: str | Encoder) -> EmbedReport:
        try:
            return self._run(encoder)
        except KeyboardInterrupt:
            self._progress.note(f"Stopped. Run the same command again: {self._outlook()}.")
            raise

    def _run(self, encoder: str | Encoder) -> EmbedReport:
        check_extra("semantic", "numpy")
        check_extra("semantic", "faiss-cpu", "faiss")
        if isinstance(encoder, str):
            self._progress.note(f"Loading the encoder {encoder}.")
        with open_making(encoder, self._options) as making:
            identity = making.identity()
            check_factory(self._options.index, identity.dimension)
            there = self._published(identity)
            if there is not None:
                if is_like(self._work, identity, self._options):
                    shutil.rmtree(self._work)  # it was stopped just after it was published
                return self._report(there, making.peaks(), up_to_date=True)
            self._begin(identity)
            with self._stoppable():
                began = time.monotonic()
                self._make_all(making)
                self._encode_s = time.monotonic() - began
        with self._stoppable():
            began = time.monotonic()
            made = self._publish(identity)
            self._publish_s = time.monotonic() - began
        self._look_for_changes()
        return self._report(made, making.peaks(), up_to_date=False)

    @contextmanager
    def _stoppable(self) -> Generator[None]:
        """Say how to go on where room or a worker is lost; what has no finished shard goes."""
        try:
            with room(str(self._work), self._outlook, "vectors"):
                yield
        except WorkerLostError as error:
            error.do += f" Run the same command again: {self._outlook()}."
            raise
        finally:
            if not finished_shards(self._work):
                shutil.rmtree(self._work, ignore_errors=True)

    # Beginning

    def _published(self, identity: EncoderIdentity) -> VectorManifest | None:
        """The vectors that are there and need not be made: their files are whole, by size."""
        fingerprint = self._index.manifest.fingerprint
        if self._options.overwrite:
            return None
        try:
            there = published(self._root, fingerprint)
            if there is None:
                return None
            self._check_same(there, identity)
            Sidecar(sidecar_folder(self._root, fingerprint), there).close()
        except (VectorsDamagedError, VectorsVersionError) as error:
            error.do = "Say --overwrite to make the vectors anew."
            raise
        return there

    def _check_same(self, there: VectorManifest, identity: EncoderIdentity) -> None:
        """Raise VectorsMismatchError where the vectors that are there are not those asked for."""
        options = self._options
        found = (differences(there, identity, options), index_difference(there, options))
        if any(found):
            raise VectorsMismatchError(
                f"There are other vectors of this index: {'; '.join(filter(None, found))}.",
                where=str(sidecar_folder(self._root, there.fingerprint)),
                allowed="the same options, which leave them as they are",
                do="Say --overwrite to replace them, or give another --vectors.",
            )

    def _begin(self, identity: EncoderIdentity) -> None:
        options = self._options
        if options.only_missing:
            found = newest(self._root, identity, options, self._progress.note)
            if found is None:
                self._progress.note("There are no such vectors yet: all passages are embedded.")
            elif (earlier := Earlier(*found)).is_worth_it(self._index.scan()):
                self._earlier = earlier
            else:
                self._copied = EarlierVectors(*found)
                self._progress.note(f"Vectors of unchanged passages are copied from {found[0]}.")
        plan = Plan(
            identity,
            options.units,
            options.dtype,
            options.shard_rows,
            "; ".join(
                f"{how} {each.path.name}"
                for how, each in (("shards of", self._earlier), ("vectors of", self._copied))
                if each is not None
            ),
        )
        goes_on = self._work.exists()
        why = begin(self._work, plan, overwrite=options.overwrite)
        if why:
            self._progress.note(f"Beginning anew: {why}.")
        elif goes_on:
            self._progress.note("Continuing: the shards that are there are verified.")

    # Making shards

    def _make_all(self, making: ShardMaking) -> None:
        """Make all shards that are not there. Afterwards ``_fingerprint`` is that of the index."""
        manifest, units = self._index.manifest, self._options.units
        total = manifest.chunks if "passage" in units else 0
        self._progress.begin(total + (manifest.sentences if "sentence" in units else 0))
        shards = cut_shards(self._missing(), units, self._options.shard_rows, self._known)
        wanted = self._not_made(shards)
        for record in making.make(wanted, self._work, self._options.dtype, self._count):
            shard = self._under_way.pop(record.number)
            self._done += steps_of(shard) - shard.encoded_rows
            self._rows += shard.rows
            self._made += 1
        remove_shards_from(self._work, self._made + self._kept)
        if fingerprint_hex(self._fingerprint) != manifest.fingerprint:
            raise SourceError(
                "The index was changed while it was embedded.",
                where=self._index.location,
                do=f"Run the same command again when nothing updates it: {self._outlook()}.",
            )
        if not self._rows and self._earlier is None:
            shutil.rmtree(self._work)
            raise self._empty()

    def _count(self, rows: int) -> None:
        """So many more rows are encoded."""
        self._encoded += rows
        self._done += rows
        self._progress.update(self._done, self._encoded)

    def _missing(self) -> Iterator[Chunk]:
        """The chunks of the index, but for those that are taken over."""
        units = self._options.units
        for chunk in self._index.scan():
            fingerprint = chunk_fingerprint(chunk)
            self._fingerprint = add_fingerprints(self._fingerprint, fingerprint)
            if self._earlier is not None and self._earlier.holds(chunk, fingerprint):
                self._taken_over += 1
                self._done += steps_of_chunk(chunk, units)
            else:
                yield chunk

    def _known(self, chunk: Chunk) -> Mapping[VectorUnit, FloatArray] | None:
        """The vectors of a chunk that are copied."""
        found = None if self._copied is None else self._copied.of(chunk)
        self._taken_over += found is not None
        return found

    def _not_made(self, shards: Iterator[CutShard]) -> Iterator[CutShard]:
        """The shards to make: those that are not there, or not whole, or of other chunks."""
        for shard in shards:
            try:
                is_there = is_made(self._work, shard)
            except VectorsError as error:
                self._progress.note(
                    f"Shard {shard.number} is damaged, and made again: {error.what}"
                )
                self._remade += 1
                is_there = False
            if is_there:
                self._kept += 1
                self._rows += shard.rows
                self._done += steps_of(shard)
                self._progress.update(self._done, self._encoded)
            else:
                self._under_way[shard.number] = shard
                yield shard

    def _outlook(self) -> str:
        there = finished_shards(self._work)
        return f"it continues after {counted(there, 'shard')}" if there else "it begins anew"

    def _empty(self) -> SourceError:
        return SourceError(
            "The index holds no text to embed.",
            where=self._index.location,
            allowed="passages with a letter or a digit",
        )

    # Publishing

    def _publish(self, identity: EncoderIdentity) -> VectorManifest:
        options = self._options
        made = publish_sidecar(
            self._work,
            self._root,
            encoder=identity,
            units=options.units,
            dtype=options.dtype,
            index=options.index,
            manifest=self._index.manifest,
            progress=self._progress,
            earlier=self._earlier.path if self._earlier else None,
            ordinals=lambda: (chunk.ordinal for chunk in self._index.scan()),
        )
        shutil.rmtree(self._work, ignore_errors=True)
        return made

    def _look_for_changes(self) -> None:
        """Note it where the index is not that any more which was embedded."""
        try:
            with open_index(self._index.location, search_timeout_s=None) as again:
                is_same = again.manifest.fingerprint == self._index.manifest.fingerprint
        except AragError as error:
            self._notes.append(
                f"whether the index has changed meanwhile is not known: {error.what}"
            )
        else:
            if not is_same:
                self._notes.append(
                    "the index has changed since this began: run the same command with"
                    " --only-missing"
                )

    def _report(
        self, made: VectorManifest, peaks: list[PeakMemory], *, up_to_date: bool
    ) -> EmbedReport:
        path = sidecar_folder(self._root, made.fingerprint)
        memory = highest([*peaks, own_peak()])
        return EmbedReport(
            location=self._index.location,
            sidecar=str(path),
            encoder=made.encoder,
            index=made.index,
            dtype=made.dtype,
            rows=made.rows,
            chunks=made.chunks,
            deleted_chunks=made.deleted_chunks,
            shards=len(made.shards),
            bytes=sum(each.stat().st_size for each in path.iterdir()),
            fingerprint=made.fingerprint,
            up_to_date=up_to_date,
            encoded_rows=self._encoded,
            encode_seconds=round(self._encode_s, 3),
            rows_per_second=round(self._encoded / max(self._encode_s, 1e-3), 1),
            publish_seconds=round(self._publish_s, 3),
            seconds=round(time.monotonic() - self._began, 3),
            continued_shards=self._kept,
            remade_shards=self._remade,
            taken_over_chunks=self._taken_over,
            workers=self._options.workers or 0,
            ray=self._options.ray,
            processes=len(memory),
            peak_bytes=sum(memory.values()),
            notes=tuple(self._notes),
        )


@contextmanager
def _held(root: Path) -> Generator[None]:
    """The folder of the vectors, made where it is not there, for this process alone. It goes again
    where nothing came of it."""
    is_new = not root.exists()
    try:
        root.mkdir(parents=True, exist_ok=True)
        descriptor = hold(root / _LOCK, _OWNER)
    except HeldError as error:
        raise VectorsLockedError(
            f"Another process embeds there (process {error.process}).",
            where=str(root),
            do="Wait for it, or stop it; or give another --vectors.",
        ) from None
    except OSError as error:
        raise BuildError(
            f"The folder of the vectors cannot be written ({error.strerror}).", where=str(root)
        ) from error
    try:
        yield
    finally:
        if is_new and os.listdir(root) == [_LOCK]:
            (root / _LOCK).unlink()
            with suppress(OSError):  # somebody has just begun there
                root.rmdir()
        os.close(descriptor)

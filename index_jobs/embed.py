"""Embedding an index: its text is streamed, cut into shards, encoded, and published as a sidecar."""

from __future__ import annotations

import shutil
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from arag_search.corpus import Chunk
from arag_search.errors import (
    AragError,
    IndexExistsError,
    IndexLockedError,
    SourceError,
    VectorsError,
    WorkerLostError,
)
from arag_search.file_lock import HeldError, hold
from arag_search.index import Index, open_index
from arag_search.manifest import add_fingerprints, chunk_fingerprint, fingerprint_hex
from arag_search.vectors.base import Encoder, EncoderIdentity
from arag_search.vectors.manifest import VectorManifest
from arag_search.vectors.place import vectors_root
from arag_search.vectors.publish import publish_sidecar
from index_jobs.build import room
from index_jobs.embed_earlier import Earlier, newest, published, same_kind, sidecar_path
from index_jobs.embed_plan import EmbedOptions, Plan, begin
from index_jobs.embed_progress import EmbedProgress, SilentEmbedProgress
from index_jobs.embed_report import EmbedReport, embed_report
from index_jobs.embed_shards import CutShard, cut_shards, is_made, remove_shards_from, steps_of
from index_jobs.embed_workers import EncoderChoice, LocalMaking, ShardMaking
from index_jobs.memory import PeakMemory, own_peak
from index_jobs.report import counted

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
    ``open_encoder`` raise, ArgumentError, IndexExistsError where there are other vectors,
    IndexLockedError, SourceError for an index without text or one that changed meanwhile,
    BuildError, VectorsError.
    """
    shown = progress or SilentEmbedProgress()
    try:
        root = vectors_root(str(location), options.vectors)
        with open_index(location) as index, _held(root):
            return _Embedding(index, root, options, shown).run(encoder)
    finally:
        shown.end()


def open_making(encoder: str | Encoder, options: EmbedOptions) -> ShardMaking:
    """Who encodes, as the options say. Raises ArgumentError."""
    if isinstance(encoder, str):
        choice = EncoderChoice(encoder, options.device, options.batch_size)
        if options.ray:
            from index_jobs.embed_ray import RayMaking

            return RayMaking(choice, options.workers)
        return LocalMaking(choice, options.workers or 0, options.piece_rows)
    return LocalMaking(encoder, 1 if options.ray else options.workers or 0, options.piece_rows)


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
        self._fingerprint = 0
        self._done = 0
        self._encoded = 0
        self._made = 0
        self._kept = 0
        self._remade = 0
        self._taken_over = 0
        self._under_way: dict[int, CutShard] = {}
        self._notes: list[str] = []

    def run(self, encoder: str | Encoder) -> EmbedReport:
        manifest = self._index.manifest
        if not manifest.chunks:
            raise self._empty()
        with open_making(encoder, self._options) as making:
            identity = making.identity()
            there = published(self._root, manifest.fingerprint)
            if there is not None and not self._options.overwrite:
                self._check_same(there, identity)
                return self._report(there, making, 0.0, 0.0, up_to_date=True)
            self._begin(identity)
            try:
                with room(str(self._work), self._outlook, "vectors"):
                    encoding_began = time.monotonic()
                    self._make_all(making)
                    encode_s = time.monotonic() - encoding_began
            except KeyboardInterrupt:
                self._progress.note(f"Stopped. Run the same command again: {self._outlook()}.")
                raise
            except WorkerLostError as error:
                error.do += f" Run the same command again: {self._outlook()}."
                raise
            finally:
                if not self._made + self._kept:
                    shutil.rmtree(self._work, ignore_errors=True)
        return self._publish(identity, making, encode_s)

    # Beginning

    def _check_same(self, there: VectorManifest, identity: EncoderIdentity) -> None:
        """Raise IndexExistsError where the vectors that are there are not those asked for."""
        options = self._options
        differing = same_kind(there, identity, options)
        if differing:
            raise IndexExistsError(
                f"There are other vectors of this index already: {differing}.",
                where=str(sidecar_path(self._root, there.fingerprint)),
                allowed="the same options, which leave them as they are",
                do="Say --overwrite to replace them, or give another --vectors.",
            )

    def _begin(self, identity: EncoderIdentity) -> None:
        options = self._options
        if options.only_missing:
            found = newest(self._root, identity, options, self._progress.note)
            if found is None:
                self._progress.note(
                    "There are no such vectors of this encoder yet: all passages are embedded."
                )
            else:
                self._earlier = Earlier(*found)
        plan = Plan(
            identity,
            options.units,
            options.dtype,
            options.shard_rows,
            self._earlier.path.name if self._earlier else "",
        )
        goes_on = self._work.exists()
        why = begin(self._work, plan, overwrite=options.overwrite)
        if why:
            self._progress.note(f"Beginning anew: {why}.")
        elif goes_on:
            self._progress.note("Continuing: finished shards are verified, and not made again.")

    # Making shards

    def _make_all(self, making: ShardMaking) -> None:
        """Make all shards that are not there. Afterwards ``_fingerprint`` is that of the index."""
        manifest, units = self._index.manifest, self._options.units
        total = manifest.chunks if "passage" in units else 0
        self._progress.begin(total + (manifest.sentences if "sentence" in units else 0))
        shards = cut_shards(self._missing(), units, self._options.shard_rows)
        wanted = self._not_made(shards)
        for record in making.make(wanted, self._work, self._options.dtype, self._count):
            shard = self._under_way.pop(record.number)
            self._done += steps_of(shard) - shard.rows
            self._made += 1
        remove_shards_from(self._work, self._made + self._kept)
        if fingerprint_hex(self._fingerprint) != manifest.fingerprint:
            raise SourceError(
                "The index was changed while it was embedded.",
                where=self._index.location,
                do=f"Run the same command again when nothing updates it: {self._outlook()}.",
            )

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
                self._done += steps_of(shard)
                self._progress.update(self._done, self._encoded)
            else:
                self._under_way[shard.number] = shard
                yield shard

    def _outlook(self) -> str:
        there = self._made + self._kept
        return f"it continues after {counted(there, 'shard')}" if there else "it begins anew"

    def _empty(self) -> SourceError:
        return SourceError(
            "The index holds no text to embed.",
            where=self._index.location,
            allowed="an index with passages",
        )

"""Making shards: the texts that need a vector are cut into shards, and encoded in this process, in
worker processes, each with an encoder and a share of the cores, or on a Ray cluster."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol, cast

from arag_search.errors import BuildError
from arag_search.system.processes import worker_environment
from arag_search.vectors.base import Encoder, EncoderIdentity, FloatArray, VectorUnit, row_key
from arag_search.vectors.storage.shards import ShardRecord, StoredType, write_shard
from index_jobs.embedding.plan import PLAN
from index_jobs.workers.cluster import Cluster
from index_jobs.workers.executor import Executor, ThisProcess
from index_jobs.workers.pool import PeakMemory, ProcessPool, own_peak

TO_ENCODE = -1
"""A marker in place of a row to copy the vector from: the text must be encoded."""

Wanted = Mapping[VectorUnit, Sequence[tuple[str, int]]]
"""The texts of a chunk that need a row, by unit, each with the row to copy its vector from, or
TO_ENCODE."""

Copying = Callable[[VectorUnit, Sequence[int]], "FloatArray"]
"""A function that returns the vectors of existing rows."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a shard that are encoded together: the texts of a unit at ``rows``."""

    unit: VectorUnit
    rows: Sequence[int]
    payload: Sequence[str]


@dataclass(frozen=True, slots=True)
class Known:
    """Rows of a shard that already have vectors: the rows of a unit at ``rows``."""

    rows: Sequence[int]
    vectors: FloatArray


@dataclass(frozen=True, slots=True)
class CutShard:
    """The texts of the rows of a shard, and the vectors that are already known."""

    number: int
    texts: Mapping[VectorUnit, Sequence[str]]
    known: Mapping[VectorUnit, Known] = field(default_factory=dict[VectorUnit, Known])

    @property
    def rows(self) -> int:
        """The number of rows of all units together."""
        return sum(map(len, self.texts.values()))

    def pieces(self, most_rows: int) -> Iterator[Piece]:
        """Yield all rows that must be encoded, in pieces of at most ``most_rows``."""
        for unit, texts in self.texts.items():
            known = set(self.known[unit].rows) if unit in self.known else set[int]()
            wanted = [row for row in range(len(texts)) if row not in known]
            for start in range(0, len(wanted), most_rows):
                rows = wanted[start : start + most_rows]
                yield Piece(unit, rows, [texts[row] for row in rows])


def cut_shards(
    chunks: Iterable[Wanted],
    units: Sequence[VectorUnit],
    shard_rows: int,
    copying: Copying,
    first_number: int = 0,
) -> Iterator[CutShard]:
    """Divide the texts of chunks into shards of at most ``shard_rows`` rows, numbered from
    ``first_number``.

    A chunk with more texts gets a shard to itself.
    """
    number, rows = first_number, 0
    texts: dict[VectorUnit, list[tuple[str, int]]] = {unit: [] for unit in units}
    for wanted in chunks:
        added = sum(map(len, wanted.values()))
        if rows and rows + added > shard_rows:
            yield _cut(number, texts, copying)
            number, rows = number + 1, 0
            texts = {unit: [] for unit in units}
        rows += added
        for unit in units:
            texts[unit] += wanted[unit]
    if rows:
        yield _cut(number, texts, copying)


def _cut(
    number: int, texts: Mapping[VectorUnit, Sequence[tuple[str, int]]], copying: Copying
) -> CutShard:
    known: dict[VectorUnit, Known] = {}
    for unit, pairs in texts.items():
        rows = [row for row, (_, source) in enumerate(pairs) if source != TO_ENCODE]
        if rows:
            known[unit] = Known(rows, copying(unit, [pairs[row][1] for row in rows]))
    return CutShard(
        number, {unit: [text for text, _ in pairs] for unit, pairs in texts.items()}, known
    )


class Gathering:
    """The vectors of a shard, collected as they are encoded. Memory for all vectors of a unit is
    allocated when the first ones arrive."""

    def __init__(self, shard: CutShard) -> None:
        self.shard = shard
        self._left = shard.rows
        self._vectors: dict[VectorUnit, FloatArray] = {}
        for unit, known in shard.known.items():
            self._put(unit, known.rows, known.vectors)

    @property
    def is_whole(self) -> bool:
        return not self._left

    def put(self, piece: Piece, vectors: FloatArray) -> None:
        """Add the vectors of a piece. Raises BuildError unless there is one for each text."""
        rows = len(piece.payload)
        if vectors.ndim != 2 or len(vectors) != rows:
            raise BuildError(
                f"The encoder returned an array of shape {vectors.shape} for {rows:,} texts.",
                where=f"the {piece.unit} that begins with {piece.payload[0][:60]!r}",
                allowed="a vector for each",
            )
        self._put(piece.unit, piece.rows, vectors)

    def _put(self, unit: VectorUnit, rows: Sequence[int], vectors: FloatArray) -> None:
        import numpy as np

        if unit not in self._vectors:
            shape = (len(self.shard.texts[unit]), vectors.shape[1])
            self._vectors[unit] = np.empty(shape, np.float32)
        self._vectors[unit][list(rows)] = vectors
        self._left -= len(rows)

    def write(self, folder: Path, dimension: int, dtype: StoredType) -> ShardRecord:
        """Write the shard, which must be complete. Raises ArgumentError for vectors that are not
        finite, OSError."""
        import numpy as np

        for unit in self.shard.texts:
            self._vectors.setdefault(unit, np.empty((0, dimension), np.float32))
        keys: dict[VectorUnit, list[bytes]] = {
            unit: list(map(row_key, texts)) for unit, texts in self.shard.texts.items()
        }
        return write_shard(folder, self.shard.number, keys, self._vectors, dtype=dtype)


def make_shard(
    shard: CutShard,
    encode: Callable[[Sequence[str]], FloatArray],
    identity: EncoderIdentity,
    folder: Path,
    *,
    piece_rows: int,
    dtype: StoredType,
) -> ShardRecord:
    """Encode and write a whole shard. Raises what the encoder raises, BuildError, OSError."""
    gathering = Gathering(shard)
    for piece in shard.pieces(piece_rows):
        gathering.put(piece, encode(piece.payload))
    return gathering.write(folder, identity.dimension, dtype)


# Encoding


@dataclass(frozen=True, slots=True)
class EncoderChoice:
    """The name of an encoder, and the settings to open it with."""

    name: str
    device: str | None
    batch_size: int | None
    query_prefix: str | None = None
    document_prefix: str | None = None
    dimension: int | None = None

    @staticmethod
    def of(
        encoder: str | EncoderIdentity,
        device: str | None,
        batch_size: int | None,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
    ) -> EncoderChoice:
        """Choose an encoder by name, or the encoder of existing vectors with its settings, of
        which the prefixes may be others."""
        if isinstance(encoder, str):
            return EncoderChoice(encoder, device, batch_size, query_prefix, document_prefix)
        return EncoderChoice(
            encoder.name,
            device,
            batch_size,
            encoder.query_prefix if query_prefix is None else query_prefix,
            encoder.document_prefix if document_prefix is None else document_prefix,
            encoder.dimension,
        )

    def open(self) -> Encoder:
        """Open the encoder. Raises what ``open_encoder`` raises."""
        from arag_search.vectors.encoders.choose import open_encoder

        return open_encoder(
            self.name,
            device=self.device,
            batch_size=self.batch_size,
            query_prefix=self.query_prefix,
            document_prefix=self.document_prefix,
            dimension=self.dimension,
        )


class ShardMaking(Protocol):
    """A context manager that encodes shards and writes them."""

    def __enter__(self) -> ShardMaking: ...

    def __exit__(self, *exception: object) -> None: ...

    @property
    def processes(self) -> int:
        """How many processes encode."""
        ...

    def identity(self) -> EncoderIdentity:
        """Return the encoder's identity, which is the same in all processes. Raises what opening
        an encoder raises."""
        ...

    def make(
        self,
        shards: Iterable[CutShard],
        folder: Path,
        dtype: StoredType,
        encoded: Callable[[int], None],
    ) -> Iterator[ShardRecord]:
        """Make the shards, a few at a time, and yield the record of each when it is written.

        ``encoded`` is called with the number of rows just encoded. Raises what the encoder raises,
        WorkerLostError, BuildError, OSError."""
        ...

    def peaks(self) -> list[PeakMemory]:
        """Return the peak memory of each encoding process, as far as it is known."""
        ...


@dataclass(frozen=True, slots=True)
class Encoded:
    """The result of encoding a piece, with the identity of the encoder."""

    identity: EncoderIdentity
    vectors: FloatArray | None
    peak: PeakMemory


class EncodingWork:
    """A function from texts to ``Encoded``. It opens the encoder on its first call, in the process
    that calls it; call it without texts to learn only the encoder's identity."""

    def __init__(self, choice: EncoderChoice | Encoder) -> None:
        self._choice = choice
        self._encoder: Encoder | None = None if isinstance(choice, EncoderChoice) else choice

    def __call__(self, texts: Sequence[str]) -> Encoded:
        if self._encoder is None:
            assert isinstance(self._choice, EncoderChoice)
            self._encoder = self._choice.open()
        vectors = self._encoder.encode(texts) if texts else None
        return Encoded(self._encoder.identity, vectors, own_peak())

    def close(self) -> None:
        """Close the encoder, if it was opened here."""
        if self._encoder is not None and isinstance(self._choice, EncoderChoice):
            self._encoder.close()


class LocalMaking:
    """A ShardMaking on this machine, with ``workers`` processes; 0 encodes in this process.

    The workers get pieces of shards, so that they finish at about the same time. This process
    collects the vectors and writes the shards.
    """

    def __init__(self, choice: EncoderChoice | Encoder, workers: int, piece_rows: int) -> None:
        self.processes = max(1, workers)
        self._piece_rows = piece_rows
        self._work = EncodingWork(choice)
        self._peaks: list[PeakMemory] = []
        self._gatherings: deque[Gathering] = deque()
        self._executor: Executor[Piece, Encoded] = ThisProcess(self._work)
        if workers:
            self._executor = ProcessPool(workers, self._work, worker_environment(workers))

    def __enter__(self) -> LocalMaking:
        self._executor.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._executor.__exit__(*exception)
        self._work.close()

    def identity(self) -> EncoderIdentity:
        for _ in range(self.processes):
            self._executor.submit(Piece("sentence", (), ()))
        results = (self._executor.take()[1] for _ in range(self.processes))
        return only_identity({self._noted(encoded).identity for encoded in results})

    def make(
        self,
        shards: Iterable[CutShard],
        folder: Path,
        dtype: StoredType,
        encoded: Callable[[int], None],
    ) -> Iterator[ShardRecord]:
        def pieces() -> Iterator[Piece]:
            for shard in shards:
                self._gatherings.append(Gathering(shard))
                yield from shard.pieces(self._piece_rows)

        for result in self._executor.results(pieces()):
            if result is not None:
                self._gather(*result)
                encoded(len(result[0].payload))
            yield from self._write_complete(folder, dtype)
        yield from self._write_complete(folder, dtype)

    def peaks(self) -> list[PeakMemory]:
        return self._peaks

    def _noted(self, encoded: Encoded) -> Encoded:
        self._peaks = [item for item in self._peaks if item.process != encoded.peak.process]
        self._peaks.append(encoded.peak)
        self._identity = encoded.identity
        return encoded

    def _gather(self, piece: Piece, encoded: Encoded) -> None:
        """Add a piece to its shard."""
        self._noted(encoded)
        gathering = next(item for item in self._gatherings if not item.is_whole)
        if encoded.vectors is None:
            raise TypeError("a piece without texts")
        gathering.put(piece, encoded.vectors)

    def _write_complete(self, folder: Path, dtype: StoredType) -> Iterator[ShardRecord]:
        """Write the shards that are complete, up to the first that is not."""
        while self._gatherings and self._gatherings[0].is_whole:
            gathering = self._gatherings.popleft()
            yield gathering.write(folder, self._identity.dimension, dtype)


def only_identity(identities: set[EncoderIdentity]) -> EncoderIdentity:
    """Return the identity that all processes share. Raises BuildError if they differ."""
    if len(identities) > 1:
        names = "; ".join(sorted(f"{item.name}, revision {item.revision}" for item in identities))
        raise BuildError(
            f"The encoders of the workers are not the same: {names}.",
            allowed="the same model everywhere",
            do="Install the same files of the model on all machines.",
        )
    return identities.pop()


# On the machines of a Ray cluster, which share a folder with this one


@dataclass(frozen=True, slots=True)
class _Job:
    """A whole shard to make."""

    payload: CutShard


@dataclass(frozen=True, slots=True)
class _MadeShard:
    """A shard that was written, the number of rows encoded for it, and the memory of that."""

    record: ShardRecord
    rows: int
    peak: PeakMemory


class ClusterMaking:
    """A ShardMaking on a Ray cluster at an address, see ``Cluster``: ``workers`` processes (None:
    one for each GPU or, without GPUs, one for each machine) make whole shards and write them into
    the folder, which all machines must share."""

    def __init__(
        self, address: str, choice: EncoderChoice, workers: int | None, piece_rows: int
    ) -> None:
        self._cluster = Cluster(address)
        self._choice = choice
        self._gpus = choice.device != "cpu"
        self._wanted = workers
        self._piece_rows = piece_rows
        self._peaks: dict[str, PeakMemory] = {}

    def __enter__(self) -> ClusterMaking:
        cluster = self._cluster.__enter__()
        try:
            self.processes = cluster.workers(self._wanted, by_machine=True, gpus=self._gpus)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._cluster.__exit__(*exception)

    def identity(self) -> EncoderIdentity:
        identify = partial(_identity, self._choice)
        identities = self._cluster.everywhere(identify, self.processes, gpus=self._gpus)
        return only_identity(set(identities))

    def make(
        self,
        shards: Iterable[CutShard],
        folder: Path,
        dtype: StoredType,
        encoded: Callable[[int], None],
    ) -> Iterator[ShardRecord]:
        folder = folder.absolute()
        self._cluster.check({str(folder / PLAN): (folder / PLAN).read_bytes()})
        work = partial(
            _made, choice=self._choice, folder=folder, piece_rows=self._piece_rows, dtype=dtype
        )
        with self._cluster.executor(work, self.processes, gpus=self._gpus) as executor:
            for result in executor.results(map(_Job, shards)):
                if result is not None:
                    made = result[1]
                    self._peaks[made.peak.process] = made.peak
                    encoded(made.rows)
                    yield made.record

    def peaks(self) -> list[PeakMemory]:
        return list(self._peaks.values())


@functools.lru_cache(maxsize=1)
def _encoding(choice: EncoderChoice) -> EncodingWork:
    """Return the encoder of this process, which it keeps from shard to shard."""
    return EncodingWork(choice)


def _identity(choice: EncoderChoice) -> EncoderIdentity:
    return _encoding(choice)(()).identity


def _made(
    shard: CutShard, *, choice: EncoderChoice, folder: Path, piece_rows: int, dtype: StoredType
) -> _MadeShard:
    """Make a shard, in another process."""
    work = _encoding(choice)
    rows = 0

    def encode(texts: Sequence[str]) -> FloatArray:
        nonlocal rows
        rows += len(texts)
        return cast("FloatArray", work(texts).vectors)

    identity = work(()).identity
    record = make_shard(shard, encode, identity, folder, piece_rows=piece_rows, dtype=dtype)
    return _MadeShard(record, rows, work(()).peak)

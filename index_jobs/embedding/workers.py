"""Encoding in this process, or in worker processes, each with an encoder and a share of the
cores."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from arag_search.errors import BuildError
from arag_search.system.processes import worker_environment
from arag_search.vectors.base import Encoder, EncoderIdentity
from arag_search.vectors.storage.shards import ShardRecord, StoredType
from index_jobs.embedding.shards import CutShard, Gathering, Piece
from index_jobs.workers.pool import Packing, PackingHere, PeakMemory, WorkerProcesses, own_peak

if TYPE_CHECKING:
    from arag_search.vectors.base import FloatArray


@dataclass(frozen=True, slots=True)
class EncoderChoice:
    """The name of an encoder, and the settings to open it with."""

    name: str
    device: str | None
    batch_size: int | None
    query_instruction: str | None = None
    dimension: int | None = None

    @staticmethod
    def of(
        encoder: str | EncoderIdentity, device: str | None, batch_size: int | None
    ) -> EncoderChoice:
        """Choose an encoder by name, or the encoder of existing vectors with its settings."""
        if isinstance(encoder, str):
            return EncoderChoice(encoder, device, batch_size)
        return EncoderChoice(
            encoder.name, device, batch_size, encoder.query_instruction, encoder.dimension
        )

    def open(self) -> Encoder:
        """Open the encoder. Raises what ``open_encoder`` raises."""
        from arag_search.vectors.encoders.choose import open_encoder

        return open_encoder(
            self.name,
            device=self.device,
            batch_size=self.batch_size,
            query_instruction=self.query_instruction,
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
        self._packing: Packing[Piece, Encoded] = PackingHere(self._work)
        if workers:
            self._packing = WorkerProcesses(workers, self._work, worker_environment(workers))

    def __enter__(self) -> LocalMaking:
        self._packing.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._packing.__exit__(*exception)
        self._work.close()

    def identity(self) -> EncoderIdentity:
        """See ShardMaking."""
        for _ in range(self.processes):
            self._packing.submit(Piece("sentence", (), ()))
        identities = {self._next_result()[1].identity for _ in range(self.processes)}
        return only_identity(identities)

    def make(
        self,
        shards: Iterable[CutShard],
        folder: Path,
        dtype: StoredType,
        encoded: Callable[[int], None],
    ) -> Iterator[ShardRecord]:
        """See ShardMaking."""
        for shard in shards:
            self._gatherings.append(Gathering(shard))
            for piece in shard.pieces(self._piece_rows):
                self._packing.submit(piece)
                while self._packing.is_ready:
                    encoded(self._gather())
                    yield from self._write_complete(folder, dtype)
        while self._packing.under_way:
            encoded(self._gather())
            yield from self._write_complete(folder, dtype)
        yield from self._write_complete(folder, dtype)

    def peaks(self) -> list[PeakMemory]:
        """See ShardMaking."""
        return self._peaks

    def _next_result(self) -> tuple[Piece, Encoded]:
        piece, encoded = self._packing.take()
        self._peaks = [item for item in self._peaks if item.process != encoded.peak.process]
        self._peaks.append(encoded.peak)
        self._identity = encoded.identity
        return piece, encoded

    def _gather(self) -> int:
        """Add the next piece to its shard; return how many rows it has."""
        piece, encoded = self._next_result()
        gathering = next(item for item in self._gatherings if not item.is_whole)
        if encoded.vectors is None:
            raise TypeError("a piece without texts")
        gathering.put(piece, encoded.vectors)
        return len(piece.payload)

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

"""The rows of texts: each is found in a store by its key, or encoded and appended.

Texts are encoded in pieces: in this process, in worker processes that share its cores, or on a Ray
cluster. The vectors come back to this process, which alone stores them. A job that is killed has
lost at most a piece: the next one finds all other rows.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from arag_search.corpus import Chunk
from arag_search.errors import ArgumentError, BuildError, EncoderError
from arag_search.system.processes import worker_environment
from arag_search.vectors.base import (
    Encoder,
    EncoderIdentity,
    FloatArray,
    VectorUnit,
    differences,
    probe_vectors,
    row_key,
    rows_of,
)
from arag_search.vectors.encoders import choose
from arag_search.vectors.folder import RefusedTexts
from index_jobs.embedding.options import ENCODER_OPTIONS, EmbedOptions
from index_jobs.workers.cluster import Cluster
from index_jobs.workers.executor import Executor, ThisProcess
from index_jobs.workers.pool import ProcessPool

if TYPE_CHECKING:
    from arag_search.vectors.state import UnitTexts
    from arag_search.vectors.store import Store

_PROBE_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Piece:
    """Texts that are encoded together, with their keys."""

    keys: Sequence[bytes]
    payload: Sequence[str]


@dataclass(frozen=True, slots=True)
class Encoded:
    """The vectors of a piece by an encoder, which ``cut`` so many of its texts. ``refused`` has its
    words by the places of the texts that it refused. A piece without texts stands for
    PROBE_TEXTS."""

    encoder: EncoderIdentity
    vectors: FloatArray
    cut: int = 0
    refused: Mapping[int, str] = field(default_factory=dict[int, str])


class Encoding:
    """The encoders of a job, open during a block; see ``EmbedOptions``.

    There are ``encoders`` of one ``identity``; ``probes`` are their vectors of PROBE_TEXTS.
    Entering raises what opening an encoder and ``Cluster`` raise. It raises ArgumentError for an
    open encoder with workers or Ray, and BuildError if the encoders of the machines differ.
    """

    def __init__(self, encoder: str | Encoder | EncoderIdentity, options: EmbedOptions) -> None:
        self._encoder = encoder
        self._options = options
        self.encoders = 1

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            first, *others = self._open(opened)
            self.identity, vectors = first.encoder, first.vectors.tolist()
            self.probes = tuple(tuple(round(n, _PROBE_DIGITS) for n in row) for row in vectors)
            for other in others:
                if changed := differences(self.identity, self.probes, other.encoder, other.vectors):
                    raise BuildError(
                        f"The encoders of the workers, {self.identity.name}, are not the same:"
                        f" {changed}.",
                        allowed="the same model everywhere",
                        do="Install the same files of the model on all machines.",
                    )
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._opened.close()

    def encoded(self, texts: Mapping[bytes, str]) -> Iterator[tuple[Piece, Encoded]]:
        """Yield the texts by key in pieces with their vectors, in order. Raises what the encoder
        raises, and WorkerLostError."""
        size, keys = self._options.piece_rows, list(texts)
        parts = (keys[start : start + size] for start in range(0, len(keys), size))
        pieces = (Piece(part, [texts[key] for key in part]) for part in parts)
        yield from filter(None, self._executor.results(pieces))

    def _open(self, opened: ExitStack) -> list[Encoded]:
        """Open the encoders, and return the vectors of PROBE_TEXTS of each machine."""
        options, encoder = self._options, self._encoder
        workers = options.workers or 0
        self._executor: Executor[Piece, Encoded]
        if isinstance(encoder, str | EncoderIdentity):
            work = _Work(partial(_encoder_of, encoder, options))
        elif options.ray is not None or workers:
            raise ArgumentError(
                "An open encoder cannot be passed to other processes.",
                allowed="the name of an encoder",
                do="Name the encoder, or use neither workers nor Ray.",
            )
        else:
            work = _Work(lambda: encoder)
        if options.ray is not None:
            cluster = opened.enter_context(Cluster(options.ray))
            gpus = options.device != "cpu"
            workers = cluster.workers(options.workers, by_machine=True, gpus=gpus)
            self._executor = opened.enter_context(cluster.executor(work, workers, gpus=gpus))
            self.encoders = workers
            return cluster.everywhere(partial(work, ()), workers, gpus=gpus)
        if workers:
            self._executor = ProcessPool(workers, work, worker_environment(workers))
            self.encoders = workers
        else:
            self._executor = ThisProcess(work)
            if isinstance(encoder, str | EncoderIdentity):
                opened.callback(work.close)
        opened.enter_context(self._executor)
        self._executor.submit(Piece((), ()))
        return [self._executor.take()[1]]


def _encoder_of(encoder: str | EncoderIdentity, options: EmbedOptions) -> Encoder:
    """Open an encoder by name, or the encoder of existing vectors with its options."""
    given: dict[str, Any] = {name: getattr(options, name) for name in ENCODER_OPTIONS}
    if isinstance(encoder, str):
        return choose.open_encoder(encoder, **given)
    return choose.open_again(
        encoder, **{name: value for name, value in given.items() if value is not None}
    )


class _Work:
    """A function that encodes texts, in whatever process. It opens its encoder at the first piece.
    For a piece without texts, it encodes the texts by which an encoder is known."""

    def __init__(self, open: Callable[[], Encoder]) -> None:
        self._open = open
        self._encoder: Encoder | None = None

    def __call__(self, texts: Sequence[str]) -> Encoded:
        encoder = self._encoder = self._encoder or self._open()
        identity, cut = encoder.identity, encoder.cut_texts
        if not texts:
            return Encoded(identity, probe_vectors(encoder, f"encoder {identity.name}"))
        refused: Mapping[int, str] = {}
        try:
            vectors = encoder.encode(texts)
        except EncoderError as error:
            if error.vectors is None:
                raise
            vectors, refused = error.vectors, error.refused_texts
        return Encoded(identity, vectors, encoder.cut_texts - cut, refused)

    def close(self) -> None:
        if self._encoder is not None:
            self._encoder.close()


FOUND_TEXTS = 1 << 17
"""How many texts are looked for at once, for each encoder: each time all keys of the store are
read."""


class TextRows:
    """The rows of the texts of an index, whose chunks are added in order.

    ``store`` is the store that is continued, None until there is a row. ``encoded`` of its rows
    were made here. Texts that the encoder ``refused`` have none.
    """

    def __init__(
        self,
        units: Collection[VectorUnit],
        encoding: Encoding,
        store: Store | None,
        create: Callable[[], Store],
        *,
        sentence_titles: bool,
        writing: Callable[[], AbstractContextManager[None]] = nullcontext,
        on_piece: Callable[[int, int], None],
    ) -> None:
        """``create`` makes a store for the first row; rows are appended in ``writing``.
        ``on_piece`` is called after each piece, and may raise. It gets two numbers of texts: with a
        vector, and encoded."""
        self.store = store
        self.encoded = self._found = 0
        self.refused = RefusedTexts()
        self._encoding = encoding
        self._create = create
        self._sentence_titles = sentence_titles
        self._writing = writing
        self._on_piece = on_piece
        self._waiting: dict[VectorUnit, list[tuple[int, str, str]]] = {unit: [] for unit in units}
        self._texts: dict[VectorUnit, tuple[array[int], array[int]]] = {
            unit: (array("q"), array("q")) for unit in units
        }

    def add(self, chunk: Chunk) -> None:
        """Add the texts of a chunk. Raises what encoding and storing raise."""
        for unit, waiting in self._waiting.items():
            rows = rows_of(chunk, unit, sentence_titles=self._sentence_titles)
            waiting += [(*row, chunk.id) for row in rows]
            if len(waiting) >= FOUND_TEXTS * self._encoding.encoders:
                self._give_rows(unit)

    def finish(self) -> dict[VectorUnit, UnitTexts]:
        """Return the texts that were added with their rows. Raises as ``add`` does."""
        import numpy as np

        from arag_search.vectors.state import UnitTexts

        for unit in self._waiting:
            self._give_rows(unit)
        return {
            unit: UnitTexts(np.array(ordinals), np.array(rows))
            for unit, (ordinals, rows) in self._texts.items()
        }

    def _give_rows(self, unit: VectorUnit) -> None:
        texts, self._waiting[unit] = self._waiting[unit], []
        keys = [row_key(text) for _, text, _ in texts]
        refused: dict[bytes, str] = {}
        rows = {} if self.store is None else self.store.find(unit, keys)
        missing = {
            key: text for key, (_, text, _) in zip(keys, texts, strict=True) if key not in rows
        }
        self._found += len(texts) - len(missing)
        for piece, encoded in self._encoding.encoded(missing):
            with self._writing():
                self.store = self.store or self._create()
                kept = [at for at in range(len(piece.keys)) if at not in encoded.refused]
                made = [piece.keys[at] for at in kept]
                first = self.store.append(unit, made, encoded.vectors[kept], encoded.cut)
            rows.update(zip(made, range(first, first + len(made)), strict=True))
            refused |= {piece.keys[at]: words for at, words in encoded.refused.items()}
            self.encoded += len(made)
            self._on_piece(self._found + self.encoded, self.encoded)
        ordinals, numbers = self._texts[unit]
        for key, (ordinal, _, id_) in zip(keys, texts, strict=True):
            if key in rows:
                ordinals.append(ordinal)
                numbers.append(rows[key])
            else:
                self.refused += RefusedTexts(1, (f"{id_} ({refused[key]})",))

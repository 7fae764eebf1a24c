"""Encoding in pieces: in this process, in worker processes that share its cores, or on a Ray
cluster. The vectors come back to this process, which alone stores them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

from arag_search.errors import ArgumentError, BuildError
from arag_search.system.processes import worker_environment
from arag_search.vectors.base import (
    Encoder,
    EncoderIdentity,
    FloatArray,
    differences,
    probe_vectors,
)
from index_jobs.embedding.options import ENCODER_OPTIONS, EmbedOptions
from index_jobs.workers.cluster import Cluster
from index_jobs.workers.executor import Executor, ThisProcess
from index_jobs.workers.pool import ProcessPool

_PROBE_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Piece:
    """Texts that are encoded together, with their keys."""

    keys: Sequence[bytes]
    payload: Sequence[str]


@dataclass(frozen=True, slots=True)
class Encoded:
    """The vectors of a piece by an encoder, which cut so many of its texts; of no texts, those of
    PROBE_TEXTS."""

    encoder: EncoderIdentity
    vectors: FloatArray
    cut: int = 0


class EncoderChoice(NamedTuple):
    """The name of an encoder, and the options to open it with."""

    name: str
    options: tuple[tuple[str, Any], ...]

    @staticmethod
    def of(encoder: str | EncoderIdentity, options: EmbedOptions) -> EncoderChoice:
        """Choose an encoder by name, or the encoder of existing vectors with its options."""
        given = {name: getattr(options, name) for name in ENCODER_OPTIONS}
        if isinstance(encoder, str):
            return EncoderChoice(encoder, tuple(given.items()))
        named = {name: value for name, value in given.items() if value is not None}
        return EncoderChoice(encoder.name, tuple({**encoder.options, **named}.items()))

    def open(self) -> Encoder:
        """Open the encoder. Raises what ``open_encoder`` raises."""
        from arag_search.vectors.encoders.choose import open_encoder

        return open_encoder(self.name, **dict(self.options))


class Encoding:
    """The encoders of a job, open during a block; see ``EmbedOptions``.

    There are ``encoders`` of one ``identity``; ``probes`` are their vectors of PROBE_TEXTS.
    Entering raises what opening an encoder raises, ArgumentError for an open encoder with workers
    or Ray, BuildError if the encoders of the machines differ, and what ``Cluster`` raises.
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
        """Open the encoders, and return the vectors of PROBE_TEXTS by that of each machine."""
        options, encoder = self._options, self._encoder
        workers = options.workers or 0
        self._executor: Executor[Piece, Encoded]
        if isinstance(encoder, str | EncoderIdentity):
            choice = EncoderChoice.of(encoder, options)
        elif options.ray is not None or workers:
            raise ArgumentError(
                "An open encoder cannot be passed to other processes.",
                allowed="the name of an encoder",
                do="Name the encoder, or use neither workers nor Ray.",
            )
        else:
            choice = encoder
        if options.ray is not None:
            cluster = opened.enter_context(Cluster(options.ray))
            gpus = options.device != "cpu"
            workers = cluster.workers(options.workers, by_machine=True, gpus=gpus)
            work = partial(_encoded, choice)
            self._executor = opened.enter_context(cluster.executor(work, workers, gpus=gpus))
            self.encoders = workers
            return cluster.everywhere(partial(work, ()), workers, gpus=gpus)
        if workers:
            environment = worker_environment(workers)
            self._executor = ProcessPool(workers, partial(_encoded, choice), environment)
            self.encoders = workers
        else:
            if isinstance(choice, EncoderChoice):
                choice = opened.enter_context(closing(choice.open()))
            self._executor = ThisProcess(partial(_encoded, choice))
        opened.enter_context(self._executor)
        self._executor.submit(Piece((), ()))
        return [self._executor.take()[1]]


def _encoded(choice: EncoderChoice | Encoder, texts: Sequence[str]) -> Encoded:
    """Encode texts, in whatever process; without texts, those by which an encoder is known."""
    encoder = _opened(choice) if isinstance(choice, EncoderChoice) else choice
    identity, cut = encoder.identity, encoder.cut_texts
    if not texts:
        return Encoded(identity, probe_vectors(encoder, f"encoder {identity.name}"))
    return Encoded(identity, encoder.encode(texts), encoder.cut_texts - cut)


@functools.lru_cache(maxsize=1)
def _opened(choice: EncoderChoice) -> Encoder:
    """Return the encoder of this process, which it keeps from piece to piece."""
    return choice.open()

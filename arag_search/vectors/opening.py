"""Vectors and their encoder, opened on first use."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from arag_search.engines.base import SearchEngine
from arag_search.errors import ArgumentError, IndexClosedError, VectorsMismatchError
from arag_search.vectors.base import Encoder, EncoderIdentity, Vectors
from arag_search.vectors.identity import check_same_encoder


class NotedVectors(NamedTuple):
    """Vectors, and a note for every reply about passages that they lack; None if they are up to
    date."""

    vectors: Vectors
    note: str | None


@dataclass(frozen=True, slots=True)
class OpenVectors:
    """The vectors of an index, and an encoder whose vectors are comparable with them. ``note`` is
    that of NotedVectors."""

    vectors: Vectors
    encoder: Encoder
    note: str | None = None


class VectorSource:
    """A source that opens vectors, and their encoder, once for all threads.

    If opening fails, the next call tries again.
    """

    def __init__(
        self,
        open_vectors: Callable[[], NotedVectors],
        open_encoder: Callable[[EncoderIdentity], Encoder],
        where: str,
    ) -> None:
        """Take the functions that open vectors and encoder, which are closed with this source.

        ``open_encoder`` is called with the identity of the encoder that made the vectors. ``where``
        names the index in errors.
        """
        self._open_vectors = open_vectors
        self._open_encoder = open_encoder
        self._where = where
        self._lock = threading.Lock()
        self._vectors: NotedVectors | None = None
        self._open: OpenVectors | None = None
        self._closed = False

    @staticmethod
    def of(vectors: Vectors, encoder: Encoder, note: str | None = None) -> VectorSource:
        """Return a source of vectors and an encoder that are open already."""
        return VectorSource(lambda: NotedVectors(vectors, note), lambda _: encoder, "memory")

    def open_vectors(self) -> Vectors:
        """Open the vectors alone, without a model. Raises the errors of opening them, and
        IndexClosedError after ``close``."""
        with self._lock:
            return self._noted().vectors

    def open(self) -> OpenVectors:
        """Open vectors and encoder. Raises the errors of ``open_vectors``, those of opening the
        encoder, and VectorsMismatchError if another encoder made the vectors."""
        with self._lock:
            held = self._noted()
            if self._open is None:
                encoder = self._open_encoder(held.vectors.encoder)
                try:
                    check_same_encoder(held.vectors.encoder, encoder.identity, self._where)
                except VectorsMismatchError:
                    encoder.close()
                    raise
                self._open = OpenVectors(held.vectors, encoder, held.note)
            return self._open

    def close(self) -> None:
        """Close vectors and encoder. May be called again."""
        with self._lock:
            self._closed = True
            held, self._vectors = self._vectors, None
            opened, self._open = self._open, None
        if opened is not None:
            opened.encoder.close()
        if held is not None:
            held.vectors.close()

    def _noted(self) -> NotedVectors:
        if self._closed:
            raise IndexClosedError(
                f"The vectors of {self._where} are closed.", do="Open it again with open_index."
            )
        if self._vectors is None:
            self._vectors = self._open_vectors()
        return self._vectors


def sidecar_source(
    location: str,
    engine: SearchEngine,
    vectors: Path | str | None,
    encoder: Encoder | str | None,
    allow_stale: bool,
) -> VectorSource:
    """Return the source of an index's vectors, which are in ``vectors_root``.

    ``encoder`` is an encoder, which is not closed, or a name; None is the one that made the
    vectors.
    """

    def open_sidecar() -> NotedVectors:
        from arag_search.vectors.storage.place import vectors_root
        from arag_search.vectors.storage.sidecar import open_vectors

        identity = None if encoder is None or isinstance(encoder, str) else encoder.identity
        sidecar = open_vectors(
            vectors_root(location, vectors),
            engine,
            location,
            encoder=identity,
            allow_stale=allow_stale,
        )
        return NotedVectors(sidecar, sidecar.stale)

    def open_for_queries(made_by: EncoderIdentity) -> Encoder:
        from arag_search.vectors.encoders.query_cache import QueryCache

        if encoder is None or isinstance(encoder, str):
            return QueryCache(_open_encoder(encoder or made_by.name, made_by))
        return QueryCache(_Borrowed(encoder))

    return VectorSource(open_sidecar, open_for_queries, location)


def _open_encoder(name: str, made_by: EncoderIdentity) -> Encoder:
    """Open an encoder by name, with the options of the one that made the vectors."""
    from arag_search.vectors.encoders.choose import open_encoder

    instruction, dimension = made_by.query_instruction, made_by.dimension
    try:
        return open_encoder(name, query_instruction=instruction, dimension=dimension)
    except ArgumentError as error:
        raise VectorsMismatchError(
            f"Encoder {name} cannot encode queries for vectors of {made_by.name}: {error.what}",
            where=error.where,
            allowed=f"encoder {made_by.name}, dimension {dimension}",
            do="Name that one, or embed the index again with arag-search embed.",
        ) from error


class _Borrowed:
    """An encoder that is closed by its owner, not here."""

    def __init__(self, encoder: Encoder) -> None:
        self.identity = encoder.identity
        self.encode = encoder.encode
        self.encode_queries = encoder.encode_queries

    def close(self) -> None:
        """Do nothing."""

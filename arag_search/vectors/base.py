"""The interfaces of semantic search: encoders, and searchable vectors.

A row is the vector of a sentence or of a passage. Its key is a hash of the encoded text (see
rows.py), which binds the vector to the text. Its ordinal is that of the sentence or chunk in the
index (see corpus.py), and locates the text at one placement of the index. All vectors have unit
length, so that an inner product is a cosine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

from arag_search.query.tree import Scope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float32]
    Ordinals = NDArray[np.int64]
    """The ordinals of chunks, ascending, each once: those that an engine has selected."""

VectorUnit = Literal["sentence", "passage"]
VECTOR_UNITS: tuple[VectorUnit, ...] = ("sentence", "passage")


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderIdentity:
    """The identity of an encoder: encoders with equal identities give a text equal vectors.

    ``name`` is what the user wrote: a model, a folder or a package. Since that may depend on the
    machine, ``revision`` identifies the weights by the SHA-256 of their files ("" for endpoints).
    ``kind`` is "sentence-transformers", "endpoint" or "hashing". ``max_tokens`` is the length to
    which the model cuts a text, None if unknown. ``query_instruction`` is put before queries, never
    before documents; "" for none.
    """

    kind: str
    name: str
    revision: str
    dimension: int
    max_tokens: int | None = None
    query_instruction: str = ""
    normalised: bool = True

    @property
    def fingerprint(self) -> str:
        """The name and a hash; two identities have the same only if they are equal."""
        digest = hashlib.sha256(repr(astuple(self)).encode("utf-8", "backslashreplace"))
        return f"{self.name}-{digest.hexdigest()[:16]}"


@runtime_checkable
class Encoder(Protocol):
    """An encoder of texts as unit vectors. Safe to use from several threads."""

    @property
    def identity(self) -> EncoderIdentity: ...

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors of documents, float32 of shape (texts, dimension), in their order."""
        ...

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Return the vectors of queries, with the model's instruction, in the shape of
        ``encode``."""
        ...

    def close(self) -> None: ...


class Nearest(NamedTuple):
    """A row among the nearest: its ordinal, its cosine with the query (float32), and its key."""

    ordinal: int
    score: float
    key: bytes


class Vectors(Protocol):
    """The rows of one index. Safe to use from several threads until closed."""

    @property
    def encoder(self) -> EncoderIdentity:
        """The encoder that made the vectors; queries must be encoded by an equal one."""
        ...

    @property
    def units(self) -> tuple[VectorUnit, ...]:
        """The units that have vectors."""
        ...

    def nearest(
        self,
        unit: VectorUnit,
        queries: FloatArray,
        n: int,
        within: Scope | Ordinals | None = None,
    ) -> list[list[Nearest]]:
        """Return, for each query of an array of shape (queries, dimension), the ``n`` nearest rows
        of the chunks ``within`` a scope of metadata clauses, or of those with these ordinals.

        The best come first, equal scores in order of ordinal. There are fewer than ``n`` only if
        there are fewer rows within. Deleted rows are excluded. Raises NotServedError for a unit
        without vectors.
        """
        ...

    def close(self) -> None: ...

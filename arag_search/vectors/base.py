"""The seams of semantic search: what turns text into vectors, and what finds the nearest of them.

A row is a vector of one sentence or of one passage. Its key is a hash of the text that was encoded
(see rows.py): by it a vector belongs to a text. Its ordinal is that of the sentence or chunk in the
index (see corpus.py): it says where the text is found at one placement of the index. All vectors
have unit length, so that an inner product is a cosine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from arag_search.query.tree import Scope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float32]

VectorUnit = Literal["sentence", "passage"]
VECTOR_UNITS: tuple[VectorUnit, ...] = ("sentence", "passage")


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderIdentity:
    """What makes vectors comparable: encoders of equal identity give equal vectors to a text.

    ``name`` is what the user wrote (a model, a folder, a package), never a path of this machine's
    alone: ``revision`` tells the weights, as the SHA-256 of their files ("" where an endpoint does
    not tell). ``kind`` is "sentence-transformers", "endpoint" or "hashing". ``max_tokens`` is where
    the model cuts a text, None where it is not known. ``query_instruction`` is what stands before
    a query, and never before a document; "" for none.
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
        """Name and hash; the same for equal identities alone."""
        digest = hashlib.sha256(repr(astuple(self)).encode("utf-8", "backslashreplace"))
        return f"{self.name}-{digest.hexdigest()[:16]}"


class Encoder(Protocol):
    """Text -> unit vectors. Safe to use from several threads."""

    @property
    def identity(self) -> EncoderIdentity: ...

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """The vectors of documents, float32 of shape (texts, dimension), in the order given."""
        ...

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """The vectors of queries, with the instruction of the model; shape as ``encode``."""
        ...

    def close(self) -> None: ...


class Nearest(NamedTuple):
    """One row that was found: its ordinal, its cosine with the query, in float32, and its key."""

    ordinal: int
    score: float
    key: bytes


class Vectors(Protocol):
    """The rows of one index. Safe to use from several threads until closed."""

    @property
    def encoder(self) -> EncoderIdentity:
        """What made them; queries must be encoded by an equal one."""
        ...

    @property
    def units(self) -> tuple[VectorUnit, ...]:
        """What there are vectors of."""
        ...

    def nearest(
        self, unit: VectorUnit, queries: FloatArray, n: int, scope: Scope | None = None
    ) -> list[list[Nearest]]:
        """For each query, of shape (queries, dimension), the ``n`` nearest rows in scope.

        Best first, equal scores in order of ordinal; fewer only where there are fewer. Deleted rows
        are left out. Raises NotServedError for a unit that there are no vectors of.
        """
        ...

    def close(self) -> None: ...

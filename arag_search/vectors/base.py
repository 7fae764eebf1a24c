"""The interfaces of semantic search: encoders, searchable vectors, and the texts that have one.

A row is the vector of a sentence or of a passage. Its key is a hash of the encoded text, which
binds the vector to the text. Its ordinal is that of the sentence or chunk in the index (see
corpus.py), and locates the text at one placement of the index. All vectors have unit length, so
that an inner product is a cosine.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from arag_search.corpus import Chunk
from arag_search.engines.base import Mask, Ordinals
from arag_search.errors import EncoderReplyError, VectorsMismatchError
from arag_search.plan.clauses import ResolvedPlan

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FloatArray: TypeAlias = "NDArray[np.float32]"

VectorUnit = Literal["sentence", "passage"]
VECTOR_UNITS: tuple[VectorUnit, ...] = ("sentence", "passage")
KEY_BYTES = 16

_SHOWN_DIGITS = 12
_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderIdentity:
    """The identity of an encoder: encoders with equal identities give a text equal vectors.

    ``name`` is what the user wrote: a model, a folder or a package. Since that may depend on the
    machine, ``revision`` identifies the weights by the SHA-256 of their files ("" for endpoints).
    ``kind`` is "sentence-transformers", "onnx", "endpoint" or "hashing". ``max_tokens`` is the
    length to which the model cuts a text, None if unknown. ``query_instruction`` is put before
    queries, never before documents; "" for none.
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
        digest = hashlib.sha256(repr(dataclasses.astuple(self)).encode("utf-8", "backslashreplace"))
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


class Selection(NamedTuple):
    """A scope that searches text, with the function of an engine that returns, for each of the
    chunks with some ordinals, whether it is in the scope.

    Vectors call it once for a scope, always with the same array: a chunk with an ordinal never
    changes, and one that is deleted is left out when the passages are read.
    """

    scope: ResolvedPlan
    mark: Callable[[Ordinals], Mask]


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
        within: ResolvedPlan | Selection | None = None,
    ) -> list[list[Nearest]]:
        """Return, for each query of an array of shape (queries, dimension), the ``n`` nearest rows
        of the chunks ``within`` a scope of metadata clauses, or in a selection.

        The best come first, equal scores in order of ordinal. There are fewer than ``n`` only if
        there are fewer rows within. Deleted rows are excluded. Raises NotServedError for a unit
        without vectors.
        """
        ...

    def close(self) -> None: ...


# Texts


def row_key(text: str) -> bytes:
    """Return the key of the vector of a text: the first 16 bytes of the SHA-256 of exactly the
    string that is encoded."""
    return hashlib.sha256(text.encode("utf-8")).digest()[:KEY_BYTES]


def rows_of(
    chunk: Chunk, unit: VectorUnit, *, sentence_titles: bool = False
) -> list[tuple[int, str]]:
    """Return the ordinal and the text of each row of a chunk, in order of ordinal.

    Sentences: each that has a letter or a digit, without surrounding blanks; with
    ``sentence_titles`` below the title of the passage, if it has one. Passages: one row with
    the title, a newline and the content, or the content alone if there is no title; none if neither
    has a letter or a digit.
    """
    if unit == "sentence":
        above = f"{chunk.title}\n" if sentence_titles and chunk.title else ""
        return [
            (chunk.ordinal + number, f"{above}{text.strip()}")
            for number, text in enumerate(chunk.sentences())
            if _has_word(text)
        ]
    text = f"{chunk.title}\n{chunk.content}" if chunk.title else chunk.content
    return [(chunk.ordinal, text)] if _has_word(text) else []


def _has_word(text: str) -> bool:
    return any(map(str.isalnum, text))


# Encoders


def unit_rows(rows: Any, texts: Sequence[str], where: str) -> FloatArray:
    """Return rows of any float type, of shape (texts, dimension), as float32 rows of length 1.

    A row of zeros, which some models give to texts without known words, becomes the first unit
    vector. Raises EncoderReplyError, which shows the text, for a row with a number that is not
    finite.
    """
    import numpy as np

    vectors = np.array(rows, np.float32, order="C")
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    if not np.isfinite(lengths).all():
        text = texts[int(np.flatnonzero(~np.isfinite(lengths))[0])]
        shown = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."
        raise EncoderReplyError(
            f"The vector of a text holds numbers that are not finite: {shown!r}.", where=where
        )
    vectors[lengths == 0, 0] = lengths[lengths == 0] = 1.0
    vectors /= lengths[:, None].astype(np.float32)
    return vectors


def check_same_encoder(made_by: EncoderIdentity, encoder: EncoderIdentity, where: str) -> None:
    """Raise VectorsMismatchError, which names both encoders, if queries of ``encoder`` are not
    comparable with the vectors of ``made_by``. ``where`` names these in errors."""
    differing = _differing(made_by, encoder)
    if differing:
        raise VectorsMismatchError(
            f"The vectors were made by {_described(made_by, differing)}, but queries would be "
            f"encoded by {_described(encoder, differing)}.",
            where=where,
            allowed="the encoder that made the vectors",
            do="Name that one, or embed the index again with the other.",
        )


def _differing(made_by: EncoderIdentity, now: EncoderIdentity) -> list[str]:
    """Return the names of the fields that differ. Equal weights may have different names: a folder
    that was moved, or a package and its folder."""
    names = [
        field.name
        for field in dataclasses.fields(EncoderIdentity)
        if getattr(made_by, field.name) != getattr(now, field.name)
    ]
    return [] if names == ["name"] and now.revision else names


def _described(encoder: EncoderIdentity, fields: Sequence[str]) -> str:
    """Return the encoder's name, with the values of the other fields that differ."""
    parts: list[str] = []
    for name in fields:
        value = getattr(encoder, name)
        if name == "revision":
            value = str(value)[:_SHOWN_DIGITS] or "none"
        if name != "name":
            parts.append(f"{name.replace('_', ' ')} {value if value != '' else repr(value)}")
    return f"{encoder.name} ({', '.join(parts)})" if parts else encoder.name

"""The interfaces of semantic search: encoders, searchable vectors, and the texts that have one.

A row is the vector of a sentence or of a passage. Its key is a hash of the encoded text, which
binds the vector to the text. Its ordinal belongs to the sentence or chunk in the index (see
corpus.py), and locates the text at one placement of the index. All vectors have unit length, so
that an inner product is a cosine.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypedDict,
    runtime_checkable,
)

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

Probes: TypeAlias = tuple[tuple[float, ...], ...]
"""The vectors that an encoder gave to PROBE_TEXTS."""

PROBE_TEXTS = (
    "The first performance of the opera was in Venice in 1735.",
    "Invoice 4711: 30 pumps, delivered late, to be paid by Friday.",
    "植物の葉は光を受けて糖を作る。",
    "Почта закрыта до понедельника.",
)
"""Texts without a common meaning, by whose vectors an encoder is known again. The last is neither
the longest nor the shortest, so that it stands elsewhere in a batch that was sorted."""

_SAME_MODEL = 0.99  # the least cosine; half precision and other runtimes stay above .999
_ONE_VECTOR = 0.9999
_PROBE_COPIES = 8  # in a batch; one server mixed up batches of 16 texts and more
_COMPARED = ("dimension", "max_tokens", "query_prefix", "document_prefix")
_SHOWN_CHARACTERS = 60


class EncoderOptions(TypedDict, total=False):
    """The options with which an encoder is opened; None is the default of each.

    The prefixes are put directly before queries and documents; None are the model's own, by its
    files, else by its name (``known_models``). ``device`` is for models of this process.
    """

    device: str | None
    batch_size: int | None
    query_prefix: str | None
    document_prefix: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderIdentity:
    """The identity of an encoder. ``differences`` says whether two are the same.

    ``name`` is what the user wrote: a model, a folder or a package. ``kind`` is
    "sentence-transformers", "onnx", "endpoint" or "hashing". ``max_tokens`` is the length to which
    the model cuts a text, None if unknown. ``query_prefix`` is put directly before queries and
    ``document_prefix`` before documents; "" for none.
    """

    kind: str
    name: str
    dimension: int
    max_tokens: int | None = None
    query_prefix: str = ""
    document_prefix: str = ""

    @property
    def fingerprint(self) -> str:
        """The name and a hash; two identities have the same only if they are equal."""
        digest = hashlib.sha256(repr(dataclasses.astuple(self)).encode("utf-8", "backslashreplace"))
        return f"{self.name}-{digest.hexdigest()[:16]}"

    @property
    def options(self) -> EncoderOptions:
        """The options with which this encoder is opened again."""
        return {"query_prefix": self.query_prefix, "document_prefix": self.document_prefix}


@runtime_checkable
class Encoder(Protocol):
    """An encoder of texts as unit vectors. Safe to use from several threads."""

    @property
    def identity(self) -> EncoderIdentity: ...

    @property
    def cut_texts(self) -> int:
        """How many documents so far were longer than the encoder reads, so that their ends are not
        in their vectors."""
        ...

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors of documents, float32 of shape (texts, dimension), in their order."""
        ...

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Return the vectors of queries, in the shape of ``encode``."""
        ...

    def close(self) -> None: ...


class Nearest(NamedTuple):
    """A text among the nearest: its ordinal, its cosine with the query (float32), and its key."""

    ordinal: int
    score: float
    key: bytes


class Selection(NamedTuple):
    """A scope, with functions that ask an engine about it.

    ``mark``: returns whether each chunk, given by ordinals, is in the scope.
    ``share``: returns the share of all chunks that are in the scope. ``mark`` is then asked about
    the nearest chunks only. None: it is asked about all chunks, always with the same array.

    The answers are kept: a chunk with an ordinal never changes, and a deleted one is left out when
    the passages are read.
    """

    scope: ResolvedPlan
    mark: Callable[[Ordinals], Mask]
    share: Callable[[], float | None] = lambda: None


class Vectors(Protocol):
    """The rows of one index, of these ``units``. Safe to use from several threads until closed.

    The ``encoder`` made them, and gave ``probes`` to PROBE_TEXTS; queries must be encoded by an
    equal one.
    """

    encoder: EncoderIdentity
    probes: Probes
    units: tuple[VectorUnit, ...]

    def nearest(
        self, unit: VectorUnit, queries: FloatArray, n: int, within: Selection | None = None
    ) -> list[list[Nearest]]:
        """Return, for each query of an array of shape (queries, dimension), the ``n`` nearest texts
        of the chunks ``within`` a scope.

        The best come first, equal scores in order of ordinal. There are fewer than ``n`` only if
        there are fewer texts within. Raises NotServedError for a unit without vectors, and what
        the functions of the selection raise.
        """
        ...

    def close(self) -> None: ...


# Texts


def row_key(text: str) -> bytes:
    """Return the key of the vector of a text: the BLAKE2b, of 16 bytes, of exactly the string that
    is encoded, without a prefix."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=KEY_BYTES).digest()


def rows_of(
    chunk: Chunk, unit: VectorUnit, *, sentence_titles: bool = False
) -> list[tuple[int, str]]:
    """Return the ordinal and the text of each row of a chunk, in order of ordinal.

    Sentences: each that has a letter or a digit, without surrounding blanks; with
    ``sentence_titles`` below the title of the passage, if it has one. Passages: one row with
    the title, a newline and the content, or the content alone if there is no title. There is no row
    if neither has a letter or a digit.
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

    with np.errstate(over="ignore"):  # what is too large is not finite
        vectors = np.array(rows, np.float32, order="C")
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    if not np.isfinite(lengths).all():
        text = texts[int(np.flatnonzero(~np.isfinite(lengths))[0])]
        shown = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."
        raise EncoderReplyError(
            f"The vector of a text holds numbers that are not finite: {shown!r}.",
            where=where,
            allowed="finite numbers",
            do="Run the model with another precision or server, or name another model.",
        )
    vectors[lengths == 0, 0] = lengths[lengths == 0] = 1.0
    vectors /= lengths[:, None].astype(np.float32)
    return vectors


def differences(
    made_by: EncoderIdentity, kept: Probes, encoder: EncoderIdentity, now: Probes | FloatArray
) -> str:
    """Describe what keeps the vectors of an encoder from being compared with those ``made_by``
    another; "" if nothing does.

    ``kept`` and ``now`` are the vectors that they gave to PROBE_TEXTS. These say whether the model
    is the same, whatever it is called, wherever its files are and whatever runs it.
    """
    import numpy as np

    changed = [
        f"{name.replace('_', ' ')} {after!r} instead of {before!r}"
        for name in _COMPARED
        if (before := getattr(made_by, name)) != (after := getattr(encoder, name))
    ]
    if not changed:
        cosine = np.einsum("ij,ij->i", np.array(kept), np.array(now)).min()
        if cosine < _SAME_MODEL:
            changed = [f"it gives texts other vectors (cosine {cosine:.2f})"]
    return ", ".join(changed)


def check_same_encoder(
    made_by: EncoderIdentity,
    kept: Probes,
    encoder: EncoderIdentity,
    now: Probes | FloatArray,
    where: str,
) -> None:
    """Raise VectorsMismatchError, which names both encoders, if there are ``differences``.
    ``where`` names the vectors."""
    if changed := differences(made_by, kept, encoder, now):
        raise VectorsMismatchError(
            f"{encoder.name} is not the encoder that made the vectors, {made_by.name}: {changed}.",
            where=where,
            allowed=f"the same lengths and prefixes, and a cosine of {_SAME_MODEL} or more",
            do="Run or name that encoder, or embed the index again with arag-search embed "
            "--overwrite.",
        )


def probe_vectors(encoder: Encoder, where: str) -> FloatArray:
    """Return the vectors of PROBE_TEXTS, by which an encoder is known again.

    Raises EncoderReplyError for an encoder that gives all of them one vector, zeros, or numbers
    that are not finite. It is also raised if a text gets another vector in a batch than alone: an
    endpoint mixes up the order. Raises what ``encode`` raises.
    """
    batch = encoder.encode(PROBE_TEXTS * _PROBE_COPIES)
    vectors = batch[: len(PROBE_TEXTS)]
    alone = encoder.encode(PROBE_TEXTS[-1:])[0]
    cosine = (batch[len(PROBE_TEXTS) - 1 :: len(PROBE_TEXTS)] @ alone).min()
    if cosine < _SAME_MODEL:
        problem = f"a text another vector in a batch than alone (cosine {cosine:.2f})"
    elif (vectors @ vectors[0]).min() > _ONE_VECTOR:
        problem = "one vector to texts that have nothing in common"
    else:
        return vectors
    raise EncoderReplyError(
        f"Encoder {encoder.identity.name} gives {problem}.",
        where=where,
        allowed="a model for embeddings that gives each text its own vector, whatever is sent "
        "beside it",
        do="Name another model, or mend the server that runs this one; nothing was embedded.",
    )

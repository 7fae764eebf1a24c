"""Whether an encoder is the one that made the vectors: by its identity, and by what it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from arag_search.errors import EncoderReplyError, VectorsMismatchError
from arag_search.vectors.base import (
    PROBE_TEXTS,
    EncoderIdentity,
    check_same_encoder,
    check_same_model,
    probe_vectors,
    unit_rows,
)
from arag_search.vectors.encoders.hashing import HashingEncoder

if TYPE_CHECKING:
    from arag_search.vectors.base import FloatArray

ENCODER = EncoderIdentity(kind="hashing", name="words", revision="1", dimension=16)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            {"name": "bge", "revision": "2"},
            "The vectors were made by words, but queries would be encoded by bge: revision '2'"
            " instead of '1'.",
        ),
        (
            {"dimension": 8},
            "The vectors were made by words, but queries would be encoded by words: dimension 8"
            " instead of 16.",
        ),
        (
            {"query_prefix": "Find: ", "document_prefix": "passage: "},
            "The vectors were made by words, but queries would be encoded by words: query prefix "
            "'Find: ' instead of '', document prefix 'passage: ' instead of ''.",
        ),
    ],
)
def test_vectors_of_another_model_are_refused_naming_both(
    other: dict[str, Any], message: str
) -> None:
    fields: dict[str, Any] = {"kind": "hashing", "name": "words", "revision": "1", "dimension": 16}
    with pytest.raises(VectorsMismatchError) as raised:
        check_same_encoder(ENCODER, EncoderIdentity(**{**fields, **other}), "my vectors")
    assert str(raised.value) == (
        f"{message}\nWhere: my vectors\nAllowed: the encoder that made the vectors\n"
        "Do: Name that one, or embed the index again with the other."
    )


# Probe texts


class ChangedEncoder(HashingEncoder):
    """A hashing encoder whose vectors are changed."""

    def __init__(self, change: Callable[[Sequence[str], FloatArray], Any], size: int = 64) -> None:
        super().__init__(size)
        self._change = change

    def encode(self, texts: Sequence[str]) -> FloatArray:
        return unit_rows(self._change(texts, super().encode(texts)), texts, "the encoder")


def noisy(texts: Sequence[str], vectors: FloatArray) -> FloatArray:
    """Move vectors by as much as half precision does, and ten times as much."""
    return (vectors + np.random.default_rng(1).normal(0, 0.002, vectors.shape)).astype(np.float32)


def test_an_encoder_is_known_again_by_its_probe_vectors_through_rounding() -> None:
    probes = probe_vectors(HashingEncoder(64), "the index")
    assert len(probes) == len(PROBE_TEXTS)
    check_same_model(probes, HashingEncoder(64).encode(PROBE_TEXTS), "hashing:64", "the index")
    check_same_model(probes, ChangedEncoder(noisy).encode(PROBE_TEXTS), "hashing:64", "the index")


@pytest.mark.parametrize(
    ("encoder", "difference"),
    [
        (ChangedEncoder(lambda _, vectors: np.roll(vectors, 1, 1)), "cosine "),
        (HashingEncoder(65), "65 numbers instead of 64"),
    ],
)
def test_another_model_behind_the_same_name_is_refused(
    encoder: HashingEncoder, difference: str
) -> None:
    probes = probe_vectors(HashingEncoder(64), "the index")
    with pytest.raises(VectorsMismatchError) as raised:
        check_same_model(probes, encoder.encode(PROBE_TEXTS), encoder.identity.name, "my vectors")
    what, where, allowed, do = str(raised.value).splitlines()
    assert what.startswith(
        f"There is another model behind the name {encoder.identity.name}: it gives texts other "
        f"vectors than when the index was embedded ({difference}"
    )
    assert where == "Where: my vectors"
    assert allowed == "Allowed: the model that made the vectors (cosine 0.99 or more)"
    assert do == (
        "Do: Run that model again under this name, or embed the index again with arag-search embed "
        "--overwrite."
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda _, vectors: 0 * vectors, "one vector to texts that have nothing in common"),
        (lambda _, vectors: 0 * vectors + 1, "one vector to texts that have nothing in common"),
        (
            lambda texts, vectors: vectors[np.argsort([len(text) for text in texts])],
            "a text another vector in a batch than alone (cosine ",
        ),
        (
            lambda texts, vectors: np.roll(vectors, len(texts), 1),
            "a text another vector in a batch than alone (cosine ",
        ),
    ],
    ids=["zeros", "one", "sorted", "batch"],
)
def test_an_encoder_whose_vectors_cannot_be_those_of_texts_is_refused(
    change: Callable[[Sequence[str], FloatArray], Any], problem: str
) -> None:
    with pytest.raises(EncoderReplyError) as raised:
        probe_vectors(ChangedEncoder(change), "the index")
    what, where, allowed, do = str(raised.value).splitlines()
    assert what.startswith(f"Encoder hashing:64 gives {problem}")
    assert where == "Where: the index"
    assert allowed == (
        "Allowed: a model for embeddings that gives each text its own vector, whatever is sent "
        "beside it"
    )
    assert do == (
        "Do: Name another model, or mend the server that runs this one; nothing was embedded."
    )


def test_numbers_that_are_not_finite_are_refused() -> None:
    broken = ChangedEncoder(lambda _, vectors: np.where(vectors > 0, np.inf, vectors))
    with pytest.raises(EncoderReplyError) as raised:
        probe_vectors(broken, "the index")
    assert str(raised.value) == (
        "The vector of a text holds numbers that are not finite: "
        f"{PROBE_TEXTS[0]!r}.\nWhere: the encoder\nAllowed: finite numbers\n"
        "Do: Run the model with another precision or server, or name another model."
    )

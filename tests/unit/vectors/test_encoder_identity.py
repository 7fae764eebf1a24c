"""Whether an encoder is the one that made the vectors: by its identity, and by what it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from arag_search.errors import EncoderReplyError, VectorsMismatchError
from arag_search.vectors.base import (
    PROBE_TEXTS,
    EncoderIdentity,
    Probes,
    check_same_encoder,
    differences,
    probe_vectors,
    unit_rows,
)
from arag_search.vectors.encoders.hashing import HashingEncoder

if TYPE_CHECKING:
    from arag_search.vectors.base import FloatArray

ENCODER = EncoderIdentity(kind="hashing", name="words", dimension=16)


ONE = ((1.0, 0.0),)


@pytest.mark.parametrize(
    ("other", "now", "changed"),
    [
        ({"name": "bge"}, ((0.6, 0.8),), "it gives texts other vectors (cosine 0.60)"),
        ({"dimension": 8}, ((1.0,),), "dimension 8 instead of 16"),
        ({"query_prefix": "Find: ", "document_prefix": "passage: "}, ONE,
         "query prefix 'Find: ' instead of '', document prefix 'passage: ' instead of ''"),
    ],
)  # fmt: skip
def test_vectors_of_another_encoder_are_refused_naming_both(
    other: dict[str, Any], now: Probes, changed: str
) -> None:
    encoder = replace(ENCODER, **other)
    with pytest.raises(VectorsMismatchError) as raised:
        check_same_encoder(ENCODER, ONE, encoder, now, "my vectors")
    assert (raised.value.where, changed in raised.value.what) == ("my vectors", True)


def test_a_model_may_have_two_names_and_be_run_by_two_libraries() -> None:
    encoder = replace(ENCODER, kind="onnx", name="/a/folder")
    check_same_encoder(ENCODER, ONE, encoder, ((0.9999, 0.0141),), "my vectors")


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
    kept = tuple(tuple(round(number, 6) for number in row) for row in probes.tolist())
    for encoder in (HashingEncoder(64), ChangedEncoder(noisy)):
        now = encoder.encode(PROBE_TEXTS)
        check_same_encoder(ENCODER, kept, ENCODER, now, "the index")
    now = ChangedEncoder(lambda _, vectors: np.roll(vectors, 1, 1)).encode(PROBE_TEXTS)
    assert differences(ENCODER, kept, ENCODER, now).startswith("it gives texts other vectors (")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda _, vectors: 0 * vectors, "one vector to texts that have nothing in common"),
        (lambda _, vectors: 0 * vectors + 1, "one vector to texts that have nothing in common"),
        (lambda texts, vectors: vectors[np.argsort([len(text) for text in texts])],
         "a text another vector in a batch than alone (cosine "),
        (lambda texts, vectors: np.roll(vectors, len(texts), 1),
         "a text another vector in a batch than alone (cosine "),
    ],
    ids=["zeros", "one", "sorted", "batch"],
)  # fmt: skip
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

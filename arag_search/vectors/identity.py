"""The comparison of encoders: whether their vectors are comparable."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from arag_search.errors import VectorsMismatchError
from arag_search.vectors.base import EncoderIdentity

_SHOWN_DIGITS = 12


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

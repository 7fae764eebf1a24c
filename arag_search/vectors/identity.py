"""Whether two encoders give comparable vectors."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from arag_search.errors import VectorsMismatchError
from arag_search.vectors.base import EncoderIdentity

_SHOWN_DIGITS = 12


def check_same_encoder(made_by: EncoderIdentity, encoder: EncoderIdentity, where: str) -> None:
    """Raise VectorsMismatchError, naming both, where queries of the encoder are not comparable with
    vectors that ``made_by`` made, which are ``where``."""
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
    """The names of fields that differ. Of equal weights the name may be another: a folder that was
    moved, or a package and its folder."""
    names = [
        each.name
        for each in dataclasses.fields(EncoderIdentity)
        if getattr(made_by, each.name) != getattr(now, each.name)
    ]
    return [] if names == ["name"] and now.revision else names


def _described(encoder: EncoderIdentity, fields: Sequence[str]) -> str:
    """The encoder by name, with what else differs."""
    parts: list[str] = []
    for name in fields:
        value = getattr(encoder, name)
        if name == "revision":
            value = str(value)[:_SHOWN_DIGITS] or "none"
        if name != "name":
            parts.append(f"{name.replace('_', ' ')} {value if value != '' else repr(value)}")
    return f"{encoder.name} ({', '.join(parts)})" if parts else encoder.name

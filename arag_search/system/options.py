"""The options of a job, each said once: a field of a dataclass, its help and its bounds.

    @dataclass(frozen=True)
    class Options:
        tokens: int = option(1_000, "Most tokens of a passage.", "N", 16, 100_000)

        def __post_init__(self) -> None:
            check(self)

Python takes the fields, and the command line makes its options from them. A message writes a field
between backticks, `tokens` or `overwrite=True`; the command line writes it as its option.
"""

from __future__ import annotations

import dataclasses
import reprlib
import types
import typing
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple, Union, cast

from arag_search.errors import ArgumentError


class Option(NamedTuple):
    """The description of an option.

    ``help``: its effect in one sentence, then the default. Empty: Python alone has the option.
    ``metavar``: the name of its value in help.
    ``least``, ``most``: the bounds of a number.
    ``known``: all names that a text, or each text of a tuple, may be.
    ``read``: the function that reads the value from a text of the command line.
    ``kind``, ``default``: its type and default, from its field.
    """

    help: str
    metavar: str | None
    least: float | None
    most: float | None
    known: Collection[str]
    read: Callable[[str], Any] | None
    kind: Any = None
    default: Any = None


def option(
    default: Any,
    help: str = "",
    metavar: str | None = None,
    least: float | None = None,
    most: float | None = None,
    *,
    known: Collection[str] = (),
    read: Callable[[str], Any] | None = None,
) -> Any:
    """Return a field of a dataclass of options. The ``default`` may be a class of mutable values:
    then each options have a new one."""
    said = {"option": Option(help, metavar, least, most, known, read)}
    if isinstance(default, type):
        return dataclasses.field(default_factory=default, metadata=said)
    return dataclasses.field(default=default, metadata=said)


@cache
def options_of(kind: Any) -> Mapping[str, Option]:
    """Return the fields of a class of options of which something is said."""
    hints = typing.get_type_hints(kind)
    return {
        field.name: field.metadata["option"]._replace(kind=hints[field.name], default=field.default)
        for field in dataclasses.fields(kind)
        if field.metadata
    }


def values_of(options: Any) -> dict[str, Any]:
    """Return the values of all options by name, including the options of nested classes."""
    kind, values = cast(Any, type(options)), dict[str, Any]()
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if field.name in options_of(kind):
            values[field.name] = value
        elif dataclasses.is_dataclass(value):
            values |= values_of(value)
    return values


def names_in(text: str) -> tuple[str, ...]:
    """Return the names in a text such as ``a,b``; an empty text has none."""
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def check(options: Any) -> None:
    """Raise ArgumentError for a field whose value is of another type, out of bounds or unknown."""
    whole = cast(Any, type(options))
    for name, field in options_of(whole).items():
        value: Any = getattr(options, name)
        if (wrong := _wrong(field.kind, value)) is not None:
            check_known(name, wrong, _literals(field.kind))
            raise ArgumentError(
                f"`{name}`: {reprlib.repr(value)} is of another type.",
                where=whole.__name__,
                allowed=_written(field.kind),
            )
        check_known(name, [value] if isinstance(value, str) else value, field.known)
        if field.least is not None:
            check_range(name, cast(Any, value), field.least, field.most)


def check_known(name: str, values: Any, known: Collection[str]) -> None:
    """Raise ArgumentError if a value of the field is not known, where some are."""
    for value in values if known and values is not None else ():
        if value not in known:
            raise ArgumentError(f'`{name}`: "{value}" is not known.', allowed=", ".join(known))


def check_range(name: str, value: float | None, least: float, most: float | None) -> None:
    """Raise ArgumentError if the value of the field is out of bounds, as NaN is; None is not."""
    if value is None or (least <= value and (most is None or value <= most)):
        return
    raise ArgumentError(
        f"`{name}`: {value:,} is out of range.",
        allowed=f"{least:,} or more" if most is None else f"{least:,} to {most:,}",
    )


def _wrong(kind: Any, value: object) -> list[object] | None:
    """Return what of a value is of another type, as a list; None if nothing is."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        return None if any(_wrong(part, value) is None for part in parts) else [value]
    if origin is Literal:
        return None if value in parts else [value]
    if origin is tuple and isinstance(value, tuple):
        items = cast(tuple[object, ...], value)
        return [item for item in items if _wrong(parts[0], item) is not None] or None
    allowed: Any = {float: (float, int)}.get(kind, origin or kind)
    is_flag = isinstance(value, bool) and kind is not bool
    return [value] if is_flag or not isinstance(value, allowed) else None


def _literals(kind: Any) -> list[str]:
    parts = typing.get_args(kind)
    if typing.get_origin(kind) is Literal:
        return [str(part) for part in parts]
    return [name for part in parts for name in _literals(part)]


def _written(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("collections.abc.", "")

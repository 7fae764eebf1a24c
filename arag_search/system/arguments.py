"""Checking the arguments of public functions against their annotations.

The annotation is the only place that says what is allowed; a decorator reads it:

    @checked
    def search(query: str, *, top_k: int = 5) -> Result: ...

    search("vivaldi", top_k="5")  # ArgumentError: top_k is "5", a string. ...
"""

from __future__ import annotations

import functools
import inspect
import numbers
import reprlib
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal, NoReturn, ParamSpec, TypeVar, Union, cast

from arag_search.errors import ArgumentError

_P = ParamSpec("_P")
_R = TypeVar("_R")

_MAX_SHOWN = 60
_ITEMS = (Sequence, Iterable, list, tuple)
_NUMBERS: Mapping[type, type] = {int: numbers.Integral, float: numbers.Real}
_KINDS: Mapping[type, str] = {
    str: "a string",
    bytes: "bytes",
    bytearray: "bytes",
    int: "a whole number",
    float: "a number",
    list: "a list",
    tuple: "a tuple",
    dict: "a dictionary",
    set: "a set",
}


def checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function raise ArgumentError for an argument that its annotation does not allow.

    Understood are strings, numbers, flags, paths, classes, literals, optional values, mappings and
    sequences or iterables of these. A flag is not a number, and a string is not a sequence of
    strings. Integers of other libraries are converted to int. Items of an iterator are not checked,
    because that would consume it. O(items) for each call.
    """
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    rules: dict[str, _Rule] = {}

    @functools.wraps(function)
    def call(*arguments: _P.args, **options: _P.kwargs) -> _R:
        if not rules:
            rules.update(_rules(function))
        positional = list(arguments)
        for at, (name, value) in enumerate(zip(names, arguments, strict=False)):
            if name in rules:
                positional[at] = rules[name].accepted(value)
        for name, value in options.items():
            if name in rules:
                options[name] = rules[name].accepted(value)
        return function(*positional, **options)  # pyright: ignore[reportCallIssue]

    return call


@dataclass(frozen=True, slots=True)
class _Rule:
    """What one parameter accepts; ``plain`` are types whose values need no further look."""

    function: str
    name: str
    annotation: Any
    default: Any
    plain: tuple[type, ...]

    def accepted(self, value: object) -> Any:
        """Return the value, as an int if it is an integer of another library."""
        if type(value) in self.plain:
            return value
        if not _fits(value, self.annotation):
            self._refuse(value)
        if isinstance(value, numbers.Integral) and not isinstance(value, int):
            return int(value)
        return value

    def _refuse(self, value: object) -> NoReturn:
        items = _item_annotation(self.annotation)
        name, wrong = self.name, value
        if items is not None and isinstance(value, list | tuple):
            for at, item in enumerate(cast("Sequence[object]", value)):
                if not _fits(item, items):
                    name, wrong = f"{self.name}[{at}]", item
                    break
        what = f"{name} is {_shown(wrong)}."
        if isinstance(value, str) and items is str:
            what = f"{name} is one string."
        elif isinstance(value, str) and _is_literal(self.annotation):
            what = f"{name} is {_quoted(_cut(value))}."
        raise ArgumentError(
            what,
            where=self.function,
            allowed=_words(self.annotation),
            do=self._advice(cast("object", value)),
        )

    def _advice(self, value: object) -> str:
        choices = _choices(self.annotation)
        if isinstance(value, bytes | bytearray):
            return "Decode it: .decode() makes a string of bytes."
        if isinstance(value, str) and _item_annotation(self.annotation) is str:
            return f"Write [{_quoted(value)}]."
        if isinstance(value, str) and int in choices and value.strip().isdecimal():
            return f"Write {self.name}={int(value)}."
        if value is None and self.default is not inspect.Parameter.empty:
            return f"Leave it out for the default, {self.default!r}."
        if isinstance(value, list | tuple) and str in choices:
            return "Give one string."
        return f"See help({self.function})."


def _rules(function: Callable[..., Any]) -> dict[str, _Rule]:
    """Return the rules of the annotated parameters of a function."""
    annotations = typing.get_type_hints(function)
    rules: dict[str, _Rule] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in annotations:
            annotation = annotations[name]
            plain = tuple(
                choice
                for choice in _choices(annotation)
                if choice in (str, int, float, bool, types.NoneType)
            )
            rules[name] = _Rule(
                function.__qualname__.removesuffix(".__init__"),
                name,
                annotation,
                parameter.default,
                plain,
            )
    return rules


def _choices(annotation: Any) -> tuple[Any, ...]:
    """Return the alternatives of an annotation: those of a union, otherwise itself."""
    if typing.get_origin(annotation) in (Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def _item_annotation(annotation: Any) -> Any:
    """Return what the items of a sequence or iterable may be; None for other annotations."""
    for choice in _choices(annotation):
        if typing.get_origin(choice) in _ITEMS:
            return typing.get_args(choice)[0]
    return None


def _is_literal(annotation: Any) -> bool:
    return any(typing.get_origin(choice) is Literal for choice in _choices(annotation))


def _fits(value: object, annotation: Any) -> bool:
    return any(_fits_choice(value, choice) for choice in _choices(annotation))


def _fits_choice(value: object, choice: Any) -> bool:
    origin = typing.get_origin(choice)
    if origin is Literal:
        return any(type(value) is type(allowed) and value == allowed for allowed in choice.__args__)
    if origin in _ITEMS:
        if isinstance(value, str | bytes | bytearray | Mapping):
            return False
        if not isinstance(value, origin):
            return False
        items = typing.get_args(choice)[0]
        if not isinstance(value, Collection):
            return True
        return all(_fits(item, items) for item in cast("Collection[object]", value))
    if origin is not None:
        return isinstance(value, origin)
    if choice in (int, float):
        return isinstance(value, _NUMBERS[choice]) and not isinstance(value, bool)
    return choice is Any or isinstance(value, choice)


def _words(annotation: Any, many: bool = False) -> str:
    """Describe what an annotation allows, in the plural if ``many``."""
    texts: list[str] = []
    for choice in _choices(annotation):
        origin = typing.get_origin(choice)
        if origin is Literal:
            texts.extend(str(value) for value in choice.__args__)
        elif origin in _ITEMS:
            texts.append(f"a list of {_words(typing.get_args(choice)[0], many=True)}")
        elif choice is types.NoneType:
            texts.append("None")
        elif choice is bool:
            texts.append("True or False")
        else:
            name = _KINDS.get(origin or choice) or _class_words(origin or choice)
            texts.append(name.removeprefix("a ") + "s" if many and name[:2] == "a " else name)
    return " or ".join(texts)


def _class_words(kind: Any) -> str:
    if issubclass(kind, PurePath):
        return "a path"
    if issubclass(kind, Mapping):
        return "a dictionary"
    return f"an {kind.__name__}" if kind.__name__[0] in "AEIOU" else f"a {kind.__name__}"


def _shown(value: object) -> str:
    """Describe a value with its type, unless the value itself shows that."""
    text = _cut(_quoted(value) if isinstance(value, str) else reprlib.repr(value))
    if value is None or isinstance(value, bool):
        return text
    return f"{text}, {_KINDS.get(type(value)) or _class_words(type(value))}"


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


def _quoted(text: str) -> str:
    return f'"{text.encode("utf-8", "backslashreplace").decode()}"'

"""Checking the arguments of public functions against their annotations.

The annotation is the only place that says what is allowed; a decorator reads it:

    @checked
    def search(query: str, *, top_k: int = 5) -> Result: ...

    search("vivaldi", top_k="5")  # ArgumentError: top_k is '5'. ...
"""

from __future__ import annotations

import functools
import reprlib
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, ParamSpec, TypeVar, Union

from arag_search.errors import ArgumentError

_P = ParamSpec("_P")
_R = TypeVar("_R")

_PLAIN: tuple[Any, ...] = (str, bytes, int, float, bool, types.NoneType, Any)


def checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function raise ArgumentError for an argument that its annotation does not allow.

    A flag is not a number, and a string is not a sequence of strings. Items of an iterator are not
    checked, because that would consume it. O(items) for each call.
    """
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    written = {name: str(kind).split(" | ") for name, kind in function.__annotations__.items()}
    defaults = function.__kwdefaults__ or {}
    validators: dict[str, Any] = {}

    @functools.wraps(function)
    def call(*arguments: _P.args, **options: _P.kwargs) -> _R:
        for name, value in (*zip(names, arguments, strict=False), *options.items()):
            given = "None" if value is None else type(value).__name__
            if given in written.get(name, (given,)) or value is defaults.get(name, written):
                continue  # before pydantic, which takes long to import
            if not validators:
                validators.update(_validators(function))
            _check(function, name, value, validators[name])
        return function(*arguments, **options)

    return call


def _validators(function: Callable[..., Any]) -> dict[str, Any]:
    from pydantic import TypeAdapter

    annotations = typing.get_type_hints(function)
    annotations.pop("return", None)
    return {
        name: TypeAdapter(_strict(annotation)).validator for name, annotation in annotations.items()
    }


def _strict(annotation: Any) -> Any:
    """Return an annotation for which objects are taken as they are, not converted."""
    import pydantic

    instance_of: Any = pydantic.InstanceOf
    if typing.get_origin(annotation) is Iterable:
        item = typing.get_args(annotation)[0]
        return Union[Sequence[item], instance_of[AbstractSet], instance_of[Iterator]]  # noqa: UP007
    if typing.get_origin(annotation) in (Union, types.UnionType):
        return Union[tuple(map(_strict, typing.get_args(annotation)))]  # noqa: UP007
    if isinstance(annotation, type) and annotation not in _PLAIN:
        return instance_of[annotation]
    return annotation


def _check(function: Callable[..., Any], name: str, value: object, validator: Any) -> None:
    from pydantic import ValidationError

    try:
        validator.validate_python(value, strict=True)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        one_string = problems[0]["type"] == "sequence_str"
        item = next((part for part in problems[0]["loc"] if isinstance(part, int)), None)
        wrong = value
        if item is not None:
            name, wrong, problems = f"{name}[{item}]", problems[0]["input"], problems[:1]
        messages = (str(problem["msg"]).removeprefix("Input should be ") for problem in problems)
        allowed = " or ".join(dict.fromkeys(messages))
        where = function.__qualname__.removesuffix(".__init__")
        raise ArgumentError(
            f"{name} is {reprlib.repr(wrong)}.",
            where=where,
            allowed="a list of strings" if one_string else allowed,
            do=f"Write [{value!r}]." if one_string else f"See help({where}).",
        ) from None

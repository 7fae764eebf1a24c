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
from inspect import signature
from typing import Any, Concatenate, ParamSpec, TypeVar, Union, cast

from arag_search.errors import ArgumentError

_P = ParamSpec("_P")
_R = TypeVar("_R")
_S = TypeVar("_S")
_A = TypeVar("_A")

_PLAIN: tuple[Any, ...] = (str, bytes, int, float, bool, types.NoneType, Any)


def checked(
    function: Callable[_P, _R], named: Callable[..., Any] | None = None
) -> Callable[_P, _R]:
    """Make a function raise ArgumentError for an argument that its annotation does not allow, as
    ``named`` if that is what is called.

    A flag is not a number, and a string is not a sequence of strings. Items of an iterator are not
    checked, because that would consume it. O(items) for each call.
    """
    return _checked(function, named or function, 0)


def takes(
    kind: Callable[_P, _A],
) -> Callable[[Callable[[_S, _A], _R]], Callable[Concatenate[_S, _P], _R]]:
    """Give a method that takes one value of a dataclass the arguments of that class instead, which
    are checked as ``checked`` does."""

    return lambda method: _taking(kind, method, 1)


def made_of(kind: Callable[_P, _A]) -> Callable[[Callable[[_A], _R]], Callable[_P, _R]]:
    """Do for a function what ``takes`` does for a method."""
    return lambda function: _taking(kind, function, 0)


def _taking(kind: Callable[..., Any], function: Callable[..., Any], own: int) -> Any:
    """Return a function of ``own`` arguments and a value that takes a class's arguments instead."""
    made = _checked(kind, function, 1)

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        return function(*arguments[:own], made(*arguments[own:], **options))

    its, shown = signature(kind), signature(function)
    parameters = [*[*shown.parameters.values()][:own], *its.parameters.values()]
    returned = shown.return_annotation
    call.__dict__["__signature__"] = its.replace(parameters=parameters, return_annotation=returned)
    return call


def _checked(function: Callable[_P, _R], named: Callable[..., Any], own: int) -> Callable[_P, _R]:
    """Return a function or class that is checked; errors call it as ``named``. Its first ``own``
    parameters are none of a caller's."""
    is_class = isinstance(function, type)
    initial = cast(Any, function.__init__ if is_class else function)
    code = initial.__code__
    names = code.co_varnames[own : code.co_argcount]
    written = {name: str(kind).split(" | ") for name, kind in initial.__annotations__.items()}
    defaults: dict[str, Any] = initial.__kwdefaults__ or {}
    validators: dict[str, Any] = {}

    @functools.wraps(function)
    def call(*arguments: _P.args, **options: _P.kwargs) -> _R:
        for name, value in (*zip(names, arguments, strict=False), *options.items()):
            given = "None" if value is None else type(value).__name__
            if given in written.get(name, (given,)) or value is defaults.get(name, written):
                continue  # before pydantic, which takes long to import
            if not validators:
                validators.update(_validators(initial))
            _check(named, name, value, validators[name])
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

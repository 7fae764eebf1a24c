"""Arguments of public functions, checked against their annotations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from arag_search.errors import ArgumentError
from arag_search.system.arguments import checked

Mode = Literal["fast", "exact"]


@checked
def look(
    text: str,
    *,
    count: int = 5,
    share: float = 0.5,
    flag: bool = False,
    mode: Mode = "fast",
    place: str | Path = "here",
    names: Sequence[str] = (),
    numbers: Iterable[int] = (),
    table: Mapping[str, int] | None = None,
    anything: Any = None,
) -> tuple[object, ...]:
    """Return what was given."""
    return text, count, share, flag, mode, place, tuple(names), tuple(numbers), table, anything


def test_what_annotations_allow_is_passed_on() -> None:
    assert look("a") == ("a", 5, 0.5, False, "fast", "here", (), (), None, None)
    options: dict[str, Any] = {
        "count": 7, "share": 1, "flag": True, "mode": "exact", "place": Path("x"),
        "names": ["a", "b"], "numbers": range(2), "table": {"a": 1}, "anything": object,
    }  # fmt: skip
    assert look("b", **options)[1:] == (
        7, 1, True, "exact", Path("x"), ("a", "b"), (0, 1), {"a": 1}, object,
    )  # fmt: skip
    assert look("c", numbers=(number for number in (1, 2)))[7] == (1, 2)


def test_integers_of_other_libraries_become_int() -> None:
    count = look("a", count=np.int64(3))[1]  # type: ignore[arg-type]
    assert (count, type(count)) == (3, int)
    assert look("a", share=np.float32(0.25))[2] == 0.25  # type: ignore[arg-type]


def test_name_signature_and_docstring_stay() -> None:
    import inspect

    assert (look.__name__, look.__doc__) == ("look", "Return what was given.")
    assert list(inspect.signature(look).parameters)[:2] == ["text", "count"]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("text", 7, "text is 7, a whole number.|look|a string|See help(look)."),
        ("text", None, "text is None.|look|a string|See help(look)."),
        ("text", ["a"], "text is ['a'], a list.|look|a string|Give one string."),
        ("text", b"a", "text is b'a', bytes.|look|a string|"
         "Decode it: .decode() makes a string of bytes."),
        ("count", "12", 'count is "12", a string.|look|a whole number|Write count=12.'),
        ("count", True, "count is True.|look|a whole number|See help(look)."),
        ("count", 5.0, "count is 5.0, a number.|look|a whole number|See help(look)."),
        ("count", None, "count is None.|look|a whole number|Leave it out for the default, 5."),
        ("count", "\ud800", 'count is "\\ud800", a string.|look|a whole number|See help(look).'),
        ("share", False, "share is False.|look|a number|See help(look)."),
        ("flag", 1, "flag is 1, a whole number.|look|True or False|See help(look)."),
        ("mode", "slow", 'mode is "slow".|look|fast or exact|See help(look).'),
        ("mode", 1, "mode is 1, a whole number.|look|fast or exact|See help(look)."),
        ("place", 3, "place is 3, a whole number.|look|a string or a path|See help(look)."),
        ("names", "ab", 'names is one string.|look|a list of strings|Write ["ab"].'),
        ("names", ["a", b"b"], "names[1] is b'b', bytes.|look|a list of strings|"
         "See help(look)."),
        ("names", {"a": 1}, "names is {'a': 1}, a dictionary.|look|a list of strings|"
         "See help(look)."),
        ("numbers", [1, True], "numbers[1] is True.|look|a list of whole numbers|See help(look)."),
        ("table", [1], "table is [1], a list.|look|a dictionary or None|See help(look)."),
        ("share", np.zeros(2), "share is array([0., 0.]), a ndarray.|look|a number|"
         "See help(look)."),
        ("count", Fraction(1), "count is Fraction(1, 1), a Fraction.|look|a whole number|"
         "See help(look)."),
    ],
)  # fmt: skip
def test_what_annotations_do_not_allow_is_an_error_in_four_parts(
    name: str, value: object, message: str
) -> None:
    options: dict[str, Any] = {"text": "a", name: value}
    with pytest.raises(ArgumentError) as caught:
        look(**options)
    error = caught.value
    assert (error.what, error.where, error.allowed, error.do) == tuple(message.split("|"))


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(ArgumentError) as caught:
        look("a", count=["x" * 1_000] * 100_000)  # type: ignore[arg-type]
    assert len(caught.value.what) < 100
    assert len(str(caught.value)) < 200

"""Arguments of public functions, checked against their annotations."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

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
        "names": ["a", "b"], "numbers": {0, 1}, "table": {"a": 1}, "anything": object,
    }  # fmt: skip
    assert look("b", **options)[1:] == (
        7, 1, True, "exact", Path("x"), ("a", "b"), (0, 1), {"a": 1}, object,
    )  # fmt: skip
    assert look("c", numbers=(number for number in (1, 2)))[7] == (1, 2)


def test_name_signature_and_docstring_stay() -> None:
    assert (look.__name__, look.__doc__) == ("look", "Return what was given.")
    assert list(inspect.signature(look).parameters)[:2] == ["text", "count"]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("text", 7, "text is 7.|a valid string"),
        ("text", None, "text is None.|a valid string"),
        ("text", b"a", "text is b'a'.|a valid string"),
        ("count", "12", "count is '12'.|a valid integer"),
        ("count", True, "count is True.|a valid integer"),
        ("count", 5.0, "count is 5.0.|a valid integer"),
        ("share", False, "share is False.|a valid number"),
        ("flag", 1, "flag is 1.|a valid boolean"),
        ("mode", "slow", "mode is 'slow'.|'fast' or 'exact'"),
        ("place", 3, "place is 3.|a valid string or an instance of Path"),
        ("names", ["a", b"b"], "names[1] is b'b'.|a valid string"),
        ("numbers", [1, True], "numbers[1] is True.|a valid integer"),
        ("table", [1], "table is [1].|a valid dictionary"),
    ],
)  # fmt: skip
def test_what_annotations_do_not_allow_is_an_error_in_four_parts(
    name: str, value: object, message: str
) -> None:
    options: dict[str, Any] = {"text": "a", name: value}
    with pytest.raises(ArgumentError) as caught:
        look(**options)
    error = caught.value
    assert (error.where, error.do) == ("look", "See help(look).")
    assert (error.what, error.allowed) == tuple(message.split("|"))


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(ArgumentError) as caught:
        look("a", count=["x" * 1_000] * 100_000)  # type: ignore[arg-type]
    assert len(caught.value.what) < 250


def test_a_string_is_no_list_of_strings() -> None:
    with pytest.raises(ArgumentError) as caught:
        look("a", names="ab")
    assert str(caught.value) == (
        "names is 'ab'.\nWhere: look\nAllowed: a list of strings\nDo: Write ['ab']."
    )

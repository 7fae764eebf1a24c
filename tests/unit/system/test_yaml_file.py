"""Files of YAML: they create no objects, use no references, and are read at bounded cost."""

from collections.abc import Callable
from pathlib import Path

import pytest

from arag_search.agent.models.base import Usage
from arag_search.errors import ConfigError
from arag_search.runs.prices import Prices
from arag_search.tools.preset_files import load_preset
from bench.ablation.suite import load_suite

LOADERS: tuple[Callable[[Path], object], ...] = (Prices.load, lambda path: load_preset(str(path)))


@pytest.mark.parametrize("load", LOADERS, ids=["prices", "preset"])
@pytest.mark.parametrize(
    "value",
    [
        '!!python/object/apply:os.system ["touch made"]',
        '!!python/object/new:os.system ["touch made"]',
        '!!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path ["made"]]',
        "!!python/name:os.system",
        "!!python/module:os",
    ],
)
def test_a_python_tag_creates_no_object_and_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: Callable[[Path], object], value: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "file.yaml"
    file.write_text(f"name: {value}\n")
    with pytest.raises(ConfigError, match=r" is not YAML: could not determine a constructor"):
        load(file)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("load", LOADERS, ids=["prices", "preset"])
@pytest.mark.parametrize(
    "text",
    [
        "a: &a {prompt: *a, completion: 1}",
        "a: &a [*a]",
        "&a {a: *a}",
        "&a a: *a",
        "? &a {b: *a}\n: 1",
        "- &a [*a]",
    ],
)
def test_a_file_that_refers_to_itself_is_rejected(
    tmp_path: Path, load: Callable[[Path], object], text: str
) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load(file)
    assert raised.value.where == str(file)


def bomb(levels: int) -> str:
    """Write nine aliases per level, which expand to 9 to the power of ``levels`` values."""
    lines = ["a: &l0 {prompt: 1, completion: 1}"]
    for level in range(levels):
        lines.append(f"b{level}: &l{level + 1} [{', '.join([f'*l{level}'] * 9)}]")
    return "\n".join(lines)


@pytest.mark.parametrize("text", [bomb(9), "a: &a {prompt: 1}\nb: *a\n", "a: &a [*a]\nb: 1\nc: 2"])
def test_aliases_are_rejected_before_they_are_followed(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    for kind, load in (("price list", Prices.load), ("suite", load_suite)):
        with pytest.raises(ConfigError) as caught:
            load(file)
        assert str(caught.value).startswith(f"The {kind} has an alias, *")
        assert str(caught.value).endswith(
            f"\nWhere: {file}\nAllowed: every value written out where it belongs\n"
            "Do: Replace the alias by what it stands for."
        )
    with pytest.raises(ConfigError, match=r"^The preset has an alias, \*\w+, in line \d\."):
        load_preset(str(file))


def test_an_anchor_that_nothing_refers_to_does_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("m: &m {prompt: 1, completion: 2}\n")
    assert Prices.load(file).cost(Usage(1_000_000, 1_000_000, "endpoint"), "m") == 3


@pytest.mark.parametrize("number", ["1" + ":59" * 200 + ".5", "9" * 5000, "1e400"])
def test_a_number_that_is_too_large_is_an_error(tmp_path: Path, number: str) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(f"m: {{prompt: {number}, completion: 2}}\n")
    with pytest.raises(ConfigError):
        Prices.load(file)

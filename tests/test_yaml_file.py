"""YAML of users: presets and price lists make no objects and may refer to themselves."""

from collections.abc import Callable
from pathlib import Path

import pytest

from arag_search.agent.prices import Prices
from arag_search.config import load_preset
from arag_search.errors import ConfigError

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
def test_a_tag_of_python_makes_no_object_and_runs_nothing(
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
def test_a_file_that_refers_to_itself_is_refused(
    tmp_path: Path, load: Callable[[Path], object], text: str
) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load(file)
    assert raised.value.where == str(file)

"""Files of YAML: they create no objects, use no references, and are read at bounded cost.

Each kind of file is read by the same function, so that one table of faults stands for all kinds.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from arag_search.agent.models.base import Usage
from arag_search.errors import ConfigError
from arag_search.mcp_server.access import read_grants
from arag_search.runs.arag_config import AragConfig
from arag_search.runs.prices import Prices
from arag_search.tools.preset_files import load_preset
from bench.ablation.suite import load_suite

LOADERS: dict[str, Callable[[Path], object]] = {
    "preset": lambda path: load_preset(str(path)),
    "price list": Prices.load,
    "access file": lambda path: read_grants(path, lambda _: None),
    "configuration": AragConfig.load,
    "suite": load_suite,
}


def bomb(levels: int) -> str:
    """Write nine aliases per level, which expand to 9 to the power of ``levels`` values."""
    lines = ["a: &l0 {prompt: 1, completion: 1}"]
    for level in range(levels):
        lines.append(f"b{level}: &l{level + 1} [{', '.join([f'*l{level}'] * 9)}]")
    return "\n".join(lines)


FAULTS = [
    *((text, "holds no ") for text in ("", "[]", "{}", "words", "- a\n- b")),
    ("name: a\nname: b", "gives name twice."),
    ("a: {b: 1, b: 2, c: 2}", "gives a.b twice."),
    ("a: {b: 1}\n" * 2, "gives a, a.b twice."),
    ("name: [", "is not YAML: "),
    (b"name: \xff", "is not YAML: "),
    ('name: "\\ud800"', "is not YAML: "),
    ("name: 2024-13-45", "is not YAML: month must be in 1..12."),
    ("name: 0x_", "is not YAML: invalid literal for int() with base 16: ''."),
    ("name: " + "[" * 101, "is nested too deeply."),
    ("name: " + "[" * 100_000, "is n"),  # as above, or libyaml's own limit
    *(
        (f"name: {tag}", "is not YAML: could not determine a constructor")
        for tag in (
            '!!python/object/apply:os.system ["touch made"]',
            '!!python/object/new:os.system ["touch made"]',
            '!!python/object/apply:open ["made", "w"]',
            "!!python/name:os.system",
            "!!python/module:os",
        )
    ),
    *(
        (text, "has an alias, *")
        for text in (bomb(9), "a: &a {prompt: 1}\nb: *a\n", "a: &a [*a]", "&a {a: *a}", "- &a [*a]")
    ),
]


@pytest.mark.parametrize("kind", LOADERS)
@pytest.mark.parametrize(("text", "fault"), FAULTS, ids=range(len(FAULTS)))
def test_a_file_that_holds_no_plain_mapping_is_refused_and_nothing_in_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, text: str | bytes, fault: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "file.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        LOADERS[kind](file)
    assert caught.value.what.startswith(f"The {kind} {fault}")
    assert caught.value.where == str(file)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("kind", LOADERS)
def test_a_file_that_is_not_there_is_refused(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read ") as caught:
        LOADERS[kind](tmp_path / "none.yaml")
    assert caught.value.where == str(tmp_path / "none.yaml")


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

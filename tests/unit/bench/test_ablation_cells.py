"""Cells: complete or absent, measured once, and measured again after a change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench import BenchError
from bench.ablation.cells import (
    Cell,
    CellRow,
    Outcome,
    cell_files,
    chosen_keys,
    read_cell,
    run_cells,
    stored,
    write_cell,
)
from tests.support.ablations import ComputedExperiment, halved_tokens, suite_of

CELL = Cell({"set": "2wiki", "interface": "logical", "order": "Q1 Q2"}, {"code": "a", "index": "b"})
ROWS = [
    CellRow("q/ü", "bridge", 1, {"EM": 1.0, "Cost": None}, {"curve": [[0, 0.5]], "note": "日本"}),
    CellRow("q2", None, 1, {"EM": 0.0}),
]


def test_a_cell_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    assert write_cell(tmp_path / "new", CELL, ROWS) == 2
    (path,) = cell_files(tmp_path / "new")
    assert path.name.startswith("2wiki-logical-Q1-Q2-")
    assert read_cell(path) == (CELL, ROWS)


def test_a_cell_is_current_while_its_fingerprints_are_the_same(tmp_path: Path) -> None:
    assert not stored(tmp_path, CELL).exists
    write_cell(tmp_path, CELL, ROWS)
    assert stored(tmp_path, CELL).is_current
    other = replace(CELL, fingerprints={"code": "a", "index": "c", "model": "m"})
    assert stored(tmp_path, other).changed == ("index", "model")
    assert not stored(tmp_path, replace(CELL, key={**CELL.key, "order": "Q2 Q1"})).exists


def test_similar_levels_have_different_file_names() -> None:
    keys = [{"a": "x y"}, {"a": "x-y"}, {"b": "x y"}, {"a": "日本"}, {"a": "x" * 500}]
    names = {Cell(key, {}).file_name for key in keys}
    assert len(names) == 5
    assert all(len(name) < 120 and name.isascii() for name in names)


def test_a_question_has_one_row_per_seed(tmp_path: Path) -> None:
    write_cell(tmp_path, CELL, [ROWS[1], replace(ROWS[1], seed=2)])
    with pytest.raises(BenchError, match='The question "q2" is duplicated with seed 1'):
        write_cell(tmp_path, CELL, [ROWS[1], ROWS[1]])
    with pytest.raises(BenchError, match="no rows"):
        write_cell(tmp_path, CELL, [])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda raw: raw[: raw.rindex(b"\n", 0, -1) + 1], "It has 1 rows, and says 2"),
        (lambda raw: raw[:-9], "Line 3 is no row"),
        (lambda raw: b"", "not JSON"),
        (lambda raw: b"[]\n", "does not say what it is"),
        (lambda raw: raw.replace(b'"format":1', b'"format":7'), "Its format is 7, not 1"),
    ],
)
def test_a_broken_file_is_no_cell(tmp_path: Path, change: object, reason: str) -> None:
    write_cell(tmp_path, CELL, ROWS)
    (path,) = cell_files(tmp_path)
    path.write_bytes(change(path.read_bytes()))  # pyright: ignore
    with pytest.raises(BenchError, match=reason) as caught:
        read_cell(path)
    assert "Remove it" in str(caught.value)


def test_an_interrupted_run_resumes_with_the_missing_cells(tmp_path: Path) -> None:
    suite = suite_of()
    first = ComputedExperiment(suite, halved_tokens, stop_at=3)
    with pytest.raises(KeyboardInterrupt):
        run_cells(first, first.keys, tmp_path, lambda _: None)
    assert len(cell_files(tmp_path)) == 3

    resumed = ComputedExperiment(suite, halved_tokens)
    messages: list[str] = []
    assert run_cells(resumed, resumed.keys, tmp_path, messages.append) == Outcome(
        measured=5, kept=3
    )
    assert [dict(key) for key in resumed.measured] == [dict(key) for key in resumed.keys[3:]]
    assert messages[-1].startswith("8 of 8 cells, large, published")
    assert run_cells(resumed, resumed.keys, tmp_path, messages.append) == Outcome(
        measured=0, kept=8
    )


def test_only_some_cells_are_chosen_by_their_levels() -> None:
    keys = ComputedExperiment(suite_of(), halved_tokens).keys
    assert len(keys) == 8
    assert len(chosen_keys(keys, {"interface": "logical", "set": "small"})) == 2
    with pytest.raises(BenchError, match='There is no factor "preset"'):
        chosen_keys(keys, {"preset": "a"})
    with pytest.raises(BenchError) as caught:
        chosen_keys(keys, {"interface": "hybrid"})
    assert str(caught.value) == (
        '"hybrid" is not a level of interface.\nWhere: --only\nAllowed: logical, keyword'
    )

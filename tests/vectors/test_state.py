"""A state: ordinals to rows and back, published as a whole, and never read if it is damaged."""

import os
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import orjson
import pytest

from arag_search.corpus import ordinal_of
from arag_search.errors import (
    ArgumentError,
    VectorsDamagedError,
    VectorsNotFoundError,
    VectorsVersionError,
)
from arag_search.vectors import state as state_module
from arag_search.vectors.base import VectorUnit
from arag_search.vectors.state import State, UnitTexts
from tests.support.vector_stores import state_of

PLACEMENT = "0123456789abcdef" * 4
AGAIN = "Do: Embed the index again: arag-search embed INDEX --overwrite"


def _texts(pairs: Mapping[int, int]) -> UnitTexts:
    return UnitTexts(np.array(list(pairs), np.int64), np.array(list(pairs.values()), np.int64))


def _write(root: Path, units: Mapping[VectorUnit, Mapping[int, int]], before: str = "") -> State:
    texts = {unit: _texts(pairs) for unit, pairs in units.items()}
    return State.write(root, state_of(PLACEMENT), "store-00001", texts, before=before)


def _pairs(texts: UnitTexts) -> dict[int, int]:
    return dict(zip(texts.ordinals.tolist(), texts.rows.tolist(), strict=True))


def test_a_state_says_the_row_of_each_text_and_the_texts_of_each_row(tmp_path: Path) -> None:
    _write(tmp_path, {"sentence": {5: 3, 8: 0, 9: 3, 20: 5}, "passage": {}}, before="b" * 64)
    state = State.open(tmp_path / "0123456789abcdef.state")
    assert (state.record.placement, state.record.before) == (PLACEMENT, "b" * 64)
    assert tuple(state.units) == ("sentence", "passage")
    assert state.record.texts == {"sentence": 4, "passage": 0}
    assert state.live_rows == {"sentence": 3, "passage": 0}
    sentences = state.units["sentence"]
    assert sentences.ordinals.tolist() == [5, 8, 9, 20]
    assert sentences.rows.tolist() == [3, 0, 3, 5]
    assert sentences.live_mask().tolist() == [True, False, False, True, False, True]
    ordinals, places = sentences.expand(np.array([5, 1, 3]))
    assert (ordinals.tolist(), places.tolist()) == ([20, 5, 9], [0, 2, 2])
    assert state.units["passage"].live_mask().tolist() == []
    for array in sentences[:4]:
        assert array.ctypes.data % 64 == 0


def test_a_changed_state_equals_one_that_is_computed_text_by_text(tmp_path: Path) -> None:
    random = Random(7)
    for _ in range(40):
        chunks = sorted(random.sample(range(40), random.randint(0, 30)))
        ordinals = [
            ordinal_of(0, 0, chunk, at)
            for chunk in chunks
            for at in sorted(random.sample(range(5), random.randint(0, 5)))
        ]
        before = {ordinal: random.randrange(9) for ordinal in ordinals}
        state = _write(tmp_path, {"sentence": before})
        gone = random.sample(range(40), random.randint(0, 20))
        deleted = [ordinal_of(0, 0, chunk) for chunk in gone]
        new = {ordinal_of(0, 1, at): random.randrange(9) for at in range(random.randint(0, 3))}
        added: dict[VectorUnit, UnitTexts] = {"sentence": _texts(new)} if new else {}
        kept = {text: row for text, row in before.items() if text >> 11 << 11 not in deleted}
        assert _pairs(state.changed(deleted, added)["sentence"]) == {**kept, **new}


def test_texts_that_are_not_in_order_or_have_no_row_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="do not ascend"):
        _write(tmp_path, {"sentence": {5: 1, 4: 2}})
    with pytest.raises(ArgumentError) as raised:
        _write(tmp_path, {"sentence": {5: -1}})
    assert raised.value.where == "unit sentence"
    assert not list(tmp_path.iterdir())


def test_a_state_that_was_not_finished_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    before = _write(tmp_path, {"sentence": {5: 3}})
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        _write(tmp_path, {"sentence": {5: 4}})
    assert _pairs(UnitTexts(*State.open(before.path).units["sentence"][:2])) == {5: 3}


# Damage


def test_a_state_that_does_not_exist_has_its_own_error(tmp_path: Path) -> None:
    for path in (tmp_path / "0.state", tmp_path / "nowhere" / "0.state"):
        with pytest.raises(VectorsNotFoundError):
            State.open(path)


@pytest.mark.parametrize("damage", ["shorter", "longer", "flipped", "header only", "empty"])
def test_a_damaged_state_is_refused(tmp_path: Path, damage: str) -> None:
    path = _write(tmp_path, {"sentence": {5: 3, 8: 0}}).path
    data = path.read_bytes()
    damaged, reason = {
        "shorter": (data[:-1], f"The file has {len(data) - 1} bytes, not {len(data)}."),
        "longer": (data + b"0", f"The file has {len(data) + 1} bytes, not {len(data)}."),
        "flipped": (
            data[:-70] + bytes([data[-70] ^ 1]) + data[-69:],
            "The file has changed since it was written.",
        ),
        "header only": (data[:100], "The record cannot be read (unexpected end of data"),
        "empty": (b"", "The record cannot be read ("),
    }[damage]
    path.write_bytes(damaged)
    with pytest.raises(VectorsDamagedError) as raised:
        State.open(path)
    assert raised.value.what.startswith(reason)
    assert str(raised.value).endswith(f"\nWhere: {path}\n{AGAIN}")


def _rewrite(path: Path, change: Mapping[str, Any]) -> None:
    line, _, arrays = path.read_bytes().partition(b"\n")
    path.write_bytes(orjson.dumps({**orjson.loads(line), **change}) + b"\n" + arrays)


@pytest.mark.parametrize(
    "change",
    [
        {"units": {"sentence": {"texts": -1, "rows": 6}}},
        {"units": {"sentence": {"texts": 2, "rows": -6}}},
        {"units": {"sentence": {"texts": 1 << 61, "rows": 6}}},
        {"units": {"word": {"texts": 2, "rows": 6}}},
        {"units": {}},
        {"before": 2},
        {"more": 1},
    ],
)
def test_an_impossible_record_is_refused(tmp_path: Path, change: Mapping[str, Any]) -> None:
    path = _write(tmp_path, {"sentence": {5: 3, 8: 0}}).path
    _rewrite(path, change)
    with pytest.raises(VectorsDamagedError):
        State.open(path)


def test_a_state_of_another_version_is_refused(tmp_path: Path) -> None:
    path = _write(tmp_path, {"sentence": {5: 3}}).path
    _rewrite(path, {"format_version": 5})
    with pytest.raises(VectorsVersionError, match=r"^The vectors have format version 5\."):
        State.open(path)


def test_damage_in_a_state_too_large_to_be_checked_is_found_when_it_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _write(tmp_path, {"sentence": {5: 3, 8: 0, 9: 3}}).path
    line, _, arrays = path.read_bytes().partition(b"\n")
    monkeypatch.setattr(state_module, "CHECKED_BYTES", 0)
    for at in range(64, len(arrays)):
        path.write_bytes(line + b"\n" + arrays[:at] + b"\xff\xff" + arrays[at + 2 :])
        try:
            ordinals, places = State.open(path).units["sentence"].expand(np.arange(4))
        except VectorsDamagedError as error:
            assert error.where == str(path)
        else:
            assert len(ordinals) == len(places)
            assert ((places >= 0) & (places < 4)).all()

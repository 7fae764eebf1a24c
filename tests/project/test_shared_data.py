"""Tests that read data from outside a clone are marked."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.shared_data import DATA


@pytest.mark.parametrize(
    ("read", "path"),
    [
        (Path.read_bytes, DATA / "musique" / "corpus.jsonl"),
        (Path.read_bytes, Path(os.path.relpath(DATA / "musique" / "corpus.jsonl"))),
        (os.listdir, DATA),
    ],
)
def test_a_test_without_the_marker_cannot_read_the_real_corpora(
    read: Callable[[Path], object], path: Path
) -> None:
    with pytest.raises(RuntimeError, match="without the marker shared_data"):
        read(path)

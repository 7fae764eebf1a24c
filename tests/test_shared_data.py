"""Tests that read data from outside a clone are marked, so that they are skipped without it."""

import os
from pathlib import Path

import pytest

from tests.shared_data import DATA


@pytest.mark.parametrize("form", ["absolute", "relative", "folder"])
def test_a_test_without_the_marker_cannot_read_the_real_corpora(form: str) -> None:
    path = DATA / "musique" / "corpus.jsonl"
    with pytest.raises(RuntimeError, match="without the marker shared_data"):
        if form == "folder":
            os.listdir(path.parent)
        else:
            Path(path if form == "absolute" else os.path.relpath(path)).read_bytes()


@pytest.mark.shared_data
def test_a_test_with_the_marker_reads_them() -> None:
    assert os.listdir(DATA)

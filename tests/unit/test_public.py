"""The public interface of the package."""

from __future__ import annotations

import subprocess
import sys

import pytest

import arag_search

PUBLIC = [
    "Agent", "AragError", "Chunk", "Conversation", "Document", "Hit", "Index", "QueryError",
    "SearchResult", "Toolbox", "build_index", "choose_model", "load_preset", "open_encoder",
    "open_index", "parse", "quote",
]  # fmt: skip
MOST_MODULES = 68


def test_the_public_names_are_these() -> None:
    assert arag_search.__all__ == PUBLIC
    for name in PUBLIC:
        assert getattr(arag_search, name) is not None
    assert set(PUBLIC) <= set(dir(arag_search))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'arag_search' has no attribute 'nothing'"):
        _ = arag_search.nothing  # type: ignore[attr-defined]


def test_importing_the_package_loads_no_heavy_module() -> None:
    heavy = {"jpype", "numpy", "pydantic", "typer", "rich", "orjson", "torch"}
    script = f"""
import sys, arag_search
print(sorted({heavy!r} & set(sys.modules)), len(sys.modules) <= {MOST_MODULES})
"""
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert process.stdout == "[] True\n"


def test_a_server_address_without_a_port_is_rejected() -> None:
    with pytest.raises(arag_search.AragError, match='The address names the host "localhost"'):
        arag_search.open_index("https://localhost/wiki")

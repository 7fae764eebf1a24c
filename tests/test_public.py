"""What the package promises to those who import it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import arag_search

PUBLIC = [
    "AragError",
    "Chunk",
    "Document",
    "Index",
    "MemoryEngine",
    "QueryError",
    "SearchHit",
    "SearchResult",
    "open_index",
    "parse",
]


def test_the_public_names_are_these() -> None:
    assert arag_search.__all__ == PUBLIC
    for name in PUBLIC:
        assert getattr(arag_search, name) is not None
    assert set(PUBLIC) <= set(dir(arag_search))


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'arag_search' has no attribute 'search'"):
        _ = arag_search.search  # type: ignore[attr-defined]


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = {"jpype", "numpy", "pydantic", "typer", "rich", "orjson", "torch"}
    script = f"import sys, arag_search; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_a_server_address_is_refused_in_this_release() -> None:
    with pytest.raises(arag_search.AragError) as caught:
        arag_search.open_index("https://localhost:9200/wiki")
    assert str(caught.value) == (
        "The location is an address of a server; this release opens folders.\n"
        "Where: https://localhost:9200/wiki\n"
        "Allowed: a folder that arag-search index has built\n"
        "Do: Build an index with: arag-search index SOURCE --to FOLDER"
    )

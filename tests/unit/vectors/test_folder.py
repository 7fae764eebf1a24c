"""The folder of the vectors of an index."""

from pathlib import Path

import pytest

from arag_search.errors import ArgumentError
from arag_search.vectors.folder import VECTORS_VARIABLE, vectors_root


def test_the_folder_of_vectors_is_the_argument_else_the_variable_else_inside_the_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(VECTORS_VARIABLE, raising=False)
    assert vectors_root("my-index") == Path("my-index/vectors")
    monkeypatch.setenv(VECTORS_VARIABLE, "")
    assert vectors_root("my-index") == Path("my-index/vectors")
    monkeypatch.setenv(VECTORS_VARIABLE, "/there")
    assert vectors_root("my-index") == Path("/there")
    assert vectors_root("http://localhost:9200/name") == Path("/there")
    assert vectors_root("my-index", "here") == Path("here")
    assert vectors_root("http://localhost:9200/name", Path("here")) == Path("here")


def test_an_index_on_a_server_needs_a_folder_for_its_vectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(VECTORS_VARIABLE, raising=False)
    with pytest.raises(ArgumentError) as caught:
        vectors_root("http://localhost:9200/name")
    assert str(caught.value) == (
        "The folder of the vectors is not given.\n"
        "Where: http://localhost:9200/name\n"
        "Allowed: a folder; only an index in a folder has its own\n"
        "Do: Give `vectors=DIR`, or set ARAG_VECTORS."
    )
    with pytest.raises(ArgumentError, match=r"^The folder of the vectors has no name"):
        vectors_root("my-index", "")

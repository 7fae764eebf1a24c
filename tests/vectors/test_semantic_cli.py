"""Searching, asking and running by vectors from the command line, over vectors on disk."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from arag_search.search.opening import open_index
from arag_search.vectors.encoders.hashing import HashingEncoder
from tests.support.commands import Command, file_of

QUERY = "Who revised the libretto of Griselda?"


@pytest.fixture(autouse=True, scope="module")
def embedded(commands_folder: Path) -> None:
    """Embed by hashed words, in the folder of the index and beside it."""
    from arag_search.cli.app import run

    assert run(["embed", "my-index", "--encoder", "hashing"]) == 0
    assert run(["embed", "my-index", "--encoder", "hashing", "--vectors", "elsewhere"]) == 0


@pytest.mark.parametrize("tool", ["semantic", "hybrid", "naive"])
def test_a_search_prints_the_reply_of_the_tool(arag: Command, tool: str) -> None:
    result = arag("search", "my-index", "--tool", tool, QUERY, "--top-k", "2")
    assert (result.code, result.err) == (0, "")
    assert result.lines[0] == f'2 nearest passages for "{QUERY}"'
    assert result.lines[-1].startswith("More: offset=2.")
    unquoted = arag("search", "my-index", "--tool", tool, *QUERY.split(), "--top-k", "2")
    assert unquoted == result


def test_the_json_of_a_hybrid_search_has_ranks_and_obeys_its_filter_and_condition(
    arag: Command,
) -> None:
    search = ("search", "my-index", "--tool", "hybrid", QUERY, "--top-k", "50", "--where", "opera")
    result = arag(*search, "--filter", "kind:person", "--json").json
    assert (result["total"], result["total_is_exact"]) == (None, True)
    assert all(hit["ranks"]["vectors"] and hit["snippet"] for hit in result["hits"])
    expected = arag("search", "my-index", "opera AND kind:person", "--top-k", "50", "--json").json
    assert {hit["id"] for hit in result["hits"]} == {hit["id"] for hit in expected["hits"]} != set()
    nothing = arag(*search, "--filter", "year:>3000")
    assert nothing.code == 1
    assert nothing.out.startswith("No passage ")
    refused = arag(*search, "--filter", "author:x")
    assert refused.code == 2
    assert 'there is no field "author"' in refused.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tool", "semantic", "--explain"), "--explain"),
        (("--tool", "semantic", "--granularity", "sentence"), "--granularity"),
        (("--vectors", "elsewhere"), "--vectors"),
        (("--tool", "keyword", "--encoder", "hashing"), "--encoder"),
        (("--where", "opera"), "--where"),
    ],
)
def test_options_without_effect_are_refused(
    arag: Command, arguments: tuple[str, ...], message: str
) -> None:
    result = arag("search", "my-index", "q", *arguments)
    assert result.code == 2
    assert result.err.startswith(
        f"arag-search: {message} has no effect here.\nAllowed: {message} with"
    )


# The folder of the vectors, and the encoder


def test_vectors_are_found_by_option_and_by_environment(
    arag: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shutil.copytree("my-index", tmp_path / "bare", ignore=shutil.ignore_patterns("vectors"))
    bare = str(tmp_path / "bare")
    expected = arag("search", "my-index", "--tool", "semantic", QUERY)
    missing = arag("search", bare, "--tool", "semantic", QUERY)
    assert missing.code == 2
    assert f"arag-search embed {tmp_path / 'bare'} --encoder NAME" in missing.err
    assert arag("search", bare, "--tool", "semantic", QUERY, "--vectors", "elsewhere") == expected
    monkeypatch.setenv("ARAG_VECTORS", "elsewhere")
    assert arag("search", bare, "--tool", "semantic", QUERY) == expected


def test_vectors_that_are_named_are_opened_with_the_index(tmp_path: Path) -> None:
    from arag_search.errors import VectorsNotFoundError

    with pytest.raises(VectorsNotFoundError):
        open_index("my-index", vectors=tmp_path)
    with open_index("my-index", vectors="elsewhere", encoder=HashingEncoder()) as index:
        assert index.semantic_search(QUERY).hits


def test_another_encoder_is_refused_and_both_are_named(arag: Command) -> None:
    from arag_search.errors import VectorsMismatchError

    result = arag("search", "my-index", "--tool", "semantic", QUERY, "--encoder", "hashing:64")
    assert result.code == 2
    assert "hashing:64" in result.err
    assert "is not the encoder that made the vectors, hashing: dimension 64" in result.err
    with pytest.raises(VectorsMismatchError, match="dimension"):
        open_index("my-index", vectors="elsewhere", encoder=HashingEncoder(64))


def test_ask_needs_vectors_if_its_preset_does(arag: Command, tmp_path: Path) -> None:
    shutil.copytree("my-index", tmp_path / "bare", ignore=shutil.ignore_patterns("vectors"))
    bare = str(tmp_path / "bare")
    result = arag("ask", bare, QUERY, "--preset", "arag_logical", "--model", "offline")
    assert result.code == 1
    assert "Preset arag_logical needs vectors (semantic_search)." in result.err
    assert f"arag-search embed {tmp_path / 'bare'} --encoder NAME" in result.err
    arguments = ("ask", bare, QUERY, "--preset", "arag_logical", "--model", "offline")
    assert arag(*arguments, "--vectors", "elsewhere").code == 0


def test_a_run_names_the_encoder(arag: Command, tmp_path: Path) -> None:
    questions = file_of("q.jsonl", {"id": "q", "question": QUERY, "answer": "Carlo Goldoni"})
    out = str(tmp_path / "out")
    arguments = ("run", "my-index", questions, "--preset", "arag_logical", "--model", "offline")
    result = arag(*arguments, "--out", out, "--vectors", "elsewhere")
    assert result.code == 0
    assert json.loads((tmp_path / "out" / "run.json").read_bytes())["encoder"]["name"] == "hashing"


# Indexes that changed

"""Searching, asking and running by vectors from the command line, over a sidecar on disk."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from arag_search.search.index import open_index
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


def test_the_json_of_a_hybrid_search_has_the_ranks_and_no_total(arag: Command) -> None:
    command_result = arag("search", "my-index", "--tool", "hybrid", QUERY, "--top-k", "3", "--json")
    result = command_result.json
    assert (result["total"], result["total_is_exact"], len(result["hits"])) == (None, True, 3)
    for hit in result["hits"]:
        words, vectors = hit["ranks"]["words"], hit["ranks"]["vectors"]
        assert hit["score"] == pytest.approx(
            sum(
                1 / (60 + rank_in_list)
                for rank_in_list in (words, vectors)
                if rank_in_list is not None
            )
        )
        assert hit["snippet"]
    semantic = arag("search", "my-index", "--tool", "semantic", QUERY, "--json").json
    assert all("ranks" not in hit for hit in semantic["hits"])
    assert 0 < semantic["hits"][0]["score"] <= 1


def test_hybrid_search_takes_a_logical_query_and_a_meaning(arag: Command) -> None:
    result = arag(
        "search", "my-index", "--tool", "hybrid", "opera NOT vivaldi", "--meaning", QUERY, "--json"
    ).json
    assert result["understood"] == f'(opera AND NOT vivaldi) with meaning "{QUERY}"'
    words = [
        hit["id"] for hit in arag("search", "my-index", "opera NOT vivaldi", "--json").json["hits"]
    ]
    assert any(hit["ranks"]["words"] == 1 and hit["id"] == words[0] for hit in result["hits"])


@pytest.mark.parametrize("tool", ["semantic", "hybrid", "naive"])
def test_a_filter_is_obeyed(arag: Command, tool: str) -> None:
    arguments = ("search", "my-index", "--tool", tool, QUERY, "--top-k", "50", "--json")
    hits = arag(*arguments, "--filter", "kind:person").json["hits"]
    all_hits = arag(*arguments).json["hits"]
    assert hits
    assert {hit["metadata"]["kind"] for hit in hits} == {"person"}
    assert len({hit["metadata"]["kind"] for hit in all_hits}) > 1
    result = arag("search", "my-index", "--tool", tool, QUERY, "--filter", "year:>3000")
    assert (result.code, result.out) == (0, f'No passage is in scope for "{QUERY}".\n')
    result = arag("search", "my-index", "--tool", tool, QUERY, "--filter", "author:x")
    assert result.code == 2
    assert 'there is no field "author"' in result.err


@pytest.mark.parametrize("tool", ["semantic", "hybrid", "naive"])
def test_a_condition_is_obeyed_and_may_match_nothing(arag: Command, tool: str) -> None:
    search = ("search", "my-index", "--tool", tool, QUERY, "--where")
    hits = arag(*search, "opera AND kind:person", "--top-k", "50", "--json").json["hits"]
    expected = arag("search", "my-index", "opera AND kind:person", "--top-k", "50", "--json").json[
        "hits"
    ]
    assert {hit["id"] for hit in hits} == {hit["id"] for hit in expected} != set()
    result = arag(*search, "opera AND nowhere")
    assert result.code == 0
    assert result.out.startswith("No passage matches (opera AND nowhere).\nAlone: ")
    assert arag(*search, "NOT opera").code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tool", "semantic", "--explain"), "--explain"),
        (("--tool", "semantic", "--granularity", "sentence"), "--granularity"),
        (("--vectors", "elsewhere"), "--vectors"),
        (("--tool", "keyword", "--encoder", "hashing"), "--encoder"),
        (("--where", "opera"), "--where"),
        (("--tool", "semantic", "--meaning", "q"), "--meaning"),
    ],
)
def test_options_without_effect_are_refused(
    arag: Command, arguments: tuple[str, ...], message: str
) -> None:
    result = arag("search", "my-index", "q", *arguments)
    assert result.code == 1
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
    assert missing.code == 1
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
    assert result.code == 1
    assert "hashing:64" in result.err
    assert "Allowed: encoder hashing" in result.err
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


def test_vectors_fit_after_deletions_and_additions_and_are_refused_after_no_embed(
    arag: Command, tmp_path: Path
) -> None:
    location = str(tmp_path / "changing")
    shutil.copytree("my-index", location)
    arguments = ("search", location, "--tool", "semantic", QUERY, "--json")
    before = [hit["id"] for hit in arag(*arguments).json["hits"]]
    deleted = arag("delete", location, before[0].rpartition(".")[0])
    assert (deleted.code, deleted.lines[-1]) == (0, "the vectors fit the index")
    after = arag(*arguments).json
    assert before[0] not in [hit["id"] for hit in after["hits"]]
    assert [hit["id"] for hit in after["hits"]][:4] == before[1:]
    added = file_of("more.jsonl", {"id": "new", "title": "New", "text": QUERY})
    done = arag("index", added, "--to", location, "--add", "--no-embed")
    assert (done.code, done.lines[-1]) == (
        0,
        f"no vectors fit the index until: arag-search embed {location}",
    )
    for tool in ("semantic", "hybrid", "naive"):
        refused = arag("search", location, "--tool", tool, QUERY)
        assert refused.code == 1
        assert f"Do: Run arag-search embed {location}: it encodes new texts only." in refused.err
    assert arag("embed", location).code == 0
    complete = arag(*arguments).json
    assert (complete["hits"][0]["id"], complete["notes"]) == ("new.1", [])
    again = file_of("again.jsonl", {"id": "again", "title": "Again", "text": f"{QUERY} Yes."})
    done = arag("index", again, "--to", location, "--sync")
    assert (done.code, done.lines[-1]) == (0, "the vectors fit the index; 3 rows encoded")
    assert "again.1" in [hit["id"] for hit in arag(*arguments).json["hits"]]

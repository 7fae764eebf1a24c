"""The files of A-RAG's repository: the command that replaces its batch_runner.py and eval.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commands import Command
from tests.support.endpoint import completion, running_endpoint

CONFIG = """
llm: {temperature: 0.0, max_tokens: 16384, reasoning_effort: medium}
agent: {max_loops: 7, max_token_budget: 64000}
data: {chunks_file: data/chunks.json, index_dir: data/index}
"""
CHUNKS = [
    "0:Griselda is an opera by Antonio Vivaldi. Goldoni revised its libretto.",
    "1:Carlo Goldoni was a playwright of Venice. He died in Paris.",
    "2:Venice is a city on the water.",
]
QUESTIONS = [
    {"id": "a", "question": "Where did Carlo Goldoni die?", "answer": "Paris"},
    {"id": "b", "question": "Who wrote the opera Griselda?", "answer": "Vivaldi"},
]
LIKE_A_RAG = (
    "run", "--config", "musique.yaml", "data/questions.json", "--out", "results",
    "--workers", "2", "--model", "offline",
)  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a working folder with files as A-RAG's repository has them."""
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    Path("musique.yaml").write_text(CONFIG)
    Path("data/chunks.json").write_text(json.dumps(CHUNKS))
    Path("data/questions.json").write_text(json.dumps(QUESTIONS))


def test_one_command_indexes_the_chunks_and_writes_predictions(arag: Command) -> None:
    ran = arag(*LIKE_A_RAG)
    assert ran.code == 0
    assert "llm.max_tokens (the endpoint's limit holds)" in ran.err
    assert "Indexed 3 passages of data/chunks.json in data/index/arag-search." in ran.err
    assert "There are no vectors" in ran.err
    lines = Path("results/predictions.jsonl").read_text().splitlines()
    predictions = [json.loads(line) for line in lines]
    assert [(line["qid"], line["gold_answer"]) for line in predictions] == [
        ("a", "Paris"), ("b", "Vivaldi"),
    ]  # fmt: skip
    description = json.loads(Path("results/run.json").read_text())
    assert description["preset"] == "arag_without_semantic"
    of_file = arag("score", "results/predictions.jsonl", "--json").json["rows"][0]
    of_run = arag("score", "results", "--json").json["rows"][0]
    same = ("questions", "exact_match", "f1", "contain_accuracy", "retrieved_tokens", "steps")
    assert {key: of_file[key] for key in same} == {key: of_run[key] for key in same}
    assert of_file["contain_accuracy"] == 0.5
    again = arag(*LIKE_A_RAG)
    assert again.code == 0
    assert "Indexed" not in again.err


def test_vectors_bring_the_search_by_meaning_back(arag: Command) -> None:
    assert arag("index", "data/chunks.json", "--to", "mine").code == 0
    assert arag("embed", "mine", "--encoder", "hashing").code == 0
    ran = arag("run", "mine", *LIKE_A_RAG[1:])
    assert (ran.code, "There are no vectors" in ran.err) == (0, False)
    assert json.loads(Path("results/run.json").read_text())["preset"] == "arag_full"
    assert not Path("data/index").exists()


def test_the_variables_and_settings_of_a_rag_reach_the_endpoint(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_endpoint() as endpoint:
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("ARAG_API_KEY", "ours")
        monkeypatch.setenv("ARAG_BASE_URL", endpoint.base_url)
        monkeypatch.setenv("ARAG_MODEL", "gpt-5-mini")
        read = ("read_chunk", json.dumps({"chunk_ids": ["1"]}))
        endpoint.reply_with(completion(None, read), completion("He died in Paris."))
        command = (*LIKE_A_RAG[: LIKE_A_RAG.index("--workers")], "--limit", "1")
        assert arag(*command, "--reasoning-effort", "low").code == 0
        asked = endpoint.requests[0]
        assert (asked["model"], asked["temperature"]) == ("gpt-5-mini", 0.0)
        assert asked["reasoning_effort"] == "low"  # an option takes precedence over the file
        assert endpoint.keys[0] == "Bearer ours"
    (line,) = Path("results/predictions.jsonl").read_text().splitlines()
    prediction = json.loads(line)
    assert (prediction["pred_answer"], prediction["chunks_read_ids"]) == (
        "He died in Paris.", ["1"],
    )  # fmt: skip
    assert prediction["trajectory"][0]["tool_name"] == "read_chunk"
    scored = arag("score", "results/predictions.jsonl", "--measure", "ToolCalls:read_chunk")
    assert "ToolCalls:chunk_read" in scored.out


def test_predictions_are_written_without_a_configuration_too(arag: Command) -> None:
    assert arag("index", "data/chunks.json", "--to", "mine").code == 0
    run = ("run", "mine", "data/questions.json", "--model", "offline", "--out")
    assert arag(*run, "plain").code == arag(*run, "both", "--format", "arag").code == 0
    assert not Path("plain/predictions.jsonl").exists()
    assert len(Path("both/predictions.jsonl").read_text().splitlines()) == 2


def test_what_is_not_named_is_asked_for(arag: Command) -> None:
    allowed = "Allowed: arag-search run INDEX QUESTIONS, or --config FILE QUESTIONS\n"
    assert arag("run", "--out", "x").err == f"arag-search: No index is named.\n{allowed}"
    no_questions = arag("run", "--config", "musique.yaml", "--out", "x")
    assert no_questions.err.endswith(f"arag-search: No file of questions is named.\n{allowed}")
    Path("musique.yaml").write_text("agent: {max_loops: 7}\n")
    no_index = arag(*LIKE_A_RAG)
    assert no_index.err.endswith(
        "arag-search: No index is named.\nWhere: musique.yaml\n"
        "Allowed: an index as INDEX, or data.chunks_file and data.index_dir in the file\n"
    )

"""The ablation runner over an index on a server that it does not own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

import arag_search
from arag_search.agent.models.base import ChatModel, ModelReply, ModelRequest, ToolCall, Usage
from bench.ablate import main
from bench.ablation.suite import ModelEntry
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support.ablations import read_cells
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.commands import SAMPLE
from tests.support.opensearch_indexes import Site
from tests.support.scripted_model import ScriptedModel


def searching(entry: ModelEntry, seed: int | None) -> ChatModel:
    def reply(request: ModelRequest) -> ModelReply:
        usage = Usage(1, 1, "endpoint")
        if request.messages[-1].role != "tool":
            call = ToolCall("1", "logical_search", '{"query": "vivaldi"}')
            return ModelReply("", (call,), usage=usage)
        return ModelReply("Answer: Venice", usage=usage)

    return ScriptedModel(reply)


@pytest.mark.long
def test_a_suite_searches_an_address_and_leaves_it_as_it_is(
    opensearch: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    build_index([SAMPLE], opensearch.address, BuildOptions())
    with arag_search.open_index(opensearch.address) as index:
        before = index.manifest
    Path("asked").mkdir()
    question = {"id": "q", "question": "Where was Vivaldi born?", "answer": "Venice"}
    Path("asked/questions.jsonl").write_text(json.dumps(question))
    suite = {
        "name": "remote",
        "description": "A server.",
        "experiment": {
            "kind": "agent",
            "sets": ["asked"],
            "presets": [
                "logical_read",
                {"preset": "logical_read", "label": "short", "set": {"max_loops": 2}},
            ],
            "models": ["m"],
        },
        "comparison": {"factor": "preset", "pairs": [["logical_read", "short"]], "primary": "EM"},
        "measures": ["RetrievedTokens"],
    }
    Path("remote.yaml").write_text(yaml.safe_dump(suite))
    arguments = ["remote.yaml", "--data", ".", "--index", opensearch.address]
    assert main([*arguments, "--work", "work"], searching) == 0, capsys.readouterr().err
    for cell in read_cells(Path("work")):
        (row,) = cell.rows
        assert row.values["EM"] == 1
        assert row.values["RetrievedTokens"]
    assert not Path("work/sets").exists()
    with arag_search.open_index(opensearch.address) as index:
        assert index.manifest == before

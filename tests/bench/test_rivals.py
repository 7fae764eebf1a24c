"""The systems of A-RAG's table over the sample, by scripted replies: the calls that they make and
the passages that they read, counted by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from arag_search.agent.models.base import ChatModel, ModelReply, ModelRequest, Usage
from arag_search.agent.record import Record
from arag_search.runs.folder import read_records
from bench.ablate import main
from bench.ablation.suite import ModelEntry
from bench.rivals.answerer import prompt
from tests.support.ablations import read_cells
from tests.support.commands import Command
from tests.support.scripted_model import ScriptedModel

OURS = "(our reading, not the authors' code)"
USAGE = Usage(100, 10, "endpoint", 30)
LAST = "Answer: Paris\nExplanation: So it is said.\nSources: [goldoni.1]"

Replies = Mapping[str, str | Callable[[str], str]]
"""What a model replies in a role: a text, or a function of the request."""


class Roles:
    """A model for suites that replies by the role of a request; its requests are kept by role."""

    def __init__(self, replies: Replies, interrupted: tuple[str, str] = ("", "")) -> None:
        self.roles: list[str] = []
        self.requests: list[ModelRequest] = []
        self._replies = {prompt(role): (role, reply) for role, reply in replies.items()}
        self._interrupted = interrupted

    def __call__(self, entry: ModelEntry, seed: int | None) -> ChatModel:
        return ScriptedModel(self._reply)

    def _reply(self, request: ModelRequest) -> ModelReply:
        system, user = (message.content for message in request.messages)
        role, reply = self._replies.get(system, ("agent", "Answer: Paris"))
        if (role, request.question_id) == self._interrupted:
            raise KeyboardInterrupt
        self.roles.append(role)
        self.requests.append(request)
        return ModelReply(reply if isinstance(reply, str) else reply(user), usage=USAGE)

    def told(self, role: str) -> list[str]:
        """Return what the requests in a role said."""
        return [
            r.messages[1].content for r in self.requests if r.messages[0].content == prompt(role)
        ]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rivals")
    data = folder / "data" / "sample"
    data.mkdir(parents=True)
    for name in ("corpus.jsonl", "questions.jsonl"):
        (data / name).write_bytes((files("arag_search") / "sample" / name).read_bytes())
    return folder


def run_suite(
    work: Path, name: str, rivals: list[Any], models: Roles, *more: str, **experiment: Any
) -> int:
    levels = [f"{of['rival'] if isinstance(of, dict) else of} {OURS}" for of in rivals]
    suite = {
        "name": name,
        "description": "Rivals.",
        "experiment": {
            "kind": "agent", "sets": ["sample"], "questions": "first 1", "encoder": "hashing:16",
            "presets": ["direct_answer"], "rivals": rivals, "models": ["scripted"], **experiment,
        },
        "comparison": {
            "factor": "preset", "pairs": [["direct_answer", level] for level in levels],
            "primary": "EM", "secondary": ["RetrievedTokens"],
        },
        "measures": ["EvidenceRecall", "Iterations", "Seconds"],
    }  # fmt: skip
    path = work / f"{name}.yaml"
    path.write_text(yaml.safe_dump(suite))
    folders = ["--work", str(work / "work"), "--data", str(work / "data")]
    return main([str(path), *folders, *more], models)


def record_of(work: Path, name: str, rival: str) -> Record:
    """Return the record of the first question that a rival answered in a suite."""
    (run,) = (work / "work" / name / "runs").glob(f"*{rival}*/*/run.json")
    return read_records(run.parent).by_id["s01"]


MA_RAG: Replies = {
    "ma_rag_planner": "1. Who revised the libretto of Griselda?\n2. Where did this person die?",
    "ma_rag_definer": lambda said: (
        "Where did Carlo Goldoni die?"
        if said.endswith("die?")
        else "Who revised the libretto of Antonio Vivaldi's Griselda?"
    ),
    "ma_rag_extractor": "[goldoni.1] He died in Paris.",
    "ma_rag_step_answerer": "Paris [goldoni.1]",
    "ma_rag_answer": LAST,
}


def test_ma_rag_plans_once_and_asks_three_agents_a_step(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = Roles(MA_RAG)
    assert run_suite(work, "planned", ["ma_rag"], models) == 0, capsys.readouterr().err
    step = ["ma_rag_definer", "ma_rag_extractor", "ma_rag_step_answerer"]
    assert models.roles == ["agent", "ma_rag_planner", *step, *step, "ma_rag_answer"]
    record = record_of(work, "planned", "ma_rag")
    search = "naive_embedding_search"
    one_step = ["ma_rag_definer", search, "ma_rag_extractor", "ma_rag_step_answerer"]
    assert [s.tool_name for s in record.trajectory] == ["ma_rag_planner", *one_step, *one_step]
    assert record.loops == 8  # a plan, two steps of three requests, the answer
    assert record.usage == Usage(800, 80, "endpoint", 240)
    assert (record.answer_short, record.status) == ("Paris", "answered")
    searches = [s for s in record.trajectory if s.tool_name == search]
    assert searches[1].tool_input == {"query": "Where did Carlo Goldoni die?", "top_k": 5}
    assert [len(s.hit_ids) for s in searches] == [5, 5]
    assert record.total_retrieved_tokens == sum(s.retrieved_tokens for s in searches) > 0
    shown = searches[1].shown_passages()
    extracting = models.told("ma_rag_extractor")[1]
    assert all(f"[{passage.id}] {passage.title}\n{passage.text}" in extracting for passage in shown)
    assert record.trajectory[3].tool_input["passages"] == list(searches[0].hit_ids)
    assert "1. Who revised" in models.told("ma_rag_definer")[1]


def test_a_killed_run_is_resumed_and_stands_in_report_and_viewer(
    work: Path, arag: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {"questions": "first 3"}
    killed = Roles(MA_RAG, interrupted=("ma_rag_step_answerer", "s02"))
    assert run_suite(work, "killed", ["ma_rag"], killed, **asked) == 130
    resumed = Roles(MA_RAG)
    assert run_suite(work, "killed", ["ma_rag"], resumed, **asked) == 0, capsys.readouterr().err
    questions = [request.question_id for request in resumed.requests]
    assert questions == ["s02"] * 8 + ["s03"] * 8  # those of the agent and the first one stay
    report = (work / "work" / "killed" / "report" / "killed.md").read_text()
    row = next(of for of in report.splitlines() if of.startswith(f"| sample | ma_rag {OURS}"))
    cell = next(c for c in read_cells(work / "work" / "killed") if "ma_rag" in c.key["preset"])
    values = [of.values for of in cell.rows]
    assert [of["EM"] for of in values] == [1, 0, 0]
    assert [of["TotalTokens"] for of in values] == [880] * 3
    assert [of["CachedTokens"] for of in values] == [240] * 3
    assert [of["FixedTokens"] for of in values] == [None] * 3  # no request repeats another
    assert [of["Iterations"] for of in values] == [8] * 3
    assert "| 880 [880, 880], mean 880 | 240 [240, 240] |" in row
    (run,) = (work / "work" / "killed" / "runs").glob("*ma_rag*/*")
    page = work / "page.html"
    questions_file = str(work / "data" / "sample" / "questions.jsonl")
    viewed = arag("view", str(run), "--out", str(page), "--questions", questions_file)
    assert viewed.code == 0, viewed.err
    assert "ma_rag_extractor" in page.read_text()


def test_a_dry_run_counts_the_requests_of_each_system(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rivals = ["ma_rag"]
    for rival in rivals:
        assert run_suite(work, "dry", [rival], Roles({}), "--dry-run") == 0
    said = capsys.readouterr().out
    assert "about 12 requests" in said  # one of direct_answer, 11 of three steps

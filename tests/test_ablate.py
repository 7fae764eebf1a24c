"""The ablation runner over the sample corpus: presets, models and seeds through the agent."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from arag_search.agent.models.base import ChatModel, ModelReply, ModelRequest, ToolCall, Usage
from arag_search.agent.models.offline import OfflineModel
from arag_search.agent.models.scripted import ScriptedModel
from arag_search.agent.record import Record, Step
from arag_search.agent.run_folder import read_records
from arag_search.config import Preset
from arag_search.evaluation.question import Question
from arag_search.evaluation.resolution import Piece
from arag_search.tokens import count_tokens
from bench.ablate import main
from bench.ablation.cells import cell_files, read_cell
from bench.ablation.fixed_arguments import FixedArguments
from bench.ablation.scoring import area, curve_of, row_of
from bench.ablation.suite import ModelEntry
from bench.fingerprints import missing
from tests.ablations import suite_values

pytestmark = pytest.mark.bench

SAMPLE = ("corpus.jsonl", "questions.jsonl")

SUITES = Path(__file__).parents[1] / "bench" / "suites"
AGENT_SUITES = [
    path.stem for path in sorted(SUITES.glob("*.yaml")) if "kind: agent" in path.read_text()
]

AGENTS: dict[str, Any] = {
    "name": "trial",
    "description": "Two presets.",
    "experiment": {
        "kind": "agent",
        "sets": ["sample"],
        "presets": [
            "logical_read",
            {"preset": "logical_read", "label": "2 steps", "set": {"max_loops": 2}},
        ],
        "models": ["offline", "scripted"],
        "seeds": [1, 2],
        "workers": 2,
    },
    "comparison": {
        "factor": "preset",
        "pairs": [["logical_read", "2 steps"]],
        "primary": "F1",
        "secondary": ["EM", "TokensToEvidence"],
        "policy": {"all": ["model"], "main": {"model": "offline"}},
    },
    "measures": ["ContainAcc", "EvidenceRecall", "FullEvidence", "RetrievedTokens", "Cost"],
}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data and indexes that all tests share."""
    folder = tmp_path_factory.mktemp("ablate")
    data = folder / "data" / "sample"
    data.mkdir(parents=True)
    for name in SAMPLE:
        (data / name).write_bytes((files("arag_search") / "sample" / name).read_bytes())
    return folder


def command(work: Path, suite: dict[str, Any], *more: str) -> list[str]:
    path = work / f"{suite['name']}.yaml"
    path.write_text(yaml.safe_dump(suite))
    places = ["--work", str(work / "work"), "--data", str(work / "data")]
    return [str(path), *places, "--no-plots", *more]


class Chosen:
    """Models for a suite: the offline one, and a scripted one whose answers depend on the seed."""

    def __init__(self, failing: str = "", error: BaseException | None = None) -> None:
        self.asked: list[tuple[str, int | None]] = []
        self.questions: list[str] = []
        self.failing = failing
        self.error = error or RuntimeError("The endpoint is on fire.")

    def __call__(self, entry: ModelEntry, seed: int | None, preset: Preset) -> ChatModel:
        self.asked.append((entry.level, seed))
        if entry.model == "offline":
            return OfflineModel()
        return ScriptedModel(lambda request: self._reply(request, seed))

    def _reply(self, request: ModelRequest, seed: int | None) -> ModelReply:
        self.questions.append(request.question_id)
        if self.failing == request.question_id:
            raise self.error
        usage = Usage(1, 1, "endpoint")
        if request.tools and request.messages[-1].role != "tool":
            call = ToolCall("1", "logical_search", '{"query": "opera"}')
            return ModelReply("", (call,), usage=usage)
        return ModelReply("Answer: Venice" if seed == 1 else "Answer: nothing", usage=usage)


@pytest.mark.engine
def test_two_presets_two_models_and_two_seeds_are_run_reported_and_not_run_again(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = Chosen()
    out = work / "out"
    words = command(work, AGENTS, "--out", str(out))
    assert main(words, chosen) == 0, capsys.readouterr().err
    first = capsys.readouterr()
    assert "- F1: logical_read against 2 steps" in first.out
    assert first.out.index("Primary contrasts") < first.out.index("Report: ")
    assert "4 of 4 cells" in first.err
    runs = sorted(path.parent.name for path in (work / "work").rglob("run.json"))
    # Rules give one answer whatever the seed: the offline model is asked once.
    assert sum(name.endswith("seed-1") for name in runs) == 4
    assert sum(name.endswith("seed-2") for name in runs) == 2
    report = json.loads((out / "trial.json").read_bytes())["figures"]["trial"]
    assert {"command", "code", "suite", "seed", "commit"} <= report["run"].keys()
    fingerprints = report["details"]["fingerprints"]
    assert {"preset", "index", "model", "questions", "prompt", "seeds"} <= fingerprints.keys()
    assert len(fingerprints["preset"]) == 2
    text = (out / "trial.md").read_text()
    assert "## What may be said" in text
    assert str(work) not in text

    again = Chosen()
    assert main(words, again) == 0
    assert "0 cells measured, 4 were there." in capsys.readouterr().err
    assert again.questions == []
    assert (out / "trial.md").read_text() == text


@pytest.mark.engine
def test_a_changed_preset_runs_its_cells_again_and_keeps_old_records(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = json.loads(json.dumps(AGENTS)) | {"name": "changed"}
    suite["experiment"]["models"] = ["scripted"]
    suite["comparison"]["policy"] = {}
    assert main(command(work, suite, "--limit", "2"), Chosen()) == 0
    capsys.readouterr()
    suite["experiment"]["presets"][1]["set"]["max_loops"] = 3
    assert main(command(work, suite, "--limit", "2"), Chosen()) == 0
    told = capsys.readouterr().err
    assert "2 steps, scripted: measured again, for another preset, prompt." in told
    assert "1 cells measured, 1 were there." in told
    assert len(list((work / "work" / "changed-limit-2").rglob("run.json"))) == 6


@pytest.mark.engine
def test_a_judge_judges_each_answer_once(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = json.loads(json.dumps(AGENTS)) | {"name": "judged"}
    suite["experiment"] |= {"models": ["scripted"], "seeds": [1], "questions": 2}
    suite["comparison"]["policy"] = {}
    suite["measures"] = ["JudgeAcc"]
    judging = ScriptedModel(lambda request: ModelReply("Fine.\nVerdict: correct"))
    monkeypatch.setattr("bench.ablate.choose_model", lambda name, **_: judging)
    assert main(command(work, suite, "--judge", "some-model"), Chosen()) == 0
    (report,) = (work / "work" / "judged").rglob("judged.md")
    assert "| sample | logical_read | 1.000 [1.000, 1.000] | 2 |" in report.read_text()
    assert len(judging.requests) == 2  # both presets give the same answers
    assert "wrong answers" not in report.read_text().lower()
    assert capsys.readouterr().out


@pytest.mark.engine
def test_failed_questions_are_asked_again_and_no_others(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = json.loads(json.dumps(AGENTS)) | {"name": "failing"}
    suite["experiment"] |= {"models": ["scripted"], "seeds": [1], "questions": 3}
    suite["comparison"]["policy"] = {}
    first = Chosen()
    assert main(command(work, suite, "--only", "preset=logical_read"), first) == 0
    assert "**Incomplete**" in next((work / "work" / "failing").rglob("failing.md")).read_text()
    failing = sorted(set(first.questions))[0]
    suite["name"] = "failing_again"
    assert main(command(work, suite), Chosen(failing=failing)) == 0
    capsys.readouterr()
    mended = Chosen()
    assert main(command(work, suite), mended) == 0
    assert set(mended.questions) == {failing}
    assert "measured again, for another failed questions." in capsys.readouterr().err


@pytest.mark.engine
def test_a_run_that_was_killed_goes_on_with_what_is_missing(work: Path) -> None:
    suite = json.loads(json.dumps(AGENTS)) | {"name": "killed"}
    suite["experiment"]["models"] = ["offline"]
    suite["comparison"]["policy"] = {}
    words = [sys.executable, "-m", "bench.ablate", *command(work, suite)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        records = work / "work" / "killed" / "runs"
        while not _lines(records) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    assert _lines(records) >= 1
    again = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert again.returncode == 0, again.stderr
    assert "Report: " in again.stdout
    folders = [path.parent for path in records.rglob("run.json")]
    assert sorted(len(read_records(one).by_id) for one in folders) == [12, 12]


@pytest.mark.engine
def test_an_interrupted_run_says_how_to_go_on(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = json.loads(json.dumps(AGENTS)) | {"name": "interrupted"}
    suite["experiment"] |= {"models": ["scripted"], "seeds": [1], "workers": 1}
    suite["comparison"]["policy"] = {}
    stopping = Chosen(failing="s03", error=KeyboardInterrupt())
    words = command(work, suite)
    assert main(words, stopping) == 130
    again = shlex.join(["python", "-m", "bench.ablate", *words])
    assert capsys.readouterr().err.endswith(f"Interrupted. Go on with: {again}\n")
    going_on = Chosen()
    assert main(words, going_on) == 0
    first = [one for one in stopping.questions if one != "s03"]
    assert first
    assert len(going_on.questions) == 2 * (24 - len(set(first)))


def _lines(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.rglob("records.jsonl"))


def shrunk(name: str, questions: int) -> dict[str, Any]:
    """A suite of the repository over the sample corpus, with few questions and one seed."""
    suite = yaml.safe_load((SUITES / f"{name}.yaml").read_text())
    suite["experiment"] |= {"sets": ["sample"], "questions": questions, "seeds": [1]}
    if "encoder" in suite["experiment"]:
        suite["experiment"]["encoder"] = "hashing:16"
    return suite


@pytest.mark.parametrize("name", AGENT_SUITES)
def test_a_suite_of_the_repository_can_be_run(
    name: str, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(work, shrunk(name, 1), "--dry-run"), Chosen()) == 0, capsys.readouterr().err
    assert "cells, nothing was run." in capsys.readouterr().out


@pytest.mark.engine
@pytest.mark.parametrize("name", ["arag_main", "passage_length"])
def test_a_suite_with_vectors_or_packed_passages_runs_over_the_sample(
    name: str, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = shrunk(name, 2)
    assert main(command(work, suite), Chosen()) == 0, capsys.readouterr().err
    report = next((work / "work" / name).rglob(f"{name}.md"))
    assert missing(report.with_suffix(".json")) == []
    text = report.read_text()
    assert "**Incomplete**" not in text
    assert ("## Not measured here" in text) == (name == "arag_main")
    assert "JudgeAcc" not in text.split("## Not measured here")[0].split("## Results")[1]
    assert "### Consecutive searches and failed ones" in text
    cells = [read_cell(path)[1] for path in cell_files(work / "work" / name / "cells")]
    assert not any(row.details["unresolved"] for rows in cells for row in rows)


@pytest.mark.engine
def test_a_book_whose_questions_name_no_evidence_is_measured_by_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data" / "book"
    data.mkdir(parents=True)
    text = " ".join(
        f"In {year} the opera of Venice gave a new piece." for year in range(1600, 1750)
    )
    (data / "corpus.json").write_text(json.dumps([{"corpus_name": "Book", "context": text}]))
    question = {"id": "b1", "source": "Book", "question": "Where?", "answer": "It is in Venice.",
                "question_type": "Fact Retrieval"}  # fmt: skip
    (data / "questions.jsonl").write_text(json.dumps(question))
    suite = json.loads(json.dumps(AGENTS)) | {"name": "book", "measures": ["EvidenceRecall"]}
    suite["experiment"] |= {"sets": ["book"], "models": ["scripted"], "seeds": [1]}
    suite["comparison"] |= {"policy": {}, "secondary": ["RetrievedTokens"]}
    assert main(command(tmp_path, suite), Chosen()) == 0, capsys.readouterr().err
    report = next((tmp_path / "work" / "book").rglob("book.md")).read_text()
    assert "| book | logical_read | 0.400 [0.400, 0.400] | 1 |" in report
    assert "EvidenceRecall" not in report
    assert "- not measured: the question names no evidence" in report


def test_a_dry_run_says_what_would_be_run(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = AGENTS | {"name": "dry"}
    arguments = command(work, suite, "--dry-run", "--only", "model=offline")
    assert main(arguments, Chosen()) == 0
    told = capsys.readouterr().out
    assert "- sample, published, 2 steps, offline" in told
    assert told.endswith("2 cells, nothing was run.\n")
    assert not (work / "work" / "dry").exists()


def test_all_that_cannot_be_used_is_told_before_anything_runs(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = json.loads(json.dumps(AGENTS)) | {"name": "wrong"}
    suite["experiment"] |= {
        "sets": ["sample", "nowhere"],
        "presets": [
            "logical_read",
            "arag_full",
            {"preset": "logical_read", "label": "a", "set": {"max_lops": 2}},
            {
                "preset": "logical_read",
                "label": "b",
                "arguments": {"logical_search": {"top_k": 99, "k": 1}, "find": {"x": 1}},
            },
        ],
        "models": ["environment", "offline"],
    }
    suite["comparison"] |= {"pairs": [["a", "b"]]}
    suite["comparison"]["policy"]["main"] = {"model": "offline"}
    suite["experiment"]["passages"] = ["packed by hand"]
    assert main(command(work, suite)) == 1
    told = capsys.readouterr().err
    assert told.startswith("The suite has ")
    for part in (
        '"packed by hand" is no way to cut passages. Allowed: "published", "packed N" with N',
        "nowhere/questions.jsonl",
        'preset a: The preset has 1 problem. 1. key "max_lops"',
        "preset b: argument logical_search.k: there is no such argument. Arguments: query,",
        "preset b: argument logical_search.top_k: 99: Input should be less than or equal to 20.",
        "preset b: argument find.x: the preset has no such tool. Tools: logical_search,",
        "preset arag_full: semantic_search needs vectors, and no encoder is named.",
        "model environment: No model is named.",
        "model offline: The offline model works with logical_search, which preset arag_full lacks.",
    ):
        assert part in told, part


def test_a_suite_that_needs_a_model_and_has_none_says_how_to_set_it(
    capsys: pytest.CaptureFixture[str], work: Path
) -> None:
    data = ["--data", str(work / "data"), "--work", str(work / "work")]
    assert main([str(SUITES / "top_k.yaml"), *data]) == 1
    told = capsys.readouterr().err
    assert "No model is named." in told
    assert "OPENAI_API_KEY" in told


def test_a_gold_chain_suite_asks_no_model(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(work, suite_values(name="chain"), "--model", "offline")) == 1
    assert capsys.readouterr().err == "Suite chain asks no model.\nWhere: --model\n"


# Rows


def step(number: int, tokens: int, *ids: str, status: Any = "ok") -> Step:
    text = "\n".join(f"[{id}] Title\nText of {id}." for id in ids)
    return Step(number, "logical_search", {}, text, "", status, ids, 1, tokens, tokens + 5, 0.1)


def record(*steps: Step, status: Any = "answered", answer: str = "Venice") -> Record:
    return Record(
        "q", "Where?", answer, answer, "", (), (), None, status, None, steps, None, 1, {},
        sum(one.retrieved_tokens for one in steps), 0, (), Usage(1, 1, "counted"), 1.0, {},
    )  # fmt: skip


QUESTION = Question("q", "Where?", ("Venice",), "bridge", ("Griselda", "Vivaldi"))
SETS = [[Piece("Griselda", ("g.1", "g.2"), "title"), Piece("Vivaldi", ("v.1",), "title")]]


def test_evidence_comes_with_the_tokens_of_the_step_that_showed_its_passage() -> None:
    found = record(step(1, 100, "o.1"), step(2, 50, "v.1"), step(3, 850, "g.2", "o.1"))
    curve = curve_of(found, SETS)
    assert curve == [(0, 0), (150, 0.5), (1000, 1)]
    assert area(curve) == pytest.approx((0.5 * 850 + 1 * 7000) / 8000)
    row = row_of(QUESTION, found, 1, "runs/a#q", SETS)
    assert row.values["TokensToEvidence"] == row.values["RetrievedTokens"] == 1000
    assert row.values["FullEvidence"] == row.values["EM"] == 1
    assert row.details["record"] == "runs/a#q"
    assert "failure" not in row.details


def test_of_several_sets_of_evidence_the_one_of_which_most_was_shown_counts() -> None:
    sets = [*SETS, [Piece("Other", ("o.1",), "title")]]
    assert curve_of(record(step(1, 70, "v.1"), step(2, 30, "o.1")), sets) == [(0, 0), (100, 1)]


def test_evidence_that_was_never_whole_or_too_late_is_charged_the_cap() -> None:
    late = record(step(1, 8_001, "v.1", "g.1"))
    half = record(step(1, 10, "v.1"), step(2, 5, status="empty"), step(3, 0, status="error"))
    for one in (late, half, None, record(status="failed")):
        row = row_of(QUESTION, one, 1, "", SETS)
        assert row.values["TokensToEvidence"] == 8_000
        assert row.values["FullEvidence"] == 0
    calls = row_of(QUESTION, half, 1, "", SETS).details
    assert (calls["searches"], calls["zero_hits"], calls["refused"]) == (3, 1, 1)
    assert calls["failed_tokens"] == 15
    assert row_of(QUESTION, None, 1, "", SETS).details["failed"]
    assert area(curve_of(late, SETS)) == 0


def test_tokens_of_passages_that_were_shown_before_are_shown_again() -> None:
    once = record(step(1, 9, "o.1", "v.1"), step(2, 0, status="empty"))
    assert row_of(QUESTION, once, 1, "", SETS).details["repeated_tokens"] == 0
    again = record(*once.trajectory, step(3, 9, "v.1"), step(4, 9, "v.1", "g.1"))
    tokens = count_tokens("Title") + count_tokens("Text of v.1.")
    details = row_of(QUESTION, again, 1, "", SETS).details
    assert details["repeated_tokens"] == 2 * tokens
    assert details["search_sums"] == {
        "searches": 4, "pairs": 3, "empty_pairs": 0, "of_larger": 0.5, "jaccard": 0.5,
        "of_asked": pytest.approx(0.2), "failed": 1, "refused": 0, "at_once": 1, "later": 0,
        "never": 0, "waited": 1,
    }  # fmt: skip


def test_a_question_without_evidence_has_none_to_measure_and_one_in_no_passage_is_unresolved() -> (
    None
):
    row = row_of(Question("q", "Where?", ("Venice",)), record(), 1, "", [])
    assert row.values["TokensToEvidence"] is None
    assert row.values["EvidenceArea"] is None
    assert row.values["EM"] == 1
    assert not row.details["unresolved"]
    lost = [[Piece("Griselda", (), None), Piece("Vivaldi", ("v.1",), "title")]]
    assert row_of(QUESTION, record(step(1, 1, "v.1")), 1, "", lost).details["unresolved"]


def test_a_wrong_answer_has_a_reason_and_a_judge_may_find_it_right() -> None:
    wrong = record(step(1, 10, "v.1"), answer="Rome")
    assert row_of(QUESTION, wrong, 1, "", SETS).details["failure"] == "never shown"
    judged = row_of(QUESTION, wrong, 1, "", SETS, 1.0)
    assert judged.values["JudgeAcc"] == 1
    assert "failure" not in judged.details


# Fixed arguments


SCHEMA = {
    "type": "function",
    "function": {
        "name": "logical_search",
        "description": "Search.",
        "parameters": {
            "properties": {"query": {}, "top_k": {}, "default_operator": {}},
            "required": ["query"],
        },
    },
}


def test_fixed_arguments_are_added_to_calls_and_gone_from_the_schema() -> None:
    calls = (
        ToolCall("1", "logical_search", '{"query": "ö", "top_k": 3}'),
        ToolCall("2", "logical_search", "{broken"),
        ToolCall("3", "logical_search", "[1]"),
        ToolCall("4", "chunk_read", "{}"),
        ToolCall("5", "logical_search", ""),
    )
    inner = ScriptedModel([ModelReply("", calls)])
    fixed = {"logical_search": {"top_k": 10, "default_operator": "AND"}}
    model = FixedArguments(inner, fixed)
    reply = model.reply(ModelRequest((), (SCHEMA,)))
    arguments = [call.arguments for call in reply.tool_calls]
    assert json.loads(arguments[0]) == {"query": "ö", "top_k": 10, "default_operator": "AND"}
    assert arguments[1:4] == ["{broken", "[1]", "{}"]
    assert json.loads(arguments[4]) == fixed["logical_search"]
    (seen,) = inner.requests[0].tools
    assert list(seen["function"]["parameters"]["properties"]) == ["query"]
    assert seen["function"]["description"] == (
        'Search.\nSet already, not to be given: top_k 10, default_operator "AND".'
    )
    assert "top_k" in SCHEMA["function"]["parameters"]["properties"]  # pyright: ignore
    assert model.fingerprint != FixedArguments(inner, {"logical_search": {"top_k": 5}}).fingerprint
    assert model.name == "scripted"

"""The commands run and score, as a user at a terminal sees them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import signal
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from arag_search.agent.models.base import ModelReply, ModelRequest
from arag_search.agent.models.choose import OFFLINE_NOTE
from arag_search.cli.app import run
from arag_search.runs.run import Tally
from arag_search.system.progress import PlainProgress
from tests.support.commands import Command, file_of
from tests.support.scripted_model import ScriptedModel

SAMPLE = files("arag_search") / "sample"
QUESTIONS = str(SAMPLE / "questions.jsonl")
OFFLINE = ("--model", "offline")


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make a working folder with the index ``sample`` and prices."""
    place = tmp_path_factory.mktemp("run")
    with contextlib.chdir(place), contextlib.redirect_stdout(io.StringIO()):
        assert run(["index", str(SAMPLE / "corpus.jsonl"), "--to", "sample"]) == 0
        Path("prices.yaml").write_text("offline: {prompt: 1, completion: 1}\n")
        yield place


def steady(text: str) -> str:
    """Return the text without the values that depend on the machine and the model's prompts."""
    return re.sub(r"[\d,]+ tokens|\$[\d.]+|\d+ s\b", "#", text)


def test_run_answers_all_questions_and_score_reads_them(arag: Command) -> None:
    done = arag("run", "sample", QUESTIONS, *OFFLINE, "--out", "all", "--workers", "2",
                "--prices", "prices.yaml")  # fmt: skip
    assert (done.code, steady(done.out), done.err) == (
        0,
        f"12 questions: 12 answered, 0 failed, #, #, #.\n{OFFLINE_NOTE}\n"
        "Next: arag-search score all\n",
        "",
    )
    versions = json.loads(Path("all/run.json").read_text())["versions"]
    assert [*versions] == ["commit", "sources", "python", "engine", "tokenizer"]
    assert re.fullmatch(r"[0-9a-f]{40}|unknown", versions["commit"])
    assert re.fullmatch(r"[0-9a-f]{16}", versions["sources"])
    assert versions["engine"].startswith("lucene 10.")
    assert versions["tokenizer"].startswith("bpe-openai 0.")
    score_done = arag("score", "all")
    lines = score_done.out.splitlines()
    assert lines[0] == "logical_read, model offline, index sample"
    assert lines[1].split() == [
        "questions", "EM", "F1", "Contain-Acc", "grounded", "from", "memory", "without", "a",
        "search", "evidence", "refused", "failed", "missing", "tokens", "steps", "seconds",
    ]  # fmt: skip
    assert [line.split()[:2] for line in lines[2:]] == [
        ["all", "12"], ["mean", "of"], ["comparison", "2"], ["compositional", "9"],
        ["inference", "1"], ["In", '"mean'],
    ]  # fmt: skip
    report = arag("score", "all", "--json").json
    assert sorted(report) == [
        "failures", "mean_of_types", "notes", "questions", "rows", "run", "trajectories",
    ]  # fmt: skip
    assert report["rows"][0]["exact_match"] == pytest.approx(
        sum(question["exact_match"] for question in report["questions"]) / 12
    )
    assert sum(question["contain_accuracy"] for question in report["questions"]) >= 3
    assert all(question["cost_usd"] > 0 for question in report["questions"])


def test_a_second_run_continues_the_first(arag: Command) -> None:
    first = arag("run", "sample", QUESTIONS, *OFFLINE, "--out", "parts", "--limit", "1")
    assert steady(first.out).startswith("1 question: 1 answered, 0 failed, #, #.\n")
    size = Path("parts/records.jsonl").stat().st_size
    second = arag("run", "sample", QUESTIONS, *OFFLINE, "--out", "parts", "--limit", "3")
    assert steady(second.out).startswith("3 questions: 3 answered, 0 failed, #, #.\n")
    assert Path("parts/records.jsonl").read_bytes()[:size].count(b"\n") == 1
    assert Path("parts/records.jsonl").read_bytes().count(b"\n") == 3
    notes = arag("score", "parts").out.splitlines()[-1]
    assert notes == "The run asked the first 3 of 12 questions."


def test_a_run_that_reaches_its_cost_says_how_to_resume(arag: Command) -> None:
    done = arag("run", "sample", QUESTIONS, *OFFLINE, "--out", "a folder", "--prices",
                "prices.yaml", "--max-cost", "0.000001")  # fmt: skip
    assert done.code == 1
    assert steady(done.out).startswith("12 questions: 1 answered, 0 failed, #, #, #.\n")
    assert done.err == (
        "Stopped at --max-cost, 11 left. Resume with a higher one: arag-search run sample "
        f"{QUESTIONS} --model offline --out 'a folder' "
        "--prices prices.yaml --max-cost 0.000001\n"
    )


def test_failed_questions_are_reported_and_the_exit_code_is_1(arag: Command) -> None:
    Path("none.replies").write_bytes(b"")
    command = ("run", "sample", QUESTIONS, "--preset", "logicalrag", "--model",
             "replay:none.replies", "--out", "failed", "--limit", "2")  # fmt: skip
    done = arag(*command)
    assert done.code == 1
    assert steady(done.out).startswith("2 questions: 0 answered, 2 failed, #, #.\n")
    assert done.err == f"2 failed. Ask them again with: arag-search {' '.join(command)}\n"
    assert arag("score", "failed").out.splitlines()[2].split()[:5] == [
        "all", "2", "0.000", "0.000", "0.000",
    ]  # fmt: skip


def test_questions_without_ids_are_run_resumed_and_compared_with_the_file(arag: Command) -> None:
    asked = [
        {"question": "Who wrote Evangeline?", "answer": "Longfellow"},
        {"qid": "q3", "question": "Who wrote Artaserse?", "answer": "Metastasio"},
        {"question": "Where was Carlo Goldoni born?", "answer": "Venice"},
    ]
    command = ("run", "sample", file_of("plain.jsonl", *asked), "--out", "plain", *OFFLINE)
    assert arag(*command, "--limit", "1").out.startswith("1 question: 1 answered, 0 failed")
    done = arag(*command)
    assert (done.code, done.out[:33]) == (0, "3 questions: 3 answered, 0 failed")
    records = Path("plain", "records.jsonl").read_text().splitlines()
    assert [json.loads(line)["question_id"] for line in records] == ["q1", "q3", "q3_2"]
    assert arag("score", "plain").out.splitlines()[2].split()[1] == "3"
    file_of("plain.jsonl", {"question": "A new first?", "answer": "Yes"}, *asked)
    changed = arag(*command)
    assert changed.code == 1
    assert "The folder holds a run with another question file." in changed.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "x", "--preset", "nothing"], 'arag-search: There is no preset "nothing".'),
        (["--out", "x"], "arag-search: No model is named."),
        (["--out", "x", *OFFLINE, "--workers", "0"], "arag-search: workers is 0."),
        (["--out", "x", *OFFLINE, "--limit", "0"], "arag-search: limit is 0."),
        (["--out", "x", *OFFLINE, "--max-cost", "1"], "arag-search: A cost limit needs the price"),
        (["--out", "x", *OFFLINE, "--filter", "colour:red"], "Query not run: 1 problem."),
    ],
)
def test_an_impossible_run_is_refused_before_a_folder_is_made(
    arag: Command, arguments: list[str], message: str
) -> None:
    done = arag("run", "sample", QUESTIONS, *arguments)
    assert done.code == (2 if "--filter" in arguments else 1)
    assert done.err.startswith(message)
    assert not Path("x").exists()


def test_questions_that_lead_in_a_circle_are_refused(arag: Command) -> None:
    Path("circle").symlink_to("circle")
    done = arag("run", "sample", "circle", "--out", "x", *OFFLINE)
    assert (done.code, done.err) == (
        1,
        "arag-search: The questions cannot be read (Too many levels of symbolic links).\n"
        "Where: circle\n"
        "Allowed: a file of JSON lines, or of one JSON array\n",
    )


def test_a_folder_that_is_not_a_run_cannot_be_scored(arag: Command) -> None:
    done = arag("score", "sample")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("arag-search: There is no run (No such file or directory).\n")


@pytest.mark.parametrize("moment", [0, 1])
def test_ctrl_c_ends_with_130_and_the_command_to_resume(
    arag: Command, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    def interrupt(self: PlainProgress, done: int, count: int, details: str = "") -> None:
        if done == moment:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(PlainProgress, "update", interrupt)
    out = f"stopped-{moment}"
    done = arag("run", "sample", QUESTIONS, *OFFLINE, "--out", out)
    assert done.code == 130
    assert re.sub(r"\d+ left", "# left", done.err).splitlines() == [
        "Interrupted: finishing the questions in progress, and starting no more. Press Ctrl-C "
        "again to abandon them.",
        f"Interrupted, # left. Resume with: arag-search run sample {QUESTIONS} --model offline "
        f"--out {out}",
    ]


# Progress


def test_a_run_shows_its_answers_failures_tokens_and_cost() -> None:
    assert Tally(400).to_text() == "0 answered, 0 failed, 0 tokens"
    tally = Tally(400, 99, 1, 50, 1_000_000, 2_000, cost_usd=0.25, seconds=10)
    assert tally.to_text() == "99 answered, 1 failed, 1,002,000 tokens, $0.2500"


# Measures, judges, trajectories


@pytest.fixture(scope="module")
def sample_run(folder: Path) -> str:
    """Run four questions of the sample, and return the folder of the run."""
    with contextlib.redirect_stdout(io.StringIO()):
        assert run(["run", "sample", QUESTIONS, *OFFLINE, "--out", "four", "--limit", "4"]) == 0
    return "four"


def test_score_prints_the_measures_that_are_named(arag: Command, sample_run: str) -> None:
    done = arag("score", sample_run, "--measure", "EM,TokensToEvidence", "--measure", "Cost")
    assert done.lines[1].split() == ["questions", "EM", "TokensToEvidence", "Cost"]
    assert done.lines[2].split()[:2] == ["all", "4"]
    assert "Cost is over 0 of 4 questions." in done.lines
    report = arag("score", sample_run, "--measure", "EM", "--json").json
    assert report["measures"] == [
        {"name": "EM", "unit": "share", "higher_is_better": True,
         "meaning": "the short answer is a gold answer (SQuAD)"}
    ]  # fmt: skip
    assert report["means"][0]["values"]["EM"] == report["rows"][0]["exact_match"]
    assert list(report["values"]) == [question["id"] for question in report["questions"]]


def test_with_the_index_evidence_is_looked_for_in_passages_and_documents_are_ranked(
    arag: Command, sample_run: str
) -> None:
    names = "EvidenceRecall,FullEvidence,Recall@5,CitedRecall@1"
    done = arag("score", sample_run, "--measure", names, "--index", "sample")
    assert (done.code, done.err) == (0, "")
    assert all(0 <= float(cell) <= 1 for cell in done.lines[2].split()[2:])
    note = "Evidence is looked for in {}, which the run did not search."
    assert note.format("sample") not in done.lines
    Path("other.jsonl").write_text('{"id": "x", "text": "Another corpus."}')
    assert arag("index", "other.jsonl", "--to", "other").code == 0
    other = arag("score", sample_run, "--measure", names, "--index", "other")
    assert note.format("other") in other.lines
    assert other.lines[2].split() == ["all", "4", "0.000", "0.000", "-", "-"]


def test_a_measure_without_what_it_needs_is_refused(arag: Command, sample_run: str) -> None:
    done = arag("score", sample_run, "--measure", "JudgeAcc,Recall@5")
    assert (done.code, done.err) == (
        1,
        "arag-search: JudgeAcc needs a model that judges (--judge); Recall@5 needs the index that "
        "was searched (--index).\n"
        "Do: Give it, or leave the measure out.\n",
    )
    assert arag("score", sample_run, "--measure", "accuracy").err.startswith(
        'arag-search: There is no measure "accuracy".\n'
    )


def test_several_runs_are_compared_with_the_first(arag: Command, sample_run: str) -> None:
    run_other = ("run", "sample", QUESTIONS, *OFFLINE, "--out", "other-run", "--limit", "4")
    assert arag(*run_other, "--preset", "arag_without_semantic").code == 0
    done = arag("score", sample_run, "other-run", "--measure", "EM,Steps")
    assert (done.code, done.err) == (0, "")
    assert done.lines[2] == "Intervals of 95% for all of them together, 97.50% each."
    assert done.lines[3] == f"Differences, wins and losses are those of a run against {sample_run}."
    assert done.lines[5].split()[:4] == ["questions", sample_run, "other-run", "difference"]
    assert "  0.000  [0.000, 0.000]  not told apart     0       0     4" in done.lines[6]
    assert done.lines[6].endswith(" -")
    report = arag("score", sample_run, "other-run", "--json").json
    assert [*report["runs"]] == [sample_run, "other-run"]
    assert len(report["questions"]) == 8
    assert {"run", "id", "type", "question", "EM", "Steps"} <= set(report["questions"][0])
    assert {"low", "high"} < set(report["differences"][0]["difference"]["interval"])
    assert arag("score", sample_run, sample_run).err.startswith(
        "arag-search: A run is named twice.\n"
    )


def test_trajectories_are_printed_below_the_table(arag: Command, sample_run: str) -> None:
    done = arag("score", sample_run, "--trajectories")
    assert done.lines[1].split()[0] == "questions"
    assert any(line.endswith("searches in 4 records") for line in done.lines)
    assert any(line.startswith("wrong answers  no answer  not measured") for line in done.lines)
    report = arag("score", sample_run, "--json").json
    assert report["trajectories"]["records"] == 4
    wrong_ids = [
        question["id"] for question in report["questions"] if not question["contain_accuracy"]
    ]
    assert sorted(report["failures"]["questions"]) == sorted(wrong_ids)


def test_verdicts_of_a_judge_are_stored_and_used_again(
    arag: Command, sample_run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel(lambda _: ModelReply("Verdict: correct"))
    monkeypatch.setattr("arag_search.agent.models.choose.choose_model", lambda *_, **__: model)
    command = ("score", sample_run, "--judge", "m")
    done = arag(*command)
    assert done.lines[1].split() == ["questions", "JudgeAcc"]
    assert done.lines[2].split() == ["all", "4", "1.000"]
    assert Path(sample_run, "verdicts.jsonl").exists()
    request_count = len(model.requests)
    report = arag(*command, "--json").json
    assert len(model.requests) == request_count
    assert report["judge"]["by_type"]["all"] == {"correct": 4}
    assert report["failures"]["questions"] == {}


def test_factuality_is_judged_instead_or_as_well_where_it_is_asked_for(
    arag: Command, sample_run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reply(request: ModelRequest) -> ModelReply:
        graded = "how factual" in request.messages[0].content
        return ModelReply("Score: 0.5" if graded else "Verdict: correct")

    model = ScriptedModel(reply)
    monkeypatch.setattr("arag_search.agent.models.choose.choose_model", lambda *_, **__: model)
    shutil.copytree(sample_run, "factuality")
    Path("factuality/verdicts.jsonl").unlink(missing_ok=True)
    command = ("score", "factuality", "--judge", "m")
    done = arag(*command, "--measure", "Factuality")
    assert (done.code, done.err) == (0, "4 verdicts are asked of scripted.\n")
    assert done.lines[1].split() == ["questions", "Factuality"]
    assert done.lines[2].split() == ["all", "4", "0.500"]
    assert (
        "Factuality is by our prompt and scale, and does not compare with figures of papers."
        in (done.lines)
    )
    names = ("--measure", "JudgeAcc,Factuality,TotalTokens,ToolCalls:logical_search")
    report = arag(*command, *names, "--json").json
    values = report["means"][0]["values"]
    assert (values["JudgeAcc"], values["Factuality"]) == (1, 0.5)
    assert values["ToolCalls:logical_search"] >= 1
    assert set(report["factuality"]["answers"]) == {"s01", "s02", "s03", "s04"}
    refused = arag("score", sample_run, "--measure", "Factuality")
    assert refused.err.startswith("arag-search: Factuality needs a model that judges (--judge).\n")


def test_a_judge_that_cannot_judge_is_refused(arag: Command, sample_run: str) -> None:
    assert arag("score", sample_run, "--judge", "offline").err == (
        "arag-search: Model 'offline' cannot judge: it only searches and reads.\n"
        "Allowed: the name of an endpoint's model, or replay:FILE\n"
    )

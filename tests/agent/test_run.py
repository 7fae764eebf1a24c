"""A run loses no record, asks no question twice and never mixes with another run."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from arag_search.agent.models.base import ModelReply, ModelRequest, ToolCall, Usage
from arag_search.agent.models.offline import OfflineModel
from arag_search.agent.prompts import preset_fingerprint
from arag_search.errors import (
    ArgumentError,
    ConfigError,
    ModelAccessError,
    ModelUnavailableError,
    RunError,
)
from arag_search.questions.files import Question
from arag_search.runs.folder import read_description, read_records
from arag_search.runs.prices import Price, Prices
from arag_search.runs.run import RunOptions, RunOutcome, Tally, run
from arag_search.search.index import Index
from arag_search.tools.preset import Preset
from arag_search.tools.preset_files import load_preset
from tests.support.examples import some_of
from tests.support.patience import PATIENCE_S
from tests.support.runs import TEXTS, RecordingProgress, index_of, questions, without_times
from tests.support.scripted_model import ScriptedModel

PRICES = Prices({"scripted": Price(prompt=500, completion=0)})  # A request costs a dollar.


@pytest.fixture(scope="module")
def index() -> Index:
    return index_of(*TEXTS)


@pytest.fixture(scope="module")
def preset() -> Preset:
    return load_preset("logical_read")


def search_then_answer(request: ModelRequest) -> ModelReply:
    """Search once, then give an answer that depends on the question alone."""
    usage = Usage(2_000, 1, "endpoint")
    if request.messages[-1].role != "tool":
        call = ToolCall("1", "logical_search", '{"query": "opera AND vivaldi"}')
        return ModelReply("", (call,), usage=usage)
    number = request.messages[1].content.split()[-1].rstrip("?")
    return ModelReply(f"Answer: composer {number}\nSources: c0.1", usage=usage)


def model(*failing: str, error: Exception | None = None) -> ScriptedModel:
    """Return a model that replies as ``search_then_answer``, but for questions that fail."""

    def script(request: ModelRequest) -> ModelReply:
        if request.question_id in failing:
            raise error or ModelUnavailableError("The endpoint is busy.")
        return search_then_answer(request)

    return ScriptedModel(script)


def question_ids(model: ScriptedModel) -> list[str]:
    return list(dict.fromkeys(request.question_id for request in model.requests))


# A run


@pytest.mark.parametrize("workers", [1, 4])
def test_every_question_gets_one_record(
    index: Index, preset: Preset, tmp_path: Path, workers: int
) -> None:
    progress = RecordingProgress()
    options = RunOptions(workers=workers, questions_file="q.jsonl")
    outcome = run(index, questions(9), preset, model(), tmp_path / "out", options=options,
                  progress=progress)  # fmt: skip
    lines = (tmp_path / "out" / "records.jsonl").read_bytes().splitlines()
    assert sorted(json.loads(line)["question_id"] for line in lines) == [f"q{n}" for n in range(9)]
    records = read_records(tmp_path / "out").by_id
    assert {record.answer_short for record in records.values()} == {
        f"composer {n}" for n in range(9)
    }
    assert outcome == RunOutcome(replace(outcome.tally, seconds=outcome.tally.seconds), None)
    tally = replace(outcome.tally, seconds=0.0)
    assert tally == Tally(9, 9, 0, 9, prompt_tokens=36_000, completion_tokens=18)
    assert progress.recorded == list(range(10))
    assert progress.ended == 1


def test_run_json_says_what_the_run_is(index: Index, preset: Preset, tmp_path: Path) -> None:
    options = RunOptions(limit=2, questions_file="/data/q.jsonl", filter="year:1700")
    run(index, questions(3), preset, model(), tmp_path, options=options)
    description = json.loads((tmp_path / "run.json").read_bytes())
    assert {
        key: description[key]
        for key in description
        if key not in ("created", "fingerprints", "versions")
    } == {
        "format_version": 1, "preset": "logical_read", "index": "memory", "filter": "year:1700",
        "model": "scripted", "questions": "/data/q.jsonl", "count": 3, "limit": 2,
        "encoder": None,
    }  # fmt: skip
    assert sorted(description["fingerprints"]) == ["code", "index", "model", "preset", "questions"]
    assert sorted(os.listdir(tmp_path)) == ["records.jsonl", "run.json"]


def test_a_failed_question_is_recorded_and_the_run_continues(
    index: Index, preset: Preset, tmp_path: Path
) -> None:
    outcome = run(index, questions(4), preset, model("q1"), tmp_path)
    assert (outcome.tally.answered, outcome.tally.failed, outcome.tally.left) == (3, 1, 0)
    record = read_records(tmp_path).by_id["q1"]
    assert (record.status, record.failure) == (
        "failed",
        "ModelUnavailableError: The endpoint is busy.",
    )


def test_a_second_run_asks_only_failed_and_missing_questions(
    index: Index, preset: Preset, tmp_path: Path
) -> None:
    run(index, questions(5), preset, model("q1"), tmp_path, options=RunOptions(limit=3))
    second_model = model()
    outcome = run(index, questions(5), preset, second_model, tmp_path)
    assert question_ids(second_model) == ["q1", "q3", "q4"]
    assert (outcome.tally.answered, outcome.tally.failed, outcome.tally.asked) == (5, 0, 3)
    assert len((tmp_path / "records.jsonl").read_bytes().splitlines()) == 6
    assert read_records(tmp_path).by_id["q1"].status == "answered"
    third_model = model()
    assert run(index, questions(5), preset, third_model, tmp_path).tally.asked == 0
    assert question_ids(third_model) == []


def test_a_limit_grows_and_never_shrinks(index: Index, preset: Preset, tmp_path: Path) -> None:
    limits: list[int | None] = []
    for limit in (2, 1, 3, None, 2):
        run(index, questions(4), preset, model(), tmp_path, options=RunOptions(limit=limit))
        limits.append(read_description(tmp_path).limit)
    assert limits == [2, 2, 3, None, None]


# Refused runs


def other_question(originals: list[Question]) -> list[Question]:
    return [replace(originals[0], answers=("Zeno",)), *originals[1:]]


def test_another_preset_model_index_or_question_file_is_refused_and_both_are_named(
    index: Index, preset: Preset, tmp_path: Path
) -> None:
    run(index, questions(2), preset, model(), tmp_path)
    before = read_description(tmp_path).fingerprints
    other = load_preset("logicalrag")
    with pytest.raises(RunError) as caught:
        run(index, questions(2), other, model(), tmp_path)
    assert str(caught.value) == (
        "The folder holds a run with another preset.\n"
        f"Where: {tmp_path / 'run.json'}: preset logical_read ({preset_fingerprint(preset)}), "
        f"now logicalrag ({preset_fingerprint(other)})\n"
        "Allowed: records of one preset, index, model, question file and encoder in a folder\n"
        "Do: Name another folder, or use the same settings as that run."
    )
    renamed = model()
    renamed.fingerprint = "another"  # pyright: ignore
    with pytest.raises(RunError) as caught:
        run(index_of("Other."), other_question(questions(2)), preset, renamed, tmp_path)
    assert caught.value.what == (
        "The folder holds a run with another index and another model and another question file."
    )
    assert f"model scripted ({before['model']}), now scripted (another)" in caught.value.where
    assert len(read_records(tmp_path).by_id) == 2


@pytest.mark.parametrize("name", ["preset", "index", "model", "question"])
def test_a_record_of_another_run_is_left_out_and_its_question_asked_again(
    index: Index, preset: Preset, tmp_path: Path, name: str
) -> None:
    run(index, questions(3), preset, model(), tmp_path)
    path = tmp_path / "records.jsonl"
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    record = lines[1]
    if name == "question":
        record["question"] = "Who wrote something else?"
    else:
        record["fingerprints"][name] = "another"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    progress, second_model = RecordingProgress(), model()
    outcome = run(index, questions(3), preset, second_model, tmp_path, progress=progress)
    assert (question_ids(second_model), outcome.tally.asked) == ([record["question_id"]], 1)
    assert progress.notes == [
        f"Records of another run are left out: {record['question_id']} (another {name}). "
        "Questions that are asked again for it: 1."
    ]
    assert len(path.read_bytes().splitlines()) == 4
    third_model = model()
    assert run(index, questions(3), preset, third_model, tmp_path).tally.asked == 0


def test_a_record_of_another_run_after_one_of_this_run_hides_nothing(
    index: Index, preset: Preset, tmp_path: Path
) -> None:
    run(index, questions(2), preset, model(), tmp_path)
    path = tmp_path / "records.jsonl"
    foreign = json.loads(path.read_bytes().splitlines()[0])
    foreign["fingerprints"]["index"] = "another"
    foreign["total_cost"] = -5.0
    with path.open("a") as file:
        file.write(json.dumps(foreign) + "\n")
    second_model = model()
    assert run(index, questions(2), preset, second_model, tmp_path).tally.asked == 0
    assert read_records(tmp_path).cost == 0


def test_a_folder_of_other_things_is_left_alone(
    index: Index, preset: Preset, tmp_path: Path
) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(RunError) as caught:
        run(index, questions(1), preset, model(), tmp_path)
    assert str(caught.value).startswith(
        f"The folder is not empty and holds no run: thesis.txt.\nWhere: {tmp_path}\n"
    )
    assert os.listdir(tmp_path) == ["thesis.txt"]


def test_two_runs_at_once_into_one_folder_are_refused(
    index: Index, preset: Preset, tmp_path: Path
) -> None:
    started, released = threading.Event(), threading.Event()

    def slow(request: ModelRequest) -> ModelReply:
        started.set()
        assert released.wait(PATIENCE_S)
        return search_then_answer(request)

    first = threading.Thread(
        target=run, args=(index, questions(2), preset, ScriptedModel(slow), tmp_path)
    )
    first.start()
    assert started.wait(PATIENCE_S)
    with pytest.raises(RunError) as caught:
        run(index, questions(2), preset, model(), tmp_path)
    released.set()
    first.join()
    assert str(caught.value).startswith(
        f"Another run is writing to the folder.\nWhere: {tmp_path}\n"
    )
    assert len(read_records(tmp_path).by_id) == 2


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (RunOptions(workers=0), "workers is 0.\nAllowed: 1 to 256"),
        (RunOptions(workers=257), "workers is 257.\nAllowed: 1 to 256"),
        (RunOptions(limit=0), "limit is 0.\nAllowed: 1 or more"),
    ],
)
def test_numbers_out_of_bounds_are_refused_before_anything_is_written(
    index: Index, preset: Preset, tmp_path: Path, options: RunOptions, text: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        run(index, questions(1), preset, model(), tmp_path / "out", options=options)
    assert str(caught.value) == text
    assert not (tmp_path / "out").exists()


def test_a_run_without_questions_is_refused(index: Index, preset: Preset, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError) as caught:
        run(index, [], preset, model(), tmp_path / "out")
    assert str(caught.value) == "There are no questions.\nAllowed: one or more"
    assert not (tmp_path / "out").exists()


# Models that refuse, and costs


def test_a_model_that_refuses_access_at_once_ends_the_run_without_a_trace(
    index: Index, preset: Preset, tmp_path: Path
) -> None:
    refusing = model(*(f"q{n}" for n in range(50)), error=ModelAccessError("The key is wrong."))
    with pytest.raises(ModelAccessError, match=r"^The key is wrong\.$"):
        run(index, questions(50), preset, refusing, tmp_path / "out",
            options=RunOptions(workers=2))  # fmt: skip
    assert 1 <= len(refusing.requests) <= 2
    assert os.listdir(tmp_path / "out") == []
    assert run(index, questions(2), preset, model(), tmp_path / "out").tally.answered == 2


def test_a_model_that_refuses_later_is_a_failed_question(
    index: Index, preset: Preset, tmp_path: Path
) -> None:
    refusing = model("q1", error=ModelAccessError("The key has expired."))
    assert run(index, questions(3), preset, refusing, tmp_path).tally.failed == 1


def test_costs_are_recorded_and_a_limit_begins_no_more_questions(
    index: Index, preset: Preset, tmp_path: Path
) -> None:
    options = RunOptions(max_cost_usd=3.5)
    outcome = run(index, questions(9), preset, model(), tmp_path, options=options, prices=PRICES)
    assert outcome.stopped == "cost"
    assert (outcome.tally.asked, outcome.tally.cost_usd) == (2, 4.0)
    assert {record.total_cost for record in read_records(tmp_path).by_id.values()} == {2.0}
    second_model = model()
    outcome = run(
        index, questions(9), preset, second_model, tmp_path, options=options, prices=PRICES
    )
    assert (outcome.stopped, outcome.tally.asked, question_ids(second_model)) == ("cost", 0, [])


def test_a_cost_limit_without_prices_is_refused(
    index: Index, preset: Preset, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError):
        run(index, questions(1), preset, model(), tmp_path, options=RunOptions(max_cost_usd=1))


def test_without_a_price_costs_are_unknown(index: Index, preset: Preset, tmp_path: Path) -> None:
    outcome = run(index, questions(1), preset, model(), tmp_path, prices=Prices({}))
    assert outcome.tally.cost_usd is None
    assert read_records(tmp_path).by_id["q0"].total_cost is None


# Broken records


def test_a_record_that_is_broken_in_the_middle_is_named(
    index: Index, preset: Preset, tmp_path: Path
) -> None:
    run(index, questions(3), preset, model(), tmp_path)
    path = tmp_path / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{}\n" + lines[2])
    with pytest.raises(RunError) as caught:
        run(index, questions(3), preset, model(), tmp_path)
    assert str(caught.value).startswith("A record cannot be read: answer, answer_short, ")
    assert caught.value.where == f"{path}, line 2"
    path.write_bytes(lines[0] + b"\0\0\0\n" + lines[2])
    with pytest.raises(RunError, match=r"^A record is not JSON "):
        read_records(tmp_path)


def test_a_broken_last_line_is_dropped_and_reported(
    index: Index, preset: Preset, tmp_path: Path
) -> None:
    run(index, questions(2), preset, model(), tmp_path)
    path = tmp_path / "records.jsonl"
    whole = path.read_bytes()
    for rest in (b'{"question_id": "q1"', b"\0\0\0"):
        path.write_bytes(whole + rest)
        assert set(read_records(tmp_path).by_id) == {"q0", "q1"}
        progress = RecordingProgress()
        run(index, questions(2), preset, model(), tmp_path, progress=progress)
        assert progress.notes == [
            f"The last record was incomplete: {len(rest)} bytes were dropped, and its question is "
            "asked again."
        ]
        assert path.read_bytes() == whole


def test_records_truncated_anywhere_and_resumed_equal_those_of_one_run(
    index: Index, preset: Preset, tmp_path: Path
) -> None:
    run(index, questions(8), preset, OfflineModel(), tmp_path / "whole")
    whole = (tmp_path / "whole" / "records.jsonl").read_bytes()
    expected = without_times(read_records(tmp_path / "whole").by_id)
    for size in random.Random(7).sample(range(len(whole)), 10):
        out = tmp_path / f"cut-{size}"
        out.mkdir()
        (out / "run.json").write_bytes((tmp_path / "whole" / "run.json").read_bytes())
        (out / "records.jsonl").write_bytes(whole[:size])
        record_count = whole[:size].count(b"\n")
        outcome = run(
            index, questions(8), preset, OfflineModel(), out, options=RunOptions(workers=2)
        )
        assert outcome.tally.asked == 8 - record_count
        assert without_times(read_records(out).by_id) == expected
        assert (out / "records.jsonl").read_bytes().count(b"\n") == 8


# Interrupted processes

CHILD = """
import os, signal, sys, time
from pathlib import Path
from arag_search.tools.preset_files import load_preset
from tests.support import runs
from arag_search.agent.models.offline import OfflineModel
from arag_search.runs.run import RunOptions, run

class Stopping(runs.RecordingProgress):
    def update(self, done, count, details=""):
        super().update(done, count, details)
        if done == int(sys.argv[3]):
            os.kill(os.getpid(), getattr(signal, sys.argv[2]))

class Slow(OfflineModel):
    def reply(self, request):
        time.sleep(0.01)
        return super().reply(request)

progress = Stopping()
index, preset = runs.index_of(*runs.TEXTS), load_preset("logical_read")
outcome = run(index, runs.questions(40), preset, Slow(), Path(sys.argv[1]),
              options=RunOptions(workers=3), progress=progress)
print(*progress.notes, sep="\\n")
print(outcome.stopped, outcome.tally.asked)
"""


def child(out: Path, action: str, moment: int) -> subprocess.Popen[str]:
    """Start a run of 40 questions that sends itself a signal after ``moment`` records."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(out), action, str(moment)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.server
def test_a_run_killed_at_any_record_and_resumed_equals_an_uninterrupted_one(
    index: Index, preset: Preset, tmp_path: Path
) -> None:
    run(index, questions(40), preset, OfflineModel(), tmp_path / "whole")
    expected = without_times(read_records(tmp_path / "whole").by_id)
    moments = some_of(random.Random(11).sample(range(1, 38), 10))
    children = {moment: child(tmp_path / f"{moment}", "SIGKILL", moment) for moment in moments}
    for moment, process in children.items():
        out = tmp_path / f"{moment}"
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        record_count = len(read_records(out).by_id)
        assert moment <= record_count < 40
        outcome = run(index, questions(40), preset, OfflineModel(), out)
        assert outcome.tally.asked == 40 - record_count
        assert without_times(read_records(out).by_id) == expected


@pytest.mark.server
def test_ctrl_c_finishes_questions_in_flight_and_begins_no_more(
    index: Index, preset: Preset, tmp_path: Path
) -> None:
    output, errors = child(tmp_path, "SIGINT", 5).communicate()
    note, last = output.splitlines()
    assert errors == ""
    assert note == (
        "Interrupted: finishing the questions in progress, and starting no more. Press Ctrl-C "
        "again to abandon them."
    )
    reason, record_count = last.split()
    assert reason == "interrupted"
    assert 5 <= int(record_count) <= 9
    assert len(read_records(tmp_path).by_id) == int(record_count)
    assert run(index, questions(40), preset, OfflineModel(), tmp_path).tally.answered == 40


# Reading in order


def test_the_cost_of_reading_in_order_is_estimated_before_the_first_question(
    index: Index, tmp_path: Path
) -> None:
    preset, progress = load_preset("memory_agent"), RecordingProgress()
    notes_before: list[list[str]] = []

    def script(request: ModelRequest) -> ModelReply:
        notes_before.append([*progress.notes])
        return ModelReply("Answer: Vivaldi")

    asked = ScriptedModel(script)
    run(index, questions(2), preset, asked, tmp_path, prices=PRICES, progress=progress)
    (note,) = notes_before[0]
    cost = re.fullmatch(
        r"memory_agent reads 2 passages for each question: 3 calls, with a full memory about "
        r"([\d,]+) tokens of requests and 10,000 of replies, \$(\d+\.\d\d) for 2 questions\.",
        note,
    )
    assert cost is not None
    dollars = 2 * int(cost[1].replace(",", "")) * 500 / 1_000_000
    assert float(cost[2]) == pytest.approx(dollars, abs=0.01)
    assert dollars > 2 * 10_000 * 500 / 1_000_000
    run(index, questions(2), preset, asked, tmp_path, progress=progress)
    assert progress.notes == [note]  # nothing is left to ask

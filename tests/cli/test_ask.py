"""The commands ask and view, as a user at a terminal sees them."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from arag_search.agent.loop import Agent
from arag_search.agent.models.base import ModelReply, ToolCall
from arag_search.agent.models.replay import RecordingModel
from arag_search.agent.prompts import preset_fingerprint
from arag_search.cli.app import run
from arag_search.errors import ModelAccessError
from arag_search.search.opening import open_index
from arag_search.tools.preset_files import load_preset
from tests.support.commands import SAMPLE, Command, CommandResult, file_of
from tests.support.endpoint import completion, running_endpoint
from tests.support.scripted_model import ScriptedModel

QUESTION = "Where did the man who revised the libretto of Vivaldi's Griselda die?"
NOTE = (
    "Built-in rules answered (offline), no language model. Set ARAG_MODEL and "
    "OPENAI_API_KEY, for another endpoint than OpenAI's also OPENAI_BASE_URL."
)
SECONDS = re.compile(r"\d+\.\d s")


def reply(name: str, text: str = "", **arguments: object) -> ModelReply:
    return ModelReply(text, (ToolCall("c", name, json.dumps(arguments)),))


SCRIPT = (
    reply("logical_search", "Find the opera.", query="title:griselda AND vivaldi", top_k=1),
    reply("chunk_read", chunk_ids=["goldoni.1"]),
    ModelReply("Answer: Paris\nExplanation: Goldoni died there.\nSources: goldoni.1"),
)
NOT_FOUND = (
    reply("logical_search", query="nothing"),
    ModelReply("Answer: not found in the corpus\nExplanation: It names no such man."),
)
WRONG = (ModelReply("Answer: Rome\nSources: rome.1"),)
REMEMBERED = (ModelReply("Answer: Paris"),)


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make a working folder with the index ``sample`` and files of recorded replies."""
    place = tmp_path_factory.mktemp("ask")
    with contextlib.chdir(place), contextlib.redirect_stdout(io.StringIO()):
        assert run(["index", SAMPLE, "--to", "sample", "--metadata", "year:number"]) == 0
        with open_index("sample") as index:
            for name, script in (
                ("good", SCRIPT),
                ("none", NOT_FOUND),
                ("wrong", WRONG),
                ("remembered", REMEMBERED),
            ):
                model = RecordingModel(ScriptedModel(script), f"{name}.replies")
                Agent(index, load_preset("logical_read"), model).ask(QUESTION)
                model.close()
        yield place


@pytest.fixture
def arag(arag: Command) -> Command:
    """Return a function that runs a command in this process and writes seconds as 0.0."""

    def call(*arguments: str) -> CommandResult:
        done = arag(*arguments)
        return CommandResult(
            done.code, SECONDS.sub("0.0 s", done.out), SECONDS.sub("0.0 s", done.err)
        )

    return call


# ask


def test_ask_prints_answer_evidence_and_totals(arag: Command) -> None:
    done = arag("ask", "sample", QUESTION, "--model", "replay:good.replies")
    assert (done.code, done.err) == (0, "")
    totals = done.out.splitlines()[-1]
    assert done.out.splitlines()[:-1] == [
        "Paris",
        "",
        "Goldoni died there.",
        "",
        "Evidence:",
        "[goldoni.1] Carlo Goldoni",
        "  ... He wrote and adapted librettos as well as plays, and in 1735 he revised an older "
        "text for Antonio Vivaldi. ... In 1762 he moved to Paris, where he wrote his memoirs in "
        "French and died on 6 February 1793.",
        "",
    ]
    assert re.fullmatch(
        r"2 steps, \d+ retrieved tokens; .*: [\d,]+ prompt and \d+ completion tokens "
        r"\(counted by us\); 0\.0 s",
        totals,
    )


def test_steps_are_shown_live_at_a_terminal(
    arag: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    done = arag("ask", "sample", QUESTION, "--model", "replay:good.replies")
    assert [re.sub(r"\d+ tokens", "N tokens", line) for line in done.err.splitlines()] == [
        " 1  logical_search  title:griselda AND vivaldi top_k=1  (1 of 2 hits, N tokens, 0.0 s)",
        " 2  chunk_read  goldoni.1  (1 read, N tokens, 0.0 s)",
    ]
    monkeypatch.setenv("COLUMNS", "40")
    done = arag("ask", "sample", QUESTION, "--model", "replay:good.replies")
    assert done.err.splitlines()[0] == " 1  logical_search  title:griselda A..."


def test_the_json_of_ask_is_the_record(arag: Command) -> None:
    command = ("ask", "sample", QUESTION, "--model", "replay:good.replies", "--json")
    record = arag(*command).json
    assert record["question_id"] == arag(*command).json["question_id"]
    assert record["question_id"].startswith("ask-")
    assert record["answer_short"] == "Paris"
    assert [step["tool_name"] for step in record["trajectory"]] == ["logical_search", "chunk_read"]


def test_the_cost_of_reading_in_order_is_said_first(arag: Command) -> None:
    done = arag("ask", "sample", QUESTION, "--preset", "memory_agent", "--model", "offline")
    assert done.code == 0
    assert re.match(r"memory_agent reads (\d+) passages for each question: \d+ calls, ", done.err)


def test_without_settings_plain_rules_answer_and_say_so(arag: Command) -> None:
    done = arag("ask", "sample", *QUESTION.split())
    assert (done.code, done.err) == (0, "")
    *_, totals, note = done.out.splitlines()
    assert ("; offline: " in totals, note) == (True, NOTE)
    assert arag("ask", "sample", QUESTION, "--model", "").out.endswith(f"\n{NOTE}\n")
    assert arag("ask", "sample", QUESTION, "--model", "offline").out.endswith(f"\n{NOTE}\n")


def test_the_json_of_ask_says_that_plain_rules_answered(arag: Command) -> None:
    assert arag("ask", "sample", QUESTION, "--json").json["note"] == NOTE


def test_a_wrongly_cited_answer_is_marked(arag: Command) -> None:
    done = arag("ask", "sample", QUESTION, "--model", "replay:wrong.replies")
    assert (done.code, done.out.splitlines()[:3]) == (
        0,
        ["Rome", "", "Wrongly cited, never shown to the model: rome.1."],
    )


def test_an_answer_without_a_search_is_marked_as_uncited(arag: Command) -> None:
    done = arag("ask", "sample", QUESTION, "--model", "replay:remembered.replies")
    assert (done.code, done.out.splitlines()[:3]) == (
        0,
        ["Paris", "", "Uncited: the answer names no passage that it rests on."],
    )


def test_an_answer_that_is_not_in_the_corpus_is_no_failure(arag: Command) -> None:
    done = arag("ask", "sample", QUESTION, "--model", "replay:none.replies")
    assert (done.code, done.out.splitlines()[:3]) == (
        0,
        ["not found in the corpus", "", "It names no such man."],
    )
    assert "Uncited" not in done.out


def test_a_question_that_fails_ends_with_1_and_its_cause(arag: Command) -> None:
    other = arag("ask", "sample", "Another question?", "--model", "replay:good.replies")
    assert (other.code, other.out) == (1, "")
    assert other.err.startswith("arag-search: The question failed. NotRecordedError: ")
    done = arag("ask", "sample", "Another question?", "--model", "replay:good.replies", "--json")
    assert (done.code, done.json["status"]) == (1, "failed")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "logic"], 'arag-search: There is no preset "logic".'),
        (["--base-url", "http://localhost:1/v1"], "arag-search: No model is named, but --base-url"),
        (["--filter", "colour:red"], "Query not run: 1 problem."),
    ],
)
def test_impossible_options_are_reported_before_the_question(
    arag: Command, arguments: list[str], message: str
) -> None:
    done = arag("ask", "sample", QUESTION, *arguments)
    assert done.code in (1, 2)
    assert done.out == ""
    assert done.err.startswith(message)


def test_a_filter_is_obeyed_by_every_step(arag: Command) -> None:
    done = arag("ask", "sample", QUESTION, "--filter", "doc_id:goldoni", "--json")
    assert {hit_id for step in done.json["trajectory"] for hit_id in step["hit_ids"]} <= {
        "goldoni.1"
    }
    assert done.json["fingerprints"]["index"].endswith(" in doc_id:goldoni")


# view


@pytest.fixture(scope="module")
def records(folder: Path) -> str:
    """Write the records of three questions to a folder, and return it. The first question failed,
    and was asked again."""
    place = folder / "asked"
    place.mkdir()
    failed_script = [ModelAccessError("The key was refused.")]
    wrong_script = [reply("logical_search", query="a OR NOT b"), ModelReply("Rome")]
    with open_index("sample") as index, (place / "records.jsonl").open("wb") as file:
        for name, script in (
            ("q1", failed_script),
            ("q2", failed_script),
            ("q3", wrong_script),
            ("q1", SCRIPT),
        ):
            agent = Agent(index, load_preset("logical_read"), ScriptedModel(script))
            file.write(agent.ask(QUESTION, name).to_line())
    return str(place)


def test_view_prints_a_trajectory_step_by_step(arag: Command, records: str) -> None:
    lines = arag("view", records, "q1").out.splitlines()
    assert lines[:6] == [
        f"Question q1: {QUESTION}",
        "",
        "Find the opera.",
        "> logical_search title:griselda AND vivaldi top_k=1",
        "1 of 2 passages",
        "[griselda-vivaldi.1] Griselda (Vivaldi) (whole document)",
    ]
    start = lines.index("Answer, as the model wrote it:")
    assert lines[start + 1 : start + 6] == [
        *SCRIPT[-1].text.splitlines(),
        "  (cites goldoni.1, all of them shown)",
        "",
    ]
    assert lines[start + 6].startswith("2 steps, ")
    assert lines[-1] == f"Preset {preset_fingerprint(load_preset('logical_read'))}, answered."


def test_view_says_why_a_question_failed_and_what_was_refused(arag: Command, records: str) -> None:
    failed = arag("view", records, "q2")
    assert failed.code == 0
    assert "\nFailed: ModelAccessError: The key was refused.\n" in failed.out
    refusal_text = arag("view", records, "q3").out
    assert re.search(r"\(step 1: error, refused, 0 retrieved of \d+ tokens, 0\.0 s\)", refusal_text)
    assert "(Uncited: the answer names no passage that it rests on.)" in refusal_text


def test_view_reads_a_record_without_fingerprints(arag: Command, records: str) -> None:
    place = Path("without")
    place.mkdir()
    record = json.loads((Path(records) / "records.jsonl").read_bytes().splitlines()[-1])
    (place / "records.jsonl").write_text(json.dumps({**record, "fingerprints": {}}) + "\n")
    done = arag("view", "without", "q1")
    assert done.code == 0
    assert "retrieved tokens; unknown model: " in done.out


def test_view_prints_the_record_as_json(arag: Command, records: str) -> None:
    assert arag("view", records, "q3", "--json").json["answer"] == "Rome"


def test_an_unknown_question_or_folder_is_reported(arag: Command, records: str) -> None:
    assert arag("view", records, "q9") == CommandResult(
        1,
        "",
        'arag-search: No record has the question id "q9".\n'
        f"Where: {records}/records.jsonl\n"
        "Allowed: q1, q2, q3\n",
    )
    assert arag("view", "sample", "q1") == CommandResult(
        1,
        "",
        "arag-search: There are no records.\n"
        "Where: sample/records.jsonl\n"
        "Allowed: the folder given to run --out\n",
    )


def test_requests_that_the_server_cuts_and_cached_tokens_are_told_by_every_command(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    usage = {
        "prompt_tokens": 700,
        "completion_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 600},
        "completion_tokens_details": {"reasoning_tokens": 40},
    }
    replies = (
        completion(None, ("logical_search", '{"query": "vivaldi OR venice"}'), usage=usage),
        completion("Answer: Paris", usage=usage),
    )
    warning = "the endpoint reports 700 prompt tokens where we count "
    with running_endpoint() as endpoint:
        at = ("--model", "m", "--base-url", endpoint.base_url)
        endpoint.reply_with(*replies)
        asked = arag("ask", "sample", QUESTION, *at)
        endpoint.reply_with(*replies)
        shown = arag("ask", "sample", QUESTION, *at, "--json")
        questions = file_of("cut.jsonl", {"id": "q1", "question": QUESTION, "answer": "Paris"})
        run = ("run", "sample", questions, *at)
        endpoint.reply_with(*replies)
        full = arag(
            *run, "--out", "full", "--prices", file_of("p", "m: {prompt: 1, completion: 2}")
        )
        endpoint.reply_with(*replies)
        own = file_of("p", "m: {prompt: 1, completion: 2, cached: 0.1}")
        priced = arag(*run, "--out", "priced", "--prices", own)
    assert [done.code for done in (asked, shown, full, priced)] == [0] * 4
    assert all(done.err.count(warning) == 1 for done in (asked, shown, full, priced))
    assert "1,400 prompt (1,200 cached) and 100 completion tokens (80 of thoughts)" in asked.out
    record = shown.json
    assert record["usage"] == {
        "prompt_tokens": 1_400, "completion_tokens": 100, "source": "endpoint",
        "cached_tokens": 1_200, "reasoning_tokens": 80,
    }  # fmt: skip
    assert warning in record["usage_warning"]
    first, second = record["requests"]
    assert first["reported"] == second["reported"] == 700 < first["counted"] < second["counted"]
    assert "$0.0016 (1,200 cached tokens at full price)" in full.out
    assert "$0.0005," in priced.out
    assert warning in arag("score", "full").out
    assert warning in arag("view", "full", "q1").out


def test_a_model_that_answers_in_place_of_another_is_told_once_by_every_command(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    warning = "Another model answered than the one that was asked: m.\n"
    lines = [{"id": f"q{at}", "question": QUESTION, "answer": "Paris"} for at in range(3)]
    with running_endpoint() as endpoint:
        at = ("--model", "gpt-4o", "--base-url", endpoint.base_url)
        endpoint.reply_with(completion("Answer: Paris"))
        asked = arag("ask", "sample", QUESTION, *at)
        run = arag("run", "sample", file_of("other.jsonl", *lines), *at, "--out", "other")
    assert (asked.code, run.code) == (0, 0)
    assert asked.err.count(warning) == run.err.count(warning) == 1
    assert arag("score", "other").out.count(warning.strip()) == 1
    assert warning in arag("view", "other", "q1").out
    assert arag("view", "other", "q1", "--json").json["other_models"] == ["m"]

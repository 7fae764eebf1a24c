"""The commands run and score, as someone at a terminal meets them."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from arag_search.agent.run import Tally
from arag_search.cli.app import run
from arag_search.cli.run_progress import PlainRunProgress, TerminalRunProgress
from tests.commands import Command

pytestmark = pytest.mark.engine

SAMPLE = files("arag_search") / "sample"
QUESTIONS = str(SAMPLE / "questions.jsonl")
OFFLINE = ("--preset", "logical_read", "--model", "offline")


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working folder with the index ``sample`` and prices."""
    place = tmp_path_factory.mktemp("run")
    with contextlib.chdir(place), contextlib.redirect_stdout(io.StringIO()):
        assert run(["index", str(SAMPLE / "corpus.jsonl"), "--to", "sample"]) == 0
        Path("prices.yaml").write_text("offline: {prompt: 1, completion: 1}\n")
        yield place


def steady(text: str) -> str:
    """The text without what depends on the machine and the model's prompts."""
    return re.sub(r"[\d,]+ tokens|\$[\d.]+|\d+ s\b", "#", text)


def test_run_answers_all_questions_and_score_reads_them(arag: Command) -> None:
    done = arag("run", "sample", QUESTIONS, *OFFLINE, "--out", "all", "--workers", "2",
                "--prices", "prices.yaml")  # fmt: skip
    assert (done.code, steady(done.out), done.err) == (
        0,
        "12 questions: 12 answered, 0 failed, #, #, #.\nNext: arag-search score all\n",
        "",
    )
    scored = arag("score", "all")
    lines = scored.out.splitlines()
    assert lines[0] == "logical_read, model offline, index sample"
    assert lines[1].split() == [
        "questions", "EM", "F1", "Contain-Acc", "evidence", "refused", "failed", "missing",
        "tokens", "steps", "seconds",
    ]  # fmt: skip
    assert [line.split()[:2] for line in lines[2:]] == [
        ["all", "12"], ["comparison", "2"], ["compositional", "9"], ["inference", "1"],
    ]  # fmt: skip
    found = arag("score", "all", "--json").json
    assert sorted(found) == ["notes", "questions", "rows", "run"]
    assert found["rows"][0]["exact_match"] == pytest.approx(
        sum(one["exact_match"] for one in found["questions"]) / 12
    )
    assert sum(one["exact_match"] for one in found["questions"]) >= 3
    assert all(one["cost_usd"] > 0 for one in found["questions"])


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


def test_a_run_that_reaches_its_cost_says_how_to_go_on(arag: Command) -> None:
    done = arag("run", "sample", QUESTIONS, *OFFLINE, "--out", "a folder", "--prices",
                "prices.yaml", "--max-cost", "0.000001")  # fmt: skip
    assert done.code == 1
    assert steady(done.out).startswith("12 questions: 1 answered, 0 failed, #, #, #.\n")
    assert done.err == (
        "Stopped at --max-cost, 11 left. Go on with a higher one: arag-search run sample "
        f"{QUESTIONS} --out 'a folder' --preset logical_read --model offline "
        "--prices prices.yaml --max-cost 1e-06\n"
    )


def test_failed_questions_are_told_and_the_exit_code_is_1(arag: Command) -> None:
    Path("none.replies").write_bytes(b"")
    given = ("run", "sample", QUESTIONS, "--preset", "logical_read", "--model",
             "replay:none.replies", "--out", "failed", "--limit", "2")  # fmt: skip
    done = arag(*given)
    assert done.code == 1
    assert steady(done.out).startswith("2 questions: 0 answered, 2 failed, #, #.\n")
    assert done.err == f"2 failed. Ask them again with: arag-search {' '.join(given)}\n".replace(
        "--preset logical_read --model replay:none.replies --out failed",
        "--out failed --preset logical_read --model replay:none.replies",
    )
    assert arag("score", "failed").out.splitlines()[2].split()[:5] == [
        "all", "2", "0.000", "0.000", "0.000",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "x"], "arag-search: Missing option '--preset'"),
        (["--out", "x", "--preset", "nothing"], 'arag-search: There is no preset "nothing".'),
        (["--out", "x", "--preset", "logical_read"], "arag-search: No model is named."),
        (["--out", "x", *OFFLINE, "--workers", "0"], "arag-search: workers is 0."),
        (["--out", "x", *OFFLINE, "--limit", "0"], "arag-search: limit is 0."),
        (["--out", "x", *OFFLINE, "--max-cost", "1"], "arag-search: A cost limit needs the price"),
        (["--out", "x", *OFFLINE, "--filter", "colour:red"], "Query not run: 1 problem."),
    ],
)
def test_what_cannot_run_is_refused_before_a_folder_is_made(
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
def test_ctrl_c_ends_with_130_and_the_command_to_go_on(
    arag: Command, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    def interrupted(self: PlainRunProgress, tally: Tally) -> None:
        if tally.asked == moment:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(PlainRunProgress, "update", interrupted)
    out = f"stopped-{moment}"
    done = arag("run", "sample", QUESTIONS, *OFFLINE, "--out", out)
    assert done.code == 130
    assert re.sub(r"\d+ left", "# left", done.err).splitlines() == [
        "Interrupted: questions in flight are finished, no more are begun. Ctrl-C again leaves "
        "them.",
        f"Interrupted, # left. Go on with: arag-search run sample {QUESTIONS} --out {out} "
        "--preset logical_read --model offline",
    ]


# Progress


def test_plain_progress_writes_a_line_with_all_figures() -> None:
    stream = io.StringIO()
    shown = PlainRunProgress(stream, interval_s=0)
    shown.update(Tally(400))
    shown.update(Tally(400, 99, 1, 50, 1_000_000, 2_000, cost_usd=0.25, seconds=10))
    shown.end()
    assert stream.getvalue() == (
        "0 of 400: 0 answered, 0 failed, 0 tokens, ? left\n"
        "100 of 400: 99 answered, 1 failed, 1,002,000 tokens, $0.2500, 1 min 0 s left\n"
    )


def test_plain_progress_is_quiet_between_its_lines() -> None:
    stream = io.StringIO()
    shown = PlainRunProgress(stream, interval_s=60)
    for asked in range(100):
        shown.update(Tally(400, asked, asked=asked))
    assert stream.getvalue() == ""


def test_a_terminal_gets_one_bar_that_is_taken_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    shown = TerminalRunProgress()
    shown.note("before")
    shown.update(Tally(4))
    shown.note("in [between]")
    shown.update(Tally(4, 1, 1, 2, seconds=8.0))
    shown.end()
    shown.end()
    text = terminal.getvalue()
    assert text.startswith("before\n")
    assert "in [between]" in text
    assert "1 answered, 1 failed, 0 tokens" in text

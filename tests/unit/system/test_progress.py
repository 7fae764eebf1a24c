"""The progress of long work, in plain lines and as a bar."""

import io
import sys

import pytest

from arag_search.system.progress import PlainProgress, TerminalProgress, duration


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_plain_lines_show_share_count_rate_details_and_time_left(clock: list[float]) -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream)
    progress.begin("documents", 1000, 100)
    progress.update(100, 50, "0.1 MB")
    clock[0] += 10
    progress.update(400, 1050, "0.4 MB")
    progress.update(500, 1100, "0.5 MB")
    clock[0] += 10
    progress.update(1000, 2050, "1.0 MB  1,000 rejected, 2 retries")
    progress.end()
    assert stream.getvalue().splitlines() == [
        " 40%  1,050 documents  100/s  0.4 MB  20 s left",
        "100%  2,050 documents  100/s  1.0 MB  1,000 rejected, 2 retries  0 s left",
    ]


def test_slow_work_is_counted_by_the_minute(clock: list[float]) -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream, interval_s=0)
    progress.begin("of 400 questions", 400, 98, 98)
    progress.update(98, 98)
    clock[0] += 10
    progress.update(100, 100, "99 answered, 1 failed")
    assert stream.getvalue().splitlines() == [
        " 24%  98 of 400 questions  0/s  ? left",
        " 25%  100 of 400 questions  12.0/min  99 answered, 1 failed  25 min 0 s left",
    ]


def test_no_plain_line_is_printed_within_the_interval_or_for_short_stages(
    clock: list[float],
) -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream, interval_s=60)
    progress.begin("documents", 400)
    for count in range(100):
        progress.update(count, count)
    progress.stage("reading passages", 3, 9)
    assert stream.getvalue() == ""
    clock[0] += 61
    progress.stage("reading passages", 4, 9)
    progress.stage("reading passages", 5, 9)
    progress.stage("training sentence", 0, 1)
    assert stream.getvalue().splitlines() == [
        "reading passages: 4 of 9",
        "training sentence: 0 of 1",
    ]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _terminal(monkeypatch: pytest.MonkeyPatch) -> _Terminal:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    return terminal


def test_a_terminal_gets_a_bar_that_is_removed_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _terminal(monkeypatch)
    progress = TerminalProgress()
    progress.note("before")
    progress.begin("of 4 questions", 4, 0, 0)
    progress.note("in [between]")
    progress.update(2, 2, "1 answered, 1 failed, 0 tokens")
    progress.end()
    progress.end()
    text = terminal.getvalue()
    assert text.startswith("before\n")
    assert "in [between]" in text
    assert "2 of 4 questions" in text
    assert "1 answered, 1 failed, 0 tokens" in text


def test_a_terminal_shows_a_stage_that_comes_before_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = _terminal(monkeypatch)
    progress = TerminalProgress()
    progress.stage("reading passages", 1_000, 4_000)
    progress.end()
    text = terminal.getvalue()
    assert "reading passages: 1,000 of 4,000" in text
    assert "25%" in text


def test_durations_are_written_with_units() -> None:
    assert [duration(seconds) for seconds in (59, 200, 7500)] == ["59 s", "3 min 20 s", "2 h 5 min"]

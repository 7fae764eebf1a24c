"""Calls over HTTP in the log and in OpenTelemetry."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from opentelemetry import trace

from arag_search.mcp_server import calls
from arag_search.mcp_server.calls import (
    QUERY_CHARACTERS,
    ServedCall,
    log_lines,
    query_of,
    report_call,
)
from arag_search.system.calls import current_call

Lines = Callable[[], list[str]]
FORGED = 'vivaldi"\n2026-01-01 INFO call id=1\u2028x\x1b[2J\x85'


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Iterator[Lines]:
    """Provide the lines on standard error, and undo what is done to the log."""
    before = [*logging.root.handlers]
    yield lambda: capsys.readouterr().err.splitlines()
    for handler in {*logging.root.handlers}.difference(before):
        logging.root.removeHandler(handler)
    logging.getLogger(calls.__name__).setLevel(logging.NOTSET)


def made_call(query: str = "") -> ServedCall:
    named = ("Ann B", "logical_search", "wiki", query)
    return ServedCall("ab12", 2, *named, queue_ms=0, ms=250, outcome="error", tokens=2)


def test_a_line_of_text_has_the_fields_and_no_text_of_a_client_begins_one(lines: Lines) -> None:
    log_lines(as_json=False)
    report_call(made_call())
    report_call(made_call(FORGED))
    report_call(made_call(FORGED), with_query=True)
    line, without_query, with_query = lines()
    moment, _, rest = line.partition(" ")
    assert datetime.fromisoformat(moment).tzinfo == UTC
    assert rest == (
        'INFO call id="ab12" round_trips=2 token="Ann B" tool="logical_search" index="wiki" '
        'queue_ms=0 ms=250 outcome="error" tokens=2'
    )
    assert without_query.endswith(rest)
    assert r'query="vivaldi\"\n2026-01-01 INFO call id=1\x2028x\u001b[2J\x85"' in with_query


def test_a_line_of_json_has_the_same_fields(lines: Lines) -> None:
    log_lines(as_json=True)
    report_call(made_call(FORGED), with_query=True)
    (line,) = lines()
    read = json.loads(line)
    assert (read["message"], read["id"], read["round_trips"]) == ("call", "ab12", 2)
    assert (read["query"], read["outcome"], read["level"]) == (FORGED, "error", "INFO")


@pytest.mark.parametrize(
    ("arguments", "query"),
    [
        ({"query": "ü" * 300, "filter": "acl:hr"}, "ü" * QUERY_CHARACTERS),
        ({"queries": ["a", "b"]}, "['a', 'b']"),
        ({"chunk_ids": ["a"], "token": "secret"}, ""),
    ],
)
def test_a_query_is_cut_and_no_other_argument_is_one(
    arguments: dict[str, object], query: str
) -> None:
    assert query_of(arguments) == query


@pytest.mark.parametrize("as_json", [False, True])
def test_a_traceback_has_the_id_of_its_call(as_json: bool, lines: Lines) -> None:
    log_lines(as_json=as_json)
    context = current_call.set(made_call())
    try:
        raise ZeroDivisionError(FORGED)
    except ZeroDivisionError:
        logging.getLogger("x").exception("A request failed: %s", FORGED)
    current_call.reset(context)
    first, *more = lines()
    assert "ab12" in first
    assert "ZeroDivisionError" in "".join([first, *more])
    assert all(line.startswith("    ") for line in more)
    assert not (as_json and more)


def test_a_call_is_a_span_with_the_same_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    spans: list[tuple[str, dict[str, object], int]] = []

    class Tracer(trace.NoOpTracer):
        def start_span(self, name: str, **more: Any) -> trace.Span:
            spans.append((name, more["attributes"], more["start_time"]))
            return trace.INVALID_SPAN

    monkeypatch.setattr(trace, "get_tracer", lambda _: Tracer())
    call = made_call()
    report_call(call)
    ((name, attributes, begun_ns),) = spans
    assert (name, attributes) == ("call logical_search", call.fields())
    assert time.time_ns() - begun_ns >= 250_000_000

"""Calls over HTTP as operators see them: a line of the log and a span for each.

A line has neither filters nor tokens, and a query only if that is asked for. No text of a client
can begin a line.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from arag_search.errors import on_one_line
from arag_search.system.calls import Call, current_call

QUERY_CHARACTERS = 200
_QUERIES = ("query", "queries", "keywords", "patterns", "question")
"""The arguments of tools that a line shows as the query."""
_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class ServedCall(Call):
    """A call over HTTP: whose it is, what it asks, and what became of it."""

    token: str = ""
    tool: str = ""
    index: str = ""
    query: str = ""
    queue_ms: int | None = None
    ms: int = 0
    hits: int | None = None
    outcome: str = "cancelled"
    tokens: int = 0

    def fields(self) -> dict[str, Any]:
        """Return what is known of the call, by name."""
        return {name: value for name, value in asdict(self).items() if value not in (None, "")}


def served_call() -> ServedCall:
    """Return the call that is being answered or, outside of HTTP, a call that nobody reads."""
    call = current_call.get()
    return call if isinstance(call, ServedCall) else ServedCall("")


def query_of(arguments: Mapping[str, object]) -> str:
    """Return the beginning of what a call of a tool searches for."""
    asked = next((arguments[name] for name in _QUERIES if name in arguments), "")
    return str(asked)[:QUERY_CHARACTERS]


def report_call(
    call: ServedCall,
    *,
    with_query: bool = False,
    note: Callable[[ServedCall], None] | None = None,
) -> None:
    """Write the line of a call that has ended, and its span, after ``note``."""
    from opentelemetry import trace  # which the SDK brings

    if note is not None:
        note(call)
    call.query = call.query if with_query else ""
    fields, ended_ns = call.fields(), time.time_ns()
    _logger.info("call", extra={"call": fields})
    begun_ns = ended_ns - 1_000_000 * call.ms
    tracer = trace.get_tracer("arag_search")
    tracer.start_span(f"call {call.tool}", attributes=fields, start_time=begun_ns).end(ended_ns)


def log_lines(*, as_json: bool) -> None:
    """Write the log of this process in lines of text or of JSON: warnings, and all calls."""
    handler = logging.StreamHandler()
    handler.setFormatter(lines := _Lines())
    lines.as_json = as_json
    logging.root.addHandler(handler)
    _logger.setLevel(logging.INFO)


class _Lines(logging.Formatter):
    """The form of the log. In a text, further lines of a message are indented."""

    default_time_format, default_msec_format = "%Y-%m-%dT%H:%M:%S", "%s.%03dZ"
    converter = time.gmtime
    as_json = False

    def format(self, record: logging.LogRecord) -> str:
        head = (self.formatTime(record), record.levelname, record.getMessage())
        id_ = {"id": served_call().id} if served_call().id else {}
        fields: dict[str, Any] = getattr(record, "call", id_)
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        if self.as_json:
            head = dict(zip(("time", "level", "message"), head, strict=True))
            return json.dumps(head | fields | ({"traceback": trace} if trace else {}))
        shown = partial(json.dumps, ensure_ascii=False)
        named = [f"{name}={shown(value)}" for name, value in fields.items()]
        first, *more = f"{' '.join(head)}\n{trace}".rstrip().splitlines()
        return "\n    ".join(map(on_one_line, [" ".join([first, *named]), *more]))

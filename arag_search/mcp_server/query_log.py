"""The log of the queries of a server, and its summary: what an owner reads to mend a corpus."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from arag_search.errors import SourceError
from arag_search.system.durable import naming

LISTED = 20
"""How many queries each list of a summary has at most."""
_MS = 1_000
_logger = logging.getLogger(__name__)


class QueryLog:
    """A file of JSON lines, a line a search, that only its owner can read.

    A line has the ``time`` (UTC), the ``index`` ("" if there is one), the ``tool``, the ``query``
    as understood, its ``total`` (null without one), whether it ``matched`` and its ``ms`` from
    request to reply.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, to add to it. Raises OSError that names it."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(path, flags, 0o600)
        with naming(path):
            os.fchmod(self._descriptor, 0o600)

    def note(self, params: Mapping[str, Any], numbers: Mapping[str, Any], began: float) -> None:
        """Add a line for a call with these ``params`` and the ``numbers`` of its result, if it was
        a search that was understood; it ``began`` at this ``time.perf_counter()``. What cannot be
        written is a warning: a full disk ends no search."""
        if not numbers.get("understood"):
            return
        total = numbers["total"]
        arguments: Mapping[str, Any] = params.get("arguments") or {}
        line = {
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "index": str(arguments.get("index", "")),
            "tool": params.get("name"),
            "query": numbers["understood"],
            "total": total,
            "matched": bool(total) if total is not None else numbers["status"] == "ok",
            "ms": round((time.perf_counter() - began) * _MS, 1),
        }
        try:
            os.write(self._descriptor, orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        except OSError as error:
            _logger.warning("The query cannot be logged (%s).", error.strerror)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


@dataclass(slots=True)
class LoggedQuery:
    """A query of a log: how often it was searched, its last total, and its longest time."""

    query: str
    index: str
    times: int = 0
    total: int | None = None
    matched: bool = False
    max_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class LogSummary:
    """The ``searches`` of a log and how many of them matched nothing, lines that are none, and at
    most LISTED queries each: the commonest, those whose last search matched nothing, the
    slowest."""

    searches: int
    without_results: int
    bad_lines: int
    commonest: tuple[LoggedQuery, ...]
    empty: tuple[LoggedQuery, ...]
    slowest: tuple[LoggedQuery, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON values."""
        return asdict(self)

    def to_text(self) -> str:
        """Return the summary as lines for people."""
        bad = f", {self.bad_lines:,} lines that are none" if self.bad_lines else ""
        lines = [f"{self.searches:,} searches, {self.without_results:,} without results{bad}"]
        lists = {"Commonest": self.commonest, "Without results": self.empty}
        for title, queries in (lists | {"Slowest": self.slowest}).items():
            lines += ["", title, *map(_line, queries)] if queries else []
        return "\n".join(lines)


def summary(path: Path) -> LogSummary:
    """Sum up a log. Raises OSError, and SourceError for a file without a line of a log."""
    queries: dict[tuple[str, str], LoggedQuery] = {}
    searches = without = bad = 0
    with path.open("rb") as file:
        for line in file:
            try:
                value = orjson.loads(line)
                key = (str(value["index"]), str(value["query"]))
                total, matched, ms = value["total"], bool(value["matched"]), float(value["ms"])
            except (ValueError, KeyError, TypeError):
                bad += 1
                continue
            query = queries.setdefault(key, LoggedQuery(key[1], key[0]))
            query.times += 1
            query.total, query.matched = total, matched
            query.max_ms = max(query.max_ms, ms)
            searches += 1
            without += not matched
    if bad and not searches:
        raise SourceError(
            "The file is no log of queries.",
            where=str(path),
            allowed="what arag-search mcp --log-queries FILE writes",
        )
    by_times = sorted(queries.values(), key=lambda query: (-query.times, query.query))
    by_time = sorted(queries.values(), key=lambda query: -query.max_ms)
    empty = (query for query in by_times if not query.matched)
    return LogSummary(searches, without, bad, _first(by_times), _first(empty), _first(by_time))


def _first(queries: Iterable[LoggedQuery]) -> tuple[LoggedQuery, ...]:
    return tuple(query for query, _ in zip(queries, range(LISTED), strict=False))


def _line(query: LoggedQuery) -> str:
    total = "" if query.total is None else f"{query.total:,} matches, "
    index = f"{query.index}: " if query.index else ""
    return f"  {query.times:>5,}x  {index}{query.query}  ({total}at most {query.max_ms:,.0f} ms)"

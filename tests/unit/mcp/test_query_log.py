"""The log of a server's queries, and its summary."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession

from arag_search.agent.presets import load_preset
from arag_search.cli.app import run
from arag_search.errors import SourceError
from arag_search.mcp_server.protocol import log_searches
from arag_search.mcp_server.query_log import LISTED, QueryLog, summary
from tests.support.mcp_servers import LocalServer


def logged(path: Path, *calls: tuple[str, dict[str, object]], preset: str = "logical_read") -> Any:
    """Return the lines of the log of a server after these calls."""
    served = LocalServer(preset=load_preset(preset))
    log = QueryLog(path)
    log_searches(served.server, log)

    async def talk(client: ClientSession) -> None:
        for name, arguments in calls:
            await client.call_tool(name, arguments)

    served.serve(talk)
    log.close()
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_searches_are_logged_as_understood_and_nothing_else(tmp_path: Path) -> None:
    lines = logged(
        tmp_path / "log",
        ("logical_search", {"query": "griselda AND year:1721"}),
        ("logical_search", {"query": "griselda AND zzz"}),
        ("logical_search", {"query": "(griselda"}),
        ("chunk_read", {"chunk_ids": ["scarlatti.1"]}),
        ("words", {"words": ["griselda"]}),
    )
    assert [(line["query"], line["total"], line["matched"]) for line in lines] == [
        ("(griselda AND year:1721)", 1, True),
        ("(griselda AND zzz)", 0, False),
    ]
    assert {line["tool"] for line in lines} == {"logical_search"}
    assert {line["index"] for line in lines} == {""}
    assert all(line["ms"] > 0 and line["time"].endswith("+00:00") for line in lines)


def test_searches_of_connectors_are_logged(tmp_path: Path) -> None:
    [line] = logged(tmp_path / "a", ("search", {"query": "griselda"}), preset="connector")
    assert (line["query"], line["matched"]) == ("griselda", True)


def test_only_the_owner_reads_the_file_and_a_link_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("")
    path.chmod(0o644)
    QueryLog(path).close()
    assert path.stat().st_mode & 0o777 == 0o600
    os.symlink(path, tmp_path / "link")
    with pytest.raises(OSError, match="link"):
        QueryLog(tmp_path / "link")


def test_a_line_that_cannot_be_written_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = QueryLog(tmp_path / "log")
    log.close()
    numbers = {"understood": "a", "total": 1, "status": "ok"}
    log.note({"name": "logical_search"}, numbers, 0.0)
    assert "The query cannot be logged" in caplog.text


def line(query: str, *, total: int | None = 1, ms: float = 1.0, index: str = "") -> str:
    matched = bool(total)
    return json.dumps(
        {"index": index, "query": query, "total": total, "matched": matched, "ms": ms}
    )


def test_a_log_is_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log"
    lines = [*[line("opera")] * 3, line("zzz", total=0), line("zzz", total=0), "{", "[]"]
    lines += [line("slow", ms=1234.5), line("opera", index="notes")]
    path.write_text("\n".join(lines) + "\n")
    assert run(["queries", str(path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "7 searches, 2 without results, 2 lines that are none",
        "",
        "Commonest",
        "      3x  opera  (1 matches, at most 1 ms)",
        "      2x  zzz  (0 matches, at most 1 ms)",
        "      1x  notes: opera  (1 matches, at most 1 ms)",
        "      1x  slow  (1 matches, at most 1,234 ms)",
        "",
        "Without results",
        "      2x  zzz  (0 matches, at most 1 ms)",
        "",
        "Slowest",
        "      1x  slow  (1 matches, at most 1,234 ms)",
        "      3x  opera  (1 matches, at most 1 ms)",
        "      2x  zzz  (0 matches, at most 1 ms)",
        "      1x  notes: opera  (1 matches, at most 1 ms)",
    ]
    assert run(["queries", str(path), "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert (described["searches"], described["without_results"]) == (7, 2)
    assert [query["query"] for query in described["empty"]] == ["zzz"]


def test_lists_are_bounded_and_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join(line(f"q{n}") for n in range(2 * LISTED)))
    assert len(summary(path).commonest) == LISTED
    path.write_text("")
    assert summary(path).searches == 0
    path.write_text("opera\n")
    with pytest.raises(SourceError, match="no log of queries"):
        summary(path)

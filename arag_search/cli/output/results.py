"""Results as JSON, and how they are printed."""

from __future__ import annotations

import json
import sys
from typing import Any

import orjson

from arag_search.errors import QueryTimeoutError
from arag_search.query.problems import QueryError
from arag_search.search.results import SearchHit, SearchResult


def print_json(value: object, *, pretty: bool = False) -> None:
    """Print one JSON value to stdout, on one line unless ``pretty``."""
    option = orjson.OPT_APPEND_NEWLINE | (orjson.OPT_INDENT_2 if pretty else 0)
    try:
        written = orjson.dumps(value, option=option)
    except TypeError:  # a name that is not UTF-8, given on the command line
        written = json.dumps(value, indent=2 if pretty else None).encode() + b"\n"
    print_bytes(written)


def print_bytes(data: bytes) -> None:
    """Write UTF-8 to stdout at once."""
    if sys.stdout.isatty():  # as text, so that it is shown and not obeyed
        print_text(data.decode("utf-8", "replace").removesuffix("\n"))
        sys.stdout.flush()
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def print_text(text: str) -> None:
    """Print text to stdout; characters that the terminal cannot show are replaced."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")


def result_json(result: SearchResult, query_id: str | None = None) -> dict[str, Any]:
    """Convert a search result to the JSON of the command line."""
    return {**({} if query_id is None else {"id": query_id}), **result.to_dict()}


def problems_json(error: QueryError, offset: int, query_id: str | None = None) -> dict[str, Any]:
    """Convert a refused query to the same JSON: no hits, its problems, and the corrected query."""
    return {
        **({} if query_id is None else {"id": query_id}),
        "query": error.query,
        "understood": None,
        "total": 0,
        "total_is_exact": True,
        "total_text": "0",
        "total_unit": "passages",
        "offset": offset,
        "hits": [],
        "notes": [],
        "problems": problem_list(error),
        "mended": error.mended,
        "feedback": None,
        "retrieved_tokens": 0,
        "milliseconds": 0.0,
    }


def stopped_json(
    error: QueryTimeoutError, query: str | tuple[str, ...], offset: int, query_id: str
) -> dict[str, Any]:
    """Convert a query that timed out to the same JSON: no total and no hits, but the error."""
    text = query if isinstance(query, str) else ", ".join(f'"{keyword}"' for keyword in query)
    refused = problems_json(QueryError(text, (), None), offset, query_id)
    del refused["mended"]
    return {
        **refused,
        "total": None,
        "total_is_exact": False,
        "total_text": "unknown",
        "error": str(error),
    }


def problem_list(error: QueryError) -> list[dict[str, Any]]:
    """Return all problems of a query."""
    return [
        {"column": problem.column, "piece": problem.piece, "message": problem.message}
        for problem in error.problems
    ]


def explanation_text(hits: tuple[SearchHit, ...]) -> str:
    """Format scores by leaf and field, one hit after another."""
    lines = ["", "Scores:"]
    for hit in hits:
        lines.append(f"[{hit.id}] {hit.score:.4f}")
        for leaf in hit.explanation or ():
            parts = ", ".join(f"{name} {score:.4f}" for name, score in leaf.scores.items())
            lines.append(f"  {leaf.leaf}: {parts or 'no match'}")
        lines += [f"  lowered by {clause}" for clause in hit.lowered]
    return "\n".join(lines)

"""Results as JSON, and how they are printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import orjson

from arag_search.engines.base import ValueCount
from arag_search.errors import QueryTimeoutError
from arag_search.query.problems import QueryError
from arag_search.search.feedback import Feedback
from arag_search.search.nearest import MissingValue
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
    return {
        **({} if query_id is None else {"id": query_id}),
        "query": result.query,
        "understood": result.understood,
        "total": result.total,
        "total_is_exact": result.total_is_exact,
        "total_text": result.total_text,
        "total_unit": result.total_unit,
        "offset": result.offset,
        **({"sort": result.sort} if result.sort else {}),
        **({} if result.per_document is None else {"per_document": result.per_document}),
        "hits": [_hit_json(hit) for hit in result.hits],
        "notes": list(result.notes),
        "problems": [],
        "feedback": None if result.feedback is None else _feedback_json(result.feedback),
        "retrieved_tokens": result.retrieved_tokens,
        "milliseconds": round(result.milliseconds, 3),
    }


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


def _hit_json(hit: SearchHit) -> dict[str, Any]:
    explanation = {}
    if hit.explanation is not None:
        leaves = [{"leaf": leaf.leaf, "scores": dict(leaf.scores)} for leaf in hit.explanation]
        explanation = {"explanation": leaves}
    return {
        "id": hit.id,
        "doc_id": hit.doc_id,
        "title": hit.title,
        "part": hit.part,
        "parts": hit.parts,
        "score": hit.score,
        "snippet": hit.snippet,
        "metadata": hit.metadata,
        **({} if hit.ranks is None else {"ranks": hit.ranks._asdict()}),
        **explanation,
    }


def _feedback_json(why: Feedback) -> dict[str, Any]:
    return {
        "text": str(why),
        "alone": [
            {"clause": clause.clause, "count": clause.count, "excluded": clause.excluded}
            for clause in why.alone
        ],
        "without": [{"clause": clause.clause, "count": clause.count} for clause in why.without],
        "in_chunks": why.in_chunks,
        "missing_values": [_missing_json(missing) for missing in why.missing],
    }


def _missing_json(missing: MissingValue) -> dict[str, Any]:
    return {
        "clause": missing.clause,
        "field": missing.field,
        "text": str(missing),
        "nearest": values_json(missing.near if missing.resembling else ()),
        "least": missing.least,
        "greatest": missing.greatest,
    }


def values_json(counts: Sequence[ValueCount]) -> list[dict[str, Any]]:
    """Convert values of a keyword field and their numbers of passages."""
    return [{"value": count.value, "passages": count.chunks} for count in counts]


def explanation_text(hits: tuple[SearchHit, ...]) -> str:
    """Format scores by leaf and field, one hit after another."""
    lines = ["", "Scores:"]
    for hit in hits:
        lines.append(f"[{hit.id}] {hit.score:.4f}")
        for leaf in hit.explanation or ():
            parts = ", ".join(f"{name} {score:.4f}" for name, score in leaf.scores.items())
            lines.append(f"  {leaf.leaf}: {parts or 'no match'}")
    return "\n".join(lines)

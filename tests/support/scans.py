"""Rows whose matches a loop over them knows: NOT beside ranges, values, dates and scopes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

from arag_search.engines.base import SearchRequest
from arag_search.query.filters import parse_filter
from arag_search.query.reading import parse
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.updates.addition import add_documents
from index_jobs.updates.deletion import delete_documents
from tests.support.examples import examples
from tests.support.plans import planned, scoped

ROWS = examples(20_000)
_QUERIES = examples(600)
_FIRST = date(2000, 1, 1)
OPTIONS = BuildOptions(
    metadata={"n": "number", "few": "number", "kind": "keyword", "acl": "keyword", "day": "date"},
    without=("sentences",),
    language="en",
)
Row = Mapping[str, Any]
Condition = tuple[str, Callable[[Row], bool]]
"""A clause of a query, and whether a row matches it."""


def row(number: int) -> dict[str, Any]:
    """Return a row with fields to sort by, some of which repeat values, are rare or are absent."""
    chance = Random(number)
    fields: dict[str, Any] = {
        "id": f"r{number}",
        "text": " ".join(word for word in ("sea", "lake", "hill") if chance.random() < 0.6) or "x",
        "n": number,
        "kind": chance.choice(["a", "a", "a", "b", "c"]),
        "acl": chance.sample(["hr", "it", "all"], chance.randint(1, 3)),
        "day": str(_FIRST + timedelta(days=number // 4)),
    }
    return fields | ({"few": chance.randint(0, 5)} if chance.random() < 0.1 else {})


def _words(word: str) -> Condition:
    return word, lambda row: word in row["text"].split()


def _condition(chance: Random) -> Condition:
    """Draw a clause of one field or word."""
    low = chance.randrange(ROWS)
    high = low + chance.choice([0, 1, 100, ROWS])
    first = _FIRST + timedelta(days=low // 4)
    last = first + timedelta(days=chance.choice([0, 1, 30, ROWS]))
    kind, who, few = chance.choice("abcd"), chance.choice(["hr", "it", "all"]), chance.randint(0, 5)
    drawn: list[Condition] = [
        (f"n:[{low} TO {high}]", lambda row: low <= row["n"] <= high),
        (f"n:<{low}", lambda row: row["n"] < low),
        (f"few:{few}", lambda row: row.get("few") == few),
        (f"few:>={few}", lambda row: row.get("few", -1) >= few),
        (f"kind:{kind}", lambda row: row["kind"] == kind),
        (f"acl:{who}", lambda row: who in row["acl"]),
        (f"day:[{first} TO {last}]", lambda row: str(first) <= row["day"] <= str(last)),
        (f"day:>{first}", lambda row: row["day"] > str(first)),
        _words("lake"),
    ]
    return chance.choice(drawn)


def _query(chance: Random) -> Condition:
    """Draw words or clauses, and others that are excluded."""
    text, matches = _words(chance.choice(["sea", "lake", "hill"]))
    for joins in ("AND", "NOT", "NOT")[chance.randint(0, 1) :]:
        (left, first), (right, second) = _condition(chance), _condition(chance)
        clause, condition = f"({left} OR {right})", lambda row, a=first, b=second: a(row) or b(row)
        if chance.random() < 0.7:
            clause, condition = left, first
        is_not = joins == "NOT"
        text = f"{text} {joins} {clause}"
        before = matches
        matches = lambda row, a=before, b=condition, no=is_not: a(row) and b(row) is not no  # noqa: E731
    return text, matches


def _scope(chance: Random) -> Condition:
    (left, first), (right, second) = _condition(chance), _condition(chance)
    if "lake" in (left, right):
        return "acl:hr NOT kind:b", lambda row: "hr" in row["acl"] and row["kind"] != "b"
    return f"{left} NOT {right}", lambda row: first(row) and not second(row)


def found(index: Index, query: str, filter: str | None = None) -> set[str]:
    """Return the documents of all matches, which the total counts."""
    plan = planned(parse(query, index.manifest.query_schema, default_operator="AND").tree)
    scope = None if filter is None else scoped(parse_filter(filter, index.manifest.query_schema))
    request = SearchRequest(plan, top_k=5, scope=scope, with_text=False)
    page = index.engine.search(request)
    ids: set[str] = set()
    start = 0
    while True:
        listed = SearchRequest(plan, 1_000, scope=scope, with_text=False, from_ordinal=start)
        hits = index.engine.search(listed).hits
        ids |= {hit.doc_id for hit in hits}
        if len(hits) < 1_000:
            number, is_exact, _ = page.total
            assert number == len(ids) if is_exact else number <= len(ids), query
            return ids
        start = hits[-1].ordinal + 1


def check_scan(location: str) -> None:
    """Compare drawn queries on an index of many rows with a loop over the rows."""
    rows = [row(number) for number in range(ROWS)]
    Path("rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    build_index(["rows.jsonl"], location, OPTIONS)
    chance = Random(7)
    with open_index(location) as index:
        for number in range(_QUERIES):
            query, matches = _query(chance)
            filter, admits = _scope(chance) if number % 2 else (None, lambda _: True)
            expected = {row["id"] for row in rows if matches(row) and admits(row)}
            assert found(index, query, filter) == expected, (query, filter)


def check_batches(location: str) -> None:
    """Add and delete documents in batches of several sizes, and count them after each."""
    Path("rows.jsonl").write_text(f"{json.dumps(row(0))}\n")
    build_index(["rows.jsonl"], location, OPTIONS)
    ids = {"r0"}

    def check(documents: int) -> None:
        assert documents == len(ids)
        with open_index(location) as index:
            assert found(index, "n:>=0") == ids
            assert found(index, "n:>=0 NOT kind:a") == {
                id for id in ids if row(int(id[1:]))["kind"] != "a"
            }

    sizes = (1, 2, 3, 1_000)
    for size in sizes:
        batch = [row(number) for number in range(len(ids), len(ids) + size)]
        Path("more.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in batch))
        ids |= {str(row["id"]) for row in batch}
        check(add_documents(["more.jsonl"], location).documents)
    for size in sizes:
        batch_ids = sorted(ids)[-size:]
        ids -= set(batch_ids)
        check(delete_documents(location, batch_ids).documents)

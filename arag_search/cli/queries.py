"""A file of queries: one per line, or JSON lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import orjson

from arag_search.errors import ArgumentError, SourceError
from arag_search.questions.record import ID_FIELDS
from arag_search.search.keywords import checked_keywords

ALLOWED = 'a query a line, or JSON lines {"id", "query"} or {"id", "keywords": [...]}'
_BEIR_QUERY = "text"
"""The field that holds the query in files of BEIR."""


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """One query of a file: a string is logical, a tuple keywords. ``where`` names file and line."""

    id: str
    query: str | tuple[str, ...]
    where: str


def read_queries(path: Path, tool: str) -> list[AskedQuery]:
    """Read the queries of a file, or of standard input for ``-``.

    A file whose first line starts with ``{`` is JSON lines. A plain line is a query, and its id is
    the line number; with the keyword tool, a line is keywords separated by tabs. Raises SourceError
    naming file and line, also for two queries with one id.
    """
    queries: dict[str, AskedQuery] = {}
    as_json: bool | None = None
    for number, line in _lines(path):
        if as_json is None:
            as_json = line.lstrip().startswith("{")
        where = f"{path}, line {number}"
        asked = _of_json(line, number, where) if as_json else _plain(line, number, where, tool)
        if asked.id in queries:
            raise SourceError(
                f'The id "{asked.id}" is duplicated.',
                where=f"{where}, and {queries[asked.id].where}",
                do="Give each query a unique id.",
            )
        queries[asked.id] = asked
    if not queries:
        raise SourceError("There are no queries.", where=str(path), allowed=ALLOWED)
    return list(queries.values())


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank with their numbers."""
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise SourceError(
            f"The queries cannot be read ({error.strerror}).",
            where=str(path),
            allowed="a file, or - for standard input",
        ) from error
    for number, line in enumerate(raw.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            text = line.decode().rstrip("\r")
        except UnicodeDecodeError as error:
            raise SourceError(
                f"Byte {error.start + 1} of the line is not UTF-8.",
                where=f"{path}, line {number}",
                do="Save the file as UTF-8.",
            ) from None
        if text.strip():
            yield number, text


def _plain(line: str, number: int, where: str, tool: str) -> AskedQuery:
    if tool != "keyword":
        return AskedQuery(str(number), line, where)
    words = [word.strip() for word in line.split("\t")]
    return AskedQuery(str(number), _keywords([word for word in words if word], where), where)


def _of_json(line: str, number: int, where: str) -> AskedQuery:
    try:
        loaded: Any = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise SourceError(
            f"The line is not JSON ({error}).", where=where, allowed=ALLOWED
        ) from None
    record = cast(dict[str, Any], loaded) if isinstance(loaded, dict) else {}
    id = next((record[name] for name in ID_FIELDS if name in record), number)
    name = next((name for name in ("query", "keywords", _BEIR_QUERY) if name in record), "")
    asked = record.get(name)
    is_id = isinstance(id, str | int | float) and not isinstance(id, bool) and id != ""
    if is_id and not {"query", "keywords"} <= record.keys():
        if name != "keywords" and isinstance(asked, str):
            return AskedQuery(str(id), asked, where)
        if name == "keywords" and isinstance(asked, list):
            words = cast(list[object], asked)
            if all(isinstance(word, str) for word in words):
                return AskedQuery(str(id), _keywords(cast(list[str], words), where), where)
    raise SourceError("The line is not a query.", where=where, allowed=ALLOWED, do="Fix the line.")


def _keywords(words: list[str], where: str) -> tuple[str, ...]:
    try:
        return checked_keywords(words)
    except ArgumentError as error:
        raise SourceError(error.what, where=where, allowed=error.allowed, do=error.do) from None

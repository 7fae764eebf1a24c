"""arag-search search: one query, or a file of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from arag_search.errors import ArgumentError, SourceError

# Engines, tools and tokens are imported where a command needs them: --help is to be fast.


class ToolName(StrEnum):
    logical = "logical"
    keyword = "keyword"


class DefaultOperator(StrEnum):
    OR = "OR"
    AND = "AND"


class GranularityName(StrEnum):
    chunk = "chunk"
    sentence = "sentence"


class OnOff(StrEnum):
    on = "on"
    off = "off"


class MatchingName(StrEnum):
    token = "token"
    substring = "substring"


class OutputFormat(StrEnum):
    json = "json"
    trec = "trec"


def search_command(
    index: Annotated[str, typer.Argument(help="The folder of the index.", metavar="INDEX")],
    query: Annotated[
        list[str] | None,
        typer.Argument(
            help="The query; several arguments are joined by spaces, with --tool keyword each is "
            "a keyword. After -- a query may start with a minus.",
            metavar="QUERY...",
            show_default=False,
        ),
    ] = None,
    tool: Annotated[ToolName, typer.Option(help="How to search.")] = ToolName.logical,
    top_k: Annotated[int, typer.Option(help="Passages to show, 1 to 1,000.")] = 5,
    offset: Annotated[
        int, typer.Option(help="Passages to skip; offset + top-k is at most 10,000.")
    ] = 0,
    default_operator: Annotated[
        DefaultOperator, typer.Option(help="What a space between clauses means.")
    ] = DefaultOperator.OR,
    granularity: Annotated[
        GranularityName,
        typer.Option(help="Judge the conditions on whole passages, or on single sentences."),
    ] = GranularityName.chunk,
    operators: Annotated[
        OnOff, typer.Option(help="off refuses AND, OR, NOT, - and ! (for ablations).")
    ] = OnOff.on,
    matching: Annotated[
        MatchingName,
        typer.Option(
            help="For --tool keyword: count whole tokens, or scan for substrings as A-RAG's "
            "reference does (slow on large indexes)."
        ),
    ] = MatchingName.token,
    filter: Annotated[
        str | None,
        typer.Option(help="Metadata clauses that every result obeys, such as 'lang:en'."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the score of each hit by leaf and field.")
    ] = False,
    max_result_tokens: Annotated[
        int | None,
        typer.Option(
            help="Bound of the text, as for a model; 0 for none.  [default: 4000 up to top-k 20]",
            show_default=False,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    queries: Annotated[
        Path | None,
        typer.Option(
            help="A file of queries, - for standard input: one a line, or JSON lines "
            '{"id", "query"} or {"id", "keywords": []}. One JSON result a line.',
            metavar="FILE",
        ),
    ] = None,
    output_format: Annotated[
        OutputFormat, typer.Option(help="With --queries: JSON lines, or a TREC run.")
    ] = OutputFormat.json,
) -> int:
    """Search an index and print the reply that a model would see.

    Examples:

      arag-search search my-index '"antonio vivaldi" AND librett*'

      arag-search search my-index 'griselda NOT title:scarlatti' --granularity sentence

      arag-search search my-index --tool keyword 'Antonio Vivaldi' libretto

      arag-search search my-index --queries queries.jsonl --top-k 100 --output-format trec

    Syntax: word, "a phrase", "two words"~3, prefix*, title:word, AND, OR, NOT, ( ), word^2;
    metadata as year:1678, year:[1670 TO 1680], lang:en. arag-search check explains a query.

    Exit code 0 also without hits, 2 for a query with problems, 1 for a failure.
    """
    settings = _Settings(
        tool.value,
        {"top_k": top_k, "offset": offset, "explain": explain},
        {
            "default_operator": default_operator.value,
            "granularity": granularity.value,
            "operators": operators is OnOff.on,
        },
        {"matching": matching.value},
    )
    if queries is not None:
        if query:
            raise ArgumentError(
                "There is a query and a file of queries.",
                allowed="QUERY or --queries FILE",
                do="Leave one of them out.",
            )
        return _run_batch(index, filter, queries, settings, output_format)
    if not query:
        raise ArgumentError(
            "There is no query.",
            allowed="QUERY or --queries FILE",
            do="Write: arag-search search INDEX 'QUERY'",
        )
    return _run_one(index, filter, query, settings, json, max_result_tokens)


class _Settings:
    """The options of a search, for either tool."""

    def __init__(
        self,
        tool: str,
        common: dict[str, Any],
        logical: dict[str, Any],
        keyword: dict[str, Any],
    ) -> None:
        self.tool = tool
        self.common = common
        self.logical = logical
        self.keyword = keyword

    def search(self, index: Any, query: str | list[str], *, snippets: bool = True) -> Any:
        """Run one query: a list is keywords, a string logical."""
        if isinstance(query, str):
            return index.logical_search(query, snippets=snippets, **self.common, **self.logical)
        return index.keyword_search(query, snippets=snippets, **self.common, **self.keyword)


def _run_one(
    location: str,
    scope: str | None,
    words: list[str],
    settings: _Settings,
    as_json: bool,
    max_result_tokens: int | None,
) -> int:
    from arag_search.cli.results import (
        explanation_text,
        print_json,
        print_text,
        problems_json,
        result_json,
    )
    from arag_search.index import open_index
    from arag_search.query.problems import QueryError
    from arag_search.tools.base import DEFAULT_RESULT_TOKENS, MAX_TOOL_TOP_K, ReadSet
    from arag_search.tools.search import ReplyStyle, reply

    query = words if settings.tool == "keyword" else " ".join(words)
    with open_index(location, filter=scope) as index:
        try:
            result = settings.search(index, query)
        except QueryError as error:
            if as_json:
                print_json(problems_json(error, settings.common["offset"]), pretty=True)
                return 2
            raise
    if as_json:
        print_json(result_json(result), pretty=True)
        return 0
    if max_result_tokens is None:
        bounded = settings.common["top_k"] <= MAX_TOOL_TOP_K
        max_result_tokens = DEFAULT_RESULT_TOKENS if bounded else 0
    style = ReplyStyle(max_result_tokens=max_result_tokens or sys.maxsize)
    print_text(reply(result, style, ReadSet()).text)
    if settings.common["explain"]:
        print_text(explanation_text(result.hits))
    return 0


def _run_batch(
    location: str,
    scope: str | None,
    path: Path,
    settings: _Settings,
    output_format: OutputFormat,
) -> int:
    from arag_search.cli.results import print_json, problems_json, result_json
    from arag_search.index import open_index
    from arag_search.query.problems import QueryError

    asked = list(read_queries(path, settings.tool))
    refused = 0
    trec = output_format is OutputFormat.trec
    with open_index(location, filter=scope) as index:
        for query_id, query in asked:
            try:
                result = settings.search(index, query, snippets=not trec)
            except QueryError as error:
                refused += 1
                if not trec:
                    print_json(problems_json(error, settings.common["offset"], query_id))
                continue
            if not trec:
                print_json(result_json(result, query_id))
                continue
            for rank, hit in enumerate(result.hits, settings.common["offset"] + 1):
                chunk_id = hit.id.replace(" ", "_")
                print(f"{query_id} Q0 {chunk_id} {rank} {hit.score:.6f} arag-search")
    if refused:
        print(f"{refused} of {len(asked)} queries have problems.", file=sys.stderr)
    return 0


def read_queries(path: Path, tool: str) -> Iterator[tuple[str, str | list[str]]]:
    """Ids and queries of a file; a list is keywords. Raises SourceError naming file and line.

    A file whose first line starts with ``{`` is JSON lines. A plain line is a query, its id the
    line number; with the keyword tool, keywords separated by tabs.
    """
    allowed = 'a query a line, or JSON lines {"id", "query"} or {"id", "keywords": [...]}'
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        lines = raw.decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(
            f"The queries cannot be read: {error}.", where=str(path), allowed=allowed
        ) from error
    as_json = next((line for line in lines if line.strip()), "").lstrip().startswith("{")
    found = False
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        found = True
        if as_json:
            yield _query_of_json(line, number, f"{path}, line {number}", allowed)
        elif tool == "keyword":
            yield str(number), [one.strip() for one in line.split("\t") if one.strip()]
        else:
            yield str(number), line.strip("\r")
    if not found:
        raise SourceError("There are no queries.", where=str(path), allowed=allowed)


def _query_of_json(line: str, number: int, where: str, allowed: str) -> tuple[str, str | list[str]]:
    import orjson

    try:
        record: Any = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise SourceError(
            f"The line is not JSON: {error}.", where=where, allowed=allowed
        ) from error
    if isinstance(record, dict):
        query: Any = record.get("query", record.get("keywords"))  # pyright: ignore
        query_id: Any = record.get("id", number)  # pyright: ignore
        if isinstance(query, str) or (
            isinstance(query, list) and all(isinstance(one, str) for one in query)  # pyright: ignore
        ):
            return str(query_id), query  # pyright: ignore
    raise SourceError(
        "The line holds neither a query nor keywords.",
        where=where,
        allowed=allowed,
        do="Mend the line; query is a string, keywords a list of strings.",
    )

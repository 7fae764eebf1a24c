"""arag-search search: one query."""

from __future__ import annotations

import sys
import time
from collections import namedtuple
from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from arag_search.cli.options.index import IndexFolder, Json, Opening
from arag_search.cli.options.parser import Typed, with_groups
from arag_search.cli.output.links import print_linked
from arag_search.cli.output.printing import (
    NOT_FOUND,
    print_json,
    print_result,
    problem_list,
    state_json,
    with_state,
)
from arag_search.engines.hits import Hit
from arag_search.errors import ArgumentError
from arag_search.query.problems import QueryError
from arag_search.search.asked import (
    MAX_REACH,
    MAX_TOOL_TOP_K,
    OPTIONS,
    Hybrid,
    Keywords,
    Meaning,
    Naive,
    Search,
)
from arag_search.search.results import SearchResult
from arag_search.tools.conversation import NamedDocuments
from arag_search.tools.documents.search import DocumentSearch
from arag_search.tools.passages.search import WHOLE_UP_TO_TOKENS, reply
from arag_search.tools.preset import FULL_TEXT_RESULT_TOKENS, plain_preset
from arag_search.tools.tool import ReadSet

_KINDS: Mapping[str, type[Any]] = {
    "logical": Search,
    "keyword": Keywords,
    "semantic": Meaning,
    "hybrid": Hybrid,
    "naive": Naive,
}
_OF_PAGES = ("top_k", "offset")
_OF_PASSAGES = (
    "granularity",
    "where",
    "explain",
    "sort",
    "per_document",
    "show",
    "after",
)
MAX_DOCUMENTS = 20

# Engines, tools and tokens are imported in the commands that need them, to keep --help fast.


def _tools_with(name: str) -> list[str]:
    """Return the tools whose searches have a field. Vectors and their encoder serve the tools that
    take a condition."""
    name = "where" if name in ("vectors", "encoder") else name
    return [
        tool
        for tool, kind in _KINDS.items()
        if name in (part.name for part in fields(kind)) and name in OPTIONS
    ]


def _asked_options() -> Any:
    """Return the group of the options that are fields of searches, as a NamedTuple."""
    names = (*_OF_PAGES, *_OF_PASSAGES)
    hints: dict[str, Any] = {}
    defaults: list[Any] = []
    for name in names:
        tools = _tools_with(name)
        kind = _KINDS[tools[0]]
        says, help, metavar, *_ = OPTIONS[name]
        if len(tools) < len(_KINDS):
            text = help or says
            help = f"With --tool {' or '.join(tools)}: {text[0].lower()}{text[1:]}"
        default = next(part.default for part in fields(kind) if part.name == name)
        flags = (f"--{name}",) if isinstance(default, bool) else ()
        option = typer.Option(*flags, help=help or says, metavar=metavar)
        hints[name] = Annotated[get_type_hints(kind)[name], option]
        defaults.append(default)
    group: Any = namedtuple("AskedOptions", names, defaults=defaults)  # pyright: ignore[reportUntypedNamedTuple]
    group.__annotations__ = hints
    return group


if TYPE_CHECKING:
    AskedOptions = Any
    ToolName = str
else:
    AskedOptions = _asked_options()
    ToolName = StrEnum("ToolName", {name: name for name in _KINDS})


class SearchOptions(NamedTuple):
    """How to search, and what to print."""

    tool: Annotated[ToolName, typer.Option(help="How to search.")] = "logical"
    documents: Annotated[
        bool,
        typer.Option(
            "--documents",
            help="Show documents instead of passages, each with its best places and their lines. "
            "--top-k then counts documents, at most 20.",
        ),
    ] = False
    json: Json = False

    def check(self, typed: Typed, asked: AskedOptions) -> None:
        """Raise ArgumentError for an option without effect."""
        for name in (*asked._fields, *Opening._fields):
            tools = _tools_with(name)
            if tools and self.tool not in tools:
                typed.check_effect(f"--tool {' or '.join(tools)}", name)
        if self.documents:
            no_documents = ("tool",) if self.tool == "keyword" else ()
            passages = ("offset", *_OF_PASSAGES, *no_documents)
            typed.check_effect("passages, without --documents", *passages)
        if self.documents and not 1 <= asked.top_k <= MAX_DOCUMENTS:
            raise ArgumentError(
                f"--top-k is {asked.top_k:,}.", allowed=f"1 to {MAX_DOCUMENTS} documents"
            )

    def asked(self, options: AskedOptions, words: list[str]) -> Any:
        """Return the search for words that gets everything that a model would get."""
        kind = _KINDS[self.tool]
        more = {"relax": True, "branches": True, "names": True} | options._asdict()
        known = {part.name for part in fields(kind)}
        given = {name: value for name, value in more.items() if name in known}
        return kind(words if self.tool == "keyword" else " ".join(words), **given)


@with_groups
def search_command(
    index: IndexFolder,
    query: Annotated[
        list[str] | None,
        typer.Argument(
            help="The query. Several arguments are joined by spaces; with --tool keyword each of "
            "them is a keyword. Put -- before a query that starts with a minus.",
            metavar="QUERY",
        ),
    ] = None,
    *,
    options: SearchOptions,
    asked: AskedOptions,
    opening: Opening,
    typed: Typed,
) -> int:
    """Search an index and print the reply that a model would see. The tools semantic, hybrid and
    naive need the vectors that arag-search embed makes.

    Examples:

    \b
      arag-search search my-index '"antonio vivaldi" AND librett*'
      arag-search search my-index 'griselda NOT title:scarlatti' --top-k 3
      arag-search search my-index 'opera' --sort year:desc --per-document 1
      arag-search search my-index 'opera' --documents
      arag-search search my-index --tool keyword 'Antonio Vivaldi' libretto
      arag-search search my-index --tool semantic 'Who wrote Evangeline?'
      arag-search search my-index --tool semantic premiere --where 'opera -rome'

    Syntax:

    \b
      word, "a phrase", "two words"~3, prefix*, title:word, word^2,
      AND, OR, NOT, ( ), and metadata: year:1678, year:[1670 TO 1680], lang:en
      arag-search check 'QUERY' explains a query

    The exit code is 0 for hits, 1 if there are none, and 2 for a query with problems and all other
    errors.
    """
    if not query:
        raise ArgumentError(
            "There is no query.",
            do="Write: arag-search search INDEX 'QUERY'",
        )
    options.check(typed, asked)
    run = _run_documents if options.documents else _run_one
    return run(index, query, options, asked, opening)


def _run_one(
    location: str, words: list[str], options: SearchOptions, asked: AskedOptions, opening: Opening
) -> int:
    with opening.open(location) as index:
        search = options.asked(asked, words)
        try:
            result = index.search(search)
        except QueryError as error:
            if options.json:
                values = _problems_json(error, search)
                print_json({**values, "state": state_json(index.standing)}, pretty=True)
                return 2
            raise
    if options.json:
        print_json(result.to_dict(), pretty=True)
        return 0 if result.hits else NOT_FOUND
    keys: dict[str, Any] = {"relax": True, "whole_up_to_tokens": WHOLE_UP_TO_TOKENS}
    if options.tool == "naive":
        keys |= {"full_text": True, "max_result_tokens": FULL_TEXT_RESULT_TOKENS}
    if search.top_k > MAX_TOOL_TOP_K:
        keys["max_result_tokens"] = sys.maxsize
    preset = plain_preset(**keys)
    shown = reply(result, preset, ReadSet(), max_offset=MAX_REACH - search.top_k)
    text = shown.text
    if asked.explain and result.hits:
        text = f"{text}\n{explanation_text(result.hits)}"
    text = with_state(text, result.standing, is_absent=shown.is_absent)
    print_linked(text, result.hits, index.manifest)
    return 0 if result.hits else NOT_FOUND


def _run_documents(
    location: str, words: list[str], options: SearchOptions, asked: AskedOptions, opening: Opening
) -> int:
    """Search for documents, and print what the tool search shows, with their own ids."""
    backends: dict[str, Any] = {"hybrid": "hybrid", "semantic": "semantic", "naive": "semantic"}
    backend = backends.get(options.tool, "logical")
    preset = plain_preset(search_backend=backend, max_result_tokens=FULL_TEXT_RESULT_TOKENS)
    read_set = ReadSet(references=NamedDocuments())
    query = " ".join(words)
    with opening.open(location) as index:
        search = DocumentSearch(index, preset)
        search.results_per_query = asked.top_k
        if options.tool == "semantic":
            search.vectors = "sentence"
        search.advice = f"Read on: arag-search read {location} ID:N"
        began = time.perf_counter()
        result = search.run({"queries": [query]}, read_set, tells_standing=False)
        standing = index.standing
    values = {
        "query": query,
        "problem": result.text if result.status == "error" else None,
        "documents": [
            {
                "doc_id": shown.doc_id,
                "title": read_set.references.known[shown.doc_id].title,
                "places": [
                    {"passage": span.id, "lines": span.lines, "text": span.text_in(result.text)}
                    for span in result.passages
                    if span.reference == shown.reference
                ],
            }
            for shown in result.references
        ],
        "milliseconds": round((time.perf_counter() - began) * 1000, 3),
        "state": state_json(standing),
    }
    text = with_state(result.text, standing, is_absent=result.is_absent)
    print_result(text, values, options.json)
    return {"ok": 0, "empty": NOT_FOUND, "error": 2}[result.status]


def _problems_json(error: QueryError, asked: Any) -> dict[str, Any]:
    return {
        **SearchResult(asked, "", total=0).to_dict(),
        "query": error.query,
        "understood": None,
        "problems": problem_list(error),
        "mended": error.mended,
    }


def explanation_text(hits: tuple[Hit, ...]) -> str:
    """Format scores by leaf and field, one hit after another."""
    lines = ["", "Scores:"]
    for hit in hits:
        lines.append(f"[{hit.id}] {hit.score:.4f}")
        for leaf in hit.explanation or ():
            parts = ", ".join(f"{name} {score:.4f}" for name, score in leaf.scores.items())
            lines.append(f"  {leaf.leaf}: {parts or 'does not match'}")
        lines += [f"  score times {rule.factor:.3g}, because {rule.says}" for rule in hit.rules]
        lines += [f"  lowered by {clause}" for clause in hit.lowered]
    return "\n".join(lines)

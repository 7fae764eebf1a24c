"""arag-search search: one query."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any, Literal, NamedTuple

import typer

from arag_search.cli.options.index import IndexFolder, Json, Opening
from arag_search.cli.options.parser import suggest_tools, with_groups
from arag_search.cli.output.links import print_linked
from arag_search.cli.output.printing import print_json, print_result, print_text, problem_list
from arag_search.errors import ArgumentError
from arag_search.query.problems import QueryError
from arag_search.search.index import Index
from arag_search.search.results import MAX_REACH, SearchHit, SearchResult, Show
from arag_search.tools.base import MAX_TOOL_TOP_K, ReadSet
from arag_search.tools.document_search import DocumentSearch
from arag_search.tools.preset import FULL_TEXT_RESULT_TOKENS, DocumentSettings, plain_preset
from arag_search.tools.references import NamedDocuments
from arag_search.tools.registry import SEARCH_TOOLS
from arag_search.tools.search import WHOLE_UP_TO_TOKENS, reply

_TOOLS = tuple(tool.short_name for tool in SEARCH_TOOLS.values())
_BY_VECTORS = tuple(tool.short_name for tool in SEARCH_TOOLS.values() if tool.vectors)
_OF_TOOLS = {
    ("logical", "keyword"): ("explain", "show"),
    ("hybrid",): ("meaning",),
    _BY_VECTORS: ("vectors", "encoder", "where"),
    ("logical",): ("sort", "per_document", "granularity", "after"),
}
"""The options that have an effect with some tools only."""
_OF_PASSAGES = (
    "offset",
    "explain",
    "where",
    "meaning",
    "sort",
    "per_document",
    "show",
    "granularity",
    "after",
)
MAX_DOCUMENTS = 20

Granularity = Literal["chunk", "sentence"]

# Engines, tools and tokens are imported in the commands that need them, to keep --help fast.


def tool_name(text: str) -> str:
    """Return the short name of a tool. Raises typer.BadParameter for any other text."""
    if text not in _TOOLS:
        raise typer.BadParameter(f"{text!r} is not one of {', '.join(map(repr, _TOOLS))}.")
    return text


class SearchOptions(NamedTuple):
    """The options of a search, for any tool."""

    tool: Annotated[
        str,
        typer.Option(
            help="How to search.",
            parser=tool_name,
            metavar=f"<{'|'.join(_TOOLS)}>",
            autocompletion=suggest_tools,
        ),
    ] = "logical"
    top_k: Annotated[int, typer.Option(help="Passages to show, 1 to 1,000.", metavar="N")] = 5
    offset: Annotated[
        int, typer.Option(help="Passages to skip; offset + top-k is at most 10,000.", metavar="N")
    ] = 0
    granularity: Annotated[
        Granularity,
        typer.Option(help="Judge the conditions on whole passages, or on single sentences."),
    ] = "chunk"
    where: Annotated[
        str | None,
        typer.Option(
            help="With --tool semantic, hybrid or naive: a logical query that passages must match; "
            "it does not rank.",
            metavar="QUERY",
        ),
    ] = None
    meaning: Annotated[
        str | None,
        typer.Option(
            help="With --tool hybrid: a sentence for the vectors; QUERY is then a logical query.",
            metavar="TEXT",
        ),
    ] = None
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the score of each hit by leaf and field.")
    ] = False
    json: Json = False
    sort: Annotated[
        str | None,
        typer.Option(
            help="With --tool logical: order by a metadata field, such as year:asc or year:desc, "
            "instead of by score. Passages without a value come last.",
            metavar="FIELD[:asc|desc]",
        ),
    ] = None
    per_document: Annotated[
        int | None,
        typer.Option(
            help="With --tool logical: show at most this many passages of a document, 1 to 1,000.",
            metavar="N",
        ),
    ] = None
    show: Annotated[
        Show,
        typer.Option(
            help="titles lists ids and titles, lines each sentence that matches, with the name of "
            "its entry. Both count all passages; more than 10,000 are listed in corpus order with "
            "--tool logical."
        ),
    ] = "text"
    after: Annotated[
        str | None,
        typer.Option(
            help="With --show titles or lines: go on after the passage with this id, in corpus "
            "order.",
            metavar="ID",
        ),
    ] = None
    documents: Annotated[
        bool,
        typer.Option(
            "--documents",
            help="Show documents instead of passages, each with its best places and their lines. "
            "--top-k then counts documents, at most 20.",
        ),
    ] = False

    def check(self, opening: Opening) -> None:
        """Raise ArgumentError for an option without effect."""
        passages = "passages, without --documents"
        given = {
            name
            for options in (self, opening)
            for name, value in options._asdict().items()
            if value != options._field_defaults[name]
        }
        rules: list[tuple[bool, tuple[str, ...], str]] = [
            *(
                (self.tool not in tools, names, f"--tool {' or '.join(tools)}")
                for tools, names in _OF_TOOLS.items()
            ),
            (self.documents, _OF_PASSAGES, passages),
        ]
        for applies, names, needs in rules:
            for name in names:
                if applies and name in given:
                    raise _without_effect(f"--{name.replace('_', '-')}", needs)
        if self.documents and self.tool == "keyword":
            raise _without_effect("--tool keyword", passages)
        if self.documents and not 1 <= self.top_k <= MAX_DOCUMENTS:
            raise ArgumentError(
                f"--top-k is {self.top_k:,}.", allowed=f"1 to {MAX_DOCUMENTS} documents"
            )

    def search(self, index: Index, words: list[str]) -> SearchResult:
        """Run a query, and get everything that a model would get."""
        page: dict[str, Any] = {"top_k": self.top_k, "offset": self.offset}
        query = " ".join(words)
        if self.tool == "keyword":
            return index.keyword_search(
                words, **page, explain=self.explain, branches=True, show=self.show
            )
        if self.tool == "logical":
            return index.logical_search(
                query,
                **page,
                granularity=self.granularity,
                explain=self.explain,
                sort=self.sort,
                per_document=self.per_document,
                relax=True,
                branches=True,
                show=self.show,
                after=self.after,
            )
        by_vectors: dict[str, Any] = {**page, "where": self.where, "names": True, "relax": True}
        if self.tool == "semantic":
            return index.semantic_search(query, **by_vectors)
        if self.tool == "hybrid":
            return index.hybrid_search(query, **by_vectors, meaning=self.meaning)
        return index.naive_embedding_search(query, **by_vectors)


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
    opening: Opening,
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

    The exit code is 0 with or without hits, 2 for a query with problems, and 1 for a failure.
    """
    if not query:
        raise ArgumentError(
            "There is no query.",
            do="Write: arag-search search INDEX 'QUERY'",
        )
    options.check(opening)
    run = _run_documents if options.documents else _run_one
    return run(index, query, options, opening)


def _without_effect(name: str, needs: str) -> ArgumentError:
    return ArgumentError(
        f"{name} has no effect here.", allowed=f"{name} with {needs}", do="Leave it out."
    )


def _run_one(location: str, words: list[str], options: SearchOptions, opening: Opening) -> int:
    with opening.open(location) as index:
        try:
            result = options.search(index, words)
        except QueryError as error:
            if options.json:
                print_json(_problems_json(error, options.offset), pretty=True)
                return 2
            raise
    if options.json:
        print_json(result.to_dict(), pretty=True)
        return 0
    keys: dict[str, Any] = {"relax": True, "whole_up_to_tokens": WHOLE_UP_TO_TOKENS}
    if options.tool == "naive":
        keys |= {"full_text": True, "max_result_tokens": FULL_TEXT_RESULT_TOKENS}
    if options.top_k > MAX_TOOL_TOP_K:
        keys["max_result_tokens"] = sys.maxsize
    preset = plain_preset(**keys)
    shown = reply(result, preset, ReadSet(), max_offset=MAX_REACH - options.top_k)
    print_linked(shown.text, result.hits, index.manifest)
    if options.explain and result.hits:
        print_text(explanation_text(result.hits))
    return 0


def _run_documents(
    location: str, words: list[str], options: SearchOptions, opening: Opening
) -> int:
    """Search for documents, and print what the tool search shows, with their own ids."""
    backends: dict[str, Any] = {"hybrid": "hybrid", "semantic": "semantic", "naive": "semantic"}
    settings = DocumentSettings(search_backend=backends.get(options.tool, "logical"))
    preset = plain_preset(documents=settings, max_result_tokens=FULL_TEXT_RESULT_TOKENS)
    read_set = ReadSet(references=NamedDocuments())
    query = " ".join(words)
    with opening.open(location) as index:
        search = DocumentSearch(index, preset)
        search.results_per_query = options.top_k
        if options.tool == "semantic":
            search.vectors = "sentence"
        search.advice = f"Read on: arag-search read {location} --document ID --line N"
        began = time.perf_counter()
        result = search.run({"queries": [query]}, read_set)
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
    }
    print_result(result.text, values, options.json)
    return 2 if result.status == "error" else 0


def _problems_json(error: QueryError, offset: int) -> dict[str, Any]:
    refused = SearchResult(error.query, "", 0, True, "passages", offset, (), (), None, None, 0.0)
    return {
        **refused.to_dict(),
        "understood": None,
        "problems": problem_list(error),
        "mended": error.mended,
    }


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

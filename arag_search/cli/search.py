"""arag-search search: one query, or a file of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from arag_search.cli.options.index import (
    DEFAULT_TIMEOUT_S,
    DefaultOperator,
    EncoderName,
    Fresh,
    IndexFolder,
    OnOff,
    Opening,
    SearchTimeoutSeconds,
    VectorsFolder,
    Yes,
)
from arag_search.cli.options.parser import suggest_tools, with_groups
from arag_search.cli.output.links import print_linked
from arag_search.cli.output.printing import print_bytes, print_json, print_text, problem_list, say
from arag_search.cli.queries import read_queries
from arag_search.errors import ArgumentError, QueryTimeoutError
from arag_search.query.problems import QueryError
from arag_search.search.index import Index
from arag_search.search.results import MAX_REACH, SearchHit, SearchResult, Show
from arag_search.tools.base import (
    DEFAULT_RESULT_TOKENS,
    FULL_TEXT_RESULT_TOKENS,
    MAX_TOOL_TOP_K,
    DocumentSettings,
    ReadSet,
)
from arag_search.tools.document_search import DocumentSearch
from arag_search.tools.references import NamedDocuments
from arag_search.tools.registry import SEARCH_TOOLS
from arag_search.tools.search import WHOLE_UP_TO_TOKENS, ReplyStyle, reply

_TOOLS = tuple(tool.short_name for tool in SEARCH_TOOLS.values())
_BY_VECTORS = tuple(tool.short_name for tool in SEARCH_TOOLS.values() if tool.vectors)
_OF_TOOLS = {
    ("logical", "keyword"): ("explain", "show"),
    ("hybrid",): ("unit", "meaning"),
    _BY_VECTORS: ("vectors", "encoder", "where"),
    ("logical",): ("sort", "per_document", "after"),
}
"""The options that have an effect with some tools only."""
_OF_LOGICAL_QUERIES = ("default_operator", "granularity", "operators")
_OF_PASSAGES = (
    *(
        "offset",
        "full_text",
        "explain",
        "where",
        "meaning",
        "sort",
        "per_document",
        "show",
        "after",
    ),
    *_OF_LOGICAL_QUERIES,
)
_ENCODED_TOGETHER = 1_000
MAX_DOCUMENTS = 20

Granularity = Literal["chunk", "sentence"]
Unit = Literal["passage", "sentence"]
OutputFormat = Literal["json", "trec"]

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
    default_operator: Annotated[
        DefaultOperator, typer.Option(help="What a space between clauses means.")
    ] = "OR"
    granularity: Annotated[
        Granularity,
        typer.Option(help="Judge the conditions on whole passages, or on single sentences."),
    ] = "chunk"
    operators: Annotated[
        OnOff, typer.Option(help="off rejects AND, OR, NOT, - and ! (for ablations).")
    ] = "on"
    unit: Annotated[
        Unit,
        typer.Option(help="With --tool hybrid: rank by vectors of passages, or of sentences."),
    ] = "passage"
    vectors: VectorsFolder = None
    encoder: EncoderName = None
    filter: Annotated[
        str | None,
        typer.Option(
            help="Metadata clauses that every result must match, such as 'lang:en'.",
            metavar="CLAUSES",
        ),
    ] = None
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
    search_timeout_s: SearchTimeoutSeconds = DEFAULT_TIMEOUT_S
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the score of each hit by leaf and field.")
    ] = False
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False
    queries: Annotated[
        Path | None,
        typer.Option(
            help="A file of queries, - for standard input: one query per line (with --tool "
            'keyword, tabs between keywords), or JSON lines {"id", "query"} or {"id", "keywords": '
            "[]}. Prints one JSON result per line.",
            metavar="FILE",
        ),
    ] = None
    output_format: Annotated[
        OutputFormat, typer.Option(help="With --queries: JSON lines, or a TREC run.")
    ] = "json"
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
    full_text: Annotated[
        bool,
        typer.Option("--full-text", help="Show whole passages, as --tool naive always does."),
    ] = False
    documents: Annotated[
        bool,
        typer.Option(
            "--documents",
            help="Show documents instead of passages, each with its best places and their lines. "
            "--top-k then counts documents, at most 20.",
        ),
    ] = False
    fresh: Fresh = False
    yes: Yes = False

    @property
    def opening(self) -> Opening:
        """The options for opening the index."""
        return Opening(
            self.filter,
            self.search_timeout_s,
            self.vectors,
            self.encoder,
            self.fresh,
            self.yes,
        )

    def check(self) -> None:
        """Raise ArgumentError for an option without effect. Lines of a file of queries may be
        keywords or logical queries, whatever the tool."""
        in_batch, passages = self.queries is not None, "passages, without --documents"
        given = {name for name in self._fields if getattr(self, name) != self._field_defaults[name]}
        rules: list[tuple[bool, tuple[str, ...], str]] = [
            *(
                (self.tool not in tools, names, f"--tool {' or '.join(tools)}")
                for tools, names in _OF_TOOLS.items()
            ),
            (self.tool != "logical" and not in_batch, _OF_LOGICAL_QUERIES, "--tool logical"),
            (in_batch, ("documents",), "one query"),
            (not in_batch, ("output_format",), "--queries"),
            (in_batch or self.json, ("full_text",), "one query, without --json"),
            # Readers of TREC runs sort them by score.
            (self.output_format == "trec", ("explain", "sort"), "--output-format json"),
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

    @property
    def bound(self) -> int:
        """Tokens that a reply may have."""
        if self.top_k > MAX_TOOL_TOP_K:
            return sys.maxsize
        return FULL_TEXT_RESULT_TOKENS if self.shows_full_text else DEFAULT_RESULT_TOKENS

    @property
    def shows_full_text(self) -> bool:
        """Whether the reply shows whole passages."""
        return self.full_text or self.tool == "naive"

    def search(
        self,
        index: Index,
        query: str | tuple[str, ...],
        *,
        snippets: bool = True,
        alone: bool = False,
    ) -> SearchResult:
        """Run one query: a tuple is keywords, a string is for the tool, and a logical query with
        the keyword tool. A query ``alone``, not from a file, gets everything that a model would
        get."""
        page: Any = {"top_k": self.top_k, "offset": self.offset, "snippets": snippets}
        if not isinstance(query, str):
            return index.keyword_search(
                query, **page, explain=self.explain, branches=alone, show=self.show
            )
        if self.tool in _BY_VECTORS:
            return self._search_by_vectors(index, query, page, alone)
        return index.logical_search(
            query,
            **page,
            default_operator=self.default_operator,
            granularity=self.granularity,
            operators=self.operators == "on",
            explain=self.explain,
            feedback=snippets,
            sort=self.sort,
            per_document=self.per_document,
            relax=alone,
            branches=alone,
            show=self.show,
            after=self.after,
            full_text=self.full_text,
        )

    def _search_by_vectors(
        self, index: Index, query: str, page: dict[str, Any], alone: bool
    ) -> SearchResult:
        by_vectors: dict[str, Any] = {**page, "where": self.where, "names": alone, "relax": alone}
        if self.tool == "semantic":
            return index.semantic_search(query, **by_vectors)
        if self.tool == "hybrid":
            by_vectors |= {"meaning": self.meaning, "full_text": self.full_text}
            return index.hybrid_search(query, **by_vectors, vectors=self.unit)
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
            show_default=False,
        ),
    ] = None,
    *,
    options: SearchOptions,
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
      arag-search search my-index --queries q.jsonl --output-format trec

    Syntax:

    \b
      word, "a phrase", "two words"~3, prefix*, title:word, word^2,
      AND, OR, NOT, ( ), and metadata: year:1678, year:[1670 TO 1680], lang:en
      arag-search check 'QUERY' explains a query

    The exit code is 0 with or without hits, 2 for a query with problems (of a file: after all
    others have run), and 1 for a failure.
    """
    if options.queries is not None:
        if query:
            raise ArgumentError(
                "Both a query and a file of queries are given.",
                allowed="QUERY or --queries FILE",
                do="Leave one of them out.",
            )
        options.check()
        return _run_batch(index, options.queries, options)
    if not query:
        raise ArgumentError(
            "There is no query.",
            allowed="QUERY or --queries FILE",
            do="Write: arag-search search INDEX 'QUERY'",
        )
    options.check()
    if options.documents:
        return _run_documents(index, " ".join(query), options)
    return _run_one(index, query, options)


def _without_effect(name: str, needs: str) -> ArgumentError:
    return ArgumentError(
        f"{name} has no effect here.", allowed=f"{name} with {needs}", do="Leave it out."
    )


def _run_one(location: str, words: list[str], options: SearchOptions) -> int:
    query = tuple(words) if options.tool == "keyword" else " ".join(words)
    with options.opening.open(location) as index:
        try:
            result = options.search(index, query, alone=True)
        except QueryError as error:
            if options.json:
                print_json(problems_json(error, options.offset), pretty=True)
                return 2
            raise
    if options.json:
        print_json(result_json(result, None), pretty=True)
        return 0
    style = ReplyStyle(
        full_text=options.shows_full_text,
        max_result_tokens=options.bound,
        max_offset=MAX_REACH - options.top_k,
        relax=True,
        whole_up_to_tokens=WHOLE_UP_TO_TOKENS,
    )
    print_linked(reply(result, style, ReadSet()).text, result.hits, index.manifest)
    if options.explain and result.hits:
        print_text(explanation_text(result.hits))
    return 0


def _run_documents(location: str, query: str, options: SearchOptions) -> int:
    """Search for documents, and print what the tool search shows, with their own ids."""
    backends: dict[str, Any] = {"hybrid": "hybrid", "semantic": "semantic", "naive": "semantic"}
    settings = DocumentSettings(
        search_backend=backends.get(options.tool, "logical"), results_per_query=options.top_k
    )
    unit: Unit = "sentence" if options.tool == "semantic" else options.unit
    read_set = ReadSet(references=NamedDocuments())
    with options.opening.open(location) as index:
        search = DocumentSearch(index, settings, vectors=unit)
        search.advice = f"Read on: arag-search read {location} --document ID --line N"
        result = search.run({"queries": [query]}, read_set)
    if options.json:
        print_json(
            {
                "query": query,
                "problem": result.text if result.status == "error" else None,
                "documents": [
                    {
                        "doc_id": shown.doc_id,
                        "title": read_set.references.known[shown.doc_id].title,
                        "places": [
                            {
                                "passage": span.id,
                                "lines": span.lines,
                                "text": span.text_in(result.text),
                            }
                            for span in result.passages
                            if span.reference == shown.reference
                        ],
                    }
                    for shown in result.references
                ],
                "milliseconds": round(result.milliseconds, 3),
            },
            pretty=True,
        )
    else:
        print_text(result.text)
    return 2 if result.status == "error" else 0


def _run_batch(location: str, path: Path, options: SearchOptions) -> int:
    asked = read_queries(path, options.tool)
    trec = options.output_format == "trec"
    refused = stopped = 0
    with options.opening.open(location) as index:
        for at, asked_query in enumerate(asked):
            if options.tool in _BY_VECTORS and at % _ENCODED_TOGETHER == 0:
                texts = (other.query for other in asked[at : at + _ENCODED_TOGETHER])
                index.encode_queries([text for text in texts if isinstance(text, str)])
            try:
                result = options.search(index, asked_query.query, snippets=not trec)
            except QueryError as error:
                refused += 1
                if trec:
                    say(f"{asked_query.where}: {error}")
                else:
                    print_json(problems_json(error, options.offset, asked_query.id))
                continue
            except QueryTimeoutError as error:
                stopped += 1
                say(f"{asked_query.where}: {error}")
                if not trec:
                    values = asked_query.query, options.offset, asked_query.id
                    print_json(stopped_json(error, *values))
                continue
            if not trec:
                print_json(result_json(result, asked_query.id))
                continue
            for rank, hit in enumerate(result.hits, options.offset + 1):
                names = f"{_one_word(asked_query.id)} Q0 {_one_word(hit.id)}"
                print_bytes(f"{names} {rank} {hit.score:.6f} arag-search\n".encode())
    if refused:
        have = "has" if refused == 1 else "have"
        say(f"{refused} of {len(asked)} queries {have} problems.")
    if stopped:
        took = "query" if stopped == 1 else "queries"
        say(f"{stopped} {took} of {len(asked)} took too long.")
    return 2 if refused else 1 if stopped else 0


def _one_word(name: str) -> str:
    """Return the name without blanks, which separate the columns of a TREC run."""
    return "_".join(name.split())


def result_json(result: SearchResult, query_id: str | None, **values: object) -> dict[str, Any]:
    """Convert a search result to the JSON of the command line, with other ``values``."""
    return {**({} if query_id is None else {"id": query_id}), **result.to_dict(), **values}


def problems_json(error: QueryError, offset: int, query_id: str | None = None) -> dict[str, Any]:
    """Convert a refused query to the same JSON: no hits, its problems, and the corrected query."""
    return result_json(
        _nothing(error.query, offset),
        query_id,
        understood=None,
        problems=problem_list(error),
        mended=error.mended,
    )


def stopped_json(
    error: QueryTimeoutError, query: str | tuple[str, ...], offset: int, query_id: str
) -> dict[str, Any]:
    """Convert a query that timed out to the same JSON: no total and no hits, but the error."""
    text = query if isinstance(query, str) else ", ".join(f'"{keyword}"' for keyword in query)
    return result_json(
        _nothing(text, offset),
        query_id,
        understood=None,
        total=None,
        total_is_exact=False,
        total_text="unknown",
        error=str(error),
    )


def _nothing(query: str, offset: int) -> SearchResult:
    """Return the result of a query that was not run."""
    return SearchResult(query, "", 0, True, "passages", offset, (), (), None, None, 0.0)


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

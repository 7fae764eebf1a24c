"""arag-search search: one query, or a file of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from arag_search.cli.options.completion import suggest_tools
from arag_search.cli.options.groups import with_groups
from arag_search.cli.options.index import IndexFolder
from arag_search.cli.options.opening import (
    DEFAULT_TIMEOUT_S,
    AllowStale,
    EncoderName,
    Opening,
    SearchTimeoutSeconds,
    VectorsFolder,
)
from arag_search.errors import ArgumentError
from arag_search.tools.registry import SEARCH_TOOLS

if TYPE_CHECKING:
    from arag_search.search.index import Index
    from arag_search.search.results import SearchResult

_TOOLS = tuple(tool.short_name for tool in SEARCH_TOOLS.values())
_BY_VECTORS = tuple(tool.short_name for tool in SEARCH_TOOLS.values() if tool.vectors)
_ENCODED_TOGETHER = 1_000
MAX_DOCUMENTS = 20

DefaultOperator = Literal["OR", "AND"]
Granularity = Literal["chunk", "sentence"]
OnOff = Literal["on", "off"]
Matching = Literal["token", "substring"]
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
    matching: Annotated[
        Matching,
        typer.Option(
            help="With --tool keyword: count whole tokens, or scan for substrings as A-RAG's "
            "reference does (slow on large indexes)."
        ),
    ] = "token"
    unit: Annotated[
        Unit,
        typer.Option(help="With --tool hybrid: rank by vectors of passages, or of sentences."),
    ] = "passage"
    vectors: VectorsFolder = None
    encoder: EncoderName = None
    allow_stale: AllowStale = False
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
    max_result_tokens: Annotated[
        int | None,
        typer.Option(
            help="Limit of the text in tokens, as for a model, 200 or more; 0 for no limit.  "
            "[default: 4000 up to top-k 20, else none]",
            metavar="N",
            show_default=False,
        ),
    ] = None
    whole_up_to: Annotated[
        int | None,
        typer.Option(
            help="Show passages of up to this many tokens whole; 0 for snippets alone.  "
            "[default: 160, as for a model]",
            metavar="N",
            min=0,
            show_default=False,
        ),
    ] = None
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
    documents: Annotated[
        bool,
        typer.Option(
            "--documents",
            help="Show documents instead of passages, each with its best places and their lines. "
            "--top-k then counts documents, at most 20.",
        ),
    ] = False

    @property
    def opening(self) -> Opening:
        """The options for opening the index."""
        return Opening(
            self.filter, self.search_timeout_s, self.vectors, self.encoder, self.allow_stale
        )

    def check_single(self) -> None:
        """Raise ArgumentError for an option without effect."""
        only_logical = ("logical",)
        self._check_tool(
            (self.matching != "token", "--matching", ("keyword",)),
            (self.default_operator != "OR", "--default-operator", only_logical),
            (self.granularity != "chunk", "--granularity", only_logical),
            (self.operators != "on", "--operators", only_logical),
        )
        self._check_both()
        if self.documents:
            self._check_documents()
        if self.output_format != "json":
            raise _without_effect("--output-format", "--queries")
        if self.whole_up_to is not None and (self.json or self.shows_full_text):
            raise _without_effect("--whole-up-to", "plain output of snippets")
        if self.max_result_tokens is not None:
            if self.json:
                raise _without_effect("--max-result-tokens", "plain output")
            self._check_bound(self.max_result_tokens)

    def check_batch(self) -> None:
        """Raise ArgumentError for an option without effect on a file of queries, whose lines may be
        keywords with any tool."""
        self._check_both()
        if self.documents:
            raise _without_effect("--documents", "one query")
        if self.max_result_tokens is not None:
            raise _without_effect("--max-result-tokens", "plain output")
        if self.whole_up_to is not None:
            raise _without_effect("--whole-up-to", "plain output of snippets")
        if self.explain and self.output_format == "trec":
            raise _without_effect("--explain", "--output-format json")
        if self.sort is not None and self.output_format == "trec":  # readers sort by score
            raise _without_effect("--sort", "--output-format json")

    def _check_both(self) -> None:
        opening = self.opening
        self._check_tool(
            (self.explain, "--explain", ("logical", "keyword")),
            (self.unit != "passage", "--unit", ("hybrid",)),
            (opening.vectors is not None, "--vectors", _BY_VECTORS),
            (opening.encoder is not None, "--encoder", _BY_VECTORS),
            (opening.allow_stale, "--allow-stale", _BY_VECTORS),
            (self.where is not None, "--where", _BY_VECTORS),
            (self.meaning is not None, "--meaning", ("hybrid",)),
            (self.sort is not None, "--sort", ("logical",)),
            (self.per_document is not None, "--per-document", ("logical",)),
        )

    def _check_documents(self) -> None:
        """Raise ArgumentError for an option without effect on a search for documents."""
        passages = "passages, without --documents"
        for is_given, name in (
            (self.tool == "keyword", "--tool keyword"),
            (self.offset, "--offset"),
            (self.default_operator != "OR", "--default-operator"),
            (self.granularity != "chunk", "--granularity"),
            (self.operators != "on", "--operators"),
            (self.explain, "--explain"),
            (self.where is not None, "--where"),
            (self.meaning is not None, "--meaning"),
            (self.sort, "--sort"),
            (self.per_document, "--per-document"),
            (self.whole_up_to is not None, "--whole-up-to"),
        ):
            if is_given:
                raise _without_effect(name, passages)
        if not 1 <= self.top_k <= MAX_DOCUMENTS:
            raise ArgumentError(
                f"--top-k is {self.top_k:,}.", allowed=f"1 to {MAX_DOCUMENTS} documents"
            )

    def _check_tool(self, *options: tuple[bool, str, tuple[str, ...]]) -> None:
        """Raise ArgumentError for an option without effect; each has a flag that it is set, its
        name, and its tools."""
        for is_given, name, tools in options:
            if is_given and self.tool not in tools:
                raise _without_effect(name, f"--tool {' or '.join(tools)}")

    def _check_bound(self, tokens: int) -> None:
        from arag_search.tools.base import MIN_RESULT_TOKENS

        if tokens and tokens < MIN_RESULT_TOKENS:
            raise ArgumentError(
                f"--max-result-tokens is {tokens}.",
                allowed=f"{MIN_RESULT_TOKENS} or more, or 0 for no bound",
            )

    @property
    def bound(self) -> int:
        """Tokens that a reply may have."""
        from arag_search.tools.base import (
            DEFAULT_RESULT_TOKENS,
            FULL_TEXT_RESULT_TOKENS,
            MAX_TOOL_TOP_K,
        )

        if self.max_result_tokens is None and self.top_k <= MAX_TOOL_TOP_K:
            return FULL_TEXT_RESULT_TOKENS if self.shows_full_text else DEFAULT_RESULT_TOKENS
        return self.max_result_tokens or sys.maxsize

    @property
    def shows_full_text(self) -> bool:
        """Whether the tool shows whole passages."""
        return self.tool in ("hybrid", "naive")

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
                query, **page, matching=self.matching, explain=self.explain, branches=alone
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
            hints=alone and not self.json,
            relax=alone,
            branches=alone,
        )

    def _search_by_vectors(
        self, index: Index, query: str, page: dict[str, Any], alone: bool
    ) -> SearchResult:
        by_vectors: dict[str, Any] = {**page, "where": self.where, "names": alone, "relax": alone}
        if self.tool == "semantic":
            return index.semantic_search(query, **by_vectors)
        if self.tool == "hybrid":
            by_vectors["meaning"] = self.meaning
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
        options.check_batch()
        return _run_batch(index, options.queries, options)
    if not query:
        raise ArgumentError(
            "There is no query.",
            allowed="QUERY or --queries FILE",
            do="Write: arag-search search INDEX 'QUERY'",
        )
    options.check_single()
    if options.documents:
        return _run_documents(index, " ".join(query), options)
    return _run_one(index, query, options)


def _without_effect(name: str, needs: str) -> ArgumentError:
    return ArgumentError(
        f"{name} has no effect here.", allowed=f"{name} with {needs}", do="Leave it out."
    )


def _run_one(location: str, words: list[str], options: SearchOptions) -> int:
    from arag_search.cli.output.results import (
        explanation_text,
        print_json,
        print_text,
        problems_json,
        result_json,
    )
    from arag_search.query.problems import QueryError
    from arag_search.search.results import MAX_REACH
    from arag_search.tools.base import ReadSet
    from arag_search.tools.search import WHOLE_UP_TO_TOKENS, ReplyStyle, reply

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
        print_json(result_json(result), pretty=True)
        return 0
    whole_up_to = options.whole_up_to
    style = ReplyStyle(
        full_text=options.shows_full_text,
        max_result_tokens=options.bound,
        max_offset=MAX_REACH - options.top_k,
        marked=True,
        relax=True,
        whole_up_to_tokens=WHOLE_UP_TO_TOKENS if whole_up_to is None else whole_up_to,
    )
    print_text(reply(result, style, ReadSet()).text)
    if options.explain and result.hits:
        print_text(explanation_text(result.hits))
    return 0


def _run_documents(location: str, query: str, options: SearchOptions) -> int:
    """Search for documents, and print what the tool search shows, with their own ids."""
    from arag_search.cli.output.results import print_json, print_text
    from arag_search.tools.base import FULL_TEXT_RESULT_TOKENS, ReadSet
    from arag_search.tools.document_search import DocumentSearch
    from arag_search.tools.document_settings import DocumentSettings
    from arag_search.tools.named_documents import NamedDocuments

    backends: dict[str, Any] = {"hybrid": "hybrid", "semantic": "semantic", "naive": "semantic"}
    settings = DocumentSettings(
        search_backend=backends.get(options.tool, "logical"), results_per_query=options.top_k
    )
    unit: Unit = "sentence" if options.tool == "semantic" else options.unit
    read_set = ReadSet(references=NamedDocuments())
    bound = options.max_result_tokens
    most = FULL_TEXT_RESULT_TOKENS if bound is None else bound or sys.maxsize
    with options.opening.open(location) as index:
        search = DocumentSearch(index, settings, max_result_tokens=most, vectors=unit)
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
    from arag_search.cli.output.results import (
        print_bytes,
        print_json,
        problems_json,
        result_json,
        stopped_json,
    )
    from arag_search.cli.queries import read_queries
    from arag_search.errors import QueryTimeoutError
    from arag_search.query.problems import QueryError

    asked = read_queries(path, options.tool)
    trec = options.output_format == "trec"
    refused = stopped = 0
    with options.opening.open(location) as index:
        for at, asked_query in enumerate(asked):
            if options.tool in _BY_VECTORS and at % _ENCODED_TOGETHER == 0:
                some = asked[at : at + _ENCODED_TOGETHER]
                index.encode_queries(
                    [
                        asked_query.query
                        for asked_query in some
                        if isinstance(asked_query.query, str)
                    ]
                )
            try:
                result = options.search(index, asked_query.query, snippets=not trec)
            except QueryError as error:
                refused += 1
                if trec:
                    print(f"{asked_query.where}: {error}", file=sys.stderr)
                else:
                    print_json(problems_json(error, options.offset, asked_query.id))
                continue
            except QueryTimeoutError as error:
                stopped += 1
                print(f"{asked_query.where}: {error}", file=sys.stderr)
                if not trec:
                    print_json(
                        stopped_json(error, asked_query.query, options.offset, asked_query.id)
                    )
                continue
            if not trec:
                print_json(result_json(result, asked_query.id))
                continue
            for rank, hit in enumerate(result.hits, options.offset + 1):
                names = f"{_one_word(asked_query.id)} Q0 {_one_word(hit.id)}"
                print_bytes(f"{names} {rank} {hit.score:.6f} arag-search\n".encode())
    if refused:
        have = "has" if refused == 1 else "have"
        print(f"{refused} of {len(asked)} queries {have} problems.", file=sys.stderr)
    if stopped:
        took = "query" if stopped == 1 else "queries"
        print(f"{stopped} {took} of {len(asked)} took too long.", file=sys.stderr)
    return 2 if refused else 1 if stopped else 0


def _one_word(name: str) -> str:
    """Return the name without blanks, which separate the columns of a TREC run."""
    return "_".join(name.split())

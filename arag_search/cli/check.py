"""arag-search check: explain a query without searching."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from arag_search.cli.options.index import Json
from arag_search.cli.output.printing import job_progress, print_json, print_result, problem_list
from arag_search.plan.lower import lower
from arag_search.query.fields import ANY_SCHEMA
from arag_search.query.operators import SPELLED
from arag_search.query.problems import QueryError
from arag_search.query.reading import parse
from arag_search.query.tree import And, MetadataLeaf, Modifier, Node, Or, TextLeaf, condition_of


def check_command(
    query: Annotated[str, typer.Argument(help="The query.", metavar="QUERY")],
    index: Annotated[
        str | None, typer.Option(help="The index whose fields the query may use.", metavar="INDEX")
    ] = None,
    json: Json = False,
) -> int:
    """Show how a query is understood, or what is wrong with it.

    It prints the canonical form of the query, its tree, and the tokens of its words and phrases. If
    the query has problems, it prints all of them, and a corrected query if it can derive one.
    Nothing is searched.

    Examples:

    \b
      arag-search check '"antonio vivaldi" AND (libretto OR librettist)'
      arag-search check 'vivaldi OR NOT opera OR author:Walker' --index my-index

    Without --index, any field other than title, content and doc_id is assumed to be metadata. If a
    query starts with a minus, put -- before it. The exit code is 2 if the query has problems.
    """
    schema = ANY_SCHEMA
    if index is not None:
        from index_jobs.updates.opening import open_index

        with open_index(index, progress=job_progress()) as opened:
            schema = opened.manifest.query_schema
    described: dict[str, Any] = {"query": query, "understood": None, "tree": None, "notes": []}
    try:
        parsed = parse(query, schema)
    except QueryError as error:
        if not json:
            raise
        refused = {"problems": problem_list(error), "mended": error.mended}
        print_json(described | refused, pretty=True)
        return 2
    tree, notes = _node_json(parsed.tree, parsed.language), list(parsed.notes)
    lines = [parsed.text, "", *_drawn(tree), *(f"Note: {note}" for note in notes)]
    understood = {"understood": parsed.text, "tree": tree, "notes": notes}
    values = described | understood | {"problems": [], "mended": None}
    return print_result("\n".join(lines), values, json)


def _node_json(node: Node | Modifier, language: str, among: str = "") -> dict[str, Any]:
    """Return a node for JSON. ``among`` says what a passage must match for a PREFER or DEMOTE to
    change its score."""
    kind = type(node).__name__
    match node:
        case And() | Or():
            among = str(condition_of(node))
            children = [_node_json(child, language, among) for child in node.children]
            return {"kind": kind, "weight": node.weight, "children": children}
        case Modifier():
            described: dict[str, Any] = {"kind": node.operator.word.title()}
            if node.operator.factor is not None:
                described["factor"] = node.factor
            if node.operator.needs_ranking:
                described["among"] = among
            return {**described, "children": [_node_json(node.child, language)]}
        case _:
            described = {"kind": kind, "query": str(node)}
            if isinstance(node, TextLeaf):
                described["tokens"] = [list(spelling) for spelling in lower(node, language).words]
            if not isinstance(node, MetadataLeaf):
                described["fields"] = [node.field] if node.field else ["title", "content"]
            return described


def _drawn(node: dict[str, Any], first: str = "", rest: str = "") -> list[str]:
    """Draw the tree with a line for each node. A NOT, PREFER or DEMOTE applies to the others of the
    group that it is in, which match together what ``among`` says."""
    lines = [first + _described(node)]
    children: list[dict[str, Any]] = node.get("children", [])
    for child in children:
        branch, below = ("└── ", "    ") if child is children[-1] else ("├── ", "│   ")
        lines += _drawn(child, rest + branch, rest + below)
    return lines


def _described(node: dict[str, Any]) -> str:
    match node:
        case {"kind": kind, "among": among}:
            operator = SPELLED[kind.upper()]
            factor = f", score x {node['factor']:g}" if "factor" in node else ""
            return f"{operator.word}{factor}    {operator.effect} what it matches among: {among}"
        case {"query": query, "tokens": spellings, "fields": fields}:
            tokens = " | ".join(" ".join(spelling) for spelling in spellings)
            return f"{query}    tokens: {tokens}; in {', '.join(fields)}"
        case {"query": query, "fields": fields}:
            return f"{query}    pattern; in {', '.join(fields)}"
        case {"query": query}:
            return f"{query}    filter"
        case _:
            weight = node.get("weight", 1)
            return node["kind"].upper() + (f" ^{weight:g}" if weight != 1 else "")

"""arag-search queries: what the log of a server's queries says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arag_search.cli.output.printing import print_json, print_text


def queries_command(
    file: Annotated[
        Path,
        typer.Argument(
            help="What arag-search mcp --log-queries wrote.", metavar="FILE", show_default=False
        ),
    ],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Sum up a server's log of queries: the commonest, those without results, and the slowest.

    Queries without results show what a corpus lacks, or which words its readers use for what it
    has: these go into a file of synonyms.

    Examples:

    \b
      arag-search queries queries.jsonl
      arag-search queries queries.jsonl --json
    """
    from arag_search.mcp_server.query_log import summary

    summed = summary(file)
    if json:
        print_json(summed.to_json(), pretty=True)
    else:
        print_text(summed.to_text())
    return 0

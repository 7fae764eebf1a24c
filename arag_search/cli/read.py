"""arag-search read: print chunks in full."""

from __future__ import annotations

from typing import Annotated

import typer


def read_command(
    index: Annotated[str, typer.Argument(help="The folder of the index.", metavar="INDEX")],
    chunk_ids: Annotated[
        list[str],
        typer.Argument(help="Ids as searches show them in brackets.", metavar="CHUNK_ID"),
    ],
    filter: Annotated[
        str | None,
        typer.Option(help="Metadata clauses that the chunks must match.", metavar="CLAUSES"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON array.")] = False,
) -> int:
    """Print chunks in full.

    Each chunk is printed with its title, its metadata, and the ids of the chunks before and after
    it.

    Examples:

    \b
      arag-search read my-index vivaldi.1
      arag-search read my-index vivaldi.1 goldoni.1 --json

    The exit code is 1 if an id is not in the index, or if the filter excludes it.
    """
    from arag_search.cli.output.results import print_json, print_text
    from arag_search.search.index import open_index
    from arag_search.tools.chunk_read import chunk_header

    with open_index(index, filter=filter) as opened:
        passages = opened.chunk_read(chunk_ids)
    if json:
        print_json(
            [
                {
                    "id": passage.chunk.id,
                    "doc_id": passage.chunk.doc_id,
                    "title": passage.chunk.title,
                    "part": passage.chunk.part,
                    "parts": passage.chunk.parts,
                    "content": passage.chunk.content,
                    "sentences": passage.chunk.sentences(),
                    "metadata": dict(passage.chunk.metadata),
                    "previous_id": passage.previous_id,
                    "next_id": passage.next_id,
                }
                for passage in passages
            ],
            pretty=True,
        )
        return 0
    print_text(
        "\n\n".join(
            f"{chunk_header(passage)}\n{passage.chunk.content.strip()}" for passage in passages
        )
    )
    return 0

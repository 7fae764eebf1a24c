"""arag-search read: print passages or a document in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from arag_search.errors import ArgumentError

if TYPE_CHECKING:
    from arag_search.search.documents import IndexDocument


def read_command(
    index: Annotated[str, typer.Argument(help="The folder of the index.", metavar="INDEX")],
    chunk_ids: Annotated[
        list[str] | None,
        typer.Argument(
            help="Ids as searches show them in brackets.", metavar="CHUNK_ID", show_default=False
        ),
    ] = None,
    document: Annotated[
        str | None,
        typer.Option(
            help="Print the whole document with this id, instead of passages.",
            metavar="ID",
            show_default=False,
        ),
    ] = None,
    filter: Annotated[
        str | None,
        typer.Option(help="Metadata clauses that the chunks must obey.", metavar="CLAUSES"),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print a JSON array; with --document an object.")
    ] = False,
) -> int:
    """Print chunks, or a whole document, in full.

    Each chunk with its title, the ids of the chunks before and after it, and its metadata. A
    document with its title and metadata, and the id of each chunk before its text.

    Examples:

    \b
      arag-search read my-index vivaldi.1
      arag-search read my-index vivaldi.1 goldoni.1 --json
      arag-search read my-index --document vivaldi

    Exit code 1 where an id is not in the index, or not in the filter.
    """
    from arag_search.cli.output.results import print_json, print_text
    from arag_search.search.index import open_index
    from arag_search.tools.chunk_read import chunk_header

    if bool(chunk_ids) is (document is not None):
        raise ArgumentError(
            "There are ids of chunks and of a document." if chunk_ids else "There is no id.",
            where="arag-search read",
            allowed="CHUNK_ID... or --document ID",
            do="Leave one of them out."
            if chunk_ids
            else "Search first and copy an id, or list documents: arag-search documents INDEX",
        )
    with open_index(index, filter=filter) as opened:
        if document is not None:
            whole = opened.document_read(document)
            if json:
                print_json(whole.to_dict(), pretty=True)
            else:
                print_text(_document_text(whole))
            return 0
        passages = opened.chunk_read(chunk_ids or [])
    if json:
        print_json([passage.to_dict() for passage in passages], pretty=True)
        return 0
    print_text(
        "\n\n".join(
            f"{chunk_header(passage)}\n{passage.chunk.content.strip()}" for passage in passages
        )
    )
    return 0


def _document_text(document: IndexDocument) -> str:
    """Return the title and metadata of a document, then its passages below their ids."""
    from arag_search.tools.rendering import header_line, metadata_text

    header = header_line(document.id, document.title, 1, 1)
    about = metadata_text(document.metadata)
    lines = [f"{header}\n({about})" if about else header]
    lines += [f"[{chunk.id}]\n{chunk.content.strip()}" for chunk in document.chunks]
    return "\n\n".join(lines)

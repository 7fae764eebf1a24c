"""arag-search read: print passages or a document in full."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from arag_search.cli.options.index import IndexFolder, located
from arag_search.cli.output.links import print_linked
from arag_search.cli.output.printing import print_json, print_text
from arag_search.errors import ArgumentError
from arag_search.search.documents import IndexDocument
from arag_search.search.index import Index, open_index
from arag_search.tools.base import DocumentSettings, ReadSet
from arag_search.tools.chunk_read import chunk_header
from arag_search.tools.find import MAX_CONTEXT_LINES, MAX_PLACES, Find
from arag_search.tools.open_lines import OpenLines
from arag_search.tools.references import NamedDocuments
from arag_search.tools.rendering import header_line, metadata_text

DEFAULT_LINES = 60
"""The number of lines that ``--line`` prints."""


def read_command(
    index: IndexFolder,
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
    line: Annotated[
        int | None,
        typer.Option(
            help="With --document: print numbered lines from this one on; the first is 0.",
            metavar="N",
            min=0,
            show_default=False,
        ),
    ] = None,
    lines: Annotated[
        int | None,
        typer.Option(
            help="With --line: print this many lines.  [default: 60]",
            metavar="N",
            min=1,
            max=20_000,
            show_default=False,
        ),
    ] = None,
    find: Annotated[
        list[str] | None,
        typer.Option(
            help="With --document: print where it holds this text, and the lines around; may be "
            "repeated.",
            metavar="TEXT",
            show_default=False,
        ),
    ] = None,
    context: Annotated[
        int | None,
        typer.Option(
            help="With --find: lines to print before and after each match.  [default: 2]",
            metavar="N",
            min=0,
            max=MAX_CONTEXT_LINES,
            show_default=False,
        ),
    ] = None,
    matches: Annotated[
        int | None,
        typer.Option(
            help="With --find: matches of each text to print.  [default: 2]",
            metavar="N",
            min=1,
            max=MAX_PLACES,
            show_default=False,
        ),
    ] = None,
    filter: Annotated[
        str | None,
        typer.Option(help="Metadata clauses that the chunks must match.", metavar="CLAUSES"),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print a JSON array; with --document an object.")
    ] = False,
) -> int:
    """Print chunks, or a whole document, in full.

    Each chunk is printed with its title, its metadata, and the ids of the chunks before and after
    it; a document with its title and metadata, and the id of each chunk before its text.

    Examples:

    \b
      arag-search read my-index vivaldi.1
      arag-search read my-index vivaldi.1 goldoni.1 --json
      arag-search read my-index --document vivaldi
      arag-search read my-index --document report.pdf --line 2200
      arag-search read my-index --document report.pdf --find 'net sales'
      arag-search read my-index --document app.log --find error --matches 9

    The exit code is 1 if an id is not in the index, or if the filter excludes it.
    """
    if bool(chunk_ids) is (document is not None):
        raise ArgumentError(
            "There are ids of chunks and of a document." if chunk_ids else "There is no id.",
            where="arag-search read",
            allowed="CHUNK_ID... or --document ID",
            do="Leave one of them out."
            if chunk_ids
            else "Search first and copy an id, or list documents: arag-search documents INDEX",
        )
    for is_given, name, needs in (
        (line is not None or bool(find), "--line and --find", document is not None),
        (lines is not None, "--lines", line is not None),
        (line is not None, "--line", not find),
        (context is not None or matches is not None, "--context and --matches", bool(find)),
    ):
        if is_given and not needs:
            raise ArgumentError(
                f"{name} cannot be used like this.",
                where="arag-search read",
                allowed="--document ID with --line N [--lines N], or with --find TEXT "
                "[--matches N] [--context N]",
                do="Leave one out, or name a document.",
            )
    with located(index) as location, open_index(location, filter=filter) as opened:
        if document is not None and (line is not None or find):
            wanted: dict[str, Any] = {"line_number": line}
            if find:
                given = {"matches": matches, "context": context}
                wanted = {name: value for name, value in given.items() if value is not None}
                wanted["patterns"] = find
            return _print_lines(opened, document, wanted, lines or DEFAULT_LINES, json)
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
    text = "\n\n".join(
        f"{chunk_header(passage)}\n{passage.chunk.content.strip()}" for passage in passages
    )
    print_linked(text, (passage.chunk for passage in passages), opened.manifest)
    return 0


def _print_lines(
    index: Index, doc_id: str, arguments: dict[str, Any], count: int, json: bool
) -> int:
    """Print lines of a document, or the places of patterns, as the tools open and find show them
    for these arguments."""
    whole = index.document_lines([doc_id])[0]
    if whole is None:
        index.document_read(doc_id)  # raises the error that suggests ids
        return 1
    read_set = ReadSet(references=NamedDocuments())
    read_set.references.of_document(whole.doc_id, whole.title, 0)
    settings = DocumentSettings(
        semantic_find=False, find_result_tokens=sys.maxsize, open_lines=count
    )
    tool = OpenLines(index, settings, max_result_tokens=sys.maxsize)
    if "patterns" in arguments:
        tool = Find(index, settings)
    result = tool.run({"reference_id": whole.doc_id, **arguments}, read_set)
    if result.status == "error":
        raise ArgumentError(result.text, where=f"document {whole.doc_id}")
    if json:
        shown = sorted(
            {
                n
                for span in result.passages
                if span.lines
                for n in range(span.lines[0], span.lines[1] + 1)
            }
        )
        lines = [{"line": number, "text": whole.line(number)} for number in shown]
        print_json({"doc_id": whole.doc_id, "count": len(whole), "lines": lines}, pretty=True)
    else:
        print_text(result.text)
    return 0


def _document_text(document: IndexDocument) -> str:
    """Return the title and metadata of a document, then its passages below their ids."""
    header = header_line(document.id, document.title, 1, 1)
    about = metadata_text(document.metadata)
    lines = [f"{header}\n({about})" if about else header]
    lines += [f"[{chunk.id}]\n{chunk.content.strip()}" for chunk in document.chunks]
    return "\n\n".join(lines)

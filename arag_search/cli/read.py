"""arag-search read: print passages or documents in full, or list all documents."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from arag_search.cli.options.index import IndexFolder, Json, ScopeFilter
from arag_search.cli.options.parser import Typed, with_groups
from arag_search.cli.output.links import print_linked
from arag_search.cli.output.printing import (
    NOT_FOUND,
    job_progress,
    print_json,
    print_result,
    print_text,
    say,
    state_json,
    with_state,
)
from arag_search.engines.opensearch.schema import OPENSEARCH
from arag_search.errors import (
    ArgumentError,
    IndexDamagedError,
    UnknownChunkError,
    UnknownDocumentError,
)
from arag_search.search.index import Index
from arag_search.search.reading.documents import IndexDocument
from arag_search.search.reading.lines import DocumentLines
from arag_search.system.progress import counted
from arag_search.tools.conversation import NamedDocuments
from arag_search.tools.documents.open import OpenLines
from arag_search.tools.passages.read import chunk_header
from arag_search.tools.preset import plain_preset
from arag_search.tools.replies.apart import marked, safe_signs
from arag_search.tools.replies.spans import metadata_text
from arag_search.tools.replies.writing import header_line, shown_id
from arag_search.tools.tool import ReadSet
from index_jobs.build.export import build_command, record_of
from index_jobs.updates.opening import open_index

_PLACE = re.compile(r"(.+?):([1-9]\d{0,8})(?::([1-9]\d{0,8}))?")
DEFAULT_LINES = 60


@with_groups
def read_command(
    index: IndexFolder,
    chunk_ids: Annotated[
        list[str] | None,
        typer.Argument(help="Ids as searches show them in brackets.", metavar="PASSAGE_ID"),
    ] = None,
    document: Annotated[
        str | None,
        typer.Option(
            help="Print the whole document with this id, instead of passages.", metavar="ID"
        ),
    ] = None,
    lines: Annotated[
        int,
        typer.Option(
            help="With ID:N in place of a passage: print this many lines.",
            metavar="N",
            min=1,
            max=20_000,
        ),
    ] = DEFAULT_LINES,
    all_: Annotated[
        bool,
        typer.Option(
            "--all",
            help="List all documents; with --json, print them with their texts, as JSON lines that "
            "arag-search index reads.",
        ),
    ] = False,
    filter: ScopeFilter = None,
    json: Json = False,
    *,
    typed: Typed,
) -> int:
    """Print passages or a whole document in full, or list all documents.

    It prints each passage with its title, its metadata, and the ids of the passages before and
    after it. A document has its title and metadata, and the id of each passage before its text.
    ID:N prints numbered lines of a document from line N on, ID:N:M from column M of that line.

    With --all, documents are in corpus order, each with its id, title, size and metadata. As JSON
    they have their whole texts (Unicode NFC) and metadata. An index of the same passages can be
    built from this JSON, by the command that is printed.

    Examples:

    \b
      arag-search read my-index vivaldi.1
      arag-search read my-index vivaldi.1 goldoni.1 --json
      arag-search read my-index --document vivaldi
      arag-search read my-index notes/plan.md:71
      arag-search read my-index report.pdf:2200 --lines 20
      arag-search read my-index --all --filter 'kind:person AND year:<1800'
      arag-search read my-index --all --json > documents.jsonl

    The exit code is 1 if an id is not in the index, if the filter excludes it, or if --all lists
    nothing. It is 2 for an error.
    """
    if not (chunk_ids or document is not None or all_):
        raise ArgumentError(
            "There is no id.",
            where="arag-search read",
            allowed="PASSAGE_ID..., --document ID or --all",
            do="Search first and copy an id, or list documents: arag-search read INDEX --all",
        )
    typed.check_one("chunk_ids", "document", "all_")
    state = None
    try:
        with open_index(index, filter=filter, progress=job_progress()) as opened:
            ids, state = chunk_ids or [], opened.standing
            if len(ids) == 1 and (place := _place(opened, ids[0])):
                return _print_lines(opened, *place, lines, json)
            typed.check_effect("the line of a document, ID:N", "lines")
            if all_:
                return (_print_records if json else _print_list)(opened)
            if document is None:
                return _print_passages(opened, index, ids, json)
            whole, state = opened.document_read(document), opened.standing
            values = {**whole.to_dict(), "state": state_json(state)}
            return print_result(with_state(_document_text(whole), state), values, json)
    except (UnknownChunkError, UnknownDocumentError) as error:
        say(f"arag-search: {error}")
        if json:
            print_json({"problem": str(error), "state": state_json(state)}, pretty=True)
        elif lines_below := with_state("", state, is_absent=True).strip():
            print_text(lines_below)
        return NOT_FOUND


def _place(index: Index, id: str) -> tuple[DocumentLines, int, int] | None:
    """Return the document, line and column that an id names. None: it is the id of a passage, or
    names no document."""
    match = _PLACE.fullmatch(id)
    if not match or index.read([id]) != [None]:
        return None
    [lines] = index.document_lines([match[1]])
    return None if lines is None else (lines, int(match[2]), int(match[3] or 1))


def _print_passages(index: Index, location: str, ids: Sequence[str], json: bool) -> int:
    try:
        passages, state = index.chunk_read(ids), index.standing
    except UnknownChunkError as error:
        known = zip(ids, index.document_lines(ids), strict=True)
        if named := [id for id, document in known if document is not None]:
            command = shlex.join(["arag-search", "read", location, "--document", named[0]])
            error.do = f'"{named[0]}" is the id of a document: {command}'
        raise
    if json:
        shown = [passage.to_dict() for passage in passages]
        print_json({"passages": shown, "state": state_json(state)}, pretty=True)
        return 0
    text = "\n\n".join(
        f"{chunk_header(passage)}\n{marked(passage.chunk.content.strip())}" for passage in passages
    )
    chunks = (passage.chunk for passage in passages)
    print_linked(with_state(text, state), chunks, index.manifest)
    return 0


def _print_lines(
    index: Index, whole: DocumentLines, line: int, column: int, count: int, json: bool
) -> int:
    """Print lines of a document from a line and column on, as the tool open shows them."""
    read_set = ReadSet(references=NamedDocuments())
    read_set.references.of_document(whole.doc_id, whole.title, 0)
    tool = OpenLines(index, plain_preset(max_result_tokens=sys.maxsize))
    tool.most_lines = count
    asked = {"reference_id": whole.doc_id, "line_number": line, "column": column}
    result = tool.run(asked, read_set, tells_standing=False)
    if result.status == "error":
        raise ArgumentError(result.text, where=f"document {whole.doc_id}")
    first = whole.piece_at(line, column)
    texts = [
        dict(zip(("line", "column", "text"), (*whole.place(piece), whole.line(piece)), strict=True))
        for piece in range(first, min(first + count, len(whole)))
    ]
    state = index.standing
    values = {"doc_id": whole.doc_id, "count": whole.count, "lines": texts}
    return print_result(
        with_state(result.text, state), {**values, "state": state_json(state)}, json
    )


def _print_list(index: Index) -> int:
    is_empty = True
    for document in index.documents():
        is_empty = False
        about = metadata_text(document.metadata)
        print_text(
            safe_signs(
                f"{header_line(document.id, document.title, 1, 1)} "
                f"({counted(len(document.chunks), 'passage')}, "
                f"{document.characters:,} characters{f'; {about}' if about else ''})"
            )
        )
    text = "No document is in scope." if is_empty else ""
    if text := with_state(text, index.standing).strip():
        print_text(text)
    return NOT_FOUND if is_empty else 0


def _print_records(index: Index) -> int:
    """Print a record for each document, and the command that builds an index from them. Raises
    IndexDamagedError if an index on a server was updated meanwhile: documents may then be printed
    twice or not at all. An index in a folder is read as it was when it was opened. How it stands
    beside its files is said beside the records, which are to be indexed."""
    manifest, documents = index.manifest, 0
    progress = job_progress()
    try:
        progress.begin("documents", manifest.documents if index.scope is None else None)
        for documents, document in enumerate(index.documents(), 1):
            print_json(record_of(document, manifest))
            progress.update(documents, documents)
    finally:
        progress.end()
    if manifest.engine == OPENSEARCH:
        with open_index(index.location) as now:
            if now.manifest != manifest:
                raise IndexDamagedError(
                    "The index was updated while its documents were read.",
                    where=index.location,
                    allowed="an index that stays the same until all of them are printed",
                    do="Run the same command again.",
                )
    say(f"{counted(documents, 'document')}. Index with:")
    say(with_state(f"  {build_command('FILE', manifest)}", index.standing))
    return 0 if documents else NOT_FOUND


def _document_text(document: IndexDocument) -> str:
    header = header_line(document.id, document.title, 1, 1)
    about = metadata_text(document.metadata)
    lines = [f"{header}\n({about})" if about else header]
    lines += [
        f"[{shown_id(chunk.id)}]\n{marked(chunk.content.strip())}" for chunk in document.chunks
    ]
    return "\n\n".join(lines)

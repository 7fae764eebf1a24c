"""arag-search documents: list the documents of an index, or export them."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from arag_search.cli.options.index import IndexPlace, ScopeFilter
from arag_search.cli.output.printing import print_bytes, print_text, say
from arag_search.engines.opensearch.schema import ENGINE
from arag_search.errors import ArgumentError, IndexDamagedError
from arag_search.search.documents import IndexDocument
from arag_search.search.index import Index, open_index
from arag_search.system.durable import replacing, sync
from arag_search.system.progress import counted, open_progress
from arag_search.tools.rendering import header_line, metadata_text
from index_jobs.build.export import build_command, record_of

_SHOWN = 20
STDOUT = "-"


def documents_command(
    index: IndexPlace,
    filter: ScopeFilter = None,
    limit: Annotated[
        int | None,
        typer.Option(
            help="Documents to show; 0 for all.  [default: 20 as text, else all]",
            metavar="N",
            min=0,
            show_default=False,
        ),
    ] = None,
    offset: Annotated[int, typer.Option(help="Documents to skip.", metavar="N", min=0)] = 0,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON lines, one document per line.")
    ] = False,
    export: Annotated[
        str | None,
        typer.Option(
            help="Write the documents with their texts to a new file as JSON lines, - for standard "
            "output. arag-search index reads them.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="With --export: replace an existing file.")
    ] = False,
) -> int:
    """List the documents of an index, or export them.

    Documents are in corpus order; a list has their ids, titles, sizes and metadata. With --export,
    they are written with their whole texts (Unicode NFC) and metadata, so that an index of the same
    passages can be built from them. The command for that is printed. The file appears only when it
    is complete.

    Examples:

    \b
      arag-search documents my-index
      arag-search documents my-index --filter 'kind:person AND year:<1800' --json
      arag-search documents my-index --export documents.jsonl
      arag-search documents my-index --export - | gzip > documents.jsonl.gz

    All passages in the filter up to the last document shown are read, so --offset costs as much as
    showing the documents that it skips.
    """
    _check(json, export, overwrite)
    most = (None if json or export is not None else _SHOWN) if limit is None else limit or None
    with open_index(index, filter=filter) as opened:
        if export is not None:
            _export(opened, offset, most, export, overwrite)
        elif json:
            _print_lines(opened, offset, most)
        else:
            _print_list(opened, offset, most)
    return 0


def _check(json: bool, export: str | None, overwrite: bool) -> None:
    """Raise ArgumentError for options that do not go together."""
    if json and export is not None:
        raise ArgumentError(
            "There are both --json and --export.",
            allowed="--json for a list, --export for whole texts; both are JSON lines",
            do="Leave one of them out.",
        )
    if overwrite and export in (None, STDOUT):
        raise ArgumentError(
            "--overwrite has no effect here.",
            allowed="--overwrite with --export FILE",
            do="Leave it out.",
        )


def _print_list(index: Index, offset: int, most: int | None) -> None:
    shown, has_more = 0, False
    for document in _page(index, offset, None if most is None else most + 1):
        if shown == most:
            has_more = True
            break
        shown += 1
        sizes = f"{counted(len(document.chunks), 'passage')}, "
        about = metadata_text(document.metadata)
        print_text(
            f"{header_line(document.id, document.title, 1, 1)} "
            f"({sizes}{document.characters:,} characters{f'; {about}' if about else ''})"
        )
    if not shown:
        print_text("There are no more documents." if offset else "No document is in scope.")
    elif has_more:
        print_text(f"More: --offset {offset + shown}.")


def _print_lines(index: Index, offset: int, most: int | None) -> None:
    for document in _page(index, offset, most):
        print_bytes(_line(document.summary()))


def _export(index: Index, offset: int, most: int | None, name: str, overwrite: bool) -> None:
    path = None if name == STDOUT else _export_path(name, overwrite)
    manifest = index.manifest
    is_whole = index.scope is None and not offset and most is None
    progress = open_progress()
    written = 0
    try:
        with nullcontext(print_bytes) if path is None else _new_file(path) as write:
            progress.begin("documents", manifest.documents if is_whole else None)
            for document in _page(index, offset, most):
                write(_line(record_of(document, manifest)))
                written += 1
                progress.update(written, written)
            _check_unchanged(index)
    finally:
        progress.end()
    say(f"{counted(written, 'document')} exported. Index with:")
    say(f"  {build_command('FILE' if path is None else name, manifest)}")


def _page(index: Index, offset: int, most: int | None) -> Iterator[IndexDocument]:
    return islice(index.documents(), offset, None if most is None else offset + most)


def _line(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


def _export_path(name: str, overwrite: bool) -> Path:
    """Return where to write. Raises ArgumentError for a file that exists, and for a folder or
    device."""
    path = Path(os.path.realpath(name))
    if not path.parent.is_dir():
        raise ArgumentError(
            "The folder of the file does not exist.",
            where=name,
            allowed="a file in an existing folder, or - for standard output",
            do="Create the folder, or name another file.",
        )
    if path.exists() and not (overwrite and path.is_file()):
        raise ArgumentError(
            "The file exists." if path.is_file() else "This is not a file.",
            where=name,
            allowed="a new file, or - for standard output",
            do="Name another file, or replace one with --overwrite.",
        )
    return path


@contextmanager
def _new_file(path: Path) -> Generator[Callable[[bytes], object]]:
    """Yield a function that writes to a file, which appears when the block has ended without an
    error."""
    temporary: Path | None = None
    try:
        with replacing(path, shared=True) as temporary, temporary.open("xb") as file:
            yield file.write
        sync(path.parent)
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _check_unchanged(index: Index) -> None:
    """Raise an error if an index on a server was updated since it was opened: documents may then be
    exported twice or not at all. An index in a folder is read as it was when it was opened."""
    if index.manifest.engine != ENGINE:
        return
    with open_index(index.location) as now:
        if now.manifest != index.manifest:
            raise IndexDamagedError(
                "The index was updated during the export.",
                where=index.location,
                allowed="an index that stays the same until the export ends",
                do="Run the same command again.",
            )

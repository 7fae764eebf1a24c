"""arag-search delete: delete documents from an index."""

from __future__ import annotations

from typing import Annotated

import typer

from arag_search.cli.options.build import Json
from arag_search.cli.options.index import IndexPlace


def delete_command(
    index: IndexPlace,
    doc_ids: Annotated[
        list[str] | None,
        typer.Argument(
            help="Ids of documents; - reads them from standard input, one per line.",
            metavar="[DOC_ID]...",
            show_default=False,
        ),
    ] = None,
    ids_from: Annotated[
        str | None,
        typer.Option(
            "--from", help="A file of ids, one per line.", metavar="FILE", show_default=False
        ),
    ] = None,
    missing_ok: Annotated[
        bool,
        typer.Option("--missing-ok", help="Skip unknown ids and list them."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report what would be deleted, and delete nothing.")
    ] = False,
    json: Json = False,
) -> int:
    """Delete documents from an index, with their passages.

    All named documents are deleted or, if an id is unknown, none. They are gone for every process
    that opens the index afterwards. The remaining documents keep their order; scores still count
    the deleted ones until arag-search compact.

    Examples:

    \b
      arag-search delete my-index vivaldi goldoni
      arag-search delete my-index --from withdrawn.txt --missing-ok
      cut -f1 withdrawn.tsv | arag-search delete my-index - --dry-run
    """
    from arag_search.cli.output.reports import run_job
    from index_jobs.updates.deletion import delete_documents

    wanted: list[str] = []
    for doc_id in doc_ids or []:
        wanted += _lines_of_input() if doc_id == "-" else [doc_id]
    if ids_from is not None:
        wanted += _lines_of(ids_from)
    return run_job(
        lambda progress: delete_documents(
            index, wanted, missing_ok=missing_ok, dry_run=dry_run, progress=progress
        ),
        json,
    )


def _lines_of_input() -> list[str]:
    import sys

    return _ids(sys.stdin.buffer.read(), "standard input")


def _lines_of(name: str) -> list[str]:
    from pathlib import Path

    return _ids(Path(name).read_bytes(), name)


def _ids(data: bytes, where: str) -> list[str]:
    from arag_search.corpus import nfc
    from arag_search.errors import ArgumentError

    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ArgumentError(
            "The ids are not UTF-8.",
            where=f"{where}, line {line}",
            allowed="one id per line, in UTF-8",
            do="Convert the file.",
        ) from error
    return [nfc(id) for line in text.split("\n") if (id := line.strip())]

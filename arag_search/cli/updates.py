"""arag-search delete, compact and forget: changes of existing indexes."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from arag_search.cli.options.index import IndexPlace, Json, VectorsFolder
from arag_search.cli.output.printing import print_text, run_job
from arag_search.corpus import nfc
from arag_search.errors import ArgumentError, IndexNotFoundError
from index_jobs.updates.deletion import delete_documents
from index_jobs.updates.maintenance import compact_index


def delete_command(
    index: IndexPlace,
    doc_ids: Annotated[
        list[str] | None,
        typer.Argument(
            help="Ids of documents; - reads them from standard input, one per line.",
            metavar="[DOC_ID]...",
        ),
    ] = None,
    missing_ok: Annotated[
        bool, typer.Option("--missing-ok", help="Skip unknown ids and list them.")
    ] = False,
    vectors: VectorsFolder = None,
    json: Json = False,
) -> int:
    """Delete documents from an index, with their passages.

    All named documents are deleted or, if an id is unknown, none. They are gone for every process
    that opens the index afterwards. The remaining documents keep their order; scores still count
    the deleted ones until arag-search compact. Vectors that fit the index still fit it.

    Examples:

    \b
      arag-search delete my-index vivaldi goldoni
      arag-search delete my-index - --missing-ok < withdrawn.txt
    """
    wanted: list[str] = []
    for doc_id in doc_ids or []:
        is_input = doc_id == "-"
        wanted += _ids(sys.stdin.buffer.read(), "standard input") if is_input else [doc_id]
    return run_job(
        lambda progress: delete_documents(
            index,
            wanted,
            missing_ok=missing_ok,
            vectors=vectors,
            progress=progress,
        ),
        json,
    )


def compact_command(
    index: IndexPlace,
    vectors: VectorsFolder = None,
    json: Json = False,
) -> int:
    """Merge the segments that updates left behind, and remove the vectors of deleted texts.

    Documents that were deleted or replaced count in the scores of the others until their segments
    are merged. Afterwards each shard is one segment, and scores and order are those of a build of
    the same documents. Compacting rewrites the index: it takes as long as a copy, and needs disk
    space for a second index meanwhile. Searches continue.

    An interrupted update is completed or undone first.

    Examples:

    \b
      arag-search compact my-index
      arag-search compact http://localhost:9200/my-index --json
    """
    return run_job(lambda progress: compact_index(index, progress, vectors=vectors), json)


def forget_command(
    folders: Annotated[
        list[str], typer.Argument(help="Folders of files that were searched.", metavar="FOLDER...")
    ],
) -> int:
    """Remove the index of a folder of files from the cache, with those of other versions of the
    program.

    The files themselves stay as they are, and the next search of the folder builds the index again.
    An index that is in use is not removed.

    Examples:

    \b
      arag-search forget notes/
    """
    from index_jobs.updates.folder_index import FolderIndex

    for folder in folders:
        index = FolderIndex.of(folder)
        versions = index.versions()
        if not versions:
            raise IndexNotFoundError(
                "The cache has no index of this folder.", where=index.folder, do="Check the name."
            )
        size = sum(version.bytes() for version in versions)
        for version in versions:
            version.remove()
        print_text(f"Removed the index of {index.folder}: {size:,} bytes.")
    return 0


def _ids(data: bytes, where: str) -> list[str]:
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

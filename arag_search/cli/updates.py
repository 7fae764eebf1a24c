"""arag-search add, sync, delete, compact and forget: changes of existing indexes."""

from __future__ import annotations

import signal
import sys
import threading
from typing import Annotated

import typer

from arag_search.cli.index import check_places
from arag_search.cli.options.index import IndexPlace, Json, Sources, Target, VectorsFolder
from arag_search.cli.options.parser import Typed, with_groups
from arag_search.cli.output.printing import (
    INTERRUPTED,
    job_progress,
    print_report,
    print_text,
    run_job,
)
from arag_search.corpus import nfc
from arag_search.engines.open import open_update
from arag_search.errors import ArgumentError, IndexNotFoundError
from index_jobs.build.options import KEPT_READING
from index_jobs.build.report import AddReport, BuildReport
from index_jobs.updates.addition import add_documents
from index_jobs.updates.deletion import delete_documents
from index_jobs.updates.maintenance import compact_index
from index_jobs.updates.options import AddOptions, SyncOptions, as_built
from index_jobs.updates.synchronisation import sync_documents


@with_groups
def add_command(source: Sources, to: Target, *, options: AddOptions, json: Json = False) -> int:
    """Add documents to an index, which are cut and stored as its others.

    A document whose id the index has replaces the earlier one if they differ. Readers see the whole
    update or nothing of it.

    Examples:

    \b
      arag-search add today.jsonl --to my-index
      arag-search add reports/ --to my-index --root . --dry-run
    """
    check_places(source, to)
    return run_job(lambda progress: add_documents(source, to, options, progress), json)


@with_groups
def sync_command(
    index: IndexPlace,
    source: Sources,
    *,
    options: SyncOptions,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Keep the index up to date until Ctrl-C. Bad files are skipped, and mass deletions"
            " reported, not made.",
        ),
    ] = False,
    json: Json = False,
    typed: Typed,
) -> int:
    """Make an index equal to its sources as they are now.

    It adds new documents, replaces changed ones, and deletes documents that are gone. Without
    SOURCE, it reads the sources that the index was built from, as they were read then.

    Examples:

    \b
      arag-search sync my-index --dry-run
      arag-search sync my-index
      arag-search sync my-index --watch
      arag-search sync my-index notes/ --skip-bad-files
    """
    check_places(source, index)
    typed.check_one("watch", "dry_run")
    if not source:
        typed.check_effect("SOURCE", *KEPT_READING)
    if watch:
        return _watch(source, index, options, json)
    return run_job(lambda progress: sync_documents(source, index, options, progress), json)


def _watch(sources: list[str], index: str, options: SyncOptions, json: bool) -> int:
    """Keep an index in step with its sources until Ctrl-C or SIGTERM; print the report of each
    change."""
    from index_jobs.updates.watching import Watcher

    def printed(report: BuildReport | AddReport) -> None:
        print_report(report, json)
        sys.stdout.flush()

    with open_update(index) as target:
        if not sources:
            sources, options = as_built(target.manifest, options, index)
    watcher = Watcher(sources, index, options, progress=job_progress(), report=printed)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        watcher.run(threading.Event(), waits=False)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


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
    are merged. Afterwards each shard is one segment, and scores and order are as after a build of
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
    """Remove the index of a folder of files from the cache.

    Indexes that other versions of the program made of it go too. The files themselves stay as they
    are, and the next search of the folder builds the index again. An index that is in use is not
    removed.

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

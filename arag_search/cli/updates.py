"""arag-search delete and compact, and index --add and --sync: changes of an existing index."""

from __future__ import annotations

import signal
import sys
import threading
from typing import Annotated, Any

import typer

from arag_search.cli.options.index import IndexPlace, Json, VectorsFolder
from arag_search.cli.output.printing import INTERRUPTED, print_report, print_text, run_job
from arag_search.corpus import nfc
from arag_search.errors import ArgumentError, IndexNotFoundError
from index_jobs.build.options import BuildOptions
from index_jobs.build.report import AddReport, BuildReport
from index_jobs.updates.addition import add_documents
from index_jobs.updates.deletion import delete_documents
from index_jobs.updates.maintenance import compact_index
from index_jobs.updates.options import AddOptions
from index_jobs.updates.synchronisation import sync_documents


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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report what would be deleted, and delete nothing.")
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
      cut -f1 withdrawn.tsv | arag-search delete my-index - --dry-run
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
            dry_run=dry_run,
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


def watch_command(
    sources: list[str], to: str, build: BuildOptions, update: AddOptions, json: bool
) -> int:
    """Keep an index in step with its sources until Ctrl-C or SIGTERM; print the report of each
    change."""
    from arag_search.system.progress import open_progress
    from index_jobs.updates.watching import Watcher

    def printed(report: BuildReport | AddReport) -> None:
        print_report(report, json)
        sys.stdout.flush()

    watcher = Watcher(sources, to, build, update, progress=open_progress(), report=printed)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        watcher.run(threading.Event(), waits=False)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def update_command(
    context: typer.Context,
    sources: list[str],
    to: str,
    options: BuildOptions,
    *,
    sync: bool,
    watch: bool,
    json: bool,
    **update_options: Any,
) -> int:
    """Add the sources to the index, or make it equal to them, with ``watch`` until it is stopped.
    Only build options that were passed count, and they must be those of the index."""

    def if_given(name: str, value: Any) -> Any:
        source = context.get_parameter_source(name)
        return value if source is not None and source.name != "DEFAULT" else None

    if sync and if_given("add", True):
        raise ArgumentError(
            "--add and --sync are both given.", do="Leave one out: --sync also adds."
        )
    if update_options["allow_deletes"] and not (sync or watch):
        raise ArgumentError("--allow-deletes is given without --sync.", do="Leave it out.")
    if watch and (if_given("add", True) or update_options["dry_run"]):
        raise ArgumentError(
            "--watch is given with --add or --dry-run.", do="Leave one out: --watch synchronises."
        )
    option = "--watch" if watch else "--sync" if sync else "--add"
    for other, value in (
        ("--overwrite", options.overwrite),
        ("--shards", options.shards),
        ("--ray", options.ray),
        ("--fold-characters", if_given("fold_characters", True)),
    ):
        if value and not (watch and other != "--overwrite"):
            raise ArgumentError(
                f"{option}: {other} applies to new indexes only.",
                allowed=f"{option}, or a new index",
                do=f"Leave out {option} or {other}.",
            )
    update = sync_documents if sync else add_documents
    add_options = AddOptions(
        format=options.format,
        fields=options.fields,
        skip_bad_lines=options.skip_bad_lines,
        files=options.files,
        chunk_tokens=if_given("chunk_tokens", options.chunk_tokens),
        bm25=if_given("bm25", (options.k1, options.b)),
        metadata=if_given("metadata", options.metadata),
        without=if_given("without", options.without),
        language=if_given("language", options.language),
        workers=options.workers,
        **update_options,
    )
    if watch:
        return watch_command(sources, to, options, add_options, json)
    return run_job(lambda progress: update(sources, to, add_options, progress), json)


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

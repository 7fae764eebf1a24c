"""arag-search index: build an index from a corpus."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from arag_search.cli.options.build import CorpusOptions
from arag_search.cli.options.index import Json, VectorsFolder
from arag_search.cli.options.parser import check_one_given, with_groups, without_effect
from arag_search.cli.output.printing import INTERRUPTED, print_report, run_job
from arag_search.engines.open import check_path
from arag_search.engines.opensearch.address import is_address
from index_jobs.build.new_index import build_index
from index_jobs.sources.converters.registry import file_types_help
from index_jobs.sources.registry import formats_help

if TYPE_CHECKING:
    from index_jobs.build.options import BuildOptions
    from index_jobs.build.report import AddReport, BuildReport
    from index_jobs.updates.options import AddOptions

_SMALL_BYTES = 64 << 20
"""Of some 200,000 passages: building more is worth Java's second compiler."""

# Code that reads corpora and writes indexes is imported in the command, to keep --help fast.


@with_groups
def index_command(
    source: Annotated[
        list[str],
        typer.Argument(
            help="Folders and files of the corpus; - is standard input.",
            metavar="SOURCE",
            default_factory=list,
            show_default=False,
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="The folder of the index, or its address on OpenSearch: http://HOST:PORT/NAME.",
            metavar="INDEX",
        ),
    ],
    *,
    corpus: CorpusOptions,
    add: Annotated[
        bool,
        typer.Option(
            "--add",
            help="Add to an existing index with the settings of its build; documents with ids that "
            "it has are replaced if they differ.",
        ),
    ] = False,
    sync: Annotated[
        bool,
        typer.Option(
            "--sync",
            help="Make an existing index equal to the sources as they are now: add what is new, "
            "replace what has changed, delete what has vanished from these sources.",
        ),
    ] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Build the index if there is none, and keep it in step with the sources until "
            "Ctrl-C. Bad files are skipped, and mass deletions reported instead of followed.",
        ),
    ] = False,
    allow_deletes: Annotated[
        bool,
        typer.Option(
            "--allow-deletes",
            help="With --sync or --watch: allow deleting more than half of the documents of a "
            "source.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="With --add or --sync: show which documents would change, and change nothing.",
        ),
    ] = False,
    vectors: VectorsFolder = None,
    embed: Annotated[
        bool,
        typer.Option(
            "--embed/--no-embed",
            help="With --add or --sync: encode new texts for the vectors of the index, by the "
            "encoder that made them. Without, no vectors fit the index until arag-search embed.",
        ),
    ] = True,
    json: Json = False,
) -> int:
    """Build an index from a corpus.

    Sources are, by the name that --format has for them:

    \b
    FORMATS

    Of a folder, files of these types are read; --include adds source code and other text. A star
    marks what needs the extra "files".

    \b
    FILE_TYPES

    What .gitignore files exclude is left out, and so are hidden files, passwords and keys. The id
    of a file is its path; its name, ending, path and time are the fields file, type, path and
    modified.

    Files of records may be packed with gzip.

    Documents are cut into passages of whole sentences. A passage is found and read as one hit.

    Run the same command again to resume an interrupted build (Ctrl-C, a full disk, a crash). The
    index appears when it is complete.

    Examples:

    \b
      arag-search index notes/ --to my-index
      arag-search index src docs --to my-index --include '*.py' --skip-bad-files
      cat minutes.md | arag-search index - --to my-index
      arag-search index corpus.jsonl --to my-index --metadata year:number,lang:keyword
      arag-search index pages.jsonl.gz --to my-index --text-field body --id-field url
      arag-search index chunks.json --to my-index --overwrite --json > report.json
      arag-search index kilt.jsonl.gz --to kilt --format kilt --metadata categories:keyword
      arag-search index corpus.jsonl --to http://localhost:9200/my-index --shards 3
      arag-search index /shared/dumps/*.jsonl.gz --to /shared/my-index --ray auto
      arag-search index today.jsonl --to my-index --add
      arag-search index notes/ --to my-index --sync --dry-run
      arag-search index notes/ --to my-index --watch

    Then:

    \b
      arag-search search my-index '"four seasons" AND vivaldi AND NOT title:opera'
      arag-search info my-index
    """
    check_one_given({"--add": add, "--sync": sync, "--watch": watch})
    if dry_run and not (add or sync):
        raise without_effect("--dry-run", "--add or --sync")
    if allow_deletes and not (sync or watch):
        raise without_effect("--allow-deletes", "--sync or --watch")
    if not is_address(to):
        check_path(to, "the index")
    for name in source:
        check_path(name, "a source")
    build = corpus.build()
    mode = "--add" if add else "--sync" if sync else "--watch" if watch else ""
    if not mode:
        if all(map(os.path.isfile, source)) and sum(map(os.path.getsize, source)) < _SMALL_BYTES:
            from arag_search.engines.lucene import jvm

            jvm.expect_little()
        return run_job(lambda progress: build_index(source, to, build, progress), json)
    of_builds: dict[str, object] = {"--overwrite": corpus.overwrite}
    if not watch:  # which builds an index if there is none
        of_builds |= {"--shards": corpus.shards, "--ray": corpus.ray}
    for option, value in of_builds.items():
        check_one_given({mode: True, option: value})
    from index_jobs.updates.addition import add_documents
    from index_jobs.updates.options import AddOptions
    from index_jobs.updates.synchronisation import sync_documents

    options = AddOptions(
        **corpus.reading(),
        **corpus.kept(),
        allow_deletes=allow_deletes,
        dry_run=dry_run,
        vectors=vectors,
        embed=embed,
    )
    if watch:
        return _watch(source, to, build, options, json)
    update = sync_documents if sync else add_documents
    return run_job(lambda progress: update(source, to, options, progress), json)


index_command.__doc__ = (
    (index_command.__doc__ or "")
    .replace("    FORMATS", formats_help("    "))
    .replace("    FILE_TYPES", file_types_help("    "))
)


def _watch(sources: list[str], to: str, build: BuildOptions, update: AddOptions, json: bool) -> int:
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

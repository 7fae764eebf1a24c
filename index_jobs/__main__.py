"""python -m index_jobs: building an index in two stages, cutting and loading."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Any

import typer

from arag_search.cli.app import SETTINGS, main
from arag_search.cli.options.build import (
    Bm25,
    Json,
    MetadataOption,
    ReadingOptions,
    SelectionOptions,
    Sources,
    StoringOptions,
    Target,
    Workers,
    build_options,
)
from arag_search.cli.options.parser import with_groups

# Modules that read corpora and write indexes are imported when a command runs, to keep --help fast.

Folder = Annotated[
    Path, typer.Argument(help="The folder that was given to chunk as --out.", metavar="DIR")
]


@with_groups
def chunk_command(
    source: Sources,
    out: Annotated[
        Path,
        typer.Option(
            help="The folder of chunks: a new one, or one that this command has started.",
            metavar="DIR",
        ),
    ],
    *,
    reading: ReadingOptions,
    metadata: MetadataOption = None,
    workers: Workers = None,
    selection: SelectionOptions,
    share: Annotated[
        str,
        typer.Option(
            help="Cut only every N-th source, from the I-th on. All sources are named in each "
            "command; only those of the share must be on this machine.",
            metavar="I/N",
        ),
    ] = "1/1",
    json: Json = False,
) -> int:
    """Read, cut and count sources, once, into a folder of chunks.

    Each source becomes one file of JSON lines, compressed with gzip; each line is a document with
    its chunks. The sources and options are those of arag-search index. Run the same command again
    to resume an interrupted one: it skips the finished sources, and repeats only a few seconds'
    work of the current one.

    To use several machines, give each the same sources in the same order, and its own share. Then
    copy all folders into one.

    Examples:

    \b
      python -m index_jobs chunk dump-*.jsonl.gz --out chunks --metadata year:number
      python -m index_jobs chunk dump-*.jsonl.gz --out chunks --share 2/4
    """
    from arag_search.cli.output.printing import run_job
    from arag_search.engines.open import check_path
    from index_jobs.stages.chunk import chunk_sources, parse_share

    for name in source:
        check_path(name, "a source")
    check_path(str(out), "the folder of chunks")
    options = build_options(
        **reading._asdict(), metadata=metadata, workers=workers, **selection._asdict()
    )
    part = parse_share(share)
    return run_job(lambda progress: chunk_sources(source, out, options, progress, part), json)


@with_groups
def load_command(
    folder: Folder,
    to: Target,
    bm25: Bm25 = "1.2,0.75",
    *,
    storing: StoringOptions,
    skip_bad_lines: Annotated[
        bool,
        typer.Option(
            "--skip-bad-lines",
            help="Count and skip documents with a duplicate id, instead of stopping.",
        ),
    ] = False,
    json: Json = False,
) -> int:
    """Build an index from a folder of chunks.

    All sources must be in the folder and cut completely; the files are first compared with their
    checksums. The index is the same as arag-search index would build from the sources. Run the same
    command again to resume an interrupted one. The index appears when it is finished.

    Examples:

    \b
      python -m index_jobs load chunks --to my-index
      python -m index_jobs load chunks --to http://localhost:9200/my-index --shards 3
    """
    from arag_search.cli.output.printing import run_job
    from arag_search.engines.open import check_path
    from arag_search.engines.opensearch.address import is_address
    from index_jobs.stages.load import load_chunks

    check_path(str(folder), "the folder of chunks")
    if not is_address(to):
        check_path(to, "the index")
    options = build_options(bm25=bm25, **storing._asdict(), skip_bad_lines=skip_bad_lines)
    return run_job(lambda progress: load_chunks(folder, to, options, progress), json)


def status_command(folder: Folder, json: Json = False) -> int:
    """Show which sources of a folder of chunks are cut, and which are missing.

    Checksums are not compared; load does that.

    Example:

    \b
      python -m index_jobs status chunks
    """
    from arag_search.cli.output.printing import print_report
    from arag_search.engines.open import check_path
    from index_jobs.stages.chunk_report import folder_status

    check_path(str(folder), "the folder of chunks")
    return print_report(folder_status(folder), json)


@functools.cache
def stages() -> Any:
    """Return the commands and their options, derived from the functions that run them."""
    from arag_search.cli.options.index import add_connection_options

    app = typer.Typer(
        name="index_jobs",
        add_completion=False,
        **SETTINGS,
    )

    @app.callback()
    def options() -> None:  # pyright: ignore[reportUnusedFunction]
        """Build an index in two stages, for large corpora: chunk cuts the sources once, if needed
        on several machines; load builds an index from the chunks, as often as needed.

        For smaller corpora, one command does both: arag-search index SOURCE --to INDEX
        """

    app.command("chunk", short_help="Cut sources into a folder of chunks.")(chunk_command)
    app.command("load", short_help="Build an index from a folder of chunks.")(load_command)
    app.command("status", short_help="Show which sources of a folder are cut.")(status_command)
    group: Any = typer.main.get_command(app)
    add_connection_options(group.commands["load"])
    return group


if __name__ == "__main__":
    main("python -m index_jobs", stages)

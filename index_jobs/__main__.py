"""python -m index_jobs: building an index in two stages, cutting and loading."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Any

import typer

from arag_search.cli.app import main
from arag_search.cli.options.build import (
    Bm25,
    ChunkTokens,
    FormatOption,
    IdField,
    Include,
    Json,
    Keep,
    MaxFileSize,
    MetadataOption,
    NodeWait,
    NoIgnore,
    Overwrite,
    Root,
    SentenceRule,
    Shards,
    SkipBadFiles,
    SkipBadLines,
    Sources,
    Target,
    TextField,
    TitleField,
    Without,
    Workers,
    build_options,
)
from arag_search.cli.output.messages import INTERRUPTED
from index_jobs.sources.registry import AUTO

# Modules that read corpora and write indexes are imported when a command runs, to keep --help fast.

Folder = Annotated[
    Path, typer.Argument(help="The folder that was given to chunk as --out.", metavar="DIR")
]


def chunk_command(
    source: Sources,
    out: Annotated[
        Path,
        typer.Option(
            help="The folder of chunks: a new one, or one that this command has started.",
            metavar="DIR",
        ),
    ],
    format: FormatOption = AUTO,
    id_field: IdField = None,
    title_field: TitleField = None,
    text_field: TextField = None,
    chunk_tokens: ChunkTokens = 1000,
    sentence_rule: SentenceRule = None,
    metadata: MetadataOption = None,
    workers: Workers = None,
    skip_bad_lines: SkipBadLines = False,
    skip_bad_files: SkipBadFiles = False,
    include: Include = None,
    no_ignore: NoIgnore = False,
    max_file_size: MaxFileSize = None,
    root: Root = None,
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
    from arag_search.engines.open import check_path
    from arag_search.system.progress import open_progress
    from index_jobs.stages.chunk import chunk_sources, parse_share

    for name in source:
        check_path(name, "a source")
    check_path(str(out), "the folder of chunks")
    options = build_options(
        format=format,
        id_field=id_field,
        title_field=title_field,
        text_field=text_field,
        chunk_tokens=chunk_tokens,
        sentence_rule=sentence_rule,
        metadata=metadata,
        workers=workers,
        skip_bad_lines=skip_bad_lines,
        skip_bad_files=skip_bad_files,
        include=include,
        no_ignore=no_ignore,
        max_file_size=max_file_size,
        root=root,
    )
    try:
        report = chunk_sources(source, out, options, open_progress(), parse_share(share))
    except KeyboardInterrupt:
        return INTERRUPTED  # the progress has said how to resume
    _print(report, json)
    return 0


def load_command(
    folder: Folder,
    to: Target,
    bm25: Bm25 = "1.2,0.75",
    without: Without = None,
    shards: Shards = None,
    workers: Workers = None,
    node_wait: NodeWait = None,
    keep: Keep = None,
    overwrite: Overwrite = False,
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
    from arag_search.engines.open import check_path
    from arag_search.engines.opensearch.address import is_address
    from arag_search.system.progress import open_progress
    from index_jobs.stages.load import load_chunks

    check_path(str(folder), "the folder of chunks")
    if not is_address(to):
        check_path(to, "the index")
    options = build_options(
        bm25=bm25,
        without=without,
        shards=shards,
        workers=workers,
        node_wait=node_wait,
        keep=keep,
        overwrite=overwrite,
        skip_bad_lines=skip_bad_lines,
    )
    try:
        report = load_chunks(folder, to, options, open_progress())
    except KeyboardInterrupt:
        return INTERRUPTED  # the progress has said how to resume
    _print(report, json)
    return 0


def status_command(folder: Folder, json: Json = False) -> int:
    """Show which sources of a folder of chunks are cut, and which are missing.

    Checksums are not compared; load does that.

    Example:

    \b
      python -m index_jobs status chunks
    """
    from arag_search.cli.output.results import print_text
    from arag_search.engines.open import check_path
    from index_jobs.stages.chunk_report import folder_status

    check_path(str(folder), "the folder of chunks")
    status = folder_status(folder)
    print_text(status.to_json() if json else status.to_text())
    return 0


def _print(report: Any, json: bool) -> None:
    """Print a report on stdout; if it is JSON, print its warnings on stderr."""
    from arag_search.cli.output.messages import say
    from arag_search.cli.output.results import print_text

    if json:
        for warning in report.warnings():
            say(warning)
    print_text(report.to_json() if json else report.to_text())


@functools.cache
def stages() -> Any:
    """Return the commands and their options, derived from the functions that run them."""
    from arag_search.cli.options.connection import add_connection_options

    app = typer.Typer(
        name="index_jobs",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
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

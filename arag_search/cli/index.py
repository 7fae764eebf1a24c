"""arag-search index: build an index from a corpus."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from arag_search.cli.options.index import Json, Sources, Target
from arag_search.cli.options.parser import with_groups
from arag_search.cli.output.printing import run_job
from arag_search.engines.open import check_path
from arag_search.engines.opensearch.address import is_address
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.sources.converters.registry import file_types_help
from index_jobs.sources.registry import formats_help

_SMALL_BYTES = 64 << 20
"""Of some 200,000 passages: building more is worth Java's second compiler."""


def _print_formats(wanted: bool) -> None:
    if wanted:
        print(
            f"Sources, by the name that --format takes:\n\n{formats_help('')}\n\n"
            "Records may be compressed (gzip, bzip2, xz, zip with one file).\n\n"
            "Files in folders, by type, and what each becomes. A star needs the extra `files`;\n"
            f"other endings need --include.\n\n{file_types_help('')}\n\n"
            "The id of a file is its path below the folder that all sources share. Documents of\n"
            "files have the fields file, type, path, modified and passage_kind."
        )
        raise typer.Exit


@with_groups
def index_command(
    source: Sources,
    to: Target,
    *,
    options: BuildOptions,
    formats: Annotated[
        bool,
        typer.Option(
            "--formats",
            help="List the formats of sources and the types of files.",
            is_eager=True,
            callback=_print_formats,
        ),
    ] = False,
    json: Json = False,
) -> int:
    """Build an index from folders and files.

    Documents are cut into passages of whole sentences. A passage is found and read as one hit.
    Files that .gitignore excludes, hidden files, passwords and keys are left out. Run the same
    command again to resume an interrupted build.

    Examples:

    \b
      arag-search index notes/ --to my-index
      arag-search index src docs --to my-index --include '*.css' --skip-bad-files
      cat minutes.md | arag-search index - --to my-index
      arag-search index corpus.jsonl --to my-index --metadata year:number,lang:keyword
      arag-search index corpus.jsonl --to http://localhost:9200/my-index --shards 3

    Then:

    \b
      arag-search search my-index '"four seasons" AND vivaldi AND NOT title:opera'
      arag-search sync my-index
    """
    del formats
    check_places(source, to)
    if all(map(os.path.isfile, source)) and sum(map(os.path.getsize, source)) < _SMALL_BYTES:
        from arag_search.engines.lucene import jvm

        jvm.expect_little()
    return run_job(lambda progress: build_index(source, to, options, progress), json)


def check_places(sources: list[str], index: str) -> None:
    """Raise ArgumentError for a source or an index that is no path."""
    if not is_address(index):
        check_path(index, "the index")
    for name in sources:
        check_path(name, "a source")

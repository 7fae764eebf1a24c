"""arag-search index: build an index from a corpus."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from arag_search.cli.options.build import (
    Bm25,
    FoldCharacters,
    MetadataOption,
    ReadingOptions,
    SelectionOptions,
    Sources,
    StoringOptions,
    Target,
    build_options,
)
from arag_search.cli.options.index import Json, VectorsFolder
from arag_search.cli.options.parser import with_groups
from arag_search.cli.output.printing import print_report, run_job
from arag_search.engines.open import check_path
from arag_search.engines.opensearch.address import is_address
from arag_search.errors import ArgumentError
from index_jobs.build.new_index import build_index
from index_jobs.sources.converters.registry import file_types_help
from index_jobs.sources.registry import formats_help
from index_jobs.updates.maintenance import roll_back

_SMALL_BYTES = 64 << 20
"""Of some 200,000 passages: building more is worth Java's second compiler."""

# Code that reads corpora and writes indexes is imported in the command, to keep --help fast.


@with_groups
def index_command(
    source: Sources,
    to: Target,
    *,
    reading: ReadingOptions,
    fold_characters: FoldCharacters = None,
    bm25: Bm25 = "1.2,0.75",
    metadata: MetadataOption = None,
    storing: StoringOptions,
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
    selection: SelectionOptions,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="With --add or --sync: show which documents would change, and change nothing.",
        ),
    ] = False,
    rollback: Annotated[
        bool,
        typer.Option(
            "--rollback",
            help="Build nothing: point the name on OpenSearch to the previous index again.",
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
    context: typer.Context = None,  # pyright: ignore[reportArgumentType] -- typer gives it
) -> int:
    """Build an index from a corpus.

    Sources are, by the name that --format has for them:

    \b
    FORMATS

    Of a folder, files of these types are read; --include adds source code and other text. A star
    marks what needs the extra "files".

    \b
    FILE_TYPES

    What .gitignore files exclude is left out, and so are hidden files. The id of a file is its
    path; its name, ending, path and time are the fields file, type, path and modified.

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
      arag-search index --rollback --to http://localhost:9200/my-index
      arag-search index today.jsonl --to my-index --add
      arag-search index notes/ --to my-index --sync --dry-run
      arag-search index notes/ --to my-index --watch

    Then:

    \b
      arag-search search my-index '"four seasons" AND vivaldi AND NOT title:opera'
      arag-search info my-index
    """
    if dry_run and not (add or sync or watch):
        raise ArgumentError(
            "--dry-run is given without --add or --sync.",
            allowed="--dry-run of an update, which shows what would change",
            do="Leave it out.",
        )
    if not is_address(to):
        check_path(to, "the index")
    if rollback:
        return _roll_back(to, source, json)
    for name in source:
        check_path(name, "a source")
    options = build_options(
        **reading._asdict(),
        fold_characters=fold_characters,
        bm25=bm25,
        metadata=metadata,
        **storing._asdict(),
        **selection._asdict(),
    )
    if add or sync or watch:
        from arag_search.cli.updates import update_command

        return update_command(
            context,
            source,
            to,
            options,
            sync=sync,
            watch=watch,
            json=json,
            dry_run=dry_run,
            allow_deletes=allow_deletes,
            vectors=vectors,
            embed=embed,
        )
    if all(map(os.path.isfile, source)) and sum(map(os.path.getsize, source)) < _SMALL_BYTES:
        from arag_search.engines.lucene import jvm

        jvm.expect_little()
    return run_job(lambda progress: build_index(source, to, options, progress), json)


index_command.__doc__ = (
    (index_command.__doc__ or "")
    .replace("    FORMATS", formats_help("    "))
    .replace("    FILE_TYPES", file_types_help("    "))
)


def _roll_back(location: str, sources: list[str], json: bool) -> int:
    if sources:
        raise ArgumentError(
            "--rollback builds nothing, but sources are given.",
            where=", ".join(sources[:5]),
            do="Leave them out, or leave --rollback out.",
        )
    return print_report(roll_back(location), json)

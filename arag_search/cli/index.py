"""arag-search index: a corpus becomes an index."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

# What reads corpora and writes indexes is imported where the command runs: --help is to be fast.

INTERRUPTED = 130


class FormatName(StrEnum):
    auto = "auto"
    text = "text"
    documents = "documents"
    passages = "passages"
    arag_chunks = "arag-chunks"
    graphrag_bench = "graphrag-bench"
    kilt = "kilt"
    dpr = "dpr"
    beir = "beir"
    anserini = "anserini"


def index_command(
    source: Annotated[
        list[str],
        typer.Argument(
            help="Folders and files of the corpus.",
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
    format: Annotated[
        FormatName,
        typer.Option(help="What the sources are; auto looks at the beginning of each and says."),
    ] = FormatName.auto,
    id_field: Annotated[
        str | None,
        typer.Option(
            help="Field of the document id.  [default: id, else made of file name and line]",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    title_field: Annotated[
        str | None,
        typer.Option(
            help="Field of the title.  [default: title]", metavar="NAME", show_default=False
        ),
    ] = None,
    text_field: Annotated[
        str | None,
        typer.Option(
            help="Field of the text.  [default: text, for passages sentences]",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    chunk_tokens: Annotated[
        int, typer.Option(help="Most o200k tokens of a passage, 16 to 100,000.", metavar="N")
    ] = 1000,
    bm25: Annotated[
        str,
        typer.Option(
            help="k1 and b of the ranking; long documents want others. Kept in the index.",
            metavar="K1,B",
        ),
    ] = "1.2,0.75",
    metadata: Annotated[
        str | None,
        typer.Option(
            help="Fields of the records to keep for queries, each with its type: keyword, number "
            "or date. Others are ignored and counted.",
            metavar="NAME:TYPE,...",
            show_default=False,
        ),
    ] = None,
    without: Annotated[
        str | None,
        typer.Option(
            help="What to leave out: sentences makes a smaller index without --granularity "
            "sentence; exact a smaller one without keyword search, on OpenSearch only.",
            metavar="sentences,exact",
            show_default=False,
        ),
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option(
            help="Shards of an index on OpenSearch, 1 to 1,024.  [default: 1]",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Processes that cut and pack documents, 0 to 64; 0 does it in this one. "
            "[default: 0 for less than 16 MB, else cores less one, at most 4]",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    node_wait: Annotated[
        float | None,
        typer.Option(
            help="Wait so long for a node of OpenSearch that is lost.  [default: 600]",
            metavar="SECONDS",
            show_default=False,
        ),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(
            help="Indexes before this one to leave on OpenSearch for --rollback.  [default: 1]",
            metavar="N",
            show_default=False,
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Replace the index that is there. It is searched until the new one is finished.",
        ),
    ] = False,
    add: Annotated[
        bool,
        typer.Option(
            "--add",
            help="Add to the index that is there, as it was built; documents with ids that are in "
            "it are replaced.",
        ),
    ] = False,
    skip_bad_lines: Annotated[
        bool,
        typer.Option(
            "--skip-bad-lines", help="Count records that cannot be read, instead of stopping."
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Write nothing: estimate documents, passages, disk and time from a sample.",
        ),
    ] = False,
    rollback: Annotated[
        bool,
        typer.Option(
            "--rollback",
            help="Build nothing: let the name on OpenSearch lead to the index before again.",
        ),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the report as one JSON object.")
    ] = False,
    context: typer.Context = None,  # pyright: ignore[reportArgumentType] -- typer gives it
) -> int:
    """Build an index from a corpus.

    Sources are folders of .txt and .md files, JSON lines of documents {"id", "title", "text", ...}
    or of passages {"title", "sentences": [...]}, A-RAG chunk files ["0:text", ...], and
    GraphRAG-Bench files [{"corpus_name", "context"}]; with gzip too. Also the collections of
    retrieval research: KILT's knowledge source (kilt), passages in rows id, text, title with tabs
    (dpr), BEIR folders or corpus.jsonl (beir), and folders of Lucene indexes that Anserini or
    Pyserini made with the text stored (anserini). Only text is read: convert PDF and HTML before.

    Documents are cut into passages of whole sentences. A passage is found and read as one hit.

    A build that was stopped (Ctrl-C, a full disk, a crash) is continued by the same command; the
    index appears when it is finished.

    Examples:

    \b
      arag-search index notes/ --to my-index
      arag-search index corpus.jsonl --to my-index --metadata year:number,lang:keyword
      arag-search index pages.jsonl.gz --to my-index --text-field body --id-field url
      arag-search index chunks.json --to my-index --overwrite --json > report.json
      arag-search index kilt.jsonl.gz --to kilt --format kilt --metadata categories:keyword
      arag-search index corpus.jsonl --to http://localhost:9200/my-index --shards 3
      arag-search index dump.jsonl.gz --to http://localhost:9200/my-index --dry-run
      arag-search index --rollback --to http://localhost:9200/my-index
      arag-search index today.jsonl --to my-index --add

    Then:

    \b
      arag-search search my-index '"four seasons" AND vivaldi AND NOT title:opera'
      arag-search info my-index
    """
    from arag_search.engines.opensearch.address import is_address
    from arag_search.index import check_path
    from index_jobs.build import build_index
    from index_jobs.formats import Fields
    from index_jobs.metadata import parse_metadata
    from index_jobs.options import BuildOptions, parse_bm25, parse_names
    from index_jobs.progress import open_progress

    if not is_address(to):
        check_path(to, "the index")
    if rollback:
        return _roll_back(to, source, dry_run, json)
    for name in source:
        check_path(name, "a source")
    k1, b = parse_bm25(bm25)
    options = BuildOptions(
        format=None if format is FormatName.auto else format.value,
        fields=Fields(id=id_field, title=title_field, text=text_field),
        chunk_tokens=chunk_tokens,
        k1=k1,
        b=b,
        metadata=parse_metadata(metadata) if metadata is not None else {},
        without=parse_names(without) if without is not None else (),
        overwrite=overwrite,
        skip_bad_lines=skip_bad_lines,
        shards=shards,
        workers=workers,
        node_wait_s=node_wait,
        keep=keep,
    )
    if dry_run:
        from index_jobs.estimate import estimate

        found = estimate(source, to, options)
        typer.echo(found.to_json() if json else found.to_text())
        return 0
    if add:
        from arag_search.cli.add import add_command

        return add_command(context, source, to, options, json)
    try:
        report = build_index(source, to, options, open_progress())
    except KeyboardInterrupt:
        return INTERRUPTED  # the progress has said how to go on
    if json:
        for warning in report.warnings():
            typer.echo(warning, err=True)
        typer.echo(report.to_json())
    else:
        typer.echo(report.to_text())
    return 0


def _roll_back(location: str, sources: list[str], dry_run: bool, json: bool) -> int:
    from arag_search.errors import ArgumentError
    from index_jobs.rollback import roll_back

    if sources:
        raise ArgumentError(
            "--rollback builds nothing, and sources are given.",
            where=", ".join(sources[:5]),
            do="Leave them out, or leave --rollback out.",
        )
    if dry_run:
        raise ArgumentError(
            "--rollback and --dry-run are both given.",
            where=location,
            do="Leave one of them out.",
        )
    report = roll_back(location)
    typer.echo(report.to_json() if json else report.to_text())
    return 0

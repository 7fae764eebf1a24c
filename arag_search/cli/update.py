"""arag-search index --add and --sync: update an existing index from sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from index_jobs.build.options import BuildOptions


def update_command(
    context: typer.Context,
    sources: list[str],
    to: str,
    options: BuildOptions,
    *,
    sync: bool,
    json: bool,
    **update_options: bool,
) -> int:
    """Add the sources to the index, or make it equal to them. Only build options that were passed
    count, and they must be those of the index."""
    from arag_search.cli.output.reports import run_job
    from arag_search.errors import ArgumentError
    from index_jobs.updates.addition import AddOptions, add_documents, sync_documents

    def if_given(name: str, value: Any) -> Any:
        source = context.get_parameter_source(name)
        return value if source is not None and source.name != "DEFAULT" else None

    if sync and if_given("add", True):
        raise ArgumentError(
            "--add and --sync are both given.", do="Leave one out: --sync also adds."
        )
    if update_options["allow_deletes"] and not sync:
        raise ArgumentError("--allow-deletes is given without --sync.", do="Leave it out.")
    option = "--sync" if sync else "--add"
    for other, value in (
        ("--overwrite", options.overwrite),
        ("--shards", options.shards),
        ("--fold-characters", if_given("fold_characters", True)),
    ):
        if value:
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
        workers=options.workers,
        **update_options,
    )
    return run_job(lambda progress: update(sources, to, add_options, progress), json)

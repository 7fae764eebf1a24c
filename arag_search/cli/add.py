"""arag-search index --add: add documents to an existing index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from index_jobs.build.options import BuildOptions


def add_command(
    context: typer.Context, sources: list[str], to: str, options: BuildOptions, json: bool
) -> int:
    """Add the sources to the index. Only those build options count that were passed, and they
    must be those of the index."""
    from arag_search.cli.output.messages import INTERRUPTED, say
    from arag_search.cli.output.results import print_text
    from arag_search.errors import ArgumentError
    from arag_search.system.progress import open_progress
    from index_jobs.updates.addition import AddOptions, add_documents

    def if_given(name: str, value: Any) -> Any:
        source = context.get_parameter_source(name)
        return value if source is not None and source.name != "DEFAULT" else None

    for option, value in (("--overwrite", options.overwrite), ("--shards", options.shards)):
        if value:
            raise ArgumentError(
                f"--add: {option} is for building an index.",
                allowed="--add, or a new index",
                do=f"Leave out --add or {option}.",
            )
    try:
        report = add_documents(
            sources,
            to,
            AddOptions(
                format=options.format,
                fields=options.fields,
                skip_bad_lines=options.skip_bad_lines,
                files=options.files,
                chunk_tokens=if_given("chunk_tokens", options.chunk_tokens),
                bm25=if_given("bm25", (options.k1, options.b)),
                metadata=if_given("metadata", options.metadata),
                without=if_given("without", options.without),
                workers=options.workers,
            ),
            open_progress(),
        )
    except KeyboardInterrupt:
        return INTERRUPTED  # the progress has said how to resume
    if json:
        for warning in report.warnings():
            say(warning)
    print_text(report.to_json() if json else report.to_text())
    return 0

"""arag-search compact: merge an index into the state after a build."""

from __future__ import annotations

from typing import Annotated

import typer


def compact_command(
    index: Annotated[
        str, typer.Argument(help="The folder or address of the index.", metavar="INDEX")
    ],
    json: Annotated[
        bool, typer.Option("--json", help="Print the report as one JSON object.")
    ] = False,
) -> int:
    """Merge the segments that updates left behind.

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
    from arag_search.cli.output.messages import INTERRUPTED
    from arag_search.cli.output.results import print_text
    from arag_search.system.progress import open_progress
    from index_jobs.updates.compaction import compact_index

    try:
        report = compact_index(index, open_progress())
    except KeyboardInterrupt:
        return INTERRUPTED  # the progress has said how to resume
    print_text(report.to_json() if json else report.to_text())
    return 0

"""arag-search compact: merge an index into the state after a build."""

from __future__ import annotations

from arag_search.cli.options.build import Json
from arag_search.cli.options.index import IndexPlace


def compact_command(
    index: IndexPlace,
    json: Json = False,
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
    from arag_search.cli.output.reports import run_job
    from index_jobs.updates.compaction import compact_index

    return run_job(lambda progress: compact_index(index, progress), json)

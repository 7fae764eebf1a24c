"""Jobs that change an index or make one: running them, and printing their reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from arag_search.cli.output.messages import INTERRUPTED, say
from arag_search.cli.output.results import print_text

if TYPE_CHECKING:
    from arag_search.system.progress import Progress
    from index_jobs.build.report import Report


def run_job(job: Callable[[Progress], Report], json: bool) -> int:
    """Run a job, print its report, and return the exit code."""
    from arag_search.system.progress import open_progress

    try:
        report = job(open_progress())
    except KeyboardInterrupt:
        return INTERRUPTED  # the progress has said how to resume
    return print_report(report, json)


def print_report(report: Report, json: bool) -> int:
    """Print a report; if it is JSON, print its warnings on stderr. Return the exit code 0."""
    if json:
        for warning in report.warnings():
            say(warning)
    print_text(report.to_json() if json else report.to_text())
    return 0

"""What commands print: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arag_search.query.problems import QueryError
    from arag_search.search.standing import Standing
    from arag_search.system.progress import Progress
    from index_jobs.build.report import Report

# What commands import first, so that Ctrl-C works from the start: it imports no package.

INTERRUPTED = 130
"""The exit code after Ctrl-C."""
NOT_FOUND = 1
"""The exit code of searches and reads that found nothing."""


def say(text: str) -> None:
    """Print text to stderr; characters that it cannot show are escaped."""
    encoding = sys.stderr.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=sys.stderr)


def print_json(value: object, *, pretty: bool = False) -> None:
    """Print one JSON value to stdout, on one line unless ``pretty``."""
    import orjson

    option = orjson.OPT_APPEND_NEWLINE | (orjson.OPT_INDENT_2 if pretty else 0)
    try:
        written = orjson.dumps(value, option=option)
    except TypeError:  # a name that is not UTF-8, given on the command line
        written = json.dumps(value, indent=2 if pretty else None).encode() + b"\n"
    print_bytes(written)


def print_bytes(data: bytes) -> None:
    """Write UTF-8 to stdout at once."""
    if sys.stdout.isatty():  # as text, so that it is shown and not obeyed
        print_text(data.decode("utf-8", "replace").removesuffix("\n"))
        sys.stdout.flush()
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def print_text(text: str) -> None:
    """Print text to stdout; characters that the terminal cannot show are replaced."""
    sys.stdout.write(terminal_text(text) + "\n")


def terminal_text(text: str) -> str:
    """Return text with the characters replaced that stdout cannot show."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def run_job(job: Callable[[Progress], Report], json: bool) -> int:
    """Run a job, print its report, and return the exit code."""
    try:
        report = job(job_progress())
    except KeyboardInterrupt:
        return INTERRUPTED  # the progress has said how to resume
    return print_report(report, json)


def job_progress() -> Progress:
    """Open the display of a job, whose notes name options for fields."""
    from arag_search.cli.options.parser import as_options
    from arag_search.system.progress import open_progress

    progress = open_progress()
    note = progress.note
    progress.note = lambda text: note(as_options(text))
    return progress


def print_report(report: Report, json: bool) -> int:
    """Print the report of a job, as JSON on one line and with its warnings on stderr. Return the
    exit code 0."""
    from arag_search.cli.options.parser import as_options

    if json:
        for warning in report.warnings():
            say(as_options(warning))
    return print_result(as_options(report.to_text()), report.to_dict(), json, pretty=False)


def print_result(text: str, values: object, json: bool, *, pretty: bool = True) -> int:
    """Print a result in words, or its values as JSON, and return the exit code 0."""
    if json:
        print_json(values, pretty=pretty)
    else:
        print_text(text)
    return 0


def with_state(text: str, standing: Standing | None, *, is_absent: bool = False) -> str:
    """Return text with safe signs, and below it the lines on the state of its index, if any. If
    files have changed, the last line says which search reads them."""
    from arag_search.tools.replies.apart import safe_signs

    lines = [] if standing is None else standing.lines(is_absent=is_absent)
    if standing is not None and standing.changed_files and standing.folder and not standing.problem:
        is_more = standing.changed_files > standing.slow_files
        why = "The next search reads more" if is_more else "Reading takes long"
        lines[-1] += f" {why}; search --fresh reads all."
    return safe_signs("\n".join([text, *lines]))


def state_json(standing: Standing | None) -> dict[str, Any] | None:
    """Return a standing as values that JSON can hold; None if nothing is known."""
    return None if standing is None else standing.to_dict()


def undeclared_text(error: QueryError, undeclared: Collection[str]) -> str:
    """Return how to declare the fields of a query that documents have and the index lacks. Empty:
    there are none."""
    named = [problem.values["name"] for problem in error.problems if "name" in problem.values]
    fields = dict.fromkeys(f"{name}:keyword" for name in named if name in undeclared)
    if not fields:
        return ""
    build = f"arag-search index SOURCE --to INDEX --metadata {','.join(fields)}"
    return f"Do: Declare the field when you build the index: {build}"


def problem_list(error: QueryError) -> list[dict[str, Any]]:
    """Return all problems of a query."""
    from dataclasses import asdict

    return [asdict(problem) for problem in error.problems]

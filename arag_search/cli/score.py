"""arag-search score: what a run is worth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from arag_search.evaluation.score import Row, Score

_HEAD = (
    "", "questions", "EM", "F1", "Contain-Acc", "evidence", "refused", "failed", "missing",
    "tokens", "steps", "seconds",
)  # fmt: skip


def score_command(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.", metavar="DIR")],
    questions: Annotated[
        Path | None,
        typer.Option(
            help="Score against this file.  [default: the one the run was given]",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print all of it as JSON, each question too.")
    ] = False,
) -> int:
    """Score a run against gold answers, overall and by type.

    EM and F1 as in SQuAD, of the short answer; Contain-Acc as in A-RAG, of short answer and
    explanation; evidence is the share of gold titles among the titles shown. Every question that
    the run was to answer counts: those that failed or have no record yet as 0. Tokens (of corpus
    text), steps and seconds are means over the records.

    Examples:

    \b
      arag-search score runs/a
      arag-search score runs/a --json > a.json
    """
    from arag_search.cli.results import print_json, print_text
    from arag_search.evaluation.score import score

    found = score(folder, questions)
    if json:
        print_json(found.to_json(), pretty=True)
    else:
        print_text(score_text(found))
    return 0


def score_text(found: Score) -> str:
    """What was run, a table of its rows, and the notes."""
    run = found.run
    index = run.index if run.filter is None else f"{run.index} ({run.filter})"
    table = [_HEAD, *map(_cells, found.rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(_HEAD))]
    lines = [f"{run.preset}, model {run.model}, index {index}"]
    for line in table:
        first = line[0].ljust(widths[0])
        rest = (cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
        lines.append("  ".join([first, *rest]).rstrip())
    return "\n".join([*lines, *found.notes])


def _cells(row: Row) -> tuple[str, ...]:
    shares = (row.exact_match, row.f1, row.contain_accuracy, row.evidence_recall)
    counts = (row.refused, row.failed, row.missing)
    return (
        row.type,
        f"{row.questions:,}",
        *("-" if value is None else f"{value:.3f}" for value in shares),
        *(f"{count:,}" for count in counts),
        "-" if row.retrieved_tokens is None else f"{row.retrieved_tokens:,.0f}",
        *("-" if value is None else f"{value:.1f}" for value in (row.steps, row.seconds)),
    )

"""What a run is worth, as tables at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from arag_search.evaluation.doubts import trust_notes
from arag_search.evaluation.failures import FAILURES
from arag_search.evaluation.judging.judge import VERDICTS
from arag_search.evaluation.measurement import Means
from arag_search.evaluation.measures import Unit
from arag_search.evaluation.score import NOT_JUDGED, NOT_MEASURED, Row, Score

_HEAD = (
    "", "questions", "EM", "F1", "Contain-Acc", "evidence", "refused", "failed", "missing",
    "tokens", "steps", "seconds",
)  # fmt: skip
_NONE = "-"
_FILTER_CHARACTERS = 60

_WRITTEN: Mapping[Unit, Callable[[float], str]] = {
    "share": lambda value: f"{value:.3f}",
    "tokens": lambda value: f"{value:,.0f}",
    "steps": lambda value: f"{value:.1f}",
    "seconds": lambda value: f"{value:.1f}",
    "USD": lambda value: f"{value:.4f}",
}


def score_text(found: Score) -> str:
    """What was run, a table of its rows, and the notes."""
    table = _table([_HEAD, *map(_cells, found.rows)])
    return "\n".join([_run_line(found), *table, *_notes(found)])


def measures_text(found: Score) -> str:
    """What was run, a table of the measures that were asked for, verdicts, and the notes."""
    names = [str(one) for one in found.measures]
    table = [("", "questions", *names), *(_means_cells(row, found) for row in found.means)]
    lines = [_run_line(found), *_table(table)]
    overall = found.means[0]
    for name in names:
        counted = overall.counted[name]
        if counted < overall.questions:
            lines.append(f"{name} is over {counted:,} of {overall.questions:,} questions.")
    return "\n".join([*lines, *_verdict_lines(found), *_notes(found)])


def details_text(found: Score) -> str:
    """What consecutive searches share, what followed failed ones, and why answers are wrong."""
    told = found.trajectories
    overlap, recovery = told.overlap, told.recovery
    lines = [
        "",
        f"{told.searches:,} searches in {told.records:,} records",
        f"  shared by consecutive ones, mean of {overlap.pairs:,} pairs: "
        f"{_share(overlap.of_larger)} of the larger result, {_share(overlap.jaccard)} Jaccard, "
        f"{_share(overlap.of_asked)} of the passages asked for; {overlap.empty_pairs:,} pairs of "
        "two empty results are apart",
        f"  failed: {recovery.failed:,} ({recovery.refused:,} refused), "
        f"{recovery.tokens:,} tokens; the next search found something {recovery.at_once:,} times, "
        f"a later one {recovery.later:,}, none {recovery.never:,}"
        + (f"; {recovery.searches:.1f} searches on average" if recovery.searches else ""),
        f"  whether consecutive searches mean the same, and which succeeded: {NOT_MEASURED}",
        "",
    ]
    counts = found.failure_counts()
    table = [("wrong answers", *FAILURES)]
    table += [(name, *(f"{count:,}" for count in each.values())) for name, each in counts.items()]
    lines += _table(table)
    lines += [f"  {name}: {meaning}" for name, meaning in FAILURES.items()]
    return "\n".join([*lines, f"  A-RAG's categories: {NOT_MEASURED}"])


def _notes(found: Score) -> list[str]:
    return [*found.notes, *trust_notes(found.older, found.doubts)]


def _run_line(found: Score) -> str:
    run = found.run
    index = run.index if run.filter is None else f"{run.index} ({_cut(run.filter)})"
    return f"{run.preset}, model {run.model}, index {index}"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with their cells under each other, the first column to the left."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines: list[str] = []
    for row in rows:
        rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join([row[0].ljust(widths[0]), *rest]).rstrip())
    return lines


def _cells(row: Row) -> tuple[str, ...]:
    shares = (row.exact_match, row.f1, row.contain_accuracy, row.evidence_recall)
    counts = (row.refused, row.failed, row.missing)
    return (
        row.type,
        f"{row.questions:,}",
        *map(_share, shares),
        *(f"{count:,}" for count in counts),
        _NONE if row.retrieved_tokens is None else f"{row.retrieved_tokens:,.0f}",
        *(_NONE if value is None else f"{value:.1f}" for value in (row.steps, row.seconds)),
    )


def _means_cells(row: Means, found: Score) -> tuple[str, ...]:
    values = [(row.values[str(one)], _WRITTEN[one.kind.unit]) for one in found.measures]
    cells = (_NONE if value is None else written(value) for value, written in values)
    return (row.type, f"{row.questions:,}", *cells)


def _verdict_lines(found: Score) -> list[str]:
    """Verdicts by type, and how far people agree with them."""
    if found.judged is None:
        return []
    names = (*VERDICTS, NOT_JUDGED)
    counts = found.verdict_counts()
    table = [(f"judged by {found.judged.model}", *names)]
    table += [
        (type, *(f"{each.get(name, 0):,}" for name in names)) for type, each in counts.items()
    ]
    lines = ["", *_table(table)]
    agreed = found.judged.agreement
    if agreed is not None:
        lines.append(
            f"Labels agree on {_share(agreed.accuracy)} of {agreed.answers:,} answers, Cohen's "
            f"kappa {_share(agreed.kappa)}."
        )
    return lines


def _cut(text: str) -> str:
    """A scope of many clauses is not shown whole; run.json has it."""
    return text if len(text) <= _FILTER_CHARACTERS else f"{text[: _FILTER_CHARACTERS - 3]}..."


def _share(value: float | None) -> str:
    return _NONE if value is None else f"{value:.3f}"

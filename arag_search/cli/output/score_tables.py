"""The scores of a run as tables for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from arag_search.evaluation.bootstrap import LEVEL, NOT_TOLD_APART, Interval
from arag_search.evaluation.evidence import FAILURES
from arag_search.evaluation.judging.judge import NOT_JUDGED, REFUSED_VERDICT, VERDICTS
from arag_search.evaluation.measurement import Means
from arag_search.evaluation.measures import Unit
from arag_search.evaluation.run_differences import RunDifference, RunDifferences
from arag_search.evaluation.score import AVERAGED, Row, Score
from arag_search.evaluation.trajectories import ToolUse

_HEAD = (
    "", "questions", "EM", "F1", "Contain-Acc", "grounded", "from memory", "without a search",
    "evidence", "refused", "failed", "missing", "tokens", "steps", "seconds",
)  # fmt: skip
_COUNTS = {"questions", "without a search", "refused", "failed", "missing"}
_COUNTED = ("wins", "losses", "ties", "smallest told apart")
_OF_TYPES = "mean of types"
_NONE = "-"
_FILTER_CHARACTERS = 60

_WRITTEN: Mapping[Unit, Callable[[float], str]] = {
    "share": lambda value: f"{value:.3f}",
    "tokens": lambda value: f"{value:,.0f}",
    "steps": lambda value: f"{value:.1f}",
    "seconds": lambda value: f"{value:.1f}",
    "USD": lambda value: f"{value:.4f}",
    "number": lambda value: f"{value:.3f}",
}


def _share(value: float | None) -> str:
    return _NONE if value is None else f"{value:.3f}"


def score_text(score: Score) -> str:
    """Format the run, a table of its rows or of the chosen measures, and the notes."""
    if score.measures:
        return _measures_text(score)
    rows = [*map(_cells, score.rows)]
    if means := score.mean_of_types():
        values = {name: means[name] for name in AVERAGED}
        cells = _cells(replace(score.rows[0], type=_OF_TYPES, **values))
        pairs = zip(_HEAD, cells, strict=True)
        rows.insert(1, tuple("" if name in _COUNTS else cell for name, cell in pairs))
    return "\n".join([_run_line(score), *table_text([_HEAD, *rows]), *_notes(score)])


def _measures_text(score: Score) -> str:
    """Format the run, a table of the chosen measures, verdicts, and the notes."""
    names = [str(measure) for measure in score.measures]
    table = [("", "questions", *names), *(_means_cells(row, score) for row in score.means)]
    if means := score.mean_of_types():
        (_, _, *cells) = _means_cells(Means(_OF_TYPES, 0, means, {}), score)
        table.insert(2, (_OF_TYPES, "", *cells))
    lines = [_run_line(score), *table_text(table)]
    overall = score.means[0]
    for name in names:
        counted = overall.counted[name]
        if counted < overall.questions:
            lines.append(f"{name} is over {counted:,} of {overall.questions:,} questions.")
    return "\n".join([*lines, *_verdict_lines(score), *_notes(score)])


def differences_text(compared: RunDifferences) -> str:
    """Format a table for each run beside the first one, and the notes."""
    first, *others = compared.scores
    lines = [f"{name}: {_run_line(score)}" for name, score in compared.scores.items()]
    lines.append(f"Intervals of {LEVEL:.0%} for all of them together, {compared.level:.2%} each.")
    lines.append(f"Differences, wins and losses are those of a run against {first}.")
    for name in others:
        head = ("", "questions", first, name, "difference", "interval", "", *_COUNTED)
        rows = [_difference_cells(of) for of in compared.differences if of.run == name]
        lines += ["", *table_text([head, *rows])]
    return "\n".join([*lines, "", *compared.notes]).rstrip()


def _difference_cells(row: RunDifference) -> tuple[str, ...]:
    written, of, interval = _WRITTEN[row.unit], row.difference, row.difference.interval
    return (
        *(row.measure, f"{row.questions:,}", *map(written, row.means)),
        f"{'+' if interval.value > 0 else ''}{written(interval.value)}",
        interval_text(interval, written),
        "" if interval.is_resolved else NOT_TOLD_APART,
        *(f"{count:,}" for count in (of.wins, of.losses, of.ties)),
        written(interval.resolution) if interval.resolution else _NONE,
    )


def interval_text(interval: Interval, written: Callable[[float], str] = _share) -> str:
    """Format the bounds of an interval."""
    return f"[{written(interval.low)}, {written(interval.high)}]"


def _notes(score: Score) -> Sequence[str]:
    types = f'In "{_OF_TYPES}", each type counts the same; in "all", each question does.'
    return [*([types] if score.mean_of_types() else []), *score.notes]


def details_text(score: Score) -> str:
    """Format what consecutive searches share, what followed failed ones, and why answers are
    wrong."""
    trajectories = score.trajectories
    overlap, recovery = trajectories.overlap, trajectories.recovery
    lines = [
        "",
        f"{trajectories.searches:,} searches in {trajectories.records:,} records",
        f"  shared by consecutive ones, mean of {overlap.pairs:,} pairs: "
        f"{_share(overlap.of_larger)} of the larger result, {_share(overlap.jaccard)} Jaccard, "
        f"{_share(overlap.of_asked)} of the passages asked for; {overlap.empty_pairs:,} pairs of "
        "two empty results are apart",
        f"  failed: {recovery.failed:,} ({recovery.refused:,} refused), "
        f"{recovery.tokens:,} tokens; the next search found something {recovery.at_once:,} times, "
        f"a later one {recovery.later:,}, none {recovery.never:,}"
        + (f"; {recovery.searches:.1f} searches on average" if recovery.searches else ""),
        *(_use_line(name, use) for name, use in trajectories.tools.items()),
        "",
    ]
    counts = score.failure_counts()
    table = [("wrong answers", *FAILURES)]
    table += [
        (name, *(f"{count:,}" for count in counted.values())) for name, counted in counts.items()
    ]
    lines += table_text(table)
    lines += [f"  {name}: {meaning}" for name, meaning in FAILURES.items()]
    return "\n".join(lines)


def _use_line(name: str, use: ToolUse) -> str:
    arguments = ", ".join(f"{argument} {count:,}" for argument, count in use.arguments.items())
    return f"  {name}: {use.searches:,} searches{arguments and f', with {arguments}'}"


def _run_line(score: Score) -> str:
    run = score.run
    index = run.index if run.filter is None else f"{run.index} ({_cut(run.filter)})"
    return f"{run.preset}, model {run.model}, index {index}"


def table_text(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of rows with aligned cells, the first column to the left."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines: list[str] = []
    for row in rows:
        rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join([row[0].ljust(widths[0]), *rest]).rstrip())
    return lines


def _cells(row: Row) -> tuple[str, ...]:
    shares = (
        row.exact_match,
        row.f1,
        row.contain_accuracy,
        row.grounded_accuracy,
        row.memory_share,
    )
    counts = (row.refused, row.failed, row.missing)
    return (
        row.type,
        f"{row.questions:,}",
        *map(_share, shares),
        f"{row.without_search:,}",
        _share(row.evidence_recall),
        *(f"{count:,}" for count in counts),
        _NONE if row.retrieved_tokens is None else f"{row.retrieved_tokens:,.0f}",
        *(_NONE if value is None else f"{value:.1f}" for value in (row.steps, row.seconds)),
    )


def _means_cells(row: Means, score: Score) -> tuple[str, ...]:
    values = [(row.values[str(measure)], _WRITTEN[measure.kind.unit]) for measure in score.measures]
    cells = (_NONE if value is None else written(value) for value, written in values)
    return (row.type, f"{row.questions:,}", *cells)


def _verdict_lines(score: Score) -> list[str]:
    """Format verdicts by type."""
    if score.judged is None:
        return []
    counts = score.verdict_counts()
    refused = [REFUSED_VERDICT] if any(REFUSED_VERDICT in of for of in counts.values()) else []
    names = (*VERDICTS, NOT_JUDGED, *refused)
    table = [(f"judged by {score.judged.model}", *names)]
    table += [
        (type, *(f"{verdicts.get(name, 0):,}" for name in names))
        for type, verdicts in counts.items()
    ]
    return ["", *table_text(table)]


def _cut(text: str) -> str:
    """Shorten a scope of many clauses; run.json has it in full."""
    return text if len(text) <= _FILTER_CHARACTERS else f"{text[: _FILTER_CHARACTERS - 3]}..."

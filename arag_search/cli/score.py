"""arag-search score: score a run against gold answers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arag_search.cli.options.index import SearchedIndex
from arag_search.cli.options.model import BaseUrl
from arag_search.evaluation.evidence import FAILURES
from arag_search.evaluation.judging.judge import VERDICTS
from arag_search.evaluation.measurement import Means
from arag_search.evaluation.measures import Unit
from arag_search.evaluation.score import NOT_JUDGED, NOT_MEASURED, Row, Score
from arag_search.evaluation.trajectories import ToolUse

if TYPE_CHECKING:
    from arag_search.agent.models.base import ChatModel


VERDICTS_FILE = "verdicts.jsonl"


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
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help="Print these measures instead, such as EM,TokensToEvidence,nDCG@10; may be "
            "repeated.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    index: SearchedIndex = None,
    trajectories: Annotated[
        bool,
        typer.Option(
            "--trajectories",
            help="Also print how much consecutive searches overlap, what followed failed "
            "searches, and why answers are wrong.",
        ),
    ] = False,
    judge: Annotated[
        str | None,
        typer.Option(
            help="A model that judges the answers: an endpoint's, or replay:FILE. It says which "
            "are right or, with --measure Factuality, how factual they are.",
            metavar="MODEL",
            show_default=False,
        ),
    ] = None,
    judge_repeats: Annotated[
        int,
        typer.Option(
            help="Verdicts on each answer: the majority counts, or the mean of scores.", metavar="K"
        ),
    ] = 1,
    judge_cache: Annotated[
        Path | None,
        typer.Option(
            help="Where verdicts are kept.  [default: DIR/verdicts.jsonl]",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    judge_labels: Annotated[
        Path | None,
        typer.Option(
            help='Human labels to compare with: JSON lines of {"question_id", "label"}.',
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    base_url: BaseUrl = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print everything as JSON, including each question.")
    ] = False,
) -> int:
    """Score a run against gold answers, overall and by type.

    EM and F1 are computed on the short answer as in SQuAD, with HotpotQA's rule for yes and no;
    Contain-Acc on the short answer and the explanation, as in A-RAG; evidence is the share of gold
    titles among the titles shown. Every question of the run counts; those that failed or have no
    record yet count as 0. Tokens (of corpus text), steps and seconds are means over the records.
    The right reply to an unanswerable question is that there is no answer.

    \b
    Measures: EM, F1, ContainAcc, JudgeAcc, Factuality, EvidenceRecall, FullEvidence,
    TokensToEvidence, RetrievedTokens, PromptTokens, CompletionTokens, TotalTokens, ToolCalls (of
    one tool: ToolCalls:open), SummarizeCalls, Iterations, Steps, Seconds, Cost; of rankings, with
    --index and judged documents (else those that hold the evidence): Recall@k, P@k, nDCG@k, RR@k,
    AP@k, Success@k; of the documents that answers cite, best first, with judged documents or
    --index: CitedRecall@k, CitedNDCG@k, CitedSuccess@k.

    A judge sees the question, the gold answers, the answer and the explanation. Its verdicts are
    kept, so that a run is judged only once. Answers without a verdict are reported as "not judged".
    It says whether an answer is right (JudgeAcc); with --measure Factuality, it gives a score from
    0 to 1 instead, by our own prompt, and with --measure JudgeAcc,Factuality it does both.

    Examples:

    \b
      arag-search score runs/a
      arag-search score runs/a --json > a.json
      arag-search score runs/a --index my-index --measure EM,FullEvidence,TokensToEvidence
      arag-search score runs/a --judge gpt-4o-mini --judge-repeats 3 --trajectories
      arag-search score runs/a --judge gpt-4o-mini --judge-repeats 3 --measure Factuality
      arag-search score runs/a --measure CitedRecall@1,TotalTokens,ToolCalls:open
    """
    from arag_search.cli.output.printing import print_json, print_text
    from arag_search.cli.score import details_text, measures_text, score_text
    from arag_search.evaluation.judging.agreement import read_labels
    from arag_search.evaluation.judging.judges import NO_JUDGES, Judges
    from arag_search.evaluation.judging.verdict_cache import VerdictCache
    from arag_search.evaluation.measures import parse_measures
    from arag_search.evaluation.score import score
    from arag_search.search.index import open_index

    measures = parse_measures(measure or ())
    labels = None if judge_labels is None else read_labels(judge_labels)
    cache = judge_cache or folder / VERDICTS_FILE
    with ExitStack() as stack:
        judges = NO_JUDGES
        if judge is not None:
            model = stack.enter_context(_judging_model(judge, base_url))
            judges = Judges.of(model, measures, judge_repeats, VerdictCache(cache))
        opened = None
        if index is not None:
            opened = stack.enter_context(open_index(index))
        scored = score(
            folder,
            questions,
            measures=measures,
            index=opened,
            judges=judges,
            labels=labels,
        )
    if json:
        print_json(scored.to_json(), pretty=True)
        return 0
    print_text(measures_text(scored) if scored.measures else score_text(scored))
    if trajectories:
        print_text(details_text(scored))
    return 0


@contextmanager
def _judging_model(name: str, base_url: str | None) -> Generator[ChatModel]:
    """Open the model that judges, and close it at the end."""
    from arag_search.agent.models.choose import OFFLINE, choose_model
    from arag_search.errors import ArgumentError

    if name == OFFLINE:
        raise ArgumentError(
            f"Model {OFFLINE!r} cannot judge: it only searches and reads.",
            allowed="the name of an endpoint's model, or replay:FILE",
        )
    model = choose_model(name, base_url=base_url)
    try:
        yield model
    finally:
        model.close()


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


def score_text(score: Score) -> str:
    """Format the run, a table of its rows, and the notes."""
    table = _table([_HEAD, *map(_cells, score.rows)])
    return "\n".join([_run_line(score), *table, *score.notes])


def measures_text(score: Score) -> str:
    """Format the run, a table of the chosen measures, verdicts, and the notes."""
    names = [str(measure) for measure in score.measures]
    table = [("", "questions", *names), *(_means_cells(row, score) for row in score.means)]
    lines = [_run_line(score), *_table(table)]
    overall = score.means[0]
    for name in names:
        counted = overall.counted[name]
        if counted < overall.questions:
            lines.append(f"{name} is over {counted:,} of {overall.questions:,} questions.")
    return "\n".join([*lines, *_verdict_lines(score), *score.notes])


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
        f"  whether consecutive searches mean the same, and which succeeded: {NOT_MEASURED}",
        "",
    ]
    counts = score.failure_counts()
    table = [("wrong answers", *FAILURES)]
    table += [
        (name, *(f"{count:,}" for count in counted.values())) for name, counted in counts.items()
    ]
    lines += _table(table)
    lines += [f"  {name}: {meaning}" for name, meaning in FAILURES.items()]
    return "\n".join([*lines, f"  A-RAG's categories: {NOT_MEASURED}"])


def _use_line(name: str, use: ToolUse) -> str:
    arguments = ", ".join(f"{argument} {count:,}" for argument, count in use.arguments.items())
    return f"  {name}: {use.searches:,} searches{arguments and f', with {arguments}'}"


def _run_line(score: Score) -> str:
    run = score.run
    index = run.index if run.filter is None else f"{run.index} ({_cut(run.filter)})"
    return f"{run.preset}, model {run.model}, index {index}"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align the cells of rows, the first column to the left."""
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


def _means_cells(row: Means, score: Score) -> tuple[str, ...]:
    values = [(row.values[str(measure)], _WRITTEN[measure.kind.unit]) for measure in score.measures]
    cells = (_NONE if value is None else written(value) for value, written in values)
    return (row.type, f"{row.questions:,}", *cells)


def _verdict_lines(score: Score) -> list[str]:
    """Format verdicts by type, and their agreement with people."""
    if score.judged is None:
        return []
    names = (*VERDICTS, NOT_JUDGED)
    counts = score.verdict_counts()
    table = [(f"judged by {score.judged.model}", *names)]
    table += [
        (type, *(f"{verdicts.get(name, 0):,}" for name in names))
        for type, verdicts in counts.items()
    ]
    lines = ["", *_table(table)]
    agreed = score.judged.agreement
    if agreed is not None:
        lines.append(
            f"Labels agree on {_share(agreed.accuracy)} of {agreed.answers:,} answers, Cohen's "
            f"kappa {_share(agreed.kappa)}."
        )
    return lines


def _cut(text: str) -> str:
    """Shorten a scope of many clauses; run.json has it in full."""
    return text if len(text) <= _FILTER_CHARACTERS else f"{text[: _FILTER_CHARACTERS - 3]}..."


def _share(value: float | None) -> str:
    return _NONE if value is None else f"{value:.3f}"

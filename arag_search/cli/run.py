"""arag-search run: a file of questions, answered into a folder of records."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from arag_search.agent.models.choose import OFFLINE, OFFLINE_NOTE
from arag_search.agent.presets import load_preset
from arag_search.cli.options.index import IndexFolder, Opening
from arag_search.cli.options.model import ModelOptions
from arag_search.cli.options.parser import suggest_presets, with_groups
from arag_search.cli.output.printing import INTERRUPTED, print_text
from arag_search.questions.files import load_questions
from arag_search.runs.prices import Prices
from arag_search.runs.run import RunOptions, RunOutcome, run
from arag_search.system.progress import counted, duration, open_progress


@with_groups
def run_command(
    context: typer.Context,
    index: IndexFolder,
    questions: Annotated[
        Path,
        typer.Argument(
            help="Questions with answers: JSON lines or a JSON array.", metavar="QUESTIONS"
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder of the run.", metavar="DIR")],
    preset: Annotated[
        str,
        typer.Option(
            help="How to answer: a name, or the path of a .yaml file.",
            metavar="PRESET",
            autocompletion=suggest_presets,
        ),
    ] = "logical_read",
    *,
    model: ModelOptions,
    workers: Annotated[
        int, typer.Option(help="Questions answered at once, 1 to 256.", metavar="N")
    ] = 1,
    limit: Annotated[
        int | None,
        typer.Option(help="Only the first N questions.", metavar="N", show_default=False),
    ] = None,
    prices: Annotated[
        Path | None,
        typer.Option(
            help="A YAML file of lines 'MODEL: {prompt: X, completion: Y}', USD per million "
            "tokens.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(
            help="Start no more questions once the run has reached this cost; needs --prices.",
            metavar="USD",
            show_default=False,
        ),
    ] = None,
    opening: Opening,
    record_replies: Annotated[
        Path | None,
        typer.Option(
            help="Write the model's replies to this file, for --model replay:FILE.", metavar="FILE"
        ),
    ] = None,
) -> int:
    """Answer a file of questions, and record every step.

    Questions are JSON lines of {"question", "answer"}, with "id", "question_type",
    "answer_aliases", "supporting_titles" and "evidence" where known; files of A-RAG,
    2WikiMultiHopQA, MuSiQue, HotpotQA, GraphRAG-Bench, KILT, BEIR, WixQA, FinanceBench and
    BrowseComp-Plus are read without conversion (arag-search questions FILE describes one).
    Questions without an id are q1, q2, ... by their position.

    Run the same command again to resume a run that was interrupted (Ctrl-C, a crash) or stopped at
    --max-cost: recorded questions are skipped, failed ones are retried. All records in a folder are
    of the same preset, index, model, question file and encoder.

    Examples:

    \b
      arag-search run my-index q.jsonl --model gpt-4o-mini --out runs/a
      arag-search run my-index q.jsonl --preset logicalrag --model offline --out runs/b
      arag-search score runs/a
      arag-search show runs/a ID

    The exit code is 0 if every question has an answer (also "not found in the corpus"), 1 if some
    failed or have not been asked, and 130 after an interruption.
    """
    options = RunOptions(workers, limit, max_cost, str(questions.absolute()), opening.filter)
    options.check()
    asked = load_questions(questions)
    settings = load_preset(preset)
    progress = open_progress()
    priced = None if prices is None else Prices.load(prices)
    chosen = model.choose(progress.note, record_replies=record_replies, allow_offline=False)
    again = same_command(context)
    try:
        with opening.open(index) as opened:
            outcome = run(
                opened,
                asked,
                settings,
                chosen,
                out,
                options=options,
                prices=priced,
                progress=progress,
            )
    except KeyboardInterrupt:
        print(f"Interrupted. Resume with: {again}", file=sys.stderr)
        return INTERRUPTED
    finally:
        chosen.close()
    return _report(outcome, out, again, chosen.name)


def _report(outcome: RunOutcome, out: Path, again: str, model: str) -> int:
    """Report how the run ended, and return the exit code."""
    tally = outcome.tally
    print_text(f"{counted(tally.total, 'question')}: {tally.to_text()}, {duration(tally.seconds)}.")
    if model == OFFLINE:
        print_text(OFFLINE_NOTE)
    print_text(f"Next: arag-search score {shlex.quote(str(out))}")
    if outcome.stopped == "interrupted":
        print(f"Interrupted, {tally.left:,} left. Resume with: {again}", file=sys.stderr)
        return INTERRUPTED
    if outcome.stopped == "cost":
        print(
            f"Stopped at --max-cost, {tally.left:,} left. Resume with a higher one: {again}",
            file=sys.stderr,
        )
    elif tally.failed:
        print(f"{tally.failed:,} failed. Ask them again with: {again}", file=sys.stderr)
    return 1 if tally.failed or tally.left else 0


def same_command(context: typer.Context) -> str:
    """Return the command in a form that can be typed again."""
    words = ["arag-search", str(context.info_name)]
    named: list[str] = []
    for parameter in context.command.params:
        value: Any = context.params.get(str(parameter.name))
        if value is None or value == parameter.default:
            continue
        if parameter.param_type_name == "argument":
            words.append(str(value))
        else:
            named += [parameter.opts[0], str(value)]
    return shlex.join([*words, *named])

"""arag-search run: a file of questions, answered into a folder of records."""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from arag_search.agent.models.choose import OFFLINE, OFFLINE_NOTE, REPLAY_PREFIX
from arag_search.cli.options.index import Opening
from arag_search.cli.options.model import ModelOptions, RecordReplies
from arag_search.cli.options.parser import suggest_presets, with_groups
from arag_search.cli.output.printing import INTERRUPTED, print_text
from arag_search.errors import ArgumentError, IndexExistsError
from arag_search.evaluation.loaded_run import load_run
from arag_search.questions.files import load_questions
from arag_search.runs.arag_config import INDEX_NAME, AragConfig, LlmSettings
from arag_search.runs.predictions import PREDICTIONS_FILE, write_predictions
from arag_search.runs.prices import Prices
from arag_search.runs.run import RunOptions, RunOutcome, run
from arag_search.system.progress import Progress, counted, duration, open_progress
from arag_search.tools.documents.lines import vector_units
from arag_search.tools.preset import Preset
from arag_search.tools.preset_files import DEFAULT_PRESET, load_preset

if TYPE_CHECKING:
    from arag_search.search.index import Index

ARAG_PRESET = "arag_full"
ARAG_WITHOUT_VECTORS = "arag_without_semantic"


@with_groups
def run_command(
    context: typer.Context,
    index: Annotated[
        str | None, typer.Argument(help="The folder of the index.", metavar="INDEX")
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Argument(
            help="Questions with answers: JSON lines or a JSON array.", metavar="QUESTIONS"
        ),
    ] = None,
    *,
    out: Annotated[Path, typer.Option("--out", help="The folder of the run.", metavar="DIR")],
    preset: Annotated[
        str | None,
        typer.Option(
            help="How to answer: a name, or the path of a .yaml file.  [default: logical_read, "
            "with --config arag_full]",
            metavar="PRESET",
            autocompletion=suggest_presets,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="Settings of A-RAG's repository, one of its configs/*.yaml; implies --format "
            "arag. Other options take precedence.",
            metavar="FILE",
        ),
    ] = None,
    format: Annotated[
        Literal["records", "arag"],
        typer.Option(help="What to write: records, or also predictions.jsonl in A-RAG's form."),
    ] = "records",
    model: ModelOptions,
    workers: Annotated[
        int, typer.Option(help="Questions answered at once, 1 to 256.", metavar="N")
    ] = 1,
    limit: Annotated[
        int | None, typer.Option(help="Only the first N questions.", metavar="N")
    ] = None,
    prices: Annotated[
        Path | None,
        typer.Option(
            help="A YAML file of lines 'MODEL: {prompt: X, completion: Y, cached: Z}', USD per "
            "million tokens; without cached, tokens from the cache count at full price.",
            metavar="FILE",
        ),
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(
            help="Start no more questions once the run has reached this cost; needs --prices.",
            metavar="USD",
        ),
    ] = None,
    opening: Opening,
    record_replies: RecordReplies = None,
) -> int:
    """Answer a file of questions, and record every step.

    Questions are JSON lines of {"question", "answer"}. They may have "id", "question_type",
    "answer_aliases", "supporting_titles" and "evidence". Questions without an id are q1, q2, ... by
    their position. Files of A-RAG, 2WikiMultiHopQA, MuSiQue, HotpotQA, GraphRAG-Bench, KILT, BEIR,
    WixQA, FinanceBench and BrowseComp-Plus are read without conversion.

    Run the same command again to resume a run that was interrupted (Ctrl-C, a crash) or stopped at
    --max-cost. It skips recorded questions and asks failed ones again. All records in a folder have
    the same preset, index, model, question file and encoder.

    Examples:

    \b
      arag-search run my-index q.jsonl --model gpt-4o-mini --out runs/a
      arag-search run my-index q.jsonl --preset logicalrag --model offline --out runs/b
      arag-search score runs/a
      arag-search view runs/a ID
      arag-search run --config configs/musique.yaml q.json --out results/musique

    The exit code is 0 if every question has an answer (also "not found in the corpus"). It is 1 if
    some failed or have not been asked, and 130 after an interruption.
    """
    progress = open_progress()
    arag = None if config is None else AragConfig.load(config)
    settings = load_preset(preset or DEFAULT_PRESET)
    if arag is not None:
        _say(arag.note(), progress)
        if index is not None and questions is None:  # INDEX is that of the file
            index, questions = None, Path(index)
        settings = arag.applied(load_preset(preset or ARAG_PRESET))
        questions = questions or arag.data.questions_file
        model = _with_settings(model, arag)
    if questions is None or (index is None and arag is None):
        raise ArgumentError(
            f"No {'file of questions' if index or arag else 'index'} is named.",
            allowed="arag-search run INDEX QUESTIONS, or --config FILE QUESTIONS",
        )
    options = RunOptions(workers, limit, max_cost, str(questions.absolute()), opening.filter)
    options.check()
    asked = load_questions(questions)
    priced = None if prices is None else Prices.load(prices)
    chosen = model.choose(progress.note, record_replies=record_replies, allow_offline=False)
    again = shlex.join(["arag-search", *context.obj])
    try:
        with opening.open(index or _index_of(arag, progress), is_long=True) as opened:
            if preset is None and arag is not None and not vector_units(opened):
                settings = _without_vectors(arag, opened, progress)
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
    if format == "arag" or arag is not None:
        loaded = load_run(out)
        write_predictions(out / PREDICTIONS_FILE, loaded.questions, loaded.records)
    return _report(outcome, out, again, chosen.name)


def _say(note: str, progress: Progress) -> None:
    if note:
        progress.note(note)


def _with_settings(model: ModelOptions, arag: AragConfig) -> ModelOptions:
    """Return the options with settings of a file for those not given; a model that is no endpoint's
    takes none."""
    if (model.model or "").startswith((OFFLINE, REPLAY_PREFIX)):
        return model
    settings = arag.llm.model_dump(include={*LlmSettings.model_fields}, exclude_none=True)
    given = {key: value for key, value in model._asdict().items() if value is not None}
    return ModelOptions(**{**settings, **given})


def _index_of(arag: AragConfig | None, progress: Progress) -> str:
    """Return the index of A-RAG's chunks, which is built if there is none yet."""
    data = None if arag is None else arag.data
    if data is None or data.index_dir is None or data.chunks_file is None:
        raise ArgumentError(
            "No index is named.",
            where="" if arag is None else str(arag.file),
            allowed="an index as INDEX, or data.chunks_file and data.index_dir in the file",
        )
    from index_jobs.build.new_index import build_index
    from index_jobs.build.options import BuildOptions

    place = data.index_dir / INDEX_NAME
    with suppress(IndexExistsError):
        report = build_index([str(data.chunks_file)], place, BuildOptions(), progress)
        progress.note(
            f"Indexed {counted(report.chunks, 'passage')} of {data.chunks_file} in {place}."
        )
    return str(place)


def _without_vectors(arag: AragConfig, index: Index, progress: Progress) -> Preset:
    """Return A-RAG's preset for an index without vectors: A-RAG searches by keywords alone then."""
    progress.note(
        f"There are no vectors, so that nothing is searched by meaning ({ARAG_WITHOUT_VECTORS}). "
        f"Make them with: arag-search embed {shlex.quote(index.location)}"
    )
    return arag.applied(load_preset(ARAG_WITHOUT_VECTORS))


def _report(outcome: RunOutcome, out: Path, again: str, model: str) -> int:
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

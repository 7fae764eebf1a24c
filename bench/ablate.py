"""Measure a suite of conditions and report what its figures show.

    python -m bench ablate bench/suites/gold_chain.yaml
    python -m bench ablate bench/suites/logicalrag_main.yaml --model gpt-5-mini --limit 20

Prints what will be compared before it starts, then the claims that the figures support, and writes
a report. Run the same command again to resume an interrupted run. See bench/studies/ablations.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from arag_search.agent.models.base import ChatModel
from arag_search.agent.models.choose import choose_model
from arag_search.evaluation.bootstrap import SEED
from arag_search.evaluation.judging.judges import NO_JUDGES, Judges
from arag_search.evaluation.judging.verdict_cache import VerdictCache
from arag_search.runs.prices import Prices
from arag_search.system.extras import check_extra
from arag_search.system.progress import open_progress
from bench import BenchError
from bench.ablation.agent_runs import AgentExperiment, ChooseModel, named_model, unasked_model
from bench.ablation.analysis import analyse
from bench.ablation.cells import Experiment, Folders, chosen_keys, named, run_cells
from bench.ablation.design import Design
from bench.ablation.estimate import estimate_lines
from bench.ablation.judging.judges import TrajectoryJudges
from bench.ablation.measure import comparable, run_measure
from bench.ablation.papers import paper_tables
from bench.ablation.recorded_runs import RecordedExperiment
from bench.ablation.report import Report, claim_lines, declaration, figure, write_report
from bench.ablation.suite import (
    FIRST,
    AgentRuns,
    Decoding,
    ModelEntry,
    RecordedRuns,
    Suite,
    checked_suite,
    load_suite,
)
from bench.ablation.values import load_values
from bench.arguments import BenchParser, positive
from bench.report.fingerprints import code_fingerprint
from bench.report.rows import circumstances, write_results
from bench.workbench import say

CELLS = "cells"
REPORT = "report"
VERDICTS = "verdicts.jsonl"
ALL = "all"
JUDGED = frozenset({"judge", "factuality judge"})


def main(arguments: Sequence[str], choose: ChooseModel = named_model) -> int:
    """Measure the suite and return the exit code."""
    parser = _parser()
    return parser.run(arguments, lambda options, command: _ablate(options, command, choose))


def _ablate(options: argparse.Namespace, command: str, choose: ChooseModel) -> int:
    if not options.no_plots:
        check_extra("bench", "matplotlib")
    if options.judge_trajectories and options.judge is None:
        raise BenchError(
            "Trajectories cannot be judged without a model that judges.",
            where="--judge-trajectories",
            do="Name the model with --judge MODEL.",
        )
    suite = changed_suite(options)
    root: Path = options.work
    limited = f"-questions-{options.questions}" if options.questions else ""
    limited += f"-limit-{options.limit}" if options.limit else ""
    folders = Folders(
        options.data,
        root / "sets",
        root / f"{suite.name}{limited.replace(' ', '-')}",
        dict(options.set or ()),
        options.index,
    )
    judges_here = options.judge is not None and not options.dry_run
    judge = open_judge(options.judge, suite) if judges_here else None
    trajectories: bool = options.judge_trajectories
    judges, trajectory_judges = NO_JUDGES, None
    if judge is not None:
        root.mkdir(parents=True, exist_ok=True)
        cache = VerdictCache(root / VERDICTS)  # all suites share their verdicts
        shown = [measure for name in suite.shown_measures if (measure := run_measure(name))]
        judges = Judges.of(judge, shown, 1, cache)
        trajectory_judges = TrajectoryJudges.of(judge, cache) if trajectories else None
    choose = unasked_model if options.dry_run else choose
    experiment = open_experiment(suite, folders, options, choose, judges, trajectory_judges)
    design = Design(suite, experiment.keys)
    print("\n".join(declaration(design)), end="\n\n", flush=True)
    try:
        keys = chosen_keys(experiment.keys, dict(options.only or ()))
        if options.dry_run:
            print("\n".join(f"- {named(key)}" for key in keys))
            if isinstance(experiment, AgentExperiment):
                name = options.judge or _needed_judge(suite)
                judged = experiment.estimates(keys, name, trajectories=trajectories)
                prices = None if options.prices is None else Prices.load(options.prices)
                print("\n".join(estimate_lines(judged, prices)))
            print(f"{len(keys):,} cells, nothing was run.")
            return 0
        check_judge(suite, judge)
        outcome = run_cells(experiment, keys, folders.work / CELLS, say)
    finally:
        experiment.close()
        if judge is not None:
            judge.close()
    say(f"{outcome.measured:,} cells measured, {outcome.kept:,} reused.")
    sets, missing = load_values(folders.work / CELLS, design.keys, suite.shown_measures)
    analysis = analyse(design, sets)
    run = {**circumstances(command), **fingerprints(suite)}
    papers = paper_tables(suite.name, suite.experiment.sets)
    report = Report(analysis, missing, papers, folders.work, run)
    path = write_report(report, options.out or folders.work / REPORT, pictures=not options.no_plots)
    if options.json:
        write_results(options.json, [figure(report)], run)
    print("\n".join(claim_lines(analysis)))
    print(f"\nReport: {path}")
    return 0


def changed_suite(options: argparse.Namespace) -> Suite:
    """Load the suite with the changes that the options ask for."""
    suite = with_questions(load_suite(options.suite), options.questions)
    suite = without_settings(with_models(suite, options.model), options.leave_out)
    if options.encoder is None:
        return suite
    changed = suite.model_dump()
    changed["experiment"]["encoder"] = options.encoder
    return checked_suite(changed, "--encoder")


def with_models(suite: Suite, names: Sequence[str] | None) -> Suite:
    """Return the suite with other models, each with all decodings of the suite's. Raises BenchError
    if the suite uses none."""
    if not names:
        return suite

    def renamed(entry: ModelEntry) -> list[ModelEntry]:
        labels = [f"{name}, {entry.label}" if entry.label else "" for name in names]
        updates = (
            {"model": name, "label": label} for name, label in zip(names, labels, strict=True)
        )
        return [entry.model_copy(update=update) for update in updates]

    return _with_entries(suite, renamed, "--model")


def without_settings(suite: Suite, settings: Sequence[str] | None) -> Suite:
    """Return the suite without some settings of decoding, which a model may refuse. Raises
    BenchError if the suite uses no model."""
    if not settings:
        return suite
    nothing = dict.fromkeys(settings)
    changed = _with_entries(suite, lambda entry: [entry.model_copy(update=nothing)], "--leave-out")
    values = changed.model_dump()
    if values["experiment"]["judge"] is not None:
        values["experiment"]["judge"] |= nothing
    return checked_suite(values, "--leave-out")


def _with_entries(
    suite: Suite, replaced: Callable[[ModelEntry], Sequence[ModelEntry]], where: str
) -> Suite:
    """Return the suite with other entries in place of each of its models, in its comparison too."""
    if not isinstance(suite.experiment, AgentRuns):
        raise BenchError(f"Suite {suite.name} does not use a model.", where=where)
    entries = {before.level: replaced(before) for before in suite.experiment.models}
    levels = {before: [entry.level for entry in after] for before, after in entries.items()}
    changed = suite.model_dump()
    distinct = dict.fromkeys(entry for after in entries.values() for entry in after)
    changed["experiment"]["models"] = [entry.model_dump() for entry in distinct]
    comparison = changed["comparison"]
    if "model" in comparison["policy"]:
        comparison["policy"]["model"] = levels[comparison["policy"]["model"]][0]
    if comparison["factor"] == "model":
        pairs = (
            zip(levels[left], levels[right], strict=True) for left, right in comparison["pairs"]
        )
        comparison["pairs"] = [list(pair) for several in pairs for pair in several]
    return checked_suite(changed, where)


def with_questions(suite: Suite, count: str | None) -> Suite:
    """Return the suite with other questions of each set: "all", the first ones, or a number that
    may exceed the suite's. Raises BenchError if the suite draws none."""
    if count is None:
        return suite
    if not isinstance(suite.experiment, AgentRuns):
        raise BenchError(f"Suite {suite.name} does not draw questions.", where="--questions")
    changed = suite.model_dump()
    number = int(count) if count.isdecimal() else count
    changed["experiment"]["questions"] = None if count == ALL else number
    return checked_suite(changed, "--questions")


def open_judge(name: str, suite: Suite) -> ChatModel:
    """Open the model that judges a suite, with the decoding that it names. Raises ConfigError."""
    named = suite.experiment.judge if isinstance(suite.experiment, AgentRuns) else None
    decoding = {} if named is None else named.model_dump()
    return choose_model(name, **decoding, allow_offline=False)


def _needed_judge(suite: Suite) -> str | None:
    """Return the name for the judge of a suite that shows what a model judges, None for others."""
    needs = {need for name in suite.shown_measures for need in comparable(name).kind.needs}
    return "the judge" if needs & JUDGED else None


def check_judge(suite: Suite, judge: ChatModel | None) -> None:
    """Raise BenchError, before any question is asked, if the suite needs a judge and there is
    none."""
    primary = comparable(suite.comparison.primary)
    if judge is None and primary.kind.needs & JUDGED:
        raise BenchError(
            f"Suite {suite.name} rests on {primary.name}, which a model judges.",
            where="--judge",
            do="Name the model with --judge MODEL.",
        )


def open_experiment(
    suite: Suite,
    folders: Folders,
    options: argparse.Namespace,
    choose: ChooseModel,
    judges: Judges,
    trajectory_judges: TrajectoryJudges | None,
) -> Experiment:
    """Open the experiment of the suite, after all checks that need no measurement."""
    if isinstance(suite.experiment, AgentRuns):
        return AgentExperiment(
            suite.experiment,
            folders,
            limit=options.limit,
            prices=None if options.prices is None else Prices.load(options.prices),
            choose=choose,
            measures=suite.shown_measures,
            judges=judges,
            trajectory_judges=trajectory_judges,
            progress=open_progress,
        )
    if isinstance(suite.experiment, RecordedRuns):
        return RecordedExperiment(suite.experiment, folders.data, limit=options.limit)
    from bench.gold_chain.experiment import GoldChainExperiment

    return GoldChainExperiment(suite.experiment, folders, limit=options.limit)


def fingerprints(suite: Suite) -> Mapping[str, Any]:
    """Return what a report depends on in addition to its circumstances; cells keep their own."""
    return {"code": code_fingerprint(), "suite": suite.fingerprint, "seed": SEED}


def _count(text: str) -> str:
    if text == ALL:
        return text
    first = FIRST if text.startswith(FIRST) else ""
    return f"{first}{positive(text.removeprefix(first))}"


def _set(text: str) -> tuple[str, Path]:
    name, equals, folder = text.partition("=")
    if not (name and equals and folder):
        raise argparse.ArgumentTypeError(f"{text} is not NAME=FOLDER")
    return name, Path(folder)


def _level(text: str) -> tuple[str, str]:
    factor, equals, level = text.partition("=")
    if not (factor and equals and level):
        raise argparse.ArgumentTypeError(f"{text} is not FACTOR=LEVEL")
    return factor, level


def _parser() -> BenchParser:
    parser = BenchParser("ablate", __doc__, resumes=True)
    add = parser.add_argument
    add("suite", type=Path, metavar="SUITE.yaml", help="the suite, such as those in bench/suites")
    parser.add_kept_work("indexes, records and cells", "ablate")
    add("--out", type=Path, help="folder of the report (default: beside the suite)")
    add(
        "--only", type=_level, action="append", metavar="FACTOR=LEVEL",
        help="measure these cells only; may be repeated",
    )  # fmt: skip
    add(
        "--limit",
        type=positive,
        metavar="N",
        help="ask only N questions of each data set, kept apart",
    )
    add(
        "--questions",
        type=_count,
        metavar="N",
        help='ask N questions of each data set, "first N", or all, in place of the suite\'s number',
    )
    add(
        "--model",
        action="append",
        metavar="MODEL",
        help="the model, in place of the suite's, with its efforts and seeds; may be repeated",
    )
    add(
        "--leave-out", action="append", choices=list(Decoding.model_fields), metavar="SETTING",
        help="leave a setting of the suite's models and judge to the endpoint, such as "
        "temperature for models that refuse it; may be repeated",
    )  # fmt: skip
    add("--encoder", metavar="NAME", help="the encoder, in place of the suite's")
    add(
        "--set", type=_set, action="append", metavar="NAME=FOLDER",
        help="where the data set is, as published; may be repeated",
    )  # fmt: skip
    add(
        "--index", metavar="INDEX",
        help="search this index for all data sets: a folder, or an address of OpenSearch. "
        "Nothing is built in it; its vectors are in the folder that ARAG_VECTORS names",
    )  # fmt: skip
    add("--judge", metavar="MODEL", help="a model that judges answers, for JudgeAcc and Factuality")
    add(
        "--judge-trajectories",
        action="store_true",
        help="let the judge also say which searches were for the same fact and succeeded, and why "
        "the first 100 wrong answers of a run are wrong",
    )
    add("--prices", type=Path, metavar="FILE", help="prices, as arag-search run takes them")
    parser.add_data()
    add("--json", type=Path, metavar="FILE", help="write the figures to this file as well")
    add("--no-plots", action="store_true", help="leave pictures out of the report")
    add(
        "--dry-run",
        action="store_true",
        help="check the suite, list its cells and estimate their cost; needs no key",
    )
    return parser

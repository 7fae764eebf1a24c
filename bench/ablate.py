"""Measure a suite of conditions and report what its figures show.

    python -m bench ablate bench/suites/gold_chain.yaml
    python -m bench ablate bench/suites/logicalrag_main.yaml --model gpt-5-mini --questions 20

Prints what will be compared before it starts, then the contrasts, and writes a report. Run the same
command again to resume an interrupted run. See bench/studies/ablations.md.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from arag_search.agent.models.base import ChatModel
from arag_search.agent.models.choose import choose_model
from arag_search.evaluation.bootstrap import SEED
from arag_search.evaluation.judging.verdict_cache import VerdictCache
from arag_search.runs.prices import Prices
from bench import BenchError
from bench.ablation.agent_runs import AgentExperiment, ChooseModel, named_model, unasked_model
from bench.ablation.analysis import analyse
from bench.ablation.cells import Experiment, measured
from bench.ablation.estimate import estimate_lines
from bench.ablation.folders import Folders
from bench.ablation.judging.judges import NOBODY, Judging
from bench.ablation.measure import COSTS, measure_of
from bench.ablation.recorded_runs import RecordedExperiment
from bench.ablation.report import contrast_table, declaration, figure, levels_text, write_report
from bench.ablation.suite import (
    ENVIRONMENT,
    FIRST,
    AgentRuns,
    Decoding,
    RecordedRuns,
    Suite,
    checked_suite,
    load_suite,
)
from bench.arguments import BenchParser, positive
from bench.report.fingerprints import code_fingerprint
from bench.report.rows import circumstances, write_results
from bench.workbench import say

REPORT, VERDICTS = "report", "verdicts.jsonl"
ALL = "all"
JUDGED = frozenset({"judge", "factuality judge"})


def main(arguments: Sequence[str], choose: ChooseModel = named_model) -> int:
    """Measure the suite and return the exit code."""
    return parser_of().run(arguments, lambda options, command: _ablate(options, command, choose))


def _ablate(options: argparse.Namespace, command: str, choose: ChooseModel) -> int:
    suite = changed_suite(options)
    root: Path = options.work
    given = [options.model, options.questions and f"questions {options.questions}"]
    work = root / re.sub(r"[^\w.]+", "-", " ".join([suite.name, *filter(None, given)]))
    folders = Folders(options.data, root / "sets", work, dict(options.set or ()), options.index)
    print("\n".join([f"{suite.name}: {suite.description}", *declaration(suite)]), flush=True)
    if options.dry_run:
        return _dry_run(suite, folders, options)
    judge = _open_judge(suite, options)
    judging = NOBODY
    if judge is not None:
        root.mkdir(parents=True, exist_ok=True)
        cache = VerdictCache(root / VERDICTS)  # all suites share their verdicts
        trajectories: bool = options.judge_trajectories
        judging = Judging.of(judge, suite.shown_measures, cache, trajectories=trajectories)
    experiment = open_experiment(suite, folders, options, choose, judging)
    try:
        cells = measured(experiment, suite.keys, say)
    finally:
        experiment.close()
        if judge is not None:
            judge.close()
    costs = () if suite.experiment.kind == "gold_chain" else COSTS
    analysis = analyse(suite, tuple(dict.fromkeys((*suite.shown_measures, *costs))), cells)
    run = {**circumstances(command), "code": code_fingerprint(), "suite": suite.fingerprint,
           "seed": SEED}  # fmt: skip
    path = write_report(analysis, run, work / REPORT)
    if options.json:
        write_results(options.json, [figure(analysis)], run)
    for stratum in suite.strata:
        print("\n".join([levels_text(stratum), *contrast_table(analysis, stratum)]))
    print(f"Report: {path}")
    return 0


def _dry_run(suite: Suite, folders: Folders, options: argparse.Namespace) -> int:
    """List the cells, and what they would ask of models."""
    experiment = open_experiment(suite, folders, options, unasked_model, NOBODY)
    print("\n".join(f"- {', '.join(key.values())}" for key in suite.keys))
    if isinstance(experiment, AgentExperiment):
        needs = {need for name in suite.shown_measures for need in _needs(name)}
        judge = options.judge or ("the judge" if needs & JUDGED else None)
        trajectories: bool = options.judge_trajectories
        estimates = experiment.estimates(suite.keys, judge, trajectories=trajectories)
        print("\n".join(estimate_lines(estimates, _prices(options))))
    experiment.close()
    print(f"{len(suite.keys):,} cells, nothing was run.")
    return 0


def open_experiment(
    suite: Suite,
    folders: Folders,
    options: argparse.Namespace,
    choose: ChooseModel,
    judging: Judging,
) -> Experiment:
    """Open the experiment of the suite, after all checks that need no measurement."""
    if isinstance(suite.experiment, AgentRuns):
        return AgentExperiment(suite, suite.experiment, folders, _prices(options), choose, judging)
    if isinstance(suite.experiment, RecordedRuns):
        return RecordedExperiment(suite.experiment, folders.data)
    from bench.gold_chain.experiment import GoldChainExperiment

    return GoldChainExperiment(suite.experiment, folders)


def _open_judge(suite: Suite, options: argparse.Namespace) -> ChatModel | None:
    """Open the model that judges a suite, with the decoding that it names. Raises BenchError,
    before any question is asked, if there is none and a figure rests on it."""
    primary = suite.comparison.primary
    if options.judge is not None:
        named = suite.experiment.judge if isinstance(suite.experiment, AgentRuns) else None
        decoding = {} if named is None else named.model_dump()
        return choose_model(options.judge, **decoding, allow_offline=False)
    if options.judge_trajectories or _needs(primary) & JUDGED:
        rests = "Trajectories" if options.judge_trajectories else f"{primary} of {suite.name}"
        raise BenchError(
            f"{rests} cannot be judged without a model that judges.",
            where="--judge",
            do="Name the model with --judge MODEL.",
        )
    return None


def _needs(measure: str) -> frozenset[str]:
    return measure_of(measure).kind.needs


def _prices(options: argparse.Namespace) -> Prices | None:
    return None if options.prices is None else Prices.load(options.prices)


def changed_suite(options: argparse.Namespace) -> Suite:
    """Load the suite with the changes that the options ask for. Its models keep their levels.
    Raises BenchError if it has no model to change."""
    suite = load_suite(options.suite)
    values = suite.model_dump()
    experiment = values["experiment"]
    nothing = dict.fromkeys(options.leave_out or ())
    if options.questions is not None:
        count: str = options.questions
        experiment["questions"] = int(count) if count.isdecimal() else count
        if count == ALL:
            experiment["questions"] = None
    if isinstance(suite.experiment, AgentRuns):
        experiment["encoder"] = options.encoder or experiment["encoder"]
        if experiment["judge"]:
            experiment["judge"] |= nothing
        for entry, values_of_entry in zip(
            suite.experiment.models, experiment["models"], strict=True
        ):
            values_of_entry |= {"label": entry.level, **nothing}
            if options.model and entry.model == ENVIRONMENT:
                values_of_entry["model"] = options.model
    elif options.model or options.leave_out or options.encoder:
        raise BenchError(f"Suite {suite.name} does not use a model.", where=str(options.suite))
    return checked_suite(values, "the options")


def _count(text: str) -> str:
    return (
        text
        if text == ALL
        else (f"{FIRST if text.startswith(FIRST) else ''}{positive(text.removeprefix(FIRST))}")
    )


def _set(text: str) -> tuple[str, Path]:
    name, equals, folder = text.partition("=")
    if not (name and equals and folder):
        raise argparse.ArgumentTypeError(f"{text} is not NAME=FOLDER")
    return name, Path(folder)


def parser_of() -> BenchParser:
    """Return the parser of the command line."""
    parser = BenchParser("ablate", __doc__, resumes=True)
    add = parser.add_argument
    add("suite", type=Path, metavar="SUITE.yaml", help="the suite, such as those in bench/suites")
    parser.add_kept_work("indexes, records, cells and reports", "ablate")
    add(
        "--questions", type=_count, metavar="N",
        help='ask N questions of each data set, "first N", or all, in place of the suite\'s '
        "number; kept apart",
    )  # fmt: skip
    add(
        "--model", metavar="MODEL",
        help='what the suite calls "environment", in place of the model in ARAG_MODEL; kept apart',
    )  # fmt: skip
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
        "--judge-trajectories", action="store_true",
        help="let the judge also say which searches were for the same fact and succeeded, and why "
        "the first 100 wrong answers of a run are wrong",
    )  # fmt: skip
    add("--prices", type=Path, metavar="FILE", help="prices, as arag-search run takes them")
    parser.add_data()
    add("--json", type=Path, metavar="FILE", help="write the figures to this file as well")
    add(
        "--dry-run", action="store_true",
        help="check the suite, list its cells and estimate their cost; needs no key",
    )  # fmt: skip
    return parser

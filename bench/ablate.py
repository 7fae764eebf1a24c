"""Measure a suite of conditions and report what its figures show.

    python -m bench ablate bench/suites/gold_chain.yaml
    python -m bench ablate bench/suites/logicalrag_main.yaml --model gpt-5-mini --with questions=20

Prints what will be compared before it starts, then the contrasts, and writes a report. Run the same
command again to resume an interrupted run. See bench/studies/ablations.md.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

import yaml

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
from bench.ablation.judging.judges import NOBODY, Judging
from bench.ablation.measure import COSTS, measure_of
from bench.ablation.recorded_runs import RecordedExperiment
from bench.ablation.report import contrast_table, declaration, figure, levels_text, write_report
from bench.ablation.suite import (
    ENVIRONMENT,
    AgentRuns,
    Decoding,
    ModelEntry,
    RecordedRuns,
    Suite,
    checked_suite,
    load_suite,
)
from bench.arguments import BenchParser, tell_sample
from bench.data import Folders
from bench.report.rows import circumstances, write_results
from bench.workbench import say

REPORT, VERDICTS = "report", "verdicts.jsonl"
JUDGED = frozenset({"judge", "factuality judge"})


def main(arguments: Sequence[str], choose: ChooseModel = named_model) -> int:
    """Measure the suite and return the exit code."""
    return parser_of().run(arguments, lambda options, command: _ablate(options, command, choose))


def _ablate(options: argparse.Namespace, command: str, choose: ChooseModel) -> int:
    suite = changed_suite(options)
    root: Path = options.work
    changes = [f"{key} {value}" for key, value in options.changes]
    given = [suite.name, *([options.model] if options.model else []), *changes]
    work = root / re.sub(r"[^\w.]+", "-", " ".join(given))[:120]
    folders = Folders(options.data, root / "sets", work, options.index)
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
    tell_sample(options.data)
    try:
        cells = measured(experiment, suite.keys, say)
    finally:
        experiment.close()
        if judge is not None:
            judge.close()
    costs = () if suite.experiment.kind == "gold_chain" else COSTS
    analysis = analyse(suite, tuple(dict.fromkeys((*suite.shown_measures, *costs))), cells)
    run = circumstances(command, seed=SEED)
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
        for level, (requests, shown) in experiment.usual.items():
            print(f"{level}: {requests} requests a question, which show {shown} passages.")
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
        shown = suite.shown_measures
        return RecordedExperiment(suite.experiment, folders.data, folders.kept, shown)
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
    """Load the suite with the changes that the options ask for; its levels stay. Raises ConfigError
    for keys and values that no suite has, and BenchError if there is no model to change."""
    values = load_suite(options.suite).model_dump()
    values["experiment"] |= dict(options.changes)
    suite = checked_suite(values, "--with")
    if options.model is None:
        return suite
    models = suite.experiment.models if isinstance(suite.experiment, AgentRuns) else ()
    if ENVIRONMENT not in {entry.model for entry in models}:
        what = f'Suite {suite.name} has no model "{ENVIRONMENT}".'
        raise BenchError(what, where="--model", do="Name the models with --with 'models=[...]'.")
    unused = {}
    if not ModelEntry(model=options.model).takes_seeds:  # rules and recorded replies
        unused = dict.fromkeys(Decoding.model_fields)
        named = {name for of in models for name in unused if getattr(of, name) is not None}
        if named:
            say(f"{options.model} has no decoding: {', '.join(sorted(named))} are left out.")
    entries = (
        entry.model_copy(update={"model": options.model, "label": entry.level, **unused})
        if entry.model == ENVIRONMENT
        else entry
        for entry in models
    )
    runs = suite.experiment.model_copy(update={"models": tuple(entries)})
    return suite.model_copy(update={"experiment": runs})


def _change(text: str) -> tuple[str, object]:
    key, equals, value = text.partition("=")
    try:
        if key and equals:
            return key, yaml.safe_load(value)
    except yaml.YAMLError:
        pass
    raise argparse.ArgumentTypeError(f"{text} is not KEY=VALUE, with a value as in the suite")


def parser_of() -> BenchParser:
    """Return the parser of the command line."""
    parser = BenchParser("ablate", __doc__, resumes=True, tells_sample=True)
    add = parser.add_argument
    add("suite", type=Path, metavar="SUITE.yaml", help="the suite, such as those in bench/suites")
    parser.add_kept_work("indexes, records, cells and reports", "ablate")
    add(
        "--with", dest="changes", type=_change, action="append", default=[], metavar="KEY=VALUE",
        help="another value for a key of the experiment, as in the suite: questions=20, "
        "'questions=first 300', questions=null for all, 'models=[gpt-5-mini]', encoder=NAME; may "
        "be repeated; kept apart",
    )  # fmt: skip
    add(
        "--model", metavar="MODEL",
        help='what the suite calls "environment", in place of ARAG_MODEL; kept apart',
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

"""Ablations: measure a suite, and say what may be said of it.

    python -m bench ablate bench/suites/gold_chain.yaml
    python -m bench ablate bench/suites/logicalrag_main.yaml --model gpt-5-mini --limit 20

Prints what is asked before it starts, then what may be said, and writes a report. The same command
goes on where it was stopped. See bench/README.md.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from arag_search.agent.models.choose import choose_model
from arag_search.cli.output.messages import INTERRUPTED
from arag_search.engines.lucene.jvm import cache_folder
from arag_search.errors import AragError
from arag_search.evaluation.bootstrap import SEED
from arag_search.evaluation.judging.judge import Judge
from arag_search.evaluation.judging.verdict_cache import VerdictCache
from arag_search.runs.prices import Prices
from arag_search.system.progress import open_progress
from bench import BenchError
from bench.ablation.agent_runs import AgentExperiment, ChooseModel, named_model
from bench.ablation.analysis import analyse
from bench.ablation.cells import Experiment
from bench.ablation.design import Design
from bench.ablation.papers import paper_tables
from bench.ablation.places import Places
from bench.ablation.plots import check_matplotlib
from bench.ablation.report import Report, claim_lines, declaration, figure, write_report
from bench.ablation.runner import chosen_keys, named, run_cells
from bench.ablation.suite import AgentRuns, Suite, checked_suite, load_suite
from bench.ablation.values import load_values
from bench.arguments import command_line, positive
from bench.quality.data_sets import DATA
from bench.report.fingerprints import code_fingerprint
from bench.report.rows import circumstances, write_results
from bench.workbench import say

CELLS = "cells"
REPORT = "report"
VERDICTS = "verdicts.jsonl"


def main(arguments: Sequence[str], choose: ChooseModel = named_model) -> int:
    """Measure what the arguments name. Exit code 1 for a failure, 130 interrupted."""
    given = _parser().parse_args(arguments)
    command = command_line("ablate", arguments)
    try:
        return _ablate(given, command, choose)
    except AragError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        again = shlex.join(["python", "-m", "bench", "ablate", *arguments])
        print(f"Interrupted. Go on with: {again}", file=sys.stderr)
        return INTERRUPTED


def _ablate(given: argparse.Namespace, command: str, choose: ChooseModel) -> int:
    if not given.no_plots:
        check_matplotlib()
    suite = with_models(load_suite(given.suite), given.model)
    root: Path = given.work or cache_folder() / "bench" / "ablate"
    limited = f"-limit-{given.limit}" if given.limit else ""
    places = Places(given.data, root / "sets", root / f"{suite.name}{limited}")
    judge = None if given.judge is None else open_judge(given.judge, root)
    experiment = open_experiment(suite, places, given, choose, judge)
    design = Design(suite, experiment.keys)
    print("\n".join(declaration(design)), end="\n\n", flush=True)
    try:
        keys = chosen_keys(experiment.keys, dict(given.only or ()))
        if given.dry_run:
            print("\n".join(f"- {named(key)}" for key in keys))
            print(f"{len(keys):,} cells, nothing was run.")
            return 0
        outcome = run_cells(experiment, keys, places.work / CELLS, say)
    finally:
        experiment.close()
        if judge is not None:
            judge.model.close()
    say(f"{outcome.measured:,} cells measured, {outcome.kept:,} were there.")
    sets, missing = load_values(places.work / CELLS, design.keys, suite.shown_measures)
    analysis = analyse(design, sets)
    run = {**circumstances(command), **fingerprints(suite)}
    report = Report(analysis, missing, paper_tables(suite.name), places.work, run)
    path = write_report(report, given.out or places.work / REPORT, pictures=not given.no_plots)
    if given.json:
        write_results(given.json, [figure(report)], run)
    print("\n".join(claim_lines(analysis)))
    print(f"\nReport: {path}")
    return 0


def with_models(suite: Suite, names: Sequence[str] | None) -> Suite:
    """The suite with other models. Raises BenchError where it has none."""
    if not names:
        return suite
    if not isinstance(suite.experiment, AgentRuns):
        raise BenchError(f"Suite {suite.name} asks no model.", where="--model")
    changed = suite.model_dump()
    changed["experiment"]["models"] = list(names)
    main = changed["comparison"]["policy"]["main"]
    if "model" in main:
        main["model"] = names[0]
    return checked_suite(changed, "--model")


def open_judge(name: str, root: Path) -> Judge:
    """What judges answers, with verdicts that all suites share. Raises ConfigError."""
    root.mkdir(parents=True, exist_ok=True)
    model = choose_model(name, allow_offline=False)
    return Judge(model, cache=VerdictCache(root / VERDICTS))


def open_experiment(
    suite: Suite,
    places: Places,
    given: argparse.Namespace,
    choose: ChooseModel,
    judge: Judge | None,
) -> Experiment:
    """What the suite measures, all that can be checked having been checked."""
    if isinstance(suite.experiment, AgentRuns):
        return AgentExperiment(
            suite.experiment,
            places,
            limit=given.limit,
            prices=None if given.prices is None else Prices.load(given.prices),
            choose=choose,
            judge=judge,
            progress=open_progress,
        )
    from bench.gold_chain.experiment import GoldChainExperiment

    return GoldChainExperiment(suite.experiment, places, limit=given.limit)


def fingerprints(suite: Suite) -> Mapping[str, Any]:
    """What a report depends on beside the circumstances; cells keep their own."""
    return {"code": code_fingerprint(), "suite": suite.fingerprint, "seed": SEED}


def _level(text: str) -> tuple[str, str]:
    factor, equals, level = text.partition("=")
    if not (factor and equals and level):
        raise argparse.ArgumentTypeError(f"{text} is not FACTOR=LEVEL")
    return factor, level


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench ablate",
        description="Measure a suite and report what may be said. See bench/README.md.",
    )
    add = parser.add_argument
    add("suite", type=Path, metavar="SUITE.yaml", help="such as those in bench/suites")
    add("--work", type=Path, help="where indexes, records and cells are kept (default: the cache)")
    add("--out", type=Path, help="folder of the report (default: in that of the suite)")
    add(
        "--only", type=_level, action="append", metavar="FACTOR=LEVEL",
        help="measure these cells only; may be given again",
    )  # fmt: skip
    add("--limit", type=positive, metavar="N", help="so many questions a data set, kept apart")
    add("--model", action="append", metavar="MODEL", help="in place of the suite's; again for more")
    add("--judge", metavar="MODEL", help="a model that judges answers: JudgeAcc")
    add("--prices", type=Path, metavar="FILE", help="prices, as arag-search run takes them")
    add("--data", type=Path, default=DATA, help="folder of the data sets (default %(default)s)")
    add("--json", type=Path, metavar="FILE", help="write the figures there too, with what is in it")
    add("--no-plots", action="store_true", help="a report without pictures")
    add("--dry-run", action="store_true", help="check and list, run nothing")
    return parser

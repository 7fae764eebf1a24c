"""Speed of our search and of peers on queries from real runs of agents.

    python -m bench replay
    python -m bench replay --records my-run --queries 200 --without OpenSearch,pyserini

Without --records the offline model first answers the questions of 2WikiMultiHopQA, and its searches
are replayed. Prints tables and adds the figures to the file of results.
See bench/studies/replay.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from arag_search.agent.models.offline import OfflineModel
from arag_search.agent.presets import DEFAULT_PRESET, load_preset
from arag_search.questions.files import load_questions
from arag_search.search.index import open_index
from arag_search.vectors.encoders.model_files import OFFLINE_PACKAGE
from bench.arguments import BenchParser, names_from, positive
from bench.data import corpus_in
from bench.replay.build_cost import Sources
from bench.replay.builds import OPTIONAL, BuildCost, Builds
from bench.replay.recorded import (
    SEED,
    RecordedQueries,
    offline_run,
    read_queries,
    with_replies_of_papers,
)
from bench.replay.sides import GIVEN, ReplaySide, open_embedded, open_sides
from bench.report.fingerprints import agent_fingerprints
from bench.report.rounds import Latencies, Timings, interleaved, percentile
from bench.report.rows import Figure, Row, circumstances, show
from bench.workbench import Workbench, say, set_up

CLIENTS = (1, 16)
QUERIES = 500
ROUNDS = 5
WARM_UP = 2
BUILD_ROUNDS = 3


def main(arguments: Sequence[str]) -> int:
    """Measure and return the exit code; a peer that is not available is not a failure."""
    parser = BenchParser("replay", __doc__)
    add = parser.add_argument
    add("--records", type=Path, nargs="+", metavar="RUN", help="folders that arag-search run wrote")
    add("--limit", type=positive, help="without --records: answer only the first questions")
    parser.add_default("--queries", positive, QUERIES, "queries per round")
    parser.add_rounds(ROUNDS)
    parser.add_default("--warm-up", int, WARM_UP, "rounds that do not count")
    parser.add_default("--build-rounds", positive, BUILD_ROUNDS, "rounds of building")
    add(
        "--without",
        type=names_from(OPTIONAL),
        default=(),
        metavar="A,B",
        help=f"leave some of these out: {','.join(OPTIONAL)}",
    )
    parser.add_default("--encoder", str, OFFLINE_PACKAGE, "encoder of hybrid search")
    add(
        "--pyserini-python",
        default=sys.executable,
        metavar="PYTHON",
        help="an interpreter that has pyserini (default: this one)",
    )
    parser.add_data()
    parser.add_work()
    parser.add_results()
    return parser.run(arguments, _replayed)


def _replayed(options: argparse.Namespace, command: str) -> int:
    with ExitStack() as stack:
        figures, run = _measured(options, command, stack)
    show(options.json, figures, run)
    return 0


def _measured(
    options: argparse.Namespace, command: str, stack: ExitStack
) -> tuple[list[Figure], dict[str, Any]]:
    bench = stack.enter_context(set_up(corpus_in(options.data), options.work))
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=bench.folder)))
    sources = Sources(bench.corpus, folder)
    sources.write(bench.chunks)
    recorded, run = _recorded(options, bench, folder)
    run = {**circumstances(command, bench.manifest, seed=SEED), **run}
    asked = recorded.some(options.queries)
    builds = Builds(
        stack, folder, sources, options.encoder, options.pyserini_python, frozenset(options.without)
    )
    costs = builds.build(options.build_rounds)
    index = open_embedded(builds)
    sides = open_sides(builds, index, asked.queries)
    say(f"replay: {len(asked.queries):,} queries, {options.warm_up} + {options.rounds} rounds")
    latencies = Latencies()
    timings = interleaved(
        {
            _of(side.name, clients): latencies.side(_of(side.name, clients), side.player, clients)
            for side in sides
            for clients in CLIENTS
        },
        options.rounds,
        warm_up=options.warm_up,
    )
    figures = [
        build_figure(costs, builds.gaps),
        replay_figure(sides, timings, latencies, asked, builds.gaps),
    ]
    run["versions"] = builds.versions
    if "hybrid" not in builds.gaps:
        run["encoder"] = index.open_vectors().encoder.identity.fingerprint
    return figures, run


def _recorded(
    options: argparse.Namespace, bench: Workbench, folder: Path
) -> tuple[RecordedQueries, dict[str, Any]]:
    """Return the queries with the fingerprints of their origin."""
    with open_index(bench.index, search_timeout_s=None) as index:
        if options.records:
            recorded = read_queries(options.records, index)
            return recorded, _of_runs(recorded)
        questions = load_questions(corpus_in(options.data).parent / "questions.jsonl")[
            : options.limit
        ]
        preset = with_replies_of_papers(load_preset(DEFAULT_PRESET))
        say(f"replay: {len(questions)} questions are answered by the offline model")
        run = offline_run(index, questions, preset, folder / "run")
        return read_queries([run], index), agent_fingerprints(questions, preset, OfflineModel())


def _of_runs(recorded: RecordedQueries) -> dict[str, Any]:
    """Return the recorded fingerprints of the runs; their prompts are part of the presets'
    fingerprints."""
    names = ("questions", "preset", "model", "index")
    kept = {name: [run.fingerprints.get(name) for run in recorded.runs] for name in names}
    return {**kept, "prompt": kept["preset"]}


def _of(side: str, clients: int) -> str:
    return f"{side}, {clients} client{'s' if clients > 1 else ''}"


# Figures


def build_figure(costs: Sequence[BuildCost], gaps: Mapping[str, str]) -> Figure:
    """Return the figure of seconds, bytes and memory of every build."""
    rows: list[Row] = []
    for build in costs:
        seconds = [cost.seconds for cost in build.costs]
        last = build.costs[-1]
        rows.append(Row(f"{build.name}: seconds", build.seconds, "s", min(seconds), max(seconds)))
        rows.append(Row(f"{build.name}: on disk", last.bytes / 1e6, "MB"))
        peaks = [cost.peak_bytes for cost in build.costs if cost.peak_bytes is not None]
        if peaks:
            rows.append(Row(f"{build.name}: peak memory", max(peaks) / 1e6, "MB"))
    notes = {build.name: build.note for build in costs}
    return Figure("build", tuple(rows), {"notes": notes, "gaps": dict(gaps)})


def replay_figure(
    sides: Sequence[ReplaySide],
    timings: Timings,
    latencies: Latencies,
    asked: RecordedQueries,
    gaps: Mapping[str, str],
) -> Figure:
    """Return the figure of throughput and latency of every side, and of how much faster our side is
    than others with the same input."""
    rows: list[Row] = []
    count = len(asked.queries)
    for side in sides:
        ours = next(peer.name for peer in sides if peer.input == side.input)
        for clients in CLIENTS:
            name = _of(side.name, clients)
            spent = latencies.of(name, timings.rounds)
            rates = [count / seconds for seconds in timings.seconds[name]]
            rate = count / timings.median_s(name)
            rows.append(Row(f"{name}: QPS", rate, "queries/s", min(rates), max(rates)))
            rows.append(Row(f"{name}: mean", 1000 * sum(spent) / len(spent), "ms"))
            rows += [
                Row(f"{name}: P{share}", 1000 * percentile(spent, share / 100), "ms")
                for share in (50, 95, 99)
            ]
            if side.name != ours:
                ratio = timings.ratio(name, _of(ours, clients))
                rows.append(Row.of_ratio(f"{name}: {ours} is faster by", ratio))
    details = {
        "given": {side.name: GIVEN[side.input] for side in sides},
        "notes": {side.name: side.note for side in sides if side.note},
        "gaps": dict(gaps),
        "recorded": dict(asked.counts),
        "asked": count,
        "seconds": timings.seconds,
        "examples": [
            {"query": query.text, "words": query.words, "keywords": query.keywords}
            for query in asked.queries[:10]
        ],
    }
    return Figure("replay", tuple(rows), details)

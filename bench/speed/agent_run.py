"""Time of a run with one worker over that with several workers.

    python -m bench agent_run

The run asks questions of a scripted model whose replies take as long as those of an endpoint: two
searches and an answer for each question. One worker and several workers alternate, each run into a
folder of its own, over a Lucene index of the sample corpus.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

from arag_search.agent.models.base import ModelReply, ModelRequest, ToolCall
from arag_search.agent.models.scripted import ScriptedModel
from arag_search.agent.presets import load_preset
from arag_search.questions.files import Question
from arag_search.runs.folder import read_records
from arag_search.runs.run import RunOptions, run
from arag_search.search.index import Index, open_index
from bench import BenchError
from bench.arguments import BenchParser, positive
from bench.report.fingerprints import preset_fingerprints
from bench.report.rounds import Side, interleaved, timed
from bench.report.rows import Figure, Row, Target, circumstances, show
from bench.workbench import say
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

PRESET = "logical_read"
QUESTIONS = 200
WORKERS = 16
REPLY_S = 0.2
CALLS = 3
ROUNDS = 1
TARGET = Target("at least", 6.0)
QUERIES = ('"antonio vivaldi" AND librett*', "opera AND venice NOT title:griselda")


def main(arguments: Sequence[str]) -> int:
    """Measure runs with one worker and with several, and return the exit code."""
    parser = BenchParser("agent_run", __doc__)
    parser.add_default("--questions", positive, QUESTIONS, "questions of each run")
    parser.add_default("--workers", positive, WORKERS, "workers to compare with one worker")
    parser.add_rounds(ROUNDS)
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    with tempfile.TemporaryDirectory(prefix="arag-bench-") as name:
        folder = Path(name)
        with as_file(files("arag_search") / "sample" / "corpus.jsonl") as corpus:
            build_index([str(corpus)], folder / "index", BuildOptions())
        with open_index(folder / "index", search_timeout_s=None) as index:
            about = circumstances(command, index.manifest)
            about |= preset_fingerprints(load_preset(PRESET))
            measured = figure(index, folder, options.questions, options.workers, options.rounds)
    show(options.json, [measured], about)
    return 0


def figure(index: Index, folder: Path, count: int, workers: int, rounds: int) -> Figure:
    """Measure the time of one worker over that of several."""
    say(f"agent run: {rounds} rounds of {count} questions, {CALLS} replies of {REPLY_S} s each")
    questions = [Question(f"q{at}", f"What is question {at}?", ("x",)) for at in range(count)]
    single, several = "1 worker", f"{workers} workers"
    sides: dict[str, Side] = {
        single: lambda: _seconds(index, folder, questions, 1),
        several: lambda: _seconds(index, folder, questions, workers),
    }
    timings = interleaved(sides, rounds, warm_up=0)
    rows = (
        Row.of_ratio(f"{single} over {several}", timings.ratio(single, several), TARGET),
        Row(single, timings.median_s(single), "s"),
        Row(several, timings.median_s(several), "s"),
        Row(f"{several}, replies alone", -(-count // workers) * CALLS * REPLY_S, "s"),
    )
    return Figure("agent run", rows, {"questions": count, "seconds": timings.seconds})


def _seconds(index: Index, folder: Path, questions: Sequence[Question], workers: int) -> float:
    """Run the questions and return the seconds. Raises BenchError unless all were answered."""
    model = ScriptedModel(_script, delay_s=REPLY_S)
    preset = load_preset(PRESET)
    with tempfile.TemporaryDirectory(dir=folder) as out:
        options = RunOptions(workers=workers)
        spent = timed(lambda: run(index, questions, preset, model, out, options=options))
        records = read_records(Path(out)).by_id.values()
    steps = {(record.status, len(record.trajectory)) for record in records}
    if len(records) != len(questions) or steps != {("answered", CALLS - 1)}:
        raise BenchError("Not every question was answered after its searches.", where=str(steps))
    return spent


def _script(request: ModelRequest) -> ModelReply:
    """Reply with two searches, then an answer."""
    done = sum(message.role == "tool" for message in request.messages)
    if done < len(QUERIES):
        arguments = json.dumps({"query": QUERIES[done]})
        return ModelReply("", (ToolCall(f"c{done}", "logical_search", arguments),))
    return ModelReply("Answer: x\nSources: vivaldi.1")

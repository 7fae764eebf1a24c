"""Recorded calls made again: what replies cost and spare, which pointers help.

    python -m bench replay model_runs model_runs_2 model_runs_3
    python -m bench replay model_runs_3 --preset arag_full
    python -m bench replay model_runs model_runs_2 model_runs_3 --engine opensearch

Each record is a conversation of its own. Arguments that a tool no longer has are left out, and so
are calls of tools that need vectors. A read has nothing new to show if every sentence of its
passages stood in a reply before it. A pointer is useful if a later call of its record asks for its
title or passage. It is also useful if its passage is evidence of the question. With --engine
opensearch, requests to a node are counted; steps are requests one after another.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from arag_search.agent.record import Record, Step
from arag_search.evaluation.evidence import evidence_values
from arag_search.evaluation.resolution import LocatedEvidence, Passages
from arag_search.evaluation.text_match import without_brackets
from arag_search.plan.clauses import ResolvedPlan, wanted_leaves
from arag_search.plan.lower import lower
from arag_search.query.problems import QueryError
from arag_search.query.reading import parse
from arag_search.questions.files import Question, load_questions
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.tools.preset_files import DEFAULT_PRESET, load_preset
from arag_search.tools.tool import ReadSet, ToolResult
from arag_search.tools.toolbox import Toolbox
from bench import BenchError, nodes
from bench.ablation.recorded_runs import records_of
from bench.arguments import BenchParser, positive
from bench.data import DATA_SETS
from bench.proxy import Proxy, counting, steps
from bench.report.rows import Figure, Row, circumstances, show
from bench.ripgrep.manuals import plain
from bench.workbench import kept_index, say
from index_jobs.build.new_index import build_index

NAME = "replay"
Counts = dict[str, float]
_CHUNKS = "_chunks"
_EVIDENCE = "recall of evidence, summed"
_TELLING = re.compile(r"^.*\b(?:nowhere|none|No passage)\b.*$", re.MULTILINE)


def main(arguments: Sequence[str]) -> int:
    """Measure and return the exit code."""
    parser = BenchParser(NAME, __doc__)
    parser.add_argument("runs", nargs="+", help="folders of records in the folder of the data sets")
    parser.add_default("--data", Path, DATA_SETS, "folder of the data sets")
    parser.add_default("--preset", str, DEFAULT_PRESET, "preset whose records are read")
    parser.add_argument("--engine", choices=("lucene", "opensearch"), default="lucene")
    parser.add_default("--rounds", positive, 1, "rounds, of which the last is measured")
    parser.add_kept_work("indexes", NAME)
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    by_run: dict[str, Counts] = {}
    with _place(options) as (place, proxy):
        for file in (f for run in options.runs for f in _files(options, run)):
            name = f"{file.parent.name} {file.name.partition('.')[0]}"
            say(name)
            questions, corpus = _source(options.data, file)
            location = place(corpus, name.replace(" ", "-"))
            with open_index(location, search_timeout_s=None) as index:
                asked, records = load_questions(questions), records_of(file)
                for _ in range(options.rounds):
                    by_run[name] = replayed(index, options.preset, records, asked, proxy)
    if not by_run:
        where = ", ".join(options.runs)
        raise BenchError(f"There are no records of {options.preset}.", where=where)
    first, *_ = runs = [*by_run.values()]
    by_run["all"] = {what: sum(counts[what] for counts in runs) for what in first}
    figures = [
        Figure(name, tuple(Row(what, value, "") for what, value in counts.items()))
        for name, counts in by_run.items()
    ]
    show(options.json, figures, circumstances(command))
    return 0


def _files(options: argparse.Namespace, run: str) -> list[Path]:
    return sorted((options.data / run).glob(f"*.{options.preset}.jsonl"))


@contextmanager
def _place(
    options: argparse.Namespace,
) -> Generator[tuple[Callable[[Path, str], str | Path], Proxy | None]]:
    """Yield a function for the index of a corpus and a name, and the proxy before a node."""
    if options.engine == "lucene":
        yield lambda corpus, name: kept_index(corpus, options.work / name), None
        return
    with (
        tempfile.TemporaryDirectory(prefix="arag-replay-") as folder,
        nodes.running(Path(folder)) as (node,),
        counting(node.host) as proxy,
    ):

        def built(corpus: Path, name: str) -> str:
            build_index([str(corpus)], f"http://{node.host}/{name}")
            return f"{proxy.url}/{name}"

        yield built, proxy


def _source(data: Path, file: Path) -> tuple[Path, Path]:
    """Return the questions and the corpus of a run. They are in the folder of its set beside it, or
    else among the data sets."""
    name = file.name.partition(".")[0]
    if (own := file.parent / name).is_dir():
        return own / "questions.jsonl", own / "corpus.jsonl"
    base = name.removesuffix(_CHUNKS)
    corpus = data / base / ("corpus.jsonl" if base == name else "arag_chunks.json")
    questions = file.with_name(f"{base}.questions.jsonl")
    return questions if questions.exists() else data / "model_runs" / questions.name, corpus


def replayed(
    index: Index,
    preset: str,
    records: Mapping[str, Record],
    asked: Sequence[Question],
    proxy: Proxy | None = None,
) -> Counts:
    """Make the calls of records again, and count; requests, too, if they pass a proxy."""
    chosen = load_preset(preset)
    tools = tuple(name for name in chosen.tools if name not in chosen.needed_vectors)
    toolbox = Toolbox(index, chosen.model_copy(update={"tools": tools}))
    located = LocatedEvidence.of(asked, Passages(index.scan()))
    counts: Counts = {_EVIDENCE: 0.0}
    for question in asked:
        if (record := records.get(question.id)) is None:
            continue
        sets = located.sets[question.id]
        gold = {id for pieces in sets for piece in pieces for id in piece.chunk_ids}
        steps = [step for step in record.trajectory if step.tool_name in toolbox.tools]
        conversation = Conversation(toolbox.in_conversation(ReadSet()), counts, proxy)
        again = [conversation.reply(step, steps[at + 1 :], gold) for at, step in enumerate(steps)]
        values = evidence_values(question, replace(record, trajectory=tuple(again)), sets)
        counts[_EVIDENCE] += values.recall if values else 0
    return counts


class Conversation:
    """The calls of a record made again so far, and the sentences that their replies have shown."""

    def __init__(self, toolbox: Toolbox, counts: Counts, proxy: Proxy | None) -> None:
        self._toolbox, self._counts, self._proxy = toolbox, counts, proxy
        self._visible: dict[str, set[int]] = {}

    def reply(self, step: Step, later: Sequence[Step], gold: Collection[str]) -> Step:
        """Make a call again, count, and return the step with its new reply."""
        known = self._toolbox.tools[step.tool_name].parameters["properties"]
        given = {name: value for name, value in step.tool_input.items() if name in known}
        is_idle = step.is_read and not any(map(self._hidden, given.get("chunk_ids", ())))
        if self._proxy is not None:
            self._proxy.take()
        began = time.process_time()
        result = self._toolbox.call(step.tool_name, given)
        seconds = time.process_time() - began
        passed = [] if self._proxy is None else self._proxy.take()
        asked = plain(" ".join(str(step.tool_input) for step in later))
        pointers = [span for span in result.passages if span.kind == "pointer"]
        useful = sum(
            span.id in gold
            or plain(span.id) in asked
            or plain(without_brackets(span.title)) in asked
            for span in pointers
        )
        absent = list(self._absent(given.get("query", "")))
        telling = [plain(line) for line in _TELLING.findall(result.text)]
        counts = {
            "replies": 1,
            "tokens of replies": result.tokens,
            "tokens of corpus text": result.retrieved_tokens,
            "processor time, ms": seconds * 1000,
            "reads": step.is_read,
            "reads that have nothing new to show": is_idle,
            "reads that show nothing new": not self._note(result) and step.is_read,
            "useful pointers": useful,
            "useless pointers": len(pointers) - useful,
            "parts of queries that occur nowhere": len(absent),
            "of these, told at once": sum(any(name in of for of in telling) for name in absent),
        }
        if self._proxy is not None:
            searches, taken = not step.is_read, steps(passed)
            counts |= {"searches": searches, "steps of searches": searches * taken, "steps": taken}
            counts["requests"] = len(passed)
            counts["bytes of answers"] = sum(exchange.received for exchange in passed)
        for what, count in counts.items():
            self._counts[what] = self._counts.get(what, 0) + count
        shown = {"tool_output": result.text, "passages": result.passages, "hit_ids": result.ids}
        return replace(step, retrieved_tokens=result.retrieved_tokens, **shown)

    def _hidden(self, id: str) -> bool:
        """Return whether a sentence of a passage has not been shown."""
        (chunk,) = self._toolbox.index.read([id])
        return chunk is not None and len(self._visible.get(id, ())) < len(chunk.sentences())

    def _note(self, result: ToolResult) -> bool:
        """Note the sentences that stand whole in a reply, and return whether any is new."""
        is_new = False
        for span in result.passages:
            text, seen = plain(span.text_in(result.text)), self._visible.setdefault(span.id, set())
            (chunk,) = self._toolbox.index.read([span.id])
            sentences = enumerate(chunk.sentences() if chunk else ())
            new = {at for at, of in sentences if plain(of) in text} - seen
            seen |= new
            is_new |= bool(new)
        return is_new

    def _absent(self, query: str) -> Iterator[str]:
        """Yield the words, phrases and prefixes of a query that occur nowhere."""
        index = self._toolbox.index
        with suppress(QueryError):
            asked = parse(query, index.manifest.query_schema)
            for leaf in wanted_leaves(ResolvedPlan(lower(asked.tree, asked.language)).root):
                if leaf.is_text and not index.logical_search(leaf.text).total:
                    yield plain(leaf.typed)

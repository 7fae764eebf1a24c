"""Tokens to the evidence inside long documents, in four ways.

    python -m bench long_documents

Documents of 20,000 to 150,000 tokens are assembled from the passages of real corpora, in a seeded
random order, so that the place of all evidence is known. A searcher that knows the chain of each
question looks for the evidence of every hop in four ways:

- ``documents``: search with three queries at once, then find and a window of 60 lines in the first
  three documents;
- ``documents, paper's window``: the same with AgenticRAG's window of 1,800 lines;
- ``passages``: logical_read over the passages of 1,000 tokens of the same documents;
- ``whole documents``: the same search, then the first three documents from their beginning.

Each hop ends when a sentence with its evidence was shown, or when a bound is reached; a hop that is
not found costs the bound. Hops without known evidence are left out. Prints tables and adds the
figures to the file of results.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import orjson

from arag_search.agent.presets import Preset, changed_preset, load_preset
from arag_search.agent.toolbox import tools_of
from arag_search.evaluation.bootstrap import intervals, resampled_means
from arag_search.questions.files import load_questions
from arag_search.search.index import Index, open_index
from arag_search.system.durable import write_atomically
from arag_search.tokens import count_tokens
from arag_search.tools.base import ReadSet, Tool, ToolResult
from bench import BenchError
from bench.arguments import BenchParser, positive
from bench.data import corpus_file, sets_in
from bench.gold_chain.chain import Chain
from bench.gold_chain.ground import check_chains, open_ground
from bench.gold_chain.queries import wordings
from bench.quality.data_sets import drawn
from bench.quality.packed import PUBLISHED
from bench.report.fingerprints import preset_fingerprints
from bench.report.rows import Figure, Row, circumstances, show
from bench.workbench import kept_index, say
from index_jobs.cutting.sentences import SENTENCE_RULE

SETS = ("2wikimultihopqa", "musique")
SEED = 1
LEAST_TOKENS, MOST_TOKENS = 20_000, 150_000
HOP_BOUND = 60_000
"""The tokens of replies after which a hop is given up; a hop that is not found costs them."""
DOCUMENTS = 3
PASSAGES = 5
WINDOW_LINES = 60
PAPER_LINES = 1_800
_LINES_BEFORE = 10
_NUMBER = re.compile(r"^\d+: ", re.MULTILINE)


@dataclass(slots=True)
class Walk:
    """The cost of a question in one way: tokens of all replies, calls, hops that were found."""

    tokens: int = 0
    calls: int = 0
    hops: int = 0
    hop_tokens: int = 0
    read_set: ReadSet = field(default_factory=ReadSet)

    def call(self, tool: Tool, **arguments: object) -> ToolResult:
        """Call a tool, and add what its reply costs."""
        result = tool.run(arguments, self.read_set)
        self.calls += 1
        self.hop_tokens += result.result_tokens
        return result


Hop = Callable[[Walk, Mapping[str, Tool], Sequence[str], str, Sequence[str]], bool]
"""Looks for the evidence of a hop, given its queries, its name and the texts that show it; returns
whether one of these was shown."""


def by_documents(
    walk: Walk, tools: Mapping[str, Tool], queries: Sequence[str], name: str, texts: Sequence[str]
) -> bool:
    """Search with all queries, then look into the first documents with find and a window."""
    result = walk.call(tools["search"], queries=list(queries))
    if shows(result.text, texts):
        return True
    for shown in result.references[:DOCUMENTS]:
        named = {"reference_id": shown.reference}
        if shows(walk.call(tools["find"], **named, patterns=[name[:200]]).text, texts):
            return True
        spans = [span for span in result.passages if span.reference == shown.reference]
        first = min((span.lines[0] for span in spans if span.lines is not None), default=0)
        line = max(first - _LINES_BEFORE, 0)
        if shows(walk.call(tools["open"], **named, line_number=line).text, texts):
            return True
        if walk.hop_tokens >= HOP_BOUND:
            return False
    return False


def by_passages(
    walk: Walk, tools: Mapping[str, Tool], queries: Sequence[str], name: str, texts: Sequence[str]
) -> bool:
    """Run one query after another, and read the passages that each shows from top to bottom."""
    del name
    read: set[str] = set()
    for query in queries:
        result = walk.call(tools["logical_search"], query=query, top_k=PASSAGES)
        if shows(result.text, texts):
            return True
        for id in result.ids:
            if id in read:
                continue
            read.add(id)
            if shows(walk.call(tools["chunk_read"], chunk_ids=[id]).text, texts):
                return True
            if walk.hop_tokens >= HOP_BOUND:
                return False
    return False


def by_whole_documents(
    walk: Walk, tools: Mapping[str, Tool], queries: Sequence[str], name: str, texts: Sequence[str]
) -> bool:
    """Search with all queries, then read the first documents from their beginning."""
    del name
    result = walk.call(tools["search"], queries=list(queries))
    if shows(result.text, texts):
        return True
    for shown in result.references[:DOCUMENTS]:
        line = 0
        while True:
            window = walk.call(tools["open"], reference_id=shown.reference, line_number=line)
            if shows(window.text, texts):
                return True
            lines = [span.lines for span in window.passages if span.lines is not None]
            if "More: line_number" not in window.text or not lines:
                break
            if walk.hop_tokens >= HOP_BOUND:
                return False
            line = lines[-1][1] + 1
    return False


@dataclass(frozen=True, slots=True)
class Way:
    """A way to look for evidence, and the preset whose tools it uses."""

    name: str
    hop: Hop
    preset: Preset


def ways() -> list[Way]:
    """Return the ways that are compared, ours first."""

    def windowed(lines: int) -> Preset:
        changes: dict[str, object] = {
            "reproduces": "AgenticRAG",
            "loop_guards": False,
            "documents": {"open_lines": lines},
        }
        return changed_preset(load_preset("agentic_logical"), changes, "bench")

    return [
        Way("documents", by_documents, windowed(WINDOW_LINES)),
        Way("documents, paper's window", by_documents, windowed(PAPER_LINES)),
        Way("passages", by_passages, load_preset("logical_read")),
        Way("whole documents", by_whole_documents, windowed(PAPER_LINES)),
    ]


def shows(reply: str, texts: Sequence[str]) -> bool:
    """Return whether a reply shows one of some texts, whatever its line ends."""
    flat = " ".join(_NUMBER.sub("", reply).split())
    return any(" ".join(text.split()) in flat for text in texts)


def walked(chain: Chain, way: Way, tools: Mapping[str, Tool]) -> Walk:
    """Look for the evidence of all hops of a chain in their order."""
    walk = Walk()
    for link in chain.links:
        texts = list(dict.fromkeys(text for held in link.evidence.values() for text in held))
        if not texts:
            continue
        written = wordings("logical", link.name, link.relation, in_title=False)
        queries = [str(query) for query in dict.fromkeys(written)]
        walk.hop_tokens = 0
        is_found = way.hop(walk, tools, queries, link.name, texts)
        walk.hops += is_found
        walk.tokens += walk.hop_tokens if is_found else HOP_BOUND
    return walk


# The documents


def long_documents(passages: Sequence[tuple[str, str]], seed: int) -> Iterator[dict[str, str]]:
    """Yield documents of passages (title, text) in an order that the seed gives. Lengths are drawn
    log-uniformly from LEAST_TOKENS to MOST_TOKENS; the last document has the rest."""
    random = Random(seed)
    order = list(passages)
    random.shuffle(order)
    lines: list[str] = []
    number = tokens = 0
    wanted = _length(random)
    for title, text in order:
        lines += [title, " ".join(text.split()), ""]
        tokens += count_tokens(lines[-3]) + count_tokens(lines[-2]) + 2
        if tokens >= wanted:
            yield _document(number, lines)
            number, tokens, lines, wanted = number + 1, 0, [], _length(random)
    if lines:
        yield _document(number, lines)


def _length(random: Random) -> float:
    return math.exp(random.uniform(math.log(LEAST_TOKENS), math.log(MOST_TOKENS)))


def _document(number: int, lines: Sequence[str]) -> dict[str, str]:
    return {"id": f"volume-{number}", "title": f"Volume {number}", "text": "\n".join(lines)}


def _passages(corpus: Path) -> list[tuple[str, str]]:
    """Return the titles and texts of a corpus of JSON lines."""
    records = [orjson.loads(line) for line in corpus.read_bytes().splitlines() if line.strip()]
    return [(str(record["title"]), str(record["text"])) for record in records]


# Figures


def main(arguments: Sequence[str]) -> int:
    """Measure and return the exit code."""
    parser = BenchParser("long_documents", __doc__)
    parser.add_data()
    parser.add_argument(
        "--limit", type=positive, default=100, help="questions of each data set (default 100)"
    )
    parser.add_kept_work("documents and indexes", "long_documents")
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    folders = sets_in(options.data, SETS)
    chains: list[tuple[str, Chain]] = []
    passages: dict[tuple[str, str], None] = {}
    for name, folder in folders.items():
        corpus = corpus_file(folder)
        questions = load_questions(folder / "questions.jsonl")
        check_chains(questions, name)
        asked = drawn(questions, options.limit, name)
        ground = open_ground(corpus, PUBLISHED, asked, options.work / name, None)
        of_set = [asked_one.chain("canonical", SEED) for asked_one in ground.asked]
        chains += [(name, chain) for chain in of_set if any(link.evidence for link in chain.links)]
        ground.index.close()
        passages.update(dict.fromkeys(_passages(corpus)))
    if not chains:
        raise BenchError("There are no questions.", where=str(options.data))
    source = options.work / "volumes.jsonl"
    documents = list(long_documents(list(passages), SEED))
    write_atomically(source, b"".join(orjson.dumps(document) + b"\n" for document in documents))
    location = kept_index(source, options.work / "volumes", SENTENCE_RULE)
    with open_index(location, search_timeout_s=None) as index:
        figures = measure(index, chains)
        run = circumstances(command, index.manifest)
    for way in ways():
        run |= preset_fingerprints(way.preset)
    show(options.json, figures, run)
    return 0


def measure(index: Index, chains: Sequence[tuple[str, Chain]]) -> list[Figure]:
    """Walk all chains in all ways, and return the figures of each way and of their comparison."""
    walks: dict[str, list[Walk]] = {}
    for way in ways():
        tools = tools_of(way.preset, index)
        say(f"{way.name}: {len(chains)} questions")
        walks[way.name] = [walked(chain, way, tools) for _, chain in chains]
    hops = sum(bool(link.evidence) for _, chain in chains for link in chain.links)
    figures = [
        Figure(
            name,
            (
                Row("hops found", sum(walk.hops for walk in of_way) / hops, ""),
                _geometric(
                    "tokens to evidence", "", chains, [math.log(walk.tokens) for walk in of_way]
                ),
                Row("calls a question", sum(walk.calls for walk in of_way) / len(chains), ""),
            ),
            {"tokens": [walk.tokens for walk in of_way], "found": [walk.hops for walk in of_way]},
        )
        for name, of_way in walks.items()
    ]
    return [*figures, Figure("against documents", tuple(_ratios(chains, walks)))]


def _ratios(
    chains: Sequence[tuple[str, Chain]], walks: Mapping[str, Sequence[Walk]]
) -> Iterator[Row]:
    """Yield the tokens of each other way as multiples of those of our way, question by question."""
    ours, *others = walks
    for other in others:
        logs = [
            math.log(theirs.tokens / mine.tokens)
            for theirs, mine in zip(walks[other], walks[ours], strict=True)
        ]
        yield _geometric(f"tokens of {other} / {ours}", "x", chains, logs)


def _geometric(
    what: str,
    unit: str,
    chains: Sequence[tuple[str, Chain]],
    logs: Sequence[float],
) -> Row:
    """Return the geometric mean over questions with its interval: the mean of ``logs``."""
    import numpy as np

    table = np.array(logs).reshape(-1, 1)
    means = resampled_means(table, [name for name, _ in chains], "long_documents")
    (interval,) = intervals([float(np.mean(logs))], means, [0.95])
    return Row(
        what, math.exp(interval.value), unit, math.exp(interval.low), math.exp(interval.high)
    )

"""Differences between the answers of engines that hold the same corpus.

    python -m bench parity --nodes 3
    python -m bench parity my-index http://127.0.0.1:9200/arag-wiki

Compares the indexes at the locations, or builds indexes of a corpus on the chosen engines. All run
the same queries, and every answer is compared with that of the first index. The exit code is 1
if any differs.
"""

from __future__ import annotations

import argparse
import itertools
import math
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from arag_search.agent.presets import load_preset
from arag_search.agent.toolbox import tools_of
from arag_search.corpus import Chunk
from arag_search.engines.base import Granularity
from arag_search.plan.clauses import ResolvedPlan
from arag_search.plan.lower import lower
from arag_search.query import analysis
from arag_search.query.printing import quoted
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.search.results import SearchResult
from arag_search.tools.base import ReadSet
from bench import BenchError
from bench.arguments import BenchParser, names_from, positive
from bench.cluster.cluster import local_cluster
from bench.data import default_corpus
from bench.report.rows import Figure, Row, Target, circumstances, show
from bench.speed.queries import SEED, keyword_sets, logical_queries
from bench.workbench import say
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

ENGINES = ("lucene", "opensearch")
QUERIES = 1000
PHRASES = 500
TOP_K = 10
TOLERANCE = 1e-4
"""The relative tolerance of scores."""
KINDS = ("ids", "order", "scores", "snippets", "totals", "counts", "notes", "feedback", "replies")
"""The kinds of differences between two answers; ``replies`` are those of the tools of documents."""

_DOCUMENTS_PRESET = "agentic_logical"
_OPENED = 3

_GRANULARITIES: tuple[Granularity, ...] = ("chunk", "sentence")
_EXAMPLES = 20
_BATCH = 25
_REPORT_EVERY = 500


@dataclass(frozen=True, slots=True)
class Question:
    """A query, or keywords, to be asked of each index. With ``patterns``, the query is one for the
    tools of documents, and the patterns are looked for in the first documents."""

    kind: str
    query: str
    granularity: Granularity = "chunk"
    keywords: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()

    def ask(self, index: Index) -> SearchResult:
        """Search an index and return its answer."""
        if self.keywords:
            return index.keyword_search(self.keywords, top_k=TOP_K)
        return index.logical_search(self.query, top_k=TOP_K, granularity=self.granularity)

    def replies(self, index: Index) -> list[str]:
        """Return what ``search`` replies, and ``find`` and ``open`` in the first documents."""
        tools, seen = tools_of(load_preset(_DOCUMENTS_PRESET), index), ReadSet()
        reply = tools["search"].run({"queries": [self.query]}, seen)
        texts = [reply.text]
        for shown in reply.references[:_OPENED]:
            document = {"reference_id": shown.reference}
            finding = tools["find"].run({**document, "patterns": list(self.patterns)}, seen)
            texts += [finding.text, tools["open"].run({**document, "line_number": 1}, seen).text]
        return texts


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between the answer of an index and that of the first."""

    location: str
    kind: str
    question: Question
    expected: object
    actual: object


# Questions


def questions(
    chunks: Sequence[Chunk], count: int, seed: int, *, phrases: int = PHRASES
) -> list[Question]:
    """Draw ``count`` logical queries, up to ``phrases`` titles as phrases, and conjunctions of a
    tenth of the queries, which match little, all at both granularities; ``count`` / 5 sets of
    keywords; and ``count`` / 10 queries for the tools of documents."""
    random = Random(seed)
    logical = [query.text for query in logical_queries(chunks, count, seed)]
    titles = sorted({chunk.title for chunk in chunks if analysis.terms(chunk.title)})
    title_phrases = [quoted(title) for title in random.sample(titles, min(phrases, len(titles)))]
    texts = [("logical", text) for text in logical] + [
        ("title phrase", text) for text in title_phrases
    ]
    firsts, seconds = (random.sample(logical, count // 10) for _ in range(2))
    pairs = zip(firsts, seconds, strict=True)
    texts += [("both", f"({first}) AND ({other})") for first, other in pairs]
    drawn = [
        Question(kind, text, granularity) for kind, text in texts for granularity in _GRANULARITIES
    ]
    sets = keyword_sets(chunks, max(1, count // 5), seed)
    drawn += [Question("keywords", ", ".join(words), keywords=words) for words in sets]
    drawn += [
        Question("documents", text, patterns=words)
        for text, words in zip(firsts, itertools.cycle(sets), strict=False)
    ]
    return drawn


# Comparison


def compare(indexes: Sequence[Index], asked: Sequence[Question]) -> list[Difference]:
    """Return all differences of the other indexes from the first."""
    first, *others = indexes
    differing = _document_differences(
        indexes, [question for question in asked if question.patterns]
    )
    asked = [question for question in asked if not question.patterns]
    for start in range(0, len(asked), _BATCH):
        batch = asked[start : start + _BATCH]
        expected, counts = [question.ask(first) for question in batch], _counts(first, batch)
        for other in others:
            for question, right, count, counted in zip(
                batch, expected, counts, _counts(other, batch), strict=True
            ):
                pairs = [*differences(right, question.ask(other))]
                if counted != count:
                    pairs.append(("counts", count, counted))
                differing += [
                    Difference(other.location, kind, question, *pair) for kind, *pair in pairs
                ]
        if start % _REPORT_EVERY == 0 and start:
            say(f"{start:,} of {len(asked):,} queries, {len(differing):,} differences")
    return differing


def _document_differences(indexes: Sequence[Index], asked: Sequence[Question]) -> list[Difference]:
    """Return the first reply of each question that differs, for each of the other indexes."""
    first, *others = indexes
    differing: list[Difference] = []
    for question in asked:
        expected = question.replies(first)
        for other in others:
            pairs = itertools.zip_longest(expected, question.replies(other), fillvalue="")
            if pair := next((pair for pair in pairs if pair[0] != pair[1]), None):
                differing.append(Difference(other.location, "replies", question, *pair))
    return differing


def _counts(index: Index, asked: Sequence[Question]) -> list[int | None]:
    """Count how often each whole query matches, all in one call; None for keywords."""
    trees: list[tuple[ResolvedPlan, Granularity]] = [
        (ResolvedPlan(lower(query.tree, query.language)), question.granularity)
        for question in asked
        if not question.keywords
        for query in (index.parse(question.query),)
    ]
    counted = iter(index.engine.counts(trees, index.scope))
    return [None if question.keywords else next(counted) for question in asked]


def differences(first: SearchResult, other: SearchResult) -> Iterator[tuple[str, object, object]]:
    """Kind and both sides of everything in which the answers of two indexes differ."""
    ids, others = [hit.id for hit in first.hits], [hit.id for hit in other.hits]
    if sorted(ids) != sorted(others):
        yield "ids", ids, others
    elif ids != others:
        yield "order", ids, others
    scores = {hit.id: hit.score for hit in other.hits}
    for hit in first.hits:
        score = scores.get(hit.id, hit.score)
        if not math.isclose(hit.score, score, rel_tol=TOLERANCE):
            yield "scores", hit.score, score
            break
    texts = {hit.id: (hit.title, hit.part, hit.parts, hit.snippet) for hit in other.hits}
    for hit in first.hits:
        text = (hit.title, hit.part, hit.parts, hit.snippet)
        if texts.get(hit.id, text) != text:
            yield "snippets", text, texts[hit.id]
            break
    pairs = {
        "totals": [
            (result.total, result.total_is_exact, result.passages) for result in (first, other)
        ],
        "notes": [result.notes for result in (first, other)],
        "feedback": [
            None if result.feedback is None else str(result.feedback) for result in (first, other)
        ],
    }
    for kind, (right, wrong) in pairs.items():
        if right != wrong:
            yield kind, right, wrong


# Indexes


def check_comparable(index: Index) -> None:
    """Raise BenchError for an index with deleted documents: they count in the scores until they
    are merged away."""
    from arag_search.engines.lucene.reader import LuceneEngine
    from arag_search.engines.opensearch.reader import OpenSearchEngine

    engine = index.engine
    if not isinstance(engine, LuceneEngine | OpenSearchEngine):
        return
    statistics = engine.statistics()
    deleted = {"chunks": statistics.chunks.deleted}
    if statistics.sentences is not None:
        deleted["sentences"] = statistics.sentences.deleted
    for name, number in deleted.items():
        if number:
            raise BenchError(
                f"The index holds deleted {name}, which change its scores.",
                where=index.location,
                do="Build it again, or compact it.",
            )


def check_same_corpus(indexes: Sequence[Index]) -> None:
    """Raise BenchError if two indexes are not of the same corpus, or do not serve the same."""
    first, *others = (index.manifest for index in indexes)
    for index, other in zip(indexes[1:], others, strict=True):
        for what in ("fingerprint", "k1", "b", "metadata", "has_sentences"):
            here, there = getattr(first, what), getattr(other, what)
            if here != there:
                raise BenchError(
                    f"The indexes differ in {what}: {here}, {there}.",
                    where=f"{indexes[0].location} and {index.location}",
                    do="Name indexes that were built alike from one corpus.",
                )


@contextmanager
def built(corpus: Path, engines: Sequence[str], nodes: int) -> Generator[list[Index]]:
    """Build indexes of a corpus on these engines, OpenSearch with a shard on each of its nodes, and
    delete them afterwards."""
    if not corpus.is_file():
        raise BenchError(
            "The corpus is missing.", where=str(corpus), do="Name a file with --corpus."
        )
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="arag-parity-")))
        indexes: list[Index] = []
        for engine in engines:
            say(f"Building {corpus.name} on {engine}.")
            location, shards = str(folder / "index"), None
            if engine == "opensearch":
                cluster = stack.enter_context(local_cluster(folder / "cluster", nodes))
                location, shards = f"{cluster.url}/arag-parity", nodes
            build_index([str(corpus)], location, BuildOptions(shards=shards))
            indexes.append(stack.enter_context(open_index(location, search_timeout_s=None)))
        yield indexes


# Command line


def main(arguments: Sequence[str]) -> int:
    """Compare the indexes and return the exit code: 1 for a difference or a failure."""
    parser = BenchParser("parity", __doc__)
    add = parser.add_argument
    add("locations", nargs="*", help="indexes to compare, instead of building new ones")
    add(
        "--engines",
        type=names_from(ENGINES, least=2),
        default=ENGINES,
        help="engines to build on (default lucene,opensearch)",
    )
    add(
        "--nodes",
        type=int,
        choices=(1, 3),
        default=1,
        help="nodes of OpenSearch, and shards of its index (default 1)",
    )
    parser.add_default("--corpus", Path, default_corpus(), "corpus to index")
    parser.add_default("--queries", positive, QUERIES, "logical queries")
    parser.add_default("--phrases", positive, PHRASES, "phrases from titles")
    parser.add_default("--seed", int, SEED, "seed of the random queries")
    parser.add_printed_json()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    with _indexes(options) as indexes:
        check_same_corpus(indexes)
        for index in indexes:
            check_comparable(index)
        chunks = list(indexes[0].scan())
        asked = questions(chunks, options.queries, options.seed, phrases=options.phrases)
        if not indexes[0].manifest.has_sentences:
            asked = [question for question in asked if question.granularity == "chunk"]
        run = circumstances(command, indexes[0].manifest, seed=options.seed)
        differing = compare(indexes, asked)
        figure = _figure(_name(options, indexes), asked, differing)
    show(options.results, [figure], run, as_json=options.json)
    if not options.json:
        for difference in differing[:_EXAMPLES]:
            print(
                f"{difference.kind}: {difference.question.query}\n"
                f"  {difference.expected}\n  {difference.actual}"
            )
    return 1 if differing else 0


@contextmanager
def _indexes(options: argparse.Namespace) -> Generator[list[Index]]:
    if not options.locations:
        with built(options.corpus, options.engines, options.nodes) as indexes:
            yield indexes
        return
    if len(options.locations) < 2:
        raise BenchError(
            "One index alone has nothing to be compared with.",
            where=options.locations[0],
            do="Name two locations or more, or none to build indexes.",
        )
    with ExitStack() as stack:
        yield [
            stack.enter_context(open_index(location, search_timeout_s=None))
            for location in options.locations
        ]


def _name(options: argparse.Namespace, indexes: Sequence[Index]) -> str:
    """Return the name of the figure: the engines, and the number of OpenSearch nodes."""
    engines = ", ".join(index.manifest.engine for index in indexes)
    if options.locations:
        return f"{engines}, as named"
    return f"{engines}, {options.nodes} node{'s' if options.nodes > 1 else ''}"


def _figure(name: str, asked: Sequence[Question], differing: Sequence[Difference]) -> Figure:
    counts = Counter(difference.kind for difference in differing)
    rows = [Row("queries run", len(asked), "queries")]
    none = Target("at most", 0)
    rows += [Row(f"differ in {kind}", counts[kind], "", target=none) for kind in KINDS]
    details = {
        "questions": dict(
            Counter(f"{question.kind}, {question.granularity}" for question in asked)
        ),
        "tolerance": TOLERANCE,
        "examples": [
            {
                "kind": difference.kind,
                "query": difference.question.query,
                "expected": str(difference.expected),
                "found": str(difference.actual),
            }
            for difference in differing[:_EXAMPLES]
        ],
    }
    return Figure(name, tuple(rows), details)

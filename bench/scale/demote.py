"""Cost of DEMOTE and PREFER, by shape of the query that they are added to.

    python -m bench demote
    python -m bench demote --engine opensearch
    python -m bench demote --passages 20000 --rounds 5 --json demote.json

Over generated passages, queries of each shape are run alone, with a DEMOTE of a frequent word, with
a DEMOTE of a phrase, and with a PREFER of a frequent word. Searches are timed from the text of the
query to hits with snippets, and in the engine alone, with parsed queries and without texts. All
sides run in every round, in alternating order. See bench/studies/speed.md.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import geometric_mean

from arag_search.engines.base import MAX_TOTAL, SearchRequest
from arag_search.query.parser import parse
from arag_search.search.index import Index, open_index
from bench import BenchError
from bench.arguments import BenchParser, positive, whole_from
from bench.report.rounds import Side, Timings, interleaved, timed
from bench.report.rows import Figure, Row, Target, circumstances, show
from bench.scale import synthetic
from bench.scale.scale import BYTES_NEEDED, SAMPLE
from bench.scale.sides import ENGINES, open_side
from bench.speed.queries import Query, class_queries
from bench.workbench import check_room, say
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

PASSAGES = 100_000
QUERIES = 20
ROUNDS = 9
WARM_UP = 5
TOP_K = 5
TARGET = Target("at most", 1.15)
"""The bound of a DEMOTE in Lucene alone; the other ratios have none."""
WHOLE, ENGINE_ALONE = PARTS = ("whole search", "engine alone")

RANKS = {"frequent": (20, 200), "medium": (300, 3_000), "rare": (10_000, 30_000)}
"""Ranks of the generated words by frequency. At 100,000 passages, a frequent word is in thousands
of them and a rare one in tens."""
SHAPES = {
    "a rare word": "{rare}",
    "a frequent word": "{frequent}",
    "OR of three words": "{frequent} OR {medium} OR {rare}",
    "AND of two words": "{frequent} AND {medium}",
    "a phrase": "{phrase}",
}
PLAIN = "plain"
MEAN = "geometric mean"
BESIDE = {
    "DEMOTE of a word": "({query}) DEMOTE {frequent}",
    "DEMOTE of a phrase": "({query}) DEMOTE {phrase}",
    "PREFER of a word": "({query}) PREFER {frequent}",
}
"""The clauses that are added to a query, by name."""


def main(arguments: Sequence[str]) -> int:
    """Measure an engine and return the exit code; a missed target is not a failure."""
    parser = BenchParser("demote", __doc__)
    add = parser.add_argument
    add("--engine", choices=ENGINES, default="lucene", help="default %(default)s")
    add("--passages", type=whole_from(1_000), default=PASSAGES, help="default %(default)s")
    parser.add_default("--queries", positive, QUERIES, "of each shape")
    parser.add_rounds(ROUNDS)
    parser.add_work()
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    with tempfile.TemporaryDirectory(prefix="arag-bench-", dir=options.work) as name:
        folder = Path(name)
        check_room(folder, options.passages * BYTES_NEEDED)
        corpus = folder / "corpus.jsonl"
        synthetic.write(options.passages, corpus)
        with open_side(options.engine, folder, None, "1g") as side:
            location = side.location()
            say(f"{options.engine}: indexing {options.passages:,} passages")
            build_index([str(corpus)], location, BuildOptions(without=("sentences",)))
            try:
                with open_index(location, search_timeout_s=None) as index:
                    run = circumstances(command, index.manifest, seed=synthetic.SEED)
                    queries = drawn_queries(options.passages, options.queries)
                    say(f"{options.queries} queries a side, {WARM_UP} + {options.rounds} rounds")
                    for part, asker in askers(index).items():
                        name = f"{options.engine}, {part}"
                        target = TARGET if name == f"lucene, {ENGINE_ALONE}" else None
                        figure = measure(name, asker, queries, options.rounds, target)
                        show(options.json, [figure], run)
            finally:
                side.remove(location)
    return 0


Queries = Mapping[str, Mapping[str, Sequence[Query]]]
"""Queries by shape, and by the added clause; those of a shape are in the same order."""


@dataclass(frozen=True, slots=True)
class Asker:
    """A part of a search that is timed. ``run`` returns the number of matches, at most MAX_TOTAL;
    in a round, the queries of a side run ``repeats`` times."""

    run: Callable[[Query], int]
    repeats: int


def drawn_queries(passages: int, count: int) -> Queries:
    """Draw ``count`` queries of each shape for the corpus of so many passages.

    Raises BenchError if its sample has too few phrases.
    """
    random = Random(synthetic.SEED)
    sample = [passage.chunk() for passage in synthetic.sample(passages, SAMPLE)]
    phrases = class_queries(sample, 2 * count, {"phrase": ("{a}", "phrase")})["phrase"]
    if len(phrases) < 2 * count:
        raise BenchError("The passages have too few phrases.", do="Ask for fewer with --queries.")

    def filled(pattern: str, phrase: str, query: str = "") -> Query:
        words = {kind: synthetic.word_of(random.randrange(*span)) for kind, span in RANKS.items()}
        text = pattern.format(**words, phrase=phrase, query=query)
        return Query(text, parse(text).tree)

    queries: dict[str, dict[str, list[Query]]] = {}
    for shape, pattern in SHAPES.items():
        plain = [filled(pattern, phrase) for phrase in phrases[:count]]
        queries[shape] = {PLAIN: plain}
        for name, beside in BESIDE.items():
            queries[shape][name] = [
                filled(beside, phrase, query.text)
                for query, phrase in zip(plain, phrases[count:], strict=True)
            ]
    return queries


def askers(index: Index) -> dict[str, Asker]:
    """Return how queries are run, by the part of a search that is timed."""

    def whole(query: Query) -> int:
        return min(index.logical_search(query.text, top_k=TOP_K).total or 0, MAX_TOTAL)

    def in_engine(query: Query) -> int:
        request = SearchRequest(query.tree, TOP_K, with_text=False)
        return min(index.engine.search(request).count, MAX_TOTAL)

    return {WHOLE: Asker(whole, 1), ENGINE_ALONE: Asker(in_engine, 10)}


def measure(
    figure: str, asker: Asker, queries: Queries, rounds: int, target: Target | None
) -> Figure:
    """Time the queries of each shape with each added clause, over the same queries without.
    ``target`` is that of the ratios of DEMOTE. Raises BenchError if the added clause changes how
    many passages a query finds.
    """
    sides: dict[str, Side] = {}
    matches: dict[str, list[int]] = {}
    for shape, variants in queries.items():
        matches[shape] = [asker.run(query) for query in variants[PLAIN]]
        for name, asked in variants.items():
            if [asker.run(query) for query in asked] != matches[shape]:
                raise BenchError("Other passages match.", where=f"{shape}, {name}")
            runs = [*asked] * asker.repeats
            sides[f"{shape}, {name}"] = lambda r=runs: timed(lambda: [asker.run(q) for q in r])
    timings = interleaved(sides, rounds, warm_up=WARM_UP)
    details = {
        "generator": synthetic.GENERATOR,
        "seconds": timings.seconds,
        "matches": matches,
        "examples": {
            shape: [asked[0].text for asked in variants.values()]
            for shape, variants in queries.items()
        },
    }
    return Figure(figure, tuple(_rows(timings, queries, asker.repeats, target)), details)


def _rows(timings: Timings, queries: Queries, repeats: int, target: Target | None) -> list[Row]:
    rows: list[Row] = []
    for name in BESIDE:
        bound = target if name.startswith("DEMOTE") else None
        ratios = {
            shape: timings.ratio(f"{shape}, {name}", f"{shape}, {PLAIN}") for shape in queries
        }
        rows += [Row.of_ratio(f"{shape}: {name}", ratio, bound) for shape, ratio in ratios.items()]
        mean = geometric_mean([ratio.value for ratio in ratios.values()])
        rows.append(Row(f"{MEAN}: {name}", mean, "x", target=bound))
    for shape, variants in queries.items():
        seconds = timings.median_s(f"{shape}, {PLAIN}") / len(variants[PLAIN]) / repeats
        rows.append(Row(f"{shape}: {PLAIN}", seconds * 1_000, "ms/query"))
    return rows

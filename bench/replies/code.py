"""How well rules order passages of code: none, each alone, all, and all but each.

    python -m bench code .venv/lib/python3.11/site-packages/pydantic
    python -m bench code aiohttp --judged aiohttp.json --json bench/results/code.json
    python -m bench code pydantic --peers bm25s,tantivy,fts5,ripgrep,ripgrep-3

The queries are made from the code: names, their words, and what docstrings say. Relevant are the
files that define a name and, less, the files that use it. A file of judged queries, JSON that maps
each query to the grades of its files, is asked instead. The command prints nDCG@10 of files as the
first ten hits show them and with one hit a file. It also prints how often a file that defines the
name comes first. With peers, it prints how often a reply shows the line that defines the name of a
query. It prints what that costs, too, as in the bench of lookups.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import orjson

from arag_search.engines.base import SearchRequest
from arag_search.engines.hits import Hit
from arag_search.evaluation.measurement import ranking_values
from arag_search.evaluation.measures import parse_measures
from arag_search.plan.clauses import Clause, ResolvedPlan
from arag_search.plan.lower import lower
from arag_search.query.reading import Options, parse_checked
from arag_search.search.finding.code_order import FIRST, RULES, ordered
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from bench.arguments import BenchParser
from bench.replies.board import add_peers, check_peers, figure_of, own_costs, own_replies
from bench.replies.code_queries import DEFINES, Judged, judged_queries
from bench.report.rows import Figure, Row, circumstances, show
from bench.workbench import kept_index, say

NAME = "code"
DEPTH = 10
_NDCG = parse_measures([f"nDCG@{DEPTH}"])
_DEEP = 2 * FIRST
ORDERS: Mapping[str, Sequence[str]] = {
    "no rules": (),
    **{f"only {rule}": (rule,) for rule in RULES},
    "all": RULES,
    **{f"without {rule}": [other for other in RULES if other != rule] for rule in RULES},
}


def main(arguments: Sequence[str]) -> int:
    """Measure and return the exit code."""
    parser = BenchParser(NAME, __doc__)
    parser.add_argument("folder", type=Path, help="folder of the code")
    parser.add_argument(
        "--judged", type=Path, help="file of judged queries (default: from the code)"
    )
    add_peers(parser)
    parser.add_kept_work("indexes", NAME)
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    check_peers(options.peers)
    folder = options.folder.resolve()
    kinds = judged_queries(folder) if options.judged is None else _read(options.judged)
    figures: list[Figure] = []
    with open_index(kept_index(folder, options.work / folder.name), search_timeout_s=None) as index:
        for kind, queries in kinds.items():
            say(f"{len(queries)} queries of {kind}")
            asked = [(judged, *_asked(index, judged.query)) for judged in queries]
            rows = [row for name in ORDERS for row in _rows(name, asked)]
            figures.append(Figure(f"{folder.name}: {kind}", tuple(rows), {"queries": len(queries)}))
        run = circumstances(command, index.manifest)
        if options.peers:
            figures += _board(index, folder, kinds, options)
    show(options.json, figures, run)
    return 0


def _board(
    index: Index, folder: Path, kinds: Mapping[str, Sequence[Judged]], options: argparse.Namespace
) -> Iterator[Figure]:
    """Yield which definitions our replies and the replies of peers show."""
    lookups = {
        f"{kind}: {judged.query}": {"keywords": judged.query, "name": judged.name, "asked_by": kind}
        for kind, queries in kinds.items()
        for judged in queries
        if judged.name
    }
    query = next(iter(lookups.values()))["keywords"]
    own = (*own_replies(index, lookups), *own_costs(folder, options.work, query))
    yield Figure("ours", own, {})
    for name in options.peers:
        yield figure_of(name, folder, options.work, lookups)


def _read(file: Path) -> dict[str, list[Judged]]:
    judged: dict[str, dict[str, int]] = orjson.loads(file.read_bytes())
    return {"judged": [Judged(query, grades) for query, grades in judged.items()]}


def _asked(index: Index, query: str) -> tuple[Clause, tuple[Hit, ...]]:
    """Return what a query means, and its first hits in the order of the engine."""
    parsed = parse_checked(query, Options(index.state.schema))
    plan = ResolvedPlan(lower(parsed.tree, parsed.language))
    return plan.root, index.engine.search(SearchRequest(plan, _DEEP)).hits


def _rows(name: str, asked: Iterable[tuple[Judged, Clause, Sequence[Hit]]]) -> list[Row]:
    """Return the means of an order."""
    rules = ORDERS[name]
    grades: dict[str, Mapping[str, int]] = {}
    typed: dict[str, list[str]] = {}
    single: dict[str, list[str]] = {}
    first = 0
    for number, (judged, query, hits) in enumerate(asked):
        best = ordered(hits[:FIRST], query, rules) if rules else hits[:FIRST]
        files = [hit.doc_id for hit in (*best, *hits[FIRST:])]
        first += bool(files) and judged.grades.get(files[0]) == DEFINES
        grades[id := str(number)] = judged.grades
        typed[id], single[id] = (list(dict.fromkeys(of)) for of in (files[:DEPTH], files))
    return [
        Row(f"{name}: nDCG@10", _ndcg(grades, typed), ""),
        Row(f"{name}: nDCG@10, one hit a file", _ndcg(grades, single), ""),
        Row(f"{name}: definition first", first, f"of {len(grades)}"),
    ]


def _ndcg(grades: Mapping[str, Mapping[str, int]], ranked: Mapping[str, Sequence[str]]) -> float:
    """Return the mean nDCG@10 of files, best first."""
    values = ranking_values(_NDCG, grades, ranked).values()
    return fmean(value for of_query in values for value in of_query.values())

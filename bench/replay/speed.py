"""Speed of a search, beside rivals and beside an earlier commit.

    python -m bench speed
    python -m bench speed --passages 100000 --only rates --without pyserini
    python -m bench speed --against 12c23bb7

Rates are those of warm loops over the queries of recorded runs (--records, or the offline model on
the questions of the data), on bare Lucene, Pyserini, bm25s, A-RAG's scan and OpenSearch's client
too. Sessions are fresh processes that make forty calls of a model, by MCP, in Python and by
command, beside a bare Lucene session and rg. With --against, the rival is a commit of this
repository. Generated passages (--passages) are asked generated queries. A range is an interval of
the median of the rounds at 95 %.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from arag_search import Index, open_index
from arag_search.agent.models.offline import OfflineModel
from arag_search.agent.presets import DEFAULT_PRESET, load_preset
from arag_search.evaluation.interfaces import words_query
from arag_search.questions.files import load_questions
from bench.arguments import BenchParser, names_from, positive
from bench.data import corpus_in, questions_in
from bench.replay import against, rates, session
from bench.replay.rates import LARGE, RIVALS, SMALL_ONES, Passages, Rivals, bare_lucene
from bench.replay.recorded import (
    RecordedQueries,
    drawn_queries,
    offline_run,
    read_queries,
    with_replies_of_papers,
)
from bench.report.fingerprints import ROOT, agent_fingerprints
from bench.report.rows import Figure, circumstances, show
from bench.scale import synthetic
from bench.speed.queries import SEED
from bench.workbench import check_room, say
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

PARTS = ("rates", "session")
CLIENTS = (1, 16)
QUERIES = 500
ROUNDS = 20
WARM_UP = 5
TEXTS = 200
"""The queries of a round beside a commit."""

_SAMPLE = 2_000
_BYTES_A_PASSAGE = 6_000
_QUIET_LOAD = 0.5


def main(arguments: Sequence[str]) -> int:
    """Measure and return the exit code; a missed aim is not a failure."""
    parser = BenchParser("speed", __doc__)
    add = parser.add_argument
    choices = ",".join(PARTS)
    add("--only", type=names_from(PARTS), default=PARTS, help=f"some of {choices} (default all)")
    add("--against", metavar="COMMIT", help="compare with a commit instead of with rivals")
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument(
        "--passages", type=positive, metavar="N", help="generate so many (default: the data's)"
    )
    asked.add_argument(
        "--records", type=Path, nargs="+", metavar="RUN", help="folders that arag-search run wrote"
    )
    add("--clients", type=_numbers, default=CLIENTS, help="clients at once (default 1,16)")
    add("--limit", type=positive, help="without --records: answer only the first questions")
    parser.add_default("--queries", positive, QUERIES, "queries of a round")
    parser.add_rounds(ROUNDS)
    parser.add_default("--warm-up", int, WARM_UP, "rounds of rates that do not count")
    rivals = ",".join(RIVALS)
    add("--without", type=names_from(RIVALS), default=(), help=f"leave out some of {rivals}")
    add("--encoder", metavar="NAME", help="measure hybrid search with its vectors, packed (IVF-PQ)")
    add(
        "--pyserini-python",
        default=sys.executable,
        metavar="PYTHON",
        help="an interpreter that has pyserini (default: this one)",
    )
    parser.add_data()
    parser.add_work()
    parser.add_results()
    return parser.run(arguments, _measured)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(positive(piece) for piece in text.split(","))


def _measured(options: argparse.Namespace, command: str) -> int:
    with ExitStack() as stack:
        name = tempfile.TemporaryDirectory(prefix="arag-speed-", dir=options.work)
        folder = Path(stack.enter_context(name)).resolve()
        tree = against.exported(options.against, folder / "then") if options.against else None
        left_out = {*options.without, *(SMALL_ONES if (options.passages or 0) > LARGE else ())}
        is_rival = "rates" in options.only and tree is None
        names = [name for name in RIVALS if name not in left_out] if is_rival else []
        services = stack.enter_context(ExitStack())
        rivals = Rivals(services, folder, names, options.pyserini_python)
        passages, run = stack.enter_context(_passages(options, folder))
        run = {**circumstances(command, passages.index.manifest, seed=SEED), **run}
        if run["load"] > _QUIET_LOAD:
            say(f"The machine is not quiet (load {run['load']}): times will be off.")
        measured = (
            _beside_rivals(options, passages, rivals, services)
            if tree is None
            else _beside_commit(options, passages, tree)
        )
        beside = f" beside {options.against}" if options.against else ""
        for figure in measured:
            named = replace(figure, name=f"{figure.name}{beside}, {passages.count:,} passages")
            show(options.json, [named], {**run, "versions": rivals.versions})
    return 0


def _beside_rivals(
    options: argparse.Namespace, passages: Passages, rivals: Rivals, services: ExitStack
) -> Iterator[Figure]:
    if "rates" in options.only:
        asked = (options.clients, options.rounds, options.warm_up, options.encoder)
        yield rates.measure(passages, rivals, *asked)
    services.close()  # servers that do nothing take time of sessions
    if "session" in options.only:
        bare = bare_lucene(passages.index, passages.folder / "bare")
        calls = _calls(options, passages)
        yield session.beside_rivals(passages.index, bare, passages.source, calls, options.rounds)


def _beside_commit(options: argparse.Namespace, passages: Passages, tree: Path) -> Iterator[Figure]:
    trees = {"now": ROOT, "then": tree}
    folder = passages.folder / "sides"
    folder.mkdir()
    if "rates" in options.only:
        queries = passages.asked.queries[:TEXTS]
        texts = [query.text for query in queries]
        words = [words_query(" ".join(query.words)) for query in queries]
        asked = {"recorded": texts, "words": words, "reply": texts}
        yield against.measure(trees, folder, passages.source, asked, options.rounds)
    if "session" in options.only:
        places: dict[str, tuple[Path, Mapping[str, str]]] = {}
        for name, at in trees.items():
            with against.Side.started(at, folder / name, passages.source) as side:
                places[name] = (side.index, against.environment(at))
        yield session.beside_commit(places, _calls(options, passages), options.rounds)


def _calls(options: argparse.Namespace, passages: Passages) -> Sequence[session.Call]:
    texts = [query.text for query in passages.asked.queries]
    data = options.data if options.passages is None else passages.folder
    return session.recorded_calls(data, passages.source, texts)


@contextmanager
def _passages(
    options: argparse.Namespace, folder: Path
) -> Generator[tuple[Passages, dict[str, Any]]]:
    """Build the index, and yield it with its queries and the fingerprints of their origin."""
    source, build = corpus_in(options.data).resolve(), BuildOptions()
    if options.passages is not None:
        check_room(folder, options.passages * _BYTES_A_PASSAGE)
        source = folder / "corpus.jsonl"
        say(f"writing {options.passages:,} passages")
        synthetic.write(options.passages, source)
        # No search here asks for sentences, whose index takes half of the time of a large build.
        without = ("sentences",) if options.passages > LARGE else ()
        build = BuildOptions(format="documents", without=without)
    say("building the index")
    build_index([str(source)], folder / "index", build)
    with open_index(folder / "index", search_timeout_s=None) as index:
        asked, run = _queries(options, index, source, folder)
        yield Passages(index, source, build, asked.some(options.queries), folder), run


def _queries(
    options: argparse.Namespace, index: Index, source: Path, folder: Path
) -> tuple[RecordedQueries, dict[str, Any]]:
    """Return the queries of runs, of the offline model, or, for generated passages and data without
    questions, drawn ones."""
    if options.passages is not None:
        sample = synthetic.sample(options.passages, _SAMPLE)
        return drawn_queries(index, [passage.chunk() for passage in sample], options.queries), {}
    if options.records:
        asked = read_queries(options.records, index)
        names = ("questions", "preset", "model", "index")
        return asked, {name: [of.fingerprints.get(name) for of in asked.runs] for name in names}
    file = questions_in(source.parent)
    if not file.exists():
        return drawn_queries(index, list(index.scan()), options.queries), {}
    questions = load_questions(file)[: options.limit]
    preset = with_replies_of_papers(load_preset(DEFAULT_PRESET))
    say(f"{len(questions)} questions are answered by the offline model")
    run = offline_run(index, questions, preset, folder / "run")
    return read_queries([run], index), agent_fingerprints(questions, preset, OfflineModel())

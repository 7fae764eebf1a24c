"""Speed of building and searching, beside rivals.

    python -m bench speed
    python -m bench speed --only building --anserini anserini-fatjar.jar
    python -m bench speed --passages 100000 --only rates --without pyserini
    python -m bench speed --passages 100000 --only loading --rounds 3

Building is compared with a bare loop over Lucene and, if its jar is named, with Anserini. Rates are
measured in warm loops of 1 and 16 clients over the queries of recorded runs. The runs are
--records, or the offline model's on the questions of the data. Beside them are bare Lucene,
Pyserini, bm25s, A-RAG's scan, OpenSearch's bare client and, with an encoder, our hybrid search.
Loading an OpenSearch node is compared with parallel_bulk of opensearch-py, and only on request.
Generated passages (--passages) are asked generated queries. A range is an interval of the median of
the rounds at 95 %.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

from arag_search import Index, open_index
from arag_search.agent.models.offline import OfflineModel
from arag_search.questions.files import load_questions
from arag_search.runs.run import run as answer
from arag_search.tools.preset_files import DEFAULT_PRESET, load_preset
from bench.arguments import BenchParser, names_from, positive
from bench.data import corpus_in, questions_in
from bench.report.rows import Figure, circumstances, show
from bench.scale import synthetic
from bench.speed import building, loading
from bench.speed.peers import RIVALS, Passages, Setup
from bench.speed.rates import Rates
from bench.speed.recorded import RecordedQuery, generated, read_queries
from bench.workbench import check_room, say
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions

BUILDING, RATES = USUAL_PARTS = ("building", "rates")
LOADING = "loading"
PARTS = (*USUAL_PARTS, LOADING)
CLIENTS = (1, 16)
QUERIES = 500
ROUNDS = 20
WARM_UP = 5
SEED = 1678

_SAMPLE = 2_000
_BYTES_A_PASSAGE = 6_000
_QUIET_LOAD = 0.5


def main(arguments: Sequence[str]) -> int:
    """Measure and return the exit code; a missed aim is not a failure."""
    parser = BenchParser("speed", __doc__)
    add = parser.add_argument
    what = f"some of {','.join(PARTS)} (default {','.join(USUAL_PARTS)})"
    add("--only", type=names_from(PARTS), default=USUAL_PARTS, help=what)
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("--passages", type=positive, help="generate so many (default: the data's)")
    what = "folders that arag-search run wrote"
    asked.add_argument("--records", type=Path, nargs="+", metavar="RUN", help=what)
    parser.add_default("--queries", positive, QUERIES, "queries of a round")
    parser.add_default("--rounds", positive, ROUNDS, "interleaved rounds")
    parser.add_default("--warm-up", int, WARM_UP, "rounds of rates that do not count")
    rivals = ",".join(RIVALS)
    add("--without", type=names_from(RIVALS), default=(), help=f"leave out some of {rivals}")
    add("--encoder", metavar="NAME", help="measure hybrid search with its vectors, packed (IVF-PQ)")
    add("--anserini", type=Path, metavar="JAR", help="compare building with this Anserini")
    what = "an interpreter that has pyserini (default: this one)"
    add("--pyserini-python", default=sys.executable, metavar="PYTHON", help=what)
    parser.add_data()
    parser.add_work()
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    with ExitStack() as stack:
        name = tempfile.TemporaryDirectory(prefix="arag-speed-", dir=options.work)
        folder = Path(stack.enter_context(name)).resolve()
        setup = Setup(folder, options.pyserini_python, options.encoder)
        names = [name for name in RIVALS if name not in options.without]
        names += ["hybrid"] * bool(options.encoder)
        rates = Rates(stack, setup, names) if RATES in options.only else None
        passages = stack.enter_context(_passages(options, folder, asked=rates is not None))
        about = circumstances(command, passages.index.manifest, seed=SEED)
        if about["load"] > _QUIET_LOAD:
            say(f"The machine is not quiet (load {about['load']}): times will be off.")

        def publish(figure: Figure) -> None:
            count = passages.index.manifest.documents
            show(options.json, [replace(figure, name=f"{figure.name}, {count:,} passages")], about)

        if BUILDING in options.only:
            publish(building.beside_bare(passages, options.rounds))
            if options.anserini is not None:
                publish(building.beside_anserini(passages, options.rounds, options.anserini))
        if LOADING in options.only:
            publish(loading.beside_parallel_bulk(passages, options.rounds))
        if rates is not None:
            publish(rates.measure(passages, CLIENTS, options.rounds, options.warm_up))
    return 0


@contextmanager
def _passages(options: argparse.Namespace, folder: Path, *, asked: bool) -> Generator[Passages]:
    """Build the index, and yield it, with its queries if they are ``asked``."""
    source, build = corpus_in(options.data).resolve(), BuildOptions()
    if options.passages is not None:
        check_room(folder, options.passages * _BYTES_A_PASSAGE)
        source = folder / "corpus.jsonl"
        say(f"writing {options.passages:,} passages")
        synthetic.write(options.passages, source)
        # No search here asks for sentences, whose index takes half of the time of a large build.
        build = BuildOptions(format="documents", without=("sentences",))
    say("building the index")
    build_index([str(source)], folder / "index", build)
    with open_index(folder / "index", search_timeout_s=None) as index:
        queries = _queries(options, index, source, folder) if asked else []
        if len(queries) > options.queries:
            numbers = sorted(Random(SEED).sample(range(len(queries)), options.queries))
            queries = [queries[number] for number in numbers]
        yield Passages(index, source, build, queries, folder)


def _queries(
    options: argparse.Namespace, index: Index, source: Path, folder: Path
) -> list[RecordedQuery]:
    """Return the queries of runs, of the offline model, or, for generated passages and data without
    questions, drawn ones."""
    if options.passages is not None:
        sample = synthetic.sample(options.passages, _SAMPLE)
        return generated(index, [passage.chunk() for passage in sample], options.queries, SEED)
    if options.records:
        return read_queries(options.records, index)
    file = questions_in(source.parent)
    if not file.exists():
        return generated(index, list(index.scan()), options.queries, SEED)
    questions = load_questions(file)
    say(f"{len(questions)} questions are answered by the offline model")
    answer(index, questions, load_preset(DEFAULT_PRESET), OfflineModel(), folder / "run")
    return read_queries([folder / "run"], index)

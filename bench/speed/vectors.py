"""Cost of searches by vectors on disk: over bare FAISS, and under conditions.

    uv run --extra all python -m bench vectors
    uv run --extra all python -m bench vectors --rows 100000 --index flat

The vectors are synthetic (random directions around random centres), so they measure time, memory
and bytes, but not recall (`python -m bench recall` does). Flat search is compared with
`IndexFlatIP` over the same vectors in memory, which must find the same; searches of one query under
a condition that a share of the texts meets, with those without one. All sides run in interleaved
rounds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arag_search.corpus import SENTENCE_BITS
from arag_search.engines.base import Mask, Ordinals
from arag_search.plan.clauses import ResolvedPlan
from arag_search.plan.lower import lower_scope
from arag_search.query.tree import Scope, Term
from arag_search.system.processes import share_cores
from arag_search.system.progress import PlainProgress
from arag_search.vectors import faiss_index
from arag_search.vectors.base import KEY_BYTES, EncoderIdentity, Selection, VectorUnit
from arag_search.vectors.faiss_index import FLAT, factory_of
from arag_search.vectors.records import StoreRecord
from arag_search.vectors.searching import IndexVectors
from arag_search.vectors.state import State, UnitTexts
from arag_search.vectors.store import Store
from bench import BenchError
from bench.arguments import BenchParser, positive
from bench.report.memory import anonymous_bytes
from bench.report.rounds import Side, interleaved, timed
from bench.report.rows import Figure, Row, Target, circumstances, show
from bench.speed.indexing import size_of
from bench.workbench import check_room, say

Vectors = NDArray[np.float32]

UNIT: VectorUnit = "sentence"
BATCHES = (1, 4, 64)
SHARES = (0.001, 0.01, 0.1, 0.5)
TOP = 10
FLAT_TARGET = Target("at most", 1.2)
SHARE_TARGET = Target("at most", 2.0)
OPENING_TARGET = Target("at most", 2.0)
QUERIES_SEED = 1 << 30  # the seed of queries, which no block has

_BLOCK_ROWS = 40_000
_CENTRES = 2_000
_SPREAD = 0.7
_PLAIN = "no condition"


def main(arguments: Sequence[str]) -> int:
    """Measure flat vectors and an inverted file, and return the exit code."""
    parser = BenchParser("vectors", __doc__)
    parser.add_default("--rows", positive, 1_000_000, "number of vectors")
    parser.add_default("--dimension", positive, 384, "numbers of a vector")
    parser.add_default("--index", str, faiss_index.AUTO, "the inverted file; flat for none")
    parser.add_default("--searches", positive, 10, "searches of a side in a round")
    parser.add_rounds(7)
    parser.add_work()
    parser.add_results()
    return parser.run(arguments, _measured)


def _measured(options: argparse.Namespace, command: str) -> int:
    rows, dimension = options.rows, options.dimension
    with tempfile.TemporaryDirectory(prefix="arag-vectors-", dir=options.work) as name:
        root = Path(name)
        check_room(root, 2 * rows * dimension * 4)
        say(f"writing {rows:,} rows of {dimension} numbers")
        store = new_store(root, dimension)
        for number, start in enumerate(range(0, rows, _BLOCK_ROWS)):
            append(store, synthetic_vectors(min(_BLOCK_ROWS, rows - start), dimension, number))
        state = state_of(store, np.arange(rows))
        figures = [_figure(state, store, FLAT, options)]
        factory = factory_of(options.index, rows, dimension)
        if factory != FLAT:
            faiss_index.build(store, UNIT, factory, PlainProgress(sys.stderr))
            figures.append(_figure(state, store, factory, options))
    show(options.json, figures, circumstances(command, seed=QUERIES_SEED))
    return 0


def new_store(root: Path, dimension: int) -> Store:
    """Create an empty store in a folder."""
    encoder = EncoderIdentity(kind="bench", name="bench", revision="1", dimension=dimension)
    return Store.create(root / "store-00001", StoreRecord(encoder=encoder, dtype="float32"))


def append(store: Store, vectors: Vectors) -> None:
    """Append the vectors of texts, whose keys are the numbers of their rows."""
    first = store.rows(UNIT)
    keys = [row.to_bytes(KEY_BYTES, "big") for row in range(first, first + len(vectors))]
    store.append(UNIT, keys, vectors)


def state_of(store: Store, rows: NDArray[np.int64]) -> State:
    """Write a state whose texts, each a chunk of its own, have these rows."""
    return State.write(
        store.folder.parent,
        placement="0" * 64,
        fingerprint="0" * 64,
        chunks=len(rows),
        store=store.folder.name,
        units={UNIT: UnitTexts(np.arange(len(rows)) << SENTENCE_BITS, rows)},
        store_rows={UNIT: store.rows(UNIT)},
    )


def opened(state: State, store: Store) -> IndexVectors:
    """Open the vectors of a state as an index does."""
    return IndexVectors(State.open(state.path), Store.open(store.folder), share_cores())


def synthetic_vectors(rows: int, dimension: int, seed: int) -> Vectors:
    """Generate unit vectors around centres that are the same for every seed."""
    centres = np.random.default_rng(0).standard_normal((_CENTRES, dimension), np.float32)
    generator = np.random.default_rng((1, seed))
    vectors = generator.standard_normal((rows, dimension), np.float32) * np.float32(_SPREAD)
    vectors += centres[generator.integers(0, _CENTRES, rows)]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


# Measuring


def _figure(state: State, store: Store, factory: str, options: argparse.Namespace) -> Figure:
    seconds = timed(lambda: opened(state, store).close())
    vectors = opened(state, store)
    before = anonymous_bytes()
    queries = synthetic_vectors(max(BATCHES), options.dimension, QUERIES_SEED)
    rows = [
        Row("opening", seconds, "s", target=OPENING_TARGET),
        Row("bytes a row", size_of(state.path.parent) / options.rows, "B"),
    ]
    if factory == FLAT:
        rows += _over_faiss(vectors, store, queries, options.rounds)
    rows += _under_conditions(vectors, queries, options)
    rows.append(Row("anonymous memory", (anonymous_bytes() - before) / (1 << 20), "MB"))
    vectors.close()
    name = f"{'flat' if factory == FLAT else 'inverted'}, {options.rows:,} rows"
    return Figure(name, tuple(rows), {"dimension": options.dimension, "factory": factory})


def _over_faiss(
    vectors: IndexVectors, store: Store, queries: Vectors, rounds: int
) -> Iterator[Row]:
    """Compare batches of queries with an IndexFlatIP of the same vectors in memory."""
    import faiss

    bare: Any = faiss.IndexFlatIP(store.record.encoder.dimension)
    for _, block in store.vectors(UNIT).blocks(_BLOCK_ROWS):
        bare.add(np.ascontiguousarray(block))
    scores, _ = bare.search(queries, TOP)
    ours = [[text.score for text in texts] for texts in vectors.nearest(UNIT, queries, TOP)]
    if np.abs(np.array(ours) - scores).max() > 1e-5:
        raise BenchError("Flat search and FAISS do not find the same.", where=str(store.folder))
    for batch in BATCHES:
        some = queries[:batch]
        sides: dict[str, Side] = {
            "ours": lambda some=some: timed(lambda: vectors.nearest(UNIT, some, TOP)),
            "FAISS": lambda some=some: timed(lambda: bare.search(some, TOP)),
        }
        timings = interleaved(sides, rounds)
        ratio = timings.ratio("ours", "FAISS")
        yield Row.of_ratio(f"search, {batch} at once: ours over FAISS", ratio, FLAT_TARGET)
        yield Row(f"search, {batch} at once", timings.median_s("ours") * 1_000, "ms")


def _under_conditions(
    vectors: IndexVectors, queries: Vectors, options: argparse.Namespace
) -> Iterator[Row]:
    """Compare searches of one query under conditions with those without one."""

    def search(within: Selection | None) -> float:
        some = queries[: options.searches, None]
        return timed(lambda: [vectors.nearest(UNIT, query, TOP, within) for query in some])

    scopes = {f"{share:.1%}": _scope_of(share, options.rows) for share in SHARES}
    for name, scope in scopes.items():
        first = timed(lambda scope=scope: vectors.nearest(UNIT, queries[:1], TOP, scope))
        yield Row(f"the first search, {name}", first * 1_000, "ms")
    sides: dict[str, Side] = {_PLAIN: lambda: search(None)}
    sides |= {name: lambda scope=scope: search(scope) for name, scope in scopes.items()}
    timings = interleaved(sides, options.rounds)
    for name in sides:
        yield Row(f"a search, {name}", timings.median_s(name) / options.searches * 1_000, "ms")
        if name != _PLAIN:
            yield Row.of_ratio(f"{name} over {_PLAIN}", timings.ratio(name, _PLAIN), SHARE_TARGET)


def _scope_of(share: float, texts: int) -> Selection:
    """Return a scope of a drawn share of the texts, which costs nothing to evaluate."""
    inside = np.random.default_rng(round(share * 1_000)).random(texts) < share

    def mark(chunks: Ordinals) -> Mask:
        return inside[chunks >> SENTENCE_BITS]

    return Selection(ResolvedPlan(lower_scope(Scope((Term(f"share{share}"),)))), mark)

"""The vectors of one index, open for search.

Rows are searched, and texts are found. A row may have several texts, which take its place before a
result is cut to its length. Scopes are about texts, so a row is allowed if one of its texts is in
the scope. An engine says which chunks are in a scope, and its replies are cached.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from arag_search.corpus import SENTENCE_BITS
from arag_search.engines.base import MAX_LISTED_ORDINALS, Calls, Mask, Ordinals
from arag_search.errors import NotServedError, VectorsError
from arag_search.manifest import Manifest
from arag_search.plan.clauses import ResolvedPlan
from arag_search.system.extras import check_extra
from arag_search.vectors import exact
from arag_search.vectors.base import KEY_BYTES, FloatArray, Nearest, Selection, VectorUnit
from arag_search.vectors.exact import AllowedRows
from arag_search.vectors.faiss_index import IvfIndex, read_index
from arag_search.vectors.state import State, find_state
from arag_search.vectors.store import Rows, Store

RESCORE = 10
"""The number of candidates rescored by their stored vectors, as a multiple of the requested
number."""

_MOST_SPARE = 10_000  # candidates beyond the requested number
_MORE_LISTS = 0.6
"""If a share of the rows is allowed, ``share ** -_MORE_LISTS`` times as many lists are probed. Such
a search finds more of the nearest rows than one without a condition, in at most twice the time (see
bench/studies/vectors.md)."""
_PASSING = 1 / 2
"""The time to pass a row of a list that is not allowed, as a multiple of the time to score it."""
_GATHERING = 4
"""The time to score a row by itself, as a multiple of the time in a list."""
_ASKED = 2
"""The chunks that are asked about first in a broad scope, as a multiple of the chunks that are
expected to be needed."""
_KEPT_SCOPES = 8
_OPENINGS = 4
"""How often the newest vectors are opened again if they are replaced meanwhile."""


def open_vectors(
    root: Path,
    index: Manifest,
    location: str,
    *,
    nprobe: int | None = None,
) -> IndexVectors:
    """Open the vectors in a folder that fit an index; ``location`` names it in errors.

    All files are mapped, and their sizes are checked. The contents of files without vectors are
    checked up to 64 MiB, so that the time does not grow further with the number of rows. FAISS uses
    the cores of this process, numpy as many as its own variables allow. ``nprobe`` is the number of
    lists that a search probes; the default comes from the index.

    Raises VectorsNotFoundError, VectorsMismatchError if none fit, VectorsDamagedError,
    VectorsVersionError, MissingExtraError.
    """
    check_extra("vectors", "numpy")

    def opened() -> IndexVectors:
        state = find_state(root, index, location)
        return IndexVectors(state, state.store(), nprobe)

    for _ in range(_OPENINGS):
        # a job may replace state, store or index after the record that names them was read
        with suppress(VectorsError, FileNotFoundError):
            return opened()
    return opened()


class _Unit:
    """The rows of a unit with their texts, and the index of the first rows, None if flat."""

    def __init__(self, state: State, store: Store, unit: VectorUnit):
        self.texts = state.units[unit]
        self.rows = store.vectors(unit, state.record.units[unit].rows)
        self.keys = store.keys(unit)
        made = read_index(store.folder, unit)
        dimension = self.rows.dimension
        self.ivf = IvfIndex(made, store.folder, dimension) if made and made.file else None
        self.covered = 0 if self.ivf is None else self.ivf.rows

    @cached_property
    def live(self) -> AllowedRows | None:
        """The rows that have a text; None if all have one."""
        return self._allowed(self.texts.live_mask())

    def rows_within(self, texts: Mask) -> AllowedRows | None:
        """Return the rows of the marked texts; None if these are all rows."""
        mask = np.zeros(self.rows.rows, np.bool_)
        mask[self.texts.rows[texts]] = True
        return self._allowed(mask)

    def _allowed(self, mask: Mask) -> AllowedRows | None:
        # an index that was made later may cover rows that this state does not have
        return None if mask.all() and self.covered <= len(mask) else AllowedRows(mask)


@dataclass
class _Scope:
    """A scope, as far as the engine has told: whether it was ``asked`` about each chunk, and
    whether the chunk is ``inside``. ``share`` is the share of chunks inside, None once all were
    asked."""

    inside: Mask
    asked: Mask
    share: float | None
    rows: dict[VectorUnit, AllowedRows | None] = field(
        default_factory=dict[VectorUnit, AllowedRows | None]
    )


class IndexVectors:
    """Vectors that are mapped into memory. Safe to use from several threads until closed."""

    def __init__(self, state: State, store: Store, nprobe: int | None = None) -> None:
        """Map the rows of a state. Raises VectorsDamagedError, MissingExtraError."""
        self._where = str(state.path)
        self.encoder = store.record.encoder
        self.probes = store.record.probes
        self._nprobe = nprobe
        self._calls = Calls(self._where)
        self._units: dict[VectorUnit, _Unit] = {
            unit: _Unit(state, store, unit) for unit in state.units
        }
        self.units = tuple(self._units)
        self._lock = threading.Lock()
        self._scopes: OrderedDict[ResolvedPlan, _Scope] = OrderedDict()

    def nearest(
        self, unit: VectorUnit, queries: FloatArray, n: int, within: Selection | None = None
    ) -> list[list[Nearest]]:
        """See Vectors. The search is exact if the index is flat, or if that costs less: few rows
        are within. Otherwise the candidates that FAISS finds are rescored by their stored vectors,
        and rows behind its index are searched one by one.

        Raises NotServedError, VectorsDamagedError, IndexClosedError.
        """
        with self._calls:
            if unit not in self._units:
                raise NotServedError(
                    f"There are no vectors of the unit {unit}.",
                    where=self._where,
                    allowed=" and ".join(self.units),
                    do="Embed the index again with `unit=both`.",
                )
            queries = np.ascontiguousarray(queries, np.float32)
            if within is None:
                return self._search(unit, queries, n, self._units[unit].live, None)
            scope = self._scope(within)
            if scope.share is not None:
                return [self._nearest_first(unit, query, n, scope, within) for query in queries]
            return self._search(unit, queries, n, self._rows_in(unit, scope), scope.inside)

    def close(self) -> None:
        """Wait for running searches, then free the maps. May be called again."""
        if self._calls.close():
            self._units.clear()
            self._scopes.clear()

    # Scopes

    @cached_property
    def _chunks(self) -> tuple[Ordinals, dict[VectorUnit, NDArray[np.int16]]]:
        """The ordinals of the chunks that have texts, always the same array; for each unit, how
        many texts each of them has."""
        texts: dict[VectorUnit, Ordinals] = {
            unit: stored.texts.ordinals for unit, stored in self._units.items()
        }
        every = [_distinct(_chunk_ordinals(ordinals)) for ordinals in texts.values()]
        chunks = _distinct(np.sort(np.concatenate(every), kind="stable"))
        counts: dict[VectorUnit, NDArray[np.int16]] = {}
        for unit, ordinals in texts.items():
            starts = np.searchsorted(ordinals, chunks)
            counts[unit] = np.diff(starts, append=len(ordinals)).astype(np.int16)
        return chunks, counts

    def _scope(self, within: Selection) -> _Scope:
        """Return what is known of a scope; the engine is asked unless the scope is cached."""
        with self._lock:
            known = self._scopes.get(within.scope)
            if known is not None:
                self._scopes.move_to_end(within.scope)
                return known
            chunks = self._chunks[0]
        share = within.share()
        inside = np.zeros(len(chunks), np.bool_) if share is not None else within.mark(chunks)
        known = _Scope(inside, np.zeros(len(chunks), np.bool_), share)
        with self._lock:
            self._scopes[within.scope] = known
            while len(self._scopes) > _KEPT_SCOPES:
                self._scopes.popitem(last=False)
        return known

    def _rows_in(self, unit: VectorUnit, scope: _Scope) -> AllowedRows | None:
        if unit not in scope.rows:
            texts = np.repeat(scope.inside, self._chunks[1][unit])
            scope.rows[unit] = self._units[unit].rows_within(texts)
        return scope.rows[unit]

    def _places(self, ordinals: Ordinals) -> NDArray[np.int64]:
        return np.searchsorted(self._chunks[0], _chunk_ordinals(ordinals))

    def _nearest_first(
        self, unit: VectorUnit, query: FloatArray, n: int, scope: _Scope, within: Selection
    ) -> list[Nearest]:
        """Return the nearest texts in a scope of many chunks. The engine is asked about the chunks
        of the nearest texts, twice as many each time, until ``n`` are in the scope."""
        chunks = self._chunks[0]
        fetched = math.ceil(_ASKED * n / (scope.share or 1.0))
        while fetched <= MAX_LISTED_ORDINALS:
            nearest = self._search(unit, query[None], fetched, self._units[unit].live, None)[0]
            places = self._places(np.array([text.ordinal for text in nearest], np.int64))
            new = np.unique(places[~scope.asked[places]])
            if len(new):
                scope.inside[new] = within.mark(chunks[new])
                scope.asked[new] = True
            inside = [
                text for text, place in zip(nearest, places, strict=True) if scope.inside[place]
            ]
            if len(inside) >= n or len(nearest) < fetched:
                return inside[:n]
            fetched *= 2
        scope.inside, scope.share = within.mark(chunks), None  # the nearest are all outside
        return self._search(unit, query[None], n, self._rows_in(unit, scope), scope.inside)[0]

    # Searches

    def _search(
        self,
        unit: VectorUnit,
        queries: FloatArray,
        n: int,
        allowed: AllowedRows | None,
        inside: Mask | None,
    ) -> list[list[Nearest]]:
        stored = self._units[unit]
        if len(queries) == 0 or stored.rows.rows == 0 or (allowed and not allowed.count):
            return [[] for _ in queries]
        ivf = stored.ivf
        probed = _lists(stored, allowed, self._nprobe)
        if ivf is None or not probed:
            rows = exact.candidate_rows(stored.rows, queries, n, allowed)
        else:
            rows = _from_lists(ivf, queries, n, allowed, probed)
            if stored.covered < stored.rows.rows:
                tail = exact.candidate_rows(stored.rows, queries, n, allowed, stored.covered)
                rows = [np.concatenate(pair) for pair in zip(rows, tail, strict=True)]
        return [
            self._ranked(stored, query, own, n, inside)
            for query, own in zip(queries, rows, strict=True)
        ]

    def _ranked(
        self, stored: _Unit, query: FloatArray, rows: Rows, n: int, inside: Mask | None
    ) -> list[Nearest]:
        """Return the ``n`` best texts of rows, best first, equal scores in order of ordinal."""
        scores = exact.scores_of(stored.rows, query, rows)
        ordinals, places = stored.texts.expand(rows)
        scores = scores[places]
        if inside is not None:
            kept = inside[self._places(ordinals)]
            ordinals, scores, places = ordinals[kept], scores[kept], places[kept]
        order = np.lexsort((ordinals, -scores))[:n]
        keys = stored.keys[rows[places[order]]].tobytes()
        best = zip(ordinals[order].tolist(), scores[order].tolist(), strict=True)
        return [
            Nearest(ordinal, score, keys[at * KEY_BYTES : (at + 1) * KEY_BYTES])
            for at, (ordinal, score) in enumerate(best)
        ]


def _chunk_ordinals(ordinals: Ordinals) -> Ordinals:
    return ordinals >> SENTENCE_BITS << SENTENCE_BITS


def _distinct(ascending: Ordinals) -> Ordinals:
    """Return ascending numbers once each; ``np.unique`` takes 20 times as long."""
    is_first = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=is_first[1:])
    return ascending[is_first]


def _lists(stored: _Unit, allowed: AllowedRows | None, nprobe: int | None) -> int:
    """Return how many lists to probe: ``nprobe`` or the default if all rows are allowed.

    If fewer rows are allowed, more lists are probed, because the nearest of these rows are in more
    lists. The result 0 means: score all allowed rows, which costs less or is needed.
    """
    if stored.ivf is None:
        return 0
    lists = stored.ivf.lists
    probed = min(nprobe or stored.ivf.nprobe, lists)
    count = stored.covered if allowed is None else allowed.before(stored.covered)
    if allowed is None or not count:
        return probed
    share = count / stored.covered
    probed = min(lists, math.ceil(probed * share**-_MORE_LISTS))
    passed = stored.covered * probed / lists
    cost = passed * (share + _PASSING * (1 - share))
    return 0 if _GATHERING * count < cost else probed


def _from_lists(
    ivf: IvfIndex, queries: FloatArray, n: int, allowed: AllowedRows | None, probed: int
) -> list[Rows]:
    """Return, for each query, candidates in so many lists. If these have fewer than ``n``, or than
    candidates if not all rows are allowed, more lists are probed."""
    bits = None if allowed is None else allowed.bits
    candidates = min(n * RESCORE, n + _MOST_SPARE)
    most = ivf.rows if allowed is None else min(candidates, allowed.before(ivf.rows))
    wanted = min(n if allowed is None else candidates, most)
    rows = ivf.search(queries, candidates, probed, bits)
    while wanted and probed < ivf.lists and (too_few := (rows[:, wanted - 1] < 0)).any():
        probed = min(4 * probed, ivf.lists)
        rows[too_few] = ivf.search(queries[too_few], candidates, probed, bits)
    return [np.sort(row[row >= 0]) for row in rows]

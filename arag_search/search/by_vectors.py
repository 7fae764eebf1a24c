"""Searches by vectors over one index: semantic (A-RAG Eq. 3), hybrid (LogicalRAG), naive."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from copy import copy
from dataclasses import replace
from typing import NamedTuple

from arag_search.corpus import Chunk, chunk_ordinal, is_unicode, nfc
from arag_search.engines.base import (
    MAX_LISTED,
    Calls,
    Deadline,
    Hit,
    Mask,
    Ordinals,
    SearchEngine,
    SearchRequest,
)
from arag_search.errors import NotServedError
from arag_search.plan.clauses import (
    Clause,
    ResolvedPlan,
    any_of,
    joined,
    wanted_leaves,
    words_clause,
)
from arag_search.plan.lower import lower
from arag_search.query import analysis
from arag_search.query.limits import MAX_CHARACTERS, MAX_LEAVES
from arag_search.query.problems import LONE_SURROGATE, TOO_LONG, Problem, QueryError
from arag_search.query.reading import condition_error, parse
from arag_search.search.advice.timeouts import HYBRID_NARROWING, NARROWING, advising_on_timeout
from arag_search.search.asked import Hybrid, Meaning, Naive, check_page
from arag_search.search.hits import HybridRanks, SearchHit, hit_of
from arag_search.search.keywords import missing_names_note
from arag_search.search.resolve import resolve
from arag_search.search.results import SearchResult
from arag_search.search.scope import Conditions, conditions
from arag_search.search.snippets import NearPassage, NearPassages, Snippets, near_passages
from arag_search.vectors.base import FloatArray, Nearest, Selection, VectorUnit
from arag_search.vectors.opening import OpenVectors, VectorSource

FUSION_DEPTH = 100
"""The number of passages of each part that are fused."""

EMPTY_QUERY = "the query is empty. Write a question, or a few words."
NO_MATCH = "no passage matches the logical query; the passages are the nearest by meaning."
NO_WORDS = "the query holds no word to look up; the passages are the nearest by vectors."
TOO_MANY_WORDS = f"only the first {MAX_LEAVES} words of the query were looked up."


class NearSentence(NamedTuple):
    """A sentence by its passage and its number in it, from 0, with its cosine with a query."""

    chunk: Chunk
    number: int
    score: float


class _Hybrid(NamedTuple):
    """What a hybrid search looks for: a plan, None for no words, and a text that is encoded.
    ``logical`` is the canonical text of a logical query, empty if the plan is the words of the
    text. ``advice`` is for a search by the plan that takes too long."""

    plan: Clause | None
    text: str
    notes: tuple[str, ...]
    advice: str
    logical: str = ""


class VectorSearch:
    """The searches of one index that need its vectors; without a ``source`` it has none.

    Threads may share it; ``close`` waits for their calls.
    """

    def __init__(
        self,
        engine: SearchEngine,
        location: str,
        scope: ResolvedPlan | None,
        source: VectorSource | None,
        search_timeout_s: float | None,
    ) -> None:
        self._engine = engine
        self._location = location
        self._scope = scope
        self._source = source
        self._search_timeout_s = search_timeout_s
        self._calls = Calls(location)
        self._pool = ThreadPoolExecutor(thread_name_prefix="by-words")  # starts none by itself
        self._schema = engine.manifest.query_schema

    def within(self, scope: ResolvedPlan | None) -> VectorSearch:
        """Return the searches of a part of the index, which share vectors and calls."""
        part = copy(self)
        part._scope = scope
        return part

    def open(self) -> OpenVectors:
        """Open vectors and encoder, unless they are open.

        Raises NotServedError if the index has none, and what opening them raises.
        """
        if self._source is None:
            raise NotServedError(
                "The index was opened without vectors.",
                where=self._location,
                do="Open it with open_index, or give Index its vectors.",
            )
        return self._source.open()

    def encode_queries(self, queries: Sequence[str]) -> None:
        """Encode the distinct queries together, so that later searches need not encode them.

        Queries that every search would reject are skipped.
        """
        texts = [text for text in map(nfc, queries) if not _problems(text)]
        if texts:
            with self._calls:
                self.open().encoder.encode_queries(list(dict.fromkeys(texts)))

    def search(self, asked: Meaning) -> SearchResult:
        """Return the passages nearest to a query: see the methods of ``Index``."""
        if isinstance(asked, Hybrid):
            return self._fused(asked)
        return self._nearest(asked, "passage" if isinstance(asked, Naive) else "sentence")

    def _nearest(self, asked: Meaning, unit: VectorUnit) -> SearchResult:
        started = time.perf_counter()
        text, within = self._understood(asked.query, asked.filter, asked.where)
        with self._calls:
            near = self._near(self.open(), unit, text, asked.offset + asked.top_k, within)
            shown = near.passages[asked.offset :]
            proofs = {passage.ordinal: passage for passage in shown}
            hits, missing = self._hits(shown, proofs, within.scope, asked.snippets)
        notes = [
            *self._left_out(missing),
            *within.notes,
            *self._on_names(text, within.scope, asked.names and bool(hits)),
        ]
        end_of_all = len(near.passages) - missing if near.complete else None
        return SearchResult.of(asked, within.words, hits, notes, started, passages=end_of_all)

    def _fused(self, asked: Hybrid) -> SearchResult:
        started = time.perf_counter()
        wanted = self._hybrid(asked.query, asked.meaning)
        text, within = self._understood(wanted.text, asked.filter, asked.where)
        scope = within.scope
        notes = [*within.notes, *wanted.notes]
        with self._calls:
            opened = self.open()
            by_words = self._pool.submit(copy_context().run, self._by_words, wanted, scope)
            try:
                near = self._near(opened, asked.vectors, text, FUSION_DEPTH, within)
            finally:  # a call ends before the engine may be closed
                wait([by_words])
            ordinals = by_words.result()
            if wanted.logical and near.passages and not ordinals:
                notes.append(NO_MATCH)
            merge = fuse_logical if wanted.logical else fuse
            fused = merge(ordinals, [passage.ordinal for passage in near.passages])
            shown = fused[asked.offset : asked.offset + asked.top_k]
            ranks = [HybridRanks(*item.ranks) for item in shown]
            proofs = {passage.ordinal: passage for passage in near.passages}
            passages = [NearPassage(item.ordinal, item.score) for item in shown]
            is_chosen = asked.snippets and not asked.full_text and wanted.plan is not None
            chooser = Snippets(self._marked(wanted)) if is_chosen else None
            hits, missing = self._hits(passages, proofs, scope, asked.snippets, ranks, chooser)
        notes = [
            *self._left_out(missing),
            *notes,
            *self._on_names(text, scope, asked.names and bool(hits)),
        ]
        meant = f"{wanted.logical} with meaning " if wanted.logical else ""
        understood, end = f"{meant}{within.words}", len(fused) - missing
        return SearchResult.of(asked, understood, hits, notes, started, passages=end)

    def _by_words(self, wanted: _Hybrid, scope: ResolvedPlan | None) -> list[int]:
        """Return the ordinals of the first passages by BM25; none for a text without words."""
        if wanted.plan is None:
            return []
        deadline = Deadline.after(self._search_timeout_s)
        with advising_on_timeout(deadline, self._location, wanted.advice):
            plan = resolve(wanted.plan, self._engine, scope=scope, deadline=deadline)
            request = SearchRequest(
                plan, FUSION_DEPTH, scope=scope, with_text=False, deadline=deadline
            )
            return [hit.ordinal for hit in self._engine.search(request).hits]

    def _marked(self, wanted: _Hybrid) -> Clause:
        """Return the plan whose words are looked for in passages to show, in all their forms."""
        language = self._engine.manifest.language
        plan = wanted.plan if wanted.logical else words_query(wanted.text, language)[0]
        assert plan is not None
        return plan

    def _hybrid(self, query: str, meaning: str | None) -> _Hybrid:
        """Read the arguments of a hybrid search. Raises QueryError."""
        if meaning is None or not query.strip():
            text = _checked(query if meaning is None else meaning)
            language = "" if meaning is None else self._engine.manifest.language
            plan, notes = words_query(text, language)
            logical = "" if meaning is None or plan is None else plan.text
            return _Hybrid(plan, text, tuple(notes), HYBRID_NARROWING, logical)
        parsed = parse(query, self._schema)
        plan = lower(parsed.tree, parsed.language)
        if not meaning.strip():
            words = (leaf.typed for leaf in wanted_leaves(plan) if leaf.is_text)
            meaning = " ".join(dict.fromkeys(words)) or query
        return _Hybrid(plan, meaning, parsed.notes, NARROWING, parsed.text)

    def sentences(self, query: str, n: int, filter: str | None) -> list[NearSentence]:
        """See Index.nearest_sentences."""
        check_page(n, 0)
        text, asked = self._understood(query, filter, None)
        with self._calls:
            nearest = self._nearest_to(self.open(), "sentence", text, asked)(n)
            ordinals = [chunk_ordinal(sentence.ordinal) for sentence in nearest]
            chunks = self._engine.chunks_at(ordinals, asked.scope)
        near: list[NearSentence] = []
        for (ordinal, score, key), chunk in zip(nearest, chunks, strict=True):
            start = chunk_ordinal(ordinal)
            proof = NearPassage(start, score, (ordinal - start,), (key,))
            if chunk is not None and proof.is_of(chunk):
                near.append(NearSentence(chunk, ordinal - start, score))
        return near

    def close(self) -> None:
        """Wait for searches in flight, then close the vectors. May be called again."""
        if self._calls.close():
            self._pool.shutdown()
            if self._source is not None:
                self._source.close()

    def _on_names(self, text: str, scope: ResolvedPlan | None, names: bool) -> list[str]:
        """Return the note on names that no passage contains, if requested and needed."""
        if not names:
            return []
        deadline = Deadline.after(self._search_timeout_s)
        note = missing_names_note(self._engine, text, scope, deadline)
        return [note] if note else []

    def _left_out(self, missing: int) -> list[str]:
        """Return the note on passages that were left out. They may now be out of scope, so within a
        scope they are not counted."""
        if self._scope is not None or not missing:
            return []
        passages = "1 passage" if missing == 1 else f"{missing} passages"
        return [f"{passages} left out: changed or deleted since the vectors were opened."]

    def _understood(
        self, query: str, filter: str | None, where: str | None
    ) -> tuple[str, Conditions]:
        """Return the query in the form that is encoded, and the conditions, whose wording begins
        with it."""
        text = _checked(query)
        schema = self._engine.manifest.query_schema
        asked = conditions(self._scope, filter, where, schema)
        if where is not None and asked.condition is not None:
            deadline, scope = Deadline.after(self._search_timeout_s), asked.scope
            try:
                condition = resolve(asked.condition, self._engine, "chunk", scope, deadline, where)
            except QueryError as error:
                raise condition_error(error) from None
            asked = asked._replace(scope=joined(scope, condition))
        return text, asked._replace(words=f'"{" ".join(text.split())}"{asked.words}')

    def _near(
        self, opened: OpenVectors, unit: VectorUnit, text: str, n: int, asked: Conditions
    ) -> NearPassages:
        return near_passages(self._nearest_to(opened, unit, text, asked), unit, n)

    def _nearest_to(
        self, opened: OpenVectors, unit: VectorUnit, text: str, asked: Conditions
    ) -> Callable[[int], list[Nearest]]:
        """Return a function for the first texts that are nearest to a text."""
        encoded: FloatArray = opened.encoder.encode_queries([text])
        within = self._selected(asked)
        return lambda n: opened.vectors.nearest(unit, encoded, n, within)[0]

    def _selected(self, asked: Conditions) -> Selection | None:
        """Return the scope with the engine to ask about it. A server is asked about the nearest
        passages alone if more are in the scope than it lists."""
        scope = asked.scope
        if scope is None:
            return None

        def mark(ordinals: Ordinals) -> Mask:
            with self._advising(asked) as deadline:
                return self._engine.among(ordinals, scope, deadline)

        def share() -> float | None:
            if not self._engine.is_remote:
                return None
            with self._advising(asked) as deadline:
                (count,) = self._engine.counts([(scope, "chunk")], None, deadline, exact=True)
            return count / self._engine.manifest.chunks if count > MAX_LISTED else None

        return Selection(scope, mark, share)

    @contextmanager
    def _advising(self, asked: Conditions) -> Generator[Deadline | None]:
        """Yield the deadline of a question about a scope. If it passes, the error advises how to
        narrow the condition."""
        deadline = Deadline.after(self._search_timeout_s)
        advice = "" if asked.condition is None else NARROWING
        with advising_on_timeout(deadline, self._location, advice):
            yield deadline

    def _hits(
        self,
        passages: Sequence[NearPassage],
        proofs: Mapping[int, NearPassage],
        scope: ResolvedPlan | None,
        with_text: bool,
        ranks: Sequence[HybridRanks] | None = None,
        chooser: Snippets | None = None,
    ) -> tuple[list[SearchHit], int]:
        """Return the passages with their texts from the index, and how many were left out.

        A passage is left out if the engine does not have it in the scope, or if its text is not
        that of the vectors by which it was found (``proofs``, by ordinal). A passage that was
        found without sentences shows those of the ``chooser``, or all.
        """
        chunks = self._engine.chunks_at([passage.ordinal for passage in passages], scope)
        hits: list[SearchHit] = []
        for at, (passage, chunk) in enumerate(zip(passages, chunks, strict=True)):
            proof = proofs.get(passage.ordinal)
            if chunk is not None and (proof is None or proof.is_of(chunk)):
                shown = chunk if with_text else replace(chunk, content="", sentence_ends=())
                hits.append(_hit(passage, shown, ranks[at] if ranks else None, chooser))
        return hits, len(passages) - len(hits)


def words_query(text: str, language: str = "") -> tuple[Clause | None, list[str]]:
    """Return the words of a text as alternatives, repeated as in the text, with notes on them.

    The plan is None if the text has no words.
    """
    words = analysis.terms(text)
    if not words:
        return None, [NO_WORDS]
    notes = [TOO_MANY_WORDS] if len(words) > MAX_LEAVES else []
    return any_of(
        [words_clause(word, language, None, "word") for word in words[:MAX_LEAVES]]
    ), notes


def _checked(query: str) -> str:
    """Return a text as it is encoded. Raises QueryError for one that cannot be searched for."""
    text = nfc(query)
    problems = _problems(text)
    if problems:
        raise QueryError(query, problems, None)
    return text


def _problems(text: str) -> tuple[Problem, ...]:
    message = ""
    if not text.strip():
        message = EMPTY_QUERY
    elif len(text) > MAX_CHARACTERS:
        message = TOO_LONG.format(count=len(text), limit=MAX_CHARACTERS)
    elif not is_unicode(text):
        message = LONE_SURROGATE
    piece = text[:40].encode("utf-8", "replace").decode("utf-8")
    return (Problem(1, piece, message),) if message else ()


def _hit(
    passage: NearPassage, chunk: Chunk, ranks: HybridRanks | None, chooser: Snippets | None
) -> SearchHit:
    hit = Hit.of(chunk, passage.score, text=True)
    shown = [number for number in passage.sentences if number < len(chunk.sentence_ends)]
    if not shown:
        shown = chooser.choose(hit) if chooser else range(len(chunk.sentence_ends))
    is_named = chooser is not None and chooser.names(hit)
    return hit_of(hit, shown, None, is_named=is_named)._replace(ranks=ranks)


# Reciprocal rank fusion (Cormack, Clarke and Buettcher 2009): several rankings into one
#
# An item scores the sum over the rankings that hold it of weight / (K + rank), ranks counted
# from 1.


K = 60
"""The constant of LogicalRAG's hybrid search, and of the paper that proposed it."""
LOGICAL_K = 1
"""The constant for a logical query and vectors, chosen in bench/studies/retrieval.md. Provisional:
the difference from K was not resolved."""


class Fused(NamedTuple):
    """An item: its ordinal, its score, and its rank (from 1) in each ranking, None if absent."""

    ordinal: int
    score: float
    ranks: tuple[int | None, ...]


def fuse(
    *rankings: Sequence[int], weights: Sequence[float] | None = None, k: float = K
) -> list[Fused]:
    """Return all items of the rankings, best score first, equal scores in order of ordinal.

    Each ranking lists distinct ordinals, best first. Without ``weights``, each of them counts 1.
    """
    ranks_of = [{ordinal: rank for rank, ordinal in enumerate(ranks, 1)} for ranks in rankings]
    weighted = weights or [1.0] * len(rankings)
    fused: list[Fused] = []
    for ordinal in set[int]().union(*ranks_of):
        ranks = tuple(ranking.get(ordinal) for ranking in ranks_of)
        # With fsum the same ranks give the same score, whichever rankings they are in.
        score = math.fsum(
            weight / (k + rank)
            for weight, rank in zip(weighted, ranks, strict=True)
            if rank is not None
        )
        fused.append(Fused(ordinal, score, ranks))
    return sorted(fused, key=lambda item: (-item.score, item.ordinal))


def fuse_logical(logical: Sequence[int], vectors: Sequence[int]) -> list[Fused]:
    """Merge the ranking of a logical query with that of vectors. The small constant keeps the first
    passages of a precise query among the first, whatever the vectors add."""
    return fuse(logical, vectors, k=LOGICAL_K)

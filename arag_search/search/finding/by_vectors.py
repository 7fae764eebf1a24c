"""Searches by vectors over one index: semantic (A-RAG Eq. 3), hybrid (LogicalRAG), naive."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from typing import NamedTuple

from arag_search.corpus import Chunk, chunk_ordinal, is_unicode, nfc
from arag_search.engines.base import (
    MAX_LISTED_ORDINALS,
    Deadline,
    Granularity,
    Mask,
    Ordinals,
    SearchRequest,
)
from arag_search.engines.hits import Hit, HybridRanks
from arag_search.errors import QueryTimeoutError
from arag_search.plan.clauses import (
    Clause,
    ResolvedPlan,
    any_clause,
    joined,
)
from arag_search.plan.lower import lower
from arag_search.query import analysis
from arag_search.query.filters import Data
from arag_search.query.limits import MAX_CHARACTERS, MAX_LEAVES
from arag_search.query.printing import quoted
from arag_search.query.problems import Problem, ProblemKind, QueryError
from arag_search.query.reading import parse
from arag_search.query.tree import Phrase, Term, unweighted
from arag_search.search.asked import Hybrid, Meaning, Naive, Search
from arag_search.search.finding.logical import logical_search
from arag_search.search.finding.resolve import resolve_lookups
from arag_search.search.reading.snippets import NearPassage, Snippets, near_passages
from arag_search.search.results import SearchResult
from arag_search.search.state import NARROWING, IndexState
from arag_search.system.progress import counted
from arag_search.vectors.base import FloatArray, Nearest, Selection, VectorUnit

FUSION_DEPTH = 100
"""The number of passages of each part that are fused."""

NO_RANKS: Mapping[int, HybridRanks] = {}
_NARROWING_WORDS = "Write fewer words, and rarer ones."

NO_WORDS = "the query holds no word to look up; the passages are the nearest by vectors."
ONLY_FIRST_WORDS = f"only the first {MAX_LEAVES} words of the query were looked up."


class NearSentence(NamedTuple):
    """A sentence by its passage and its number in it, from 0, with its cosine with a query."""

    chunk: Chunk
    number: int
    score: float


class _Query:
    """The query of a search by vectors, for one state.

    ``text``: the text that is encoded.
    ``scope``: the condition that passages must match, from the filter and ``where``.
    ``words``: text, condition and filter, as the result says how they were understood.
    ``notes``: the notes on the condition.
    """

    def __init__(self, state: IndexState, asked: Meaning, started: float) -> None:
        """Read the filter and the condition, and look the condition up. Raises QueryError for both
        and for the text."""
        self.state, self.asked, self.started = state, asked, started
        self.text = _checked(asked.query)
        self.scope, within = state.narrowed(asked.filter)
        self.notes: tuple[str, ...] = ()
        self._advice, where = "", asked.where
        if where is not None:
            deadline = Deadline.after(state.search_timeout_s)
            try:
                parsed = parse(where, state.schema, ranked=False)
                condition = lower(unweighted(parsed.tree), parsed.language)
                plan = resolve_lookups(condition, state.engine, "chunk", self.scope, deadline)
            except QueryError as error:
                error.where = "the condition where"
                raise
            self.scope = joined(self.scope, plan)
            self.notes, self._advice = parsed.notes, NARROWING
            within = f" where {parsed.text}{within}"
        self.words = f'"{" ".join(self.text.split())}"{within}'

    def nearest(self, unit: VectorUnit) -> Callable[[int], list[Nearest]]:
        """Return a function for the first texts of a unit that are nearest."""
        opened = self.state.open_vectors()
        encoded: FloatArray = opened.encoder.encode_queries([self.text])
        within = None if self.scope is None else self._selection(self.scope)
        return lambda n: opened.vectors.nearest(unit, encoded, n, within)[0]

    def _selection(self, scope: ResolvedPlan) -> Selection:
        """Return the scope with the engine to ask about it. A server is asked about the nearest
        passages alone if more are in the scope than it lists."""
        state, engine = self.state, self.state.engine

        def mark(ordinals: Ordinals) -> Mask:
            with state.timed(self._advice) as deadline:
                return engine.among(ordinals, scope, deadline)

        def share() -> float | None:
            if not engine.is_remote:
                return None
            with state.timed(self._advice) as deadline:
                (count,) = engine.counts([(scope, "chunk")], None, deadline, exact=True)
            return count / state.manifest.chunks if count > MAX_LISTED_ORDINALS else None

        return Selection(scope, mark, share)

    def result(
        self,
        passages: Sequence[NearPassage],
        proofs: Sequence[NearPassage],
        end: int | None,
        ranks: Mapping[int, HybridRanks] = NO_RANKS,
        chooser: Snippets | None = None,
        notes: Sequence[str] = (),
    ) -> SearchResult:
        """Return the page of the passages, of which there are ``end``, with texts from the index.

        A passage is left out if the engine does not have it in the scope. It is also left out if
        its text is no longer the text of the vectors that found it (``proofs``). If it was found
        without sentences, the ``chooser`` selects some, or all are shown. If no passage meets the
        condition, the result comes from a logical search for it, which says why.
        """
        state, asked = self.state, self.asked
        proof_of = {passage.ordinal: passage for passage in proofs}
        shown = passages[asked.offset : asked.offset + asked.top_k]
        chunks = state.engine.chunks_at([passage.ordinal for passage in shown], self.scope)
        hits: list[Hit] = []
        for passage, chunk in zip(shown, chunks, strict=True):
            proof = proof_of.get(passage.ordinal)
            if chunk is not None and (proof is None or proof.is_of(chunk)):
                if not asked.snippets:
                    chunk = replace(chunk, content="", sentence_ends=())
                hits.append(_hit(passage, chunk, ranks.get(passage.ordinal), chooser))
        missing = len(shown) - len(hits)
        all_notes = [*self.notes, *notes]
        if missing and state.scope is None:  # they may have left a scope
            left_out = f"{counted(missing, 'passage')} left out"
            all_notes.insert(0, f"{left_out}: changed or deleted since the vectors were opened.")
        if asked.names and hits:
            all_notes += missing_names(state, self.text, self.scope)
        left = None if end is None else end - missing
        if left == 0 and asked.where is not None:
            why = Search(asked.where, filter=asked.filter, relax=asked.relax)
            matches = logical_search(state, why, exact=True)
            if not matches.total:
                return replace(matches, asked=replace(why, query=asked.query))
        return SearchResult.of(
            state, asked, self.words, hits, all_notes, self.started, passages=left
        )


def vector_search(state: IndexState, asked: Meaning) -> SearchResult:
    """See ``Index.semantic_search`` and ``Index.naive_embedding_search``."""
    query = _Query(state, asked, time.perf_counter())
    unit: VectorUnit = "passage" if isinstance(asked, Naive) else "sentence"
    with state.calls:
        passages, complete = near_passages(query.nearest(unit), unit, asked.offset + asked.top_k)
        return query.result(passages, passages, len(passages) if complete else None)


def hybrid_search(state: IndexState, asked: Hybrid) -> SearchResult:
    """See ``Index.hybrid_search``."""
    query = _Query(state, asked, time.perf_counter())
    plan, notes = words_query(query.text)
    with state.calls:
        state.open_vectors()
        by_words = state.pool.submit(copy_context().run, _by_words, state, plan, query.scope)
        try:
            near, _ = near_passages(query.nearest(asked.vectors), asked.vectors, FUSION_DEPTH)
        finally:  # a call ends before the engine may be closed
            wait([by_words])
        ordinals = by_words.result()
        fused = fuse(ordinals, [passage.ordinal for passage in near])
        chooser = None
        if asked.snippets and not asked.full_text and plan is not None:
            # Words are looked for in passages to show in all their forms.
            of_words, _ = words_query(query.text, state.manifest.language)
            chooser = Snippets(of_words or plan)
        return query.result(
            [NearPassage(item.ordinal, item.score) for item in fused],
            near,
            len(fused),
            {item.ordinal: HybridRanks(*item.ranks) for item in fused},
            chooser,
            notes,
        )


def _by_words(state: IndexState, plan: Clause | None, scope: ResolvedPlan | None) -> list[int]:
    """Return the ordinals of the first passages by BM25; none for a text without words."""
    if plan is None:
        return []
    with state.timed(_NARROWING_WORDS) as deadline:
        words = resolve_lookups(plan, state.engine, scope=scope, deadline=deadline)
        request = SearchRequest(
            words, FUSION_DEPTH, scope=scope, with_text=False, deadline=deadline
        )
        return [hit.ordinal for hit in state.engine.search(request).hits]


def nearest_sentences(
    state: IndexState, query: str, n: int, *, filter: str | Data | None = None
) -> list[NearSentence]:
    """Return the sentences with the greatest cosine with the query, best first, each with its
    passage. ``n`` is 1 to 1,000. Raises the errors of ``semantic_search``."""
    asked = Meaning(query, top_k=n, filter=filter)
    wanted = _Query(state, asked, time.perf_counter())
    with state.calls:
        nearest = wanted.nearest("sentence")(n)
        ordinals = [chunk_ordinal(sentence.ordinal) for sentence in nearest]
        chunks = state.engine.chunks_at(ordinals, wanted.scope)
    near: list[NearSentence] = []
    for (ordinal, score, key), chunk in zip(nearest, chunks, strict=True):
        start = chunk_ordinal(ordinal)
        proof = NearPassage(start, score, (ordinal - start,), (key,))
        if chunk is not None and proof.is_of(chunk):
            near.append(NearSentence(chunk, ordinal - start, score))
    return near


def encode_queries(state: IndexState, queries: Sequence[str]) -> None:
    """Encode queries of later searches together, which is faster than separately. Queries that
    every search would reject are skipped."""
    texts: dict[str, None] = {}
    for query in queries:
        with suppress(QueryError):
            texts[_checked(query)] = None
    if texts:
        with state.calls:
            state.open_vectors().encoder.encode_queries(list(texts))


def words_query(text: str, language: str = "") -> tuple[Clause | None, list[str]]:
    """Return the words of a text as alternatives, repeated as in the text, with notes on them.

    The plan is None if the text has no words.
    """
    words = analysis.terms(text)
    if not words:
        return None, [NO_WORDS]
    notes = [ONLY_FIRST_WORDS] if len(words) > MAX_LEAVES else []
    return any_clause([lower(Term(word), language) for word in words[:MAX_LEAVES]]), notes


def _checked(query: str) -> str:
    """Return a text as it is encoded. Raises QueryError if it cannot be searched for."""
    text = nfc(query)
    piece = text[:40]
    if not text.strip():
        problem = Problem.of(1, piece, ProblemKind.EMPTY_QUESTION)
    elif len(text) > MAX_CHARACTERS:
        size = {"count": len(text), "limit": MAX_CHARACTERS}
        problem = Problem.of(1, piece, ProblemKind.TOO_LONG, **size)
    elif not is_unicode(text):
        at = next(at for at, character in enumerate(query) if not is_unicode(character))
        problem = Problem.of(at + 1, query[at], ProblemKind.LONE_SURROGATE)
    else:
        return text
    raise QueryError(query, (problem,), None)


def _hit(
    passage: NearPassage, chunk: Chunk, ranks: HybridRanks | None, chooser: Snippets | None
) -> Hit:
    hit = Hit.of(chunk, passage.score)._replace(ranks=ranks)
    shown = tuple(number for number in passage.sentences if number < len(chunk.sentence_ends))
    if chooser is not None and not shown:
        return chooser.shown(hit)
    return hit._replace(sentences=shown or tuple(range(len(chunk.sentence_ends))))


# The names in a query by meaning, and which of them no passage contains: vectors find something
# near to every query, even to one about a name that is not in the corpus.


MAX_QUERY_NAMES = 8
_MAX_CHARACTERS = 60
_QUOTED = re.compile(r'"([^"]+)"|“([^”]+)”|«([^»]+)»')
_ENDS = re.compile("[.?!]")
_WORD = re.compile(r"[^\W_][\w'’.-]*", re.UNICODE)


def likely_names(text: str) -> list[str]:
    """Return at most MAX_QUERY_NAMES names in a text, each once. A name is a text in quotation
    marks, or a run of words with a capital, apart from the first word of a sentence."""
    names = [next(filter(None, match.groups())) for match in _QUOTED.finditer(text)]
    run: list[str] = []
    previous = "."
    end = 0
    plain = _QUOTED.sub(" . ", text)
    for word in _WORD.finditer(plain):
        between = plain[end : word.start()].strip()
        if run and (between or not word[0][0].isupper()):
            names.append(" ".join(run))
            run = []
        if word[0][0].isupper() and not (_ENDS.search(between) or _is_end(previous)):
            run.append(word[0].rstrip("."))
        previous, end = word[0], word.end()
    if run:
        names.append(" ".join(run))
    short = [name for name in names if len(name) <= _MAX_CHARACTERS and analysis.terms(name)]
    return list(dict.fromkeys(short))[:MAX_QUERY_NAMES]


def _is_end(word: str) -> bool:
    """Return whether a sentence seems to end with a word: not with an initial, or U.S."""
    return word.endswith(".") and "." not in word[:-1] and len(word) != 2


def missing_names(state: IndexState, text: str, scope: ResolvedPlan | None) -> list[str]:
    """Return the note on the names in a text that no passage in scope contains, if there are some.
    One round trip, and none for a text without names."""
    names, language = likely_names(text), state.manifest.language
    queries: list[tuple[ResolvedPlan, Granularity]] = [
        (ResolvedPlan(lower(Phrase(name), language)), "chunk") for name in names
    ]
    try:
        deadline = Deadline.after(state.search_timeout_s)
        counts = state.engine.counts(queries, scope, deadline) if names else []
    except QueryTimeoutError:
        return []
    missing = [quoted(name) for name, count in zip(names, counts, strict=True) if not count]
    return [f"no passage contains {', '.join(missing)}."] if missing else []


# Reciprocal rank fusion (Cormack, Clarke and Buettcher 2009): several rankings into one
#
# An item scores the sum over the rankings that hold it of 1 / (K + rank), ranks counted from 1.


K = 60
"""The constant of LogicalRAG's hybrid search, and of the paper that proposed it."""


class Fused(NamedTuple):
    """An item: its ordinal, its score, and its rank (from 1) in each ranking, None if absent."""

    ordinal: int
    score: float
    ranks: tuple[int | None, ...]


def fuse(*rankings: Sequence[int]) -> list[Fused]:
    """Return all items of the rankings, best score first, equal scores in order of ordinal. Each
    ranking lists distinct ordinals, best first."""
    ranks_of = [{ordinal: rank for rank, ordinal in enumerate(ranks, 1)} for ranks in rankings]
    fused: list[Fused] = []
    for ordinal in set[int]().union(*ranks_of):
        ranks = tuple(ranking.get(ordinal) for ranking in ranks_of)
        # With fsum the same ranks give the same score, whichever rankings they are in.
        score = math.fsum(1.0 / (K + rank) for rank in ranks if rank is not None)
        fused.append(Fused(ordinal, score, ranks))
    return sorted(fused, key=lambda item: (-item.score, item.ordinal))

"""The result of a search: its passages in order, with notes and totals."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple

from arag_search.corpus import NO_OUTLINE, Chunk, MetadataValue, PassageOutline, split_at
from arag_search.engines.base import (
    FieldsRequest,
    Hit,
    LeafScore,
    Page,
    SearchEngine,
    SearchRequest,
    SortBy,
)
from arag_search.errors import ArgumentError
from arag_search.query.fields import DOC_ID, Schema
from arag_search.query.forms import is_code
from arag_search.query.parser import parse_filter, parse_where
from arag_search.query.tree import Scope, condition_of, unweighted
from arag_search.search.feedback import ClauseCount, Feedback
from arag_search.search.snippets import Highlighter, Highlights
from arag_search.tokens import count_tokens

MAX_TOP_K = 1_000
MAX_REACH = 10_000
"""The greatest ``offset + top_k``."""

Unit = Literal["passages", "sentences"]
Show = Literal["text", "titles", "lines"]
"""What a search shows of its passages."""
CORPUS_ORDER = "corpus order"
"""The ``sort`` of a list of more than MAX_REACH passages."""


class HybridRanks(NamedTuple):
    """The ranks (from 1) of a passage by BM25 of the words and by vectors; None if not among the
    first passages of a part."""

    words: int | None
    vectors: int | None


class SearchHit(NamedTuple):
    """A passage that a search returns.

    ``sentences`` are the numbers (0-based) of the sentences to show, ``snippet`` is their text;
    both are empty without snippets. ``content`` is the passage, empty without snippets; at sentence
    granularity it is only the sentences that matched, unless the full text was requested.
    ``score`` is BM25, the keywords' count times length, a cosine, or the sum of a rank fusion.
    ``lowered`` are the DEMOTEs of a logical query that lowered the score, as written, if the text
    was read. ``explanation`` is None unless requested; ``ranks`` are those of a hybrid search.
    """

    id: str
    doc_id: str
    title: str
    part: int
    parts: int
    score: float
    metadata: dict[str, MetadataValue]
    content: str
    sentence_ends: tuple[int, ...]
    sentences: tuple[int, ...]
    explanation: tuple[LeafScore, ...] | None = None
    ranks: HybridRanks | None = None
    lowered: tuple[str, ...] = ()
    is_named: bool = False
    outline: PassageOutline = NO_OUTLINE

    @property
    def snippet(self) -> str:
        """The shown sentences in text order, with ``...`` for others that are left out."""
        return join_sentences(split_at(self.content, self.sentence_ends), self.sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return the hit in types of JSON; ``ranks``, ``lowered`` and ``explanation`` only if it
        has them.

        The keys are those that ``arag-search search --json`` prints. New keys may be added.
        """
        values: dict[str, Any] = {
            "id": self.id,
            "doc_id": self.doc_id,
            "title": self.title,
            **outline_dict(self.outline),
            "part": self.part,
            "parts": self.parts,
            "score": self.score,
            "snippet": self.snippet,
            "metadata": metadata_dict(self.metadata),
        }
        if self.ranks is not None:
            values["ranks"] = self.ranks._asdict()
        if self.lowered:
            values["lowered"] = list(self.lowered)
        if self.explanation is not None:
            values["explanation"] = [
                {"leaf": leaf.leaf, "scores": dict(leaf.scores)} for leaf in self.explanation
            ]
        return values


@dataclass(frozen=True, slots=True)
class NearestHit:
    """A passage that meets all but some conditions of a query; ``lacks`` are those, as written. It
    is empty if the passage meets all, but no sentence of it does."""

    hit: SearchHit
    lacks: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the passage in types of JSON."""
        return {**self.hit.to_dict(), "lacks": list(self.lacks)}


@dataclass(frozen=True, slots=True)
class BranchHit:
    """The best passage of a branch of an OR that has none on the page."""

    hit: SearchHit
    branch: str

    def to_dict(self) -> dict[str, Any]:
        """Return the passage in types of JSON."""
        return {**self.hit.to_dict(), "branch": self.branch}


@dataclass(frozen=True, slots=True, repr=False)
class SearchResult:
    """The passages of a search, with their total and notes.

    ``total`` is exact if ``total_is_exact``, as it is for a single word, prefix or metadata clause;
    otherwise it is 1,000 and means "more than 1,000", as ``total_text`` says. It is None for
    searches by vectors, which rank all passages and match none. ``passages`` is the exact number of
    passages that can be paged through if it is known, else None; in a list in corpus order, None
    until its end. ``show`` is what was asked for. ``feedback`` is present if
    nothing matched a logical query. ``sort`` is the field that ordered the passages, such as
    ``year:desc``, empty for the score; ``per_document`` is the limit of passages of a document.
    ``nearest`` are the passages that miss the fewest conditions of a logical query that matched
    nothing, ``branches`` the counts of its parts alone, and ``unrepresented`` the best passages of
    branches that have none among the hits; if they were requested. None of these are hits.
    ``highlighter`` knows what a logical or keyword search matches; ``highlights`` asks it.
    """

    query: str
    understood: str
    total: int | None
    total_is_exact: bool
    total_unit: Unit
    offset: int
    hits: tuple[SearchHit, ...]
    notes: tuple[str, ...]
    passages: int | None
    feedback: Feedback | None
    milliseconds: float
    sort: str = ""
    per_document: int | None = None
    show: Show = "text"
    nearest: tuple[NearestHit, ...] = ()
    branches: tuple[ClauseCount, ...] = ()
    unrepresented: tuple[BranchHit, ...] = ()
    highlighter: Highlighter | None = field(default=None, compare=False, repr=False)

    @property
    def total_text(self) -> str:
        """The total in words: ``27``, ``more than 1,000``, or ``unknown`` if there is none."""
        if self.total is None:
            return "unknown"
        return f"{self.total:,}" if self.total_is_exact else f"more than {self.total:,}"

    def __repr__(self) -> str:
        shown = {
            part.name: self.total_text if part.name == "total" else repr(getattr(self, part.name))
            for part in fields(self)
            if part.repr and part.name != "total_is_exact"
        }
        inside = ", ".join(f"{name}={text}" for name, text in shown.items())
        return f"SearchResult({inside})"

    @property
    def retrieved_tokens(self) -> int:
        """The o200k tokens of corpus text in the result: of titles and snippets."""
        return sum(count_tokens(hit.title) + count_tokens(hit.snippet) for hit in self.hits)

    def first_match(self, text: str, doc_id: str) -> int:
        """Return where the first match of the query in a text of a document begins; 0 if it has
        none."""
        if self.highlighter is None:
            return 0
        ends = (len(text),)
        marks = self.highlighter.highlights("", text, ends, (0,), is_code(doc_id)).snippet
        return marks[0][0] if marks else 0

    def highlights(self, hit: SearchHit) -> Highlights | None:
        """Return where the words of the query occur in the title and the snippet of a hit: of a
        logical or keyword search, else None. A phrase is one mark, if all of it is shown; a loose
        phrase has a mark on each word."""
        if self.highlighter is None:
            return None
        return self.highlighter.highlights(
            hit.title, hit.content, hit.sentence_ends, hit.sentences, is_code(hit.doc_id)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result in types of JSON, as ``arag-search search --json`` prints it.

        Hits are as in ``SearchHit.to_dict``, with their ``highlights`` where there are any. The
        keys and their order are stable; new keys may be added. ``problems`` is always empty,
        because a query with problems raises QueryError instead.
        """
        return {
            "query": self.query,
            "understood": self.understood,
            "total": self.total,
            "total_is_exact": self.total_is_exact,
            "total_text": self.total_text,
            "total_unit": self.total_unit,
            "offset": self.offset,
            **({"sort": self.sort} if self.sort else {}),
            **({} if self.per_document is None else {"per_document": self.per_document}),
            "hits": [self._hit_dict(hit) for hit in self.hits],
            "notes": list(self.notes),
            "problems": [],
            "feedback": None if self.feedback is None else self.feedback.to_dict(),
            **({"nearest": [near.to_dict() for near in self.nearest]} if self.nearest else {}),
            **self._branches_dict(),
            "retrieved_tokens": self.retrieved_tokens,
            "milliseconds": round(self.milliseconds, 3),
        }

    def _branches_dict(self) -> dict[str, Any]:
        counts = [{"clause": part.clause, "count": part.count} for part in self.branches]
        unrepresented = [branch.to_dict() for branch in self.unrepresented]
        named = {"branches": counts, "unrepresented": unrepresented}
        return {name: values for name, values in named.items() if values}

    def _hit_dict(self, hit: SearchHit) -> dict[str, Any]:
        highlights = self.highlights(hit)
        marks = {} if highlights is None else {"highlights": highlights.to_dict()}
        return {**hit.to_dict(), **marks}


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """A chunk in full, with the ids of its neighbours (None if there is none)."""

    chunk: Chunk
    previous_id: str | None
    next_id: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the chunk in types of JSON, as ``arag-search read --json`` prints it."""
        chunk = self.chunk
        return {
            "id": chunk.id,
            "doc_id": chunk.doc_id,
            "title": chunk.title,
            **outline_dict(chunk.outline),
            "part": chunk.part,
            "parts": chunk.parts,
            "content": chunk.content,
            "sentences": chunk.sentences(),
            "metadata": metadata_dict(chunk.metadata),
            "previous_id": self.previous_id,
            "next_id": self.next_id,
        }


def outline_dict(outline: PassageOutline) -> dict[str, Any]:
    """Return the path and first line of a passage in types of JSON, those that it has."""
    return {
        name: value for name, value in (("path", outline.path), ("line", outline.line)) if value
    }


def metadata_dict(metadata: Mapping[str, MetadataValue]) -> dict[str, Any]:
    """Return metadata in types of JSON: several values of a field are a list."""
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in metadata.items()
    }


def hit_of(
    hit: Hit,
    sentences: Sequence[int],
    explanation: tuple[LeafScore, ...] | None,
    lowered: tuple[str, ...] = (),
    *,
    is_named: bool = False,
) -> SearchHit:
    """Return an engine's hit with the sentences to show."""
    id_, doc_id, title, part, parts, _, metadata, score, content, ends, _, outline = hit
    place = (title, part, parts, score, dict(metadata), content or "", ends, tuple(sentences))
    # Calling the class takes half as long again.
    return SearchHit._make((id_, doc_id, *place, explanation, None, lowered, is_named, outline))


def search_result(
    query: str,
    understood: str,
    offset: int,
    hits: Sequence[SearchHit],
    notes: Sequence[str],
    started: float,
    *,
    page: Page | None = None,
    unit: Unit = "passages",
    passages: int | None = None,
    feedback: Feedback | None = None,
    sort: SortBy | str | None = None,
    per_document: int | None = None,
    show: Show = "text",
    nearest: tuple[NearestHit, ...] = (),
    branches: tuple[ClauseCount, ...] = (),
    unrepresented: tuple[BranchHit, ...] = (),
    highlighter: Highlighter | None = None,
) -> SearchResult:
    """Return a result, timed since ``started`` (of ``time.perf_counter``).

    Total and ``passages`` are those of an engine's ``page``; without a page there is no total.
    """
    return SearchResult(
        query=query,
        understood=understood,
        total=None if page is None else page.total,
        total_is_exact=page is None or page.total_is_exact,
        total_unit=unit,
        offset=offset,
        hits=tuple(hits),
        notes=tuple(notes),
        passages=passages if page is None else page.passages,
        feedback=feedback,
        milliseconds=(time.perf_counter() - started) * 1000,
        sort="" if sort is None else str(sort),
        per_document=per_document,
        show=show,
        nearest=nearest,
        branches=branches,
        unrepresented=unrepresented,
        highlighter=highlighter,
    )


def counted_all(engine: SearchEngine, page: Page, request: SearchRequest) -> Page:
    """Return a page with the exact number of all matches of a request."""
    if page.count_is_exact and request.from_ordinal is None:
        return page.with_count(page.count)
    asked, scope = request.query, request.scope
    counts = engine.counts([(asked, request.granularity)], scope, request.deadline, exact=True)
    return page.with_count(counts[0])


def documents_with(engine: SearchEngine, request: SearchRequest) -> int | None:
    """Count the documents with a chunk that matches a request."""
    condition = unweighted(condition_of(request.query))
    within = joined(request.scope, Scope((condition,)))
    counted = FieldsRequest((DOC_ID,), 0, within, deadline=request.deadline)
    return engine.field_values(counted).fields[0].distinct


def join_sentences(sentences: Sequence[str], shown: Sequence[int]) -> str:
    """Return the shown sentences joined by blanks, with ``...`` at each gap."""
    pieces: list[str] = []
    expected = 0
    for number in shown:
        if number != expected:
            pieces.append("...")
        pieces.append(sentences[number].strip())
        expected = number + 1
    if shown and expected != len(sentences):
        pieces.append("...")
    return " ".join(piece for piece in pieces if piece)


def check_page(top_k: int, offset: int) -> None:
    """Raise ArgumentError for a page out of bounds."""
    if not 1 <= top_k <= MAX_TOP_K:
        do = "Ask for the rest with offset." if top_k > MAX_TOP_K else ""
        raise ArgumentError(f"top_k is {top_k}.", allowed=f"1 to {MAX_TOP_K:,}", do=do)
    if offset < 0 or offset + top_k > MAX_REACH:
        do = "Narrow the query instead of paging further." if offset > 0 else ""
        raise ArgumentError(
            f"offset is {offset} with top_k {top_k}.",
            allowed=f"offset from 0, and offset + top_k at most {MAX_REACH:,}",
            do=do,
        )


def check_per_document(per_document: int | None) -> None:
    """Raise ArgumentError for a limit of passages of a document that is not allowed."""
    if per_document is not None and not 1 <= per_document <= MAX_TOP_K:
        raise ArgumentError(
            f"per_document is {per_document}.",
            allowed=f"1 to {MAX_TOP_K:,}",
            do="Leave it out for any number of passages of a document.",
        )


# The scope of one search: that of the index, narrowed by the filter of the call, and for a
# search by vectors by its condition.


def narrowed(scope: Scope | None, filter: str | None, schema: Schema) -> tuple[Scope | None, str]:
    """Return the scope of the documents that both the scope and the filter admit, and the words for
    the filter, such as `` within lang:en``.

    The filter can narrow the scope and never widen it. Raises QueryError for the filter.
    """
    if filter is None:
        return scope, ""
    own = parse_filter(filter, schema)
    return joined(scope, own), f" within {own}"


class Conditions(NamedTuple):
    """What passages have to satisfy to be ranked: the scope, in words such as `` where a AND b
    within lang:en``; with a condition ``where``, its canonical text, and notes on it."""

    scope: Scope | None
    words: str
    where: str = ""
    notes: tuple[str, ...] = ()


def conditions(
    scope: Scope | None, filter: str | None, where: str | None, schema: Schema
) -> Conditions:
    """Join the scope of an index, the filter of a call, and its condition ``where``, a logical
    query. Raises QueryError for the filter and the condition."""
    scope, within = narrowed(scope, filter, schema)
    if where is None:
        return Conditions(scope, within)
    parsed = parse_where(where, schema)
    both = joined(scope, Scope((parsed.tree,)))
    return Conditions(both, f" where {parsed.understood}{within}", parsed.understood, parsed.notes)


def joined(first: Scope | None, second: Scope | None) -> Scope | None:
    """Return the scope of the documents that both scopes admit."""
    if first is None or second is None:
        return first or second
    return Scope((*first.include, *second.include), (*first.exclude, *second.exclude))

"""The result of a search: its passages in order, with notes and totals."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import field
from typing import Any

from arag_search.corpus import kind_of
from arag_search.engines.base import Page
from arag_search.engines.hits import Hit
from arag_search.query.problems import NOTE_UNMARKED
from arag_search.query.regexes import stopwatch
from arag_search.search.advice.told import Absence, ClauseCount, Feedback
from arag_search.search.asked import Keywords, Meaning, Search
from arag_search.search.reading.snippets import Highlighter, Highlights
from arag_search.search.standing import Standing
from arag_search.search.state import IndexState
from arag_search.system.value_class import value
from arag_search.tokens import count_tokens

CORPUS_ORDER = "corpus order"
"""The ``sort`` of a list of more than MAX_REACH passages."""


@value
class SearchResult:
    """The hits of a search on a page, with their total, notes and advice.

    ``asked``: the arguments of the search; ``understood``: the query as the program reads it.
    ``total``: how many passages match, or sentences at sentence granularity. None for a search by
    vectors, which ranks all passages.
    ``total_is_exact``: False if the total is 1,000 and means "more than 1,000".
    ``passages``: the exact number of passages that can be paged through; None if it is unknown. A
    list in corpus order knows it at its end.
    ``sort``: the order of the hits, such as ``year:desc``; empty for the score.
    ``feedback``: why a logical query matched nothing.
    ``first_page``: the size of page one if alternatives were moved onto it, 0 if not. Later pages
    must be asked with the same size.
    ``standing``: how the index stands beside its sources; None if nothing is known. With a scope or
    a filter, it has no name and no number of files.
    ``highlighter``: finds the matches of the query in a text, for ``highlights``.

    Beside the hits, if they were asked for:

    ``branches``: the counts of parts of the query alone.
    ``absent``: the words that no passage of a rare name has.
    ``unrepresented``: the best passages of alternatives that have none among the hits.
    ``nearest``: the passages that miss one condition of a query that matched nothing, or the fewest
    of an alternative.

    Example: SearchResult(asked=Search("opera"), understood="opera", hits=(...), total=2)
    """

    asked: Search | Keywords | Meaning
    understood: str
    hits: tuple[Hit, ...] = ()
    notes: tuple[str, ...] = ()
    total: int | None = None
    total_is_exact: bool = True
    passages: int | None = None
    sort: str = ""
    feedback: Feedback | None = None
    nearest: tuple[Hit, ...] = ()
    branches: tuple[ClauseCount, ...] = ()
    unrepresented: tuple[Hit, ...] = ()
    absent: tuple[Absence, ...] = ()
    first_page: int = field(default=0, repr=False)
    milliseconds: float = 0.0
    standing: Standing | None = field(default=None, compare=False, repr=False)
    highlighter: Highlighter | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        state: IndexState,
        asked: Search | Keywords | Meaning,
        understood: str,
        hits: Iterable[Hit],
        notes: Iterable[str],
        started: float,
        page: Page | None = None,
        passages: int | None = None,
        **more: Any,
    ) -> SearchResult:
        """Return a result over a state of an index.

        ``started`` is the time of ``time.perf_counter`` at which the search began. The totals come
        from the ``page`` of an engine; without one, only ``passages`` is known.
        """
        totals = (None, True, passages) if page is None else (*page.total.told, page.passages)
        if stopwatch().has_stopped:
            notes = (*notes, NOTE_UNMARKED)
        standing = state.standing
        if standing is not None and asked.filter:
            standing = standing.within_scope()
        taken = (time.perf_counter() - started) * 1000
        of_all: dict[str, Any] = {"milliseconds": taken, "standing": standing, **more}
        return cls(asked, understood, tuple(hits), tuple(notes), *totals, **of_all)

    @property
    def query(self) -> str:
        """The query as it was written; the keywords in quotation marks."""
        return self.asked.query

    @property
    def offset(self) -> int:
        """The number of hits on the pages before."""
        return self.asked.offset

    @property
    def per_document(self) -> int | None:
        """The limit of passages of a document, if there is one."""
        return self.asked.per_document if isinstance(self.asked, Search) else None

    @property
    def total_text(self) -> str:
        """The total in words: ``27``, ``more than 1,000``, or ``unknown`` if there is none."""
        if self.total is None:
            return "unknown"
        return f"{self.total:,}" if self.total_is_exact else f"more than {self.total:,}"

    @property
    def retrieved_tokens(self) -> int:
        """The o200k tokens of corpus text in the result: of titles and snippets."""
        return sum(count_tokens(hit.title) + count_tokens(hit.snippet) for hit in self.hits)

    def first_match(self, text: str, doc_id: str) -> int:
        """Return where the first match of the query in a text of a document begins; 0 if there is
        none. Matches as typed go before others."""
        if self.highlighter is None:
            return 0
        ends = (len(text),)
        marks = self.highlighter.highlights("", text, ends, (0,), kind_of(doc_id)).snippet
        mark = self.highlighter.typed_mark(text, marks)
        return 0 if mark is None else mark[0]

    def typed_in(self, hit: Hit) -> int:
        """Return how many words and phrases of the query a hit has as they were typed. Words that
        the query wants only as written do not count."""
        return 0 if self.highlighter is None else self.highlighter.typed_in(hit)

    def highlights(self, hit: Hit) -> Highlights | None:
        """Return where the words of the query occur in the title and the snippet of a hit. The
        result is None unless the search was logical or by keywords. A phrase is one mark, if all of
        it is shown; a loose phrase has a mark on each word."""
        if self.highlighter is None:
            return None
        return self.highlighter.highlights(
            hit.title, hit.content, hit.sentence_ends, hit.sentences, kind_of(hit.doc_id)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result in types of JSON, as ``arag-search search --json`` prints it.

        Hits are as in ``Hit.to_dict``, with their ``highlights`` where there are any. The
        keys and their order are stable; new keys may be added. ``problems`` is always empty,
        because a query with problems raises QueryError instead.
        """
        counts = [{"clause": part.clause, "count": part.count} for part in self.branches]
        beside = {
            "nearest": [{**near.to_dict(), "lacks": list(near.lacks)} for near in self.nearest],
            "branches": counts,
            "unrepresented": [
                {**best.to_dict(), "branch": best.branch} for best in self.unrepresented
            ],
        }
        return {
            "query": self.query,
            "understood": self.understood,
            "total": self.total,
            "total_is_exact": self.total_is_exact,
            "total_text": self.total_text,
            "total_unit": self.asked.unit,
            "offset": self.offset,
            **({"documents": self.passages} if self.asked.form.of_documents else {}),
            **({"sort": self.sort} if self.sort else {}),
            **({} if self.per_document is None else {"per_document": self.per_document}),
            "hits": [self._hit_dict(hit) for hit in self.hits],
            "notes": list(self.notes),
            "problems": [],
            "feedback": None if self.feedback is None else self.feedback.to_dict(),
            **{name: values for name, values in beside.items() if values},
            "retrieved_tokens": self.retrieved_tokens,
            "milliseconds": round(self.milliseconds, 3),
            "state": None if self.standing is None else self.standing.to_dict(),
        }

    def _hit_dict(self, hit: Hit) -> dict[str, Any]:
        highlights = self.highlights(hit)
        marks = {} if highlights is None else {"highlights": highlights.to_dict()}
        return {**hit.to_dict(), **marks}

"""The result of a search: its passages in order, with notes and totals."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import field
from typing import Any

from arag_search.engines.base import Page
from arag_search.engines.hits import Hit
from arag_search.query.forms import is_code
from arag_search.query.problems import NOTE_UNMARKED
from arag_search.query.regexes import stopwatch
from arag_search.search.advice.told import ClauseCount, Feedback
from arag_search.search.asked import Keywords, Meaning, Search
from arag_search.search.snippets import Highlighter, Highlights
from arag_search.search.standing import Standing
from arag_search.search.state import IndexState
from arag_search.system.values import value
from arag_search.tokens import count_tokens

CORPUS_ORDER = "corpus order"
"""The ``sort`` of a list of more than MAX_REACH passages."""


@value
class SearchResult:
    """The passages of a search, with their total and notes.

    ``total`` is exact if ``total_is_exact``, as it is for a single word, prefix or metadata clause;
    otherwise it is 1,000 and means "more than 1,000", as ``total_text`` says. It is None for
    searches by vectors, which rank all passages and match none. ``passages`` is the exact number of
    passages that can be paged through if it is known, else None; in a list in corpus order, None
    until its end. ``asked`` is what was asked for. ``feedback`` is present if nothing matched a
    logical query. ``sort`` is the field that ordered the passages, such as ``year:desc``, empty for
    the score.
    ``nearest`` are the passages that miss the fewest conditions of a logical query that matched
    nothing, or of an alternative of an OR that did, ``branches`` the counts of its parts alone, and
    ``unrepresented`` the best passages of branches that have none among the hits; if they were
    requested. None of these are hits.
    ``first_page`` is the size of a first page on which an alternative had no place by its score, on
    which the order of later pages depends; 0 otherwise, or if no such places were asked for.
    ``standing`` is how the index stands beside its sources, None if nothing is known; with a scope
    or a filter, it has no name and no number of files.
    ``highlighter`` knows what a logical or keyword search matches; ``highlights`` asks it.
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
        """Return a result over a state of an index, with the totals of an engine's page, if there
        is one, timed since ``started`` (of ``time.perf_counter``)."""
        totals = (None, True, passages)
        if page is not None:
            totals = (page.total, page.total_is_exact, page.passages)
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
        """The number of hits before those of the page."""
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
        """Return where the first match of the query in a text of a document begins, of those as
        typed if there are some; 0 if it has none."""
        if self.highlighter is None:
            return 0
        ends = (len(text),)
        marks = self.highlighter.highlights("", text, ends, (0,), is_code(doc_id)).snippet
        mark = self.highlighter.typed_mark(text, marks)
        return 0 if mark is None else mark[0]

    def typed_in(self, hit: Hit) -> int:
        """Return how many words and phrases of the query that match in any form a hit has as they
        were typed."""
        return 0 if self.highlighter is None else self.highlighter.typed_in(hit)

    def highlights(self, hit: Hit) -> Highlights | None:
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

"""What must be asked of the index before a plan can be run: the kinds of lookups, and what a query
that has some may match."""

from __future__ import annotations

from bisect import bisect_right

from arag_search.plan.clauses import Clause, Passage, all_of, any_of, has_lookups, wanted
from arag_search.query.fields import CONTENT, TITLE
from arag_search.query.regexes import Stopwatch, is_found, stopwatch
from arag_search.query.tree import TextField
from arag_search.system.values import value


@value
class RegexLookup:
    """A regular expression in title, content or (None) either."""

    pattern: str
    ignore_case: bool
    field: TextField

    def matches(self, passage: Passage, watch: Stopwatch | None = None) -> bool:
        """See ``Lookup``."""
        watch = watch or stopwatch()
        return any(
            is_found(self.pattern, self.ignore_case, text, watch)
            for name, text in ((TITLE, passage.title), (CONTENT, passage.content or ""))
            if self.field in (None, name)
        )

    def sentences(self, passage: Passage) -> set[int]:
        """See ``Lookup``: those in which a match begins."""
        if self.field == TITLE:
            return set()
        starts = (start for start, _ in self.places(passage.content or ""))
        return {bisect_right(passage.sentence_ends, start) for start in starts}

    def places(self, text: str) -> list[tuple[int, int]]:
        """See ``Lookup``."""
        return stopwatch().kept_places(self.pattern, self.ignore_case, text)


def candidates(clause: Clause) -> Clause | None:
    """Return a condition that everything meets that a clause may match; None if that is everything.

    A lookup is taken as true.
    """
    if clause.lookup is not None:
        return None
    match clause.kind:
        case "all":
            parts = [candidates(part) for part in clause.having("wanted")]
            kept = [part for part in parts if part is not None]
            excluded = [part for part in clause.having("excluded") if not has_lookups(part)]
            return all_of([*kept, *excluded]) if kept else None
        case "any":
            parts = [candidates(part) for part in clause.parts]
            return None if None in parts else any_of([part for part in parts if part is not None])
        case _:
            return wanted(clause)

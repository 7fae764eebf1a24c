"""What must be asked of the index before a plan can be run: what a query with patterns may match,
and which of it does."""

from __future__ import annotations

from arag_search.plan.algebra import Lookup
from arag_search.plan.clauses import Clause, all_of, any_of, has_patterns, wanted
from arag_search.plan.lower import words_clause
from arag_search.query.fields import CONTENT, TITLE
from arag_search.query.regexes import MAX_QUERY_S, Stopwatch, certain_words, is_found
from arag_search.query.tree import EXACT_MARK


def candidates(clause: Clause) -> Clause | None:
    """Return a condition that everything meets that a clause may match; None if that is everything.

    A pattern is replaced by the words that each of its matches has, or taken as true.
    """
    if (lookup := clause.lookup) is not None:
        certain = certain_words(lookup.pattern, lookup.ignore_case)
        exact = [words_clause(EXACT_MARK + word, "", lookup.field) for word in certain]
        return all_of(exact) if exact else None
    match clause.kind:
        case "all":
            parts = [candidates(part) for part in clause.having("wanted")]
            kept = [part for part in parts if part is not None]
            excluded = [part for part in clause.having("excluded") if not has_patterns(part)]
            return all_of([*kept, *excluded]) if kept else None
        case "any":
            parts = [candidates(part) for part in clause.parts]
            return None if None in parts else any_of([part for part in parts if part is not None])
        case _:
            return wanted(clause)


def matches(lookup: Lookup, title: str, content: str, watch: Stopwatch | None = None) -> bool:
    """Return whether a pattern matches in a title or a content. Raises SlowPatternError."""
    watch = watch or Stopwatch(MAX_QUERY_S)
    return any(
        is_found(lookup.pattern, lookup.ignore_case, text, watch)
        for name, text in ((TITLE, title), (CONTENT, content))
        if lookup.field in (None, name)
    )

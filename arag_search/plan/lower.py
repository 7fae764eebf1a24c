"""Query -> plan: fields, normal forms and types of what was typed. The only place, beside printing,
that knows all nodes of a query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from arag_search.plan.clauses import (
    ROLES,
    Clause,
    ClauseKind,
    Interval,
    ResolvedPlan,
    all_clauses,
    any_clause,
    value_of,
)
from arag_search.plan.lookup import RegexLookup
from arag_search.query.analysis import spellings_of
from arag_search.query.forms import normal_spellings
from arag_search.query.tree import (
    EXACT_MARK,
    And,
    Fuzzy,
    KeywordEquals,
    Modifier,
    Node,
    Or,
    Phrase,
    Prefix,
    Range,
    Regex,
    Term,
    render,
)


def lower(tree: Node, language: str = "") -> Clause:
    """Return the clauses of a query. Its words match in their normal forms in ``language`` or, if
    that is empty, as they are written."""
    return _Lowering(language).clause(tree)


def lower_scope(parts: Iterable[Node | Modifier], language: str = "") -> ResolvedPlan:
    """Return the scope of the parts of a filter, which may be exclusions alone. They have no
    lookups."""
    return ResolvedPlan(all_clauses(list(map(_Lowering(language).part, parts))))


class _Lowering:
    """The clauses of a query whose lookups are numbered, in the order typed."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._lookups = 0

    def part(self, node: Node | Modifier) -> Clause:
        if isinstance(node, Modifier):
            clause = self.clause(node.child)
            return replace(clause, role=ROLES[node.operator.word], factor=node.factor)
        return self.clause(node)

    def clause(self, node: Node) -> Clause:
        match node:
            case Term():
                return _words(node, "word", self._language)
            case Phrase():
                is_exact = node.text.startswith(EXACT_MARK)
                return _words(node, "phrase", "" if is_exact else self._language, node.slop)
            case And():
                return all_clauses([self.part(child) for child in node.children], node.weight)
            case Or():
                return any_clause([self.clause(child) for child in node.children], node.weight)
            case Prefix():
                return self._spread(node, "prefix", 0)
            case Fuzzy():
                return self._spread(node, "fuzzy", node.edits)
            case Regex():
                number, self._lookups = self._lookups, self._lookups + 1
                pattern = (node.pattern, node.ignore_case, node.field)
                lookup = RegexLookup(*pattern, number, node.start)
                return Clause(render(node), "lookup", field=node.field, lookup=lookup)
            case KeywordEquals():
                return value_of(node.field, node.value)
            case Range():
                interval = Interval(node.column, node.kind, *node.interval)
                return Clause(render(node), "range", field=node.field, interval=interval)
            case _:
                assert_never(node)

    def _spread(self, node: Prefix | Fuzzy, kind: ClauseKind, edits: int) -> Clause:
        spellings = tuple([words for words in spellings_of(node.text) if len(words) == 1])
        return Clause(
            render(node), kind, field=node.field, typed=node.text, words=spellings,
            language=self._language, weight=node.weight, edits=edits,
        )  # fmt: skip


def _words(node: Term | Phrase, kind: ClauseKind, language: str, slop: int = 0) -> Clause:
    """Return the clause of a word, or of words that stand side by side."""
    text = node.text
    spellings = normal_spellings(text, language) if language else spellings_of(text)
    return Clause(
        render(node), kind, field=node.field, typed=text, words=spellings, language=language,
        weight=node.weight, slop=slop,
    )  # fmt: skip

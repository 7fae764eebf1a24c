"""Which words an index has: how many passages have each, in which written forms, and the nearest
words where it occurs nowhere.

All numbers count passages in scope, exactly. Written forms and nearest words are taken from
passages in scope, so that none is shown that a scope hides; forms from the first passages in corpus
order, so that every engine has the same ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import TypeGuard

from arag_search.engines.base import Deadline, Granularity, Page, SearchEngine, SearchRequest
from arag_search.errors import ArgumentError, QueryTimeoutError
from arag_search.query import analysis
from arag_search.query.fields import CONTENT, TITLE, Schema
from arag_search.query.matching import Words, patterns_of
from arag_search.query.operators import SPELLED
from arag_search.query.parser import ParsedQuery, parse
from arag_search.query.printing import quoted
from arag_search.query.problems import QueryError
from arag_search.query.tree import (
    EXACT_MARK,
    Fuzzy,
    Node,
    Not,
    Phrase,
    Prefix,
    Scope,
    Term,
    TextLeaf,
    all_of,
    any_of,
    condition_of,
)  # fmt: skip
from arag_search.search.patterns import with_matches
from arag_search.search.spelling import nearest_words

MAX_WORDS = 70
"""Fifty words, and twenty pairs of them."""
MAX_FORMS = 6
_READ = 400
"""The passages that are read for the forms of all words together."""

_Word = Term | Phrase | Prefix | Fuzzy


@dataclass(frozen=True, slots=True)
class WordSummary:
    """A word, phrase or query, as it was understood, and how many ``passages`` have it.

    ``title`` and ``text`` count those that have it there; they are None if it names a field or has
    several clauses. ``forms`` are the written words that it matches, the most frequent of those in
    the passages that were read; ``other_forms`` counts the passages that have none of these.
    ``nearest`` are words like one that occurs nowhere.
    """

    word: str
    passages: int
    title: int | None = None
    text: int | None = None
    forms: Mapping[str, int] = field(default_factory=dict[str, int])
    other_forms: int = 0
    nearest: Mapping[str, int] = field(default_factory=dict[str, int])


def words_of(
    engine: SearchEngine,
    words: Sequence[str],
    schema: Schema,
    scope: Scope | None,
    deadline: Deadline | None,
) -> tuple[WordSummary, ...]:
    """Count words, phrases and queries in one round trip, and in further ones their forms and the
    nearest words. Raises QueryError, ArgumentError for their number, and QueryTimeoutError."""
    if not 1 <= len(words) <= MAX_WORDS:
        raise ArgumentError(f"There are {len(words)} words.", allowed=f"1 to {MAX_WORDS}")
    parsed = _parsed(words, schema)
    trees = [
        with_matches(condition_of(query.tree), engine, "chunk", scope, deadline) for query in parsed
    ]
    in_fields: dict[Node, list[Node]] = {
        tree: [replace(tree, field=TITLE), replace(tree, field=CONTENT)]
        for tree in trees
        if isinstance(tree, TextLeaf) and tree.field is None
    }
    expanded = [tree for tree in dict.fromkeys(trees) if _is_expanded(tree)]
    request = SearchRequest(trees[0], scope=scope, deadline=deadline, from_ordinal=0)
    reads = [replace(request, query=tree, top_k=_READ // len(expanded)) for tree in expanded]
    asked = _of_chunks([*trees, *chain(*in_fields.values())])
    numbers, pages = engine.counts_and_pages(asked, reads, scope, deadline, exact=True)
    counts = dict(zip((node for node, _ in asked), numbers, strict=True))
    forms = _forms(engine, request, dict(zip(expanded, pages, strict=True)))
    nowhere = [tree for tree in trees if isinstance(tree, Term) and not counts[tree]]
    try:
        nearest = nearest_words(engine, request, nowhere, exact=True)
    except QueryTimeoutError:  # the counts were in time
        nearest = {}
    summaries: list[WordSummary] = []
    for query, tree in zip(parsed, trees, strict=True):
        title, text = [counts[leaf] for leaf in in_fields.get(tree, ())] or (None, None)
        near = nearest.get(tree, {}) if isinstance(tree, Term) else {}
        written = forms.get(tree, ({}, 0))
        summaries.append(WordSummary(query.understood, counts[tree], title, text, *written, near))
    return tuple(summaries)


def _parsed(words: Sequence[str], schema: Schema) -> list[ParsedQuery]:
    """Parse all words; those of a phrase need no quotes. Raises QueryError with all problems."""
    parsed: list[ParsedQuery] = []
    errors: list[QueryError] = []
    for word in words:
        parts = word.split()
        is_plain = all(part.isalnum() and part not in SPELLED for part in parts)
        try:
            parsed.append(parse(quoted(word) if is_plain and len(parts) > 1 else word, schema))
        except QueryError as error:
            errors.append(error)
    if errors:
        problems = tuple(problem for error in errors for problem in error.problems)
        raise QueryError(words[0], problems, errors[0].mended if len(errors) == 1 else None)
    return parsed


def _of_chunks(nodes: Sequence[Node]) -> list[tuple[Node, Granularity]]:
    return [(node, "chunk") for node in nodes]


def _is_expanded(tree: Node) -> TypeGuard[_Word]:
    """Return whether a tree is one word that several written words match."""
    if isinstance(tree, Term | Phrase):
        return bool(tree.language) and all(len(spelling) == 1 for spelling in tree.spellings)
    return isinstance(tree, Prefix | Fuzzy)


def _forms(
    engine: SearchEngine, request: SearchRequest, pages: Mapping[_Word, Page]
) -> dict[Node, tuple[dict[str, int], int]]:
    """Return the written words of each leaf in the passages of its page, most frequent first, and
    how many passages have only others. All are counted in one round trip."""
    exact: dict[_Word, list[Phrase]] = {}
    for leaf, page in pages.items():
        patterns, seen = patterns_of(leaf), Counter[str]()
        for hit in page.hits:
            texts = [hit.title] * (leaf.field != CONTENT)
            texts += [hit.content or ""] * (leaf.field != TITLE)
            seen.update({term for text in texts for term in analysis.terms(text)})
        ranked = sorted(seen, key=lambda term: (-seen[term], term))
        matching = (term for term in ranked if any(map(Words(term).match, patterns)))
        phrases = (Phrase(EXACT_MARK + term, field=leaf.field) for term in matching)
        exact[leaf] = list(islice({form.spellings: form for form in phrases}.values(), MAX_FORMS))
    nodes: list[Node] = list(chain(*exact.values()))
    nodes += [all_of(leaf, Not(any_of(*phrases))) for leaf, phrases in exact.items() if phrases]
    asked, scope = _of_chunks(nodes), request.scope
    numbers = iter(engine.counts(asked, scope, request.deadline, exact=True) if asked else ())
    counted = {
        leaf: {form.text.removeprefix(EXACT_MARK): next(numbers) for form in phrases}
        for leaf, phrases in exact.items()
    }
    return {
        leaf: (dict(sorted(words.items(), key=lambda form: -form[1])), next(numbers))
        for leaf, words in counted.items()
        if words
    }

"""The order of passages of code: rules that raise or lower the scores of the first hits.

BM25 prefers short passages, so that an import comes before the definition. The rules read only what
hits carry: every engine has the same order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from arag_search.corpus import is_code
from arag_search.engines.base import Page, SearchEngine, SearchRequest
from arag_search.engines.hits import Hit, ScoreRule
from arag_search.plan.clauses import Clause, leaf_clauses, wanted_leaves
from arag_search.query.forms import normal_terms, parts_of
from arag_search.search.asked import Search
from arag_search.search.state import IndexState

RULES = ("definition", "words", "file", "together", "aside", "spread")
"""The names of the rules. "file" and "together" are for queries whose name no hit defines."""

FIRST = 30
"""The hits that are ordered, whatever the page, so that pages continue each other."""

DEFINES = 2.0
"""The factor of a passage that defines a name, if the query is this name, or names alone."""
DEFINES_WORDS = 1.5
"""The factor of a passage that defines a name of just the words of the query. It applies if no hit
defines the name as it is written."""
FILE_NAMED = 0.15
"""Added to 1 if the words of the name of a file are in the query; if some of them are, a share."""
FILE_HIT = 0.05
"""Added to 1 for each other hit of the file, up to MAX_FILE_HITS."""
MAX_FILE_HITS = 3
ASIDE = 0.9
"""The factor of tests, examples and legacy code, unless the query has such a word or a path."""
FOLLOWS = 0.85
"""The factor of the second hit of a file; the hits behind it have its square."""

_DATA = frozenset(("css", "ipynb", "scss", "tf", "toml", "yaml", "yml"))
"""Endings of files that are read like code, and define nothing."""
_TYPE = "type"
_PATHS = ("doc_id", "file", "path")
_DEFINED = re.compile(r"(?!impl )(?:.*[^\w$])?([\w$]+)[?!`]?(?:\(\))?")
_LAST = re.compile(r"[\w$]+$")
_ASIDE = re.compile(
    r"(?:^|/)(?:(?:__)?(?:tests?|examples?|samples?|legacy|deprecated)(?:__)?/|conftest\.py$"
    r"|test_[^/]*\.py$)|[._](?:test|spec)\.\w+$"
)
_ASIDE_WORDS = frozenset(
    ("test", "tests", "spec", "example", "examples", "sample", "samples", "legacy", "deprecated")
)


def has_code(state: IndexState) -> bool:
    """Return whether the index may hold code, by the counts of its manifest. Asks no engine."""
    counts = state.manifest.field_counts.get(_TYPE)
    if counts is None or state.manifest.metadata.get(_TYPE) != "keyword":
        return False
    return not counts.is_complete or any(_is_code(f"a.{ending}") for ending in counts.values)


@dataclass(frozen=True, slots=True)
class CodeOrder:
    """The order of the hits of a request: by rules for code if ``by_rules``, else the engine's."""

    request: SearchRequest
    by_rules: bool

    @staticmethod
    def of(state: IndexState, asked: Search, request: SearchRequest) -> CodeOrder:
        """Return the order for a search. Rules apply to passages with their text, by score, in an
        index with code. They do not apply to lists, to PREFER and DEMOTE, or to queries as papers
        have them."""
        is_listed = request.sort or request.per_document or asked.form.is_list
        is_first = request.granularity == "chunk" and request.offset < FIRST and not is_listed
        query = request.query.root
        is_ours = asked.operators and not asked.as_written
        is_ranked = bool(_words_in(query)) and not _has_preferences(query)
        return CodeOrder(request, is_first and is_ours and is_ranked and state.once(has_code))

    @property
    def asked(self) -> SearchRequest:
        """The request to the engine for the page."""
        request = self.request
        top_k = max(FIRST, request.offset + request.top_k)
        return replace(request, top_k=top_k, offset=0) if self.by_rules else request

    def page(self, page: Page) -> Page:
        """Return the page of the request, given the engine's page for ``asked``."""
        if not self.by_rules:
            return page
        offset, end = self.request.offset, self.request.offset + self.request.top_k
        hits = (*ordered(page.hits[:FIRST], self.request.query.root), *page.hits[FIRST:])
        reaches_end = page.passages is not None and end > page.passages
        passages = page.passages if reaches_end else None
        return replace(page, hits=hits[offset:end], passages=passages)

    def searched(self, engine: SearchEngine) -> Page:
        """Search for the page."""
        return self.page(engine.search(self.asked))


def ordered(hits: Sequence[Hit], query: Clause, rules: Sequence[str] = RULES) -> Sequence[Hit]:
    """Return hits by their scores times the factors of the ``rules``; equal scores stay in their
    order. Without code among them, they are the same."""
    if not any(_is_code(hit.doc_id) for hit in hits):
        return hits
    wanted = _Wanted(query)
    defined = [wanted.defined_in(hit) for hit in hits]
    if not any(defined):
        defined = [wanted.worded_in(hit) for hit in hits]
    counts = Counter(hit.doc_id for hit in hits)
    ruled: list[Hit] = []
    for hit, definition in zip(hits, defined, strict=True):
        of_hit = [definition] if definition else []
        if _is_code(hit.doc_id):
            if not any(defined):
                of_hit += wanted.of_file(hit, counts[hit.doc_id] - 1)
            of_hit += wanted.aside(hit)
        ruled.append(_with(hit, [rule for rule in of_hit if rule.name in rules]))
    ruled.sort(key=lambda hit: -hit.score)
    if "spread" not in rules:
        return ruled
    seen: Counter[str] = Counter()
    for at, hit in enumerate(ruled):
        if (before := min(seen[hit.doc_id], 2)) and _is_code(hit.doc_id):
            says = "a better hit of its file comes before it"
            ruled[at] = _with(hit, [ScoreRule("spread", FOLLOWS**before, says)])
        seen[hit.doc_id] += 1
    return sorted(ruled, key=lambda hit: -hit.score)


class _Wanted:
    """The words and names of a query, as the rules see them."""

    def __init__(self, query: Clause) -> None:
        leaves = _words_in(query)
        self._language = next((leaf.language for leaf in leaves), "")
        self._words = _words(" ".join(leaf.typed for leaf in leaves), self._language)
        names = [match[0] for leaf in leaves if (match := _LAST.search(leaf.typed))]
        self._names = names if len(leaves) == 1 or all(map(parts_of, names)) else []
        written = {word for leaf in leaves for word in _words(leaf.typed, "")}
        of_path = any(leaf.field in _PATHS for leaf in leaf_clauses(query))
        self._lowers = not (of_path or written & _ASIDE_WORDS)

    def defined_in(self, hit: Hit) -> ScoreRule | None:
        """Return the rule for a passage that defines a name as the query writes it."""
        names = (name for name in _defined(hit) if name in self._names)
        return next(
            (ScoreRule("definition", DEFINES, f"it defines {name}") for name in names), None
        )

    def worded_in(self, hit: Hit) -> ScoreRule | None:
        """Return the rule for a passage that defines a name with just the words of the query."""
        names = (n for n in _defined(hit) if _words(n, self._language) == self._words)
        says = "it defines {}, which has the words of the query"
        return next((ScoreRule("words", DEFINES_WORDS, says.format(name)) for name in names), None)

    def of_file(self, hit: Hit, others: int) -> Iterator[ScoreRule]:
        """Yield the rules for a file by its name and the number of its other hits."""
        words = _words(hit.doc_id.rpartition("/")[2].rpartition(".")[0], self._language)
        if shared := len(words & self._words):
            factor = 1 + FILE_NAMED * shared / len(words)
            yield ScoreRule("file", factor, "the name of its file has words of the query")
        if others:
            factor = 1 + FILE_HIT * min(others, MAX_FILE_HITS)
            yield ScoreRule("together", factor, "its file has other hits")

    def aside(self, hit: Hit) -> Iterator[ScoreRule]:
        """Yield the rule for tests, examples and legacy code."""
        if self._lowers and _ASIDE.search(hit.doc_id):
            yield ScoreRule("aside", ASIDE, "its path is that of tests, examples or legacy code")


def _with(hit: Hit, rules: Sequence[ScoreRule]) -> Hit:
    score = hit.score
    for rule in rules:
        score *= rule.factor
    return hit._replace(score=score, rules=(*hit.rules, *rules)) if rules else hit


def _has_preferences(clause: Clause) -> bool:
    return clause.role in ("preferred", "demoted") or any(map(_has_preferences, clause.parts))


def _words_in(query: Clause) -> list[Clause]:
    """Return the words and phrases that are scored."""
    return [leaf for leaf in wanted_leaves(query) if leaf.kind in ("word", "phrase")]


def _is_code(doc_id: str) -> bool:
    return is_code(doc_id) and doc_id.rpartition(".")[2].lower() not in _DATA


def _defined(hit: Hit) -> list[str]:
    """Return the names whose definitions begin in a passage, if it is of code."""
    units = hit.outline.units if _is_code(hit.doc_id) else ()
    return [match[1] for unit in units if (match := _DEFINED.match(unit.name))]


@lru_cache(maxsize=10_000)
def _words(name: str, language: str) -> frozenset[str]:
    """Return the words of a name or text, in their normal forms if a language is given."""
    words = [word for piece in name.split() for word in parts_of(piece) or [piece.lower()]]
    return frozenset(normal_terms(" ".join(words), language) if language else words)

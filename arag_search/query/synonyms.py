"""Synonyms of a corpus: words and phrases that stand for each other in queries.

A file has a line for each group (``k8s = kubernetes``, ``tls = ssl = "transport layer security"``
with or without the quotes), blank lines, and comments after ``#`` at the beginning of a line.
A word of a query, or a whole phrase, that is in a group becomes the alternatives of the group,
which the canonical text shows. Exact words (``"=k8s"``), prefixes, fuzzy words, patterns, metadata
and the words within longer phrases stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from arag_search.errors import ConfigError
from arag_search.query.analysis import spellings_of
from arag_search.query.forms import normal_spellings
from arag_search.query.limits import MAX_LEAVES
from arag_search.query.tree import (
    EXACT_MARK,
    And,
    Demote,
    Modifier,
    Node,
    Not,
    Or,
    Phrase,
    Prefer,
    Term,
    any_of,
    leaves,
)

MAX_BYTES = 1 << 20
MAX_IN_GROUP = 10
_MAX_CHARACTERS = 100

Table = Mapping[tuple[str, ...], tuple[str, ...]]
"""The texts of a group by the terms that each of them is searched by."""


@dataclass(frozen=True, slots=True)
class Synonyms:
    """Groups of words and phrases with one meaning, and the line of each in its file."""

    groups: Mapping[int, tuple[str, ...]]

    @staticmethod
    def of_file(path: str | Path) -> Synonyms:
        """Read a file. Raises OSError, and ConfigError with the line of every problem."""
        data = Path(path).read_bytes()
        groups: dict[int, tuple[str, ...]] = {}
        wrong: list[str] = []
        if len(data) > MAX_BYTES:
            wrong.append(f"it has {len(data):,} bytes, and at most {MAX_BYTES:,} are read")
        lines = data[:MAX_BYTES].decode("utf-8-sig", "replace").split("\n")
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if text and not text.startswith("#"):
                words = tuple(word.strip().strip('"').strip() for word in text.split("="))
                wrong += [f"line {number}: {problem}" for problem in _problems(words)]
                groups[number] = words
        read = Synonyms(groups)
        if not wrong:
            wrong = read._repeated("")
        if wrong:
            raise ConfigError(
                f"The file of synonyms has problems: {'; '.join(wrong)}.",
                where=str(path),
                allowed="lines such as k8s = kubernetes, each word in one of them",
            )
        return read

    def table(self, language: str) -> Table:
        """Return the groups for an index in a language, which may be empty. Of words that have one
        form in it, the last counts."""
        return {_terms(word, language): words for words in self.groups.values() for word in words}

    def _repeated(self, language: str) -> list[str]:
        lines: dict[tuple[str, ...], int] = {}
        wrong: list[str] = []
        for number, words in self.groups.items():
            for word in words:
                first = lines.setdefault(_terms(word, language), number)
                if first != number or words.count(word) > 1:
                    wrong.append(f'line {number}: "{word}" is in line {first} already')
        return wrong


def with_synonyms(tree: Node, table: Table, language: str) -> tuple[Node, tuple[str, ...]]:
    """Return a query with the alternatives of its words and phrases, from left to right while it
    has at most MAX_LEAVES words; and the words whose alternatives are left out."""
    expansion = _Expansion(table, language, MAX_LEAVES - len(leaves(tree)))
    return expansion.of(tree), tuple(expansion.left_out)


class _Expansion:
    """A pass over a query, with how many more words it may get."""

    def __init__(self, table: Table, language: str, room: int) -> None:
        self._table = table
        self._language = language
        self._room = room
        self.left_out: list[str] = []

    def of(self, node: Node) -> Node:
        match node:
            case And():
                return replace(node, children=tuple(map(self._child, node.children)))
            case Or():
                return replace(node, children=self._alternatives(node))
            case Term() | Phrase():
                return any_of(*self._group(node, set()))
            case _:
                return node

    def _child(self, child: Node | Modifier) -> Node | Modifier:
        if isinstance(child, Not | Prefer | Demote):
            return replace(child, child=self.of(child.child))
        return self.of(child)

    def _alternatives(self, node: Or) -> tuple[Node, ...]:
        """Return the alternatives with those of their groups, none of them twice."""
        beside = {self._key(child) for child in node.children if isinstance(child, Term | Phrase)}
        children: list[Node] = []
        for child in node.children:
            if isinstance(child, Term | Phrase):
                children += self._group(child, beside)
            else:
                children.append(self.of(child))
        return tuple(children)

    def _key(self, leaf: Term | Phrase) -> tuple[object, ...]:
        return (*_terms(leaf.text, self._language), leaf.field)

    def _group(self, leaf: Term | Phrase, beside: set[tuple[object, ...]]) -> list[Term | Phrase]:
        """Return a leaf and what stands for it, except what is ``beside`` it."""
        is_exact = isinstance(leaf, Phrase) and (leaf.slop or leaf.text.startswith(EXACT_MARK))
        terms = () if is_exact else _terms(leaf.text, self._language)
        others: list[Term | Phrase] = []
        for word in self._table.get(terms, ()):
            other = _leaf(word, leaf)
            if _terms(word, self._language) != terms and self._key(other) not in beside:
                others.append(other)
                beside.add(self._key(other))
        if len(others) > self._room:
            self.left_out.append(leaf.text)
            return [leaf]
        self._room -= len(others)
        return [leaf, *others]


def _leaf(word: str, leaf: Term | Phrase) -> Term | Phrase:
    kind = Phrase if len(spellings_of(word)[0]) > 1 or " " in word else Term
    return kind(word, field=leaf.field, weight=leaf.weight)


def _terms(text: str, language: str) -> tuple[str, ...]:
    spellings = normal_spellings(text, language) if language else spellings_of(text)
    return tuple(spellings[0]) if spellings else ()


def _problems(words: tuple[str, ...]) -> list[str]:
    if len(words) < 2:
        return ["there is no ="]
    if len(words) > MAX_IN_GROUP:
        return [f"{len(words)} words, and at most {MAX_IN_GROUP} are allowed"]
    wrong: list[str] = []
    for word in words:
        if not word or not _terms(word, ""):
            wrong.append(f'"{word}" has nothing to search for')
        elif len(word) > _MAX_CHARACTERS:
            wrong.append(f"a word of {len(word)} characters, and {_MAX_CHARACTERS} are allowed")
        elif "*" in word or '"' in word or "~" in word or "\ufffd" in word:
            wrong.append(f'"{word}" has a sign that no word has')
    return wrong

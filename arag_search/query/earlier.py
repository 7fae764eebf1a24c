"""References to earlier searches of a conversation: ``#3 AND libretto``, ``NOT #3``, ``#3``.

A reference stands for the query of that search, its set and its score, and is read as its text in
parentheses: all limits count it in full, and the line of the query as understood shows it.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from arag_search.query import problems
from arag_search.query.fields import Schema
from arag_search.query.lexer import Lexeme, lex
from arag_search.query.parser import parse
from arag_search.query.printing import OPERATOR_WORDS
from arag_search.query.problems import Problem, QueryError, fill
from arag_search.query.tree import condition_of, unweighted

_REFERENCE = re.compile(r"(?P<signs>[-!]*)#(?P<number>\d{1,9})(?P<weight>\^[\d.]+)?")
_CONDITION = re.compile(r"NOT|DEMOTE(?:\^.*)?")


@dataclass(frozen=True, slots=True)
class EarlierSearch:
    """A search of the conversation: its query as it was understood, its granularity, and the
    fingerprint of the corpus that it ran on."""

    query: str
    granularity: str
    corpus: str


class Expanded(NamedTuple):
    """A query with the earlier queries that it refers to, and notes. ``replaced`` has the offsets
    of each reference in the query as it was written, and of what replaces it here."""

    text: str
    notes: Sequence[str] = ()
    replaced: Sequence[tuple[slice, slice]] = ()

    @contextmanager
    def columns_as_written(self) -> Generator[None]:
        """Give the problems of a QueryError their columns in the query as it was written."""
        try:
            yield
        except QueryError as error:
            places = [replace(p, column=self._written(p.column - 1) + 1) for p in error.problems]
            raise QueryError(error.query, tuple(places), error.mended) from None

    def _written(self, offset: int) -> int:
        for written, here in reversed(self.replaced):
            if offset >= here.start:
                return max(offset - here.stop, 0) + (
                    written.stop if offset >= here.stop else written.start
                )
        return offset


def with_earlier(
    text: str, earlier: Mapping[int, EarlierSearch], granularity: str, corpus: str, schema: Schema
) -> Expanded:
    """Return a query with the earlier queries that it refers to, by number.

    A reference stands alone or at an operator; elsewhere, and with a number that no search has, it
    is a word, with a note. Raises QueryError for a search of another granularity. O(len(text)).
    """
    lexemes = lex(text)
    notes: list[str] = []
    replaced: list[tuple[slice, slice]] = []
    expanded, done = "", 0
    for at, lexeme in enumerate(lexemes):
        match = _REFERENCE.fullmatch(lexeme.raw) if lexeme.kind == "word" else None
        if match is None:
            continue
        search = earlier.get(int(match["number"]))
        before = lexemes[at - 1] if at else None
        is_placed = (match["signs"] or _is_edge(before, "open")) and _is_edge(
            lexemes[at + 1] if at + 1 < len(lexemes) else None, "close"
        )
        if search is None or not is_placed:
            note = problems.NOTE_NO_SEARCH if search is None else problems.NOTE_NOT_ALONE
            notes.append(fill(note, piece=lexeme.raw, last=max(earlier)))
            continue
        if search.granularity != granularity:
            message = fill(problems.OTHER_GRANULARITY, granularity=search.granularity)
            raise QueryError(text, (Problem(lexeme.start + 1, lexeme.raw, message),), None)
        if search.corpus != corpus:
            notes.append(fill(problems.NOTE_ANEW, piece=lexeme.raw))
        is_condition = match["signs"] or (before and _CONDITION.fullmatch(before.raw))
        query = _condition(search.query, schema) if is_condition else search.query
        weight = match["weight"] or ""
        query = f"({query}){weight}" if weight else query
        expanded += text[done : lexeme.start] + match["signs"]
        here = slice(len(expanded), len(expanded) + len(query))
        replaced.append((slice(lexeme.start + len(match["signs"]), lexeme.end), here))
        expanded += query
        done = lexeme.end
    return Expanded(expanded + text[done:], notes, replaced)


def _is_edge(lexeme: Lexeme | None, group: str) -> bool:
    """Return whether a clause ends beside a lexeme: an operator, the parenthesis, or nothing."""
    if lexeme is None or lexeme.kind == group:
        return True
    return lexeme.kind == "word" and lexeme.raw.partition("^")[0] in OPERATOR_WORDS


def _condition(query: str, schema: Schema) -> str:
    """Return what a query matches, without what has no effect under a NOT or a DEMOTE."""
    return str(unweighted(condition_of(parse(query, schema).tree)))

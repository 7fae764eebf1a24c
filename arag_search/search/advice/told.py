"""What advice tells, in words and in types of JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

from arag_search.engines.base import MAX_TOTAL, ValueCount
from arag_search.engines.hits import Hit
from arag_search.plan.clauses import Clause
from arag_search.query.printing import quoted
from arag_search.query.tree import EXACT_MARK
from arag_search.system.progress import counted

MAX_RARE = 20
"""The most passages of a rare name."""
_MAX_SHOWN_CHARACTERS = 80
_CONTROL = re.compile(r"[\s\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class MissingValue:
    """A metadata clause that no passage in scope satisfies, and the values that there are.

    ``passages``: the number of passages with any value of the field.
    ``near``: values of a keyword field that resemble the wanted one; if none does, the most
    frequent ones.
    ``resembling``: whether ``near`` resemble the wanted value.
    ``least``, ``greatest``: the ends of the values of a number or date.
    ``meant``: the only value that differs from the wanted one just in case or in slashes at the
    ends; empty if there is none.

    Example: lang has no value "eng"; nearest: "en" (3 passages)
    """

    clause: str
    field: str
    wanted: str
    passages: int
    near: tuple[ValueCount, ...] = ()
    resembling: bool = False
    least: str | None = None
    greatest: str | None = None
    _: KW_ONLY
    meant: str = ""

    def note(self) -> str:
        """Return the note that the value that is meant was searched."""
        return f"{self.field} has no value {self.wanted}; {quoted_value(self.meant)} was searched."

    def __str__(self) -> str:
        if not self.passages:
            return f"no passage has a value of {self.field}"
        missing = f"{self.field} has no value {self.wanted}"
        if self.near:
            near = ", ".join(map(value_text, self.near))
            return f"{missing}; {'nearest' if self.resembling else 'most frequent'}: {near}"
        if self.least is None:
            return missing
        if self.least == self.greatest:
            return f"{missing}; only value: {self.least}"
        return f"{missing}; values: {self.least} to {self.greatest}"

    def to_dict(self) -> dict[str, Any]:
        """Return the clause and the values in types of JSON, with the ``text`` in words."""
        return {
            "clause": self.clause,
            "field": self.field,
            "text": str(self),
            "nearest": values_json(self.near if self.resembling else ()),
            "least": self.least,
            "greatest": self.greatest,
        }


def values_json(counts: Sequence[ValueCount]) -> list[dict[str, Any]]:
    """Return values of a keyword field and their numbers of passages in types of JSON."""
    return [{"value": count.value, "passages": count.chunks} for count in counts]


def value_text(count: ValueCount) -> str:
    """Return a value in quotes, on one line and shortened, with its number of passages."""
    shown = quoted_value(count.value)
    if count.chunks is None:
        return shown
    return f"{shown} ({counted(count.chunks, 'passage')})"


def quoted_value(value: str) -> str:
    """Return a value in quotes, on one line and shortened."""
    line = _CONTROL.sub(" ", value)
    if len(line) > _MAX_SHOWN_CHARACTERS:
        line = f"{line[: _MAX_SHOWN_CHARACTERS - 3]}..."
    return quoted(line)


@dataclass(frozen=True, slots=True)
class ClauseCount:
    """A part of a query and how many passages match it alone.

    ``count``: above MAX_TOTAL, it means "more than 1,000".
    ``leaf``: the part itself, if it is a leaf.
    ``excluded``: whether the query excludes it.
    ``titles``: the titles of matches that are not shown, by their ids, if they are few.
    ``matches``: the ids of the matches that are known.
    ``lacks``: if nothing matches the part, the conditions that the passage nearest to it misses.

    Example: "antonio vivaldi" 27
    """

    clause: str
    count: int
    leaf: Clause | None
    excluded: bool = False
    titles: Mapping[str, str] = field(default_factory=dict[str, str])
    matches: frozenset[str] = frozenset()
    lacks: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.leaf and not self.count:
            return f"{self.clause} occurs nowhere"
        excluded = " (excluded)" if self.excluded else ""
        return f"{self.clause} {count_text(self.count)}{excluded}"


class Absence(NamedTuple):
    """A rare name of a query, its number of passages, and words of the query that none has.

    Example: "antonio vivaldi": 5 passages, died, buried in none.
    """

    name: str
    passages: int
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}: {counted(self.passages, 'passage')}, {', '.join(self.words)} in none."


@dataclass(frozen=True, slots=True)
class Feedback:
    """The counts of the parts of a query that matched nothing.

    ``alone``: the counts of the clauses at the top, then of the leaves in these.
    ``without``: the counts of a query of more than two clauses without one of them, if they are
    above 0.
    ``in_chunks``: at sentence granularity, the count of the query in whole passages; else None.
    ``missing``: the metadata clauses without a match, each with the values that there are.

    Example: Alone: opera 27; librettto occurs nowhere.
    """

    alone: tuple[ClauseCount, ...]
    without: tuple[ClauseCount, ...]
    in_chunks: int | None = None
    missing: tuple[MissingValue, ...] = ()

    def __str__(self) -> str:
        explained = {value.clause for value in self.missing}
        alone = [clause for clause in self.alone if clause.clause not in explained]
        sentences = [f"Alone: {'; '.join(map(str, alone))}"] if alone else []
        sentences += [f"Without {rest.clause}: {count_text(rest.count)}" for rest in self.without]
        if self.in_chunks is not None:
            sentences.append(f"With granularity chunk: {count_text(self.in_chunks)}")
        sentences += map(str, self.missing)
        return f"{'. '.join(sentences)}."

    def line(self) -> str:
        """Return the line of a reply that says it, which begins with a label."""
        text = str(self)
        return text if text.startswith("Alone: ") else f"Note: {text}"

    def to_dict(self) -> dict[str, Any]:
        """Return the counts in types of JSON, and the ``text`` that says the same in words."""
        return {
            "text": str(self),
            "alone": [
                {"clause": clause.clause, "count": clause.count, "excluded": clause.excluded}
                for clause in self.alone
            ],
            "without": [
                {"clause": clause.clause, "count": clause.count} for clause in self.without
            ],
            "in_chunks": self.in_chunks,
            "missing_values": [value.to_dict() for value in self.missing],
        }


def notes_on(advice: Told) -> list[str]:
    """Return the notes on words that occur nowhere, except words that the counts of parts name."""
    alone = advice.feedback.alone if advice.feedback is not None else advice.branches
    leaves = [part.leaf for part in alone if part.leaf is not None and not part.count]
    named = {(leaf.field, leaf.typed.removeprefix(EXACT_MARK)) for leaf in leaves}
    parts = {word for _, typed in named for word in typed.split()}
    notes = list(advice.dotted)
    for word, phrase, near, in_text in advice.unseen:
        is_named = (word.field, word.typed) in named
        if in_text and any(f"[{hit.id}]" in near for hit in advice.nearest):
            pass  # it is shown
        elif in_text:
            notes.append(near if is_named else f"{word.text} finds nothing; {near}")
        elif near and word.typed in parts:
            notes.append(f"nearest to {word.text}: {near}.")
        elif word.typed in parts and not is_named:
            notes.append(f"no passage has {word.typed}.")
        elif not is_named:
            what = f"{word.typed} of {phrase}" if phrase else word.text
            where = "nowhere as written" if phrase else "nowhere"
            notes.append(f"{what} occurs {where}{f'; nearest: {near}' if near else ''}.")
    return notes


def count_text(count: int) -> str:
    """Return the count as text, or "more than 1,000"."""
    return f"{count:,}" if count <= MAX_TOTAL else f"more than {MAX_TOTAL:,}"


class Unseen(NamedTuple):
    """A word that occurs nowhere, or a clause on titles that finds nothing.

    ``phrase``: the exact phrase that asks for the word; empty if none does.
    ``near``: the words nearest to it, or what texts have of the clause (``in_text``).

    Example: librettto occurs nowhere; nearest: libretto 3.
    """

    word: Clause
    phrase: str
    near: str
    in_text: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """What advice tells beside the hits: words that occur nowhere, notes on words with
    dots, and parts of a SearchResult.

    Example: Told(branches=(opera 27, venice 4))
    """

    unseen: tuple[Unseen, ...] = ()
    feedback: Feedback | None = None
    nearest: tuple[Hit, ...] = ()
    branches: tuple[ClauseCount, ...] = ()
    unrepresented: tuple[Hit, ...] = ()
    absent: tuple[Absence, ...] = ()
    dotted: tuple[str, ...] = ()

    @staticmethod
    def all(pieces: Sequence[Told]) -> Told:
        """Return what several pieces of advice tell, in their order."""
        if len(pieces) < 2:
            return pieces[0] if pieces else Told()
        return Told(
            tuple([word for piece in pieces for word in piece.unseen]),
            next((piece.feedback for piece in pieces if piece.feedback is not None), None),
            tuple([hit for piece in pieces for hit in piece.nearest]),
            tuple([count for piece in pieces for count in piece.branches]),
            tuple([hit for piece in pieces for hit in piece.unrepresented]),
            tuple([absence for piece in pieces for absence in piece.absent]),
            tuple([note for piece in pieces for note in piece.dotted]),
        )

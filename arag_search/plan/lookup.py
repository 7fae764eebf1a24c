"""What must be looked up in the texts of an index before an engine runs a query: patterns."""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from typing import Protocol

from arag_search.query.fields import CONTENT, TITLE
from arag_search.query.regexes import Stopwatch, is_found, stopwatch
from arag_search.query.tree import TextField
from arag_search.system.value_class import value


class Passage(Protocol):
    """A text that a lookup reads: a Chunk, or a Hit that carries its text."""

    @property
    def title(self) -> str: ...
    @property
    def content(self) -> str: ...
    @property
    def sentence_ends(self) -> tuple[int, ...]: ...


@value
class RegexLookup:
    """A regular expression in title, content or (None) either. ``number`` counts the lookups of a
    query from 0, and ``start`` is where its clause starts in the query."""

    pattern: str
    ignore_case: bool
    field: TextField
    number: int = 0
    start: int = dataclasses.field(default=0, compare=False)

    def matches(self, passage: Passage, watch: Stopwatch | None = None) -> bool:
        """Return whether a passage matches, or a sentence that is a passage by itself. Raises
        SlowPatternError."""
        watch = watch or stopwatch()
        return any(
            is_found(self.pattern, self.ignore_case, text, watch)
            for name, text in ((TITLE, passage.title), (CONTENT, passage.content))
            if self.field in (None, name)
        )

    def sentences(self, passage: Passage) -> set[int]:
        """Return the numbers of the sentences of a passage in which a match begins."""
        if self.field == TITLE:
            return set()
        starts = (start for start, _ in self.places(passage.content))
        return {bisect_right(passage.sentence_ends, start) for start in starts}

    def places(self, text: str) -> list[tuple[int, int]]:
        """Return the offsets of each match in a text: of its first character, and after its last
        one. There are none if that takes too long, which hides a mark and no passage."""
        return stopwatch().kept_places(self.pattern, self.ignore_case, text)

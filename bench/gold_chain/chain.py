"""The chain of facts behind a question: the searcher's knowledge of each hop, and its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Evidence = Mapping[str, tuple[str, ...]]
"""Passage id -> texts; the evidence is shown when one of them is shown of that passage. The
sentences that hold the object, or the whole passage where no single one does. Empty where no
passage is known to hold it."""


@dataclass(frozen=True, slots=True)
class Link:
    """A hop: the known name, the relation in question, and the evidence, of which the searcher only
    knows whether it was shown."""

    name: str
    relation: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Chain:
    """The hops of a question, in order."""

    question_id: str
    question: str
    links: tuple[Link, ...]

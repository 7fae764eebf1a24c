"""References: the names that documents have in a conversation (AgenticRAG, section 3.3).

``turn1search10`` was first shown by the second search of the conversation, as its eleventh
document. Numbers grow through the whole conversation and are never used again. A reference grants
no access: tools look up its document in their own index, within its scope, at every call. For
people, the references are the documents' own ids.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

FORM = re.compile(r"turn\d+search\d+")
_CHANGING = threading.Lock()
_MAX_PASSAGES = 200


class ShownReference(NamedTuple):
    """A document in a reply: its reference, its id, and the ids of its passages shown there."""

    reference: str
    doc_id: str
    passages: tuple[str, ...]


@dataclass(slots=True)
class Reference:
    """The name of a document. ``passages`` are the ids of its passages that searches have shown.
    ``question`` is the question of the conversation, from 0, that first showed the document."""

    id: str
    doc_id: str
    title: str
    question: int = 0
    passages: list[str] = field(default_factory=list[str])

    def note(self, passages: Iterable[str]) -> None:
        """Note passages that were shown."""
        new = [id for id in dict.fromkeys(passages) if id not in self.passages]
        self.passages += new[: _MAX_PASSAGES - len(self.passages)]


@dataclass(slots=True)
class References:
    """The references of a conversation, in the order in which they were given.

    Concurrent calls may share it. A number that was given to a failed call is not used again.
    ``searches`` counts calls of searches, ``question`` questions.
    """

    known: dict[str, Reference] = field(default_factory=dict[str, Reference])
    by_document: dict[str, str] = field(default_factory=dict[str, str])
    searches: int = 0
    question: int = 0

    def __iter__(self) -> Iterator[Reference]:
        return iter(list(self.known.values()))

    def begin_search(self) -> int:
        """Count a search, and return its number from 0."""
        with _CHANGING:
            self.searches += 1
            return self.searches - 1

    def of_document(self, doc_id: str, title: str, search: int) -> Reference:
        """Return the reference of a document, or a new one for this search if it has none."""
        with _CHANGING:
            if doc_id in self.by_document:
                return self.known[self.by_document[doc_id]]
            reference = Reference(
                f"turn{search}search{len(self.known)}", doc_id, title, self.question
            )
            self.known[reference.id] = reference
            self.by_document[doc_id] = reference.id
            return reference

    def get(self, id: str) -> Reference | None:
        """Return a reference by its id, which may be in brackets; None if there is none."""
        return self.known.get(id.strip().strip("[]").strip())


@dataclass(slots=True)
class NamedDocuments(References):
    """References that are the ids of documents."""

    def of_document(self, doc_id: str, title: str, search: int) -> Reference:
        """Return the reference of a document, which is its id."""
        del search
        return self.known.setdefault(doc_id, Reference(doc_id, doc_id, title))

    def get(self, id: str) -> Reference | None:
        """Return the reference of a document by its id."""
        return self.known.get(id)

"""Documents by their own ids, for people: references are names for models in a conversation."""

from __future__ import annotations

from dataclasses import dataclass

from arag_search.tools.references import Reference, References


@dataclass(slots=True)
class NamedDocuments(References):
    """References that are the ids of documents."""

    def of_document(self, doc_id: str, title: str, search: int, *, reuse: bool = True) -> Reference:
        """Return the reference of a document, which is its id."""
        del search, reuse
        return self.known.setdefault(doc_id, Reference(doc_id, doc_id, title))

    def get(self, id: str) -> Reference | None:
        """Return the reference of a document by its id."""
        return self.known.get(id)

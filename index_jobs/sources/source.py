"""A source of documents, and what opens it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from arag_search.corpus import Document
from arag_search.errors import SourceError
from index_jobs.sources.formats import Fields
from index_jobs.sources.metadata import MetadataReader

Entry = tuple[int, Document | SourceError]
"""The number of records that have been read with this one, and the document or its problem."""


class Source(Protocol):
    """One SOURCE of a build."""

    name: str
    """As the caller wrote it."""

    format: str
    """Its name in ``registry.FORMATS``."""

    recognised: bool
    """Whether the format was detected, not given."""

    size: int
    """Bytes on disk."""

    left_out: Mapping[str, int]
    """Files that are not text, by ending, and what is not a file, by kind (see folder.py)."""

    @property
    def bytes_read(self) -> int:
        """Bytes read so far, for progress."""
        ...

    def signature(self) -> dict[str, Any]:
        """Return what changes when the source does: name, size and times."""
        ...

    def documents(self, skip: int = 0) -> Iterator[Entry]:
        """Yield the documents after the first ``skip`` records."""
        ...


class SourceOpener(Protocol):
    """A function that opens sources of one format."""

    def __call__(
        self, name: str, fields: Fields, metadata: MetadataReader, *, recognised: bool
    ) -> Source | None:
        """Open a source. Where the format is to be detected (``recognised``), return None for a
        source of another one; otherwise raise SourceError."""
        ...

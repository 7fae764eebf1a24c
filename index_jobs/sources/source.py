"""The protocols of a source of documents and of the function that opens it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from arag_search.corpus import Document
from arag_search.errors import SourceError
from index_jobs.sources.formats import Fields
from index_jobs.sources.metadata import MetadataReader

Entry = tuple[int, Document | SourceError]
"""The number of records read so far, including this one; and its document, or its error."""


class Source(Protocol):
    """One of the SOURCE arguments of a build."""

    name: str
    """The name as the caller wrote it."""

    format: str
    """The name of the format in ``registry.FORMATS``."""

    recognised: bool
    """Whether the format was detected rather than given."""

    size: int
    """The size on disk, in bytes."""

    left_out: Mapping[str, int]
    """The number of files that are not text, by ending, and of entries that are not files, by kind
    (see folder.py)."""

    @property
    def bytes_read(self) -> int:
        """Bytes read so far, for progress."""
        ...

    def signature(self) -> dict[str, Any]:
        """Return a value that changes when the source changes: its name, size and times."""
        ...

    def documents(self, skip: int = 0) -> Iterator[Entry]:
        """Yield the documents after the first ``skip`` records."""
        ...


class SourceOpener(Protocol):
    """A function that opens sources of one format."""

    def __call__(
        self, name: str, fields: Fields, metadata: MetadataReader, *, recognised: bool
    ) -> Source | None:
        """Open a source. If the source has another format, return None when the format is being
        detected (``recognised``), and raise SourceError otherwise."""
        ...

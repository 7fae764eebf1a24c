"""The protocols of a source of documents and of the function that opens it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from arag_search.corpus import Document
from arag_search.errors import SourceError
from index_jobs.sources.files.selection import FileSelection
from index_jobs.sources.formats import Fields
from index_jobs.sources.metadata import MetadataReader

Entry = tuple[int, Document | SourceError | None]
"""The position after a record, and its document or its error; or None if only time has passed, so
that the caller can look after other things. A position is a number that grows; the source resumes
after it."""


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
    """The number of files that are not read, by ending, and of other entries, by kind (see
    files/folder.py)."""

    large_files: Sequence[str]
    """The first files that are left out because they are too large, each with its size."""

    @property
    def bytes_read(self) -> int:
        """Bytes read so far, for progress."""
        ...

    def signature(self) -> dict[str, Any]:
        """Return a value that changes when the source changes: its name, size and times."""
        ...

    def documents(self, skip: int = 0) -> Iterator[Entry]:
        """Yield the documents after the position ``skip``; 0 is the beginning."""
        ...

    def place_of(self, doc_id: str) -> str:
        """Return the place of the first document with this id, for messages; empty if only reading
        the source again could tell."""
        ...


class SourceOpener(Protocol):
    """A function that opens sources of one format."""

    def __call__(
        self,
        name: str,
        fields: Fields,
        metadata: MetadataReader,
        files: FileSelection,
        *,
        recognised: bool,
    ) -> Source | None:
        """Open a source. If the source has another format, return None when the format is being
        detected (``recognised``), and raise SourceError otherwise."""
        ...

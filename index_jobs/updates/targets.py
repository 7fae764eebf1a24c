"""What is updated: an index in a folder, or one on OpenSearch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from arag_search.corpus import Chunk
from arag_search.engines.deletions import Deletions
from arag_search.engines.opensearch.address import is_address
from arag_search.engines.update_record import Settled, UpdateRecord
from arag_search.manifest import Manifest
from arag_search.search.index import check_path


class IndexUpdate(Protocol):
    """An index held for one update; a context manager.

    Readers see the state before until ``publish``, and afterwards the one after it; a document's
    chunks are always all of one of them.
    """

    @property
    def where(self) -> str:
        """What the index is called in errors."""
        ...

    @property
    def manifest(self) -> Manifest:
        """What the index is before the update."""
        ...

    @property
    def deletions(self) -> Deletions:
        """The deleted documents that scores count before the update."""
        ...

    @property
    def last_update(self) -> UpdateRecord | None:
        """The newest update that the index shows, compactions left out; None before the first."""
        ...

    def __enter__(self) -> IndexUpdate: ...

    def __exit__(self, *exception: object) -> None: ...

    def settle(self, record: UpdateRecord | None) -> Settled:
        """See to an update that was stopped, before the one of ``record`` begins; None finishes or
        undoes it.

        Raises UnfinishedUpdateError where only its own command can continue it.
        """
        ...

    def first_shard(self) -> int:
        """Return a source shard that lies behind all documents there are."""
        ...

    def existing(self, doc_ids: Sequence[str] | None) -> Iterator[Chunk]:
        """Return the chunks that documents with these ids, or all documents where None is given,
        have before the update, in corpus order."""
        ...

    def begin(self, record: UpdateRecord, doc_ids: Sequence[str] = ()) -> None:
        """Be ready to write. ``doc_ids`` are those that an update which only deletes will delete.

        Raises BuildError where the index cannot be written.
        """
        ...

    def remove(self, doc_ids: Sequence[str]) -> None:
        """Delete documents that are there before the update, those that ``add`` replaces too."""
        ...

    def add(self, chunks: Sequence[Chunk]) -> None:
        """Add the chunks of whole documents, in corpus order."""
        ...

    def publish(self, manifest: Manifest, record: UpdateRecord) -> None:
        """Complete the update. ``manifest`` describes the index after it."""
        ...

    def describe(self, manifest: Manifest) -> None:
        """Replace the manifest by one that says more of the same state."""
        ...

    def give_up(self) -> None:
        """Undo what was begun and not published, if there is anything."""
        ...

    def compact(self, note: Callable[[str], None]) -> Deletions:
        """Merge each shard into one segment; the deletions that are left. ``note`` is told what is
        under way."""
        ...


def open_update(location: str | Path) -> IndexUpdate:
    """Return what ``location`` leads to. Raises ArgumentError for an address that is none."""
    name = str(location)
    if isinstance(location, str) and is_address(name):
        from arag_search.engines.opensearch.address import parse_address
        from arag_search.engines.opensearch.update import OpenSearchUpdate

        return OpenSearchUpdate(parse_address(name))
    check_path(name, "the index")
    from arag_search.engines.lucene.update import LuceneUpdate

    return LuceneUpdate(Path(location))

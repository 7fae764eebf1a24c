"""The numbers of the documents of an update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from arag_search.corpus import SHARD_BITS, Chunk, document_number, ordinal_of, source_shard
from arag_search.errors import BuildError
from arag_search.manifest import Manifest


class Ordinals:
    """The ordinals of an update's documents, after all others. A source continues in the last shard
    of the index if that shard is its own, and takes a new shard otherwise.

    ``sources`` has the source of each shard.
    """

    def __init__(self, first: int, manifest: Manifest, where: str) -> None:
        """``first`` is the first ordinal that is free."""
        self._where = where
        self._shard, self._number = source_shard(first), document_number(first)
        known = manifest.shard_sources
        self.sources = (*known, *[""] * (self._shard + (self._number > 0) - len(known)))
        self._source = self.sources[self._shard] if self._number else None

    def numbered(self, chunks: Sequence[Chunk], source: str) -> list[Chunk]:
        """Return the chunks of a document with the next ordinals of its source."""
        if source != self._source:
            self._shard += self._number > 0
            self._number = 0
            self._source = source
            if self._shard >= 1 << SHARD_BITS:
                raise BuildError(
                    f"The index has had {self._shard:,} sources, and cannot hold more.",
                    where=self._where,
                    allowed=f"{1 << SHARD_BITS:,} sources, counting those of all updates",
                    do="Build it again from all of its sources with `overwrite=True`.",
                )
            self.sources = (*self.sources[: self._shard], source)
        number, self._number = self._number, self._number + 1
        return [
            replace(chunk, ordinal=ordinal_of(self._shard, number, part))
            for part, chunk in enumerate(chunks)
        ]

"""The seam between jobs that write an index and the engines that store it: building, updating."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from arag_search.corpus import Chunk
from arag_search.engines.base import Deletions
from arag_search.errors import ArgumentError, BuildError
from arag_search.manifest import Manifest
from arag_search.query.fields import DOC_ID, MetadataType
from arag_search.system.options import names_in, option


@dataclass(frozen=True, slots=True)
class UpdateRecord:
    """An update: ``digest`` identifies its command, ``command`` is the command in words, ``update``
    the number of the index after it. The counts are of documents and are known at its end."""

    digest: str
    command: str
    update: int
    added: int = 0
    replaced: int = 0
    deleted: int = 0

    def same(self, other: UpdateRecord | None) -> bool:
        """Return whether both records are of the same command on the same state of the index."""
        return other is not None and (self.digest, self.update) == (other.digest, other.update)

    def to_json(self) -> dict[str, Any]:
        """Return the record as a JSON object."""
        return dataclasses.asdict(self)

    @staticmethod
    def from_json(loaded: Any) -> UpdateRecord | None:
        """Return the record in a JSON value, or None if the value is not a record."""
        try:
            return UpdateRecord(**loaded)
        except TypeError:
            return None


@dataclass(frozen=True, slots=True)
class Recovery:
    """The recovery from an interrupted update.

    ``note``: describes it; empty if there was none.
    ``done``: the record of the update, if it was this very command and is now finished.
    """

    note: str = ""
    done: UpdateRecord | None = None


MAX_TERM_BYTES = 32_766
"""The longest id or keyword in UTF-8 that Lucene indexes."""


def term_bytes(text: str, chunk: Chunk) -> bytes:
    """Encode an id or keyword of a chunk as UTF-8.

    Raises BuildError for a term that is too long, and UnicodeEncodeError if it is not Unicode.
    """
    data = text.encode()
    if len(data) > MAX_TERM_BYTES:
        raise BuildError(
            f"An id or keyword has {len(data):,} bytes.",
            where=f"passage {chunk.id[:60]!r}",
            allowed=f"at most {MAX_TERM_BYTES:,} bytes in UTF-8",
            do="Shorten it, or leave that metadata field undeclared.",
        )
    return data


Packer = Callable[[Sequence[Chunk]], Any]
"""Converts chunks, in corpus order, into the target writer's format. Packers and their results are
pickled if there are worker processes. Raises BuildError for a chunk that cannot be stored."""


class BlockWriting(Protocol):
    """A function that writes the packed chunks of a block of documents in another process, into
    which it is pickled, and returns what ``IndexWriter.add_block`` needs. A block may be written
    again: only one of its results is added."""

    @property
    def needs(self) -> Mapping[str, bytes | None]:
        """The files that the other process must see, with their content where that matters."""
        ...

    def __call__(self, packed: Iterable[Any]) -> Any: ...


@dataclass(slots=True)
class BulkCounts:
    """Counts of what was sent to a server.

    ``created``: documents that were written.
    ``existing``: documents that it had already.
    ``rejected``, ``retries``: documents and requests that were sent again.
    """

    created: int = 0
    existing: int = 0
    rejected: int = 0
    retries: int = 0

    def include(self, other: BulkCounts) -> None:
        """Add other counts."""
        for name in BulkCounts.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class IndexWriter(Protocol):
    """The receiver of the chunks of a build. A checkpoint holds all that was added before it."""

    @property
    def checkpoint(self) -> Mapping[str, str]:
        """The data of the newest checkpoint; empty if there is none."""
        ...

    @property
    def packer(self) -> Packer:
        """The function that packs chunks for ``add_packed``."""
        ...

    @property
    def sent(self) -> BulkCounts:
        """What this run sent to a server; all zero without a server."""
        ...

    def add_packed(self, packed: Any) -> None:
        """Write packed chunks, which follow those before them in corpus order."""
        ...

    def add_block(self, written: Any) -> None:
        """Add a block, which follows what was added before, by the result of its writing."""
        ...

    def block_writing(self) -> BlockWriting:
        """Return the function with which other processes write blocks."""
        ...

    def has_document(self, doc_id: str) -> bool: ...

    def document_ids(self) -> Iterator[str]:
        """Iterate over the ids of all documents of the checkpoint that the writer resumed."""
        ...

    def commit(self, data: Mapping[str, str]) -> None:
        """Write a checkpoint, together with ``data``."""
        ...

    def counts(self) -> tuple[int, int | None]:
        """Count the chunks and sentences in the index; None for sentences that are left out."""
        ...

    def finish(self, manifest: Manifest, data: Mapping[str, str]) -> None:
        """Write the last checkpoint, with the manifest, and close."""
        ...

    def abort(self) -> None: ...


class Bm25(NamedTuple):
    """The parameters of the ranking: ``k1`` from 0 to 100, ``b`` from 0 to 1."""

    k1: float = 1.2
    b: float = 0.75

    def __str__(self) -> str:
        return f"{self.k1:g},{self.b:g}"

    @staticmethod
    def read(text: str) -> Bm25:
        """Read a text such as ``1.2,0.75``. Raises ArgumentError."""
        try:
            k1, b = map(float, text.split(","))
        except ValueError:
            raise ArgumentError(
                f'`bm25`: "{text}" is not two numbers.', allowed=f"k1,b such as {Bm25()}"
            ) from None
        return Bm25(k1, b)

    def check(self) -> None:
        """Raise ArgumentError if a parameter is out of bounds, as NaN is."""
        if not 0 <= self.k1 <= 100 or not 0 <= self.b <= 1:
            raise ArgumentError(
                f"`bm25`: k1 = {self.k1:g}, b = {self.b:g} is out of range.",
                allowed="k1 from 0 to 100, b from 0 to 1",
            )


DEFAULT_BM25 = Bm25()
LEAVABLE = ("sentences", "exact", "forms")
"""The parts that a build can leave out; the index then does not support what needs them. On a
server, keyword_search needs ``exact``; in a folder, ``exact`` takes no space."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetOptions:
    """The options of a build that concern its target; BuildOptions says what they mean."""

    overwrite: bool = option(
        False, "Replace an existing index, which is searched until the new one is complete."
    )
    shards: int | None = option(
        None, "Shards of an index on OpenSearch.  [default: 1]", "N", 1, 1024
    )
    bm25: Bm25 = option(
        DEFAULT_BM25, "Parameters of the ranking.  [default: 1.2,0.75]", "K1,B", read=Bm25.read
    )
    without: tuple[str, ...] = option(
        (),
        "Leave out, with commas between: sentences (no --granularity sentence), forms (words"
        " match only as written), exact (no keyword search on OpenSearch).",
        "PARTS",
        known=LEAVABLE,
        read=names_in,
    )
    node_wait_s: float | None = option(None, least=0, most=86_400)
    keep: int | None = option(None, least=0, most=100)


class Build(Protocol):
    """A location that is locked by one builder; a context manager.

    A generation is the result of one build. Readers do not see it until it is published.
    """

    engine: str
    engine_version: str

    def __enter__(self) -> Build: ...

    def __exit__(self, *exception: object) -> None: ...

    def begin(self, signature: Mapping[str, Any]) -> tuple[str, bool, str]:
        """Return the generation to build, whether it is resumed, and why or why not."""
        ...

    def open_writer(
        self, generation: str, *, metadata: Mapping[str, MetadataType], language: str, resume: bool
    ) -> IndexWriter:
        """Open the writer of a generation, whose metadata fields are ``metadata``.

        Raises IndexDamagedError if there is nothing intact to resume.
        """
        ...

    def discard(self, generation: str) -> None:
        """Delete a generation that is not published."""
        ...

    def publish(self, generation: str) -> None:
        """Let searches use a finished generation."""
        ...


class IndexUpdate(Protocol):
    """An index that is locked for one update; a context manager.

    Until ``publish`` readers see the state before the update, afterwards the state after it. The
    chunks of a document always belong to one of the two states.
    """

    @property
    def where(self) -> str:
        """The name of the index in errors."""
        ...

    @property
    def manifest(self) -> Manifest:
        """The manifest before the update."""
        ...

    @property
    def deletions(self) -> Deletions:
        """The deleted documents that scores count before the update."""
        ...

    @property
    def last_update(self) -> UpdateRecord | None:
        """The newest update that readers see, except compactions; None before the first."""
        ...

    def __enter__(self) -> IndexUpdate: ...

    def __exit__(self, *exception: object) -> None: ...

    def recover(self, record: UpdateRecord | None) -> Recovery:
        """Recover from an interrupted update before the update of ``record`` begins.

        None for ``record`` finishes or undoes the interrupted one. Raises UnfinishedUpdateError if
        only the command that was interrupted can continue it.
        """
        ...

    def first_ordinal(self) -> int:
        """Return the ordinal of a document that follows all documents, including deleted ones, and
        the source shards of the build."""
        ...

    def existing(self, values: Sequence[str] | None, field: str = DOC_ID) -> Iterator[Chunk]:
        """Iterate, in corpus order, over chunks of the state before the update. They have one of
        these ``values`` in a keyword field; None is for all chunks."""
        ...

    def begin(
        self,
        record: UpdateRecord,
        metadata: Mapping[str, MetadataType],
        doc_ids: Sequence[str] = (),
    ) -> None:
        """Prepare to write. ``metadata`` are the fields of the index after the update, including
        all from before. ``doc_ids`` are the documents that a pure deletion will delete.

        Raises BuildError if the index cannot be written.
        """
        ...

    def remove(self, doc_ids: Sequence[str]) -> None:
        """Delete documents of the state before the update, also documents that ``add`` replaces."""
        ...

    def add(self, chunks: Sequence[Chunk]) -> None:
        """Add the chunks of whole documents, in corpus order."""
        ...

    def publish(self, manifest: Manifest, record: UpdateRecord) -> None:
        """Complete the update. ``manifest`` describes the index after it."""
        ...

    def give_up(self) -> None:
        """Undo an update that was begun and not published, if there is one."""
        ...

    def compact(self, note: Callable[[str], None]) -> Deletions:
        """Merge each shard into one segment and return the deletions that remain.

        ``note`` is called with descriptions of the progress.
        """
        ...


def signature_difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Say why a build that was stopped is not resumed: which parts of its signature changed."""
    if not before:
        return "its record is damaged"
    changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return f"changed since it was stopped: {', '.join(sorted(changed))}"

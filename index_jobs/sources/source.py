"""The protocol of a source, and reading a corpus: documents in batches, each with the reading
position after it, and ids that were seen before."""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

from arag_search.corpus import MAX_DOCUMENTS, Document
from arag_search.errors import (
    BadFileError,
    DuplicateIdError,
    FileLimitError,
    LeftOutError,
    NotInTimeError,
    SourceError,
)
from index_jobs.cutting.chunking import cut_up, may_be_too_long
from index_jobs.sources.lines.files import SKIP
from index_jobs.sources.metadata import MetadataReader

Entry = tuple[int, Document | SourceError | None]
"""The position after a record, and its document or its error. None stands for time that has passed,
so that the caller can look after other things. A position is a number that grows; the source
resumes after it."""


FileState = tuple[int, str]
"""The size of a file, and its times of change and inode in a text. The text is empty for a file
that may change again without a trace."""


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
    selection.py)."""

    large_files: Sequence[str]
    """The first files that are left out because they are too large, each with its size."""

    at_once: int
    """How many processes convert its files."""

    chunk_tokens: int
    """The size of the passages into which long texts are cut when they are read; 0 if they are
    not."""

    code: Mapping[str, int]
    """The bytes of source code, by the endings of its files."""

    states: Mapping[str, FileState] | None
    """The state in which each file was when the source was opened, by its path below the root of
    ids. None for a source of records."""

    @property
    def damaged(self) -> Collection[str]:
        """What could not be read of the source so far: the ids of files and folders. An empty text
        stands for bad records, which may be any document of it."""
        ...

    @property
    def left_out_files(self) -> Mapping[str, str]:
        """The ids of the files of passwords and keys left out so far, with words for a report."""
        ...

    @property
    def over_limits(self) -> Mapping[str, FileLimitError]:
        """The ``damaged`` files for which there was no time, or that need more than they may take.
        They are not tried again."""
        ...

    @property
    def bytes_read(self) -> int:
        """Bytes read so far, for progress."""
        ...

    def signature(self) -> dict[str, Any]:
        """Return a value that changes when the source changes: its name, size and times."""
        ...

    def prose(self) -> Source:
        """Return the source without its logs and data, which are in no language."""
        ...

    def front_matter(self) -> Iterator[Mapping[str, tuple[str, ...]]]:
        """Yield the values of the front matter of each file that has some."""
        ...

    def documents(self, skip: int = 0) -> Iterator[Entry]:
        """Yield the documents after the position ``skip``; 0 is the beginning."""
        ...

    def parts(self, position: int, entries: int, most_bytes: int) -> Iterator[SourcePart]:
        """Divide what follows a position, before which the source has ``entries`` records and
        files, into parts of about ``most_bytes`` on disk. A part that cannot be divided may be
        larger. The last part has no end."""
        ...


class RecordSource:
    """The base of sources of records, which leave no file out."""

    left_out: Mapping[str, int] = {}
    large_files: Sequence[str] = ()
    at_once = 1
    chunk_tokens = 0
    code: Mapping[str, int] = {}
    states: Mapping[str, FileState] | None = None
    damaged: Sequence[str] = ()
    left_out_files: Mapping[str, str] = {}
    over_limits: Mapping[str, FileLimitError] = {}

    def prose(self) -> Self:
        return self

    def front_matter(self) -> Iterator[Mapping[str, tuple[str, ...]]]:
        return iter(())


@dataclass(frozen=True, slots=True)
class SourcePart:
    """A part of a source, which another process can read: it is pickled, and has absolute paths.

    ``source`` yields the part after the position ``first``, before which there are ``entries``
    records and files. ``last`` and ``last_entries`` are the position and number after it; ``last``
    is None if the source ends with it. ``read_bytes`` counts the bytes of the source up to its end.
    """

    source: Source
    first: int
    entries: int
    last: int | None
    last_entries: int
    read_bytes: int

    @staticmethod
    def rest(source: Source, position: int, entries: int) -> SourcePart:
        """Return all of a source after a position as one part."""
        return SourcePart(source, position, entries, None, 0, source.size)


class SeenIds:
    """A set of 64-bit hashes of ids: at most 22 bytes an id, 33 while it grows.

    An equal hash is a suspicion, not a proof: among 20 million different ids, the chance of any
    collision is 1 in 90,000. The caller must confirm a suspicion.
    """

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 << 10))
        self._mask = len(self._slots) - 1
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def add(self, identifier: str) -> bool:
        """Add an id; return whether it may have been added before."""
        digest = hashlib.blake2b(identifier.encode(), digest_size=8).digest()
        if not self._put(int.from_bytes(digest, "little") or 1):
            return True
        self._used += 1
        if self._used * 4 > len(self._slots) * 3:
            self._grow()
        return False

    def _put(self, value: int) -> bool:
        """Store a hash, by open addressing with linear probing; 0 marks a free slot. Return False
        if it was already stored."""
        slots, mask = self._slots, self._mask
        place = value & mask
        while stored := slots[place]:
            if stored == value:
                return False
            place = (place + 1) & mask
        slots[place] = value
        return True

    def _grow(self) -> None:
        before = self._slots
        self._slots = array("Q", bytes(len(before) * 16))
        self._mask = len(self._slots) - 1
        for value in before:
            if value:
                self._put(value)


BATCH_DOCUMENTS = 64
BATCH_CHARACTERS = 1 << 18
BATCH_RECORDS = 4096
"""A batch is complete when it reaches this number of documents or characters, or after this number
of records, good or bad. Between batches, the build checks the clock and Ctrl-C."""

SHOWN_EXAMPLES = 5
_RENAME = "Name the file once, or rename it, or skip it with `skip_bad_files=True`."
KEPT_FILES = 1_000
"""How many bad files a report names as JSON; in words, it names SHOWN_EXAMPLES."""


NO_TEXT = "documents without text"
Unread = dict[str, list[Any]]
"""The number of parts that were not read, by kind and type of file, each number followed by the ids
of the first documents."""


def count_unread(total: Unread, more: Mapping[str, Sequence[Any]]) -> None:
    """Add the unread parts of further documents to a total."""
    for kind, (count, *ids) in more.items():
        entry = total.setdefault(kind, [0])
        entry[0] += count
        entry += ids[: SHOWN_EXAMPLES + 1 - len(entry)]


@dataclass(slots=True)
class Position:
    """The progress of reading, and what was left out so far.

    ``shard`` is the number of the source being read, and ``records`` is the position in it (see
    ``source.Entry``). ``shard_entries`` counts its records and files before it, good or bad: the
    number of the next document. ``skipped`` counts bad records, and ``skipped_files`` bad files.
    ``undeclared`` and ``seen`` are as in MetadataReader. ``unread`` has, for each kind of part that
    was not read, its number and the ids of the first documents.
    """

    shard: int = 0
    records: int = 0
    shard_entries: int = 0
    skipped: int = 0
    skipped_examples: Sequence[str] = ()
    undeclared: dict[str, int] = field(default_factory=dict[str, int])
    seen: list[str] = field(default_factory=list[str])
    skipped_files: int = 0
    skipped_file_examples: Sequence[str] = ()
    unread: Unread = field(default_factory=dict[str, list[Any]])

    def copied(self) -> Position:
        """Return a copy whose counts can be changed."""
        unread = {kind: list(entry) for kind, entry in self.unread.items()}
        return replace(self, undeclared=dict(self.undeclared), seen=list(self.seen), unread=unread)

    def joined(self, later: Position) -> Position:
        """Return a position here that also has what was left out before ``later``, which another
        process has counted from zero."""
        metadata = MetadataReader({})
        for position in (self, later):
            metadata.take(position.undeclared, position.seen)
        joined = self.copied()
        joined.undeclared, joined.seen = metadata.undeclared, sorted(metadata.seen)
        joined.skipped += later.skipped
        joined.skipped_files += later.skipped_files
        examples = (*self.skipped_examples, *later.skipped_examples)
        joined.skipped_examples = examples[:SHOWN_EXAMPLES]
        files = (*self.skipped_file_examples, *later.skipped_file_examples)
        joined.skipped_file_examples = files[:KEPT_FILES]
        count_unread(joined.unread, later.unread)
        return joined


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents, each with its shard and its number in the shard, and the reading position after
    them. ``read_bytes`` are the bytes read so far from all sources."""

    documents: list[tuple[int, int, Document]]
    position: Position
    read_bytes: int

    @property
    def payload(self) -> list[tuple[int, int, Document]]:
        """The part that the work needs (see Submitted)."""
        return self.documents

    def holds(self, doc_id: str) -> bool:
        """Return whether a document with this id is in the batch."""
        return any(document.id == doc_id for _, _, document in self.documents)


class CorpusReader:
    """A reader of sources, from a given position on."""

    def __init__(
        self,
        sources: Sequence[Source],
        metadata: MetadataReader,
        start: Position,
        ids: SeenIds,
        is_taken: Callable[[str], bool],
        *,
        first_shard: int = 0,
        skip_bad_lines: bool,
        skip_bad_files: bool = False,
    ) -> None:
        """``ids`` are the ids of the documents before ``start``. ``is_taken`` is called with an id
        that may be a duplicate, and returns whether a batch already yielded, or an earlier run, has
        it. ``first_shard`` is the number of the first source."""
        self._sources = sources
        self._first_shard = first_shard
        self._metadata = metadata
        self._ids = ids
        self._is_taken = is_taken
        self._skips = {False: skip_bad_lines, True: skip_bad_files}
        self._position = start.copied()
        self._unbatched = 0
        self._documents: list[tuple[int, int, Document]] = []
        self._characters = 0
        metadata.undeclared = self._position.undeclared
        metadata.seen = set(start.seen)
        metadata.skips_values = skip_bad_lines

    def batches(self) -> Iterator[Batch]:
        """Yield the batches in corpus order; some may be empty. Raises SourceError for a bad
        record, and BadFileError for a bad file, unless such are skipped."""
        done_bytes = 0
        position = self._position
        for shard, source in enumerate(self._sources, self._first_shard):
            if shard == position.shard:
                yield from self._read(source, done_bytes)
                position.shard += 1
                position.records = position.shard_entries = 0
            done_bytes += source.size
        yield self._batch(done_bytes)

    def _read(self, source: Source, done_bytes: int) -> Iterator[Batch]:
        position = self._position
        for records, entry in source.documents(position.records):
            problem = self._take(entry, source) if isinstance(entry, Document) else entry
            if problem is not None:
                self._skip(problem)
            position.shard_entries += entry is not None
            position.records = records
            self._unbatched += 1
            if (
                entry is None
                or len(self._documents) >= BATCH_DOCUMENTS
                or self._characters >= BATCH_CHARACTERS
                or self._unbatched >= BATCH_RECORDS
            ):
                yield self._batch(done_bytes + source.bytes_read)

    def _take(self, document: Document, source: Source) -> SourceError | None:
        """Add a document to the batch, or return its error if it is a duplicate or too long.

        Its number counts all records before it, bad ones too. So it depends neither on other
        sources nor on the content of the records, and a process that reads only a part knows it.
        """
        if self._ids.add(document.id) and self._is_duplicate(document.id):
            do = _RENAME if document.is_file else SKIP
            where, is_file = document.where, document.is_file
            return DuplicateIdError(document.id, where=where, do=do, is_file=is_file)
        at = self._position
        try:
            if at.shard_entries >= MAX_DOCUMENTS:
                raise SourceError(
                    f"The source has more than {MAX_DOCUMENTS:,} documents.",
                    where=document.where,
                    allowed=f"at most {MAX_DOCUMENTS:,} documents in one source",
                    do="Divide it, or skip the rest with `skip_bad_lines=True` and"
                    " `skip_bad_files=True`.",
                )
            if (tokens := source.chunk_tokens) and may_be_too_long(document, tokens):
                document = cut_up(document, tokens)
        except SourceError as error:
            return BadFileError(**vars(error)) if document.is_file else error
        self._documents.append((at.shard, at.shard_entries, document))
        self._characters += len(document.text)
        if document.unread or not document.text:
            self._count_unread(document)
        return None

    def _count_unread(self, document: Document) -> None:
        ending = os.path.splitext(document.where)[1].lower() if document.is_file else "records"
        missing = dict(document.unread)
        if not document.text:
            missing = {NO_TEXT: 1} if document.is_file else {NO_TEXT: 1, **missing}
        kinds = {f"{kind} ({ending or 'no ending'})": n for kind, n in missing.items()}
        count_unread(self._position.unread, {kind: [n, document.id] for kind, n in kinds.items()})

    def _is_duplicate(self, doc_id: str) -> bool:
        among_these = any(document.id == doc_id for _, _, document in self._documents)
        return among_these or self._is_taken(doc_id)

    def _skip(self, problem: SourceError) -> None:
        """Count a bad record or file. Raises its error unless such are skipped."""
        if isinstance(problem, LeftOutError | NotInTimeError):
            count_unread(self._position.unread, {problem.kind: [1, problem.where]})
            return
        if not self._skips[problem.is_file]:
            raise problem
        example = f"{problem.where}: {problem.what}"
        position = self._position
        if problem.is_file:
            position.skipped_files += 1
            if len(position.skipped_file_examples) < KEPT_FILES:
                position.skipped_file_examples = (*position.skipped_file_examples, example)
        else:
            position.skipped += 1
            if len(position.skipped_examples) < SHOWN_EXAMPLES:
                position.skipped_examples = (*position.skipped_examples, example)

    def _batch(self, read_bytes: int) -> Batch:
        self._position.seen = sorted(self._metadata.seen)
        batch = Batch(self._documents, self._position.copied(), read_bytes)
        self._documents, self._characters, self._unbatched = [], 0, 0
        return batch

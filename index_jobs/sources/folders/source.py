"""Files as a source: those below a folder, a single one, or standard input. A file is one document,
or has several.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Any

from arag_search.corpus import Document, MetadataValue
from arag_search.errors import (
    BadFileError,
    FileLimitError,
    LeftOutError,
    NotInTimeError,
    SourceError,
)
from index_jobs.sources.conversion import Conversion, Conversions
from index_jobs.sources.converters.child import Request
from index_jobs.sources.converters.registry import MANY, ConvertedDocument, Converter, ending_of
from index_jobs.sources.folders.ids import folders_of, path_id, usual_title, words_of_name
from index_jobs.sources.folders.listing import (
    CODE,
    PLAIN_TEXT,
    TICK_NS,
    LeftOut,
    Listing,
    SourceFile,
    listed,
)
from index_jobs.sources.folders.secret_files import KEY_LINES, TO_READ, secrets_in, without_keys
from index_jobs.sources.folders.selection import STDIN, FileSelection
from index_jobs.sources.lines.files import SKIP, SKIP_FILE, CorpusFile, Fields, readable
from index_jobs.sources.lines.formats import checked_id, clean, title_of
from index_jobs.sources.lines.stdin import SpooledInput
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.registry import Format
from index_jobs.sources.source import Entry, FileState, SourcePart

HELD_CHARACTERS = 1 << 22
"""The maximum part of a file with many documents that is held in memory until all of it has been
read."""
_MOST_PART_FILES = 1_000
_ROW_BITS = 32
_CHECKED_ROWS = 4_096
_FREE_DOCUMENTS = 1_000
_LOOKED_AT_BYTES = 64
_AHEAD = 8
"""How many files are looked at before they are needed, so that their conversion can begin."""


class FileSource:
    """Files, which converters turn into documents.

    A position in the source (see ``source.Entry``) has the number of the file in its upper bits.
    The lower 32 bits are the number of entries read from it. To resume, the files before it need
    not be read.
    """

    def __init__(
        self,
        name: str,
        format: Format,
        listing: Listing,
        fields: Fields,
        metadata: MetadataReader,
        files: FileSelection,
        *,
        recognised: bool,
    ) -> None:
        self.name = name
        self.format = format
        self.recognised = recognised
        self.bytes_read = 0
        self._identity = os.path.abspath(name) if name != STDIN else SpooledInput.where
        self._listing = listing
        self._files_before = 0
        self._fields = fields
        self._named = frozenset(
            filter(None, (fields.id_field, fields.title_field, fields.text_field))
        )
        self._converters: dict[str, Converter] = {}
        self._metadata = metadata
        self.at_once = 1
        self.chunk_tokens = 0
        self.conversions = Conversions(files.file_limits, files.within_s)
        self._is_hurried = files.within_s < math.inf
        self._checks_files = files.skip_bad_files
        self._is_watched = files.only is not None  # changes while it is read will be heard of
        self._options = files.signature()
        self.damaged: set[str] = set()
        self.left_out_files: dict[str, str] = {}
        self.over_limits: dict[str, FileLimitError] = {}
        metadata.expect_files()
        left_out = LeftOut()
        self.code: Mapping[str, int] = {}
        seen, states = self._look(left_out)
        self._first_signature: dict[str, Any] | None = seen
        self.states: Mapping[str, FileState] | None = states
        self.size = int(seen["size"])
        self.left_out: Mapping[str, int] = left_out.counts
        self.large_files: Sequence[str] = left_out.large

    def signature(self) -> dict[str, Any]:
        # Listing 100,000 files takes seconds, so the first call has what opening has seen.
        seen = self._first_signature or self._look(LeftOut())[0]
        if not self._is_watched:
            self._first_signature = None
        return {**seen, "fields": sorted(self._metadata.fields)}

    def prose(self) -> FileSource:
        files = self._listing
        prose = self._of(lambda left_out: (f for f in files(left_out) if not f.type.most_bytes))
        prose.chunk_tokens = 0
        return prose

    def front_matter(self) -> Iterator[Mapping[str, tuple[str, ...]]]:
        from index_jobs.sources.converters.text import front_values

        for file in self._listing(LeftOut()):
            if file.problem is None and file.type is PLAIN_TEXT:
                with suppress(SourceError):  # reading the documents reports it
                    with file.place.opened(file.where) as path:
                        values = front_values(path, file.where)
                    if values:
                        yield values

    def _look(self, left_out: LeftOut) -> tuple[dict[str, Any], dict[str, FileState]]:
        """List the files, and return their signature and their states.

        A file that changed just now may change again at the same time. Files that are read later
        than a tick of the clock are sure. A short tick is waited for.
        """
        digest = hashlib.sha256()
        states: dict[str, FileState] = {}
        now_ns, size, wait_ns = time.time_ns(), 0, 0
        code = Counter[str]()
        for file in self._listing(left_out):
            size += file.size
            if file.type is CODE:
                code[ending_of(file.relative)] += file.size
            line = f"{file.relative}\0{file.size}\0{file.state}\n"
            digest.update(line.encode("utf-8", "surrogateescape"))
            state = file.state
            if file.changed_ns > now_ns - (tick_ns := file.tick_ns):
                wait_ns = min(tick_ns, TICK_NS)
                state = state if tick_ns <= TICK_NS else ""
            states[file.relative] = file.size, state
        time.sleep(wait_ns / 10**9)
        self.code = code
        signature = {
            "source": self._identity,
            "files": len(states),
            "size": size,
            "digest": digest.hexdigest(),
            "options": self._options,
        }
        return signature, states

    def documents(self, skip: int = 0) -> Iterator[Entry]:
        first, rows = skip >> _ROW_BITS, skip & ((1 << _ROW_BITS) - 1)
        self.bytes_read = 0
        left_out = LeftOut()
        for number, file, begun in self._begun(self._listing(left_out), first):
            if number >= first:
                done = rows if number == first else 0
                position = (number << _ROW_BITS) + done
                for entry in self._entries(file, done, begun):
                    position += entry is not None
                    yield position, entry
            self.bytes_read += file.size
        self.damaged |= left_out.existing

    def _begun(
        self, listing: Iterator[SourceFile], first: int
    ) -> Iterator[tuple[int, SourceFile, Conversion | None]]:
        """Yield each file with its number and, from ``first`` on, its conversion, which was begun
        while those before it were read."""
        numbered = enumerate(listing, self._files_before + 1)
        ahead: deque[tuple[int, SourceFile, Conversion | None]] = deque()
        try:
            while True:
                for number, file in islice(numbered, _AHEAD - len(ahead)):
                    is_wanted = number >= first and file.problem is None and file.is_limited
                    begun = self._begin(file) if is_wanted else None
                    ahead.append((number, file, begun))
                if not ahead:
                    return
                yield ahead[0]
                self.conversions.drop(ahead.popleft()[2])
        finally:
            for _, _, begun in ahead:
                self.conversions.drop(begun)

    def _begin(self, file: SourceFile) -> Conversion:
        how = self._fields, file.size, path_id(file.relative), self.chunk_tokens
        request = Request(file.type.name, file.place, file.where, *how)
        return self.conversions.begin(request, self.at_once)

    def parts(self, position: int, entries: int, most_bytes: int) -> Iterator[SourcePart]:
        """See Source. The documents of a file that may have many are counted."""
        first, done = position >> _ROW_BITS, position & ((1 << _ROW_BITS) - 1)
        files: list[SourceFile] = []
        size = read_bytes = number = 0
        for number, file in enumerate(self._listing(LeftOut()), 1):
            if number >= first:
                is_full = size + file.size > most_bytes or len(files) >= _MOST_PART_FILES
                if files and is_full:
                    counts = [*map(self._entry_count, files)]
                    last = (number - 1 << _ROW_BITS) + counts[-1]
                    after = entries + sum(counts) - done
                    part = self._only(files, number - 1)
                    yield SourcePart(part, position, entries, last, after, read_bytes)
                    position, entries, done = last, after, 0
                    files, size = [], 0
                files.append(file)
                size += file.size
            read_bytes += file.size
        yield SourcePart.rest(self._only(files, number), position, entries)

    def _only(self, files: Sequence[SourceFile], last: int) -> FileSource:
        """Return a source of these files, the last of which has the number ``last``."""
        source = self._of(partial(listed, files))
        source._files_before = last - len(files)
        return source

    def _of(self, listing: Listing) -> FileSource:
        source = copy(self)
        source._listing = listing
        source._converters = {}
        source.states = None
        return source

    def _entry_count(self, file: SourceFile) -> int:
        if not (file.type.has_many or self._may_have_many(file)):
            return 1
        count = 0
        try:
            for entry in self._checked(file) if self._checks_files else self._converted(file):
                count += entry is not None
        except SourceError as error:
            self._note_limit(path_id(file.relative), error)
            count += 1
        return count

    def _may_have_many(self, file: SourceFile) -> bool:
        """Return whether a file of text begins as one with several documents does."""
        if file.problem is None and not file.type.is_limited:
            where, opened = file.where, file.place.opened(file.where)
            with suppress(SourceError), opened as path, CorpusFile(path, where) as text:
                return MANY.match(text.first_bytes(_LOOKED_AT_BYTES)) is not None
        return False

    def _note_limit(self, identifier: str, error: SourceError) -> None:
        if isinstance(error, FileLimitError):
            error.__context__ = None  # its frames would keep this source, and so its children
            self.over_limits[identifier] = error.with_traceback(None)

    def _entries(
        self, file: SourceFile, skip: int, begun: Conversion | None
    ) -> Iterator[Document | SourceError | None]:
        """Yield the documents of a file and its bad records after the first ``skip`` of them, or
        the error of the file."""
        identifier = path_id(file.relative)
        try:
            if file.problem is not None:
                raise file.problem
            if identifier in self.over_limits:  # when its language or its number was asked
                raise self.over_limits[identifier]
            own: dict[str, MetadataValue] | None = None
            read = self._checked if self._checks_files else self._converted
            for entry in read(file, begun):
                if entry is None:
                    yield None
                    continue
                if skip:
                    skip -= 1
                    continue
                own = own if own is not None else self._file_values(file, identifier)
                document = self._document(file, identifier, entry, own)
                if isinstance(document, SourceError):
                    self.damaged.add(identifier)
                yield document
        except LeftOutError as error:
            if error.do:
                self.left_out_files[identifier] = error.kind
            if not skip:
                yield LeftOutError(error.what, where=identifier, do=error.do)
        except SourceError as error:
            self.damaged.add(identifier)
            self._note_limit(identifier, error)
            is_late = isinstance(error, NotInTimeError)
            if not skip and not (is_late and self._is_hurried):
                yield error if is_late else bad_file(error)

    def _converted(
        self, file: SourceFile, begun: Conversion | None = None
    ) -> Iterator[ConvertedDocument | SourceError]:
        """Yield what the converter of a file yields. Raises what it raises, and SourceError for
        more documents than a file of this size can have: repetitions are stored in no space."""
        most = file.size + _FREE_DOCUMENTS
        for number, entry in enumerate(self._unbounded(file, begun)):
            if number == most:
                raise SourceError(
                    f"The file has more than {most:,} documents.",
                    where=file.where,
                    allowed=f"a document for each byte, and {_FREE_DOCUMENTS:,} more",
                    do="Leave it out, or write its rows as CSV.",
                )
            yield entry

    def _unbounded(
        self, file: SourceFile, begun: Conversion | None
    ) -> Iterator[ConvertedDocument | SourceError]:
        if file.is_limited:
            yield from self.conversions.entries(begun or self._begin(file))
            return
        converter = self._converters.get(file.type.name)
        if converter is None:
            converter = self._converters[file.type.name] = file.type.converter()
        with readable(file.where), file.place.opened(file.where) as path:
            yield from converter(path, file.where, self._fields)

    def _checked(
        self, file: SourceFile, begun: Conversion | None = None
    ) -> Iterator[ConvertedDocument | SourceError | None]:
        """Yield the contents of a file only if all of it can be read. A skipped file must not leave
        its first documents in the index.

        A file too large to be held in memory is read twice, and not in a hurry. Raises SourceError.
        """
        documents: list[ConvertedDocument | SourceError] = []
        characters = 0
        entries = self._converted(file, begun)
        for entry in entries:
            documents.append(entry)
            characters += 0 if isinstance(entry, SourceError) else len(entry.text)
            if characters > HELD_CHARACTERS:
                if self._is_hurried and file.is_limited:
                    raise NotInTimeError(file.where, is_slow=True)
                break
        else:
            yield from documents
            return
        documents.clear()
        for number, _ in enumerate(entries):
            if number % _CHECKED_ROWS == 0:
                yield None
        yield from self._converted(file)

    def _file_values(self, file: SourceFile, identifier: str) -> dict[str, MetadataValue]:
        if file.modified_s is None:
            return {}
        name = identifier.rpartition("/")[2]
        ending = ending_of(name)[1:]
        values: dict[str, MetadataValue] = {
            "file": name,
            "type": ending or PLAIN_TEXT.name,
            "path": (*folders_of(identifier), identifier),
        }
        if moment := _moment(file.modified_s):
            values["modified"] = moment
        return self._metadata.of_file(values)

    def _admitted(
        self, file: SourceFile, converted: ConvertedDocument, text: str
    ) -> tuple[str, dict[str, int]]:
        """Return the text of a file without lines of keys, and how many these are, for a report.
        Raises LeftOutError for secrets, and for generated code that the user has not named."""
        front = (f"{key}: {value}" for key, own in converted.front.items() for value in own)
        whole = "\n".join((*front, text)) if converted.front else text
        is_code = file.type is CODE
        what = secrets_in(
            whole,
            file.suspicion,
            is_data=file.type.most_bytes is not None and not is_code,
            defines=is_code and any(unit.kind != "section" for unit in converted.outline),
        )
        if what:
            raise LeftOutError(what, where=file.where, do=TO_READ)
        if not is_code:
            return text, {}
        from index_jobs.sources.converters.code import is_generated

        if file.where != self.name and is_generated(text, ending_of(file.where)[1:]):
            raise LeftOutError("generated code", where=file.where)
        text, count = without_keys(text)
        return text, {KEY_LINES: count} if count else {}

    def _document(
        self,
        file: SourceFile,
        identifier: str,
        converted: ConvertedDocument | SourceError,
        own: Mapping[str, MetadataValue],
    ) -> Document | SourceError:
        """Return a document of a file, or the error of a bad record. Raises SourceError if the
        whole file cannot be read."""
        if isinstance(converted, SourceError):
            return converted
        is_file = not (converted.suffix or converted.id)
        hidden: dict[str, int] = {}
        where = f"{file.where}#{converted.suffix}" if converted.suffix else file.where
        try:
            text = clean(converted.text, "text", where)
            if is_file and file.suspicion != "none":
                text, hidden = self._admitted(file, converted, text)
            title = title_of(converted.title or usual_title(identifier), "title", where)
            metadata, left = self._metadata.read(converted.metadata, self._named, where)
            front, in_extra = self._metadata.read_front(converted.front)
            beside: tuple[str, ...] = ()
            if is_file:
                words, unsearched = self._metadata.texts(front)
                in_extra |= unsearched
                name = words_of_name(identifier)
                beside = (name, *words) if name and converted.title else words
            else:
                row_id = converted.id or f"{identifier}#{converted.suffix}"
                identifier = checked_id(row_id, where)
        except SourceError as error:
            if is_file:
                raise
            return error
        return Document(
            identifier,
            title,
            text,
            {**own, **metadata, **front},
            where=where,
            is_file=is_file,
            unread={**converted.unread, **in_extra, **left, **hidden},
            outline=converted.outline,
            sentence_ends=converted.sentence_ends,
            passages=converted.passages,
            beside=beside,
        )


def bad_file(error: SourceError) -> BadFileError:
    """Return an error as one of a whole file."""
    do = error.do.replace(SKIP, "").strip()
    if "skip_bad_files" not in do:
        do = f"{do} {SKIP_FILE}".strip()
    return BadFileError(error.what, where=error.where, allowed=error.allowed, do=do)


def _moment(seconds: float) -> str:
    """Return the second of a time stamp in UTC, empty if it is not in the years 1 to 9999."""
    try:
        moment = datetime.fromtimestamp(seconds // 1, UTC)
        return moment.replace(tzinfo=None).isoformat() + "Z"
    except (ValueError, OverflowError, OSError):
        return ""

"""A process that converts files: it reads requests from its standard input, and writes what is in
the files to its output.

Libraries read files of strangers here, within limits of time and memory, so that no file stops or
fills the process that needs it. ``conversion.py`` starts and watches this process. It ends with its
parent, and ignores Ctrl-C, which its parent handles.
"""

from __future__ import annotations

import math
import os
import pickle
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from arag_search.corpus import Document
from arag_search.errors import AragError, SourceError
from arag_search.system.processes import end_with, read_ahead
from arag_search.system.terminal import guard_terminals
from index_jobs.sources.converters.registry import FILE_TYPES, LARGE_BYTES, ConvertedDocument
from index_jobs.sources.folders.safe_open import Place
from index_jobs.sources.lines.files import Fields

OUT_OF_MEMORY = 77
"""The exit code of a child that gets no more memory."""

BYTE_S = 2e-5
"""The most that each byte of a file adds to its time for its documents; in plain text, it does."""

_BATCH_DOCUMENTS = 64
_BATCH_CHARACTERS = 1 << 18
_BATCH_S = 0.1
_SPARE_S = 5
_SPARE_MEMORY = 2
"""The system's limits are above the parent's, which can name the limit that a file broke."""


class Request(NamedTuple):
    """A file to convert: the name of its type, its place, and what a Converter gets. Its long texts
    are cut into passages of ``chunk_tokens`` (0: they are not), as documents with this id."""

    type: str
    place: Place
    where: str
    fields: Fields
    size: int = 0
    id: str = ""
    chunk_tokens: int = 0


class Reply(NamedTuple):
    """The next documents of a file, and the error that ends it. A reply that is not the last is
    followed by another one when the parent asks for it, by None."""

    entries: list[ConvertedDocument | SourceError]
    is_last: bool = False
    error: Exception | None = None


def main(limit_s: float, limit_bytes: int, parent: int) -> None:
    """Answer requests until the input or the parent ends."""
    end_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output printed by a library must not mix with the replies
    guard_terminals()
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_AS, _address_space() + _SPARE_MEMORY * limit_bytes)
    entries: Iterator[ConvertedDocument | SourceError] = iter(())
    most_s = limit_s
    requests = read_ahead(lambda: pickle.load(sys.stdin.buffer))
    while True:
        request: Request | None = requests.get()
        if request is not None:
            entries = _entries(request)
            most_s = limit_s + request.size * BYTE_S + _SPARE_S
        _lower(resource.RLIMIT_CPU, math.ceil(time.process_time() + most_s))
        try:
            reply = pickle.dumps(_next(entries))
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        replies.write(reply)
        replies.flush()


def _entries(request: Request) -> Iterator[ConvertedDocument | SourceError]:
    convert = FILE_TYPES[request.type].converter()
    with request.place.opened(request.where) as path:
        for entry in convert(path, request.where, request.fields):
            if isinstance(entry, SourceError) or len(entry.text) < LARGE_BYTES:
                yield entry
            else:
                yield _cut(entry, request) if request.chunk_tokens else entry


def _cut(entry: ConvertedDocument, request: Request) -> ConvertedDocument | SourceError:
    """Cut the text of a document. Raises SourceError if the whole file cannot be read."""
    from index_jobs.cutting.chunking import cut_up
    from index_jobs.sources.folders.ids import usual_title
    from index_jobs.sources.lines.formats import clean, title_of

    is_file = not (entry.suffix or entry.id)
    where = request.where if is_file else f"{request.where}#{entry.suffix}"
    try:
        text = clean(entry.text, "text", where)
        title = title_of(entry.title or usual_title(request.id), "title", where)
        whole = Document(
            request.id, title, text, where=where, is_file=is_file, outline=entry.outline
        )
        cut = cut_up(whole, request.chunk_tokens)
    except SourceError as error:
        if is_file:
            raise
        return error
    return entry._replace(
        text=cut.text, sentence_ends=cut.sentence_ends, passages=cut.passages, outline=()
    )


def _next(entries: Iterator[ConvertedDocument | SourceError]) -> Reply:
    taken: list[ConvertedDocument | SourceError] = []
    characters = 0
    began = time.monotonic()
    try:
        for entry in entries:
            taken.append(entry)
            characters += 0 if isinstance(entry, SourceError) else len(entry.text)
            if (
                len(taken) == _BATCH_DOCUMENTS
                or characters > _BATCH_CHARACTERS
                or time.monotonic() > began + _BATCH_S
            ):
                return Reply(taken)
    except AragError as error:
        return Reply(taken, is_last=True, error=error)
    except MemoryError:
        raise
    except Exception:  # of ours: its classes and values may be such that no other process reads
        error = RuntimeError(f"In a process that converts files:\n{traceback.format_exc()}")
        return Reply(taken, is_last=True, error=error)
    return Reply(taken, is_last=True)


def _lower(limit: int, most: int) -> None:
    """Set a limit of the system, where it has it and allows so much."""
    try:
        _, hard = resource.getrlimit(limit)
        within = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (within, hard))
    except (OSError, ValueError):  # macOS has no limit of address space
        pass


def _address_space() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        return 0

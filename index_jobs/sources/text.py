"""Text files, each of which is one document, and folders of text files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from arag_search.corpus import Document
from arag_search.errors import SourceError
from index_jobs.sources.folder import folder_entries
from index_jobs.sources.formats import SKIP, Fields, checked_id, clean, title_of
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.records import file_signature, readable
from index_jobs.sources.registry import FORMATS, Format

_NAME = "text"
_ENDINGS = FORMATS[_NAME].file_endings


def open_folder(
    name: str, fields: Fields, metadata: MetadataReader, *, recognised: bool
) -> TextFolder:
    """Open a folder of text. See SourceOpener."""
    return TextFolder(name, recognised=recognised)


def open_file(name: str, fields: Fields, metadata: MetadataReader, *, recognised: bool) -> TextFile:
    """Open a file of text. See SourceOpener."""
    return TextFile(name, recognised=recognised)


class TextFolder:
    """The .txt and .md files below a folder, in the order of their relative paths.

    An entry that is not a file of the folder, such as a link that leads out of it, counts as left
    out.
    """

    format: Format = _NAME

    def __init__(self, name: str, *, recognised: bool) -> None:
        self.name = name
        self.recognised = recognised
        self.bytes_read = 0
        self._root = Path(name)
        left_out: dict[str, int] = {}
        self.size = int(self._look(left_out)["size"])
        self.left_out: Mapping[str, int] = left_out

    def signature(self) -> dict[str, Any]:
        return self._look({})

    def _look(self, left_out: dict[str, int]) -> dict[str, Any]:
        digest = hashlib.sha256()
        files = size = 0
        for relative, entry, not_file in folder_entries(self.name, self._root):
            ending = os.path.splitext(entry.name)[1].lower()
            if not_file or ending not in _ENDINGS:
                shown = not_file or ending or "without ending"
                left_out[shown] = left_out.get(shown, 0) + 1
                continue
            with readable(f"{self.name}/{relative}"):
                status = entry.stat()
            files += 1
            size += status.st_size
            line = f"{relative}\0{status.st_size}\0{status.st_mtime_ns}\n"
            digest.update(line.encode("utf-8", "surrogateescape"))
        return {
            "source": os.path.realpath(self.name),
            "files": files,
            "size": size,
            "digest": digest.hexdigest(),
        }

    def documents(self, skip: int = 0) -> Iterator[tuple[int, Document | SourceError]]:
        number = 0
        self.bytes_read = 0
        for relative, entry, not_file in folder_entries(self.name, self._root):
            if not_file or os.path.splitext(entry.name)[1].lower() not in _ENDINGS:
                continue
            number += 1
            if number > skip:
                yield number, _text_document(Path(entry.path), relative, f"{self.name}/{relative}")
            with readable(f"{self.name}/{relative}"):
                self.bytes_read += entry.stat().st_size


class TextFile:
    """One file of text, which is one document."""

    format: Format = _NAME
    left_out: Mapping[str, int] = {}

    def __init__(self, name: str, *, recognised: bool) -> None:
        self.name = name
        self.recognised = recognised
        self.bytes_read = 0
        self.size = int(self.signature()["size"])

    def signature(self) -> dict[str, Any]:
        return file_signature(self.name)

    def documents(self, skip: int = 0) -> Iterator[tuple[int, Document | SourceError]]:
        if not skip:
            yield 1, _text_document(Path(self.name), Path(self.name).name, self.name)
        self.bytes_read = self.size


def _text_document(path: Path, relative: str, where: str) -> Document | SourceError:
    try:
        identifier = checked_id(relative, where)
        with readable(where):
            data = path.read_bytes()
        text = clean(data.decode("utf-8-sig"), "text", where)
        title = title_of(_heading(text) or path.stem, "title", where)
    except UnicodeDecodeError as error:
        return SourceError(
            "The file is not UTF-8.",
            where=f"{where}, byte {error.start + 1}",
            allowed="text in UTF-8, with or without a byte order mark",
            do=f"Convert it. {SKIP}",
        )
    except SourceError as error:
        return error
    return Document(identifier, title, text, where=where)


def _heading(text: str) -> str:
    """Return the first Markdown heading (``# ...``) outside of code and front matter, if any."""
    fence = "---" if text.startswith("---\n") else ""
    for number, line in enumerate(text.splitlines()):
        if fence:
            if number and line.startswith(fence):
                fence = ""
        elif line.startswith(("```", "~~~")):
            fence = line[:3]
        elif line.startswith("#"):
            marks = len(line) - len(line.lstrip("#"))
            rest = line[marks:]
            if marks <= 6 and rest[:1].isspace() and (heading := rest.strip().rstrip("#").strip()):
                return heading
    return ""

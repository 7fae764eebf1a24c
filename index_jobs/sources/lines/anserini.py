"""Reading documents from a Lucene index made by Anserini or Pyserini."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import Any, cast

import orjson

from arag_search.corpus import Document
from arag_search.engines.lucene.foreign import ForeignIndex
from arag_search.errors import SourceError
from index_jobs.sources.lines.files import Fields, readable
from index_jobs.sources.lines.formats import RecordFormat, text_of
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.source import RecordSource, SourcePart

RAW = "raw"
"""The stored field that holds a document as in its collection."""

TEXT_NAMES = ("text", "contents", "body", "segment", "passage", RAW)
"""The fields that may hold the text, in order of preference; if ``raw`` is an object, its fields
come before the stored fields."""

_LOOKED_AT = 100


class Stored(RecordFormat):
    """The format of the stored fields of a document; if ``raw`` is a JSON object, its fields are
    added."""

    usual = Fields(id_field="id")

    def __init__(self, fields: Fields, metadata: MetadataReader) -> None:
        super().__init__("", fields, metadata)
        self._text_names = (fields.text_field,) if fields.text_field else TEXT_NAMES
        self._known |= {*self._text_names, "_id"}

    def document(self, record: Any, number: int, where: str) -> Document:
        stored = cast("dict[str, Any]", record)
        fields = self._fields_of(stored)
        text = text_of(fields, self.text_name(stored) or self._text_names[0], where)
        return self._finished(fields, number, where, text)

    def text_name(self, stored: Mapping[str, Any]) -> str | None:
        """Return the field that holds the text, if there is one."""
        fields = self._fields_of(stored)
        return next((name for name in self._text_names if isinstance(fields.get(name), str)), None)

    def _fields_of(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        raw = stored.get(RAW)
        if isinstance(raw, str) and raw.lstrip().startswith("{"):
            try:
                loaded: Any = orjson.loads(raw)
            except orjson.JSONDecodeError:
                return dict(stored)  # plain text that begins with a bracket
            inner = cast("dict[str, Any]", loaded)
            beside = {name: value for name, value in stored.items() if name != RAW}
            return beside | inner | {"id": stored.get("id", inner.get("id"))}
        return dict(stored)


def is_lucene_index(folder: Path) -> bool:
    """Return whether the folder holds a Lucene index."""
    with readable(str(folder)):
        return any(name.startswith("segments_") for name in os.listdir(folder))


class LuceneIndexFolder(RecordSource):
    """The documents that a Lucene index stores, in index order.

    The id is the field ``id``. The text comes from ``raw`` (an object or plain text) or from
    ``contents``. The title and the metadata come from the object or from stored fields. Raises
    SourceError if the first documents store no text.
    """

    format = "anserini"

    def __init__(
        self, name: str, fields: Fields, metadata: MetadataReader, *, recognised: bool
    ) -> None:
        self.name = name
        self.recognised = recognised
        self.bytes_read = 0
        self._fields = fields
        self._metadata = metadata
        if not is_lucene_index(Path(name)):
            raise SourceError(
                "There is no Lucene index in the folder.",
                where=name,
                allowed="a folder with a file segments_...",
            )
        self.size = int(self.signature()["size"])
        self._check_stored()

    def _check_stored(self) -> None:
        format = Stored(self._fields, self._metadata)
        names: set[str] = set()
        with ForeignIndex(Path(self.name), self.name) as index:
            for looked_at, (_, stored) in enumerate(index.documents()):
                names |= stored.keys()
                if format.text_name(stored) or looked_at == _LOOKED_AT:
                    return
        if not names and not index.end:
            raise SourceError("The Lucene index is empty.", where=self.name)
        raise SourceError(
            f"The Lucene index does not store the field {self._fields.text_field}."
            if self._fields.text_field
            else f"The Lucene index does not store the text of its documents ({RAW} or contents).",
            where=self.name,
            allowed=f"one of the fields it stores: {', '.join(sorted(names)) or 'none'}",
            do="Build it again with --storeRaw or --storeContents, or give the original collection"
            " as the source. `text_field` names another field.",
        )

    def signature(self) -> dict[str, Any]:
        digest = hashlib.sha256()
        size = 0
        with readable(self.name), os.scandir(self.name) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name != "write.lock" and entry.is_file():
                    status = entry.stat()
                    size += status.st_size
                    line = f"{entry.name}\0{status.st_size}\0{status.st_mtime_ns}\n"
                    digest.update(line.encode())
        return {
            "source": os.path.abspath(self.name),
            "size": size,
            "digest": digest.hexdigest(),
        }

    def parts(self, position: int, entries: int, most_bytes: int) -> Iterator[SourcePart]:
        """See Source. An index is not divided."""
        part = copy(self)
        part.name = os.path.abspath(self.name)
        yield SourcePart.rest(part, position, entries)

    def documents(self, skip: int = 0) -> Iterator[tuple[int, Document | SourceError]]:
        self.bytes_read = 0
        format = Stored(self._fields, self._metadata)
        with ForeignIndex(Path(self.name), self.name) as index:
            for number, stored in index.documents(skip):
                where = f"{self.name}, document {number}"
                try:
                    entry = format.document(stored, number + 1, where)
                except SourceError as error:
                    entry = error
                yield number + 1, entry
                self.bytes_read = self.size * (number + 1) // index.end
        self.bytes_read = self.size

"""Lucene indexes of other software: their stored fields, in the order of their documents.

Lucene reads indexes of its own and of the previous release line. For formats older than this very
release it needs a second jar, which is downloaded when the first such index is opened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from arag_search.engines.jars import PinnedJar, verified_jar
from arag_search.engines.lucene import jvm
from arag_search.engines.lucene.jvm import java
from arag_search.errors import SourceError
from arag_search.system.cache import cache_folder

OLDER_FORMATS = PinnedJar(
    group="org.apache.lucene",
    artifact="lucene-backward-codecs",
    version=jvm.LUCENE_VERSION,
    sha256="0cfe4d9d2af63cf90ddbc974d49337c6747158413587ee35bf4b8d4e288b6389",
    size=941_625,
)

_CODEC = re.compile(r"[cC]odec '\w+'")
# Codecs consist of the other formats and therefore come last.
_REGISTRIES = (
    ("PostingsFormat", "reloadPostingsFormats"),
    ("DocValuesFormat", "reloadDocValuesFormats"),
    ("KnnVectorsFormat", "reloadKnnVectorsFormat"),
    ("Codec", "reloadCodecs"),
)


class ForeignIndex:
    """A Lucene index, opened at its newest commit; a context manager.

    Raises SourceError, which calls the index ``name``, if it cannot be read. Raises JvmError if the
    jar for older formats is needed and cannot be downloaded.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._name = name
        self._directory = java("org.apache.lucene.store.FSDirectory").open(
            java("java.nio.file.Path").of(str(folder.absolute()))
        )
        try:
            self._reader = self._open()
        except BaseException:
            self._directory.close()
            raise
        self.end = int(self._reader.maxDoc())
        """The number after the last document; numbers of deleted documents are not reused."""

    def _open(self) -> Any:
        open_reader = java("org.apache.lucene.index.DirectoryReader").open
        try:
            return open_reader(self._directory)
        except jvm.java_error() as error:
            if not _CODEC.search(jvm.java_reason(error)):
                raise self._problem(error) from error
        _read_older_formats()
        try:
            return open_reader(self._directory)
        except jvm.java_error() as error:
            raise self._problem(error) from error

    def documents(self, start: int = 0) -> Iterator[tuple[int, dict[str, str | int | float]]]:
        """Iterate over the numbers (from 0) and stored fields of documents, from ``start`` on.

        Deleted documents are left out. If a field has several values, the first counts; binary
        values are left out.
        """
        try:
            for leaf in self._reader.leaves():
                base, reader = int(leaf.docBase), leaf.reader()
                live = reader.getLiveDocs()
                read = reader.storedFields().document
                for number in range(max(start - base, 0), int(reader.maxDoc())):
                    if live is None or live.get(number):
                        yield base + number, _stored(read(number))
        except jvm.java_error() as error:
            raise self._problem(error) from error

    def _problem(self, error: Exception) -> SourceError:
        reason = jvm.java_reason(error)
        if _CODEC.search(reason) or jvm.is_a(
            error, "IndexFormatTooOldException", "IndexFormatTooNewException"
        ):
            major = int(jvm.LUCENE_VERSION.partition(".")[0])
            return SourceError(
                f"The index is in a format that Lucene {jvm.LUCENE_VERSION} does not read"
                f" ({reason}).",
                where=self._name,
                allowed=f"indexes of Lucene {major - 1} and {major}, up to {jvm.LUCENE_VERSION}",
                do="Name the collection that it was built from as the source.",
            )
        return SourceError(
            f"The Lucene index cannot be read ({reason}).",
            where=self._name,
            do=jvm.advice(error) or "Check whether all its files are there.",
        )

    def close(self) -> None:
        self._reader.close()
        self._directory.close()

    def __enter__(self) -> ForeignIndex:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _stored(document: Any) -> dict[str, str | int | float]:
    values: dict[str, str | int | float] = {}
    for field in document.getFields():
        name = str(field.name())
        if name in values:
            continue
        number = field.numericValue()
        if number is not None:
            decimal = float(number.doubleValue())
            values[name] = int(number.longValue()) if decimal.is_integer() else decimal
        elif (text := field.stringValue()) is not None:
            values[name] = str(text)
    return values


def _read_older_formats() -> None:
    """Register the formats of earlier releases with Lucene."""
    jar = verified_jar(OLDER_FORMATS, cache_folder())
    codec = java("org.apache.lucene.codecs.Codec")
    url = java("java.io.File")(str(jar)).toURI().toURL()
    loader = java("java.net.URLClassLoader")([url], codec.class_.getClassLoader())
    for kind, reload in _REGISTRIES:
        getattr(java(f"org.apache.lucene.codecs.{kind}"), reload)(loader)

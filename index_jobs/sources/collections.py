"""Formats of the collections that retrieval research shares: KILT, DPR and BEIR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from arag_search.corpus import Document
from index_jobs.sources.formats import (
    Fields,
    ObjectFormat,
    clean,
    object_of,
    strings_of,
    text_of,
)
from index_jobs.sources.metadata import MetadataReader

_CATEGORIES = "categories"
_MARKS = {"Section::::": "# ", "BULLET::::": ""}


class Kilt(ObjectFormat):
    """``{"wikipedia_id", "wikipedia_title", "text": ["...", ...], "categories", ...}``.

    The text is the paragraphs in order, each on lines of its own, the first being the title. A
    heading (``Section::::History.``) becomes ``# History.``, and of an item of a list
    (``BULLET::::- ...``) the word before the dash goes: they are marks of the dump, which would be
    found as words of nearly every article. ``categories`` are cut at commas.
    """

    def __init__(self, stem: str, fields: Fields, metadata: MetadataReader) -> None:
        usual = Fields(id="wikipedia_id", title="wikipedia_title")
        super().__init__(stem, fields, usual, metadata)
        self._known |= {"_id"}

    def document(self, record: Any, number: int, where: str) -> Document:
        example = '{"wikipedia_id": "7", "wikipedia_title": "Vivaldi", "text": ["...", "..."]}'
        found = object_of(record, where, example)
        paragraphs = strings_of(found, self._text_field, where)
        categories = found.get(_CATEGORIES)
        if isinstance(categories, str):
            names = [name.strip() for name in categories.split(",")]
            found = {**found, _CATEGORIES: [name for name in names if name]}
        text = clean(lines_of(paragraphs), self._text_field, where)
        return self._finished(found, number, where, text)


def lines_of(paragraphs: Sequence[str]) -> str:
    """Paragraphs of KILT as one text: each ends with a line end, and marks are made readable."""
    lines: list[str] = []
    for paragraph in paragraphs:
        for mark, shown in _MARKS.items():
            if paragraph.startswith(mark):
                paragraph = shown + paragraph.removeprefix(mark)
        lines.append(paragraph if paragraph.endswith("\n") else paragraph + "\n")
    return "".join(lines)


class Dpr(ObjectFormat):
    """Rows of ``id``, ``text`` and ``title``: passages that came cut, with their ids."""

    def __init__(self, stem: str, fields: Fields, metadata: MetadataReader) -> None:
        super().__init__(stem, fields, Fields(id="id"), metadata)

    def document(self, record: Any, number: int, where: str) -> Document:
        row = cast("dict[str, str]", record)
        text = text_of(row, self._text_field, where)
        # An empty column says nothing of the passage.
        row = {name: value for name, value in row.items() if value or name in self._known}
        return self._finished(row, number, where, text, whole=True)


class Beir(ObjectFormat):
    """``{"_id", "title", "text", "metadata": {...}}``; the inner metadata counts as fields."""

    def __init__(self, stem: str, fields: Fields, metadata: MetadataReader) -> None:
        super().__init__(stem, fields, Fields(id="_id"), metadata)

    def document(self, record: Any, number: int, where: str) -> Document:
        found = object_of(record, where, '{"_id": "7", "title": "Vivaldi", "text": "..."}')
        text = text_of(found, self._text_field, where)
        inner = found.get("metadata")
        if isinstance(inner, dict):
            outer = {name: value for name, value in found.items() if name != "metadata"}
            added = cast("dict[str, Any]", inner).items()
            found = {name: value for name, value in added if name not in self._known} | outer
        return self._finished(found, number, where, text)

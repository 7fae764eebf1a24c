"""Formats of the collections that retrieval research shares: KILT, DPR and BEIR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from arag_search.corpus import Document
from index_jobs.sources.lines.files import Fields
from index_jobs.sources.lines.formats import RecordFormat, clean, object_of, strings_of, text_of

_CATEGORIES = "categories"
_MARKS = {"Section::::": "# ", "BULLET::::": ""}


class Kilt(RecordFormat):
    """``{"wikipedia_id", "wikipedia_title", "text": ["...", ...], "categories", ...}``.

    The text is the paragraphs in order, each on separate lines; the first is the title. A heading
    (``Section::::History.``) becomes ``# History.``, and a list item (``BULLET::::- ...``) loses
    the word before the dash. These markers of the dump would match as words in nearly every
    article. ``categories`` are split at commas.
    """

    usual = Fields(id_field="wikipedia_id", title_field="wikipedia_title")
    others = frozenset(("_id",))

    @staticmethod
    def recognises(record: dict[str, Any], fields: Fields) -> bool:
        return (
            isinstance(record.get(fields.text_field or "text"), list)
            and {"wikipedia_id", "wikipedia_title"} <= record.keys()
        )

    def document(self, record: Any, number: int, where: str) -> Document:
        example = '{"wikipedia_id": "7", "wikipedia_title": "Vivaldi", "text": ["...", "..."]}'
        fields = object_of(record, where, example)
        paragraphs = strings_of(fields, self._text_field, where)
        categories = fields.get(_CATEGORIES)
        if isinstance(categories, str):
            names = [name.strip() for name in categories.split(",")]
            fields = {**fields, _CATEGORIES: [name for name in names if name]}
        text = clean(lines_of(paragraphs), self._text_field, where)
        return self._finished(fields, number, where, text)


def lines_of(paragraphs: Sequence[str]) -> str:
    """Join KILT paragraphs into one text; end each with a line end, and make the markers
    readable."""
    lines: list[str] = []
    for paragraph in paragraphs:
        for mark, shown in _MARKS.items():
            if paragraph.startswith(mark):
                paragraph = shown + paragraph.removeprefix(mark)
        lines.append(paragraph if paragraph.endswith("\n") else paragraph + "\n")
    return "".join(lines)


class Dpr(RecordFormat):
    """Rows of ``id``, ``text`` and ``title``: pre-chunked passages with their ids."""

    layout = "rows"  # detected by their header, or named with --format
    usual = Fields(id_field="id")
    whole = True

    def document(self, record: Any, number: int, where: str) -> Document:
        row = cast("dict[str, str]", record)
        text = text_of(row, self._text_field, where)
        # An empty column is not a metadata value.
        row = {name: value for name, value in row.items() if value or name in self._known}
        return self._finished(row, number, where, text)


class Beir(RecordFormat):
    """``{"_id", "title", "text", "metadata": {...}}``; the metadata inside counts as fields."""

    usual = Fields(id_field="_id")

    @staticmethod
    def recognises(record: dict[str, Any], fields: Fields) -> bool:
        return (
            isinstance(record.get(fields.text_field or "text"), str)
            and fields.id_field is None
            and "_id" in record
            and "id" not in record
        )

    def document(self, record: Any, number: int, where: str) -> Document:
        fields = object_of(record, where, '{"_id": "7", "title": "Vivaldi", "text": "..."}')
        text = text_of(fields, self._text_field, where)
        inner = fields.get("metadata")
        if isinstance(inner, dict):
            outer = {name: value for name, value in fields.items() if name != "metadata"}
            added = cast("dict[str, Any]", inner).items()
            fields = {name: value for name, value in added if name not in self._known} | outer
        return self._finished(fields, number, where, text)

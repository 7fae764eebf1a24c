"""Formats of the collections that retrieval research shares: KILT, DPR and BEIR."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

from arag_search.corpus import Document
from arag_search.errors import SourceError
from index_jobs.sources.formats import Layout, ObjectFormat, clean, object_of, strings_of, text_of
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.record_file import LOOKED_AT_BYTES, RecordFile
from index_jobs.sources.records import CorpusFile, Fields, line_records
from index_jobs.sources.registry import folder_help
from index_jobs.sources.selection import FileSelection, leads_out

_CATEGORIES = "categories"
_BEIR_NAMES = ("corpus.jsonl", "corpus.jsonl.gz")
_MARKS = {"Section::::": "# ", "BULLET::::": ""}


class Kilt(ObjectFormat):
    """``{"wikipedia_id", "wikipedia_title", "text": ["...", ...], "categories", ...}``.

    The text is the paragraphs in order, each on separate lines; the first is the title. A heading
    (``Section::::History.``) becomes ``# History.``, and a list item (``BULLET::::- ...``) loses
    the word before the dash: these are markers of the dump, which would match as words in nearly
    every article. ``categories`` are split at commas.
    """

    @staticmethod
    def recognises(record: str | dict[str, Any], fields: Fields) -> bool:
        return (
            isinstance(record, dict)
            and isinstance(record.get(fields.text or "text"), list)
            and {"wikipedia_id", "wikipedia_title"} <= record.keys()
        )

    def __init__(self, stem: str, fields: Fields, metadata: MetadataReader) -> None:
        usual = Fields(id="wikipedia_id", title="wikipedia_title")
        super().__init__(stem, fields, metadata, usual)
        self._known |= {"_id"}

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


class Dpr(ObjectFormat):
    """Rows of ``id``, ``text`` and ``title``: pre-chunked passages with their ids."""

    layout: ClassVar[Layout | None] = "rows"

    @staticmethod
    def recognises(record: str | dict[str, Any], fields: Fields) -> bool:
        return False  # rows are detected by their header, or named with --format

    def __init__(self, stem: str, fields: Fields, metadata: MetadataReader) -> None:
        super().__init__(stem, fields, metadata, Fields(id="id"))

    def document(self, record: Any, number: int, where: str) -> Document:
        row = cast("dict[str, str]", record)
        text = text_of(row, self._text_field, where)
        # An empty column is not a metadata value.
        row = {name: value for name, value in row.items() if value or name in self._known}
        return self._finished(row, number, where, text, whole=True)


class Beir(ObjectFormat):
    """``{"_id", "title", "text", "metadata": {...}}``; the metadata inside counts as fields."""

    @staticmethod
    def recognises(record: str | dict[str, Any], fields: Fields) -> bool:
        return (
            isinstance(record, dict)
            and isinstance(record.get(fields.text or "text"), str)
            and fields.id is None
            and "_id" in record
            and "id" not in record
        )

    def __init__(self, stem: str, fields: Fields, metadata: MetadataReader) -> None:
        super().__init__(stem, fields, metadata, Fields(id="_id"))

    def document(self, record: Any, number: int, where: str) -> Document:
        fields = object_of(record, where, '{"_id": "7", "title": "Vivaldi", "text": "..."}')
        text = text_of(fields, self._text_field, where)
        inner = fields.get("metadata")
        if isinstance(inner, dict):
            outer = {name: value for name, value in fields.items() if name != "metadata"}
            added = cast("dict[str, Any]", inner).items()
            fields = {name: value for name, value in added if name not in self._known} | outer
        return self._finished(fields, number, where, text)


def open_beir(
    name: str,
    fields: Fields,
    metadata: MetadataReader,
    files: FileSelection,
    *,
    recognised: bool,
) -> RecordFile | None:
    """Open the corpus of a BEIR folder. See SourceOpener."""
    corpus = _beir_corpus(name, Path(name))
    if corpus is None and not recognised:
        raise SourceError(
            "There is no corpus.jsonl in the folder.",
            where=name,
            allowed=folder_help(),
            do="Give the files themselves as sources.",
        )
    if corpus is None or (recognised and not _is_beir(corpus)):
        return None
    return RecordFile(corpus, "beir", fields, metadata, recognised=recognised)


def _beir_corpus(name: str, folder: Path) -> str | None:
    """Return the corpus file of a BEIR folder, or None. Raises SourceError if there are two, or if
    it is a link that leads out of the folder."""
    names = [file for file in _BEIR_NAMES if (folder / file).is_file()]
    if len(names) > 1:
        raise SourceError(
            f"There are both {names[0]} and {names[1]}.",
            where=name,
            do="Name the intended one as the source.",
        )
    if not names:
        return None
    if leads_out(folder / names[0], folder):
        raise SourceError(
            f"{names[0]} is a link that leads out of the folder.",
            where=name,
            do="Give the file that it leads to as the source.",
        )
    return f"{name.rstrip('/')}/{names[0]}"


def _is_beir(corpus: str) -> bool:
    with CorpusFile(Path(corpus), corpus) as file:
        if not file.first_bytes(LOOKED_AT_BYTES).lstrip().startswith(b"{"):
            return False
        for number, record in line_records(file, 0):
            if isinstance(record, dict):
                return {"_id", "text"} <= cast("dict[str, Any]", record).keys()
            if number >= 100:
                break
    return False

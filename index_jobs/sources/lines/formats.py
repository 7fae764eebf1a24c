"""Converting the records of corpus files to documents: one class for each format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import BaseModel, Field, NonNegativeInt, TypeAdapter, ValidationError

from arag_search.corpus import (
    MAX_ID_BYTES,
    MAX_SENTENCES,
    CutPassages,
    Document,
    PassageOutline,
    is_unicode,
    nfc,
)
from arag_search.errors import SourceError
from arag_search.query.field_types import is_rounded
from index_jobs.sources.lines.files import SKIP, Fields, Record
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.terminal_text import CODES, as_printed

Layout = Literal["lines", "array", "rows"]
"""How records are arranged in a file: JSON lines, a JSON array, or rows with tabs."""

SENTENCE_ENDS = "sentence_ends"
PASSAGE_OUTLINES = "passage_outlines"
PRE_CHUNKED_MARK = "pre_chunked"


class RecordFormat(ABC):
    """A reader that turns the records of one file into documents.

    A record without a field "id" gets an id made of ``stem`` and the number of the record. It does
    not if the user or ``usual`` names the field of the id.
    """

    layout: ClassVar[Layout | None] = None
    """The only layout that files of this format have; None for JSON lines and arrays."""

    usual: ClassVar[Fields] = Fields()
    """The names of fields, where they are not id, title and text."""

    others: ClassVar[frozenset[str]] = frozenset()
    """The keys that are no metadata, besides id, title and text."""

    whole: ClassVar[bool] = False
    """Whether documents are passages, which are not cut."""

    def __init__(self, stem: str, fields: Fields, metadata: MetadataReader) -> None:
        self._stem = stem
        self._id_field = fields.id_field or self.usual.id_field or "id"
        self._id_is_needed = bool(fields.id_field or self.usual.id_field)
        self._title_field = fields.title_field or self.usual.title_field or "title"
        self._text_field = fields.text_field or self.usual.text_field or "text"
        self._known = self.others | {self._id_field, self._title_field, self._text_field}
        self._metadata = metadata

    @staticmethod
    def recognises(record: dict[str, Any], fields: Fields) -> bool:
        """Return whether a file of JSON that begins with this record is of the format."""
        return False

    @abstractmethod
    def document(self, record: Any, number: int, where: str) -> Document:
        """Return the document of record ``number`` (from 1). Raises SourceError that names
        ``where``."""
        ...

    def pass_over(self, record: Any) -> None:  # noqa: B027
        """Register a record that was read in an earlier run."""

    def _finished(
        self,
        record: Mapping[str, Any],
        number: int,
        where: str,
        text: str,
        ends: tuple[int, ...] | None = None,
    ) -> Document:
        title = title_of(record.get(self._title_field), self._title_field, where)
        if not title and not text:
            raise SourceError("There is neither text nor title.", where=where, do=SKIP)
        metadata, left = self._metadata.read(record, self._known, where)
        identifier = self._id(record, number, where)
        return Document(identifier, title, text, metadata, ends, self.whole, where, unread=left)

    def _id(self, record: Mapping[str, Any], number: int, where: str) -> str:
        value = record.get(self._id_field)
        if value is None:
            if self._id_is_needed:
                raise SourceError(
                    f'There is no field "{self._id_field}".',
                    where=where,
                    allowed=f"one of the existing fields: {', '.join(record)}",
                    do=f"Name the field of the id with `id_field`. {SKIP}",
                )
            return checked_id(f"{self._stem}-{number}", where)
        is_wrong = isinstance(value, bool) or not isinstance(value, str | int | float)
        if is_wrong or is_rounded(value) or value != value:
            raise SourceError(
                f'The field "{self._id_field}" is {kind_of(value)}.',
                where=where,
                allowed="a string, or a number of at most 19 digits",
                do=SKIP,
            )
        return checked_id(str(value), where)


class Documents(RecordFormat):
    """``{"id": ..., "title": ..., "text": ..., metadata...}``; only the text is required.

    ``sentence_ends`` may have the offset after each sentence, in code points of the text in NFC;
    the last is its length. Without them, sentences are found in the text. ``passage_outlines`` may
    have the passages, as exports write them.
    """

    others = frozenset((SENTENCE_ENDS, PASSAGE_OUTLINES))

    @staticmethod
    def recognises(record: dict[str, Any], fields: Fields) -> bool:
        return isinstance(record.get(fields.text_field or "text"), str)

    def document(self, record: Any, number: int, where: str) -> Document:
        values = object_of(record, where, '{"id": "7", "title": "Vivaldi", "text": "..."}')
        text = text_of(values, self._text_field, where)
        ends = ends_of(values.get(SENTENCE_ENDS), text, where)
        document = self._finished(values, number, where, text, ends)
        if PASSAGE_OUTLINES not in values:
            return document
        passages = passages_of(values[PASSAGE_OUTLINES], ends or (), where)
        return replace(document, passages=passages)


class PreChunked(Documents):
    """``{"id": ..., "title": ..., "text": ..., "pre_chunked": true, metadata...}``: passages that
    are not cut, with their ids. Only the first record must say that it is pre-chunked; if the
    format is named, no record need say so."""

    usual = Fields(id_field="id")
    others = Documents.others | {PRE_CHUNKED_MARK}
    whole = True

    @staticmethod
    def recognises(record: dict[str, Any], fields: Fields) -> bool:
        return Documents.recognises(record, fields) and record.get(PRE_CHUNKED_MARK) is True


class Passages(RecordFormat):
    """``{"title": ..., "sentences": ["...", ...]}``: documents that are already split into
    sentences."""

    usual = Fields(text_field="sentences")

    @staticmethod
    def recognises(record: dict[str, Any], fields: Fields) -> bool:
        has_sentences = isinstance(record.get(fields.text_field or "sentences"), list)
        return has_sentences and not Documents.recognises(record, fields)

    def document(self, record: Any, number: int, where: str) -> Document:
        values = object_of(record, where, '{"title": "Vivaldi", "sentences": ["...", "..."]}')
        name = self._text_field
        sentences = strings_of(values, name, where)
        text, ends = joined([clean(as_printed(own)[0], name, where) for own in sentences])
        return self._finished(values, number, where, text, ends)


class GraphragBench(RecordFormat):
    """``{"corpus_name": ..., "context": ...}`` of GraphRAG-Bench: long documents with a name.

    The name is both title and id; if it occurs again, the id is ``<name>-2`` and so on.
    """

    @staticmethod
    def recognises(record: dict[str, Any], fields: Fields) -> bool:
        return (
            not fields.text_field
            and "corpus_name" in record
            and isinstance(record.get("context"), str)
            and not isinstance(record.get("text"), str)
            and not isinstance(record.get("sentences"), list)
        )

    def __init__(self, stem: str, fields: Fields, metadata: MetadataReader) -> None:
        super().__init__(stem, fields, metadata)
        self._times = Counter[str]()

    def pass_over(self, record: Any) -> None:
        match record:
            case {"corpus_name": str(name)}:
                self._times[name] += 1
            case _:
                pass

    def document(self, record: Any, number: int, where: str) -> Document:
        self.pass_over(record)
        values = object_of(record, where, '{"corpus_name": "Medical", "context": "..."}')
        name = values.get("corpus_name")
        if not isinstance(name, str):
            raise _wrong_type("corpus_name", name, "a string", where)
        text = text_of(values, "context", where)
        if not text:
            raise SourceError("There is no text.", where=where, do=SKIP)
        times = self._times[name]
        title = title_of(name, "corpus_name", where)
        identifier = checked_id(name if times == 1 else f"{name}-{times}", where)
        metadata, left = self._metadata.read(values, ("corpus_name", "context"), where)
        return Document(identifier, title, text, metadata, None, self.whole, where, unread=left)


class AragChunks(RecordFormat):
    """``"17:text"`` of A-RAG's chunk files: pre-chunked passages with their ids."""

    layout = "array"
    whole = True

    def document(self, record: Any, number: int, where: str) -> Document:
        allowed = 'a string such as "17:text"'
        if not isinstance(record, str):
            raise SourceError(
                f"The item is {kind_of(record)}.", where=where, allowed=allowed, do=SKIP
            )
        identifier, colon, text = record.partition(":")
        if not colon:
            raise SourceError("The passage has no id.", where=where, allowed=allowed, do=SKIP)
        text = clean(text, "text", where)
        if not text:
            raise SourceError("There is no text.", where=where, do=SKIP)
        return Document(checked_id(identifier.strip(), where), "", text, {}, None, True, where)


def _as_printed(document: Document) -> Document:
    """Return a document whose title and text have no codes for terminals, unless the record says
    where the sentences of the text end."""
    if document.sentence_ends is not None:
        return document
    title, of_title = as_printed(document.title)
    text, codes = as_printed(document.text)
    if not of_title + codes:
        return document
    unread = {**document.unread, CODES: of_title + codes}
    return replace(document, title=title, text=text, unread=unread)


def converted(
    records: Iterable[Record], format: RecordFormat, place: str
) -> Iterator[tuple[int, Document | SourceError]]:
    """Yield the document of each record, or its error, in which ``place`` and its number say where
    it is."""
    for number, record in records:
        entry = record
        if not isinstance(record, SourceError):
            try:
                entry = _as_printed(format.document(record, number, f"{place} {number}"))
            except SourceError as error:
                entry = error
        yield number, entry


# Parts of records


def object_of(record: Any, where: str, example: str) -> dict[str, Any]:
    """Return the record, which must be a JSON object."""
    if not isinstance(record, dict):
        raise SourceError(
            f"The record is {kind_of(record)}.",
            where=where,
            allowed=f"an object such as {example}",
            do=SKIP,
        )
    return cast("dict[str, Any]", record)


def text_of(record: Mapping[str, Any], name: str, where: str) -> str:
    """Return the text in NFC, or an empty text if there is only white space."""
    value = record.get(name)
    if not isinstance(value, str):
        if name not in record:
            raise _absent(record, name, where)
        raise _wrong_type(name, value, "a string", where)
    return clean(value, name, where)


def strings_of(record: Mapping[str, Any], name: str, where: str) -> list[str]:
    """Return the list of strings in this field."""
    if name not in record:
        raise _absent(record, name, where)
    value = record[name]
    if not isinstance(value, list):
        raise _wrong_type(name, value, "a list of strings", where)
    for item in cast("list[object]", value):
        if not isinstance(item, str):
            raise _wrong_type(f"{name}[]", item, "a string", where)
    return cast("list[str]", value)


def ends_of(value: Any, text: str, where: str) -> tuple[int, ...] | None:
    """Return the offsets after the sentences of a text; None if there are none."""
    if value is None:
        return None
    ends = cast("list[Any]", value if isinstance(value, list) else [None])
    is_right = all(type(end) is int for end in ends) and (ends[-1] if ends else 0) == len(text)
    if not is_right or any(start >= end for start, end in pairwise([0, *ends])):
        raise SourceError(
            f'The field "{SENTENCE_ENDS}" does not fit the text.',
            where=where,
            allowed=f"ascending offsets in code points of the text in NFC, the last {len(text)}",
            do=SKIP,
        )
    return tuple(ends)


def title_of(value: Any, name: str, where: str) -> str:
    """Return the title in NFC on one line, or an empty text if there is none."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _wrong_type(name, value, "a string", where)
    return " ".join(clean(value, name, where).split())


def clean(text: str, name: str, where: str) -> str:
    """Return the text in NFC, or empty if it is only white space. Lone surrogates are rejected."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise SourceError(
                f'The field "{name}" holds a lone surrogate (half a character).',
                where=f"{where}, character {error.start + 1} of the field",
                do=SKIP,
            ) from None
        text = nfc(text)
    return "" if text.isspace() else text


def checked_id(identifier: str, where: str) -> str:
    """Return the id in NFC. Raises SourceError if it could not be shown or looked up."""
    if identifier.isascii() and identifier.isprintable() and 0 < len(identifier) <= MAX_ID_BYTES:
        if identifier[0] != " " != identifier[-1]:
            return identifier
    else:
        identifier = nfc(identifier)
        if identifier.strip() == identifier and _fits(identifier):
            return identifier
    shown = repr(identifier if len(identifier) <= 80 else identifier[:77] + "...")
    raise SourceError(
        f"The id {shown} cannot be used.",
        where=where,
        allowed=f"1 to {MAX_ID_BYTES} bytes of UTF-8, without control characters and without"
        " white space at either end",
        do=SKIP,
    )


def _fits(identifier: str) -> bool:
    if any(ord(character) < 32 or character in "\x7f\x85\u2028\u2029" for character in identifier):
        return False
    try:
        return 0 < len(identifier.encode()) <= MAX_ID_BYTES
    except UnicodeEncodeError:
        return False


class _GivenPassage(BaseModel):
    """A passage in a record: the number of its sentences, and its outline."""

    sentences: Annotated[int, Field(ge=0, le=MAX_SENTENCES)]
    path: str = ""
    line: NonNegativeInt = 0
    units: tuple[tuple[NonNegativeInt, int, str], ...] = ()
    beside: tuple[str, ...] = ()
    index: bool = False


_GIVEN = TypeAdapter(tuple[_GivenPassage, ...])


def passages_of(value: Any, ends: Sequence[int], where: str) -> CutPassages:
    """Return the passages that a record gives. Raises SourceError if they do not fit its
    sentences."""
    try:
        given = _GIVEN.validate_python(value)
    except ValidationError:
        given = ()
    units = [(passage, unit) for passage in given for unit in passage.units]
    if (
        not given
        or sum(passage.sentences for passage in given) != len(ends)
        or not all(first < end <= passage.sentences for passage, (first, end, _) in units)
        or not all(is_unicode(text) for own in given for text in (own.path, *own.beside))
        or not all(is_unicode(name) for _, (_, _, name) in units)
    ):
        raise SourceError(
            f'The field "{PASSAGE_OUTLINES}" does not fit the sentences.',
            where=where,
            allowed='for each passage {"sentences", "path", "line", "units", "beside"}, of which '
            f'"sentences" numbers all those of "{SENTENCE_ENDS}"',
            do=SKIP,
        )
    return tuple(
        (
            passage.sentences,
            PassageOutline.of_json(passage.path, passage.line, passage.units, passage.beside),
            passage.index,
        )
        for passage in given
    )


def joined(sentences: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Join sentences into a text; return it with the offset after each sentence.

    A blank is inserted where neither side has white space. Empty sentences are left out.
    """
    pieces: list[str] = []
    ends: list[int] = []
    length = 0
    for sentence in sentences:
        if not sentence:
            continue
        if pieces and not pieces[-1][-1].isspace() and not sentence[0].isspace():
            pieces[-1] += " "
            length += 1
            ends[-1] = length
        pieces.append(sentence)
        length += len(sentence)
        ends.append(length)
    return "".join(pieces), tuple(ends)


def kind_of(value: object) -> str:
    """Return the type of a JSON value, in words."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "a number"
    kinds = {"NoneType": "null", "bool": "a boolean", "str": "a string", "list": "a list"}
    return kinds.get(type(value).__name__, "an object")


def _absent(record: Mapping[str, Any], name: str, where: str) -> SourceError:
    return SourceError(
        f'There is no field "{name}".',
        where=where,
        allowed=f"one of the existing fields: {', '.join(record) or 'none'}",
        do=f"Name the field of the text with `text_field`. {SKIP}",
    )


def _wrong_type(name: str, value: object, allowed: str, where: str) -> SourceError:
    return SourceError(
        f'The field "{name}" is {kind_of(value)}.', where=where, allowed=allowed, do=SKIP
    )

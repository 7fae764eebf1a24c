"""The fields that a query may name, and their kinds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, Literal, NamedTuple

from arag_search.query.field_types import FIELD_TYPES, KEYWORD, FieldType, MetadataType

FieldKind = MetadataType | Literal["text"]

TITLE: Final = "title"
CONTENT: Final = "content"
TEXT_FIELDS = (TITLE, CONTENT)
"""The fields that BM25 scores, and in which a word without a field is searched."""
FORM_FIELDS = {TITLE: "title_forms", CONTENT: "content_forms"}
"""The fields with the normal forms of the words of each."""


def searched_fields(field: str | None) -> tuple[str, ...]:
    """Return the fields in which a text is searched whose clause names this one, or none."""
    return TEXT_FIELDS if field is None else (field,)


def index_field(name: str, language: str) -> str:
    """Return the field of the index that has the words of a text field: in normal forms or, without
    a language, as they are written."""
    return FORM_FIELDS[name] if language else name


NAMES: Final = "names of documents"
"""The field with the names of documents, at their first passages (see ``names_of``). No query
and no declaration can name it."""
DOC_ID = "doc_id"
"""The only metadata field that every index has."""
RESERVED_FIELDS = frozenset(
    {TITLE, CONTENT, DOC_ID, "id", "text", "sentences", "part", "parts"}
    | {"sentence_ends", "pre_chunked"}
)
"""Names that a build cannot declare as metadata."""

_NAME = re.compile(r"[^\W\d][\w.-]*")
_LEAST_RATIO = 0.75


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold()).removesuffix("s") or name


def is_field_name(name: str) -> bool:
    """Return whether a field may have this name: a letter, then letters, digits and ``_.-``."""
    return _NAME.fullmatch(name) is not None


def type_of(name: str, metadata: Mapping[str, MetadataType]) -> FieldType:
    """Return the type of ``doc_id`` or a declared field. Raises KeyError for another name."""
    return KEYWORD if name == DOC_ID else FIELD_TYPES[metadata[name]]


class FieldRef(NamedTuple):
    """A field as a clause names it. Kind "unknown" is rejected, "guess" is of an open schema."""

    name: str
    kind: FieldKind | Literal["guess", "unknown"]

    @property
    def text_field(self) -> Literal["title", "content"]:
        """The field of a text leaf in it."""
        return "title" if self.name == TITLE else "content"

    @property
    def type(self) -> FieldType:
        """The type of a metadata field; KEYWORD as long as it is guessed."""
        return FIELD_TYPES.get(self.kind, KEYWORD)

    def type_of_range(self, bound: str | None) -> FieldType:
        """Return the type of a metadata field; if it is guessed, a type that has such a bound."""
        if self.kind != "guess":
            return self.type
        text = "0" if bound is None else bound
        ordered = (kind for kind in FIELD_TYPES.values() if kind.is_ordered and kind.holds(text))
        return next(ordered, KEYWORD)


_TEXT_REFS = {name: FieldRef(name, "text") for name in TEXT_FIELDS}


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of an index. ``metadata`` maps each declared field to its type.

    ``language`` is the language of the normal forms of words; if it is empty, words match as
    written. An ``open`` schema stands for an unknown index: any other name is taken for a metadata
    field, and its type is guessed from the value. A ``metadata_only`` schema is for filters: its
    description leaves out the text fields.
    """

    metadata: Mapping[str, MetadataType] = field(default_factory=dict[str, MetadataType])
    open: bool = False
    metadata_only: bool = False
    language: str = ""

    def kind(self, name: str) -> FieldKind | None:
        """Return the kind of a field, or None if there is no such field."""
        if name in TEXT_FIELDS:
            return "text"
        if name == DOC_ID:
            return KEYWORD.name
        return self.metadata.get(name)

    def named(self, name: str) -> str | None:
        """Return the name of the field that is meant by ``name``; None if there is no such field.
        Case does not matter unless several fields differ only in it."""
        if self.kind(name) is not None:
            return name
        folded = name.casefold()
        fields = (*TEXT_FIELDS, DOC_ID, *self.metadata)
        meant = [field for field in fields if field.casefold() == folded]
        return meant[0] if len(meant) == 1 else None

    def nearest(self, name: str) -> list[str]:
        """Return the fields that an unknown name resembles. They differ only in case, in signs and
        in a final s; if there are none, up to three differ in few letters."""
        names: dict[str, list[str]] = {}
        for known in (*(() if self.metadata_only else TEXT_FIELDS), DOC_ID, *self.metadata):
            names.setdefault(_plain(known), []).append(known)
        plain = _plain(name)
        close = [plain] if plain in names else get_close_matches(plain, names, 3, _LEAST_RATIO)
        return [known for text in close for known in names[text]]

    def field(self, name: str) -> FieldRef:
        """Return the field that is meant by ``name``.

        It is "unknown" if there is none and the schema is not open, or if no field may have this
        name.
        """
        if name in _TEXT_REFS:
            return _TEXT_REFS[name]
        name = self.named(name) or name
        kind = self.kind(name)
        if kind is None:
            return FieldRef(name, "guess" if self.open and is_field_name(name) else "unknown")
        return FieldRef(name, kind)

    def describe(self) -> str:
        """Return the fields in words: ``title, content, doc_id, year (number)``."""
        declared = [f"{name} ({kind})" for name, kind in self.metadata.items()]
        return ", ".join([*(() if self.metadata_only else TEXT_FIELDS), DOC_ID, *declared])


ANY_SCHEMA = Schema(open=True)

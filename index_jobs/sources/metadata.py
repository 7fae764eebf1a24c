"""Declared metadata: the fields that a build keeps, and the conversion of their values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from typing import Any, cast

from arag_search.corpus import MetadataScalar, MetadataValue, nfc
from arag_search.errors import ArgumentError, SourceError
from arag_search.query.field_types import FIELD_TYPES, KEYWORD, MAX_KEYWORD_BYTES, MetadataType
from arag_search.query.fields import RESERVED_FIELDS, is_field_name
from arag_search.query.tree import KeywordEquals
from index_jobs.sources.lines.files import SKIP

MAX_METADATA_FIELDS = 100
FILE_FIELDS: Mapping[str, MetadataType] = {
    "file": "keyword",
    "type": "keyword",
    "path": "keyword",
    "modified": "date",
    "passage_kind": "keyword",
}
"""The fields that documents from files have without a declaration. ``file`` is the name of the
file, and ``type`` its ending. ``path`` is its path below the root of ids, with the folders in it
(``notes/``, ``notes/old/``). ``modified`` is the second (UTC) of its last modification. In pages
with long lists of links, ``passage_kind`` is "index" or "text"."""

EXTRA = "extra"
"""The keyword field with the values of front matter, as ``key: value``, that no other field
takes."""
MAX_FRONT_FIELDS = 50
"""The most fields that an index gets from keys of front matter, the most frequent keys first."""

_MOST_BESIDE = 2_000
_LONG = f"values of front matter beyond {_MOST_BESIDE:,} characters, not searched as words"
_FOR_PROGRAMS = frozenset(("layout", "template", "lang", "permalink", "cssclass", "cssclasses"))
"""The keys of front matter whose values nobody looks for: all files of a site have the same."""

MISFIT = "in front matter that are no"
"""The words of a report for values that have another type than their field."""

_UNKEPT = "not kept as"
_MAX_COUNTED_KEYS = 1_000
_OTHER_KEYS = "(other keys)"
_NAME_CHARACTERS = 40
_MAX_COUNTED_NAMES = 20_000
_NO_NAME = re.compile(r"[^\w-]+")
_NO_FIELD = "of front matter without a field"
_DECLARATION = "name:type pairs with commas between them, such as year:number,lang:keyword"


def parse_metadata(text: str) -> dict[str, MetadataType]:
    """Parse a declaration such as ``year:number,lang:keyword,published:date``.

    Raises ArgumentError that names the bad pair and the allowed form.
    """
    declared: dict[str, MetadataType] = {}
    for pair in filter(None, (piece.strip() for piece in text.split(","))):
        name, colon, kind = (part.strip() for part in pair.partition(":"))
        if not colon:
            raise ArgumentError(f'`metadata`: "{pair}" has no type.', allowed=_DECLARATION)
        if name in declared:
            raise ArgumentError(f'`metadata`: "{name}" is declared twice.')
        declared[name] = cast("MetadataType", kind)
    if not declared:
        raise ArgumentError("`metadata`: nothing is declared.", allowed=_DECLARATION)
    check_metadata(declared)
    return declared


def check_metadata(declared: Mapping[str, MetadataType]) -> None:
    """Raise ArgumentError if a declared field could not be queried."""
    if len(declared) > MAX_METADATA_FIELDS:
        raise ArgumentError(
            f"`metadata`: {len(declared)} fields.", allowed=f"at most {MAX_METADATA_FIELDS}"
        )
    for name, kind in declared.items():
        if kind not in FIELD_TYPES:
            raise ArgumentError(
                f'`metadata`: "{name}" has the type "{kind}".', allowed=", ".join(FIELD_TYPES)
            )
        if name in RESERVED_FIELDS:
            raise ArgumentError(
                f'`metadata`: "{name}" is a reserved name.',
                allowed=f"any name but {', '.join(sorted(RESERVED_FIELDS))}",
                do="Rename the field in the source.",
            )
        try:
            KeywordEquals(name, "x")
        except ArgumentError as error:
            raise ArgumentError(
                f'`metadata`: the name "{name}" cannot be used in a query.',
                allowed=error.allowed or "a letter, then letters, digits",
                do="Rename the field in the source.",
            ) from None


class MetadataReader:
    """A reader that takes the declared values from records, and counts the other keys.

    - ``undeclared``: the number of occurrences of each ignored key.
    - ``seen``: the declared names that had a value. Both may be set to resume from an earlier run.
    - ``file_fields``: the fields that the index has without a declaration, of FILE_FIELDS and of
      front matter. Records cannot set them.
    - ``new_fields``: the fields that this run adds for front matter.
    - ``codes``: the types of new fields that are keywords because these would not keep all values.
    - ``skips_values``: whether a value of a record that does not fit its field is left out alone.
    """

    skips_values = False

    def __init__(
        self,
        declared: Mapping[str, MetadataType],
        file_fields: Mapping[str, MetadataType] | None = None,
    ) -> None:
        """``file_fields`` None stands for a new index, which gets these fields with its first
        source of files."""
        self.declared = declared
        self.file_fields: dict[str, MetadataType] = dict(file_fields or {})
        self.new_fields: dict[str, MetadataType] = {}
        self.codes: dict[str, MetadataType] = {}
        self._is_new = file_fields is None
        self.undeclared: dict[str, int] = {}
        self.seen: set[str] = set()

    @property
    def fields(self) -> dict[str, MetadataType]:
        """All fields of the index and their types; the fields of files come last."""
        return dict(self.declared) | self.file_fields

    def expect_files(self) -> None:
        """Give a new index the fields of files that are not declared."""
        if self._is_new:
            for name, kind in FILE_FIELDS.items():
                if name not in self.declared:
                    self.file_fields[name] = kind

    def expect_front_matter(self, matters: Iterable[Mapping[str, tuple[str, ...]]]) -> None:
        """Give the index a field for each key of front matter that has none, as far as there is
        room for it. Its type is the type of nearly all values. It is keyword if there is no such
        type, or if a value would be written otherwise, such as 01234.

        ``matters`` are the values of each document. The field EXTRA is added if one needs it.
        """
        known = self.fields
        counts: dict[str, Counter[str]] = {}
        for matter in matters:
            for key, texts in matter.items():
                name = self._front_name(key)
                if name in counts or len(counts) < _MAX_COUNTED_NAMES:
                    count = counts.setdefault(name, Counter())
                    count.update(documents=1, values=len(texts))
                    for text in texts:
                        count.update(self._types_of(text, name, is_known=name in known))
        names = sorted(
            (name for name in counts if name and name not in known),
            key=lambda name: (-counts[name]["documents"], name),
        )
        has = sum(name not in FILE_FIELDS and name != EXTRA for name in self.file_fields)
        room = min(MAX_FRONT_FIELDS - has, MAX_METADATA_FIELDS - len(known) - 1)
        for name in names[: max(0, room)]:
            kind = self.new_fields[name] = _type_from(counts[name])
            if counts[name][f"{_UNKEPT} {kind}"]:
                self.new_fields[name], self.codes[name] = KEYWORD.name, kind
        fields: dict[str, MetadataType] = {**known, **self.new_fields}
        if EXTRA not in known and any(
            name not in fields or count[fields[name]] < count["values"]
            for name, count in counts.items()
        ):
            self.new_fields[EXTRA] = KEYWORD.name
        self.file_fields |= self.new_fields

    def read_front(
        self, matter: Mapping[str, tuple[str, ...]]
    ) -> tuple[dict[str, MetadataValue], dict[str, int]]:
        """Return the metadata of front matter, and how many values are in EXTRA, by reason."""
        fields = self.fields if matter else {}
        values: dict[str, dict[MetadataScalar, None]] = {}
        left: Counter[str] = Counter()
        for key, texts in matter.items():
            name = self._front_name(key)
            kind = fields.get(name)
            for text in texts:
                value = None if kind is None else self._front_value(text, name, kind)
                if value is not None:
                    values.setdefault(name, {})[value] = None
                    code = self.codes.get(name)
                    if code and self._front_value(text, name, code) is None:
                        left[
                            f'values of "{name}" {MISFIT} {code} as written: the field is keyword'
                            f" unless metadata declares {name}:{code}"
                        ] += 1
                elif fields.get(EXTRA) == KEYWORD.name:
                    reason = _NO_FIELD
                    if kind:
                        as_written = " as written" * (_read(text, kind) is not None)
                        reason = f'of "{name}" {MISFIT} {kind}{as_written}'
                    left[f'values {reason}, kept as text in "{EXTRA}"'] += 1
                    values.setdefault(EXTRA, {})[_cut(f"{key}: {text}")] = None
                else:
                    self._count(key)
        self.seen.update(values.keys() & self.declared.keys())
        read: dict[str, MetadataValue] = {}
        for name, several in values.items():
            first, *others = several
            read[name] = (first, *others) if others else first
        return read, dict(left)

    def texts(self, front: Mapping[str, MetadataValue]) -> tuple[tuple[str, ...], dict[str, int]]:
        """Return the texts in the metadata of front matter that are searched as words, up to
        _MOST_BESIDE characters, and how many more there are. Addresses are none."""
        texts: list[str] = []
        left: Counter[str] = Counter()
        fields, room = self.fields if front else {}, _MOST_BESIDE
        for name, value in front.items():
            if fields[name] == KEYWORD.name and name not in _FOR_PROGRAMS:
                for text in map(str, value if isinstance(value, tuple) else (value,)):
                    if not any(map(str.isalpha, text)) or "://" in text:
                        continue
                    if len(text) <= room:
                        texts.append(text)
                        room -= len(text)
                    else:
                        left[_LONG] += 1
        return tuple(texts), dict(left)

    def _front_value(self, text: str, name: str, kind: MetadataType) -> MetadataScalar | None:
        """Return the value of a field, None if the text is none. A field that was not declared
        takes none that would be written otherwise."""
        value = _read(text, kind)
        is_kept = value is None or name in self.declared or FIELD_TYPES[kind].keeps(text)
        return value if is_kept else None

    def _types_of(self, text: str, name: str, *, is_known: bool) -> Iterable[str]:
        """Yield the types of which a text is a value. A type that would not keep the text has a
        mark. For a field whose type is not known, digits alone are no date."""
        for kind in FIELD_TYPES.values():
            if (is_known or kind.is_likely(text)) and _read(text, kind.name) is not None:
                kept = self._front_value(text, name, kind.name) is not None
                if kept or not is_known:
                    yield kind.name
                if not kept:
                    yield f"{_UNKEPT} {kind.name}"

    def _front_name(self, key: str) -> str:
        """Return the name of the field for a key of front matter, or an empty text if there can be
        none. It is in small letters, with underscores for characters that a name cannot have."""
        name = _NO_NAME.sub("_", nfc(key).lower()).strip("_-")
        for declared in self.declared:
            if declared.lower() in (name, key.lower()):
                return declared
        if name in RESERVED_FIELDS or name in FILE_FIELDS or name == EXTRA:
            name = f"front_{name}"
        return name if len(name) <= _NAME_CHARACTERS and is_field_name(name) else ""

    def of_file(self, values: Mapping[str, MetadataValue]) -> dict[str, MetadataValue]:
        """Return the values, by names in FILE_FIELDS, that the index takes. A declared field takes
        such a value if it has the same type."""
        own = {name for name in FILE_FIELDS if self.declared.get(name) == FILE_FIELDS[name]}
        taken: dict[str, MetadataValue] = {
            name: value for name, value in values.items() if name in self.file_fields or name in own
        }
        self.seen.update(own & taken.keys())
        return taken

    def read(
        self, record: Mapping[str, Any], known: Container[str], where: str
    ) -> tuple[dict[str, MetadataValue], dict[str, int]]:
        """Return the declared values of a record, and how many are left out, by reason; ``known``
        keys are not metadata. Raises SourceError for a wrong value that is not left out."""
        values: dict[str, MetadataValue] = {}
        left: Counter[str] = Counter()
        for key, value in record.items():
            if key in known:
                continue
            kind = self.declared.get(key)
            if kind is None:
                self._count(key)
            elif (converted := self._converted(key, value, kind, left, where)) is not None:
                values[key] = converted
        if values:
            self.seen.update(values)
        return values, left

    def _converted(
        self, name: str, value: object, kind: MetadataType, left: Counter[str], where: str
    ) -> MetadataValue | None:
        read: list[MetadataScalar] = []
        for item in cast("list[object]", value) if isinstance(value, list) else [value]:
            try:
                scalar = None if item is None else FIELD_TYPES[kind].read(item)
                read += [] if scalar is None else [scalar]
            except ValueError as error:
                if not self.skips_values:
                    shown = repr(item)
                    shown = shown if len(shown) <= 80 else shown[:77] + "..."
                    raise SourceError(
                        f'The metadata field "{name}" has the value {shown}.',
                        where=where,
                        allowed=str(error),
                        do=SKIP,
                    ) from None
                left[f'values of "{name}" that are no {kind}, left out'] += 1
        return tuple(read) or None if isinstance(value, list) else next(iter(read), None)

    def take(self, undeclared: Mapping[str, int], seen: Iterable[str]) -> None:
        """Add the counts of another reader."""
        for key, times in undeclared.items():
            self._count(key, times)
        self.seen.update(seen)

    def _count(self, key: str, times: int = 1) -> None:
        if key not in self.undeclared and len(self.undeclared) >= _MAX_COUNTED_KEYS:
            key = _OTHER_KEYS
        self.undeclared[key] = self.undeclared.get(key, 0) + times


def _read(text: str, kind: MetadataType) -> MetadataScalar | None:
    """Return the value of a type that a text of front matter has, None if it has none."""
    try:
        return FIELD_TYPES[kind].read(text)
    except ValueError:
        return None


def _type_from(count: Counter[str]) -> MetadataType:
    values = count["values"]
    enough = (kind for kind in FIELD_TYPES.values() if count[kind.name] >= kind.share * values)
    return next(enough, KEYWORD).name


def _cut(text: str) -> str:
    text = nfc(text.encode("utf-8", "replace").decode())
    if len(text.encode()) <= MAX_KEYWORD_BYTES:
        return text
    return text.encode()[: MAX_KEYWORD_BYTES - 4].decode("utf-8", "ignore") + " ..."

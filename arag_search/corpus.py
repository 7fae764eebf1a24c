"""The corpus: documents, the chunks they are cut into, and the sentences of chunks.

Texts are NFC. Offsets are in code points. An ordinal is a number that grows in corpus order. It is
packed from the source shard, the document in the shard, the part in the document and the sentence
in the part. So parallel and resumed workers know it without counting, and ordinals are not dense.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Any, Literal, NamedTuple

from arag_search.errors import BuildError

MetadataScalar = str | int | float
MetadataValue = MetadataScalar | tuple[MetadataScalar, ...]

# 12 + 25 + 15 + 11 = 63 bits, so that an ordinal fits a signed 64-bit integer.
SHARD_BITS = 12
DOCUMENT_BITS = 25
PART_BITS = 15
SENTENCE_BITS = 11

MAX_SENTENCES = 1 << SENTENCE_BITS
"""The most sentences that one chunk may hold (2,048)."""

MAX_PASSAGES = 1 << PART_BITS
"""The most passages of one document (32,768)."""

MAX_DOCUMENTS = 1 << DOCUMENT_BITS
"""The most documents of one source, with its bad records and files (33,554,432)."""

_CODE = frozenset(
    """
    bash c cc cpp cs css cxx dart ex go h hh hpp hs ipynb java jl js jsx kt lua m mjs mm php pl pm
    ps1 py pyi pyx r rb rs scala scss sh sql swift tf toml ts tsx vue yaml yml zig
    """.split()  # noqa: SIM905
)
TextKind = Literal["", "code", "markdown", "rst", "tex", "subtitles"]
"""How the words of a text are read, by the file that it is of: "" is prose without marks."""

_KINDS: Mapping[str, TextKind] = {
    **dict.fromkeys(_CODE, "code"),
    **dict.fromkeys(("md", "markdown", "mdx", "qmd", "rmd"), "markdown"),
    **dict.fromkeys(("tex", "bib"), "tex"),
    **dict.fromkeys(("srt", "vtt"), "subtitles"),
    "rst": "rst",
}

CutPassages = tuple[tuple[int, "PassageOutline", bool], ...]
"""The passages of a document that is cut already, each with the number of its sentences, its
outline, and whether it is an index."""


def ordinal_of(shard: int, document: int, part: int, sentence: int = 0) -> int:
    """Pack the place of a chunk or sentence into one integer that sorts in corpus order.

    All arguments count from 0. Raises BuildError if one of them does not fit.
    """
    for name, value, bits in (
        ("source files", shard, SHARD_BITS),
        ("documents in one source", document, DOCUMENT_BITS),
        ("passages in one document", part, PART_BITS),
        ("sentences in one passage", sentence, SENTENCE_BITS),
    ):
        if value >= 1 << bits:
            raise BuildError(
                f"There are more than {1 << bits:,} {name}.",
                allowed=f"at most {1 << bits:,} {name}",
                do="Split the source into larger or smaller files, or raise `chunk_tokens`.",
            )
    packed = (shard << DOCUMENT_BITS) | document
    packed = (packed << PART_BITS) | part
    return (packed << SENTENCE_BITS) | sentence


def source_shard(ordinal: int) -> int:
    """Return the source shard (from 0) of an ordinal."""
    return ordinal >> (DOCUMENT_BITS + PART_BITS + SENTENCE_BITS)


def document_number(ordinal: int) -> int:
    """Return the number (from 0), within its source shard, of the document of an ordinal."""
    return (ordinal >> (PART_BITS + SENTENCE_BITS)) & ((1 << DOCUMENT_BITS) - 1)


def next_document(ordinal: int) -> int:
    """Return the ordinal of the document that follows the one of this ordinal."""
    bits = PART_BITS + SENTENCE_BITS
    return ((ordinal >> bits) + 1) << bits


def chunk_ordinal(ordinal: int) -> int:
    """Return the ordinal of the chunk that holds the sentence with this ordinal."""
    return ordinal >> SENTENCE_BITS << SENTENCE_BITS


def is_unicode(text: str) -> bool:
    """Return whether the text can be written in UTF-8, which excludes lone surrogates."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


_SIGN = r"[^\w\s\x00-\u02ff]"  # every combining mark, and signs such as dashes and emoji
_STRIDE = 16
_MANY_SIGNS = re.compile(f"{_SIGN}{{8}}")
_LONG_RUN = re.compile(f"(?<!{_SIGN}){_SIGN}{{{8 * _STRIDE},}}+")


def nfc(text: str) -> str:
    """Return the text in Unicode normalisation form C, as everything indexed and queried is.

    O(length), whereas ``unicodedata.normalize`` is quadratic in a run of combining marks that are
    out of order. So the marks of a long run are ordered first. One character in 16 tells whether
    there may be such a run.
    """
    if text.isascii():
        return text
    if _MANY_SIGNS.search(text[::_STRIDE]):
        text = _LONG_RUN.sub(_in_order, text)
    return unicodedata.normalize("NFC", text)


def _in_order(run: re.Match[str]) -> str:
    """Return a run of signs with its marks in canonical order."""
    text = run[0]  # taken once, since each time it is a copy
    if unicodedata.is_normalized("NFD", text):  # as dashes are
        return text
    pieces = (text[at : at + _STRIDE] for at in range(0, len(text), _STRIDE))
    signs = "".join(unicodedata.normalize("NFD", piece) for piece in pieces)
    marks = groupby(signs, key=lambda sign: unicodedata.combining(sign) > 0)
    return "".join(
        chain.from_iterable(sorted(group, key=unicodedata.combining) for _, group in marks)
    )


MAX_ID_BYTES = 512
"""The length of the longest id of a document in UTF-8. An id is shown with every hit."""


def typed_id(text: str) -> str:
    """Return an id that was typed, in NFC. A text that is too long for an id is cut, so that it
    costs little. It is still too long, since three characters become at least two bytes."""
    return nfc(text[: 2 * MAX_ID_BYTES])


def kind_of(doc_id: str) -> TextKind:
    """Return the kind of a document, by the ending of its id."""
    name, _, ending = doc_id.rpartition(".")
    return _KINDS.get(ending.lower(), "") if name else ""


def is_code(doc_id: str) -> bool:
    """Return whether a document is code, by the ending of its id."""
    return kind_of(doc_id) == "code"


UnitKind = Literal["section", "entry", "block", "index"]

MAX_OUTLINE_DEPTH = 16
"""The most units of an outline that are within each other."""

MAX_NAME_CHARACTERS = 120
"""The length of the longest name of a unit; a longer one is cut, and ends with three dots."""


class Unit(NamedTuple):
    """A stretch of lines that belong together, in the outline of a document.

    ``first`` is its first line and ``end`` the line after its last one, from 0; a line ends with a
    line feed. Neither of the two lines is blank. ``name`` stands for it in paths, such as
    "Archiving", "archive_mode (enum)" or "class Trainer". It is on one line, without the signs of
    markup, and empty if there is none. The first line shows the name. Only a definition in code has
    its comments and decorators above that line, and a chapter of a book its number.

    "section": a heading with all below it, or a class.
    "entry": a term with its text, an item of a list, a table row, a note set apart, a function.
    "block": verbatim text, whose lines are kept apart. "index": a list of links, with no units in
    it.
    """

    first: int
    end: int
    kind: UnitKind
    name: str = ""


Outline = tuple[Unit, ...]
"""Units in order of their first lines, a unit before the units within it. Two units have no line in
common, or one is within the other (both may have the same lines)."""


class PassageUnit(NamedTuple):
    """A unit within a passage: the numbers of its first sentence, which shows the name, and of the
    sentence after its last one."""

    first: int
    end: int
    name: str


class PassageOutline(NamedTuple):
    """Where a passage stands in the outline of its document, and the units that begin in it.

    ``path`` holds the names of the units around it, the outermost first, joined by PATH_MARK.
    ``line`` is the number (from 1) of its first line in a document that is a file, else 0.
    ``units`` are the units with a name, in order of their first sentences. ``beside`` has texts by
    which the first passage of a document is found, and which it does not show (see Document).
    """

    path: str = ""
    line: int = 0
    units: tuple[PassageUnit, ...] = ()
    beside: tuple[str, ...] = ()

    def unit_of(self, sentence: int) -> PassageUnit | None:
        """Return the innermost of the units that hold a sentence."""
        around = (unit for unit in reversed(self.units) if unit.first <= sentence < unit.end)
        return next(around, None)

    def to_json(self) -> tuple[Any, ...]:
        """Return the outline as values of JSON; none if it says nothing."""
        return (self.path, self.line, (*map(tuple, self.units),), self.beside) if any(self) else ()

    @staticmethod
    def of_json(*values: Any) -> PassageOutline:
        """Return the outline of these values of JSON, NO_OUTLINE of none."""
        if not values:
            return NO_OUTLINE
        path, line, units, beside = values
        return PassageOutline(path, line, tuple(PassageUnit(*unit) for unit in units), (*beside,))


NO_OUTLINE = PassageOutline()

PATH_MARK = " > "


def heading_of(
    title: str, outline: PassageOutline, sentences: Sequence[int] = ()
) -> tuple[str, ...]:
    """Return the texts that are searched as the title of a passage, if words have normal forms.
    They are the title, the path, the names of the units in the passage, and last the texts
    ``beside`` it. With ``sentences`` of it, only units that hold one of them count, and the texts
    beside it only if the first sentence is among them. No phrase reaches from one text to the next.
    """
    if outline is NO_OUTLINE:
        return (title,)
    names = (
        unit.name
        for unit in outline.units
        if not sentences or any(unit.first <= number < unit.end for number in sentences)
    )
    beside = outline.beside if not sentences or 0 in sentences else ()
    return (title, *filter(None, (outline.path, *names)), *beside)


def headings_of(title: str, outline: PassageOutline, sentences: int) -> list[tuple[str, ...]]:
    """Return ``heading_of`` each of so many sentences of a passage. O(its length)."""
    above = (title, outline.path) if outline.path else (title,)
    names: list[tuple[str, ...]] = [()] * sentences
    for unit in outline.units:
        for number in range(unit.first, min(unit.end, sentences) if unit.name else 0):
            names[number] = (*names[number], unit.name)
    headings = [above + own for own in names]
    if headings and outline.beside:
        headings[0] += outline.beside
    return headings


@dataclass(frozen=True, slots=True)
class Document:
    """A document as a source yields it, before it is cut into chunks.

    ``sentence_ends`` are the offsets after each sentence, the last being ``len(text)``, if the
    source has its own sentences, else None. A ``whole`` document is pre-chunked: it is never split
    and keeps its id as chunk id. ``where`` names its place for messages ("corpus.jsonl, line 3").
    ``is_file`` is true if the document is a whole file, and false if it is a record.
    ``unread`` counts the parts of it that were not read, by kind. ``outline`` is empty for prose.
    ``passages`` are set if it is cut already. ``beside`` has texts that are neither title nor text
    and are searched: the name of a file, and what its front matter says.
    """

    id: str
    title: str
    text: str
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict[str, MetadataValue])
    sentence_ends: tuple[int, ...] | None = None
    whole: bool = False
    where: str = ""
    is_file: bool = False
    unread: Mapping[str, int] = field(default_factory=dict[str, int])
    outline: Outline = ()
    passages: CutPassages = ()
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of an index, which searches find and reads return.

    ``part`` counts from 1 to ``parts`` within the document. ``sentence_ends`` are offsets into
    ``content`` after each sentence; the last is ``len(content)``; empty for empty content.
    """

    id: str
    doc_id: str
    title: str
    content: str
    part: int
    parts: int
    ordinal: int
    sentence_ends: tuple[int, ...]
    metadata: Mapping[str, MetadataValue]
    outline: PassageOutline = NO_OUTLINE

    @property
    def heading(self) -> tuple[str, ...]:
        """The title, path and names as they are searched."""
        return heading_of(self.title, self.outline)

    def sentences(self) -> list[str]:
        """Return the sentences of the content in order; joined they are the content."""
        return split_at(self.content, self.sentence_ends)


def split_at(text: str, ends: tuple[int, ...]) -> list[str]:
    """Cut a text after each of the given offsets."""
    return [text[start:end] for start, end in zip((0, *ends), ends, strict=False)]

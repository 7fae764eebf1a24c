"""The registry of file types: their names, endings, packages and converters; the protocol of a
converter, the documents it yields, and limits that converters share.

Converters are imported when they are first needed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from arag_search.corpus import CutPassages, Outline, is_code
from arag_search.errors import AragError, SourceError
from arag_search.system.extras import check_extra
from index_jobs.sources.terminal_text import CODES, as_printed

if TYPE_CHECKING:
    from index_jobs.sources.encodings import Decoded
    from index_jobs.sources.lines.files import Fields

MAX_FILE_BYTES = 1 << 28
"""The largest file that is read as a whole (256 MiB). Tables and mailboxes are streamed."""

LARGE_BYTES = 1 << 17
"""The size from which a file of any type is converted, and its text cut, within limits. Below it,
even work that takes more than linear time takes no long time."""

PAGE = b"<doc id="
"""The beginning of a file of wikiextractor."""

MANY = re.compile(rb"From |%s|\s*\{\"" % PAGE)
"""The beginnings of files without ending that have several documents: mailboxes, pages of
wikiextractor, JSON lines."""

_LONE_RETURN = re.compile(r"\r(?!\n)")
_MAX_TITLE_CHARACTERS = 300
_NO_TITLE = re.compile(
    r"untitled\W*\d*|(?:microsoft|powerpoint|word|excel)\b.*|document\s*\d*|presentation\s*\d*"
    r"|(?:slide|folie|diapositive) \d+|title|book\s*\d+|\(?(?:anonymous|none|null|unknown)\)?"
    r"|.*\.(?:docx?|pptx?|xlsx?|rtf|odt|pdf|ps|dvi|tex|indd|qxd|pmd|fm|wpd|html?|txt)",
    re.IGNORECASE,
)
"""Default titles that programs write into files by themselves."""


class ConvertedDocument(NamedTuple):
    """A document as a converter reads it from a file.

    ``suffix`` is empty if the file is one document; otherwise it is what follows ``#`` in the id:
    the number of a row or message. ``title`` is empty if the file has none. ``text`` is any Unicode
    text; the caller cleans it. ``metadata`` are the columns of a row or the headers of a mail.
    ``id`` is the whole id, if a column of the file has it, and empty otherwise. ``unread`` counts
    the parts of the document that were not read, by kind ("page without text"). ``outline`` numbers
    the lines of ``text``. ``front`` has the values of front matter, by their keys. A long text is
    cut already: ``sentence_ends`` and ``passages`` are as in Document.
    """

    suffix: str
    title: str
    text: str
    metadata: Mapping[str, Any] = {}
    id: str = ""
    unread: Mapping[str, int] = {}
    outline: Outline = ()
    front: Mapping[str, tuple[str, ...]] = {}
    sentence_ends: tuple[int, ...] | None = None
    passages: CutPassages = ()


class Converter(Protocol):
    """A function that reads the documents of one file."""

    def __call__(
        self, path: Path, where: str, fields: Fields
    ) -> Iterator[ConvertedDocument | SourceError]:
        """Yield the documents of the file at ``path``, in a fixed order.

        Messages call the file ``where``. ``fields`` names columns of a table. A document that
        cannot be read is yielded as a SourceError, and documents after it are still read. Raises
        SourceError if nothing more can be read from the file.
        """
        ...


def whole_text(path: Path, where: str) -> Decoded:
    """Return the text of a file. Raises SourceError."""
    from index_jobs.sources.encodings import decoded

    read = decoded(whole_file(path, where), where)
    return read._replace(text=in_lines(read.text))


def in_lines(text: str) -> str:
    """Return the text with a line feed for each carriage return that ends a line alone."""
    return _LONE_RETURN.sub("\n", text) if "\r" in text else text


def whole_file(path: Path, where: str) -> bytes:
    """Return the bytes of a file. Raises SourceError if it cannot be read, or is too large."""
    from index_jobs.sources.lines.files import readable

    with readable(where), path.open("rb") as file:
        # A read reserves what it is asked for, so the size is asked first; the file may be growing.
        size = os.fstat(file.fileno()).st_size
        data = file.read(min(size, MAX_FILE_BYTES) + 1)
        if len(data) > size:
            data += file.read(MAX_FILE_BYTES + 1 - len(data))
    if len(data) > MAX_FILE_BYTES:
        raise SourceError(
            "The file is too large to be read as a whole.",
            where=where,
            allowed=f"at most {MAX_FILE_BYTES >> 20} MiB",
            do="Split it.",
        )
    return data


@contextmanager
def reading(kind: str, where: str) -> Generator[None]:
    """Turn any error of a library into a SourceError. ``kind`` is what the file should be, such as
    "a PDF"."""
    try:
        yield
    except (AragError, MemoryError):
        raise
    except Exception as error:  # the file is hostile, and libraries fail in ways of their own
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise SourceError(
            f"The file cannot be read as {kind} ({reason}).", where=where, do="Fetch it again."
        ) from error


def sensible_title(title: object) -> str:
    """Return the title from the properties of a file, or an empty text if it says nothing."""
    words = " ".join(str(title or "").split())
    if _NO_TITLE.fullmatch(words) or not any(character.isalpha() for character in words):
        return ""
    return words if len(words) <= _MAX_TITLE_CHARACTERS else ""


_WIDTH = 98
"""The greatest length of a line of help."""

EXTRA = "files"
"""The extra of this project that installs the packages of all file types."""


@dataclass(frozen=True, slots=True)
class FileType:
    """One type of file.

    ``endings`` are in lower case. ``summary`` says what they become, for help. ``function`` is the
    converter, as ``module:function`` in this room. ``packages`` maps the packages of the extra
    ``files`` that it needs to the modules by which they are imported. A file that ``has_many``
    documents is a table or a mailbox; others are one document. A file that ``may_be_other`` than
    its name says is left out if it is no text. If a user names it as a source, it is looked at for
    records first. Files of a folder with more than ``most_bytes`` are left out, and its language is
    not detected by this type. A ``limited`` type is converted in a process of its own, as those
    with packages are.
    """

    name: str
    endings: tuple[str, ...]
    summary: str
    function: str
    packages: Mapping[str, str] = field(default_factory=dict[str, str])
    has_many: bool = False
    may_be_other: bool = False
    most_bytes: int | None = None
    limited: bool = False

    def check(self) -> None:
        """Raise MissingExtraError if a package of this type is not installed. Imports nothing."""
        for package, module in self.packages.items():
            check_extra(EXTRA, package, module)

    @property
    def is_limited(self) -> bool:
        """Whether its files are converted within limits of time and memory."""
        return self.limited or bool(self.packages)

    def converter(self) -> Converter:
        """Import the converter. Raises MissingExtraError if a package is not installed."""
        self.check()
        module, _, function = self.function.partition(":")
        loaded = import_module(f"index_jobs.sources.converters.{module}")
        return partial(_as_printed, getattr(loaded, function))


def _as_printed(
    convert: Converter, path: Path, where: str, fields: Fields
) -> Iterator[ConvertedDocument | SourceError]:
    """Yield the documents of a file without the codes for a terminal alone. See Converter."""
    for entry in convert(path, where, fields):
        if isinstance(entry, ConvertedDocument):
            text, codes = as_printed(entry.text, is_code=is_code(where))
            unread = {**entry.unread, CODES: codes} if codes else entry.unread
            entry = entry._replace(title=as_printed(entry.title)[0], text=text, unread=unread)
        yield entry


_SELECTOLAX = {"selectolax": "selectolax"}

_ROWS = "a document for each row"

_TYPES = (
    FileType(
        "text",
        (".txt", ".md", ".markdown", ".mdx", ".qmd", ".rmd"),
        "a document; its title is from front matter, the first heading, or the file name",
        "text:convert",
    ),
    FileType(
        "plain",
        (".text", ".org", ".tex", ".bib", ".adoc", ".asciidoc", ".srt", ".vtt"),
        "a document, as written, also without an ending (README)",
        "text:convert_if_text",
        may_be_other=True,
    ),
    FileType(
        "data",
        (".log", ".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf"),
        "a document, up to 1 MB",
        "text:convert_if_text",
        may_be_other=True,
        most_bytes=1_000_000,
    ),
    FileType(
        "code",
        (
            *(".bash", ".c", ".cc", ".cpp", ".cs", ".cxx", ".dart", ".ex", ".go", ".h", ".hh"),
            *(".hpp", ".java", ".jl", ".js", ".jsx", ".kt", ".lua", ".m", ".mjs", ".mm", ".php"),
            *(".pl", ".pm", ".ps1", ".py", ".pyi", ".pyx", ".r", ".rb", ".rs", ".scala", ".sh"),
            *(".sql", ".swift", ".ts", ".tsx", ".vue", ".zig"),
        ),
        "a document, up to 1 MB; the title is its path",
        "text:convert_if_text",
        may_be_other=True,
        most_bytes=1_000_000,
    ),
    FileType(
        "chats",
        ("conversations.json",),
        "a document for each conversation with ChatGPT or Claude",
        "chats:convert",
        has_many=True,
        may_be_other=True,
        limited=True,
    ),
    FileType(
        "notebook", (".ipynb",), "the cells, without outputs", "notebook:convert", limited=True
    ),
    FileType("rst", (".rst",), "a document, as written", "rst:convert"),
    FileType(
        "html",
        (".html", ".htm", ".xhtml"),
        "a document: the visible text and panels that open, without navigation",
        "html:convert",
        _SELECTOLAX,
    ),
    FileType(
        "archive",
        (".mht", ".mhtml"),
        "the saved page, as HTML",
        "mail:convert_archive",
        _SELECTOLAX,
    ),
    FileType(
        "pdf",
        (".pdf",),
        "text, form values, notes; [page N] begins each page",
        "pdf.document:convert",
        {"pypdfium2": "pypdfium2"},
    ),
    FileType(
        "word",
        (".docx", ".docm", ".dotx", ".dotm"),
        "headings, lists, tables, text boxes, notes",
        "office.word:convert",
        {"python-docx": "docx"},
    ),
    FileType(
        "slides",
        (".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm"),
        "[slide N], text, speaker's notes",
        "office.slides:convert",
        {"python-pptx": "pptx"},
    ),
    FileType(
        "workbook",
        (".xlsx", ".xlsm", ".xltx", ".xltm"),
        "[sheet Name], cells as shown, comments",
        "office.workbooks:convert",
        {"openpyxl": "openpyxl"},
    ),
    FileType(
        "opendocument",
        (".odt", ".ott", ".odp", ".otp", ".ods", ".ots"),
        "as Word, slides, workbooks; formulas, but no charts",
        "office.opendocument:convert",
        {"lxml": "lxml"} | _SELECTOLAX,
    ),
    FileType(
        "csv",
        (".csv",),
        f"{_ROWS}, with commas, semicolons, tabs or bars",
        "tables:convert_csv",
        has_many=True,
    ),
    FileType("tsv", (".tsv", ".tab"), _ROWS, "tables:convert_csv", has_many=True),
    FileType(
        "lines",
        (".jsonl", ".ndjson"),
        "a document for each line",
        "tables:convert_lines",
        has_many=True,
    ),
    FileType(
        "parquet",
        (".parquet",),
        f"{_ROWS}, without columns of bytes",
        "tables:convert_parquet",
        {"pyarrow": "pyarrow"},
        has_many=True,
    ),
    FileType(
        "message",
        (".eml", ".emlx"),
        "mail, also by content (Thunderbird, Maildir, MH)",
        "mail:convert_message",
        _SELECTOLAX,
    ),
    FileType(
        "mailbox",
        (".mbox",),
        "a document for each message",
        "mail:convert_mailbox",
        _SELECTOLAX,
        has_many=True,
    ),
    FileType(
        "epub", (".epub",), "[chapter N], text", "epub:convert", {"lxml": "lxml"} | _SELECTOLAX
    ),
)

FILE_TYPES: dict[str, FileType] = {file_type.name: file_type for file_type in _TYPES}
"""All types of files by name."""

_BY_ENDING = {ending: file_type for file_type in _TYPES for ending in file_type.endings}


_ROTATED = re.compile(r"(?<=\.log)(?:[.-](?:\d{1,10}|\d{4}-\d\d-\d\d|old|bak))\Z", re.IGNORECASE)
_CHATS = re.compile(r"conversations(?:-\d+)?\.json\Z", re.IGNORECASE)
_IN_MAILDIR = re.compile(r"\d{9,11}\.[^.]+\.[^/]+")


def ending_of(name: str) -> str:
    """Return the ending of a name or path in lower case. For ``a.log.1`` and ``a.log-20240105`` it
    is the ending of ``a.log``. It is empty without one, and for a message in a Maildir."""
    ending = os.path.splitext(name)[1].lower()
    if ending in _BY_ENDING:
        return ending
    if rotated := _ROTATED.search(name):
        return ending_of(name[: rotated.start()])
    return "" if _IN_MAILDIR.fullmatch(os.path.basename(name)) else ending


def file_type_of(name: str) -> FileType | None:
    """Return the type of a file by the ending of its name or path; None if that is not known."""
    if _CHATS.search(name):
        return FILE_TYPES["chats"]
    return _BY_ENDING.get(ending) if (ending := ending_of(name)) else FILE_TYPES["plain"]


def file_types_help(indent: str) -> str:
    """Return indented lines for each type of files, for the help of a command: what they become,
    and below it their endings."""
    names = [entry.name + " *" * bool(entry.packages) for entry in _TYPES]
    width = max(map(len, names))
    lines: list[str] = []
    for name, entry in zip(names, _TYPES, strict=True):
        lines.append(f"{indent}  {name:{width}}  {entry.summary}")
        below = f"{indent}  {'':{width}}  "
        endings = " ".join(entry.endings)
        lines += wrap(endings, _WIDTH, initial_indent=below, subsequent_indent=below)
    return "\n".join(lines)

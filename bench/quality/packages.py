"""Manuals and libraries as packages install them: where they are, and what their files define.

The pages are parsed here by the parser of the standard library, and not by that of the index, so
that a measure of the index does not repeat its mistakes.
"""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator, Sequence
from functools import cache
from html.parser import HTMLParser
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import NamedTuple

from arag_search.corpus import nfc
from bench import BenchError
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.build.report import BuildReport
from index_jobs.sources.selection import FileSelection

_DOCUMENTATION = Path("/usr/share/doc")
_INLINE = frozenset("a abbr b cite code em i kbd samp small span strong sub sup tt u var".split())  # noqa: SIM905
_UNNAMED = frozenset(("toc", "simplelist"))
"""Classes of lists whose terms are not described: contents."""


class AbsentError(BenchError):
    """A package that is not on this machine."""


class Entry(NamedTuple):
    """A term of a manual with its text: a ``dt``, those beside it, and their ``dd``. ``page`` is
    the path of the page below the manual, ``id`` that of the term's anchor or empty."""

    page: str
    id: str
    term: str
    body: str

    @property
    def name(self) -> str:
        """The first word of the term."""
        return self.term.split()[0]

    @property
    def text(self) -> str:
        """All of the entry."""
        return f"{self.term} {self.body}"


class Definition(NamedTuple):
    """A function, method or class of a module. ``source`` are its lines with those of its
    decorators, and ``starts`` is where their key begins in that of the module."""

    file: str
    name: str
    is_class: bool
    starts: int
    source: str


def key_of(text: str) -> str:
    """Return only the letters, digits and underscores of a text, by which texts of one page with
    different markup and white space are compared."""
    return "".join(re.findall(r"\w+", nfc(text)))


# Manuals


def manual_in(folder: Path | None, installed: str, page: str, package: str) -> Path:
    """Return the folder of a manual's pages: the one with ``page`` below ``folder`` or, if it is
    None, below the documents of an ``installed`` package of this pattern. Raises AbsentError."""
    folders = sorted(_DOCUMENTATION.glob(installed)) if folder is None else [folder]
    pages = (path for parent in folders for path in sorted(parent.rglob(page)))
    path = next(pages, None)
    if path is None:
        raise AbsentError(
            f"There is no page {page}.",
            where=str(folder or _DOCUMENTATION / installed),
            allowed=f"the folder of Debian's package {package}, installed or unpacked",
            do=f"Run: apt-get download {package}; dpkg -x FILE FOLDER",
        )
    return path.parents[len(Path(page).parts) - 1]


def manual_version(folder: Path) -> str:
    """Return the title of a manual's first page, which names its version."""
    title = re.search(r"<title>(.*?)</title>", _read(folder / "index.html"), re.DOTALL)
    return "" if title is None else " ".join(title[1].split())


@cache
def manual_entries(folder: Path) -> tuple[Entry, ...]:
    """Return all entries of a manual in the order of their pages, a term before those within it;
    without indexes, which only list terms."""
    return tuple(
        entry
        for path in sorted(folder.rglob("*.html"))
        if "index" not in path.stem.replace("-index", "")
        for entry in entries_of(_read(path), path.relative_to(folder).as_posix())
    )


def entries_of(html: str, page: str) -> list[Entry]:
    """Parse a page and return its entries that have a term and a text."""
    parser = _EntryParser()
    parser.feed(html)
    parser.close()
    cleaned = [
        Entry(page, entry.id, *(" ".join("".join(text).split()) for text in (entry.dt, entry.dd)))
        for entry in parser.entries
    ]
    return [entry for entry in cleaned if key_of(entry.term) and key_of(entry.body)]


class _Pieces:
    """An entry while it is read. ``is_open`` is whether another term may join it."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.dt: list[str] = []
        self.dd: list[str] = []
        self.is_open = True


class _EntryParser(HTMLParser):
    """A parser of the entries of one page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.entries: list[_Pieces] = []
        self._lists: list[tuple[bool, _Pieces | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag not in _INLINE:
            self.handle_data(" ")
        if tag == "dl":
            is_named = _UNNAMED.isdisjoint(values.get("class", "").split())
            self._lists.append((is_named, None))
        elif tag == "dt" and self._lists:
            is_named, entry = self._lists[-1]
            if entry is None or not entry.is_open:
                entry = _Pieces(values.get("id", ""))
                self._lists[-1] = (is_named, entry)
                if is_named:
                    self.entries.append(entry)
            entry.id = entry.id or values.get("id", "")
        elif tag == "dd" and self._lists and (entry := self._lists[-1][1]) is not None:
            entry.is_open = False

    def handle_endtag(self, tag: str) -> None:
        if tag == "dl" and self._lists:
            self._lists.pop()

    def handle_data(self, data: str) -> None:
        for _, entry in self._lists:
            if entry is not None:
                (entry.dt if entry.is_open else entry.dd).append(data.replace("¶", ""))


# Libraries


def copied_library(name: str, folder: Path, modules: int | None = None) -> list[Path]:
    """Copy the modules of an installed library, or as many of them drawn by a seed, into a folder
    and return them. Raises AbsentError if there is no such library."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise AbsentError(
            f"There is no library {name}.",
            allowed="the name by which an installed package is imported",
            do="Install it, or name another one with --library.",
        )
    source = Path(spec.origin).parent
    paths = sorted(path for path in source.rglob("*.py") if "__pyc" not in path.parts)
    if modules is not None and modules < len(paths):
        paths = sorted(Random(name).sample(paths, modules))
    shutil.rmtree(folder, ignore_errors=True)
    copies = [folder / path.relative_to(source) for path in paths]
    for path, copy in zip(paths, copies, strict=True):
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    return copies


def definitions_in(folder: Path) -> Iterator[Definition]:
    """Yield the functions and classes of all modules below a folder."""
    for path in sorted(folder.rglob("*.py")):
        text = _read(path)
        yield from definitions_of(text, str(path.relative_to(folder)))


def definitions_of(text: str, file: str) -> Iterator[Definition]:
    """Yield the functions and classes of a module."""
    lines = text.split("\n")
    starts = list(accumulate((len(key_of(line)) for line in lines), initial=0))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            source = "\n".join(lines[first - 1 : node.end_lineno])
            is_class = isinstance(node, ast.ClassDef)
            yield Definition(file, node.name, is_class, starts[first - 1], source)


# Indexes


def index_files(folder: Path, location: Path, include: Sequence[str] = ()) -> BuildReport:
    """Build the index of a folder in this process, with the paths below it as ids of documents."""
    files = FileSelection(include=tuple(include), root=str(folder))
    options = BuildOptions(language="en", overwrite=True, workers=0, files=files)
    return build_index([str(folder)], location, options)


def _read(path: Path) -> str:
    return path.read_text("utf-8", "replace")

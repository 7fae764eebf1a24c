"""The options for which files of a folder a build reads, and the names of what is left out."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from arag_search.errors import ArgumentError
from arag_search.system.options import check, option, values_of
from index_jobs.sources.conversion import USUAL_LIMITS, FileLimits
from index_jobs.sources.folders.secret_files import Suspicion, suspicion_of

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILE = ".gitignore"
REPOSITORY = ".git"


@lru_cache(maxsize=8)
def spec_of(name: str, patterns: tuple[str, ...]) -> GitIgnoreSpec | None:
    """Return the patterns of ``include`` or ``exclude``, or None if there are none. Raises
    ArgumentError for a pattern that is not valid."""
    from pathspec import GitIgnoreSpec

    for pattern in patterns:
        try:
            is_valid = bool(pattern.strip()) and not pattern.startswith("#")
            GitIgnoreSpec.from_lines([pattern])
        except (ValueError, re.error):
            is_valid = False
        if not is_valid:
            raise ArgumentError(
                f'`{name}`: "{pattern}" is not a pattern.',
                allowed="a name or path with *, ? and **, as in .gitignore: '*.css', 'src/**/*.tf'",
            )
    return GitIgnoreSpec.from_lines(patterns) if patterns else None


LINK_OUT = "links out of the folder"
LINK_TO_FOLDER = "links to folders"
LINK_TO_NOTHING = "links to nothing"
SPECIAL = "pipes, sockets and devices"
HIDDEN = "hidden"
LOCK_FILE = "lock files of Office"
IGNORED = "ignored by .gitignore"
EXCLUDED = "excluded"
GENERATED = "generated code, lock files of packages"
VENDORED = "code of other projects (vendored)"
LARGE_DATA = "logs, data and code above 1 MB"
INDEX = "indexes of this program"
TOO_LARGE = "too large"
SHOWN_LARGE_FILES = 20
"""How many of the files that are too large a report names."""

IGNORED_FOLDERS = frozenset(("node_modules", "__pycache__"))
"""The folders that are left out because programs, not people, fill them."""

NOT_READ = IGNORED_FOLDERS | {
    *(LINK_OUT, LINK_TO_FOLDER, LINK_TO_NOTHING, SPECIAL),
    *(HIDDEN, LOCK_FILE, IGNORED, EXCLUDED, GENERATED, VENDORED, LARGE_DATA, INDEX, TOO_LARGE),
}
"""The names that reports give to entries that are left out whatever the endings of their names."""


MAX_FILE_BYTES = 50_000_000
"""The size above which files of a folder are left out by default. A document is held in memory
several times while it is converted, cut and packed; text of this size is a hundred novels."""

MAX_FILE_S = 86_400
_LEAST_MEMORY = 256_000_000

STDIN = "-"
"""The name of standard input as a source."""

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([kmgt]?)b?", re.ASCII | re.IGNORECASE)


def parse_size(text: str) -> int | None:
    """Parse a size such as ``50MB``, ``1.5 GB`` or ``none``, in units of 1,000. Raises
    ArgumentError."""
    if text.strip().lower() == "none":
        return None
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ArgumentError(
            f'`max_file_size`: "{text}" is not a size.',
            allowed="bytes, kB, MB or GB, such as 50MB or 1.5GB; none for no limit",
        )
    return math.floor(float(match[1]) * _UNITS[match[2].lower()])


def parse_limits(text: str) -> FileLimits:
    """Parse what a file may take, such as ``300,4GB``. Raises ArgumentError."""
    seconds, _, memory = text.partition(",")
    try:
        limits = FileLimits(float(seconds), parse_size(memory) or 0)
    except ValueError:
        limits = FileLimits(0)
    if not 0 < limits.seconds <= MAX_FILE_S or limits.memory < _LEAST_MEMORY:
        raise ArgumentError(
            f'`file_limits`: "{text}" are no limits.',
            allowed=f"seconds up to {MAX_FILE_S:,} and memory from {shown_size(_LEAST_MEMORY)} on,"
            " such as 300,4GB",
        )
    return limits


@dataclass(frozen=True, slots=True)
class FileSelection:
    """The selection of files to read from folders, and the ids that they get: the options of
    both, each said at its field. An update by changed paths also sets:

    ``only``: absolute paths, without links above their last part; nothing but these and what is
    below them is listed.
    ``within_s``: the seconds that the conversions of all files together may take.
    Raises ArgumentError for a value that is not allowed.
    """

    include: tuple[str, ...] = option(
        (),
        "Also read files of this name or path as text: '*.css', 'src/**/*.tf'. May be repeated.",
        "PATTERN",
    )
    exclude: tuple[str, ...] = option(
        (),
        "Leave out files and folders of this name or path: '*.min.html', '_sources/'. May be"
        " repeated.",
        "PATTERN",
    )
    no_ignore: bool = option(
        False, "Also read hidden and ignored files, passwords, keys and generated files."
    )
    max_file_size: int | None = option(
        MAX_FILE_BYTES,
        "Leave larger files of folders out: 200MB, 1.5GB, or none.  [default: 50MB]",
        "SIZE",
        0,
        read=parse_size,
    )
    root: str | None = option(
        None,
        "The folder that ids of files are relative to.  [default: the one that all sources have"
        " in common]",
        "DIR",
    )
    skip_bad_files: bool = option(False, "Skip and name files that cannot be read.")
    only: frozenset[str] | None = None
    file_limits: FileLimits = option(
        USUAL_LIMITS,
        "What converting a file such as a PDF may take.  [default: 60,1GiB]",
        "SECONDS,SIZE",
        read=parse_limits,
    )
    within_s: float = math.inf

    def __post_init__(self) -> None:
        check(self)
        spec_of("include", self.include)
        spec_of("exclude", self.exclude)

    def suspicion(self, relative: str) -> Suspicion:
        """Return what can leave a file out as one of passwords or keys; "none" with ``no_ignore``,
        or if ``include`` has its name without a wildcard."""
        name = os.path.basename(relative)
        named = tuple(entry for entry in self.include if os.path.basename(entry) == name)
        spec = spec_of("include", named)
        is_wanted = self.no_ignore or (spec is not None and spec.match_file(relative))
        return "none" if is_wanted else suspicion_of(name)

    def signature(self) -> dict[str, Any]:
        """Return the options that change what is indexed, by their names."""
        values = values_of(self)
        del values["skip_bad_files"], values["file_limits"]
        return values

    def rooted(self, names: Sequence[str]) -> FileSelection:
        """Return the selection with the root of these sources as an absolute path.

        A single folder is its own root, and a single file lies in it. The root of several sources
        is the common folder of their paths. Only their names count, so the root is the same even
        where only some of them exist. Raises ArgumentError if a source is outside of the root that
        was given.
        """
        paths = [os.path.abspath(name) for name in names if name != STDIN]
        if self.root is not None:
            root = os.path.abspath(self.root)
            outside = [path for path in paths if os.path.commonpath((root, path)) != root]
            if outside:
                raise ArgumentError(
                    "`root`: a source is outside of it.",
                    where=outside[0],
                    allowed=f"sources below {root}",
                    do="Name a folder that holds all sources.",
                )
        elif len(paths) == 1:
            root = paths[0] if os.path.isdir(paths[0]) else os.path.dirname(paths[0])
        else:
            root = os.path.commonpath(paths) if paths else os.getcwd()
        return replace(self, root=root)

    def relative(self, name: str) -> str:
        """Return the path of a source below the root, with slashes; empty for the root itself."""
        relative = os.path.relpath(os.path.abspath(name), self.root)
        return "" if relative == os.curdir else relative.replace(os.sep, "/")


USUAL_FILES = FileSelection()


def shown_size(size: int) -> str:
    """Format a size: ``120 MB``, ``1.5 kB``, ``7 bytes``."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:,.1f}".removesuffix(".0") + f" {name}"
    return "1 byte" if size == 1 else f"{size} bytes"

"""Which files of a folder a build reads: options, patterns as in .gitignore, and the entries below
a folder in a fixed order.

The library pathspec translates patterns. It is imported when there is a pattern.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from arag_search.engines.lucene.location import is_index
from arag_search.errors import ArgumentError, SourceError
from index_jobs.sources.conversion import USUAL_LIMITS, FileLimits
from index_jobs.sources.place import Place
from index_jobs.sources.records import readable

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

IGNORE_FILE = ".gitignore"
REPOSITORY = ".git"

_EXCLUDES = f"{REPOSITORY}/info/exclude"
_MAX_IGNORE_BYTES = 1 << 20
_TRAILING_BLANKS = re.compile(r"(?<!\\) +$")
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \t",
    "digit": "0-9",
    "lower": "a-z",
    "space": " \t\r\n\v\f",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
_CLASS = re.compile(rf"\[:({'|'.join(_CLASSES)}):\](?=[^\[]*\])")
"""A class of characters in brackets, which pathspec does not know (``[[:digit:]]``)."""


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The patterns of an ignore file, each with whether it is for folders only, and the rules of
    the folders above it.

    ``above`` is the length of the path, with a slash, of the folder in which the file lies.
    """

    patterns: Sequence[tuple[GitIgnoreSpecPattern, bool]]
    above: int
    outer: IgnoreRules | None = None

    def ignore(self, path: str) -> bool:
        """Return whether an entry below the folder is ignored; the path of a folder ends with a
        slash.

        As in git, the last pattern that matches decides, and the ignore file closest to the entry
        comes last. The folders above the entry must not be ignored themselves.
        """
        is_folder = path.endswith("/")
        name = path.rstrip("/")
        rules: IgnoreRules | None = self
        while rules is not None:
            relative = name[rules.above :]
            for pattern, only_folders in reversed(rules.patterns):
                if is_folder or not only_folders:
                    match: Any = pattern.match_file(relative)
                    # Pathspec marks by a group that a folder above the entry matches. For git this
                    # is no match (so a GitIgnoreSpec, which counts it, keeps what git ignores).
                    if match is not None and match.match.lastgroup is None:
                        return bool(pattern.include)
            rules = rules.outer
        return False


def rules_above(folder: str) -> IgnoreRules | None:
    """Return the rules that a source folder inherits from the folders above it in its repository.

    ``folder`` is an absolute path without links. There are no rules outside of a repository, and
    none if they would ignore the source folder itself, because an explicitly named folder is read.
    Raises SourceError for rules that cannot be read.
    """
    parents = [Path(folder), *Path(folder).parents]
    top = next((at for at, parent in enumerate(parents) if (parent / REPOSITORY).exists()), 0)
    rules: IgnoreRules | None = None
    for at in range(top, 0, -1):
        names = (REPOSITORY, IGNORE_FILE)
        rules = rules_of(str(parents[at]), names, f"{parents[at]}/", rules)
        if rules is not None and rules.ignore(f"{parents[at - 1]}/"):
            return None
    return rules


def rules_of(
    folder: str, names: Sequence[str], where: str, outer: IgnoreRules | None
) -> IgnoreRules | None:
    """Return the rules for the entries of a folder, an absolute path.

    ``names`` are its entries, and ``outer`` are the rules of the folder above it. Raises
    SourceError for rules that cannot be read.
    """
    above = len(folder.rstrip("/")) + 1
    for name, file in ((REPOSITORY, _EXCLUDES), (IGNORE_FILE, IGNORE_FILE)):
        if name not in names:
            continue
        path = Path(folder, file) if name == IGNORE_FILE else _excludes(Path(folder, REPOSITORY))
        if patterns := _patterns(path, f"{where}{file}"):
            outer = IgnoreRules(patterns, above, outer)
    return outer


def _excludes(repository: Path) -> Path:
    """Return the file of excludes of a repository; one that is a file names the folder of a working
    tree, which names the folder that all working trees share."""
    folder = repository
    for name, prefix in ((repository, "gitdir: "), ("commondir", "")):
        path = folder / name
        with suppress(OSError, ValueError):
            if path.is_file() and path.stat().st_size < _MAX_IGNORE_BYTES:
                folder = path.parent / path.read_text().removeprefix(prefix).strip()
    return folder / "info" / "exclude"


def _patterns(path: Path, where: str) -> list[tuple[GitIgnoreSpecPattern, bool]]:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode):
            return []
    except (FileNotFoundError, NotADirectoryError):
        return []
    place = Place(path.name, str(path.parent), status.st_dev, status.st_ino)
    with place.opened(where) as opened, opened.open("rb") as file:
        data = file.read(_MAX_IGNORE_BYTES)
    patterns: list[tuple[GitIgnoreSpecPattern, bool]] = []
    for line in os.fsdecode(data.removeprefix(b"\xef\xbb\xbf")).split("\n"):
        line = _TRAILING_BLANKS.sub("", line.removesuffix("\r"))
        line = _CLASS.sub(lambda name: _CLASSES[name[1]], line)
        with suppress(ValueError, re.error):  # git skips a line that is no pattern, too
            pattern = GitIgnoreSpecPattern(line.rstrip("/"))
            if pattern.include is not None:
                patterns.append((pattern, line.endswith("/")))
    return patterns


@lru_cache(maxsize=8)
def spec_of(option: str, patterns: tuple[str, ...]) -> GitIgnoreSpec | None:
    """Return the patterns of --include or --exclude, or None if there are none. Raises
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
                f'{option}: "{pattern}" is not a pattern.',
                allowed="a name or path with *, ? and **, as in .gitignore: '*.py', 'src/**/*.sql'",
            )
    return GitIgnoreSpec.from_lines(patterns) if patterns else None


LINK_OUT = "links out of the folder"
LINK_TO_FOLDER = "links to folders"
LINK_TO_NOTHING = "links to nothing"
PIPE = "named pipes"
SOCKET = "sockets"
DEVICE = "devices"
HIDDEN = "hidden"
LOCK_FILE = "lock files of Office"
IGNORED = "ignored by .gitignore"
EXCLUDED = "left out by --exclude"
KEY_FILE = "files of keys and passwords"
GENERATED = "lock files of packages and minified code"
LARGE_DATA = "logs and data above 1 MB without --include"
INDEX = "indexes of this program"
TOO_LARGE = "too large"
SHOWN_LARGE_FILES = 20
"""How many of the files that are too large a report names."""

IGNORED_FOLDERS = frozenset(("node_modules", "__pycache__"))
"""The folders that are left out because programs, not people, fill them."""

_KEY_NAMES = re.compile(
    r"id_(rsa|dsa|ecdsa|ed25519)(_sk)?([._-].*)?"
    r"|.*\.(env|key|pem|p12|pfx|pkcs12|ppk|jks|keystore|kdbx?)"
    r"|(.*[ _-])?(passwords|passphrases|credentials|recovery[ _-]codes)([ _-]?\d+)?"
    r"(\.(txt|csv|tsv|json|ya?ml|toml|ini|xlsx?|docx?))?"
    r"|(password|passwd|passphrase|secrets?)(\.(txt|csv|tsv|json|ya?ml|toml|ini))?",
    re.IGNORECASE,
)
"""The names of files that hold keys and passwords; pages about them (``passwords.md``) are read."""

_GENERATED_NAMES = re.compile(
    r".*\.(lock|lockfile|lockb|map)|.*[.-]lock\.(json|ya?ml|hcl)|npm-shrinkwrap\.json|go\.sum"
    r"|.*\.min\.(m?js|css)",
    re.IGNORECASE,
)

PRIVATE_KEY = re.compile(r"(?<!\s)\s*-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")
"""The beginning of a text that is a private key."""

NOT_READ = IGNORED_FOLDERS | {
    *(LINK_OUT, LINK_TO_FOLDER, LINK_TO_NOTHING, PIPE, SOCKET, DEVICE),
    *(HIDDEN, LOCK_FILE, IGNORED, EXCLUDED, KEY_FILE, GENERATED, LARGE_DATA, INDEX, TOO_LARGE),
}
"""The names that reports give to entries that are left out whatever the endings of their names."""


_Listing = tuple[Iterator[tuple[str, os.DirEntry[str]]], IgnoreRules | None]


class FolderEntry(NamedTuple):
    """An entry below a folder.

    ``relative`` is its POSIX path. ``left_out`` is empty for a file of the folder, and otherwise
    the name in NOT_READ of its kind. The contents of a folder that is left out are not listed. A
    folder that cannot be read has its ``problem``.
    """

    relative: str
    entry: os.DirEntry[str]
    left_out: str
    problem: SourceError | None = None


def folder_entries(
    name: str, root: Path, *, no_ignore: bool = False, only: frozenset[str] | None = None
) -> Iterator[FolderEntry]:
    """Return the entries below a folder, sorted by path, one folder at a time.

    Hidden entries (their names begin with a dot), IGNORED_FOLDERS, entries that .gitignore
    files exclude, and files named like keys or generated ones are left out, unless ``no_ignore``;
    indexes and the files with which Office marks an open document (``~$report.docx``) always are.
    Links to files of the folder count as files of it; other links are not followed. ``only`` are
    absolute paths, without links above their last part: no other entries are returned, except those
    below them. Messages call the folder ``name``. Raises SourceError if the folder cannot be read.
    """
    return _Walk(name, os.path.realpath(root), no_ignore, only).entries(root)


def leads_out(path: Path, root: Path) -> bool:
    """Return whether a path leads out of a folder, by links."""
    return not _is_below(os.path.realpath(path), os.path.realpath(root))


def _folders_above(path: str) -> Iterator[str]:
    while (above := os.path.dirname(path)) != path:
        yield above
        path = above


class _Walk:
    """A walk through the folders below ``root``, which has no links in its path."""

    def __init__(self, name: str, root: str, no_ignore: bool, only: frozenset[str] | None) -> None:
        self._name = name.rstrip("/")
        self._only = only
        self._on_the_way = {above for path in only or () for above in _folders_above(path)}
        self._root = root
        self._below = root.rstrip("/") + "/"
        self._no_ignore = no_ignore

    def entries(self, folder: Path) -> Iterator[FolderEntry]:
        """Yield the entries below a folder. Raises SourceError if it cannot be read."""
        rules = None if self._no_ignore else rules_above(self._root)
        under_way = [self._listing(os.fspath(folder), "", rules)]
        while under_way:
            listing, rules = under_way[-1]
            relative, entry = next(listing, ("", None))
            if entry is None:
                under_way.pop()
                continue
            kind = ""
            try:
                kind = self._left_out(relative, entry, rules)
                if relative.endswith("/") and not kind:
                    under_way.append(self._listing(entry.path, relative, rules))
                    continue
            except SourceError as problem:
                yield FolderEntry(relative, entry, "", problem)
            else:
                yield FolderEntry(relative, entry, kind)

    def _listing(self, folder: str, prefix: str, rules: IgnoreRules | None) -> _Listing:
        """Return the entries of a folder, whose path below the root is ``prefix``, in order, each
        with its relative path; and the rules for them, given those of the folder above."""
        where = f"{self._name}/{prefix}"
        with readable(where), os.scandir(folder) as entries:
            shown = [
                (prefix + entry.name + "/" * entry.is_dir(follow_symlinks=False), entry)
                for entry in entries
            ]
        names = [entry.name for _, entry in shown if entry.name.startswith(REPOSITORY)]
        if self._only is not None and not self._is_wanted(self._below + prefix, self._only):
            shown = [
                (relative, entry)
                for relative, entry in shown
                if (path := f"{self._below}{relative}".rstrip("/")) in self._on_the_way
                or path in self._only
            ]
        shown.sort(key=lambda pair: pair[0])
        if not self._no_ignore:
            if REPOSITORY in names and prefix:
                rules = None  # a repository inherits no rules
            if names:
                rules = rules_of(f"{self._below}{prefix}", names, where, rules)
        return iter(shown), rules

    def _is_wanted(self, folder: str, only: frozenset[str]) -> bool:
        """Return whether all entries of a folder are wanted, and not some of them alone."""
        folder = folder.rstrip("/")
        return folder in only or not only.isdisjoint(_folders_above(folder))

    def _left_out(self, relative: str, entry: os.DirEntry[str], rules: IgnoreRules | None) -> str:
        """Return why an entry is left out, as a name in NOT_READ; empty if it is not. Raises
        SourceError."""
        if not self._no_ignore:
            if entry.name.startswith("."):
                return HIDDEN
            if relative.endswith("/") and entry.name in IGNORED_FOLDERS:
                return entry.name
            if rules is not None and rules.ignore(self._below + relative):
                return IGNORED
            if not relative.endswith("/") and _KEY_NAMES.fullmatch(entry.name):
                return KEY_FILE
            if not relative.endswith("/") and _GENERATED_NAMES.fullmatch(entry.name):
                return GENERATED
        if relative.endswith("/"):
            return INDEX if is_index(Path(entry.path)) else ""
        if entry.name.startswith("~$"):
            return LOCK_FILE
        if entry.is_file(follow_symlinks=False):
            return ""
        with readable(f"{self._name}/{relative}"):
            return _kind(entry, self._root)


def _kind(entry: os.DirEntry[str], root: str) -> str:
    """Return the kind of an entry that is neither a regular file nor a folder; empty for a link to
    a file of the folder."""
    if not entry.is_symlink():
        return _special(entry.stat(follow_symlinks=False).st_mode)
    target = os.path.realpath(entry.path)
    if not _is_below(target, root):
        return LINK_OUT
    try:
        mode = os.stat(target).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return LINK_TO_NOTHING
    except OSError:
        if os.path.islink(target):  # a ring of links
            return LINK_TO_NOTHING
        raise
    return LINK_TO_FOLDER if stat.S_ISDIR(mode) else _special(mode)


def _special(mode: int) -> str:
    if stat.S_ISREG(mode):
        return ""
    if stat.S_ISFIFO(mode):
        return PIPE
    return SOCKET if stat.S_ISSOCK(mode) else DEVICE


def _is_below(path: str, root: str) -> bool:
    return os.path.commonpath((path, root)) == root


MAX_FILE_BYTES = 50_000_000
"""The size above which files of a folder are left out by default. A document is held in memory
several times while it is converted, cut and packed; text of this size is a hundred novels."""

MAX_FILE_S = 86_400
_LEAST_MEMORY = 256_000_000

STDIN = "-"
"""The name of standard input as a source."""

_OPTIONS = {
    "--include": "include",
    "--exclude": "exclude",
    "--no-ignore": "no_ignore",
    "--max-file-size": "max_bytes",
    "--root": "root",
}
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([kmgt]?)b?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FileSelection:
    """The selection of files to read from folders, and the ids that they get.

    ``include`` are patterns, as in .gitignore, of files that are read as text although their ending
    is not known, ``exclude`` those of files and folders that are not read in any case. With
    ``no_ignore``, hidden entries are read, and those that .gitignore files or IGNORED_FOLDERS
    exclude. Files of folders that are larger than ``max_bytes`` are left out; None
    is no limit. Ids are paths relative to ``root``; None stands for the folder that all sources
    have in common. With ``skip_bad``, a file that cannot be read is counted, and no part of it is
    indexed. ``only``, which an update by changed paths sets, is as in ``folder_entries``. The
    conversion of a file by a library may take what ``limits`` say. Raises ArgumentError for a value
    that is not allowed.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    no_ignore: bool = False
    max_bytes: int | None = MAX_FILE_BYTES
    root: str | None = None
    skip_bad: bool = False
    only: frozenset[str] | None = None
    limits: FileLimits = USUAL_LIMITS

    def __post_init__(self) -> None:
        spec_of("--include", self.include)
        spec_of("--exclude", self.exclude)
        if self.max_bytes is not None and self.max_bytes < 0:
            raise ArgumentError(
                f"--max-file-size: {self.max_bytes:,} is outside of the bounds.",
                allowed="bytes, 0 or more",
            )

    def signature(self) -> dict[str, Any]:
        """Return the options by their names, except those that do not change what is indexed."""
        values = {option: getattr(self, name) for option, name in _OPTIONS.items()}
        return {**values, "--include": list(self.include), "--exclude": list(self.exclude)}

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
                    "--root: a source is outside of it.",
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


def parse_size(text: str) -> int | None:
    """Parse a size such as ``50MB``, ``1.5 GB`` or ``none``, in units of 1,000. Raises
    ArgumentError."""
    if text.strip().lower() == "none":
        return None
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ArgumentError(
            f'--max-file-size: "{text}" is not a size.',
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
            f'--file-limits: "{text}" are no limits.',
            allowed=f"seconds up to {MAX_FILE_S:,} and memory from {shown_size(_LEAST_MEMORY)} on,"
            " such as 300,4GB",
        )
    return limits


def shown_size(size: int) -> str:
    """Format a size: ``120 MB``, ``1.5 kB``, ``7 bytes``."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:,.1f}".removesuffix(".0") + f" {name}"
    return "1 byte" if size == 1 else f"{size} bytes"

"""What git ignores: its rules, whose patterns the library pathspec translates."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from index_jobs.sources.folders.safe_open import Place
from index_jobs.sources.folders.selection import IGNORE_FILE, REPOSITORY

if TYPE_CHECKING:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

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
    """Return the file of excludes of a repository. If the repository is a file, it names the folder
    of a working tree. That folder names the folder that all working trees share."""
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

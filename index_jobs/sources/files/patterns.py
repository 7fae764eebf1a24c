"""Path patterns as in .gitignore files: those that a folder ignores, and those that a user
includes.

The library pathspec translates them. It is imported when there is a pattern.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from arag_search.errors import ArgumentError
from index_jobs.sources.records import readable

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILE = ".gitignore"
REPOSITORY = ".git"

_MAX_IGNORE_BYTES = 1 << 20
_TRAILING_BLANKS = re.compile(r"(?<!\\) +$")
_EXCLUDES = f"{REPOSITORY}/info/exclude"


class _IgnorePattern(NamedTuple):
    """A line of an ignore file. ``match`` returns something true for the paths that the pattern
    matches by itself, without a slash at the end: git does not count matches of a folder above."""

    ignores: bool
    only_folders: bool
    match: Callable[[str], object]


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The patterns of an ignore file, and those of the folders above it.

    ``above`` is the length of the path, with a slash, of the folder in which the file lies.
    """

    patterns: Sequence[_IgnorePattern]
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
            for pattern in reversed(rules.patterns):
                if (is_folder or not pattern.only_folders) and pattern.match(relative):
                    return pattern.ignores
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
        if name in names and (patterns := _ignore_file(Path(folder, file), f"{where}{file}")):
            outer = IgnoreRules(patterns, above, outer)
    return outer


def _ignore_file(path: Path, where: str) -> list[_IgnorePattern]:
    """Return the patterns of an ignore file; none if it is not a regular file."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    if not stat.S_ISREG(status.st_mode):
        return []
    with readable(where), path.open("rb") as file:
        data = file.read(_MAX_IGNORE_BYTES)
    lines = os.fsdecode(data.removeprefix(b"\xef\xbb\xbf")).split("\n")
    return list(filter(None, (_pattern(line.removesuffix("\r")) for line in lines)))


def _pattern(line: str) -> _IgnorePattern | None:
    """Parse a line of an ignore file; return None for a line that git skips."""
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    line = _TRAILING_BLANKS.sub("", line)
    body = line.rstrip("/")
    try:
        pattern = GitIgnoreSpecPattern(body)
    except (ValueError, re.error):
        return None
    if pattern.include is None:
        return None
    expression = cast("re.Pattern[str]", cast("Any", pattern).regex)
    # pathspec means all entries by ".", and by "^a/" those in a; other expressions name an entry,
    # or one below it.
    is_prefix = expression.pattern == "." or body.endswith("/**")
    match = expression.match if is_prefix else expression.fullmatch
    return _IgnorePattern(pattern.include, body != line, match)


def _is_valid(pattern: str) -> bool:
    try:
        _spec([pattern])
    except (ValueError, re.error):
        return False
    return True


def _spec(patterns: Sequence[str]) -> GitIgnoreSpec:
    """Compile patterns. Raises ValueError or re.error if they are not valid."""
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(patterns)


@lru_cache(maxsize=8)
def included(patterns: tuple[str, ...]) -> GitIgnoreSpec | None:
    """Return the patterns of --include, or None if there are none. Raises ArgumentError for a
    pattern that is not valid."""
    for pattern in patterns:
        if not pattern.strip() or pattern.startswith("#") or not _is_valid(pattern):
            raise ArgumentError(
                f'--include: "{pattern}" is not a pattern.',
                allowed="a name or path with *, ? and **, as in .gitignore: '*.py', 'src/**/*.sql'",
            )
    return _spec(patterns) if patterns else None

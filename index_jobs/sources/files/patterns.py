"""Patterns of paths, as .gitignore files write them: what a folder ignores, what a user includes.

The library pathspec matches them as git does. It is imported when there is a pattern.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from arag_search.errors import ArgumentError
from index_jobs.sources.records import readable

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILE = ".gitignore"
REPOSITORY = ".git"

_MAX_IGNORE_BYTES = 1 << 20
_EXCLUDES = Path(REPOSITORY) / "info" / "exclude"


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The patterns of an ignore file, and those of the folders above it.

    A path below the source folder, relative to it, is matched without its first ``above``
    characters and behind ``below``: so it becomes relative to the folder of the ignore file, which
    lies inside the source folder or above it.
    """

    spec: GitIgnoreSpec
    above: int = 0
    below: str = ""
    outer: IgnoreRules | None = None

    def ignore(self, relative: str) -> bool:
        """Return whether a path is ignored; that of a folder ends with a slash.

        As in git, the last pattern that matches decides, and the ignore file closest to the path
        comes last. The folders above the path must not be ignored themselves.
        """
        rules: IgnoreRules | None = self
        while rules is not None:
            include = rules.spec.check_file(rules.below + relative[rules.above :]).include
            if include is not None:
                return include
            rules = rules.outer
        return False


def rules_above(folder: Path) -> IgnoreRules | None:
    """Return the rules that a source folder inherits from the folders above it in its repository.

    There are none outside of a repository, and none where they ignore the source folder itself:
    a folder that is named explicitly is read. Raises SourceError for rules that cannot be read.
    """
    inside = Path(os.path.realpath(folder))
    parents = [inside, *inside.parents]
    top = next((at for at, parent in enumerate(parents) if (parent / REPOSITORY).exists()), 0)
    rules: IgnoreRules | None = None
    for at in range(top, 0, -1):
        below = inside.relative_to(parents[at]).as_posix() + "/"
        for file in (parents[at] / _EXCLUDES, parents[at] / IGNORE_FILE):
            if (spec := _ignore_file(file, str(file))) is not None:
                rules = IgnoreRules(spec, below=below, outer=rules)
        if rules is not None and rules.ignore(""):
            return None
    return rules


def rules_of(
    folder: Path, prefix: str, names: Sequence[str], where: str, outer: IgnoreRules | None
) -> IgnoreRules | None:
    """Return the rules for the entries of a folder.

    ``prefix`` is its path relative to the source folder, ``names`` are its entries, and ``outer``
    are the rules of the folder above it. A repository within a folder does not inherit rules.
    Raises SourceError for rules that cannot be read.
    """
    above = len(prefix)
    if REPOSITORY in names and prefix:
        outer = None
    if REPOSITORY in names and (spec := _ignore_file(folder / _EXCLUDES, where)) is not None:
        outer = IgnoreRules(spec, above, outer=outer)
    if IGNORE_FILE in names:
        spec = _ignore_file(folder / IGNORE_FILE, f"{where}{IGNORE_FILE}")
        if spec is not None:
            return IgnoreRules(spec, above, outer=outer)
    return outer


def _ignore_file(path: Path, where: str) -> GitIgnoreSpec | None:
    """Return the patterns of an ignore file; None if it has none, or is not a regular file."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    with readable(where), path.open("rb") as file:
        data = file.read(_MAX_IGNORE_BYTES)
    lines = os.fsdecode(data.removeprefix(b"\xef\xbb\xbf")).split("\n")
    patterns = [line.removesuffix("\r") for line in lines]
    try:
        return _spec(patterns)
    except (ValueError, re.error):  # git passes over invalid patterns
        return _spec([pattern for pattern in patterns if _is_valid(pattern)])


def _is_valid(pattern: str) -> bool:
    try:
        _spec([pattern])
    except (ValueError, re.error):
        return False
    return True


def _spec(patterns: Sequence[str]) -> GitIgnoreSpec | None:
    """Compile patterns; None if there are none. Raises ValueError or re.error if they are not
    valid."""
    from pathspec import GitIgnoreSpec

    spec = GitIgnoreSpec.from_lines(patterns)
    return spec if any(pattern.include is not None for pattern in spec.patterns) else None


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

"""How an index stands beside the files that it was made of, as far as this machine knows.

Builds, synchronisations, watchers and comparisons before an answer write it to the cache; replies,
results and ``arag-search info`` read it. It is put into words here and nowhere else.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from arag_search.engines.opensearch.address import is_address
from arag_search.errors import on_one_line
from arag_search.system.cache import cache_folder
from arag_search.system.durable import write_atomically
from arag_search.system.progress import counted
from arag_search.tokens import count_tokens

NAMED_FILES = 3
"""How many of the changed files are named."""

LINE_TOKENS = 25
"""The greatest length of the line of a reply."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How an index stands beside its ``sources``, real paths of folders and files.

    ``in_step``: the time in UTC at which all files were last compared and nothing was left to do;
    empty before the first.
    ``changed_files``: the number of files that are new, changed or gone since.
    ``changed``: the names of the first of these.
    ``problem``: why the index cannot follow the files.
    ``files``: how many were read at the last comparison of all.
    ``not_compared``: how many are not compared before an answer, because they are too many.
    ``not_read``: by kind, how many files are not in the index although they could hold text.
    ``left_out``: lines that say all that is left out.
    ``slow_files``: how many changed files take too long to be read before an answer.
    """

    index: str
    sources: tuple[str, ...] = ()
    in_step: str = ""
    changed_files: int = 0
    changed: tuple[str, ...] = ()
    problem: str = ""
    files: int = 0
    not_compared: int = 0
    not_read: Mapping[str, int] = field(default_factory=dict[str, int])
    left_out: tuple[str, ...] = ()
    slow_files: int = 0

    @property
    def gone(self) -> tuple[str, ...]:
        """The sources that no longer exist."""
        return tuple(source for source in self.sources if not os.path.lexists(source))

    def now_in_step(self, moment: str) -> Standing:
        """Return the standing of an index of which everything was in step at a time in UTC."""
        new = Standing(self.index, self.sources, moment, files=self.files)
        return replace(new, not_read=self.not_read, left_out=self.left_out)

    def within_scope(self) -> Standing:
        """Return the standing for somebody who sees a part of the index: no name and no number of
        files."""
        is_past = self.changed_files or self.gone or self.problem or self.not_compared
        problem = "Its files have changed, or are not compared." if is_past else ""
        return Standing(self.index, in_step=self.in_step, problem=problem)

    def line(self) -> str:
        """Return the line that a reply has if the index may be behind its files; else nothing. A
        name that makes it too long is left out."""
        if gone := self.gone:
            names = (gone[0], os.path.basename(gone[0]), "its source")
            forms = [f"{on_one_line(name)} is gone" for name in names]
        elif self.problem:
            forms = ["not since: see arag-search info"]
        elif self.changed_files:
            count = f"{counted(self.changed_files, 'file')} changed since"
            names = map(os.path.basename, self.changed[:1])
            forms = [*(f"{count}, {on_one_line(name)} among these" for name in names), count]
        elif self.not_compared:
            forms = [f"not compared since: {counted(self.not_compared, 'file')}"]
        else:
            return ""
        lines = [f"Index up to date as of {_shown_time(self.in_step)}; {form}." for form in forms]
        return next((line for line in lines if count_tokens(line) <= LINE_TOKENS), lines[-1])

    def lines(self, *, is_absent: bool) -> list[str]:
        """Return the last lines of a reply. If nothing was found (``is_absent``), they also count
        the files that are not in the index."""
        return [line for line in (self.missing() if is_absent else "", self.line()) if line]

    @property
    def folder(self) -> str:
        """The folder of files whose index in the cache it is; empty for an index by name."""
        is_cached = self.index.startswith(str(cache_folder()))
        return self.sources[0] if is_cached and self.sources else ""

    def missing(self) -> str:
        """Return the line for a reply that found nothing: how many files are not in the index;
        empty if there are none."""
        if not self.not_read:
            return ""
        kinds = sorted(self.not_read.items(), key=lambda pair: (-pair[1], pair[0]))
        shown = ", ".join(f"{count:,} {kind}" for kind, count in kinds[:NAMED_FILES])
        more = ", ..." if len(kinds) > NAMED_FILES else ""
        total = counted(sum(self.not_read.values()), "file")
        verb = "is" if total.startswith("1 ") else "are"
        place = on_one_line(self.folder or self.index)
        return f"{total} {verb} not in the index ({shown}{more}): arag-search info {place}"

    def to_dict(self) -> dict[str, Any]:
        """Return the standing as values that JSON can hold; ``says`` is the line."""
        return {
            "in_step": self.in_step,
            "changed_files": self.changed_files,
            "changed": list(self.changed),
            "slow_files": self.slow_files,
            "gone": list(self.gone),
            "problem": self.problem,
            "not_compared": self.not_compared,
            "not_read": dict(self.not_read),
            "says": self.line(),
        }


def standing_of(location: str | Path) -> Standing | None:
    """Return the standing that was noted on this machine, or None. It takes one small read."""
    return read_standing(standing_file(location, ".json"))


_last: dict[Path, tuple[tuple[int, int], Standing | None]] = {}


def read_standing(file: Path) -> Standing | None:
    """Return the standing in a file of ``note_standing``, which is read only if it has changed."""
    try:
        status = os.stat(file)
        identity = status.st_mtime_ns, status.st_ino
        if (known := _last.get(file)) is None or known[0] != identity:
            values: Any = orjson.loads(file.read_bytes())
            for name in ("sources", "changed", "left_out"):
                values[name] = tuple(values[name])
            known = _last[file] = identity, Standing(**values)
        return known[1]
    except (OSError, ValueError, TypeError, KeyError):
        return None


def note_standing(standing: Standing) -> None:
    """Note how an index stands; where the cache cannot be written, nobody else learns it."""
    with suppress(OSError):
        file = standing_file(standing.index, ".json")
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(file, orjson.dumps(standing), shared=True)


def forget_standing(location: str | Path) -> None:
    """Remove all that was noted of an index."""
    for ending in (".json", ".lock", ".files"):
        with suppress(OSError):
            standing_file(location, ending).unlink(missing_ok=True)


def standing_file(location: str | Path, ending: str) -> Path:
    """Return the path of a file with notes on an index; the file may not exist."""
    name = identity_of(location)
    return cache_folder() / "watched" / (hashlib.sha256(name.encode()).hexdigest()[:32] + ending)


def identity_of(location: str | Path) -> str:
    """Return the name of an index that all processes of this machine use."""
    name = str(location)
    return name if is_address(name) else os.path.realpath(name)


def now() -> str:
    """Return the time in UTC, in seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _shown_time(moment: str) -> str:
    if not moment:
        return "never"
    local, today = datetime.fromisoformat(moment).astimezone(), datetime.now(UTC).astimezone()
    if local.date() == today.date():
        return f"{local:%H:%M}"
    return f"{local:%b} {local.day}" + (f" {local.year}" if local.year != today.year else "")

"""Cells: the measurements under one condition, a row for each question and seed, in a file each.

    FOLDER/logical-musique-....jsonl   a line that describes the cell, then a line for each row

A file exists once the cell is complete, and a cell is not measured again while everything that it
depends on has the same fingerprints.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, cast

import orjson

from arag_search.system.durable import write_atomically
from arag_search.system.progress import duration
from bench import BenchError
from bench.data import FORMS, corpus_file, is_set, questions_in, set_folder

FORMAT_VERSION = 1
_ENDING = ".jsonl"
_READABLE_CHARACTERS = 80

INTENTS = "intents"
VERDICT = "verdict"
Key = Mapping[str, str]
"""A condition: factor name -> level."""


@dataclass(frozen=True, slots=True)
class CellRow:
    """One question in one cell, with one seed.

    ``values`` are by measure, as it prints ("TokensToEvidence", "FullEvidence", "EM"); None is what
    could not be measured. What ``details`` may hold is up to the experiment; a report reads

    - ``hops``: number of hops of the question; ``half``: "development" or "test";
    - ``record``: where the steps are, ``FOLDER#question id``, relative to the folder of the suite;
    - ``failed``: whether the question failed; ``failure``: why its answer is wrong, where it is;
    - ``unresolved``: whether its evidence is in no passage of the index;
    - ``searches``, ``zero_hits``, ``refused``: how many calls there were, found nothing, were
      refused; ``repeated_tokens``, ``failed_tokens``: tokens shown again, and of calls that failed;
    - ``intents``: those of its searches as a model judged them, None if it did not; ``verdict``: a
      model's category of its wrong answer;
    - ``curve``: pairs of tokens and share of the evidence shown by then, in order.
    """

    question_id: str
    type: str | None
    seed: int
    values: Mapping[str, float | None]
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of an experiment.

    ``data`` has a folder for each data set, ``kept`` has the indexes and vectors that all suites
    share (a folder for each data set), ``work`` has the files of this suite. ``sets`` are the
    folders of data sets that are elsewhere, by name. ``index`` is the place of an index that is
    searched for all data sets, in which nothing is ever built.
    """

    data: Path
    kept: Path
    work: Path
    sets: Mapping[str, Path] = field(default_factory=dict[str, Path])
    index: str | None = None

    def corpus(self, name: str) -> Path:
        """Return the corpus file of a data set. Raises BenchError if there is no such set."""
        return corpus_file(self.folder(name), name)

    def questions(self, name: str) -> Path:
        """Return the source of a data set's questions. Raises BenchError as ``folder`` does."""
        return questions_in(self.folder(name), name)

    def folder(self, name: str) -> Path:
        """Return the folder of a data set. Raises BenchError if it has no corpus or index that
        could be searched."""
        folder = self.sets.get(name)
        if self.index is not None:
            folder = folder or self.data / name
            if questions_in(folder, name).exists():
                return folder
        elif folder is None:
            return set_folder(self.data, name)
        elif is_set(folder, name):
            return folder
        corpus = "" if self.index is not None else "corpus and "
        allowed = (f"{corpus and f'{a} and '}{b}".format(name=name) for a, b in FORMS)
        raise BenchError(
            f'There are no {corpus}questions of the data set "{name}".',
            where=str(folder),
            allowed=f"a folder with {', or '.join(dict.fromkeys(allowed))}",
            do=f"Name the folder with --set {name}=FOLDER.",
        )


@dataclass(frozen=True, slots=True)
class Cell:
    """One condition, and the fingerprints of all that its values depend on."""

    key: Key
    fingerprints: Mapping[str, str]

    @property
    def file_name(self) -> str:
        """The same for the same levels, whatever the fingerprints."""
        digest = hashlib.sha256(orjson.dumps(dict(self.key), option=orjson.OPT_SORT_KEYS))
        readable = re.sub(r"[^A-Za-z0-9._]+", "-", "-".join(self.key.values())).strip("-.")
        return f"{readable[:_READABLE_CHARACTERS]}-{digest.hexdigest()[:12]}{_ENDING}"


class Experiment(Protocol):
    """Something that can be measured under several conditions; the seam of the runner.

    Conditions are measured in the order of ``keys``, one by one; the experiment keeps what several
    of them share.
    """

    @property
    def keys(self) -> Sequence[Key]:
        """All conditions, each with the same factors. Opens and builds nothing."""
        ...

    def fingerprints(self, key: Key) -> Mapping[str, str]:
        """Return the fingerprints of everything that the rows of the cell depend on; build what is
        missing for it, such as an index."""
        ...

    def measure(self, key: Key) -> Iterable[CellRow]:
        """Return one row for each question and seed, with every question in the denominator."""
        ...

    def close(self) -> None:
        """Close everything that is open. Calling it twice is allowed."""
        ...


@dataclass(frozen=True, slots=True)
class Stored:
    """A cell as stored in a folder. ``changed`` names the fingerprints that differ now, which makes
    its rows outdated. ``exists`` is false if the folder lacks the cell."""

    exists: bool
    changed: tuple[str, ...] = ()

    @property
    def is_current(self) -> bool:
        """Whether the cell need not be measured."""
        return self.exists and not self.changed


def write_cell(folder: Path, cell: Cell, rows: Iterable[CellRow]) -> int:
    """Write a complete cell in place of an older one, and return its number of rows.

    Raises BenchError for a cell without rows, or with a question twice for one seed.
    """
    lines: list[bytes] = []
    seen: set[tuple[str, int]] = set()
    for row in rows:
        if (row.question_id, row.seed) in seen:
            raise BenchError(
                f'The question "{row.question_id}" is duplicated with seed {row.seed}.',
                where=_named(cell.key),
            )
        seen.add((row.question_id, row.seed))
        lines.append(orjson.dumps(row))
    if not lines:
        raise BenchError("The cell has no rows.", where=_named(cell.key))
    head = {
        "format": FORMAT_VERSION,
        "key": dict(cell.key),
        "fingerprints": dict(cell.fingerprints),
        "rows": len(lines),
    }
    folder.mkdir(parents=True, exist_ok=True)
    whole = b"\n".join([orjson.dumps(head), *lines, b""])
    write_atomically(folder / cell.file_name, whole)
    return len(lines)


def stored(folder: Path, cell: Cell) -> Stored:
    """Look up a cell and the fingerprints with which it was measured."""
    path = folder / cell.file_name
    if not path.is_file():
        return Stored(False)
    with path.open("rb") as file:
        head = _head(file.readline(), path)
    before = cast(dict[str, str], head["fingerprints"])
    names = dict.fromkeys([*before, *cell.fingerprints])
    changed = [name for name in names if before.get(name) != cell.fingerprints.get(name)]
    return Stored(True, tuple(changed))


def read_cell(path: Path) -> tuple[Cell, list[CellRow]]:
    """Read a cell from its file. Raises BenchError for a file that is not a complete cell."""
    with path.open("rb") as file:
        head = _head(file.readline(), path)
        rows = list(_rows(file, path))
    if len(rows) != head["rows"]:
        raise _broken(path, f"It has {len(rows)} rows, and says {head['rows']}.")
    return Cell(head["key"], head["fingerprints"]), rows


def cell_files(folder: Path) -> list[Path]:
    """Return the files of the cells in a folder, by name."""
    return sorted(folder.glob(f"*{_ENDING}"))


def _rows(lines: Iterable[bytes], path: Path) -> Iterator[CellRow]:
    for number, line in enumerate(lines, 2):
        try:
            yield CellRow(**orjson.loads(line))
        except (orjson.JSONDecodeError, TypeError) as error:
            raise _broken(path, f"Line {number} is no row ({error}).") from error


def _head(line: bytes, path: Path) -> dict[str, Any]:
    try:
        head = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _broken(path, f"Its first line is not JSON ({error}).") from error
    if not isinstance(head, dict) or not {"key", "fingerprints", "rows"} <= head.keys():
        raise _broken(path, "Its first line does not say what it is.")
    content = cast(dict[str, Any], head)
    if content.get("format") != FORMAT_VERSION:
        raise _broken(path, f"Its format is {content.get('format')}, not {FORMAT_VERSION}.")
    return content


def _broken(path: Path, why: str) -> BenchError:
    return BenchError(
        f"The file is no cell. {why}",
        where=str(path),
        do="Remove it: the cell is then measured again.",
    )


def _named(key: Key) -> str:
    return ", ".join(f"{factor}={level}" for factor, level in key.items())


# The runner of experiments: it measures cell by cell, skips finished cells, and resumes


FAILED = "failed questions"
"""The extra fingerprint of a cell with failed questions. It makes the cell outdated, so that the
next run retries these questions."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The number of cells measured in this run, and of those kept from earlier ones."""

    measured: int
    kept: int


def chosen_keys(keys: Sequence[Key], only: Mapping[str, str]) -> list[Key]:
    """Return the keys with these levels. Raises BenchError for an unknown factor or level."""
    for factor, level in only.items():
        levels = dict.fromkeys(key[factor] for key in keys if factor in key)
        if not levels:
            factors = ", ".join(keys[0])
            raise BenchError(f'There is no factor "{factor}".', where="--only", allowed=factors)
        if level not in levels:
            raise BenchError(
                f'"{level}" is not a level of {factor}.', where="--only", allowed=", ".join(levels)
            )
    return [key for key in keys if all(key[factor] == level for factor, level in only.items())]


def run_cells(
    experiment: Experiment, keys: Sequence[Key], folder: Path, say: Callable[[str], None]
) -> Outcome:
    """Measure the cells that the folder lacks, or that were measured with other fingerprints."""
    began = time.monotonic()
    measured = kept = 0
    for number, key in enumerate(keys, 1):
        cell = Cell(dict(key), dict(experiment.fingerprints(key)))
        there = stored(folder, cell)
        if there.is_current:
            kept += 1
            continue
        if there.exists:
            say(f"{named(key)}: measured again, for another {', '.join(there.changed)}.")
        rows = list(experiment.measure(key))
        write_cell(folder, _with_failures(cell, rows), rows)
        measured += 1
        left = (time.monotonic() - began) / measured * (len(keys) - number)
        say(f"{number:,} of {len(keys):,} cells, {named(key)}; at most {duration(left)} left")
    return Outcome(measured, kept)


def named(key: Key) -> str:
    """Format the levels of a key for people."""
    return ", ".join(key.values())


def _with_failures(cell: Cell, rows: Sequence[CellRow]) -> Cell:
    failed = sum(bool(row.details.get("failed")) for row in rows)
    if not failed:
        return cell
    return replace(cell, fingerprints={**cell.fingerprints, FAILED: str(failed)})

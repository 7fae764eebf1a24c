"""A data set made from published files: the files as they were downloaded, and what is made of
them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from arag_search.questions.files import read_questions
from arag_search.search.opening import open_index
from arag_search.system.durable import write_atomically
from arag_search.system.progress import open_progress
from bench import BenchError
from bench.data import INDEX, QUESTIONS, questions_in
from bench.published.problems import problems_of
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.sources.converters.tables import parquet_rows


@dataclass(frozen=True, slots=True)
class Downloaded:
    """The folder into which published files were downloaded, and how to get them."""

    folder: Path
    get: str

    def file(self, name: str) -> Path:
        """Return a published file. Raises BenchError for a missing one."""
        path = self.folder / name
        if not path.is_file():
            raise self.lacking(name)
        return path

    def rows(self, pattern: str) -> Iterator[PublishedRow]:
        """Yield the rows of all Parquet files of a pattern. Raises BenchError if there are none."""
        files = sorted(self.folder.glob(pattern))
        if not files:
            raise self.lacking(pattern)
        for file in files:
            for number, row in enumerate(parquet_rows(file, str(file)), 1):
                yield PublishedRow(row, f"{file}, row {number}", self.get)

    def lacking(self, names: str) -> BenchError:
        """Return the error for published files that the folder lacks."""
        return BenchError(
            f"The folder does not have {names}.",
            where=str(self.folder),
            allowed="the folder into which the published files were downloaded, with their names",
            do=f"Download them: {self.get}",
        )


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A row of a published file, its place, and how to get the file. Raises BenchError for values
    that are not as published."""

    values: Mapping[str, Any]
    where: str
    get: str

    def text(self, name: str) -> str:
        """Return a value that has to be a text, or a number."""
        value = self.values.get(name)
        if not isinstance(value, str | int) or not str(value).strip():
            raise self.wrong(f'"{name}" is no text.')
        return str(value)

    def list(self, name: str) -> Sequence[Any]:
        """Return a value that has to be a list."""
        value = self.values.get(name)
        if not isinstance(value, list):
            raise self.wrong(f'"{name}" is no list.')
        return value

    def wrong(self, what: str, do: str = "Download the files again") -> BenchError:
        """Return the error for a row that is not as published."""
        said = f"The row is not as published: {what}"
        return BenchError(said, where=self.where, do=f"{do}: {self.get}")


def made_set(
    folder: Path, sources: Sequence[Path], options: BuildOptions, asked: Path | None = None
) -> str:
    """Build the index of a data set, and describe it for people, with the problems of its
    questions. The questions are in the file ``asked``, or in its folder already. An existing index
    is replaced. Raises what building an index and reading questions raise."""
    folder.mkdir(parents=True, exist_ok=True)
    if asked is not None:
        write_atomically(folder / QUESTIONS, asked.read_bytes())
    location = folder / INDEX
    build_index([str(source) for source in sources], location, options, open_progress())
    questions = read_questions(questions_in(folder))
    with open_index(location, search_timeout_s=None) as index:
        problems = problems_of(questions, index.scan())
        counts = f"{len(questions.questions):,} questions, {index.manifest.documents:,} documents"
    return "\n".join([f"{folder}: {counts}", *(f"  Note: {problem}" for problem in problems)])


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as lines of JSON, and the folder if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
                                    for row in rows))  # fmt: skip

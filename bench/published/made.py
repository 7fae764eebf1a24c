"""A data set made from published files: its folder, its index and its questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from arag_search.questions.files import read_questions
from arag_search.search.opening import open_index
from arag_search.system.progress import open_progress
from bench import BenchError
from bench.data import INDEX, questions_in
from bench.published.problems import problems_of
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions


@dataclass(frozen=True, slots=True)
class MadeSet:
    """A data set in its folder, with the problems of its questions beside its index."""

    folder: Path
    questions: int
    documents: int
    problems: Sequence[str]

    def lines(self) -> Iterator[str]:
        """Yield the description for people."""
        yield f"{self.folder}: {self.questions:,} questions, {self.documents:,} documents"
        yield from (f"  Note: {problem}" for problem in self.problems)


def made_set(folder: Path, sources: Sequence[Path], options: BuildOptions) -> MadeSet:
    """Build the index of a data set whose questions are in its folder, and describe both. An
    existing index is replaced. Raises what building an index and reading questions raise."""
    location = folder / INDEX
    build_index([str(source) for source in sources], location, options, open_progress())
    questions = read_questions(questions_in(folder))
    with open_index(location, search_timeout_s=None) as index:
        problems = problems_of(questions, index.scan())
        documents = index.manifest.documents
    return MadeSet(folder, len(questions.questions), documents, problems)


def published_file(folder: Path, name: str, get: str) -> Path:
    """Return a published file. Raises BenchError, which says how to ``get`` it, for a missing
    one."""
    path = folder / name
    if not path.is_file():
        raise missing_files(folder, name, get)
    return path


def missing_files(folder: Path, names: str, get: str) -> BenchError:
    """Return the error for published files that a folder lacks."""
    return BenchError(
        f"The folder does not have {names}.",
        where=str(folder),
        allowed="the folder into which the published files were downloaded, with their names",
        do=f"Download them: {get}",
    )

"""The folders of an experiment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.data import corpus_file, questions_in, set_folder


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of an experiment.

    ``data`` has a folder for each data set, ``kept`` has the indexes and vectors that all suites
    share (a folder for each data set), ``work`` has the files of this suite. ``index`` is the place
    of an index that is searched for all data sets, in which nothing is ever built.
    """

    data: Path
    kept: Path
    work: Path
    index: str | None = None

    def folder(self, name: str) -> Path:
        """Return the folder of a data set: that of its questions alone, if an index is given.
        Raises BenchError if there is none."""
        folder = self.data / name
        has_questions = self.index is not None and questions_in(folder, name).exists()
        return folder if has_questions else set_folder(self.data, name)

    def corpus(self, name: str) -> Path:
        """Return the corpus file of a data set. Raises BenchError as ``folder`` does."""
        return corpus_file(self.folder(name), name)

    def questions(self, name: str) -> Path:
        """Return the source of a data set's questions. Raises BenchError as ``folder`` does."""
        return questions_in(self.folder(name), name)

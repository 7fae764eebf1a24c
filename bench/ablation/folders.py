"""The folders of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench import BenchError
from bench.data import FORMS, corpus_file, is_set, questions_in, set_folder


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
        """Return the folder of a data set. Raises BenchError if it has no questions, or nothing
        that could be searched."""
        if self.index is None and name not in self.sets:
            return set_folder(self.data, name)
        folder = self.sets.get(name, self.data / name)
        if is_set(folder, name) if self.index is None else questions_in(folder, name).exists():
            return folder
        forms = dict.fromkeys(
            (f"{corpus} and " if self.index is None else "") + questions
            for corpus, questions in FORMS
        )
        raise BenchError(
            f'The data set "{name}" is not there.',
            where=str(folder),
            allowed=f"a folder with {', or '.join(forms)}".format(name=name),
            do=f"Name the folder with --set {name}=FOLDER.",
        )

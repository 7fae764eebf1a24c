"""The data that benches read: a folder of data sets, one data set, or any folder of files.

A data set is a folder with one of these:

- a corpus and questions, under the names of one of ``FORMS``
- an index of its own in ``index``, and questions
- queries and judgements of BEIR

The sample of the package is a data set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import arag_search
from arag_search.evaluation.bootstrap import SEED
from arag_search.questions.files import QUERIES_FILE, Question
from bench import BenchError

DATA_SETS = Path("..") / "shared" / "data"
"""The folder of the data sets, unless a command names another with --data."""
SAMPLE = Path(arag_search.__file__).parent / "sample"
CORPUS = Path("2wikimultihopqa") / "corpus.jsonl"
"""The corpus of the benches that read a single one, in a folder of data sets."""

SETS = ("2wikimultihopqa", "musique", "hotpotqa")
QUESTIONS = "questions.jsonl"
INDEX = "index"
"""The folder, in a data set, of an index of its own. It is searched, and no bench builds an index
from the corpus."""

CORPUS_LINES = "corpus.jsonl"
FORMS = (
    ("corpus.json", QUESTIONS),
    (CORPUS_LINES, QUESTIONS),
    ("chunks.json", "questions.json"),
    ("{name}_corpus.json", "{name}.json"),
    ("Corpus/{name}.json", "Questions/{name}_questions.json"),
)
"""The names of corpus and questions in published folders. They are of this project, of A-RAG and
LinearRAG, of HippoRAG, and of GraphRAG-Bench, whose folders hold several sets by name."""
_MANIFEST = "manifest.json"
_GUIDE = "bench/README.md says which public files belong there."


def default_data() -> Path:
    """Return the folder of the data sets or, if there is none, the sample."""
    return DATA_SETS if DATA_SETS.is_dir() else SAMPLE


def corpus_file(folder: Path, name: str | None = None) -> Path:
    """Return the corpus file of a data set, the first of ``FORMS`` that the folder has. ``name`` is
    its name in published folders, by default the name of the folder. If there is none, return the
    path of corpus.jsonl."""
    return _file_in(folder, name, 0) or folder / CORPUS_LINES


def questions_in(folder: Path, name: str | None = None) -> Path:
    """Return the source of a data set's questions. It is its file of questions, as in
    ``corpus_file``, or the folder itself if it is a folder of BEIR."""
    file = _file_in(folder, name, 1)
    if file is None and (folder / QUERIES_FILE).is_file():
        return folder
    return file or folder / QUESTIONS


def _file_in(folder: Path, name: str | None, part: int) -> Path | None:
    files = (folder / form[part].format(name=name or folder.name) for form in FORMS)
    return next((file for file in files if file.is_file()), None)


def own_index(folder: Path) -> Path | None:
    """Return the index that a data set has; None if it has none. A folder of this name in which
    A-RAG's own program keeps its vectors is not an index."""
    return folder / INDEX if (folder / INDEX / _MANIFEST).is_file() else None


def corpus_in(data: Path) -> Path:
    """Return the corpus that a bench of a single one reads. It is ``CORPUS`` in a folder of data
    sets, the corpus of a data set, or any other folder as a whole.

    Raises BenchError if there is no such folder.
    """
    if (data / CORPUS).is_file():
        return data / CORPUS
    if not data.is_dir():
        raise BenchError(
            "There is no such folder.",
            where=str(data),
            allowed="a folder of data sets, a data set, or any folder of files",
            do=f"Name it with --data. {_GUIDE}",
        )
    file = corpus_file(data)
    return file if file.is_file() else data


def set_folder(data: Path, name: str) -> Path:
    """Return the folder of a data set: in ``data``, ``data`` itself, or the sample.

    Raises BenchError if there is none of this name.
    """
    for folder in (data / name, data, SAMPLE):
        if folder.name == name and is_set(folder, name):
            return folder
    raise BenchError(
        f'There is no data set "{name}".',
        where=str(data),
        allowed="a folder of this name with a corpus or an index, and with questions",
        do=f"Name the folder that holds it with --data. {_GUIDE}",
    )


def is_set(folder: Path, name: str) -> bool:
    """Return whether a folder has what the data set of this name is searched in."""
    return corpus_file(folder, name).is_file() or own_index(folder) is not None


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of an experiment.

    ``data`` has a folder for each data set. ``kept`` has the indexes and vectors that all suites
    share, in a folder for each data set. ``work`` has the files of this suite. ``index`` is the
    place of an index that is searched for all data sets, in which nothing is ever built.
    """

    data: Path
    kept: Path
    work: Path
    index: str | None = None

    def folder(self, name: str) -> Path:
        """Return the folder of a data set. If an index is given, the folder needs only questions.
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


def sets_in(data: Path, names: Sequence[str]) -> dict[str, Path]:
    """Return the folders of these data sets by name; if ``data`` is itself a data set, it alone.

    Raises BenchError if one is missing.
    """
    if corpus_file(data).is_file():
        return {data.resolve().name: data}
    return {name: set_folder(data, name) for name in names}


def drawn(questions: Sequence[Question], count: int | None, name: str) -> list[Question]:
    """Draw ``count`` of the questions, in their order and always the same ones for a name. Return
    all if there are no more or ``count`` is None."""
    if count is None or count >= len(questions):
        return list(questions)
    chosen = Random(f"{SEED} {name}").sample(range(len(questions)), count)
    return [questions[number] for number in sorted(chosen)]

"""The page of one run or two, from their folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arag_search.errors import ArgumentError, QuestionsError
from arag_search.evaluation.loaded_run import LoadedRun, load_recorded_run, load_run
from arag_search.evaluation.score import Score, score_run
from arag_search.query.fields import ANY_SCHEMA
from arag_search.query.pieces import KINDS
from arag_search.questions.question import Question
from arag_search.runs.folder import RunDescription
from arag_search.search.index import Index
from arag_search.system.durable import write_atomically
from arag_search.viewer.comparison import DIFFERENCES, difference, notes_on, union
from arag_search.viewer.overview import measures_of, notes_on_intervals, overview
from arag_search.viewer.page import is_page, page
from arag_search.viewer.questions import Questions
from arag_search.viewer.texts import Texts

_LABELS = "AB"
_BEGINNING_BYTES = 4_096
_WITHOUT_GOLD = "Or show the records without gold answers, with --no-gold."


@dataclass(frozen=True, slots=True)
class View:
    """A page before it is written: its bytes, and the number of its questions."""

    html: bytes
    questions: int

    def write(self, path: Path) -> None:
        """Write the page, whole or not at all.

        Raises ArgumentError for a folder, and for a file that is not a page of ours; OSError.
        """
        if path.is_dir():
            raise ArgumentError("The page cannot be written: this is a folder.", where=str(path),
                                do="Name a file in it, such as view.html.")  # fmt: skip
        if path.exists() and not _holds_page(path):
            raise ArgumentError(
                "The page would replace a file that is not the page of a run.",
                where=str(path),
                allowed="a new file, or a page that was made before",
                do="Name another file.",
            )
        write_atomically(path, self.html)


def view(
    folders: Sequence[Path],
    questions_file: Path | None = None,
    *,
    gold: bool = True,
    index: Index | None = None,
) -> View:
    """Build the page of the run in a folder, or of two runs to compare.

    Gold answers are from the file of each run, or ``questions_file``; without ``gold`` there are
    none. With ``index``, which the runs searched, evidence is located in its passages, and queries
    are read with its fields.

    Raises RunError if there is no run or two runs cannot be compared, and QuestionsError.
    """
    runs = [_run(folder, questions_file, gold=gold) for folder in folders]
    questions = union(runs, [str(folder) for folder in folders])
    scores = [score_run(run, measures=measures_of(runs), index=index) for run in runs]
    texts = Texts()
    schema = ANY_SCHEMA if index is None else index.manifest.query_schema
    shown = [Questions(run, score, texts, schema) for run, score in zip(runs, scores, strict=True)]
    notes = [*notes_on_intervals(), *(notes_on(*runs) if len(runs) == 2 else ())]
    data: dict[str, Any] = {
        "runs": [
            _described(label, folder, score)
            for label, folder, score in zip(_LABELS, folders, scores, strict=False)
        ],
        "notes": notes,
        "kinds": KINDS,
        "differences": DIFFERENCES,
        "overview": overview(scores),
        "questions": [_question(question, shown) for question in questions],
    }
    data["texts"] = texts.all()
    title = " and ".join(score.run.preset for score in scores)
    return View(page(f"{title}: {len(questions):,} questions", data), len(questions))


def _run(folder: Path, questions_file: Path | None, *, gold: bool) -> LoadedRun:
    if not gold:
        return load_recorded_run(folder)
    try:
        return load_run(folder, questions_file)
    except QuestionsError as error:
        error.do = f"{error.do or 'Name the file with --questions.'} {_WITHOUT_GOLD}"
        raise


def _described(label: str, folder: Path, score: Score) -> dict[str, Any]:
    run = score.run
    return {
        "label": label,
        "preset": run.preset,
        "model": run.model,
        "notes": list(score.notes),
        "facts": [[name, value] for name, value in _facts(folder, run) if value],
    }


def _facts(folder: Path, run: RunDescription) -> list[tuple[str, str]]:
    """Return the facts of a run other than preset and model."""
    return [
        ("Index", run.index),
        ("Filter", run.filter or ""),
        ("Encoder", "" if run.encoder is None else run.encoder.name),
        ("Questions", run.questions),
        ("Begun", run.created),
        ("Version", run.fingerprints.get("code", "")),
        ("Folder", str(folder).encode("utf-8", "replace").decode()),
    ]


def _question(question: Question, shown: Sequence[Questions]) -> dict[str, Any]:
    runs = [run.of(question.id) for run in shown]
    content: dict[str, Any] = {
        "id": question.id,
        "text": question.text,
        "type": question.type,
        "gold": list(question.answers),
        "answerable": question.answerable,
        "runs": runs,
    }
    if len(runs) == 2:
        content["difference"] = difference(runs)
    return content


def _holds_page(path: Path) -> bool:
    with path.open("rb") as file:
        return is_page(file.read(_BEGINNING_BYTES))

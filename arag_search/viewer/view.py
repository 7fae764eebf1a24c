"""The page of a run, from its folder: one file of HTML that loads nothing, and runs no
script but its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arag_search.errors import ArgumentError, QuestionsError
from arag_search.evaluation.judging.judges import NO_JUDGES, Judges
from arag_search.evaluation.loaded_run import LoadedRun, load_recorded_run, load_run
from arag_search.evaluation.score import Score, score_run
from arag_search.query.fields import ANY_SCHEMA
from arag_search.questions.question import Question
from arag_search.runs.folder import RunDescription
from arag_search.search.index import Index
from arag_search.system.durable import write_atomically
from arag_search.viewer.frame import is_page, page
from arag_search.viewer.overview import measures_of, notes_on_intervals, overview
from arag_search.viewer.pieces import KINDS
from arag_search.viewer.questions import Questions, Texts

_BEGINNING_BYTES = 4_096
_WITHOUT_GOLD = "Or show the records without gold answers, with `no_gold=True`."


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
    folder: Path,
    questions_file: Path | None = None,
    *,
    gold: bool = True,
    index: Index | None = None,
    judges: Judges = NO_JUDGES,
) -> View:
    """Build the page of the run in a folder.

    Gold answers are from the file of the run, or ``questions_file``; without ``gold`` there are
    none. With ``index``, which the run searched, evidence is located in its passages, and queries
    are read with its fields.

    Raises RunError if there is no run, and QuestionsError.
    """
    run = _run(folder, questions_file, gold=gold)
    score = score_run(run, measures=measures_of(run), index=index, judges=judges)
    texts = Texts()
    schema = ANY_SCHEMA if index is None else index.manifest.query_schema
    results = Questions(run, score, texts, schema)
    data: dict[str, Any] = {
        "run": _described(folder, score),
        "notes": notes_on_intervals(),
        "kinds": KINDS,
        "overview": overview(score),
        "questions": [_question(question, results) for question in run.questions],
    }
    data["texts"] = texts.all()
    title = f"{score.run.preset}: {len(run.questions):,} questions"
    return View(page(title, data), len(run.questions))


def _run(folder: Path, questions_file: Path | None, *, gold: bool) -> LoadedRun:
    if not gold:
        return load_recorded_run(folder)
    try:
        return load_run(folder, questions_file)
    except QuestionsError as error:
        error.do = f"{error.do or 'Name the file with `questions`.'} {_WITHOUT_GOLD}"
        raise


def _described(folder: Path, score: Score) -> dict[str, Any]:
    run = score.run
    return {
        "preset": run.preset,
        "model": run.model,
        "notes": list(score.notes),
        "facts": [[name, value] for name, value in _facts(folder, run) if value],
    }


def _facts(folder: Path, run: RunDescription) -> list[tuple[str, str]]:
    return [
        ("Index", run.index),
        ("Filter", run.filter or ""),
        ("Encoder", "" if run.encoder is None else run.encoder.name),
        ("Questions", run.questions),
        ("Begun", run.created),
        ("Version", run.fingerprints.get("code", "")),
        ("Folder", str(folder).encode("utf-8", "replace").decode()),
    ]


def _question(question: Question, results: Questions) -> dict[str, Any]:
    return {
        "id": question.id,
        "text": question.text,
        "type": question.type,
        "gold": list(question.answers),
        "answerable": question.answerable,
        "result": results.of(question),
    }


def _holds_page(path: Path) -> bool:
    with path.open("rb") as file:
        return is_page(file.read(_BEGINNING_BYTES))

"""Handwritten folders of runs for the viewer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from arag_search.agent.record import Record, Step
from arag_search.questions.files import load_questions, questions_fingerprint
from arag_search.runs.folder import RECORDS_FILE, RUN_FILE, RunDescription
from tests.support.records import record


def question_row(id: str, text: str = "Where did Goldoni die?", **more: Any) -> dict[str, Any]:
    """Build a question as a line of a file of questions."""
    return {"id": id, "question": text, "answer": "Paris", **more}


def answered_record(id: str, short: str, *steps: Step, question: str = "", **more: Any) -> Record:
    """Build a record with numbered steps, of a question as ``question_row`` builds it."""
    trajectory = [replace(step, step=number) for number, step in enumerate(steps, 1)]
    answer = record(id, short, *trajectory, **more)
    return replace(answer, question=question or "Where did Goldoni die?")


def run_folder(
    folder: Path,
    questions: Sequence[Mapping[str, Any]],
    records: Sequence[Record],
    **description_fields: Any,
) -> Path:
    """Write the folder of a run, with a file of its questions beside its records."""
    folder.mkdir(parents=True)
    file = folder / "questions.jsonl"
    file.write_bytes(b"\n".join(map(orjson.dumps, questions)))
    description = RunDescription(
        **{
            "created": "2026-01-02T03:04:05+00:00", "preset": "logical_read",
            "index": "my-index", "filter": None, "model": "offline", "questions": str(file),
            "count": len(questions), "limit": None, **description_fields,
        },
        fingerprints={
            "index": "i",
            "questions": questions_fingerprint(load_questions(file)),
            "code": "0.1.0",
        },
    )  # fmt: skip
    (folder / RUN_FILE).write_bytes(orjson.dumps(description.model_dump()))
    (folder / RECORDS_FILE).write_bytes(b"".join(record.to_line() for record in records))
    return folder

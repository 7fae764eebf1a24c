"""Recorded runs of a model, measured as they are: nothing is asked, searched or copied."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import orjson

from arag_search.agent.record import Record
from arag_search.errors import AragError, ConfigError
from arag_search.evaluation.measurement import measure_questions
from arag_search.evaluation.resolution import LocatedEvidence, Passages
from arag_search.questions.files import Question, load_questions
from arag_search.system.yaml_file import numbered
from bench.ablation.cells import CellRow, Key
from bench.ablation.scoring import MEASURES, row_of
from bench.ablation.suite import RecordedRuns
from bench.report.fingerprints import code_fingerprint


class RecordedExperiment:
    """An Experiment over files of records below a folder of data.

    Evidence is not measured, because the index that was searched is not at hand. Raises ConfigError
    naming every file that is missing or cannot be read.
    """

    def __init__(self, runs: RecordedRuns, data: Path, *, limit: int | None = None) -> None:
        self._data = data
        self._limit = limit
        self._patterns = {run.label: run.records for run in runs.runs}
        self._questions: dict[str, Sequence[Question]] = {}
        self._records: dict[tuple[str, str], dict[str, Record]] = {}
        self._runs = runs
        problems: list[str] = []
        for name in runs.sets:
            try:
                self._questions[name] = load_questions(self._questions_file(name))[:limit]
                for label in self._patterns:
                    self._records[name, label] = _records_of(self._records_file(name, label))
            except AragError as error:
                problems.append(" ".join(str(error).split("\n")))
        if problems:
            raise ConfigError(numbered("suite", problems), do="Name their folder with --data.")

    @property
    def keys(self) -> Sequence[Key]:
        """See Experiment."""
        factors = self._runs.factors
        return [dict(zip(factors, levels, strict=True)) for levels in product(*factors.values())]

    def fingerprints(self, key: Key) -> Mapping[str, str]:
        files = {
            "questions": self._questions_file(key["set"]),
            "records": self._records_file(key["set"], key["run"]),
        }
        digests = {
            name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for name, path in files.items()
        }
        return {**digests, "code": code_fingerprint()}

    def measure(self, key: Key) -> Iterable[CellRow]:
        """See Experiment. A question without a record counts as one that failed."""
        name, label = key["set"], key["run"]
        asked, records = self._questions[name], self._records[name, label]
        nothing = LocatedEvidence(Passages(()), {question.id: () for question in asked})
        values = measure_questions(asked, records, MEASURES, located=nothing)
        file = self._records_file(name, label).name
        rows: list[CellRow] = []
        for question in asked:
            record = records.get(question.id)
            place = f"{file}#{question.id}"
            row = row_of(question, record, 1, place, (), values[question.id])
            if record is not None and not any(step.passages for step in record.trajectory):
                row = replace(row, details=_without_spans(row.details))
            rows.append(row)
        return rows

    def close(self) -> None:
        """See Experiment."""

    def _questions_file(self, name: str) -> Path:
        return self._data / self._runs.questions.format(set=name)

    def _records_file(self, name: str, label: str) -> Path:
        return self._data / self._patterns[label].format(set=name)


def _without_spans(details: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what is counted from the places of passages in replies, which older records do not
    have."""
    return {name: value for name, value in details.items() if name != "repeated_tokens"}


def _records_of(path: Path) -> dict[str, Record]:
    """Read a file of records by question. Raises ConfigError, and RunError for a record."""
    try:
        lines = path.read_bytes().splitlines()
        records = [Record.from_json(orjson.loads(line)) for line in lines]
    except OSError as error:
        raise ConfigError(
            f"The records cannot be read ({error.strerror}).", where=str(path)
        ) from error
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"A record is not JSON ({error}).", where=str(path)) from error
    return {record.question_id: record for record in records}

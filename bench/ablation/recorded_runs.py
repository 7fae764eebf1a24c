"""Recorded runs of a model, measured as they are: nothing is asked, searched or copied."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import orjson

from arag_search.agent.record import Record
from arag_search.errors import AragError, ConfigError
from arag_search.evaluation.resolution import LocatedEvidence, Passages
from arag_search.questions.files import Question, load_questions
from arag_search.search.opening import open_index
from arag_search.system.yaml_file import numbered
from bench.ablation.cells import Cell
from bench.ablation.scoring import rows_of
from bench.ablation.suite import Key, RecordedRuns, chosen
from bench.workbench import kept_index


class RecordedExperiment:
    """An Experiment over files of records below a folder of data. Indexes of the corpora that were
    searched are kept in ``work``, to locate evidence in. ``shown`` are the measures of the suite.

    Raises ConfigError naming every file that is missing or cannot be read.
    """

    def __init__(self, runs: RecordedRuns, data: Path, work: Path, shown: Sequence[str]) -> None:
        self._shown = shown
        self._corpora = {name: data / runs.corpus.format(set=name) for name in runs.sets}
        self._work = work
        self._located: dict[str, LocatedEvidence] = {}
        self._asked: dict[str, list[Question]] = {}
        self._records: dict[tuple[str, str], dict[str, Record]] = {}
        self._files: dict[tuple[str, str], tuple[Path, Path]] = {}
        problems: list[str] = []
        for name in runs.sets:
            questions = data / runs.questions_file.format(set=name)
            for entry in runs.runs:
                at, records = (name, entry.level), data / entry.records.format(set=name)
                self._files[at] = questions, records
                try:
                    self._asked[name] = chosen(load_questions(questions), runs.questions, name)
                    self._records[at] = records_of(records)
                except AragError as error:
                    problems.append(" ".join(str(error).split("\n")))
        problems += [
            f"The corpus does not exist. Where: {corpus}"
            for corpus in self._corpora.values()
            if not corpus.exists()
        ]
        if problems:
            said = numbered("suite", list(dict.fromkeys(problems)))
            raise ConfigError(said, do="Name their folder with --data.")

    def measure(self, key: Key) -> Cell:
        """See Experiment. A question without a record counts as failed."""
        name, label = key["set"], key["run"]
        asked = self._asked[name]
        if name not in self._located:
            corpus = self._corpora[name]
            location = kept_index(corpus, self._work / f"{name}-{corpus.stem}")
            with open_index(location) as index:
                self._located[name] = LocatedEvidence.of(asked, Passages(index.scan()))
        files = zip(("questions", "records"), self._files[name, label], strict=True)
        digests = {what: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for what, path in files}
        records, located = self._records[name, label], self._located[name]
        return Cell(key, digests, rows_of(asked, records, 1, located, self._shown))

    def close(self) -> None:
        """See Experiment."""


def records_of(path: Path) -> dict[str, Record]:
    """Read a file of records by question. Raises ConfigError, and RunError for a record."""
    try:
        lines = path.read_bytes().splitlines()
        records = [Record.from_json(orjson.loads(line)) for line in lines]
    except (OSError, orjson.JSONDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"The records cannot be read ({why}).", where=str(path)) from error
    return {record.question_id: record for record in records}

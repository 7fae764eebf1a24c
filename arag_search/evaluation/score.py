"""Score a run: measures of all of its questions, overall and by type.

A question that failed or has no record counts as 0 in every measure of quality.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from arag_search.agent.models.usage import usage_warning
from arag_search.agent.record import other_models_warning
from arag_search.errors import ArgumentError
from arag_search.evaluation.evidence import FAILURES, Failure, failure_counts, failure_of
from arag_search.evaluation.judgements import checked_judgements
from arag_search.evaluation.judging.factuality import FactualityScores, means_of
from arag_search.evaluation.judging.judge import Judgement
from arag_search.evaluation.judging.judges import NO_JUDGES, Judges
from arag_search.evaluation.loaded_run import LoadedRun, load_predictions, load_run
from arag_search.evaluation.measurement import (
    Means,
    Values,
    means_by_type,
    measure_questions,
    measures_json,
)
from arag_search.evaluation.measures import FACTUALITY, JUDGE_ACC, Measure, Outcome
from arag_search.evaluation.question_score import QuestionScore, groups_of
from arag_search.evaluation.resolution import LocatedEvidence, Passages
from arag_search.evaluation.trajectories import Trajectories, trajectories
from arag_search.runs.folder import RunDescription
from arag_search.search.index import Index
from arag_search.system.progress import counted

_NEEDED = {
    "index": "the index that was searched (`index`)",
    "judge": "a model that judges (`judge`)",
    "factuality judge": "a model that judges (`judge`)",
}
_OUR_FACTUALITY = (
    "Factuality is by our prompt and scale, and does not compare with figures of papers."
)


@dataclass(frozen=True, slots=True)
class Row:
    """Means over the questions of one type, or all. None if there is nothing to average.

    Quality is over all ``questions``, and evidence recall over questions with gold titles.
    ``grounded_accuracy`` and ``memory_share`` (right by Contain-Acc, grounded or not) are over
    questions with a rule. Tokens, steps and seconds are over questions with a record.

    - ``failed``, ``missing``: the number of such questions.
    - ``refused``: the number of answers that say there is none.
    - ``without_search``: the number of replies before which no search ran.
    - ``by_mark``: the number of exact matches that rest on a mark.
    """

    type: str
    questions: int
    exact_match: float
    f1: float
    contain_accuracy: float
    evidence_recall: float | None
    grounded_accuracy: float | None
    memory_share: float | None
    refused: int
    failed: int
    missing: int
    without_search: int
    by_mark: int
    retrieved_tokens: float | None
    steps: float | None
    seconds: float | None


AVERAGED = (
    "exact_match", "f1", "contain_accuracy", "evidence_recall", "grounded_accuracy",
    "memory_share", "retrieved_tokens", "steps", "seconds",
)  # fmt: skip
"""The means in a row."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A judge's verdicts on the answers, by question."""

    model: str
    repeats: int
    judgements: Mapping[str, Judgement]


@dataclass(frozen=True, slots=True)
class JudgedFactuality:
    """A judge's scores of factuality of the answers, by question."""

    model: str
    repeats: int
    answers: Mapping[str, FactualityScores]


@dataclass(frozen=True, slots=True)
class Score:
    """All measures of a run. ``rows`` begin with all questions; types follow in order of their
    names. ``notes`` tell readers of the figures what to keep in mind.

    ``failures`` are the categories of wrong answers, by question, if an answer has one. The judge
    says which are wrong or, without a judge, Contain-Acc. ``values`` are the requested
    ``measures``, by question, and ``means`` their means over the same groups as rows. ``judged``
    and ``factuality`` are the results of judges, if there were any. ``located`` is the evidence in
    the index that was given, None without one.
    """

    run: RunDescription
    rows: tuple[Row, ...]
    questions: tuple[QuestionScore, ...]
    notes: tuple[str, ...]
    trajectories: Trajectories
    failures: Mapping[str, Failure]
    measures: tuple[Measure, ...] = ()
    values: Mapping[str, Values] = field(default_factory=dict[str, Values])
    means: tuple[Means, ...] = ()
    judged: Judged | None = None
    factuality: JudgedFactuality | None = None
    located: LocatedEvidence | None = None

    def mean_of_types(self) -> dict[str, float | None]:
        """Return the means of a row, and of the measures, in which each type counts the same,
        whatever its number of questions. Empty unless there are several types."""
        end = 1 + len({score.type for score in self.questions} - {None})
        if end < 3:
            return {}
        rows, means = self.rows[1:end], self.means[1:end]
        names = map(str, self.measures)
        return {
            **{name: _mean(getattr(row, name) for row in rows) for name in AVERAGED},
            **{name: _mean(of.values[name] for of in means) for name in names},
        }

    def failure_counts(self) -> dict[str, dict[Failure, int]]:
        """Return how often each category occurs, in the groups of the rows."""
        return {
            name: failure_counts(
                self.failures[score.id] for score in group if score.id in self.failures
            )
            for name, group in groups_of(self.questions)
        }

    def verdict_counts(self) -> dict[str, dict[str, int]]:
        """Return how often each verdict occurs, in the groups of the rows; "not judged" and "not
        judged (refused)" count answers without one. Empty without a judge."""
        if self.judged is None:
            return {}
        of = self.judged.judgements
        return {
            name: dict(Counter(of[score.id].shown for score in group if score.id in of))
            for name, group in groups_of(self.questions)
        }

    def to_json(self) -> dict[str, Any]:
        """Return the score as JSON values."""
        written: dict[str, Any] = {
            "run": self.run.model_dump(),
            "rows": [asdict(row) for row in self.rows],
            **({"mean_of_types": means} if (means := self.mean_of_types()) else {}),
            "questions": [
                {**asdict(question), **self.values.get(question.id, {})}
                for question in self.questions
            ],
            "notes": list(self.notes),
            "trajectories": asdict(self.trajectories),
            "failures": {
                "categories": FAILURES,
                "by_type": self.failure_counts(),
                "questions": dict(self.failures),
            },
        }
        if self.measures:
            written["measures"] = measures_json(self.measures)
            written["means"] = [asdict(means) for means in self.means]
            written["values"] = self.values
        if self.judged is not None:
            written["judge"] = {**asdict(self.judged), "by_type": self.verdict_counts()}
        if self.factuality is not None:
            written["factuality"] = asdict(self.factuality)
        return written


def score(
    folder: Path | str,
    questions_file: Path | str | None = None,
    *,
    measures: Sequence[Measure] = (),
    index: Index | None = None,
    judges: Judges = NO_JUDGES,
) -> Score:
    """Score the run in a folder, or a file of predictions in A-RAG's form, as ``score_run`` does.
    The questions are its own, or are in another file with the same ids.

    Raises RunError if there is no run, or the questions are not its own or unknown. Raises
    QuestionsError, ArgumentError for a measure without what it needs, and ModelError of the judge.
    """
    path = Path(folder)
    run = (load_predictions if path.is_file() else load_run)(path, questions_file)
    return score_run(run, measures=measures, index=index, judges=judges)


def score_run(
    run: LoadedRun,
    *,
    measures: Sequence[Measure] = (),
    index: Index | None = None,
    judges: Judges = NO_JUDGES,
) -> Score:
    """Score a run.

    ``index`` is the index that the run searched. With it, evidence is located by passages,
    otherwise by titles; rankings of shown documents need it. Results of ``judges`` are among the
    measures. Raises the errors of ``score``.
    """
    measures = _measurable(measures, index, judges)
    asked, records, notes = run.questions, run.records, list(run.notes)
    if index is not None and any(measure.kind.is_ranking for measure in measures):
        asked, of_judgements = checked_judgements(asked, index)
        notes += of_judgements
    located = None if index is None else LocatedEvidence.of(asked, Passages(index.scan()))
    if index is not None and not _is_searched_index(run.description, index):
        notes.append(f"Evidence is looked for in {index.location}, which the run did not search.")
    judges.tell_cost(asked, records)
    judged = factuality = None
    if (judge := judges.verdicts) is not None:
        judged = Judged(judge.model.name, judge.repeats, judge.judge_all(asked, records))
    if (judge := judges.factuality) is not None:
        answers = judge.judge_all(asked, records)
        factuality = JudgedFactuality(judge.model.name, judge.repeats, answers)
    outcomes, values = measure_questions(
        asked,
        records,
        measures,
        located=located,
        judgements=None if judged is None else judged.judgements,
        factuality={} if factuality is None else means_of(factuality.answers),
    )
    scores = tuple(outcome.score for outcome in outcomes)
    warnings = (
        usage_warning(record.requests for record in records.values()),
        other_models_warning(record.other_models for record in records.values()),
    )
    return Score(
        run=run.description,
        rows=rows_of(scores),
        questions=scores,
        notes=(
            *notes,
            *_notes(scores, run.description),
            *filter(None, warnings),
            *_judge_notes(judged, factuality),
        ),
        trajectories=trajectories(
            records[question.id] for question in asked if question.id in records
        ),
        failures=_failures(outcomes),
        measures=measures,
        values=values if measures else {},
        means=means_by_type(scores, values, measures) if measures else (),
        judged=judged,
        factuality=factuality,
        located=located,
    )


def _is_searched_index(run: RunDescription, index: Index) -> bool:
    # A run's fingerprint goes on with its scope and its ranking.
    return run.fingerprints.get("index", "").startswith(index.manifest.fingerprint)


def _measurable(
    measures: Sequence[Measure], index: Index | None, judges: Judges
) -> tuple[Measure, ...]:
    """Return the measures, and the measures that the given judges add. Raises ArgumentError."""
    given = {
        "index": index is not None,
        "judge": judges.verdicts is not None,
        "factuality judge": judges.factuality is not None,
    }
    of_judges = {"judge": JUDGE_ACC, "factuality judge": FACTUALITY}
    added = [measure for need, measure in of_judges.items() if given[need]]
    measures = tuple(dict.fromkeys([*measures, *added]))
    lacking = [
        f"{measure} needs {_NEEDED[need]}"
        for measure in measures
        for need, is_there in given.items()
        if need in measure.kind.needs and not is_there
    ]
    if lacking:
        raise ArgumentError(f"{'; '.join(lacking)}.", do="Give it, or leave the measure out.")
    return tuple(measures)


def _judge_notes(judged: Judged | None, factuality: JudgedFactuality | None) -> list[str]:
    notes: list[str] = []
    verdicts = () if judged is None else judged.judgements.values()
    if count := sum(judgement.verdict is None for judgement in verdicts):
        notes.append(
            f"{counted(count, 'answer was', 'answers were')} not judged, without a verdict or with "
            "two of as many votes: JudgeAcc leaves them out."
        )
    scored = () if factuality is None else factuality.answers.values()
    refused = [
        *(judgement.refused for judgement in verdicts if judgement.verdict is None),
        *(scores.refused for scores in scored if scores.mean is None),
    ]
    if refused := list(filter(None, refused)):
        notes.append(
            f"{counted(len(refused), 'answer was', 'answers were')} refused by the judge or its "
            f"endpoint (the same command asks again): {refused[0]}"
        )
    if factuality is not None:
        notes.append(_OUR_FACTUALITY)
        if count := sum(scores.mean is None for scores in factuality.answers.values()):
            has = counted(count, "answer has", "answers have")
            notes.append(f"{has} no valid score: Factuality leaves them out.")
    return notes


def _failures(outcomes: Sequence[Outcome]) -> dict[str, Failure]:
    failures: dict[str, Failure] = {}
    for of in outcomes:
        # An answer that was not judged (None) is not wrong.
        right = of.score.contain_accuracy if of.judgement is None else of.verdict
        if right == 0 and of.question.answerable and of.question.answers:
            failures[of.question.id] = failure_of(of.question, of.record, of.sets)
    return failures


def rows_of(scores: Sequence[QuestionScore]) -> tuple[Row, ...]:
    """Return a row of all questions, then a row for each type if there are types."""
    return tuple(_row(name, group) for name, group in groups_of(scores))


def _row(name: str, scores: Sequence[QuestionScore]) -> Row:
    def mean(value: Callable[[QuestionScore], float | None]) -> float | None:
        return _mean(map(value, scores))

    return Row(
        type=name,
        questions=len(scores),
        exact_match=fmean(score.exact_match for score in scores),
        f1=fmean(score.f1 for score in scores),
        contain_accuracy=fmean(score.contain_accuracy for score in scores),
        evidence_recall=mean(lambda score: score.evidence_recall),
        grounded_accuracy=mean(lambda score: score.grounded),
        memory_share=mean(lambda score: score.from_memory),
        refused=sum(score.refused for score in scores),
        failed=sum(score.status == "failed" for score in scores),
        missing=sum(score.status == "missing" for score in scores),
        without_search=sum(score.without_search for score in scores),
        by_mark=sum(score.by_mark for score in scores),
        retrieved_tokens=mean(lambda score: score.retrieved_tokens),
        steps=mean(lambda score: score.steps),
        seconds=mean(lambda score: score.seconds),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _notes(scores: Sequence[QuestionScore], run: RunDescription) -> list[str]:
    notes: list[str] = []
    if len(scores) < run.count:
        notes.append(f"The run asked the first {len(scores)} of {run.count} questions.")
    for status, single, several in (
        ("failed", "question failed and counts", "questions failed and count"),
        (
            "missing",
            "question has no record yet and counts",
            "questions have no record yet and count",
        ),
    ):
        if count := sum(score.status == status for score in scores):
            notes.append(f"{counted(count, single, several)} as 0: the same run asks again.")
    rules = Counter(score.grounding.rule for score in scores if score.grounding is not None)
    if rules["answer"]:
        notes.append(
            f"Grounded by gold evidence: {rules['evidence']} questions; by the answer in cited "
            f"text: {rules['answer']}; {len(scores) - rules.total()} have no rule and are left out."
        )
    if by_mark := [score for score in scores if score.by_mark]:
        rests = counted(len(by_mark), "right answer of EM rests", "right answers of EM rest")
        notes.append(
            f"{rests} on a mark, a sign or a decimal point alone, which SQuAD's rule "
            f"leaves out, such as that of {by_mark[0].id}."
        )
    return notes

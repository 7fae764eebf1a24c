"""The score of one question of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from arag_search.agent.record import Record
from arag_search.agent.wording import is_refusal
from arag_search.evaluation.evidence import shown_titles
from arag_search.evaluation.grounding import Grounding, grounding_of
from arag_search.evaluation.resolution import EvidencePiece
from arag_search.evaluation.text_match import (
    contains,
    evidence_recall,
    exact_match,
    f1,
    rests_on_a_mark,
)
from arag_search.evaluation.trajectories import is_search
from arag_search.questions.question import Question

Status = Literal["answered", "forced", "failed", "missing"]
Unsupported = Literal["refusal", "hallucination", "gold leak"]
"""An answer to a question that the corpus does not answer. It says that there is no answer, it is
wrong, or it is right all the same (LogicalRAG, Table 4)."""

OVERALL = "all"


@dataclass(frozen=True, slots=True)
class QuestionScore:
    """The measures of one question.

    ``contain_accuracy`` considers short answer and explanation; a refusal scores 0 unless it is the
    gold answer. For an unanswerable question, a refusal is the only right answer.
    ``evidence_recall`` is None if the question has no gold titles. Tokens, steps, seconds and cost
    are None if there is no record, ``route`` also without a switcher. ``unsupported`` is what the
    answer to an unanswerable question with gold answers is, None for others and if it failed.
    ``grounding`` says whether the answer, right or not, rests on passages that were shown and
    cited. It is None if no rule can tell, or the corpus has no answer. ``without_search`` is a
    reply before which no search ran, ``by_mark`` an exact match that ``rests_on_a_mark``.
    ``question`` is its text.
    """

    id: str
    type: str | None
    status: Status
    answer: str
    refused: bool
    exact_match: float
    f1: float
    contain_accuracy: float
    evidence_recall: float | None
    retrieved_tokens: int | None
    steps: int | None
    seconds: float | None
    cost_usd: float | None
    route: str | None = None
    unsupported: Unsupported | None = None
    grounding: Grounding | None = None
    without_search: bool = False
    by_mark: bool = False
    question: str = ""

    @property
    def grounded(self) -> float | None:
        """Contain-Acc of an answer that is grounded, else 0; None without a rule."""
        return None if self.grounding is None else self.contain_accuracy * self.grounding.holds

    @property
    def from_memory(self) -> float | None:
        """Contain-Acc of an answer that is not grounded, else 0; None without a rule."""
        return None if self.grounded is None else self.contain_accuracy - self.grounded


def score_question(
    question: Question,
    record: Record | None,
    sets: Sequence[Sequence[EvidencePiece]] | None = None,
) -> QuestionScore:
    """Return the measures of one question; None is a question without a record. ``sets`` are the
    pieces of its evidence in an index, for its grounding."""
    answered = None if record is None or record.status == "failed" else record
    answer = "" if record is None else record.answer_short
    exact = 0.0 if answered is None else exact_match(answer, question.answers)
    refused = answered is not None and is_refusal(answer) and not (exact and question.answerable)
    overlap = 0.0 if answered is None else f1(answer, question.answers)
    if not question.answerable:
        exact = overlap = float(refused)
    contained = exact
    if answered is not None and question.answerable and not (refused or exact):
        contained = contains(f"{answer} {answered.explanation}", question.answers)
    return QuestionScore(
        id=question.id,
        type=question.type,
        status="missing" if record is None else record.status,
        answer=answer,
        refused=refused,
        exact_match=exact,
        f1=overlap,
        contain_accuracy=contained,
        evidence_recall=evidence_recall(question, shown_titles(answered) if answered else ()),
        retrieved_tokens=record and record.total_retrieved_tokens,
        steps=record and len(record.trajectory),
        seconds=record and record.seconds,
        cost_usd=record and record.total_cost,
        route=record.route.kind if record and record.route else None,
        unsupported=answered and _unsupported(question, answered, refused=refused),
        grounding=grounding_of(question, record, sets) if question.answerable else None,
        without_search=answered is not None and not any(map(is_search, answered.trajectory)),
        by_mark=answered is not None
        and question.answerable
        and rests_on_a_mark(answer, question.answers),
        question=question.text,
    )


def _unsupported(question: Question, record: Record, *, refused: bool) -> Unsupported | None:
    """Return what an answer without support is, by the rules of ContainAcc."""
    if question.answerable or not question.answers:
        return None
    if refused:
        return "refusal"
    is_right = contains(f"{record.answer_short} {record.explanation}", question.answers)
    return "gold leak" if is_right else "hallucination"


def groups_of(
    scores: Sequence[QuestionScore],
) -> tuple[tuple[str, Sequence[QuestionScore]], ...]:
    """Return all questions under OVERALL, then the questions of each type, by its name. The
    questions of each route ("route: simple") follow if a switcher chose."""
    types = sorted({score.type for score in scores if score.type is not None})
    groups = [(name, [score for score in scores if score.type == name]) for name in types]
    routes = sorted({score.route for score in scores if score.route is not None})
    groups += [
        (f"route: {name}", [score for score in scores if score.route == name]) for name in routes
    ]
    return ((OVERALL, scores), *groups)

"""A language model that says whether answers are right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from arag_search.agent.models.base import ModelRequest
from arag_search.agent.record import Record
from arag_search.evaluation.judging.answer_judge import AnswerJudge, judge_request, majority
from arag_search.questions.question import Question

Verdict = Literal["correct", "incorrect", "abstained"]
VERDICTS: tuple[Verdict, ...] = ("correct", "incorrect", "abstained")

_VERDICT = re.compile(
    rf"^[\s>#*_`-]*verdict[*_`]*\s*:[\s*_`]*({'|'.join(VERDICTS)})[\s*_`.]*$",
    re.IGNORECASE | re.MULTILINE,
)
_AGAIN = "Your reply does not end with a verdict. End with a line of its own: Verdict: {}"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judge's opinion of one answer.

    ``verdict`` is the one with the most votes; None (not judged) if there is a tie or no valid
    vote. ``votes`` are those of the repeats; None is an invalid vote.
    """

    verdict: Verdict | None
    votes: tuple[Verdict | None, ...]

    def value(self, question: Question) -> float | None:
        """1 for the right verdict on the question, else 0; None if it was not judged."""
        if self.verdict is None:
            return None
        return float(self.verdict == ("correct" if question.answerable else "abstained"))


class Judge(AnswerJudge[Judgement]):
    """A judge of whether answers are right, which takes the majority of its verdicts."""

    def judge(self, question: Question, record: Record) -> Judgement:
        """See AnswerJudge. An empty answer is not shown to the model: it is incorrect or, for an
        unanswerable question, an abstention."""
        if not record.answer_short.strip():
            empty: Verdict = "incorrect" if question.answerable else "abstained"
            return Judgement(empty, (empty,) * self.repeats)
        allowed = allowed_verdicts(question)
        given = self.votes(
            _request(question, record),
            partial(read_verdict, allowed=allowed),
            _AGAIN.format(" or ".join(allowed)),
        )
        votes: tuple[Verdict | None, ...] = tuple(
            None if vote is None else as_verdict(vote) for vote in given
        )
        return Judgement(majority(votes), votes)


def verdict_values(
    judgements: Mapping[str, Judgement], questions: Iterable[Question]
) -> dict[str, float | None]:
    """Return the values of judgements by question."""
    return {
        question.id: judgements[question.id].value(question)
        for question in questions
        if question.id in judgements
    }


def allowed_verdicts(question: Question) -> tuple[Verdict, ...]:
    """Return the allowed verdicts; abstention is allowed only for an unanswerable question."""
    return VERDICTS[:2] if question.answerable else VERDICTS


def _request(question: Question, record: Record) -> ModelRequest:
    name = "judge" if question.answerable else "judge_unanswerable"
    gold = "right answers" if question.answerable else "answers that would have been right"
    return judge_request(name, gold, question, record)


def read_verdict(reply: str, allowed: Sequence[Verdict] = VERDICTS) -> Verdict | None:
    """Return the last verdict in a reply that is on a line of its own; None if it is not allowed,
    or if there is none."""
    given = _VERDICT.findall(reply)
    verdict = as_verdict(given[-1].lower()) if given else None
    return verdict if verdict in allowed else None


def as_verdict(text: str) -> Verdict | None:
    """Return the verdict with this name, None if there is none."""
    return next(filter(text.__eq__, VERDICTS), None)

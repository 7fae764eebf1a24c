"""A language model that scores how factual answers are (WixQA, AgenticRAG): how much of the gold
answer they state without contradicting it. WixQA's own definition and prompt were not available:
the prompt ``judge_factuality.md`` and its scale are ours, and scores are not comparable with those
of papers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from arag_search.agent.record import Record
from arag_search.evaluation.judging.judge import AnswerJudge, judge_request
from arag_search.questions.question import Question

_SCORE = re.compile(r"^[ \t>#*_`-]*score[ \t*_`]*:(.*)$", re.IGNORECASE | re.MULTILINE)
_AROUND = " \t\r*_`"
_NUMBER = re.compile(r"0|1|0?\.\d{1,6}|1\.0{1,6}")
_PROMPT = "judge_factuality"
_AGAIN = (
    "Your reply does not end with a score. End with a line of its own, with a number from 0 to 1: "
    "Score: 0.5"
)


@dataclass(frozen=True, slots=True)
class FactualityScores:
    """The scores of one answer, from 0 to 1: those of the repeats, None for an invalid one, and
    their mean, None if no score is valid."""

    mean: float | None
    scores: tuple[float | None, ...]


class FactualityJudge(AnswerJudge[FactualityScores]):
    """A judge of how factual answers are, which takes the mean of its scores. Only answers to
    answerable questions have one."""

    def judges(self, question: Question) -> bool:
        return question.answerable and super().judges(question)

    def judge(self, question: Question, record: Record) -> FactualityScores:
        """See AnswerJudge. An empty answer is not shown to the model: it scores 0."""
        if not record.answer_short.strip():
            return FactualityScores(0.0, (0.0,) * self.repeats)
        request = judge_request(_PROMPT, "right answers", question, record)
        scores = tuple(
            None if vote is None else as_score(vote)
            for vote in self.votes(request, read_score, _AGAIN)
        )
        valid = [score for score in scores if score is not None]
        return FactualityScores(fmean(valid) if valid else None, scores)


def means_of(answers: Mapping[str, FactualityScores]) -> dict[str, float | None]:
    """Return the mean scores of answers by question."""
    return {id: scores.mean for id, scores in answers.items()}


def read_score(reply: str) -> str | None:
    """Return the score on the last line that begins with "Score:"; None if there is no such line,
    or no number from 0 to 1 on it. An earlier line, which may quote the candidate, never counts."""
    given = _SCORE.findall(reply)
    score = given[-1].strip(_AROUND).removesuffix(".").strip(_AROUND) if given else ""
    return score if as_score(score) is not None else None


def as_score(text: str) -> float | None:
    """Return a text as a score; None if it is not one."""
    return float(text) if _NUMBER.fullmatch(text) else None

"""A language model that scores how factual answers are (WixQA, AgenticRAG): how much of the gold
answer they state without contradicting it. WixQA's own definition and prompt were not available.
The prompt ``judge_factuality.md`` and its scale are ours, and scores are not comparable with scores
in papers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from arag_search.agent.record import Record
from arag_search.evaluation.judging.judge import AnswerJudge, judge_request
from arag_search.evaluation.judging.labelled import LEAD, last_value
from arag_search.questions.question import Question

_NUMBER = r"[0-9]{1,4}(?:[.,][0-9]{1,18})?|[.,][0-9]{1,18}"
_SCORE = re.compile(
    rf"{LEAD}({_NUMBER})(?![.,]?[0-9])(?:\s{{0,9}}(?:/|out of|of)\s{{0,9}}({_NUMBER}))?"
    r"(?:\s{0,9}([%％]|percent))?(?!\w|[.,]?[0-9]|\s{0,9}(?:[/–-]|to|or)\s{0,9}[0-9.])"
)
_PROMPT = "judge_factuality"
_AGAIN = (
    "Your reply does not end with a score. End with a line of its own, with a number from 0 to 1: "
    "Score: 0.5"
)


@dataclass(frozen=True, slots=True)
class FactualityScores:
    """The scores of one answer, from 0 to 1. ``scores`` are the scores of the repeats, None for an
    invalid one, and ``mean`` is None if no score is valid. ``refused`` is as in Judgement."""

    mean: float | None
    scores: tuple[float | None, ...]
    refused: str = ""


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
        votes = self.votes(request, read_score, _AGAIN)
        scores = tuple(None if vote is None else float(vote) for vote in votes)
        valid = [score for score in scores if score is not None]
        refused = self.refused.get(question.id, "")
        return FactualityScores(fmean(valid) if valid else None, scores, refused)


def means_of(answers: Mapping[str, FactualityScores]) -> dict[str, float | None]:
    """Return the mean scores of answers by question."""
    return {id: scores.mean for id, scores in answers.items()}


def read_score(reply: str) -> str | None:
    """Return the score, from 0 to 1, on the last line that begins with "Score:". Return None if
    there is no such line, or no score on it. Percentages and shares (8/10) count. An earlier line,
    which may quote the candidate, never does."""
    match = _SCORE.match(last_value(reply, "score") or "")
    if match is None:
        return None
    number, of, percent = match.groups()
    score, most = (float(text.replace(",", ".")) for text in (number, of or "1"))
    most *= 100 if percent else 1
    # 0.8/10 may be of either scale.
    is_unclear = 0 < score < 1 < most or score > most
    return None if is_unclear or not most else f"{score / most:.6g}"

"""A language model that says whether answers are right.

It sees question, gold answers, short answer and explanation, never the trajectory. Verdicts are
cached by request and model, so that a run is judged only once.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import orjson

from arag_search.agent.models.base import ChatModel, Message, ModelRequest
from arag_search.agent.record import Record
from arag_search.errors import ArgumentError
from arag_search.evaluation.judging.prompts import prompt_text
from arag_search.evaluation.judging.verdict_cache import VerdictCache
from arag_search.questions.question import Question

Verdict = Literal["correct", "incorrect", "abstained"]
VERDICTS: tuple[Verdict, ...] = ("correct", "incorrect", "abstained")

MAX_REPEATS = 15
WORKERS = 4
"""Questions that are judged at the same time."""

_ASKS = 2
"""Attempts to get a verdict, the first one included."""

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


class Judge:
    """A judge that asks a model about each answer, ``repeats`` times, and takes the majority.
    Verdicts in ``cache`` are not requested again. Safe to use from several threads. Raises
    ArgumentError unless the number of repeats is 1 to 15.
    """

    def __init__(
        self, model: ChatModel, *, repeats: int = 1, cache: VerdictCache | None = None
    ) -> None:
        if not 1 <= repeats <= MAX_REPEATS:
            raise ArgumentError(
                f"Answers cannot be judged {repeats} times.",
                allowed=f"1 to {MAX_REPEATS} repeats, better an odd number",
            )
        self.model = model
        self.repeats = repeats
        self.cache = VerdictCache(None) if cache is None else cache

    def judge(self, question: Question, record: Record) -> Judgement:
        """Judge the answer of a record. An empty answer is not shown to the model: it is
        incorrect or, for an unanswerable question, an abstention.

        Raises ModelError if the model gives no reply.
        """
        if not record.answer_short.strip():
            empty: Verdict = "incorrect" if question.answerable else "abstained"
            return Judgement(empty, (empty,) * self.repeats)
        request = judge_request(question, record)
        votes: list[Verdict | None] = [
            self._vote(request, question, repeat) for repeat in range(self.repeats)
        ]
        return Judgement(_majority(votes), tuple(votes))

    def judge_all(
        self, questions: Sequence[Question], records: Mapping[str, Record]
    ) -> dict[str, Judgement]:
        """Return the judgements of all questions with gold answers and a record that did not fail,
        by id.

        Raises ModelError at the first answer without a reply from the model; earlier verdicts
        are kept.
        """
        pairs = [
            (question, records[question.id])
            for question in questions
            if question.answers
            and question.id in records
            and records[question.id].status != "failed"
        ]
        asked, answers = [question for question, _ in pairs], [record for _, record in pairs]
        with ThreadPoolExecutor(WORKERS) as pool:
            judgements = list(pool.map(self.judge, asked, answers))
        return {
            question.id: judgement for question, judgement in zip(asked, judgements, strict=True)
        }

    def _vote(self, request: ModelRequest, question: Question, repeat: int) -> Verdict | None:
        key = self._key(request, repeat)
        kept = self.cache.get(key)
        if kept is not None:
            return as_verdict(kept)
        allowed = allowed_verdicts(question)
        messages = list(request.messages)
        for _ in range(_ASKS):
            reply = self.model.reply(ModelRequest(messages, question_id=question.id))
            verdict = read_verdict(reply.text, allowed) if reply.cut is None else None
            if verdict is not None:
                self.cache.put(key, question.id, verdict, reply.text)
                return verdict
            messages += [
                Message("assistant", reply.text),
                Message("user", _AGAIN.format(" or ".join(allowed))),
            ]
        return None

    def _key(self, request: ModelRequest, repeat: int) -> str:
        texts = [(message.role, message.content) for message in request.messages]
        asked = orjson.dumps([self.model.fingerprint, texts, repeat])
        return hashlib.sha256(asked).hexdigest()


def allowed_verdicts(question: Question) -> tuple[Verdict, ...]:
    """Return the allowed verdicts; abstention is allowed only for an unanswerable question."""
    return VERDICTS[:2] if question.answerable else VERDICTS


def judge_request(question: Question, record: Record) -> ModelRequest:
    """Return the text that is shown to the model."""
    name = "judge" if question.answerable else "judge_unanswerable"
    gold = "right answers" if question.answerable else "answers that would have been right"
    shown = {
        "question": question.text,
        gold: list(question.answers),
        "answer of the candidate": record.answer_short,
        "explanation of the candidate": record.explanation,
    }
    text = orjson.dumps(shown, option=orjson.OPT_INDENT_2).decode()
    return ModelRequest(
        [Message("system", prompt_text(name)), Message("user", text)], question_id=question.id
    )


def read_verdict(reply: str, allowed: Sequence[Verdict] = VERDICTS) -> Verdict | None:
    """Return the last verdict that a reply gives on a line of its own; None if that is not
    allowed, or there is none."""
    given = _VERDICT.findall(reply)
    verdict = as_verdict(given[-1].lower()) if given else None
    return verdict if verdict in allowed else None


def as_verdict(text: str) -> Verdict | None:
    """Return the verdict with this name, None if there is none."""
    return next(filter(text.__eq__, VERDICTS), None)


def _majority(votes: Sequence[Verdict | None]) -> Verdict | None:
    counts = Counter[Verdict](vote for vote in votes if vote is not None).most_common(2)
    if not counts or (len(counts) == 2 and counts[0][1] == counts[1][1]):
        return None
    return counts[0][0]

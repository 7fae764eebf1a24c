"""The common part of judges of answers: requests, repeats, stored verdicts and many questions at
once.

A judge of answers sees question, gold answers, short answer and explanation, never the trajectory;
those of searches and of failures see what their modules say. Verdicts are cached by request and
model, so that a run is judged only once.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

import orjson

from arag_search.agent.models.base import ChatModel, Message, ModelRequest
from arag_search.agent.record import Record
from arag_search.errors import ArgumentError
from arag_search.evaluation.judging.prompts import prompt_text
from arag_search.evaluation.judging.verdict_cache import VerdictCache
from arag_search.questions.question import Question

MAX_REPEATS = 15
WORKERS = 4
"""The number of questions that are judged at the same time."""

_ASKS = 2
"""Attempts to get a verdict, the first one included."""

Opinion = TypeVar("Opinion")
"""A judge's conclusion from the verdicts on one answer."""
Vote = TypeVar("Vote", bound=str)


class AnswerJudge(ABC, Generic[Opinion]):
    """A judge that asks a model about each answer, ``repeats`` times. Verdicts in ``cache`` are not
    requested again. Safe to use from several threads. Raises ArgumentError unless the number of
    repeats is 1 to 15.
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

    @abstractmethod
    def judge(self, question: Question, record: Record) -> Opinion:
        """Judge the answer of a record. Raises ModelError if the model gives no reply."""

    def judges(self, question: Question) -> bool:
        """Return whether answers to the question can be judged: it has gold answers."""
        return bool(question.answers)

    def judge_all(
        self, questions: Sequence[Question], records: Mapping[str, Record]
    ) -> dict[str, Opinion]:
        """Return the opinions on the answers to all questions that can be judged and have a record
        that did not fail, by id.

        Raises ModelError at the first answer without a reply from the model; earlier verdicts
        are kept.
        """
        asked = [
            question
            for question in questions
            if self.judges(question)
            and question.id in records
            and records[question.id].status != "failed"
        ]
        with ThreadPoolExecutor(WORKERS) as pool:
            opinions = list(
                pool.map(self.judge, asked, [records[question.id] for question in asked])
            )
        return {question.id: opinion for question, opinion in zip(asked, opinions, strict=True)}

    def votes(
        self, request: ModelRequest, read: Callable[[str], str | None], again: str
    ) -> list[str | None]:
        """Return the verdict of each repeat, as a text; None is an invalid one. ``read`` returns
        the verdict in a reply, if there is an allowed one. After a reply without a verdict, the
        model gets the message ``again``, once."""
        return [self._vote(request, read, again, repeat) for repeat in range(self.repeats)]

    def _vote(
        self, request: ModelRequest, read: Callable[[str], str | None], again: str, repeat: int
    ) -> str | None:
        key = self._key(request, repeat)
        kept = self.cache.get(key)
        if kept is not None:
            return kept
        messages = list(request.messages)
        for _ in range(_ASKS):
            reply = self.model.reply(ModelRequest(messages, question_id=request.question_id))
            verdict = read(reply.text) if reply.cut is None else None
            if verdict is not None:
                self.cache.put(key, request.question_id, verdict, reply.text)
                return verdict
            messages += [Message("assistant", reply.text), Message("user", again)]
        return None

    def _key(self, request: ModelRequest, repeat: int) -> str:
        texts = [(message.role, message.content) for message in request.messages]
        asked = orjson.dumps([self.model.fingerprint, texts, repeat])
        return hashlib.sha256(asked).hexdigest()


def majority(votes: Sequence[Vote | None]) -> Vote | None:
    """Return the vote that most repeats gave; None if there is a tie or no valid one."""
    counts = Counter(vote for vote in votes if vote is not None).most_common(2)
    if not counts or (len(counts) == 2 and counts[0][1] == counts[1][1]):
        return None
    return counts[0][0]


def request_of(prompt: str, shown: Mapping[str, object], question_id: str) -> ModelRequest:
    """Return a request with a prompt and, as JSON, what the model is shown."""
    text = orjson.dumps(shown, option=orjson.OPT_INDENT_2).decode()
    messages = [Message("system", prompt_text(prompt)), Message("user", text)]
    return ModelRequest(messages, question_id=question_id)


def judge_request(prompt: str, gold: str, question: Question, record: Record) -> ModelRequest:
    """Return the text that is shown to the model: a prompt, and the answer beside the gold answers,
    which are named ``gold``."""
    shown = {
        "question": question.text,
        gold: list(question.answers),
        "answer of the candidate": record.answer_short,
        "explanation of the candidate": record.explanation,
    }
    return request_of(prompt, shown, question.id)

"""Judges of answers: requests, repeats, stored verdicts and many questions at once; and the model
that says whether answers are right.

The judge sees question, gold answers, short answer and explanation, never the trajectory. Verdicts
are cached by request and model, so that a run is judged only once.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Generic, Literal, TypeVar

import orjson

from arag_search.agent.models.base import REFUSED, ChatModel, Message, ModelReply, ModelRequest
from arag_search.agent.record import Record
from arag_search.endpoints.refusals import ItemRefusals
from arag_search.errors import ArgumentError, ContextLengthError, ModelReplyError
from arag_search.evaluation.judging.labelled import last_word
from arag_search.evaluation.judging.prompts import prompt_text
from arag_search.evaluation.judging.verdict_cache import VerdictCache
from arag_search.questions.question import Question

MAX_REPEATS = 15
WORKERS = 4
"""The number of questions that are judged at the same time."""

_REFUSALS = ("content_filter", REFUSED)
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
        self._missing: list[bool] | None = None
        self.refused: dict[str, str] = {}
        """The words in which the model or its endpoint refused to judge answers, by question."""
        self._outcomes = ItemRefusals()

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

        An answer that the model or its endpoint refuses to judge has no verdict (``refused``).
        Raises ModelError if each of the first four is refused in the same words, and at any other
        failure; earlier verdicts are kept.
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

    def to_ask(self, questions: Sequence[Question], records: Mapping[str, Record]) -> list[bool]:
        """Return an item for each verdict that ``judge_all`` will ask for, as far as that is known
        before. True: a reply is stored, but no verdict is read in it. Asks nothing."""
        counting, missing = copy(self), list[bool]()
        counting._missing = missing
        counting.judge_all(questions, records)
        return missing

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
        if kept is not None and (verdict := read(kept)) is not None:
            return verdict
        if self._missing is not None:
            self._missing.append(kept is not None)
            return None
        messages = list(request.messages)
        for _ in range(_ASKS):
            reply = self._reply(ModelRequest(messages, question_id=request.question_id))
            if reply is None:
                return None
            verdict = read(reply.text) if reply.cut is None else None
            if verdict is not None:
                self.cache.put(key, request.question_id, verdict, reply.text)
                return verdict
            messages += [Message("assistant", reply.text), Message("user", again)]
        return None

    def _reply(self, request: ModelRequest) -> ModelReply | None:
        """Return the model's reply; None if it refuses, which is noted."""
        try:
            reply = self.model.reply(request)
            words = reply.text or str(reply.cut) if reply.cut in _REFUSALS else ""
            error = ModelReplyError("The model refuses to judge.", where=f"reply {words!r}")
        except (ModelReplyError, ContextLengthError) as refusal:
            if not (words := refusal.refused):
                raise
            reply, error = None, refusal
        if self._outcomes.add(words) and not self._outcomes.has_answer:
            raise error
        if words:
            self.refused[request.question_id] = words
        return None if words else reply

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
    """Return a request with the text of a prompt and, as JSON, what the model is shown."""
    text = orjson.dumps(shown, option=orjson.OPT_INDENT_2).decode()
    messages = [Message("system", prompt), Message("user", text)]
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
    return request_of(prompt_text(prompt), shown, question.id)


# Judging whether answers are right


Verdict = Literal["correct", "incorrect", "abstained"]
VERDICTS: tuple[Verdict, ...] = ("correct", "incorrect", "abstained")
NOT_JUDGED = "not judged"
"""What stands for a verdict where no reply has one."""
REFUSED_VERDICT = f"{NOT_JUDGED} (refused)"

_NOT_CORRECT = "not correct"
_AGAIN = "Your reply does not end with a verdict. End with a line of its own: Verdict: {}"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judge's opinion of one answer.

    ``verdict`` is the one with the most votes; None (not judged) if there is a tie or no valid
    vote. ``votes`` are the votes of the repeats; None is an invalid vote. ``refused`` are the words
    in which the last one was refused, if one was.
    """

    verdict: Verdict | None
    votes: tuple[Verdict | None, ...]
    refused: str = ""

    @property
    def shown(self) -> str:
        """The verdict, or why there is none."""
        return self.verdict or (REFUSED_VERDICT if self.refused else NOT_JUDGED)

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
        # Only where the corpus has no answer is abstaining a verdict of its own.
        allowed = VERDICTS[:2] if question.answerable else VERDICTS
        name = "judge" if question.answerable else "judge_unanswerable"
        gold = "right answers" if question.answerable else "answers that would have been right"
        given = self.votes(
            judge_request(name, gold, question, record),
            partial(read_verdict, allowed=allowed),
            _AGAIN.format(" or ".join(allowed)),
        )
        votes: tuple[Verdict | None, ...] = tuple(
            None if vote is None else as_verdict(vote) for vote in given
        )
        return Judgement(majority(votes), votes, self.refused.get(question.id, ""))


def read_verdict(reply: str, allowed: Sequence[Verdict] = VERDICTS) -> Verdict | None:
    """Return the verdict on the last line that begins with "Verdict:"; None if it is not allowed,
    or if there is none. An earlier line, which may quote the candidate, never counts."""
    word = last_word(reply, "verdict", (*VERDICTS, _NOT_CORRECT))
    verdict = "incorrect" if word == _NOT_CORRECT else as_verdict(word)
    return verdict if verdict in allowed else None


def as_verdict(text: str | None) -> Verdict | None:
    """Return the verdict with this name, None if there is none."""
    return next((verdict for verdict in VERDICTS if verdict == text), None)

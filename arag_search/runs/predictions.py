"""Predictions in the form of A-RAG's repository (``scripts/batch_runner.py`` at 108e87e), written
from records and read as records.

A prediction has ``qid``, ``question``, ``trajectory`` (``loop``, ``tool_name``, ``arguments``,
``tool_result``, ``retrieved_tokens``), ``gold_answer``, ``pred_answer``, ``total_cost``, ``loops``,
``total_retrieved_tokens``, ``retrieval_logs``, ``chunks_read_count`` and ``chunks_read_ids``. The
names of its README are read too: ``question_id``, ``answer``, ``tool_input`` and ``tool_output``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import orjson
from pydantic import AliasChoices, BaseModel, Field, ValidationError

from arag_search.agent.answers import parse_answer
from arag_search.agent.models.usage import Usage
from arag_search.agent.record import Record, Step
from arag_search.errors import RunError
from arag_search.questions.files import json_records
from arag_search.questions.question import Question
from arag_search.system.durable import write_atomically
from arag_search.tokens import count_tokens
from arag_search.tools.registry import OTHER_NAMES

PREDICTIONS_FILE = "predictions.jsonl"
_NAMES = {tool: name for name, tool in OTHER_NAMES.items()}
_ALLOWED = 'predictions as A-RAG writes them: {"qid", "question", "pred_answer", "gold_answer"}'


def write_predictions(
    file: Path, questions: Iterable[Question], records: Mapping[str, Record]
) -> None:
    """Write the records of questions as predictions, in the order of the questions."""
    lines = [
        orjson.dumps(_prediction(question, records[question.id]), option=orjson.OPT_APPEND_NEWLINE)
        for question in questions
        if question.id in records
    ]
    write_atomically(file, b"".join(lines))


def read_predictions(file: Path) -> tuple[tuple[Question, ...], dict[str, Record]]:
    """Return the questions in a file of predictions with their gold answers, and the records, by
    id. Raises RunError naming the line, or QuestionsError for a file that is not JSON."""
    questions: dict[str, Question] = {}
    records: dict[str, Record] = {}
    for position, (where, value) in enumerate(json_records(file, "The predictions", _ALLOWED), 1):
        prediction = _parsed(value, where)
        id = f"q{position}" if prediction.qid is None else str(prediction.qid)
        if id in records:
            raise RunError(f'The id "{id}" is duplicated.', where=where, allowed=_ALLOWED)
        questions[id] = Question(id, prediction.question, prediction.gold_answers)
        records[id] = prediction.record(id)
    if not records:
        raise RunError("There are no predictions.", where=str(file), allowed=_ALLOWED)
    return tuple(questions.values()), records


def _prediction(question: Question, record: Record) -> dict[str, Any]:
    steps = [
        {
            "loop": step.step if step.turn is None else step.turn,
            "tool_name": _NAMES.get(step.tool_name, step.tool_name),
            "arguments": step.tool_input,
            "tool_result": step.tool_output,
            "retrieved_tokens": step.retrieved_tokens,
        }
        for step in record.trajectory
    ]
    prediction: dict[str, Any] = {
        "qid": record.question_id,
        "question": record.question,
        "trajectory": steps,
        "gold_answer": question.answers[0] if question.answers else "",
        "answer_aliases": question.answers[1:],
        "pred_answer": record.answer,
        "total_cost": record.total_cost or 0.0,
        "loops": record.loops,
        "total_retrieved_tokens": record.total_retrieved_tokens,
        "retrieval_logs": [
            {"tool_name": step["tool_name"], "tokens": step["retrieved_tokens"], "metadata": {}}
            for step in steps
        ],
        "chunks_read_count": record.chunks_read_count,
        "chunks_read_ids": record.chunks_read_ids,
    }
    if record.memory_state is not None:
        prediction["memory_state"] = record.to_json()["memory_state"]
    if record.failure is not None:
        prediction["error"] = record.failure
    return prediction


class _Call(BaseModel):
    """One entry of a trajectory."""

    tool_name: str
    arguments: Any = Field(None, validation_alias=AliasChoices("arguments", "tool_input"))
    tool_result: str = Field("", validation_alias=AliasChoices("tool_result", "tool_output"))
    reasoning: str = ""
    retrieved_tokens: int = Field(0, ge=0)

    def step(self, number: int) -> Step:
        """Return the step of a record; which passages it showed is unknown."""
        return Step(
            step=number,
            tool_name=OTHER_NAMES.get(self.tool_name, self.tool_name),
            tool_input=self.arguments,
            tool_output=self.tool_result,
            reasoning=self.reasoning,
            status="ok",
            hit_ids=(),
            total_hits=None,
            retrieved_tokens=self.retrieved_tokens,
            result_tokens=count_tokens(self.tool_result),
            seconds=0.0,
        )


class _Prediction(BaseModel):
    """One prediction."""

    qid: str | int | None = Field(None, validation_alias=AliasChoices("qid", "id", "question_id"))
    question: str
    pred_answer: str | None = None
    gold_answer: str | list[str] | None = None
    answer_aliases: tuple[str, ...] = ()
    trajectory: tuple[_Call, ...] = ()
    total_cost: float | None = None
    loops: int = 0
    total_retrieved_tokens: int = 0
    chunks_read_ids: tuple[str | int, ...] = ()
    error: str | None = None

    @property
    def gold_answers(self) -> tuple[str, ...]:
        """The gold answer, or several, and its aliases."""
        gold = self.gold_answer or ()
        first = (gold,) if isinstance(gold, str) else tuple(gold)
        return tuple(dict.fromkeys([*first, *self.answer_aliases]))

    def record(self, id: str) -> Record:
        """Return the record. All of the answer is its explanation, because A-RAG looks for gold
        answers in the whole response."""
        text = self.pred_answer or ""
        steps = tuple(call.step(number) for number, call in enumerate(self.trajectory, 1))
        failed = self.error is not None or not text.strip()
        return Record(
            question_id=id,
            question=self.question,
            answer=text,
            answer_short=parse_answer(text).short,
            explanation=text,
            cited_ids=(),
            wrong_ids=(),
            citation=None,
            status="failed" if failed else "answered",
            failure=(self.error or "The prediction is empty.") if failed else None,
            trajectory=steps,
            total_cost=self.total_cost,
            loops=self.loops,
            tool_usage_summary=dict(Counter(step.tool_name for step in steps)),
            total_retrieved_tokens=self.total_retrieved_tokens,
            chunks_read_count=len(self.chunks_read_ids),
            chunks_read_ids=tuple(map(str, self.chunks_read_ids)),
            usage=Usage(0, 0, "counted"),
            seconds=0.0,
            fingerprints={},
        )


def _parsed(value: object, where: str) -> _Prediction:
    """Return a prediction. ``answer`` is the gold answer beside ``pred_answer``, as in A-RAG's
    script, and the predicted one without it, as in A-RAG's README."""
    if isinstance(value, dict):
        fields = cast(dict[str, object], value)
        other = "gold_answer" if "pred_answer" in fields else "pred_answer"
        value = {other: fields.get("answer"), **fields}
    try:
        return _Prediction.model_validate(value)
    except ValidationError as error:
        wrong = sorted({".".join(map(str, item["loc"])) or "all of it" for item in error.errors()})
        raise RunError(
            f"A prediction cannot be read: {', '.join(wrong)}.", where=where, allowed=_ALLOWED
        ) from error

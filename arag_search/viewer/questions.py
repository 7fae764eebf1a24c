"""The questions of one run as a page shows them: scores, steps, evidence, and the answer with its
citations. Each text of a page is stored once and named by its number."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from itertools import accumulate
from typing import Any

from arag_search.agent.record import ContextEvent, Record, Step, citation_warning, hits_text
from arag_search.evaluation.evidence import sightings_of
from arag_search.evaluation.loaded_run import LoadedRun
from arag_search.evaluation.question_score import QuestionScore
from arag_search.evaluation.score import Score
from arag_search.evaluation.trajectories import arguments_of
from arag_search.plan.clauses import Clause
from arag_search.query.fields import Schema
from arag_search.questions.question import Question
from arag_search.search.reading.occurrences import Mark, marks
from arag_search.tools.replies.parts import ReplyPart, parts_of
from arag_search.viewer.reading import Reading, reading_of


class Texts:
    """A table of texts by number, from 0; the same text has the same number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """Return the number of a text."""
        return self._numbers.setdefault(text, len(self._numbers))

    def all(self) -> list[str]:
        """Return all texts by number."""
        return list(self._numbers)


def utf16_places(text: str, places: list[Mark]) -> list[int]:
    """Convert places in a text to places in a browser, start and end in turn. A character beyond
    U+FFFF has two units there."""
    flat = [at for span in places for at in span]
    if not flat or text.isascii() or max(text) <= "\uffff":
        return flat
    units = list(accumulate((1 + (character > "\uffff") for character in text), initial=0))
    return [units[at] for at in flat]


class Steps:
    """A converter of steps for the page. ``schema`` is the schema of the index, or an open one if
    unknown; ``texts`` stores the shown texts of passages."""

    def __init__(self, texts: Texts, schema: Schema) -> None:
        self._texts = texts
        self._schema = schema

    def of(self, record: Record) -> list[dict[str, Any]]:
        """Convert the steps of a record, in order."""
        steps: list[dict[str, Any]] = []
        for step in record.trajectory:
            later = [event for event in record.context if event.after_step >= step.step]
            removed = {reference for event in later for reference in event.removed}
            converted = self._step(step, removed)
            events = [event_text(event) for event in later if event.after_step == step.step]
            steps.append({**converted, "events": events} if events else converted)
        return steps

    def _step(self, step: Step, removed: Collection[str]) -> dict[str, Any]:
        reading = reading_of(step, self._schema)
        parts = parts_of(step.tool_output, step.passages)
        leaves = reading.leaves if reading is not None else ()
        converted: dict[str, Any] = {
            "tool": step.tool_name,
            "arguments": _arguments(step, reading),
            "query": None if reading is None else reading_dict(reading),
            "reasoning": step.reasoning,
            "status": step.status,
            "hits": hits_text(step),
            "retrieved": step.retrieved_tokens,
            "result": step.result_tokens,
            "seconds": step.seconds,
            "above": parts.above,
            "passages": [self._passage(part, leaves, removed) for part in parts.passages],
        }
        if parts.joined() != step.tool_output:
            converted["reply"] = self._texts.number(step.tool_output)
        return converted

    def _passage(
        self, part: ReplyPart, leaves: tuple[Clause, ...], removed: Collection[str]
    ) -> dict[str, Any]:
        content: dict[str, Any] = {
            "id": part.reference or part.id,
            "title": self._texts.number(part.title),
            "header": part.header,
            "text": self._texts.number(part.text),
            "titleMarks": utf16_places(part.title, marks(part.title, leaves, "title")),
            "textMarks": utf16_places(part.text, marks(part.text, leaves, "content")),
            "about": part.about,
            "below": part.below,
        }
        if part.left_out is not None:
            content["before"] = part.left_out
        if part.reference in removed:
            content["removed"] = True
        return {name: value for name, value in content.items() if value not in ("", [])}


def event_text(event: ContextEvent) -> str:
    """Return in words what was done because the conversation was long."""
    freed = event.tokens_before - event.tokens_after
    words = {
        "warning": f"The model was warned: {event.tokens_before:,} tokens.",
        "voluntary": f"The model freed {freed:,} of {event.tokens_before:,} tokens.",
        "forced": f"The model had to free {freed:,} of {event.tokens_before:,} tokens.",
        "exhausted": f"What was kept left no room: {event.tokens_before:,} tokens.",
    }
    return words[event.kind]


def _arguments(step: Step, reading: Reading | None) -> list[list[str]]:
    """Return names and values of the arguments of a call without the query. Arguments that are not
    a JSON object are one text with an empty name."""
    if not isinstance(step.tool_input, Mapping):
        return [["", _text(step.tool_input)]]
    query = None if reading is None else reading.argument
    return [[name, _text(value)] for name, value in arguments_of(step).items() if name != query]


def _text(value: object) -> str:
    """Format a value as JSON, and a string without quotes if it is not ambiguous."""
    if isinstance(value, str) and not _is_json(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def reading_dict(reading: Reading) -> dict[str, Any]:
    """Return how a query was understood in types of JSON."""
    return {
        "typed": reading.typed,
        "pieces": [list(piece) for piece in reading.pieces],
        "problems": [
            [problem.column, problem.piece, problem.message] for problem in reading.problems
        ],
        "mended": reading.mended,
    }


class Questions:
    """The questions of one scored run, converted for the page."""

    def __init__(self, run: LoadedRun, score: Score, texts: Texts, schema: Schema) -> None:
        self._run = run
        self._score = score
        self._scores = {question.id: question for question in score.questions}
        self._steps = Steps(texts, schema)

    def of(self, question: Question) -> dict[str, Any]:
        """Return the run's result on one of its questions."""
        score = self._scores[question.id]
        record = self._run.records.get(question.id)
        entry = _worth(question, score)
        entry["recall"] = self._score.values[question.id]["EvidenceRecall"]
        entry["failureKind"] = self._score.failures.get(question.id)
        entry["judged"] = self._verdict(question.id)
        entry["evidence"] = self._evidence(question, record)
        foreign = self._run.foreign.get(question.id)
        if foreign is not None and "question" in foreign.differences and record is None:
            entry["asked"] = foreign.record.question
        if record is not None:
            entry |= _answer(record)
            entry["steps"] = self._steps.of(record)
        return entry

    def _verdict(self, id: str) -> str:
        judged = self._score.judged
        if judged is None or id not in judged.judgements:
            return ""
        return judged.judgements[id].shown

    def _evidence(self, question: Question, record: Record | None) -> list[list[list[Any]]]:
        """Return the pieces of every sufficient set of evidence.

        Each has its name and three steps: the first that shows it, the first with its text, and the
        first that reads it.
        """
        if record is None:
            return []
        located = self._score.located
        sets = None if located is None else located.sets[question.id]
        return [
            [[piece.name, piece.shown, piece.visible, piece.read] for piece in pieces]
            for pieces in sightings_of(question, record, sets)
        ]


def _worth(question: Question, score: QuestionScore) -> dict[str, Any]:
    """Return whether an answer is right by Contain-Acc, as in lists of wrong answers; None without
    a gold answer."""
    has_answer = bool(question.answers) or not question.answerable
    return {
        "status": score.status,
        "right": score.contain_accuracy >= 1 if has_answer else None,
        "exact": score.exact_match >= 1 if has_answer else None,
        "refused": score.refused,
        "withoutSearch": score.without_search,
        "fromMemory": bool(score.from_memory),
        "retrieved": score.retrieved_tokens,
        "stepCount": score.steps,
        "seconds": score.seconds,
        "cost": score.cost_usd,
        "answer": score.answer,
    }


def _answer(record: Record) -> dict[str, Any]:
    return {
        "reply": record.answer,
        "explanation": record.explanation,
        "cited": _cited(record),
        "warning": citation_warning(record) if record.status != "failed" else "",
        "failure": record.failure,
        "usage": [
            record.usage.prompt_tokens,
            record.usage.completion_tokens,
            record.usage.source == "counted",
            record.usage.cached_tokens,
            record.usage.reasoning_tokens,
            " ".join(record.warnings),
        ],
    }


def _cited(record: Record) -> list[list[Any]]:
    """Return each id that an answer cites and the place of the step that first showed it. For a
    document, add its score and whether an earlier question showed it first; documents are in order
    of score."""
    if not record.citations:
        return [[id, _first_shown(id, record)] for id in record.cited_ids]
    cited: list[list[Any]] = []
    for document in record.citations:
        id = document.reference
        cited.append([id, _first_shown(id, record), document.score, id in record.reused])
    return [*cited, *([id, None] for id in record.wrong_ids)]


def _first_shown(id: str, record: Record) -> int | None:
    return next(
        (
            position
            for position, step in enumerate(record.trajectory)
            if id in step.hit_ids or any(document.reference == id for document in step.references)
        ),
        None,
    )

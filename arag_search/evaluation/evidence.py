"""Find which evidence a record shows, and when, in the texts that the model saw.

Wrong answers are classified into our own mechanical categories, as far as records show the reason.
The first category that holds counts, in the order of FAILURES. A-RAG's categories are different:
they are a model's verdict on the whole trajectory.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, NamedTuple

from arag_search.agent.record import Record
from arag_search.agent.wording import normalise
from arag_search.evaluation.resolution import EvidencePiece
from arag_search.evaluation.text_match import stands_in, title_names, whole_words
from arag_search.questions.question import Question

EVIDENCE_CAP_TOKENS = 8_000
"""Evidence that needed more retrieved tokens than this counts as not found."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """When a piece of evidence was found, as indexes of steps from 0; None is never.

    ``shown`` is the first step that names its passage. ``visible`` is the first whose text shows
    the answer of the hop. If the passage is not known to hold the answer, any of its text counts.
    ``read`` is the first chunk_read that shows any text of its passage.
    """

    name: str
    shown: int | None
    visible: int | None
    read: int | None


def shown_titles(record: Record) -> set[str]:
    """Return the titles of all passages that the tools showed."""
    return {sight.title for sight in _sights(record) if sight.title}


def sightings_of(
    question: Question, record: Record, sets: Sequence[Sequence[EvidencePiece]] | None
) -> list[list[Sighting]]:
    """Return when each piece of evidence was shown, for every sufficient set. With ``sets``, any
    passage of a piece shows it; a piece without passages is never shown. Otherwise the pieces are
    gold titles. If there are hops, the answer of a title's hop must be visible."""
    sights = _sights(record)
    if sets is not None:
        return [
            [
                _sighting(piece.name, piece.answer, [s for s in sights if s.id in piece.chunk_ids])
                for piece in pieces
            ]
            for pieces in sets
        ]
    answers = {
        normalise(name): hop.answer
        for hop in question.hops
        for name in (hop.title, hop.subject)
        if name is not None
    }
    by_name: dict[str, list[_Sight]] = defaultdict(list)
    of_subjects = not question.supporting_titles
    for sight in sights:
        for name in title_names(sight.title, of_subjects=of_subjects) if sight.title else ():
            by_name[name].append(sight)
    return [
        [
            _sighting(title, answers.get(name), by_name[name])
            for title, name in zip(titles, map(normalise, titles), strict=True)
        ]
        for titles in (question.gold_titles, *question.alternative_titles)
        if titles
    ]


class _Sight(NamedTuple):
    """A passage in the form in which a step shows it."""

    step: int
    is_read: bool
    id: str
    title: str
    text: str


def _sights(record: Record) -> list[_Sight]:
    return [
        _Sight(number, step.is_read, *passage)
        for number, step in enumerate(record.trajectory)
        for passage in step.shown_passages()
    ]


def _sighting(name: str, answer: str | None, sights: Sequence[_Sight]) -> Sighting:
    telling = (
        sight.step
        for sight in sights
        if answer is None or stands_in(answer, whole_words(sight.text))
    )
    reads = (sight.step for sight in sights if sight.is_read and sight.text)
    shown = sights[0].step if sights else None
    return Sighting(name, shown, next(telling, None), next(reads, None))


# Measures of evidence


@dataclass(frozen=True, slots=True)
class EvidenceValues:
    """Measures of the best set of evidence. ``recall`` is the share of its pieces that were found.
    ``tokens`` are the retrieved tokens of all steps until the last piece was found. They are at
    most EVIDENCE_CAP_TOKENS, and this number if a piece was not found. ``full`` is 1 if all pieces
    were found within this number, else 0."""

    recall: float
    full: float
    tokens: float


def evidence_values(
    question: Question, record: Record, sets: Sequence[Sequence[EvidencePiece]] | None = None
) -> EvidenceValues | None:
    """Return what a record shows of the evidence; None if the question names none.

    ``sets`` are its pieces in an index; a piece is found when its text is visible. Without
    ``sets``, a title is found when it is shown.
    """
    by_set = [
        [sighting.shown if sets is None else sighting.visible for sighting in sightings]
        for sightings in sightings_of(question, record, sets)
    ]
    if not by_set:
        return None
    spent = list(accumulate(step.retrieved_tokens for step in record.trajectory))
    costs = [
        spent[max(reached)]
        for places in by_set
        if len(reached := [step for step in places if step is not None]) == len(places)
    ]
    tokens = min(costs, default=EVIDENCE_CAP_TOKENS + 1)
    return EvidenceValues(
        recall=max(sum(step is not None for step in places) / len(places) for places in by_set),
        full=float(tokens <= EVIDENCE_CAP_TOKENS),
        tokens=float(min(tokens, EVIDENCE_CAP_TOKENS)),
    )


Failure = Literal[
    "no answer", "not measured", "read not used", "budget", "shown not read", "never shown"
]

FAILURES: dict[Failure, str] = {
    "no answer": "the question failed, or has no record",
    "not measured": "the question names no evidence",
    "read not used": "the text that counts of all evidence was shown, and the answer is wrong",
    "budget": "the answer was forced before it all was",
    "shown not read": "all passages were in results, of some the text that counts was not",
    "never shown": "the passage of some evidence was in no result",
}


def failure_of(
    question: Question, record: Record | None, sets: Sequence[Sequence[EvidencePiece]] | None = None
) -> Failure:
    """Return the category of a wrong answer. ``sets`` are the pieces of evidence in the index that
    was searched; without them, passages are identified by their titles. If there are several sets
    of evidence, the set of which most was read counts."""
    if record is None or record.status == "failed":
        return "no answer"
    by_set = sightings_of(question, record, sets)
    if not by_set:
        return "not measured"
    best = max(by_set, key=_progress)
    if all(sighting.visible is not None for sighting in best):
        return "read not used"
    if record.status == "forced":
        return "budget"
    return (
        "shown not read" if all(sighting.shown is not None for sighting in best) else "never shown"
    )


def failure_counts(failures: Iterable[Failure]) -> dict[Failure, int]:
    """Return how often each category occurs, in the order of FAILURES, including zeros."""
    counts = Counter(failures)
    return {name: counts[name] for name in FAILURES}


def _progress(sightings: Sequence[Sighting]) -> tuple[float, float]:
    read = sum(sighting.visible is not None for sighting in sightings)
    shown = sum(sighting.shown is not None for sighting in sightings)
    return read / len(sightings), shown / len(sightings)

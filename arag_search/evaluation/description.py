"""Describe a file of questions, and how much of its evidence an index can show."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from arag_search.agent.answers import normalise
from arag_search.corpus import Chunk
from arag_search.evaluation.resolution import EvidencePiece, LocatedEvidence, Passages, rule_counts
from arag_search.evaluation.text_match import stands_in, whole_words
from arag_search.questions.files import (
    QuestionFile,
    evidence_fingerprint,
    questions_fingerprint,
)
from arag_search.questions.question import Question
from arag_search.questions.record import Shape

EXAMPLES = 3
_YES_NO = {"yes", "no"}
_REFERENCE = re.compile(r"#(\d+)")


@dataclass(frozen=True, slots=True)
class Answers:
    """Counts of questions by the kind of their answers."""

    with_aliases: int
    yes_or_no: int
    in_the_question: int
    unanswerable: int
    without_any: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """Counts of questions by the kind of evidence that they name; ``none`` counts those that name
    none."""

    hops: int
    titles: int
    sentences: int
    passages: int
    judged_documents: int
    none: int


@dataclass(frozen=True, slots=True)
class Resolution:
    """The share of the evidence that an index holds. ``pieces`` counts the pieces of all questions,
    ``by_rule`` those that each rule found and the "unresolved" ones, ``several`` those that more
    than one passage holds. ``questions`` is the number of questions that name evidence, ``whole``
    that of questions with all of their evidence in the index. ``unresolved`` has pairs of question
    id and piece. ``documents`` counts relevant documents, ``documents_found`` those of them in the
    index.
    """

    passages: int
    pieces: int
    by_rule: Mapping[str, int]
    several: int
    questions: int
    whole: int
    unresolved: tuple[tuple[str, str], ...]
    documents: int
    documents_found: int


@dataclass(frozen=True, slots=True)
class Description:
    """The description of a file. ``types`` and ``hops`` count questions; a question without a
    type is counted under "", without hops under 0."""

    path: str
    shapes: Mapping[Shape, int]
    questions: int
    types: Mapping[str, int]
    hops: Mapping[int, int]
    answers: Answers
    evidence: Evidence
    resolution: Resolution | None
    examples: tuple[Question, ...]
    problems: tuple[str, ...]
    fingerprints: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """Return the description as JSON values."""
        return {**asdict(self), "hops": {str(hops): count for hops, count in self.hops.items()}}


def describe(file: QuestionFile, chunks: Iterable[Chunk] | None = None) -> Description:
    """Describe a file; if passages are given, resolve its evidence to them."""
    questions = file.questions
    resolution = None if chunks is None else _resolution(questions, list(chunks))
    problems = [*file.notes, *_problems(questions)]
    if resolution is not None:
        problems += _resolution_problems(resolution)
    return Description(
        path=str(file.path),
        shapes=dict(file.shapes),
        questions=len(questions),
        types=_count_names(question.type or "" for question in questions),
        hops=dict(sorted(Counter(len(question.hops) for question in questions).items())),
        answers=_answers(questions),
        evidence=_evidence(questions),
        resolution=resolution,
        examples=_examples(questions),
        problems=tuple(problems),
        fingerprints={
            "questions": questions_fingerprint(questions),
            "evidence": evidence_fingerprint(questions),
        },
    )


def is_yes_or_no(question: Question) -> bool:
    """Return whether a gold answer is yes or no."""
    return any(normalise(answer) in _YES_NO for answer in question.answers)


def answers_itself(question: Question) -> bool:
    """Return whether the question contains a gold answer, in whole words."""
    text = whole_words(question.text)
    return any(stands_in(answer, text) for answer in question.answers)


def _answers(questions: Sequence[Question]) -> Answers:
    return Answers(
        with_aliases=sum(len(question.answers) > 1 for question in questions),
        yes_or_no=sum(map(is_yes_or_no, questions)),
        in_the_question=sum(map(answers_itself, questions)),
        unanswerable=sum(not question.answerable for question in questions),
        without_any=sum(not question.answers for question in questions),
    )


def _evidence(questions: Sequence[Question]) -> Evidence:
    return Evidence(
        hops=sum(bool(question.hops) for question in questions),
        titles=sum(bool(question.supporting_titles) for question in questions),
        sentences=sum(bool(question.supporting_sentences) for question in questions),
        passages=sum(bool(question.supporting_passages) for question in questions),
        judged_documents=sum(bool(question.relevant_documents) for question in questions),
        none=sum(not _names_evidence(question) for question in questions),
    )


def _names_evidence(question: Question) -> bool:
    return bool(
        question.hops
        or question.gold_titles
        or question.supporting_passages
        or question.relevant_documents
    )


def _examples(questions: Sequence[Question]) -> tuple[Question, ...]:
    """Return the first question of each type, the commonest type first, filled up with the first
    ones."""
    order = list(_count_names(question.type or "" for question in questions))
    firsts = [
        next(question for question in questions if (question.type or "") == name) for name in order
    ]
    chosen = firsts + [question for question in questions[:EXAMPLES] if question not in firsts]
    return tuple(chosen[:EXAMPLES])


def _count_names(names: Iterable[str]) -> dict[str, int]:
    """Return names with their counts, most frequent first, then by name."""
    return dict(sorted(Counter(names).items(), key=lambda pair: (-pair[1], pair[0])))


# Problems


def _problems(questions: Sequence[Question]) -> list[str]:
    """Return reasons to doubt figures on these questions, each with its number of questions."""
    total = len(questions)
    repeated = total - len({normalise(question.text) for question in questions})
    no_evidence = sum(not _names_evidence(question) for question in questions)
    untyped = sum(question.type is None for question in questions)
    counts = [
        (repeated, "ask what an earlier one asks"),
        (no_evidence, "name no evidence: it is not measured whether that is found"),
        (untyped % total, "have no type, which others have"),
        (sum(map(_ends_elsewhere, questions)), "have a last hop that gives none of their answers"),
        (
            sum(map(_refers_ahead, questions)),
            'have a hop with "#k" where k is not the number of an earlier hop',
        ),
    ]
    return [f"{count:,} of {total:,} questions {what}." for count, what in counts if count]


def _ends_elsewhere(question: Question) -> bool:
    """Return whether a chain of sub-questions ends with another answer; triples may be no chain."""
    if not question.hops or question.hops[-1].question is None:
        return False
    wanted = {normalise(answer) for answer in question.answers}
    return normalise(question.hops[-1].answer) not in wanted


def _refers_ahead(question: Question) -> bool:
    return any(
        not 0 < int(number) < position
        for position, hop in enumerate(question.hops, 1)
        for number in _REFERENCE.findall(hop.question or "")
    )


# Resolution


def _resolution(questions: Sequence[Question], chunks: Sequence[Chunk]) -> Resolution:
    passages = Passages(chunks)
    documents = {chunk.doc_id for chunk in chunks}
    located = LocatedEvidence.of(questions, passages).sets
    pieces = [
        piece for sets in located.values() for set_of_pieces in sets for piece in set_of_pieces
    ]
    unresolved = [
        (id, piece.name)
        for id, sets in located.items()
        for pieces in sets
        for piece in pieces
        if piece.rule is None
    ]
    relevant = [
        id for question in questions for id, grade in question.relevant_documents if grade > 0
    ]
    return Resolution(
        passages=len(chunks),
        pieces=len(pieces),
        by_rule=rule_counts(piece.rule for piece in pieces),
        several=sum(len(piece.chunk_ids) > 1 for piece in pieces),
        questions=sum(bool(sets) for sets in located.values()),
        whole=sum(any(map(_is_whole, sets)) for sets in located.values()),
        unresolved=tuple(unresolved),
        documents=len(relevant),
        documents_found=sum(id in documents for id in relevant),
    )


def _is_whole(pieces: Sequence[EvidencePiece]) -> bool:
    return all(piece.rule is not None for piece in pieces)


def _resolution_problems(resolution: Resolution) -> list[str]:
    problems: list[str] = []
    lacking = resolution.questions - resolution.whole
    if lacking:
        problems.append(
            f"{lacking:,} of {resolution.questions:,} questions name evidence that no passage of "
            "the index holds: no search can find all of it."
        )
    missing = resolution.documents - resolution.documents_found
    if missing:
        problems.append(
            f"{missing:,} of {resolution.documents:,} relevant documents are not in the index."
        )
    return problems

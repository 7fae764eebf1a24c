"""Reasons to doubt figures on a file of questions, and how much of its evidence an index lacks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from arag_search.agent.answers import normalise
from arag_search.corpus import Chunk
from arag_search.evaluation.resolution import LocatedEvidence, Passages
from arag_search.questions.files import QuestionFile
from arag_search.questions.question import Question

_REFERENCE = re.compile(r"#(\d+)")


def problems_of(file: QuestionFile, chunks: Iterable[Chunk]) -> list[str]:
    """Return the notes on a file, and the problems of its questions and of its evidence in the
    index of these chunks, each with its number of questions."""
    indexed = list(chunks)
    return [*file.notes, *_problems(file.questions), *_lacking(file.questions, indexed)]


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


def _names_evidence(question: Question) -> bool:
    return bool(
        question.hops
        or question.gold_titles
        or question.supporting_passages
        or question.relevant_documents
    )


def _lacking(questions: Sequence[Question], chunks: Sequence[Chunk]) -> list[str]:
    problems: list[str] = []
    located = LocatedEvidence.of(questions, Passages(chunks)).sets.values()
    sets = [named for named in located if named]
    whole = sum(
        any(all(piece.rule is not None for piece in pieces) for pieces in named) for named in sets
    )
    if whole < len(sets):
        problems.append(
            f"{len(sets) - whole:,} of {len(sets):,} questions name evidence that no passage of "
            "the index holds: no search can find all of it."
        )
    indexed = {chunk.doc_id for chunk in chunks}
    relevant = [
        id for question in questions for id, grade in question.relevant_documents if grade > 0
    ]
    missing = sum(id not in indexed for id in relevant)
    if missing:
        problems.append(
            f"{missing:,} of {len(relevant):,} relevant documents are not in the index."
        )
    return problems

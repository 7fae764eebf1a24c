"""Questions whose evidence is removed, to see whether a model refuses to answer or answers
anyway.

One scope on the index excludes the evidence of all chosen questions. Nothing is deleted, so that
scores are computed from the statistics of the whole corpus, as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from arag_search.agent.wording import normalise
from arag_search.corpus import Chunk
from arag_search.errors import QuestionsError
from arag_search.evaluation.resolution import IndexedPassage, Passages, resolve_evidence
from arag_search.evaluation.text_match import stands_in, whole_words
from arag_search.plan.lower import lower_scope
from arag_search.query.fields import DOC_ID
from arag_search.query.operators import NOT
from arag_search.query.tree import KeywordEquals, Modifier, any_of
from arag_search.questions.question import Question


@dataclass(frozen=True, slots=True)
class TakenAway:
    """Questions without their evidence, marked as not answerable. ``filter`` is the scope that
    leaves out ``documents``."""

    questions: tuple[Question, ...]
    filter: str
    documents: tuple[str, ...]


def take_away(
    questions: Sequence[Question],
    chunks: Iterable[Chunk],
    choose: Callable[[Sequence[Question]], Sequence[Question]] = tuple,
) -> TakenAway:
    """Choose questions, and leave out the documents that hold any of their evidence. ``choose``
    takes the questions whose answer must be read and stands in no document without their evidence;
    by default it chooses all.

    Raises QuestionsError if no question can be chosen, or no passage is left.
    """
    passages = Passages(chunks)
    evidence: dict[str, set[str]] = {}
    for question in filter(must_be_read, questions):
        documents = set(passages.document_ids(_evidence_ids(question, passages)))
        others = (other for other in passages.all if other.chunk.doc_id not in documents)
        if documents and not is_in_texts(question, texts_of(others)):
            evidence[question.id] = documents
    chosen = choose([question for question in questions if question.id in evidence])
    gone = {document for question in chosen for document in evidence[question.id]}
    ids = (passage.chunk.doc_id for passage in passages.all if passage.chunk.doc_id in gone)
    documents = tuple(dict.fromkeys(ids))
    if not chosen or all(passage.chunk.doc_id in gone for passage in passages.all):
        raise QuestionsError(
            "No passage is left." if chosen else "No question can be chosen.",
            where=f"{len(questions):,} questions, {len(documents):,} documents with evidence",
            allowed="questions whose answer must be read, and stands only in documents with their "
            "evidence, which are not all of the index",
        )
    excluded = any_of(*(KeywordEquals(DOC_ID, id) for id in documents))
    scope = lower_scope([Modifier(NOT, excluded)])
    asked = tuple(replace(question, answerable=False) for question in chosen)
    return TakenAway(asked, str(scope), documents)


def must_be_read(question: Question) -> bool:
    """Return whether the answer has words to look for, is not yes or no, and does not stand in the
    question itself."""
    text = whole_words(question.text)
    return (
        question.answerable
        and any(map(whole_words, question.answers))
        and not any(normalise(answer) in ("yes", "no") for answer in question.answers)
        and not any(stands_in(answer, text) for answer in question.answers)
    )


def _evidence_ids(question: Question, passages: Passages) -> set[str]:
    """Return the passages with any evidence of a question; none if it names no evidence, or some
    that is in no passage."""
    sets = resolve_evidence(question, passages)
    pieces = [piece for set_of_pieces in sets for piece in set_of_pieces]
    if any(piece.rule is None for piece in pieces):
        return set()
    return {id for piece in pieces for id in piece.chunk_ids}


def texts_of(passages: Iterable[IndexedPassage]) -> list[str]:
    """Return the titles and texts of passages, in whole words."""
    return [
        text for passage in passages for text in (whole_words(passage.chunk.title), passage.text)
    ]


def is_in_texts(question: Question, texts: Sequence[str]) -> bool:
    """Return whether any of the answers is in any of the texts."""
    answers = [words for answer in question.answers if (words := whole_words(answer))]
    return any(answer in text for text in texts for answer in answers)

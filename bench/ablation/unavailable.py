"""Questions whose evidence is removed, to see whether a model refuses to answer or answers
anyway.

One scope on the index excludes the evidence of all chosen questions. Nothing is deleted, so that
scores are computed from the statistics of the whole corpus, as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from arag_search.agent.answers import normalise
from arag_search.corpus import Chunk
from arag_search.errors import QuestionsError
from arag_search.evaluation.resolution import IndexedPassage, Passages, resolve_evidence
from arag_search.evaluation.text_match import stands_in, whole_words
from arag_search.query.fields import DOC_ID
from arag_search.query.tree import KeywordEquals, Scope, any_of
from arag_search.questions.question import Question
from arag_search.search.scope import scope_of

GONE = "answer gone"
STILL_PRESENT = "answer still present"
"""Types of the questions, by which a score reports the two separately."""

YES_NO = "the answer is yes or no"
IN_QUESTION = "the answer is in the question"
NO_ANSWER = "there is no answer, or none that could be searched for"
NO_EVIDENCE = "no evidence is named"
UNRESOLVED = "some evidence is in no passage of the index"


@dataclass(frozen=True, slots=True)
class TakenAway:
    """Questions without their evidence.

    ``questions`` are marked as not answerable; their type is GONE or, if a remaining passage still
    has an answer, STILL_PRESENT. ``filter`` is the scope that leaves out ``documents``.
    ``left_out`` counts the questions that were not chosen, by the first reason that holds.
    ``passages`` are those of the whole index, ``removed`` how many of them the scope leaves out.
    """

    questions: tuple[Question, ...]
    filter: str
    documents: tuple[str, ...]
    left_out: Mapping[str, int]
    passages: int
    removed: int

    def count(self, type: str) -> int:
        """Return the number of questions of a type."""
        return sum(question.type == type for question in self.questions)


Choose = Callable[[Sequence[Question]], Sequence[Question]]
"""Takes some of the questions that could be chosen."""


def take_away(
    questions: Sequence[Question], chunks: Iterable[Chunk], choose: Choose = tuple
) -> TakenAway:
    """Choose among the questions whose answer must be read (by default all), and leave out the
    documents that hold any of their evidence.

    Raises QuestionsError if no question can be chosen, or no passage would be left.
    """
    passages = Passages(chunks)
    left_out = Counter[str]()
    evidence: dict[str, set[str]] = {}
    for question in questions:
        ids = reason_against(question) or _evidence_ids(question, passages)
        if isinstance(ids, str):
            left_out[ids] += 1
        else:
            evidence[question.id] = ids
    chosen = choose([question for question in questions if question.id in evidence])
    if not chosen:
        reasons = ", ".join(f"{count:,}: {reason}" for reason, count in left_out.items())
        raise QuestionsError(
            "No question can be chosen.",
            where=reasons,
            allowed="questions with an answer that must be read, and evidence that is in the index",
        )
    passage_ids = sorted({id for question in chosen for id in evidence[question.id]})
    documents = tuple(dict.fromkeys(passages.document_ids(passage_ids)))
    gone = set(documents)
    remaining = [passage for passage in passages.all if passage.chunk.doc_id not in gone]
    if not remaining:
        raise QuestionsError(
            "No passage would be left: every document holds evidence.",
            where=f"{len(documents):,} documents",
            allowed="a corpus of more documents than hold the evidence",
            do="Choose fewer questions with --limit.",
        )
    texts = texts_of(remaining)
    scope = scope_of(Scope(exclude=(any_of(*(KeywordEquals(DOC_ID, id) for id in documents)),)))
    return TakenAway(
        questions=tuple(
            replace(
                question,
                answerable=False,
                type=STILL_PRESENT if is_in_texts(question, texts) else GONE,
            )
            for question in chosen
        ),
        filter=str(scope),
        documents=documents,
        left_out=dict(left_out),
        passages=len(passages.all),
        removed=len(passages.all) - len(remaining),
    )


def reason_against(question: Question) -> str | None:
    """Return why the answer to a question need not be read or cannot be looked for, None if it must
    be read."""
    if not any(map(whole_words, question.answers)) or not question.answerable:
        return NO_ANSWER
    if _is_yes_or_no(question):
        return YES_NO
    if _answers_itself(question):
        return IN_QUESTION
    return None


def _is_yes_or_no(question: Question) -> bool:
    return any(normalise(answer) in ("yes", "no") for answer in question.answers)


def _answers_itself(question: Question) -> bool:
    text = whole_words(question.text)
    return any(stands_in(answer, text) for answer in question.answers)


def _evidence_ids(question: Question, passages: Passages) -> set[str] | str:
    """Return the passages with any evidence of a question, or why it cannot be withheld."""
    sets = resolve_evidence(question, passages)
    if not sets:
        return NO_EVIDENCE
    pieces = [piece for set_of_pieces in sets for piece in set_of_pieces]
    if any(piece.rule is None for piece in pieces):
        return UNRESOLVED
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

"""Judgements beside the documents of an index, before rankings are measured by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from arag_search.corpus import is_unicode
from arag_search.errors import QuestionsError
from arag_search.plan.clauses import joined, values_of
from arag_search.query.fields import DOC_ID
from arag_search.questions.fields import shown
from arag_search.questions.question import Question
from arag_search.search.index import Index
from arag_search.system.progress import counted

_NAMED = 3
_SCANNED, _AT_ONCE = 100, 500


def checked_judgements(
    questions: Sequence[Question], index: Index
) -> tuple[tuple[Question, ...], list[str]]:
    """Return questions for rankings of documents of the index, and notes on them.

    A question with the id and text of a document (ArguAna, Quora) leaves this document out of its
    ranking, unless it is judged relevant. Raises QuestionsError if the index has none of the
    relevant documents.
    """
    judged = dict.fromkeys(id for question in questions for id in question.relevant_ids)
    if not judged:
        return tuple(questions), []
    own = {q.id: None for q in questions if q.relevant_ids and q.id not in q.relevant_ids}
    texts = _texts(index, judged | own)
    missing = [id for id in judged if id not in texts]
    notes: list[str] = []
    if len(missing) == len(judged):
        known = dict.fromkeys(chunk.doc_id for chunk in islice(index.scan(), _SCANNED))
        raise QuestionsError(
            f"None of the relevant documents is in the index: {_named(judged)}.",
            where=index.location,
            allowed=f"ids of its documents, such as {_named(known)}",
            do="Write the ids of the index into the judgements, or name the index of their corpus.",
        )
    if missing:
        lacking = counted(len(missing), "relevant document is", "relevant documents are")
        notes.append(f"{lacking} not in the index (of {len(judged):,}): {_named(missing)}.")
    ready: list[Question] = []
    left_out = 0
    for question in questions:
        if question.id in own and _is_text_of(question, texts.get(question.id, "")):
            excluded = (*question.excluded_documents, question.id)
            question, left_out = replace(question, excluded_documents=excluded), left_out + 1
        ready.append(question)
    if left_out:
        count = counted(left_out, "question")
        notes.append(f"Rankings of {count} leave out the document with their own id and text.")
    return tuple(ready), notes


def _texts(index: Index, ids: Iterable[str]) -> Mapping[str, str]:
    """Return the titles, on lines of their own, and texts of the documents that the index has."""
    wanted = [id for id in ids if is_unicode(id)]
    texts: dict[str, str] = {}
    for start in range(0, len(wanted), _AT_ONCE):
        within = joined(index.scope, values_of(DOC_ID, wanted[start : start + _AT_ONCE]))
        for chunk in index.state.engine.scan(within):
            texts[chunk.doc_id] = texts.get(chunk.doc_id, f"{chunk.title}\n") + chunk.content
    return texts


def _is_text_of(question: Question, titled: str) -> bool:
    wholes = (titled, titled.partition("\n")[2])
    return question.text.split() in [whole.split() for whole in wholes]


def _named(ids: Iterable[str]) -> str:
    return ", ".join(map(shown, islice(ids, _NAMED)))

"""Reasons to doubt figures on a file of questions, and how much of its evidence an index lacks."""

from __future__ import annotations

from collections.abc import Iterable

from arag_search.agent.wording import normalise
from arag_search.corpus import Chunk
from arag_search.evaluation.resolution import LocatedEvidence, Passages
from arag_search.questions.files import QuestionFile


def problems_of(file: QuestionFile, chunks: Iterable[Chunk]) -> list[str]:
    """Return the notes on a file, and the problems of its questions and of their evidence in the
    index of these chunks. A problem has its number of questions."""
    asked, indexed = file.questions, list(chunks)
    located = LocatedEvidence.of(asked, Passages(indexed)).sets
    lost = [all(any(not piece.chunk_ids for piece in pieces) for pieces in sets)
            for sets in located.values() if sets]  # fmt: skip
    unnamed = [not located[item.id] and not item.relevant_documents for item in asked]
    documents = {chunk.doc_id for chunk in indexed}
    relevant = [id for item in asked for id, grade in item.relevant_documents if grade > 0]
    missing = [id for id in relevant if id not in documents]
    repeated = len(asked) - len({normalise(question.text) for question in asked})
    lines = (
        (repeated, asked, "questions ask what an earlier one asks"),
        (sum(unnamed), asked, "questions name no evidence: it is not measured whether it is found"),
        (sum(lost), lost, "questions name evidence that no passage of the index holds"),
        (len(missing), relevant, "relevant documents are not in the index"),
    )
    return [*file.notes, *(f"{n:,} of {len(of):,} {what}." for n, of, what in lines if n)]

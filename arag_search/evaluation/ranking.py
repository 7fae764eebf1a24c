"""Measures of rankings, as ir-measures computes them (trec_eval)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arag_search.agent.record import Record
from arag_search.evaluation.measures import Measure
from arag_search.evaluation.resolution import LocatedEvidence, Passages
from arag_search.questions.question import Question
from arag_search.system.extras import missing_extra

Grades = Mapping[str, int]
"""By document id; above 0 is relevant."""
_CITED = "Cited"
"""Begins the names of measures of cited documents; the rest names the measure of a ranking."""
_THEIR_NAMES = {"Recall": "R", "NDCG": "nDCG"}


def ranking_values(
    measures: Sequence[Measure],
    judged: Mapping[str, Grades],
    ranked: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, float]]:
    """Return the measures of every question that has a relevant document, by question id and by the
    name of the measure; a question without a ranking scores 0.

    ``ranked`` are document ids, best first, each once. Raises MissingExtraError if ir-measures
    is not installed.
    """
    theirs = _import_ir_measures()
    wanted = {theirs.parse_measure(_their_name(measure)): str(measure) for measure in measures}
    qrels = {
        id: {document: max(grade, 0) for document, grade in grades.items()}
        for id, grades in judged.items()
        if any(grade > 0 for grade in grades.values())
    }
    values = {id: dict.fromkeys(wanted.values(), 0.0) for id in qrels}
    run = {
        id: {document: -float(rank) for rank, document in enumerate(documents)}
        for id, documents in ranked.items()
        if id in qrels and documents
    }
    if run:
        for metric in theirs.iter_calc(list(wanted), qrels, run):
            if metric.query_id in run:
                values[metric.query_id][wanted[metric.measure]] = float(metric.value)
    return values


def shown_documents(record: Record, passages: Passages) -> list[str]:
    """Return the documents whose passages the tools showed, in the order in which they first
    did."""
    ids = dict.fromkeys(id for step in record.trajectory for id in step.hit_ids)
    return list(dict.fromkeys(passages.document_ids(ids)))


def cited_documents(record: Record) -> list[str]:
    """Return the documents that the answer cites, best first."""
    return list(dict.fromkeys(cited.doc_id for cited in record.citations))


def judgements(question: Question, located: LocatedEvidence | None) -> dict[str, int]:
    """Return grades by document: those of the data set, else, where it is known, 1 for every
    document that holds a piece of the evidence."""
    if question.relevant_documents or located is None:
        return dict(question.relevant_documents)
    sets = located.sets[question.id]
    ids = [id for pieces in sets for piece in pieces for id in piece.chunk_ids]
    return dict.fromkeys(located.passages.document_ids(ids), 1)


def _their_name(measure: Measure) -> str:
    name = measure.kind.name.removeprefix(_CITED)
    return f"{_THEIR_NAMES.get(name, name)}@{measure.cutoff}"


def _import_ir_measures() -> Any:
    try:
        import ir_measures
    except ImportError as error:
        raise missing_extra("bench", "ir-measures") from error
    return ir_measures

"""The rows of the records of a run: their measures, and why answers are wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from arag_search.agent.record import Record
from arag_search.evaluation.evidence import failure_of
from arag_search.evaluation.judging.factuality import means_of
from arag_search.evaluation.measurement import measure_questions
from arag_search.evaluation.resolution import IndexedPassage, LocatedEvidence
from arag_search.questions.question import Question
from bench.ablation.cells import CellRow
from bench.ablation.judging.judges import NOBODY, Judging
from bench.ablation.measure import ALWAYS, measure_of


def rows_of(
    asked: Sequence[Question],
    records: Mapping[str, Record],
    seed: int,
    located: LocatedEvidence,
    shown: Iterable[str] = (),
    judging: Judging = NOBODY,
    passages: Sequence[IndexedPassage] = (),
) -> list[CellRow]:
    """Return a row for each question; one without a record has failed. ``shown`` are names of
    measures in addition to the measures of every row. ``passages`` are all passages of the corpus,
    if they are known. Raises ModelError of the judges."""
    judging.answers.tell_cost(asked, records)
    verdicts, factuality = judging.answers.verdicts, judging.answers.factuality
    _, values = measure_questions(
        asked,
        records,
        tuple(dict.fromkeys([*ALWAYS, *map(measure_of, shown)])),
        located=located,
        judgements=verdicts and verdicts.judge_all(asked, records),
        factuality=factuality and means_of(factuality.judge_all(asked, records)),
    )
    failures: dict[str, str] = {}
    for question in asked:
        verdict = values[question.id]["JudgeAcc"]
        is_right = values[question.id]["ContainAcc"] if verdict is None else verdict
        if not is_right and question.answerable and question.answers:
            record, sets = records.get(question.id), located.sets[question.id]
            failures[question.id] = failure_of(question, record, sets)
    wrong = [question for question in asked if question.id in failures]
    causes = judging.failures and judging.failures.judge_wrong(wrong, records, passages)
    intents = judging.intents and judging.intents.judge_all(asked, records)
    return [
        CellRow(
            question.id,
            question.type,
            seed,
            values[question.id],
            question.id not in records or records[question.id].status == "failed",
            _is_unresolved(located, question),
            failures.get(question.id),
            (causes or {}).get(question.id),
            (intents or {}).get(question.id),
        )
        for question in asked
    ]


def _is_unresolved(located: LocatedEvidence, question: Question) -> bool:
    """Return whether each set of the evidence has a piece that no passage of the index holds."""
    sets = located.sets[question.id]
    return bool(sets) and all(any(not piece.chunk_ids for piece in pieces) for pieces in sets)

"""A data set: the index, and the chain of each question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from arag_search.evaluation.resolution import Passages, resolve_hops
from arag_search.questions.files import Question
from arag_search.search.index import Index
from bench import BenchError
from bench.ablation.suite import Names
from bench.gold_chain.chain import Chain, Evidence, Link, evidence_of
from bench.gold_chain.names import Known, known
from bench.workbench import open_kept


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, what the searcher knows of its hops, and what shows them."""

    question: Question
    known: tuple[Known, ...]
    evidence: tuple[Evidence, ...]

    def chain(self, names: Names, seed: int) -> Chain:
        """Return the hops of the question with names of a regime."""
        return tuple(
            Link(known.name(names, f"{seed} {self.question.id} {number}"), known.relation, evidence)
            for number, (known, evidence) in enumerate(zip(self.known, self.evidence, strict=True))
        )


@dataclass(frozen=True, slots=True)
class Ground:
    """An index, and the questions that are asked about it."""

    index: Index
    asked: tuple[Asked, ...]


def open_ground(
    corpus: Path, questions: Sequence[Question], kept: Path, encoder: str | None
) -> Ground:
    """Open the ground of a corpus, whose index is kept in ``kept`` or built there. It has vectors
    if an encoder is named. Raises the errors of building an index."""
    index = open_kept(corpus, kept, encoder)
    passages = Passages(index.scan())
    return Ground(index, tuple(_asked(question, passages) for question in questions))


def _asked(question: Question, passages: Passages) -> Asked:
    """Return a question with its evidence among the passages."""
    evidence = tuple(
        evidence_of(hop.answer, [passage.chunk for passage in passages.of_ids(piece.chunk_ids)])
        for hop, piece in zip(question.hops, resolve_hops(question, passages), strict=True)
    )
    return Asked(question, known(question), evidence)


def check_chains(questions: Sequence[Question], name: str) -> None:
    """Raise BenchError for questions without a chain of facts."""
    without = [question.id for question in questions if not question.hops]
    if without:
        raise BenchError(
            f'{len(without)} questions name no chain of facts, the first of them "{without[0]}".',
            where=name,
            allowed="questions with a chain: 2WikiMultiHopQA, MuSiQue",
            do="Leave the data set out; python -m bench retrieval measures single queries.",
        )

"""A data set with its passages cut in one way: the index, and the chain of each question in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from arag_search.evaluation.resolution import Passages, resolve_hops
from arag_search.questions.files import Question
from arag_search.search.index import Index, open_index
from arag_search.vectors.base import Encoder
from bench import BenchError
from bench.gold_chain.chain import Chain, Evidence, Link
from bench.gold_chain.evidence import evidence_of
from bench.gold_chain.names import Known, Names, known
from bench.quality.packed import PUBLISHED, open_cut
from bench.workbench import kept_index

UNRESOLVED = "unresolved"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, what the searcher knows of its hops, and what shows them."""

    question: Question
    known: tuple[Known, ...]
    evidence: tuple[Evidence, ...]
    rules: tuple[str, ...]

    def chain(self, names: Names, seed: int) -> Chain:
        """Its chain, with names of a regime."""
        links = [
            Link(one.name(names, f"{seed} {self.question.id} {number}"), one.relation, evidence)
            for number, (one, evidence) in enumerate(zip(self.known, self.evidence, strict=True))
        ]
        return Chain(self.question.id, self.question.text, tuple(links))


@dataclass(frozen=True, slots=True)
class Ground:
    """An index, and the questions that are asked about it."""

    index: Index
    asked: tuple[Asked, ...]

    @property
    def rules(self) -> Mapping[str, int]:
        """How many hops were resolved by which rule."""
        return Counter(rule for one in self.asked for rule in one.rules)


def open_ground(
    corpus: Path, passages: str, questions: Sequence[Question], kept: Path, encoder: Encoder | None
) -> Ground:
    """The ground of a corpus, whose index is kept below ``kept`` or made there; with vectors where
    there is an encoder, which stays open.

    Raises what building an index raises.
    """
    with open_index(kept_index(corpus, kept / PUBLISHED), search_timeout_s=None) as opened:
        published = Passages(opened.scan())
    index = open_cut(corpus, passages, kept, encoder)
    searched = published if passages == PUBLISHED else Passages(index.scan())
    return Ground(index, tuple(_asked(one, published, searched) for one in questions))


def _asked(question: Question, published: Passages, searched: Passages) -> Asked:
    """A question with its evidence among the passages that are searched."""
    origins = resolve_hops(question, published)
    found = origins
    if searched is not published:
        found = resolve_hops(question, searched, published)
    evidence = tuple(
        evidence_of(
            hop.hop.answer,
            [one.chunk for one in published.of_ids(origin.chunk_ids)],
            {one.chunk.id: one.chunk for one in searched.of_ids(hop.chunk_ids)},
        )
        for origin, hop in zip(origins, found, strict=True)
    )
    return Asked(
        question, known(question), evidence, tuple(one.rule or UNRESOLVED for one in found)
    )


def check_chains(questions: Sequence[Question], name: str) -> None:
    """Raise BenchError for questions without a chain of facts."""
    without = [one.id for one in questions if not one.hops]
    if without:
        raise BenchError(
            f'{len(without)} questions name no chain of facts, the first of them "{without[0]}".',
            where=name,
            allowed="questions with a chain: 2WikiMultiHopQA, MuSiQue",
            do="Leave the data set out; python -m bench retrieval measures single queries.",
        )

"""The gold-chain agent through the real tools, over small corpora."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import get_args

import pytest

from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from bench import BenchError
from bench.ablation.suite import GoldChain, Interface
from bench.data import Folders
from bench.gold_chain.chain import Link, evidence_of, telling
from bench.gold_chain.experiment import GoldChainExperiment
from bench.gold_chain.policy import ORDERS, POLICY_VERSION
from bench.gold_chain.searcher import Searcher
from tests.support.passages import chunk
from tests.support.semantic_indexes import vector_index

TOWNS = ("Oslo", "Rome", "Bern", "Kyiv", "Riga", "Bonn", "Lima", "Doha", "Baku", "Cork")
PASSAGES = (
    chunk(0, "film", "Blue Door", "Blue Door is a film. ", "Its director is Ann Lee."),
    chunk(1, "person", "Ann Lee", "Ann Lee sings. ", "Her place of birth was in Oslo. "),
    chunk(2, "museum", "Museum of Ann Lee", "It is a place. ", "It is about Ann Lee."),
    *(
        chunk(3 + at, town.lower(), town, f"{town} is a place. ", "Ann Lee sang there. ",
              "A director came.")
        for at, town in enumerate(TOWNS)
    ),
)  # fmt: skip
CHAIN = (
    Link("Blue Door", "director", {"film.1": ("Its director is Ann Lee.",)}),
    Link("Ann Lee", "place of birth", {"person.1": ("Her place of birth was in Oslo.",)}),
)


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    with vector_index(*PASSAGES) as gold_index:
        yield gold_index


# Through the tools


@pytest.mark.parametrize("interface", get_args(Interface))
def test_every_interface_finds_both_hops_whatever_the_order_and_the_questions_before(
    index: Index, interface: Interface
) -> None:
    searcher = Searcher(index, interface)
    for order in ORDERS.values():
        hops = searcher.walk(CHAIN, order)
        assert [hop.shown for hop in hops] == [True, True]
        assert searcher.walk(CHAIN, order) == hops


def test_what_a_hop_costs_is_what_the_tool_counts(index: Index) -> None:
    hops = Searcher(index, "logical").walk(CHAIN, (0, 1, 2))
    result = index.logical_search('"Blue Door" AND director', top_k=1)
    film = index.chunk_read(["film.1"])[0].chunk
    assert [hit.id for hit in result.hits] == ["film.1"]
    assert hops[0].tokens == count_tokens(film.title) + count_tokens(film.content)
    assert hops[0].searches == 1


def test_a_rejected_query_costs_no_retrieved_tokens(index: Index) -> None:
    chain = (Link("***", "birth", {"person.1": ("Oslo",)}),)
    (hop,) = Searcher(index, "logical").walk(chain, (1, 0, 2))
    assert hop.refused == 2
    assert hop.failed_tokens > 0
    assert hop.shown  # by the search for its words


# Evidence


def test_evidence_is_the_sentences_with_the_answer_or_else_the_whole_passage() -> None:
    person = PASSAGES[1]
    assert telling(person, "OSLO") == ("Her place of birth was in Oslo.",)
    assert telling(person, "Os") == (person.content.strip(),)  # whole words


def test_each_passage_that_holds_the_evidence_shows_it() -> None:
    person, sentences = PASSAGES[1], ("Her place of birth was in Oslo.",)
    other = chunk(9, "other", "Ann Lee", f"A singer. {sentences[0]} She sang in Oslo.")
    assert evidence_of("Oslo", [person]) == {"person.1": sentences}
    assert evidence_of("Oslo", [person, other])["other.1"][0] == sentences[0]
    assert evidence_of("Oslo", []) == {}


# Suites


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    """Write a data set of the passages above, with three questions, one of them without an answer
    in any passage."""
    data = tmp_path / "data" / "towns"
    data.mkdir(parents=True)
    lines = [{"title": passage.title, "text": passage.content} for passage in PASSAGES]
    (data / "corpus.jsonl").write_text("\n".join(map(json.dumps, lines)))
    chains = [
        [["Blue Door", "director", "Ann Lee"], ["Ann Lee", "place of birth", "Oslo"]],
        [["Ann Lee", "place of birth", "Oslo"], ["Oslo", "kind", "place"]],
        [["Red Door", "director", "Nobody"]],
    ]
    questions = [
        {"id": f"q{at}", "question": "Where was the director of Blue Door born?",
         "answer": "Oslo", "type": "two", "evidence": chain}
        for at, chain in enumerate(chains)
    ]  # fmt: skip
    (data / "questions.jsonl").write_text("\n".join(map(json.dumps, questions)))
    return Folders(tmp_path / "data", tmp_path / "kept", tmp_path / "work")


def suite_of(**changes: object) -> GoldChain:
    defaults: dict[str, object] = {
        "kind": "gold_chain",
        "sets": ("towns",),
        "interfaces": get_args(Interface),
        "orders": ("Q1 Q2 Q3", "Q3 Q1 Q2"),
        "names": ("surface", "dropped"),
        "encoder": "hashing:32",
    }
    return GoldChain.model_validate({**defaults, **changes})


def test_an_experiment_measures_every_cell_with_every_question(folders: Folders) -> None:
    suite = suite_of()
    experiment = GoldChainExperiment(suite, folders)
    factors = suite.factors
    try:
        for levels in product(*factors.values()):
            cell = experiment.measure(dict(zip(factors, levels, strict=True)))
            assert cell.fingerprints["policy"] == POLICY_VERSION
            rows = {row.question_id: row for row in cell.rows}
            assert list(rows) == ["q0", "q1", "q2"]
            assert rows["q2"].unresolved
            assert rows["q2"].values["TokensToEvidence"] == 8_000
            if cell.key["names"] == "surface":
                assert rows["q0"].values["FullEvidence"] == 1
    finally:
        experiment.close()


def test_questions_without_a_chain_are_rejected(folders: Folders) -> None:
    path = folders.data / "towns" / "questions.jsonl"
    facts = {"id": "h", "question": "?", "answer": "x", "supporting_facts": [["Oslo", 0]]}
    path.write_text(json.dumps(facts))
    with pytest.raises(BenchError) as raised:
        GoldChainExperiment(suite_of(), folders)
    assert str(raised.value) == (
        '1 questions name no chain of facts, the first of them "h".\n'
        "Where: towns\n"
        "Allowed: questions with a chain: 2WikiMultiHopQA, MuSiQue\n"
        "Do: Leave the data set out; python -m bench retrieval measures single queries."
    )

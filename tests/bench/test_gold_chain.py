"""The gold-chain agent through the real tools, over small corpora."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from arag_search.agent.loop import Agent
from arag_search.agent.models.base import Message, ModelRequest
from arag_search.errors import ModelReplyError
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from bench import BenchError
from bench.ablation.cells import Folders
from bench.ablation.suite import GoldChain
from bench.gold_chain.chain import Chain, Link, evidence_of, telling
from bench.gold_chain.experiment import GoldChainExperiment
from bench.gold_chain.model import GoldChainModel
from bench.gold_chain.policy import ORDERS, POLICY_VERSION, REPLIES, ReplyLevel, Setting
from bench.gold_chain.queries import INTERFACES, Interface
from bench.gold_chain.searcher import Searcher, preset_of
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
CHAIN = Chain(
    "q",
    "Where was the director of Blue Door born?",
    (
        Link("Blue Door", "director", {"film.1": ("Its director is Ann Lee.",)}),
        Link("Ann Lee", "place of birth", {"person.1": ("Her place of birth was in Oslo.",)}),
    ),
)


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    with vector_index(*PASSAGES) as gold_index:
        yield gold_index


# Through the tools


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("interface", INTERFACES)
def test_the_agent_takes_the_same_steps_as_the_fast_run(
    index: Index, interface: Interface, reply: ReplyLevel
) -> None:
    searcher = Searcher(index, interface, reply)
    for order in ORDERS.values():
        for in_title in (False, True):
            setting = Setting(interface, order, in_title, reply)
            searcher.audit(CHAIN, setting)
            hops = searcher.walk(CHAIN, setting)
            assert [hop.shown for hop in hops] == [True, True]
            assert searcher.walk(CHAIN, setting) == hops  # earlier questions have no influence


def test_what_a_hop_costs_is_what_the_tool_counts(index: Index) -> None:
    hops = Searcher(index, "logical", "full").walk(CHAIN, Setting("logical", (0, 1, 2)))
    result = index.logical_search('"Blue Door" AND director', top_k=1)
    film = index.chunk_read(["film.1"])[0].chunk
    assert [hit.id for hit in result.hits] == ["film.1"]
    assert hops[0].tokens == count_tokens(film.title) + count_tokens(film.content)
    assert hops[0].searches == 1


def test_an_audit_fails_where_the_agent_finds_other_passages(index: Index) -> None:
    searcher = Searcher(index, "logical", "full")
    setting = Setting("logical", (0, 1, 2))
    searcher.walk(CHAIN, setting)
    with vector_index(*PASSAGES[1:]) as other:
        searcher._real = other
        with pytest.raises(BenchError, match="The agent walks another way from step 1 on"):
            searcher.audit(CHAIN, setting)


def test_a_rejected_query_costs_no_retrieved_tokens(index: Index) -> None:
    chain = Chain("q", "?", (Link("***", "birth", {"person.1": ("Oslo",)}),))
    (hop,) = Searcher(index, "logical", "full").walk(chain, Setting("logical", (1, 0, 2)))
    assert hop.refused == 2
    assert hop.failed_tokens > 0
    assert hop.shown  # by the search for its words


# As a model


def test_the_model_knows_no_question_but_its_own() -> None:
    model = GoldChainModel({}, Setting("logical", (0, 1, 2)))
    with pytest.raises(ModelReplyError) as raised:
        model.reply(ModelRequest((Message("user", "?"),), question_id="other"))
    assert str(raised.value) == (
        "The gold-chain agent does not know the chain of this question.\n"
        "Where: question other\n"
        "Allowed: one of 0 questions"
    )


def test_a_history_of_another_policy_is_rejected(index: Index) -> None:
    settings = [Setting("logical", order) for order in ((0, 1, 2), (1, 0, 2))]
    first, second = (GoldChainModel({"q": CHAIN}, setting) for setting in settings)
    agent = Agent(index, preset_of("logical", "full"), first)
    state = agent.start(CHAIN.question, "q")
    next(agent._steps(state))
    with pytest.raises(ModelReplyError, match="The history is not of this policy"):
        second.reply(ModelRequest(tuple(state.messages), agent.calls.schemas, "q"))
    assert first.fingerprint != second.fingerprint


def test_the_last_reply_states_how_many_hops_were_found(index: Index) -> None:
    agent = Agent(
        index,
        preset_of("keyword", "full"),
        GoldChainModel({"q": CHAIN}, Setting("keyword", (0, 1, 2))),
    )
    record = agent.ask(CHAIN.question, "q")
    assert record.answer == "2 of 2 hops were found."
    assert record.status == "answered"


# Evidence


def test_evidence_is_the_sentences_with_the_answer_or_else_the_whole_passage() -> None:
    person = PASSAGES[1]
    assert telling(person, "OSLO") == ("Her place of birth was in Oslo.",)
    assert telling(person, "Os") == (person.content.strip(),)  # whole words


def test_evidence_is_found_in_the_current_place_of_a_passage() -> None:
    text = "\n\n".join(f"{passage.title}\n{passage.content}" for passage in PASSAGES[:2])
    packed = chunk(0, "packed-1", "", text)
    sentences = ("Her place of birth was in Oslo.",)
    assert evidence_of("Oslo", PASSAGES[1:2], {"person.1": PASSAGES[1]}) == {"person.1": sentences}
    assert evidence_of("Oslo", PASSAGES[1:2], {"packed-1.1": packed}) == {"packed-1.1": sentences}
    assert evidence_of("Oslo", PASSAGES[1:2], {"film.1": PASSAGES[0]}) == {}
    assert evidence_of("Oslo", [], {}) == {}


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
        {"id": f"q{at}", "question": CHAIN.question, "answer": "Oslo", "type": "two",
         "evidence": chain}
        for at, chain in enumerate(chains)
    ]  # fmt: skip
    (data / "questions.jsonl").write_text("\n".join(map(json.dumps, questions)))
    return Folders(tmp_path / "data", tmp_path / "kept", tmp_path / "work")


def suite(**changes: object) -> GoldChain:
    defaults: dict[str, object] = {
        "kind": "gold_chain",
        "sets": ("towns",),
        "passages": ("published", "packed 60"),
        "interfaces": INTERFACES,
        "orders": ("Q1 Q2 Q3", "Q3 Q1 Q2"),
        "names": ("surface", "dropped"),
        "encoder": "hashing:32",
    }
    return GoldChain.model_validate({**defaults, **changes})


def test_an_experiment_measures_every_cell_with_every_question(folders: Folders) -> None:
    experiment = GoldChainExperiment(suite(), folders)
    assert len(experiment.keys) == 2 * 6 * 2 * 2
    try:
        for key in experiment.keys:
            fingerprints = experiment.fingerprints(key)
            assert fingerprints["policy"] == POLICY_VERSION
            rows = {row.question_id: row for row in experiment.measure(key)}
            assert list(rows) == ["q0", "q1", "q2"]
            assert rows["q2"].details["unresolved"]
            assert rows["q2"].values["TokensToEvidence"] == 8_000
            assert rows["q0"].details["half"] in ("development", "test")
            if key["names"] == "surface" and key["passages"] == "published":
                assert rows["q0"].values["FullEvidence"] == 1
    finally:
        experiment.close()


def test_options_that_an_interface_lacks_are_no_condition(folders: Folders) -> None:
    passages = ("published", "packed 60", "packed 60 untitled")
    experiment = GoldChainExperiment(
        suite(title=("off", "on"), reply=REPLIES, passages=passages), folders
    )
    keys = experiment.keys
    titled = {key["interface"] for key in keys if key["title"] == "on"}
    assert titled == {"logical", "no operators", "sentence"}
    assert "packed 60 untitled" not in {key["passages"] for key in keys if key["title"] == "on"}
    snippets = {key["interface"] for key in keys if key["reply"] == "snippets"}
    assert snippets == set(INTERFACES) - {"hybrid"}


def test_unknown_levels_are_named(folders: Folders) -> None:
    with pytest.raises(BenchError) as raised:
        GoldChainExperiment(suite(names=("nicknames",)), folders)
    assert str(raised.value) == (
        '"nicknames" is not a level of names.\nWhere: the suite\n'
        "Allowed: canonical, surface, dropped"
    )


def test_questions_without_a_chain_are_rejected(folders: Folders) -> None:
    path = folders.data / "towns" / "questions.jsonl"
    facts = {"id": "h", "question": "?", "answer": "x", "supporting_facts": [["Oslo", 0]]}
    path.write_text(json.dumps(facts))
    with pytest.raises(BenchError) as raised:
        GoldChainExperiment(suite(), folders)
    assert str(raised.value) == (
        '1 questions name no chain of facts, the first of them "h".\n'
        "Where: towns\n"
        "Allowed: questions with a chain: 2WikiMultiHopQA, MuSiQue\n"
        "Do: Leave the data set out; python -m bench retrieval measures single queries."
    )

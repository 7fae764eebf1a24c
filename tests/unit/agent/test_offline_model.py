"""The offline model over the sample corpus: its queries, its answers and their wording."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

import orjson
import pytest

from arag_search.agent.loop import Agent
from arag_search.agent.models.base import Message, ModelReply, ModelRequest, ToolCall
from arag_search.agent.models.offline import RULES, OfflineModel
from arag_search.agent.presets import load_preset
from arag_search.agent.record import Record
from arag_search.corpus import Chunk, ordinal_of
from arag_search.errors import ArgumentError
from arag_search.evaluation.text_match import exact_match
from arag_search.search.index import Index
from arag_search.tools.logical_search import LogicalSearch
from index_jobs.cutting.sentences import sentence_ends
from tests.support.oracle.engine import MemoryEngine

SAMPLE = files("arag_search") / "sample"
QUESTIONS: dict[str, Mapping[str, Any]] = {
    question["id"]: question
    for question in map(orjson.loads, (SAMPLE / "questions.jsonl").read_bytes().splitlines())
}
BORN_EARLIER = "Who was born earlier, Domenico Scarlatti or Pietro Metastasio?"


@pytest.fixture(scope="module", name="index")
def fixture_index() -> Iterator[Index]:
    chunks: list[Chunk] = []
    for number, line in enumerate((SAMPLE / "corpus.jsonl").read_bytes().splitlines()):
        document = orjson.loads(line)
        doc_id, text = document["id"], document["text"]
        ends = tuple(sentence_ends(text))
        place = ordinal_of(0, number, 0)
        chunks.append(Chunk(f"{doc_id}.1", doc_id, document["title"], text, 1, 1, place, ends, {}))
    with Index(MemoryEngine(chunks), "memory") as index:
        yield index


def ask(index: Index, question: str, *without: str, preset: str = "logical_read") -> Record:
    return Agent(index, load_preset(preset), OfflineModel(frozenset(without))).ask(question)


def request(*messages: Message, index: Index | None = None) -> ModelRequest:
    tools = () if index is None else (LogicalSearch(index).openai_schema(),)
    return ModelRequest(messages, tools)


def query_of(reply: ModelReply) -> str:
    (call,) = reply.tool_calls
    return json.loads(call.arguments)["query"]


@pytest.mark.parametrize("number", ["s01", "s03", "s04", "s06", "s11", "s12"])
def test_the_model_answers_sample_questions_from_shown_passages(index: Index, number: str) -> None:
    question = QUESTIONS[number]

    record = ask(index, question["question"])

    assert exact_match(record.answer_short, [question["answer"], *question["answer_aliases"]])
    assert record.status == "answered"
    assert record.cited_ids
    assert not record.wrong_ids
    assert record.total_retrieved_tokens < 1_200


def test_every_sample_question_gets_an_answer_or_a_refusal(index: Index) -> None:
    for question in QUESTIONS.values():
        record = ask(index, question["question"])

        assert record.status == "answered", question["id"]
        assert record.answer_short, question["id"]
        assert all(step.status != "error" for step in record.trajectory), question["id"]


def test_the_model_follows_a_relation_and_cites_the_passages_on_the_way(index: Index) -> None:
    record = ask(index, QUESTIONS["s06"]["question"])

    queries = [step.tool_input["query"] for step in record.trajectory if "query" in step.tool_input]
    assert queries == [
        'title:"Brooklyn Bridge"^4 OR ("Brooklyn Bridge" AND (designed OR designer OR design))',
        'title:"John A. Roebling"^4 OR ("John A. Roebling" AND (born OR birthplace OR native))',
    ]
    assert record.answer == (
        "Answer: Mühlhausen\n"
        "Explanation: designer of Brooklyn Bridge: John A. Roebling; "
        "birth place of John A. Roebling: Mühlhausen.\n"
        "Sources: brooklyn-bridge.1, john-roebling.1"
    )


def test_without_the_bridge_rule_the_model_searches_only_for_the_first_name(index: Index) -> None:
    record = ask(index, QUESTIONS["s06"]["question"], "bridge")

    assert "Roebling" not in json.dumps([step.tool_input for step in record.trajectory])
    assert record.answer_short != "Mühlhausen"


def test_a_comparison_searches_for_both_names_but_only_for_one_without_the_rule(
    index: Index,
) -> None:
    unrestricted = ask(index, BORN_EARLIER)
    restricted = ask(index, BORN_EARLIER, "both", "words")

    assert [step.tool_name for step in unrestricted.trajectory] == ["logical_search"] * 2
    assert unrestricted.answer_short == "Domenico Scarlatti"
    assert len(restricted.trajectory) == 1
    assert restricted.answer_short == "not found in the corpus"


def test_a_name_without_hits_is_searched_for_by_its_words(index: Index) -> None:
    question = "Where was Vivaldi Lucio Antonio born?"

    widened = ask(index, question)
    restricted = ask(index, question, "widen", "words")

    assert [step.tool_input["query"] for step in widened.trajectory][1] == (
        "Vivaldi AND Lucio AND Antonio"
    )
    assert widened.answer_short
    assert [step.status for step in restricted.trajectory] == ["empty"]


def test_an_answer_that_the_corpus_lacks_is_not_guessed(index: Index) -> None:
    record = ask(index, "When did Xanthippe Quuxley die?")

    assert record.answer_short == "not found in the corpus"
    assert record.cited_ids == ()


def test_without_tools_the_model_answers_from_passages_shown_before(index: Index) -> None:
    model = OfflineModel()
    first = model.reply(request(Message("user", BORN_EARLIER), index=index))
    (call,) = first.tool_calls
    reply_text = LogicalSearch(index).run(json.loads(call.arguments)).text
    history = (
        Message("system", "Answer questions."),
        Message("user", BORN_EARLIER),
        Message("assistant", "", (call,)),
        Message("tool", reply_text, (), call.id),
    )

    second = model.reply(request(*history, index=index))
    forced = model.reply(request(*history, Message("user", "There are no more tool calls.")))

    assert "Metastasio" in query_of(second)
    assert forced.tool_calls == ()
    assert forced.text.startswith("Answer: not found in the corpus\n")


def test_the_same_request_gets_the_same_reply_from_any_model(index: Index) -> None:
    question = request(Message("user", BORN_EARLIER), index=index)

    assert OfflineModel().reply(question) == OfflineModel().reply(question)


def test_a_result_that_is_an_error_or_a_nudge_does_not_stop_the_model(index: Index) -> None:
    call = ToolCall("1", "logical_search", "{}")
    for text in ("Tool not run: 1 problem.", "", "[", "[a] \n[b]", "0 of 0 passages for x"):
        history = (
            Message("user", BORN_EARLIER),
            Message("assistant", "", (call,)),
            Message("tool", text, (), "1"),
        )

        assert OfflineModel().reply(request(*history, index=index)).tool_calls, text


@pytest.mark.parametrize(
    "question", ["?", "or", "Who?", '"" or ""', "Is A or B", 'a\\b:(c) "d* AND']
)
def test_odd_questions_end_without_a_rejected_query(index: Index, question: str) -> None:
    record = ask(index, question)

    assert record.status == "answered"
    assert all(step.status != "error" for step in record.trajectory)


@pytest.mark.parametrize(
    "preset", ["logicalrag", "logicalrag_no_operators", "logicalrag_syntax_only"]
)
def test_every_preset_with_logical_search_is_served(index: Index, preset: str) -> None:
    record = ask(index, BORN_EARLIER, preset=preset)

    assert record.answer_short == "Domenico Scarlatti"
    assert {step.tool_name for step in record.trajectory} == {"logical_search"}
    assert {step.status for step in record.trajectory} == {"ok"}


def test_an_unknown_rule_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(ArgumentError) as caught:
        OfflineModel(frozenset({"luck"}))

    assert str(caught.value) == f"OfflineModel has no rule luck.\nAllowed: {', '.join(RULES)}"


def test_the_fingerprint_depends_on_the_rules_alone() -> None:
    unrestricted, restricted = OfflineModel(), OfflineModel(frozenset({"read"}))

    assert unrestricted.fingerprint == OfflineModel().fingerprint
    assert unrestricted.fingerprint != restricted.fingerprint
    assert (unrestricted.name, restricted.name) == ("offline", "offline -read")


OTHER_THAN = "Which priests other than Antonio Vivaldi taught the violin in Venice?"


def test_what_a_question_excludes_is_demoted_and_not_the_answer(index: Index) -> None:
    record = ask(index, OTHER_THAN)

    queries = [step.tool_input["query"] for step in record.trajectory if "query" in step.tool_input]
    assert queries
    assert all(query.endswith(') DEMOTE "Antonio Vivaldi"') for query in queries)
    assert record.answer_short != "Antonio Vivaldi"
    assert all(step.status != "error" for step in record.trajectory)


@pytest.mark.parametrize(
    ("preset", "without"),
    [
        ("logical_read", ("exclusions",)),
        ("logicalrag", ()),  # reproduces a paper, so that DEMOTE is a word in it
        ("logicalrag_no_operators", ()),
    ],
)
def test_nothing_is_demoted_without_the_rule_or_an_operator_for_it(
    index: Index, preset: str, without: tuple[str, ...]
) -> None:
    record = ask(index, OTHER_THAN, *without, preset=preset)

    assert record.trajectory
    assert "DEMOTE" not in json.dumps([step.tool_input for step in record.trajectory])

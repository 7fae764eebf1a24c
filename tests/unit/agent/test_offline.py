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
from arag_search.agent.models.offline import OfflineModel
from arag_search.agent.record import Record
from arag_search.corpus import Chunk, ordinal_of
from arag_search.search.index import Index
from arag_search.tools.passages.logical import LogicalSearch
from arag_search.tools.preset_files import load_preset
from index_jobs.cutting.sentences import sentence_ends
from tests.support.examples import some_of
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
        ordinal = ordinal_of(0, number, 0)
        chunks.append(
            Chunk(f"{doc_id}.1", doc_id, document["title"], text, 1, 1, ordinal, ends, {})
        )
    with Index(MemoryEngine(chunks), "memory") as index:
        yield index


def ask(index: Index, question: str, preset: str = "logical_read") -> Record:
    return Agent(index, load_preset(preset), OfflineModel()).ask(question)


def request(*messages: Message, index: Index | None = None) -> ModelRequest:
    tools = () if index is None else (LogicalSearch(index).openai_schema(),)
    return ModelRequest(messages, tools)


def query_of(reply: ModelReply) -> str:
    (call,) = reply.tool_calls
    return json.loads(call.arguments)["query"]


@pytest.mark.parametrize("number", ["s01", "s03", "s04", "s06", "s07", "s08", "s09", "s10"])
def test_the_model_answers_questions_of_two_steps_with_a_sentence_and_its_passage(
    index: Index, number: str
) -> None:
    question = QUESTIONS[number]

    record = ask(index, question["question"])

    assert question["answer"] in record.answer_short
    assert (record.status, record.citation) == ("answered", "cited")
    titles = {span.title for step in record.trajectory for span in step.passages}
    assert titles.issuperset(question["supporting_titles"])
    assert record.total_retrieved_tokens < 1_200


@pytest.mark.parametrize(
    "preset",
    [
        *("logical_read", "logicalrag_paper", "arag_without_semantic", "agentic_rag"),
        "agentic_switched",
        *some_of(("single_shot_search", "logicalrag", "logicalrag_no_operators"), 1),
        *some_of(("logicalrag_syntax_only", "agentic_rag_single_query", "agentic_logical"), 1),
    ],
)
def test_every_question_is_answered_with_every_preset(index: Index, preset: str) -> None:
    for question in QUESTIONS.values():
        record = ask(index, question["question"], preset)

        assert (record.status, record.citation) == ("answered", "cited"), question["id"]
        assert all(step.status != "error" for step in record.trajectory), question["id"]


def test_the_model_searches_for_names_then_for_those_in_the_best_passage(index: Index) -> None:
    record = ask(index, "In which town was the designer of the Fram born?")

    queries = [step.tool_input["query"] for step in record.trajectory if "query" in step.tool_input]
    assert queries[0] == 'title:"Fram"^4 OR (("Fram") AND (town OR designer OR born))'
    assert 'title:"Colin Archer"^4' in queries[1]
    assert queries[1].endswith(" AND (town OR born))")
    assert len(queries) == 2


def test_the_answer_names_the_subject_of_its_sentence_and_the_way_to_it(index: Index) -> None:
    record = ask(index, QUESTIONS["s01"]["question"])

    assert record.answer == (
        "Answer: Carlo Goldoni: In 1762 he moved to Paris, where he wrote his memoirs in French "
        "and died on 6 February 1793.\n"
        "Explanation: The sentence has most words of the question among those that its names lead "
        "to.\n"
        "Sources: goldoni.1, griselda-vivaldi.1"
    )


def test_a_span_that_no_passage_has_is_looked_for_in_its_parts(index: Index) -> None:
    record = ask(index, "Were Pierre Curie and Antonio Vivaldi born in Paris?")

    queries = [step.tool_input["query"] for step in record.trajectory if "query" in step.tool_input]
    assert [query.partition("^")[0] for query in queries[:2]] == [
        'title:"Pierre Curie"',
        'title:"Antonio Vivaldi"',
    ]


def test_a_passage_that_leaves_out_sentences_is_read(index: Index) -> None:
    record = ask(index, "Who wrote Evangeline?", "arag_without_semantic")

    assert [step.tool_name for step in record.trajectory] == ["keyword_search", "chunk_read"]
    assert record.answer_short.startswith("His long narrative poems, among them Evangeline")


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
    assert forced.text.startswith("Answer: Domenico Scarlatti was a composer")


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
    "question",
    [
        *("?", "or", "Who?", '"" or ""', "Is A or B", 'a\\b:(c) "d* AND', "Who wrote (this): AND?"),
        *("Is O’Neill's A/B NOT Bahram's?", 'Who is A "quoted" Name\\*?', "Of The And For"),
    ],
)
def test_odd_questions_end_without_a_rejected_query(index: Index, question: str) -> None:
    record = ask(index, question)

    assert record.status == "answered"
    assert all(step.status != "error" for step in record.trajectory)

"""Replies as papers have them: ids and text, and no word that helps the model to search."""

from __future__ import annotations

import json

import pytest

from arag_search.agent.loop import Agent
from arag_search.agent.models.base import ModelReply, ModelRequest, ToolCall, Usage
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.preset_files import load_preset
from arag_search.tools.tool import ReadSet, Tool
from arag_search.tools.toolbox import tools_of
from tests.support.passages import VIVALDI, chunk
from tests.support.scripted_model import ScriptedModel
from tests.support.semantic_indexes import vector_index

GRISELDA = "Griselda is an opera by Antonio Vivaldi. Its premiere was in Venice."


@pytest.fixture(scope="module", name="index")
def fixture_index() -> Index:
    return vector_index(*VIVALDI)


def tool_of(preset: str, name: str, index: Index) -> Tool:
    return tools_of(load_preset(preset), index)[name]


def test_a_keyword_counts_as_a_substring_times_its_length_and_shows_its_sentences() -> None:
    index = vector_index(
        chunk(0, "a", "", "An opera. ", "Nothing here. ", "Two operas, one operatic. "),
        chunk(1, "b", "", "The operation was long. "),
        chunk(2, "c", "", "Silence. "),
    )
    result = tool_of("arag_paper", "keyword_search", index).run({"keywords": ["OPERA"]})
    # a: 3 occurrences x 5 characters; b: 1 x 5
    assert result.text == (
        "[a.1]\nAn opera. ... Two operas, one operatic.\n[b.1]\nThe operation was long."
    )
    assert result.ids == ("a.1", "b.1")
    texts = ("An opera. ... Two operas, one operatic.", "The operation was long.")
    assert result.retrieved_tokens == sum(map(count_tokens, texts))


def test_the_arguments_are_those_of_the_papers(index: Index) -> None:
    arguments = {
        (preset, name): list(tool_of(preset, name, index).parameters["properties"])
        for preset, name in (
            ("arag_paper", "keyword_search"),
            ("arag_paper", "semantic_search"),
            ("arag_paper", "chunk_read"),
            ("arag_naive", "naive_embedding_search"),
            ("logicalrag_paper", "logical_search"),
            ("logicalrag_no_operators", "logical_search"),
            ("agentic_hybrid", "hybrid_search"),
        )
    }
    assert list(arguments.values()) == [
        ["keywords", "top_k"],
        ["query", "top_k"],
        ["chunk_ids"],
        ["query", "top_k"],
        ["query", "default_operator"],
        ["query"],
        ["query", "max_results"],
    ]


def test_keywords_are_described_with_the_limit_of_words_that_the_paper_gives(index: Index) -> None:
    for preset, is_told in (("arag_paper", True), ("arag_full", True), ("logical_read", False)):
        chosen = load_preset(preset).model_copy(update={"tools": ("keyword_search",)})
        tool = tools_of(chosen, index)["keyword_search"]
        text = tool.parameters["properties"]["keywords"]["description"]
        assert ("one to three words" in text) is is_told
        assert ("one to three words" in tool.description) is is_told


def test_a_logical_search_shows_titles_and_whole_passages_and_no_counts(index: Index) -> None:
    paper = tool_of("logicalrag_paper", "logical_search", index)
    ours = tool_of("logicalrag", "logical_search", index)
    query = {"query": "libretto AND venice AND title:griselda"}
    text = paper.run(query).text
    assert text.startswith(f"[griselda.1] Griselda (Vivaldi)\n{GRISELDA}")
    assert " passage" not in text
    assert " passage" in ours.run(query).text
    first = paper.run({"query": "vivaldi"}).ids
    assert first == ours.run({"query": "vivaldi"}).ids
    assert len(first) > 1


@pytest.mark.parametrize(
    ("query", "reply", "of_ours"),
    [
        ("zeppelin AND vivaldi", "Nothing was found.", "No passage matches"),
        ("(vivaldi AND", "Query not run: it cannot be parsed.", "Write: "),
    ],
)
def test_nothing_explains_a_search_that_fails(
    index: Index, query: str, reply: str, of_ours: str
) -> None:
    assert tool_of("logicalrag_paper", "logical_search", index).run({"query": query}).text == reply
    assert of_ours in tool_of("logicalrag", "logical_search", index).run({"query": query}).text


def test_words_are_searched_as_they_are_written(index: Index) -> None:
    paper = tool_of("logicalrag_paper", "logical_search", index)
    assert paper.run({"query": "opera"}).ids != paper.run({"query": "operas"}).ids
    assert paper.run({"query": "vivaldi PREFER venice"}).status == "ok"


def test_a_chunk_is_read_once_and_then_named_in_a_line_without_tokens(index: Index) -> None:
    read, seen = tool_of("arag_paper", "chunk_read", index), ReadSet()
    search = tool_of("arag_paper", "keyword_search", index)
    assert search.run({"keywords": ["Griselda"]}, seen).status == "ok"
    first = read.run({"chunk_ids": ["griselda.1", "none.7"]}, seen)
    assert first.text.startswith(f"[griselda.1]\n{GRISELDA}")
    assert first.text.endswith('\nUnknown: "none.7".')
    again = read.run({"chunk_ids": ["griselda.1", "vivaldi.2", "none.7"]}, seen.copy())
    assert again.text == (
        "[vivaldi.2]\nHe died in Vienna. Vivaldi's music was forgotten.\n"
        'Chunk "griselda.1" was read before.\nChunk "none.7" was read before.'
    )
    assert (again.ids, again.status) == (("vivaldi.2",), "ok")
    body = "He died in Vienna. Vivaldi's music was forgotten."
    assert again.retrieved_tokens == count_tokens(body)
    only = read.run({"chunk_ids": ["griselda.1"]}, seen)
    assert (only.text, only.retrieved_tokens, only.status) == (
        'Chunk "griselda.1" was read before.', 0, "empty",
    )  # fmt: skip
    assert read.run({"chunk_ids": ["none.9"]}, seen).status == "error"


def test_without_chunk_read_searches_show_whole_passages(index: Index) -> None:
    tool = tool_of("arag_without_chunk_read", "keyword_search", index)
    text = tool.run({"keywords": ["Griselda"], "top_k": 1}).text
    assert "..." not in text
    assert GRISELDA in text
    assert "Snippets" not in tool.description


def test_a_long_reply_keeps_its_bound_and_its_spans() -> None:
    long = chunk(0, "long", "A long one", *(f"Word {n} is here. " for n in range(400)))
    index = vector_index(long, chunk(1, "b", "Short", "A word. "))
    preset = load_preset("logicalrag_paper").model_copy(update={"max_result_tokens": 300})
    result = tools_of(preset, index)["logical_search"].run({"query": "word"})
    assert count_tokens(result.text) <= 300
    assert {span.id for span in result.passages} == {*result.ids}
    for span in result.passages:
        assert result.text.startswith(f"[{span.id}]", span.start)
        assert span.text_in(result.text).startswith(("Word 0 is here.", "A word."))


def test_the_loop_says_nothing_of_calls_left_and_asks_for_no_form_of_the_answer(
    index: Index,
) -> None:
    def script(request: ModelRequest) -> ModelReply:
        usage = Usage(1, 1, "endpoint")
        if request.tools and request.tool_choice is None:
            call = ToolCall("1", "keyword_search", json.dumps({"keywords": ["Vivaldi"]}))
            return ModelReply("", (call,), usage=usage)
        return ModelReply("It was Carlo Goldoni [griselda.1].\n\nHe revised it.", usage=usage)

    model = ScriptedModel(script)
    preset = load_preset("arag_paper").model_copy(update={"max_loops": 2})
    record = Agent(index, preset, model).ask("Who revised Griselda?")
    assert record.status == "forced"
    assert (record.explanation, record.cited_ids) == ("He revised it.", ("griselda.1",))
    assert not any("left" in step.tool_output for step in record.trajectory)
    assert len({step.tool_output for step in record.trajectory}) == 1
    forced = model.requests[-1].messages[-1].content
    assert "Explanation" not in forced

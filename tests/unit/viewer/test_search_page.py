"""What the page to search by hand shows of an index in memory."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any, cast

import pytest

from arag_search.errors import ArgumentError, UnavailableError
from arag_search.mcp_server.folders import Coming, ServedFolder
from arag_search.query.problems import QueryError
from arag_search.tools.preset_files import load_preset, preset_yaml
from arag_search.tools.toolbox import Toolbox
from arag_search.viewer.search_page import MAX_SHOWN_CHARACTERS, Asked, Call, SearchPage
from tests.support.passages import VIVALDI, chunk, index_of

PRESETS = ("logical_read", "arag_full", "arag_without_semantic", "logicalrag_paper", "agentic_rag",
           "agentic_rag_lexical_find", "connector", "direct_answer")  # fmt: skip


def page_of(*chunks: Any, scope: str | None = None, filter: str | None = None) -> SearchPage:
    index = index_of(*(chunks or VIVALDI), scope=scope)
    return SearchPage(index, "my index", filter, {name: load_preset(name) for name in PRESETS})


def call(query: str, tool: str = "logical_read/logical_search", **arguments: object) -> Call:
    preset, name = tool.split("/")
    return Call(preset=preset, tool=name, query=query, arguments=arguments)


def answer(page: SearchPage, question: str, of: Call, **more: Any) -> dict[str, Any]:
    return page.answer(question, Asked(call=of, **more))


def test_the_menu_has_the_searches_that_the_index_can_serve() -> None:
    tools = [f"{tool['preset']}/{tool['tool']}" for tool in page_of().about()["tools"]]
    assert tools == [
        "logical_read/logical_search",
        "arag_without_semantic/keyword_search",
        "logicalrag_paper/logical_search",
        "agentic_rag/search",
    ]
    with pytest.raises(ArgumentError, match=r"no tool .chunk_read. of a preset .logical_read."):
        answer(page_of(), "call", call("x", "logical_read/chunk_read"))


def test_a_reply_is_that_of_the_toolbox_whatever_the_tool() -> None:
    page, index = page_of(), index_of(*VIVALDI)
    for preset, tool, arguments in (
        ("logical_read", "logical_search", {"query": "vivaldi"}),
        ("arag_without_semantic", "keyword_search", {"keywords": ["vivaldi"]}),
        ("agentic_rag", "search", {"queries": ["vivaldi"]}),
    ):
        shown = answer(page, "call", call("vivaldi", f"{preset}/{tool}"))
        result = Toolbox(index, preset).call(tool, arguments)
        assert (shown["text"], shown["tokens"]) == (result.text, result.tokens)


def test_two_searches_do_not_know_of_each_other() -> None:
    page = page_of()
    first = answer(page, "call", call("vivaldi"))
    assert answer(page, "call", call("vivaldi"))["text"] == first["text"]


def test_keywords_are_phrases_in_quotes_and_words() -> None:
    asked = call('"antonio vivaldi" opera, rome', "arag_without_semantic/keyword_search")
    pieces = answer(page_of(), "read", asked)["pieces"]
    assert [text for kind, text in pieces if kind == "phrase"] == [
        '"antonio vivaldi"', '"opera"', '"rome"'
    ]  # fmt: skip


def test_an_empty_query_is_no_problem_while_it_is_typed() -> None:
    assert answer(page_of(), "read", call(" "))["problems"] == []
    assert answer(page_of(), "call", call(" "))["status"] == "error"


def test_a_condition_is_added_to_the_whole_query_as_its_tool_reads_it() -> None:
    page = page_of()
    added = answer(page, "add", call("vivaldi OR rome"), field="lang", value="en")
    assert added == {"query": "((vivaldi OR rome) AND lang:en)"}
    added = answer(page, "add", call(""), field="year", value=("1678", "1700"))
    assert added == {"query": "year:[1678 TO 1700]"}
    of_paper = call("vivaldi rome", "logicalrag_paper/logical_search", default_operator="AND")
    assert answer(page, "add", of_paper, field="lang", value="en") == {
        "query": "(vivaldi AND rome AND lang:en)"
    }
    documents = call("vivaldi", "agentic_rag/search", filter="year:1700")
    assert answer(page, "add", documents, field="lang", value="a b") == {
        "argument": "filter", "value": '(year:1700) AND lang:"a b"'
    }  # fmt: skip
    keywords = call("vivaldi", "arag_without_semantic/keyword_search")
    with pytest.raises(ArgumentError, match="takes no condition"):
        answer(page, "add", keywords, field="lang", value="en")
    with pytest.raises(QueryError):
        answer(page, "add", call("vivaldi AND ("), field="lang", value="en")


def test_the_same_call_is_given_for_other_places_with_the_filter() -> None:
    page = page_of(scope="lang:en", filter="lang:en")
    commands = answer(page, "call", call("it's -x", show="titles", after="2"))["commands"]
    assert shlex.split(commands["The query on the command line"]) == [
        "arag-search", "search", "my index", "--show", "titles", "--top-k", "200",
        "--offset", "2", "--filter", "(lang:en)", "--", "it's -x",
    ]  # fmt: skip
    further = answer(page, "call", call("opera", show="titles", after="[vivaldi.1]"))["commands"]
    assert " --after vivaldi.1 " in further["The query on the command line"]
    assert "open_index('my index', filter='lang:en')" in commands["The call in Python"]
    compile(commands["The call in Python"], "python", "exec")
    of_paper = answer(page, "call", call("opera", "logicalrag_paper/logical_search"))
    assert [*of_paper["commands"]] == ["The call for MCP", "The call in Python"]


def test_a_preset_of_a_file_comes_first_under_its_path_and_replies_as_it_says(
    tmp_path: Path,
) -> None:
    file = tmp_path / "short.yaml"
    text = preset_yaml(load_preset("logical_read"))
    file.write_text(text.replace("max_result_tokens: 4000", "max_result_tokens: 200"))
    presets = {str(file): load_preset(file), "logical_read": load_preset("logical_read")}
    long = chunk(0, "a", "", *[f"Opera number {n} was given in Venice. " for n in range(99)])
    page = SearchPage(index_of(long), "memory", None, presets)
    assert [tool["preset"] for tool in page.about()["tools"]] == [str(file), "logical_read"]
    texts = "opera OR venice OR number"
    shown = answer(page, "call", Call(preset=str(file), tool="logical_search", query=texts))
    assert shown["tokens"] <= 200
    assert f"Toolbox(index, {str(file)!r})" in shown["commands"]["The call in Python"]


def test_parts_are_counted_as_the_tool_reads_them() -> None:
    page = page_of(chunk(0, "a", "", "A film. "), chunk(1, "b", "", "Two films. "))
    ours = answer(page, "why", call("film AND films"))["parts"]
    assert [part.passages for part in ours] == [2, 2]
    of_paper = answer(page, "why", call("film OR films", "logicalrag_paper/logical_search"))
    assert [part.passages for part in of_paper["parts"]] == [1, 1]
    assert len(of_paper["hits"]) == 2
    assert "explanation" in of_paper["hits"][0]


def test_long_passages_are_cut_and_their_marks_are_those_of_a_browser() -> None:
    text = f"\U0001d54f opera {'x' * MAX_SHOWN_CHARACTERS} opera"
    hit = answer(page_of(chunk(0, "a", "", text)), "call", call("opera"))["hits"][0]
    assert hit["left_out"] == len(text) - MAX_SHOWN_CHARACTERS
    assert hit["marks"] == [3, 8]


def test_a_document_outside_of_the_scope_or_gone_is_not_opened() -> None:
    page = page_of(scope="year:1678")
    with pytest.raises(ArgumentError, match=r"no document .griselda. any more"):
        answer(page, "open", call("vivaldi"), document="griselda")


def test_the_reader_goes_to_what_matches_and_knows_all_matches() -> None:
    text = "\n".join([f"Line {n}." for n in range(500)]) + "\nAn opera.\nThe end.\nOpera again."
    page = page_of(chunk(0, "a", "", text))
    read = answer(page, "open", call("opera"), passage="a.1")
    assert read["matches"] == [500, 502]
    assert (read["count"], len(read["lines"])) == (503, 200)
    again = answer(page, "open", call("opera"), document="a", line=500)
    line = again["lines"][500 - again["first"]]
    assert (line["name"], line["text"], line["marks"]) == ("501", "An opera.", [3, 8])


def test_what_cannot_be_counted_is_said_and_not_counted_otherwise() -> None:
    page = page_of()
    for question in ("why", "fields"):
        with pytest.raises(ArgumentError, match=r"within words"):
            answer(page, question, call("viv", "arag_without_semantic/keyword_search"))
        with pytest.raises(ArgumentError, match=r"several searches"):
            answer(page, question, call("vivaldi", "agentic_rag/search"))
        with pytest.raises(ArgumentError, match=r"Query not run: 1 problem"):
            answer(page, question, call("vivaldi AND"))
    assert answer(page, "fields", call(""))["passages"] == len(VIVALDI)


def test_fields_are_those_of_the_passages_that_the_tool_finds() -> None:
    page = page_of(chunk(0, "a", "", "A film. "), chunk(1, "b", "", "Two films. "))
    for tool, passages in (("logical_read", 2), ("logicalrag_paper", 1)):
        asked = call("film", f"{tool}/logical_search")
        assert answer(page, "call", asked)["total"] == passages
        assert answer(page, "fields", asked)["passages"] == passages


def test_while_the_index_of_a_folder_is_built_the_page_says_how_far_it_is() -> None:
    class Building:
        def compare(self) -> None: ...

        def withdraw(self, error: Exception) -> bool:
            return False

        def coming(self) -> Coming:
            return Coming("The index is being built again: 3 of 9 files so far.")

    folder = cast("ServedFolder", Building())
    page = SearchPage(
        index_of(*VIVALDI), "notes", None, {"logical_read": load_preset("logical_read")}, folder
    )
    with pytest.raises(UnavailableError, match="3 of 9 files"):
        answer(page, "call", call("vivaldi"))

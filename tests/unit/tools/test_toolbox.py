"""A toolbox: the calls of one conversation, as a model writes them."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

import arag_search
from arag_search import Toolbox
from arag_search.errors import ConfigError, EngineError, IndexClosedError
from arag_search.search.following import FollowedState, Follower
from arag_search.search.index import Index
from arag_search.search.state import IndexState
from arag_search.tools.tool import ReadSet
from arag_search.tools.toolbox import NOTHING_NEW
from tests.support.oracle.engine import MemoryEngine
from tests.support.passages import VIVALDI, chunk

CANALS = [chunk(1, "canals", "", *(f"Sentence {n} of word{n}. " + "la " * 40 for n in range(4)))]
OPERA = '{"query": "opera"}'


@pytest.fixture(name="index")
def an_index() -> Index:
    return Index(MemoryEngine(list(VIVALDI)), "memory")


def test_a_call_takes_a_json_text_or_a_mapping(index: Index) -> None:
    result = Toolbox(index, "logical_read").call("logical_search", OPERA)
    assert (result.status, result.tokens > 0) == ("ok", True)
    assert [span.text_in(result.text) for span in result.passages]
    assert Toolbox(index).call("logical_search", {"query": "opera"}) == result
    assert Toolbox(index).call("functions.logical_search", OPERA) == result
    assert asyncio.run(Toolbox(index).acall("logical_search", OPERA)) == result


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("find_all", OPERA, 'there is no tool "find_all". Tools: logical_search, chunk_read.'),
        ("logical_search", '{"query": ', "are not valid JSON"),
        ("logical_search", "[" * 60 + "]" * 60, "nested too deeply"),
        ("logical_search", "[]", "Allowed: a JSON object of query"),
        ("logical_search", {"wanted": "opera"}, 'argument "query" is missing.'),
        ("logical_search", {"query": "opera AND ("}, "Query not run"),
        ("chunk_read", {"chunk_ids": ["no.1"]}, "no.1"),
        ("logical_search", {"query": "\ud800"}, ""),
    ],
)
def test_a_mistake_of_a_model_is_a_result(
    index: Index, name: str, arguments: str | dict[str, object], says: str
) -> None:
    result = Toolbox(index).call(name, arguments)
    assert (result.status != "ok", says in result.text) == (True, True), result.text


def test_what_a_model_cannot_correct_is_raised_and_shows_nothing(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = Toolbox(index)
    with monkeypatch.context() as patched:
        patched.setattr(MemoryEngine, "search", _fails)
        with pytest.raises(EngineError):
            tools.call("logical_search", OPERA)
    assert tools.call("logical_search", OPERA).passages  # and is no repeated call
    index.close()
    with pytest.raises(IndexClosedError):
        tools.call("logical_search", '{"query": "vivaldi"}')


def _fails(*_: object, **__: object) -> object:
    raise EngineError("The engine is gone.")


def test_a_conversation_remembers_what_was_shown_and_a_fork_goes_on_from_there(
    index: Index,
) -> None:
    tools = Toolbox(index)
    first = tools.call("logical_search", OPERA)
    fork = tools.fork()
    for own in (tools, fork):
        assert "was made before, in step 1" in own.call("logical_search", OPERA).text
    assert tools.call("chunk_read", {"chunk_ids": [first.ids[0]]}).retrieved_tokens
    assert (fork.shown.step, tools.shown.step) == (2, 3)
    results = [tools.call("find_all", OPERA).text for _ in range(3)]
    assert [NOTHING_NEW in text for text in results] == [False, False, True]


@pytest.mark.parametrize(
    "name", ["Albinoni", '"no such name"', "title:albinoni", "Tomaso Albinoni"]
)
def test_a_search_for_a_name_alone_is_none_of_three_that_end_a_search(
    index: Index, name: str
) -> None:
    tools = Toolbox(index)
    queries = ["none", "nobody", name, "nothing", f"{name} AND gone", "nowhere"]
    texts = [tools.call("logical_search", {"query": query}).text for query in queries]
    assert [NOTHING_NEW in text for text in texts] == [False] * 5 + [True]


def test_further_pages_of_a_conversation_are_of_the_state_of_the_first() -> None:
    passages = list(VIVALDI)

    def open_newest() -> FollowedState[IndexState]:
        engine = MemoryEngine(mine := list(passages))
        return FollowedState(Index(engine, "memory").state, lambda: mine != passages, engine.close)

    tools, shown = Toolbox(Index.over(Follower(open_newest))), ReadSet()
    other = tools.in_conversation(ReadSet())
    asked = {"query": "vivaldi OR goldoni OR opera", "top_k": 1}
    for of in (tools.in_conversation(shown), other):
        assert " of 4 passages" in of.call("logical_search", asked).text
    del passages[1:]
    assert " of 4" in tools.in_conversation(shown).call("logical_search", asked | {"after": 1}).text
    assert "1 of 1 passage" in other.call("logical_search", {**asked, "query": "vivaldi"}).text


def test_each_of_many_conversations_at_once_is_as_one_alone(index: Index) -> None:
    queries = ["opera", "vivaldi", "venice"]

    def talk(_: int) -> list[str]:
        tools = Toolbox(index)
        return [tools.call("logical_search", {"query": query}).text for query in queries]

    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(talk, range(24)))
    assert texts == [talk(0)] * 24


def test_the_schemas_differ_by_what_each_endpoint_takes(index: Index) -> None:
    tools = Toolbox(index)
    chat, responses, anthropic = tools.schemas, tools.responses_schemas, tools.anthropic_schemas
    for nested, flat, own in zip(chat, responses, anthropic, strict=True):
        function = {key: flat[key] for key in nested["function"]}
        assert nested == {"type": "function", "function": function}
        assert flat == {"type": "function", "strict": False} | function
        assert own == {
            "name": flat["name"],
            "description": flat["description"],
            "input_schema": flat["parameters"],
        }
    assert [tool["name"] for tool in anthropic] == ["logical_search", "chunk_read"]
    json.dumps([chat, responses, anthropic])


@pytest.mark.parametrize("preset", ["direct_answer", "no_such_preset"])
def test_a_preset_without_tools_is_refused(index: Index, preset: str) -> None:
    with pytest.raises(ConfigError, match=preset):
        Toolbox(index, preset)


def test_tools_that_change_the_conversation_are_left_to_its_owner(index: Index) -> None:
    assert list(Toolbox(index, "agentic_rag").tools) == ["search", "find", "open"]
    assert list(Toolbox(index, "connector").tools) == ["search", "fetch"]


def test_two_users_have_parts_of_their_own_and_a_second_toolbox_costs_little() -> None:
    metadata = {"lang": "keyword"}
    index = Index(MemoryEngine(list(VIVALDI), metadata=metadata), "memory")
    with pytest.raises(arag_search.QueryError):
        Toolbox(index, within="nothing:x")
    tools = Toolbox(index, within={"lang": "en"})
    made = tools.tools
    assert Toolbox(index, "logical_read", within={"lang": "en"}).tools is made
    assert Toolbox(index, within={"lang": "de"}).tools is not made
    assert Toolbox(index).tools is not made


def test_a_sentence_that_was_not_shown_is_something_new() -> None:
    toolbox = Toolbox(Index(MemoryEngine(CANALS), "memory"), "logical_read")
    results = [toolbox.call("logical_search", {"query": f"word{n}"}) for n in range(4)]
    assert not any(result.text.endswith(NOTHING_NEW) for result in results)
    for again in ("word0 word1", "word2 word1", "word3 word2"):
        last = toolbox.call("logical_search", {"query": again})
    assert last.text.endswith(NOTHING_NEW)

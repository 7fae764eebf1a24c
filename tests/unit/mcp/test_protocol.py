"""The MCP server, as a client in the same process sees it."""

from __future__ import annotations

import gc
import re
import weakref

import anyio
import pytest
from mcp import ClientSession, MCPError, types

from arag_search.agent.prompts import system_prompt
from arag_search.mcp_server.http import IDLE_SESSION_S
from arag_search.mcp_server.messages import MAX_MESSAGE_BYTES
from arag_search.mcp_server.protocol import (
    LIST_LIFETIME_MS,
    MAX_SESSIONS,
    RETRY_AFTER_S,
    UNAVAILABLE,
    Session,
)
from arag_search.mcp_server.workers import AT_ONCE, TIMEOUT_S, WAITING, Workers
from arag_search.query.filters import parse_filter
from arag_search.tokens import count_tokens
from arag_search.tools.preset_files import changed_preset, load_preset
from tests.support.guides import guide_text
from tests.support.mcp_servers import (
    DOWN,
    PRESET,
    LocalServer,
    MoodyEngine,
    cancelled_call,
    text_of,
    until,
)
from tests.support.oracle.engine import MemoryEngine
from tests.support.passages import SCHEMA, VIVALDI, chunk
from tests.support.plans import scoped

READ = {"chunk_ids": ["scarlatti.1"]}
IN_FULL = "[scarlatti.1] Griselda (Scarlatti) (whole document)\n(year: 1721)\nThis opera is older."
READ_BEFORE = IN_FULL.replace("(whole document)", "(whole document, shown before)")


async def error_text(client: ClientSession, name: str, **arguments: object) -> str:
    """Call a tool and return the text of its result, which must be marked as an error."""
    result = await client.call_tool(name, arguments)
    assert result.is_error
    return text_of(result)


async def call_error(client: ClientSession, name: str, **arguments: object) -> types.ErrorData:
    """Return the protocol's error for a call."""
    with pytest.raises(MCPError) as raised:
        await client.call_tool(name, arguments)
    return raised.value.error


async def resource_error(client: ClientSession, address: str) -> types.ErrorData:
    """Return the protocol's error for an address."""
    with pytest.raises(MCPError) as raised:
        await client.read_resource(address)
    return raised.value.error


async def contents(client: ClientSession, address: str) -> str:
    (resource,) = (await client.read_resource(address)).contents
    assert isinstance(resource, types.TextResourceContents)
    assert resource.mime_type == "text/plain"
    return resource.text


# Tools


def test_the_tools_are_those_that_an_agent_with_the_preset_sees() -> None:
    served = LocalServer()

    async def talk(client: ClientSession) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["logical_search", "chunk_read"]
        for tool in tools.values():
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint is True
            assert tool.annotations.open_world_hint is False
        search_tool = tools["logical_search"]
        assert search_tool.description is not None
        assert search_tool.description.endswith(
            'Fields: year (number, 1678 to 1735), lang ("en", "it").'
        )
        assert search_tool.input_schema["required"] == ["query"]
        assert "index" not in search_tool.input_schema["properties"]
        assert all("additionalProperties" not in tool.input_schema for tool in tools.values())

    served.serve(talk)


def test_the_tools_and_the_instructions_cost_little() -> None:
    async def talk(client: ClientSession) -> None:
        tools = (await client.list_tools()).model_dump_json(by_alias=True, exclude_none=True)
        instructions = (await client.initialize()).instructions
        assert count_tokens(tools) + count_tokens(instructions or "") <= 800

    LocalServer().serve(talk)


def test_a_search_and_a_read_answer_with_text_and_with_numbers_in_the_metadata() -> None:
    async def talk(client: ClientSession) -> None:
        result = await client.call_tool("logical_search", {"query": "opera AND older"})
        assert text_of(result) == (
            "1 of 1 passage\nAlone: opera 3: also Antonio Vivaldi; "
            "Griselda (Vivaldi).\n[scarlatti.1] Griselda (Scarlatti) (whole document)\n"
            "This opera is older."
        )
        # Clients would show structured content instead of the text.
        assert result.structured_content is None
        assert result.meta is not None
        numbers = result.meta["arag_search"]
        assert (numbers["status"], numbers["ids"], numbers["total"]) == ("ok", ["scarlatti.1"], 1)
        assert text_of(await client.call_tool("chunk_read", READ)) == READ_BEFORE

    LocalServer().serve(talk)


def test_tools_results_and_resources_tell_a_client_that_their_text_is_foreign() -> None:
    async def talk(client: ClientSession) -> None:
        metas = [tool.meta for tool in (await client.list_tools()).tools]
        metas.append((await client.call_tool("chunk_read", READ)).meta)
        read = await client.read_resource("arag://memory/chunk/scarlatti.1")
        metas += [content.meta for content in read.contents]
        assert [(meta or {}).get("untrustedContentHint") for meta in metas] == [True] * 4

    LocalServer().serve(talk)


def test_two_sessions_have_separate_read_sets() -> None:
    served = LocalServer()

    async def main() -> None:
        async with served.client() as first, served.client() as second:
            assert text_of(await first.call_tool("chunk_read", READ)) == IN_FULL
            assert text_of(await first.call_tool("chunk_read", READ)) == READ_BEFORE
            assert text_of(await second.call_tool("chunk_read", READ)) == IN_FULL

    served.run(main)


def test_what_only_a_client_can_have_got_wrong_is_taken_as_meant() -> None:
    async def talk(client: ClientSession) -> None:
        given = {
            "query": "opera",
            "top_k": "2",
            "sort": None,
            "offset": "",
            "toolCallId": "7",
            "x": 1,
        }
        result = await client.call_tool("logical_search", given)
        assert not result.is_error
        assert text_of(result).endswith(
            '\nNote: argument "top_k" was taken as 2.\n'
            'Note: argument "x": there is no such argument. Arguments: query, '
            "top_k, show, sort, after."
        )

    LocalServer().serve(talk)


def test_a_mistake_of_a_model_is_a_result_with_the_whole_message() -> None:
    async def talk(client: ClientSession) -> None:
        assert await error_text(client, "logical_search", query="a OR NOT opera") == (
            'Query not run: 1 problem.\n1. column 6, "NOT opera": a NOT cannot be an alternative '
            "of OR; alone it matches nearly every passage. Write AND NOT, or a space before NOT.\n"
            "Write: (a AND NOT opera)"
        )
        assert await error_text(client, "logical_search", top_k=99, tone="dry") == (
            'Tool not run: 2 problems.\n1. argument "query" is missing. Allowed: a string.\n'
            '2. argument "top_k", 99. Allowed: a whole number from 1 to 20.\n'
            'Note: argument "tone": there is no such argument. Arguments: query, '
            "top_k, show, sort, after."
        )
        assert await error_text(client, "chunk_read", chunk_ids=["gone.1"]) == (
            'No passage has the id "gone.1". Ids stand in brackets in search replies.'
        )
        assert await error_text(client, "read_chunk", chunk_ids=["gone.1"]) == (
            'No passage has the id "gone.1". Ids stand in brackets in search replies.'
        )
        assert await error_text(client, "find") == (
            'Tool not run: there is no tool "find". Tools: logical_search, chunk_read.'
        )

    LocalServer().serve(talk)


# Failures


def test_an_engine_failure_is_a_protocol_error_until_the_engine_recovers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = MoodyEngine()

    async def talk(client: ClientSession) -> None:
        engine.failure = DOWN
        error = await call_error(client, "logical_search", query="opera")
        assert error.code == UNAVAILABLE
        assert error.message == ("No node answers.\nWhere: http://127.0.0.1:9200\nDo: Start it.")
        assert error.data == {"error": "UnavailableError", "retry_after_s": RETRY_AFTER_S}
        assert (await resource_error(client, "arag://memory/chunk/page.1")).message == error.message
        engine.failure = None
        assert not (await client.call_tool("logical_search", {"query": "opera"})).is_error

    LocalServer(engine).serve(talk)
    assert "No node answers." in caplog.text


def test_a_bug_in_the_server_shows_no_traceback_to_clients(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = MoodyEngine()
    engine.failure = ZeroDivisionError("secret of the inside")

    async def talk(client: ClientSession) -> None:
        error = await call_error(client, "logical_search", query="opera")
        assert error.message.startswith("The request failed unexpectedly (ZeroDivisionError).\n")

    LocalServer(engine).serve(talk)
    assert "secret of the inside" in caplog.text


# Many calls


def test_sixteen_calls_of_the_only_client_are_all_answered_by_all_workers() -> None:
    engine = MoodyEngine()
    served = LocalServer(engine)
    texts: list[str] = []

    async def talk(client: ClientSession) -> None:
        async def ask() -> None:
            result = await client.call_tool("logical_search", {"query": "opera AND older"})
            texts.append(text_of(result))

        engine.gate.clear()
        async with anyio.create_task_group() as group:
            for _ in range(16):
                group.start_soon(ask)
            await until(lambda: served.workers.busy == 16)
            engine.gate.set()

    served.serve(talk)
    assert len(texts) == 16
    assert len(set(texts)) == 1
    assert engine.most_at_work == AT_ONCE


def test_the_guide_states_the_limits() -> None:
    guide = " ".join(guide_text("arag_search/mcp_server/README.md").split())
    for limit in (
        f"{AT_ONCE} calls run at once (`--workers`)",
        f"At most {WAITING} calls of a client wait, and each call times out after {TIMEOUT_S:g} s.",
        f"at most {MAX_MESSAGE_BYTES:,} bytes",
        f"at most {MAX_SESSIONS:,} sessions",
        f"idle for {IDLE_SESSION_S / 60:g} minutes",
        f"lists of tools for {LIST_LIFETIME_MS / 60_000:g} minutes",
    ):
        assert limit in guide


def test_a_call_beyond_the_queue_is_rejected_and_a_slow_call_times_out() -> None:
    engine = MoodyEngine()
    served = LocalServer(engine, workers=Workers(at_once=1, waiting=1, timeout_s=0.2))
    messages: list[str] = []

    async def talk(client: ClientSession) -> None:
        async def ask() -> None:
            messages.append((await call_error(client, "logical_search", query="opera")).message)

        engine.gate.clear()
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(ask)
        engine.gate.set()
        await until(lambda: served.workers.busy == 0)
        assert not (await client.call_tool("logical_search", {"query": "opera"})).is_error

    served.serve(talk)
    busy = (
        "Too many calls of this client are waiting.\nAllowed: at most 1 that wait\n"
        "Do: Try again in a moment."
    )
    slow = "The call timed out after 0.2 s.\nDo: Try again in a moment, or ask for less."
    assert messages == [busy, slow, slow]


def test_a_cancelled_call_returns_at_once_reads_nothing_and_frees_its_worker() -> None:
    engine = MoodyEngine()
    served = LocalServer(engine, workers=Workers(at_once=1))

    async def talk(client: ClientSession) -> None:
        engine.gate.clear()
        await cancelled_call(client, lambda: engine.at_work == 1, "chunk_read", READ)
        assert served.workers.busy == 1
        engine.gate.set()
        await until(lambda: served.workers.busy == 0)
        assert text_of(await client.call_tool("chunk_read", READ)) == IN_FULL

    served.serve(talk)


def test_a_client_that_disconnects_during_a_call_leaves_no_session_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = MoodyEngine()
    served = LocalServer(engine, workers=Workers(timeout_s=0.3))
    sessions: list[weakref.ref[Session]] = []

    class WatchedSession(Session):
        def __init__(self) -> None:
            super().__init__()
            sessions.append(weakref.ref(self))

    monkeypatch.setattr("arag_search.mcp_server.protocol.Session", WatchedSession)

    async def main() -> None:
        engine.gate.clear()
        async with served.client() as staying:
            async with anyio.create_task_group() as group, served.client() as leaving:
                group.start_soon(leaving.call_tool, "chunk_read", READ)
                await until(lambda: engine.at_work == 1)
                group.cancel_scope.cancel()
            engine.gate.set()
            await until(lambda: served.workers.busy == 0)
            assert text_of(await staying.call_tool("chunk_read", READ)) == IN_FULL
            await until(lambda: gc.collect() >= 0 and sessions[1]() is None)
            assert sessions[0]() is not None

    served.run(main)


# Several indexes


def test_with_several_indexes_a_call_names_an_index_and_each_index_has_its_own_read_set() -> None:
    other = MemoryEngine((chunk(0, "scarlatti", "Another", "The same id."),), metadata={})
    served = LocalServer(MoodyEngine(), other)

    async def talk(client: ClientSession) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        schema = tools["chunk_read"].input_schema
        assert schema["properties"]["index"]["enum"] == ["memory", "other"]
        assert schema["required"] == ["index", "chunk_ids"]
        # The other index has no metadata.
        assert "sort" in tools["logical_search"].input_schema["properties"]
        wrong = await error_text(client, "logical_search", index="other", query="a", sort="year")
        assert wrong.startswith(
            'Tool not run: 1 problem.\n1. argument "sort": there is no such argument. '
        )
        assert await error_text(client, "chunk_read", index="another") == (
            'Tool not run: 1 problem.\n1. argument "index", "another". '
            'Allowed: "memory" or "other".'
        )
        description = tools["logical_search"].description
        assert description is not None
        assert description.splitlines()[-2:] == [
            'memory: Metadata: field:"value", field:[1670 TO 1680], field:>=1970.',
            'memory: Fields: year (number, 1678 to 1735), lang ("en", "it").',
        ]
        assert description.startswith('memory: Search the documents in memory ("Antonio Vivaldi", ')
        assert description.count("Case and accents do not count") == 1
        result = await client.call_tool("chunk_read", {**READ, "index": "memory"})
        assert text_of(result) == IN_FULL
        result = await client.call_tool("chunk_read", {**READ, "index": "other"})
        assert text_of(result) == "[scarlatti.1] Another (whole document)\nThe same id."
        result = await client.call_tool("chunk_read", {**READ, "index": "memory"})
        assert text_of(result) == READ_BEFORE

    served.serve(talk)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, 'argument "index" is missing.'),
        ({"index": "Memory"}, 'argument "index", "Memory".'),
        ({"index": ["memory"]}, 'argument "index", ["memory"].'),
        ({"index": None}, 'argument "index", null.'),
    ],
)
def test_an_unknown_index_is_rejected_with_the_known_names(
    arguments: dict[str, object], problem: str
) -> None:
    async def talk(client: ClientSession) -> None:
        assert await error_text(client, "chunk_read", chunk_ids=["page.1"], **arguments) == (
            f'Tool not run: 1 problem.\n1. {problem} Allowed: "memory" or "other".'
        )

    LocalServer(MoodyEngine(), MoodyEngine()).serve(talk)


# Addresses


def test_chunks_and_documents_have_addresses() -> None:
    ids = ("a b/ü%?#.", "..", "x" * 300)
    chunks = [chunk(at, doc_id, "", f"Text {at}.") for at, doc_id in enumerate(ids, 10)]

    async def talk(client: ClientSession) -> None:
        templates = (await client.list_resource_templates()).resource_templates
        assert [template.uri_template for template in templates] == [
            "arag://memory/chunk/{id}",
            "arag://memory/document/{id}",
        ]
        assert (await client.list_resources()).resources == []
        assert await contents(client, "arag://memory/chunk/scarlatti.1") == IN_FULL
        assert await contents(client, "arag://memory/document/vivaldi") == (
            "[vivaldi.1] Antonio Vivaldi, part 1 of 2 (whole part)\n"
            "(next: vivaldi.2; year: 1678; lang: en, it)\n"
            "Antonio Vivaldi was born in Venice. He wrote many operas. The priest taught violin. "
            "Each libretto was new.\n"
            "[vivaldi.2] Antonio Vivaldi, part 2 of 2 (whole part)\n"
            "(previous: vivaldi.1; year: 1678; lang: en, it)\n"
            "He died in Vienna. Vivaldi's music was forgotten."
        )
        odd = "a%20b%2F%C3%BC%25%3F%23."
        assert (await contents(client, f"arag://memory/chunk/{odd}.1")).endswith("Text 10.")
        assert (await contents(client, f"arag://memory/document/{odd}")).endswith("Text 10.")
        assert (await contents(client, f"arag://memory/chunk/{'x' * 300}.1")).endswith("Text 12.")
        assert (await contents(client, "arag://memory/chunk/...1")).endswith("Text 11.")
        for steps in ("..", "%2E%2E"):
            text = await contents(client, f"arag://memory/document/{steps}")
            assert text.endswith("Text 11.")

    LocalServer(MoodyEngine((*VIVALDI, *chunks))).serve(talk)


def test_an_address_without_a_chunk_or_document_is_a_clear_error() -> None:
    async def talk(client: ClientSession) -> None:
        error = await resource_error(client, "arag://memory/chunk/gone.1")
        assert (error.code, error.message) == (
            types.INVALID_PARAMS,
            'No passage has the id "gone.1".\nWhere: memory\n'
            "Allowed: ids as searches show them in brackets\nDo: Search first, and copy the id.",
        )
        error = await resource_error(client, "arag://memory/document/gone")
        assert (error.code, error.message.splitlines()[0]) == (
            types.INVALID_PARAMS,
            'No document has the id "gone".',
        )
        for address in ("arag://memory/chunk/%FF", "arag://memory/document/" + "x" * 3_000):
            assert (await resource_error(client, address)).code == types.INVALID_PARAMS
        error = await resource_error(client, "arag://elsewhere/chunk/page.1")
        assert (error.code, error.message) == (
            types.INVALID_PARAMS,
            "There is nothing at this address.\nWhere: arag://elsewhere/chunk/page.1\n"
            "Allowed: arag://memory/chunk/{id}, arag://memory/document/{id}\n"
            "Do: Percent-encode the id.",
        )

    LocalServer().serve(talk)


def test_addresses_obey_the_scope_and_a_long_document_is_truncated() -> None:
    long = [
        chunk(9, "long", "Long", f"Part {part}. " * 500, part=part, parts=30, year=1)
        for part in range(1, 31)
    ]

    async def talk(client: ClientSession) -> None:
        assert (
            await resource_error(client, "arag://memory/chunk/vivaldi.1")
        ).code == types.INVALID_PARAMS
        assert (
            await resource_error(client, "arag://memory/document/vivaldi")
        ).code == types.INVALID_PARAMS
        text = await contents(client, "arag://memory/document/long")
        assert len(text) < 60_000
        *_, left_out, last = text.splitlines()
        assert left_out.startswith("Not shown for want of room: chunk_ids [")
        assert last == (
            "10 more passages of this document after [long.20]. Ids stand in brackets in search "
            "replies."
        )

    scope = scoped(parse_filter("year:1", SCHEMA))
    LocalServer(MoodyEngine((*VIVALDI, *long)), scope=scope).serve(talk)


# The prompt


def test_the_instructions_of_the_preset_are_a_prompt() -> None:
    async def talk(client: ClientSession) -> None:
        (prompt,) = (await client.list_prompts()).prompts
        assert (prompt.name, prompt.description) == ("logical_read", PRESET.description)
        for arguments, end in (({}, ""), ({"question": "Who wrote it?"}, "\n\nWho wrote it?")):
            (message,) = (await client.get_prompt("logical_read", arguments)).messages
            assert isinstance(message.content, types.TextContent)
            assert message.content.text == system_prompt(PRESET) + end
        with pytest.raises(MCPError) as raised:
            await client.get_prompt("other")
        assert raised.value.message == 'There is no prompt "other".\nAllowed: logical_read'
        with pytest.raises(MCPError) as raised:
            await client.get_prompt("logical_read", {"answer": "x"})
        assert raised.value.message == 'The prompt has no argument "answer".\nAllowed: question'

    LocalServer().serve(talk)


def test_a_client_gets_the_name_of_the_server_and_instructions() -> None:
    served = LocalServer(preset=changed_preset(PRESET, {"tools": ["keyword_search"]}, "test"))

    async def talk(client: ClientSession) -> None:
        greeting = await client.initialize()
        assert greeting.server_info.name == "arag-search"
        assert greeting.instructions is not None
        assert "reset" not in greeting.instructions
        assert greeting.capabilities.tools is not None
        assert greeting.capabilities.prompts is not None
        assert greeting.capabilities.resources is not None
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["keyword_search"]

    served.serve(talk)


# Documents


def test_documents_have_names_in_a_session() -> None:
    served = LocalServer(preset=load_preset("agentic_rag"))

    async def talk(client: ClientSession) -> None:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["search", "find", "open"]
        opened = {"reference_id": "turn0search0"}
        missing = await error_text(client, "open", **opened)
        assert missing.startswith("There is no reference turn0search0: no search")
        result = await client.call_tool("search", {"queries": ["scarlatti"]})
        assert "[turn0search0] Griselda (Scarlatti)" in text_of(result)
        text = text_of(await client.call_tool("open", opened))
        assert "1: This opera is older." in text
        assert text_of(await client.call_tool("open", opened)) == text
        patterns = {"patterns": ["OLDER"]}
        places = text_of(await client.call_tool("find", {**opened, **patterns}))
        assert '"OLDER": 1 match.' in places

    served.serve(talk)


def test_calls_at_the_same_time_give_no_name_twice() -> None:
    served = LocalServer(preset=load_preset("agentic_rag"))

    async def talk(client: ClientSession) -> None:
        texts: list[str] = []

        async def ask(query: str) -> None:
            texts.append(text_of(await client.call_tool("search", {"queries": [query]})))

        async with anyio.create_task_group() as group:
            for query in ("scarlatti", "violin", "vienna", "goldoni"):
                group.start_soon(ask, query)
        titles = {
            match[1]: match[2]
            for text in texts
            for match in re.finditer(r"^\[(\w+)\] (.*)$", text, re.MULTILINE)
        }
        assert len(set(titles.values())) == len(titles) >= 3

    served.serve(talk)

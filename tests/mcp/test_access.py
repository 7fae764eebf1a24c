"""arag-search mcp --access: tokens and the parts of an index that they show, over HTTP."""

from __future__ import annotations

import logging
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import anyio
import httpx2
import pytest
import yaml
from mcp import ClientSession, MCPError

from arag_search.corpus import Chunk, nfc
from arag_search.errors import AccessError, ConfigError
from arag_search.mcp_server import access as access_module
from arag_search.mcp_server.access import AccessFile
from arag_search.mcp_server.listening import Listening, listen
from arag_search.search.index import Index
from arag_search.tools.preset_files import load_preset
from arag_search.tools.tool import ReadSet
from arag_search.tools.toolbox import tools_of
from tests.support.commands import Command
from tests.support.examples import examples
from tests.support.hostile_values import random_values
from tests.support.mcp_http import (
    HEADERS,
    INITIALIZE,
    MODERN,
    begin_session,
    connected,
    modern_client,
    over_http,
    ping_status,
    web_client,
)
from tests.support.mcp_servers import LocalServer, live_indexes, text_of
from tests.support.oracle.engine import MemoryEngine
from tests.support.parts import METADATA, guarded_corpus, part_of, vectors_of
from tests.support.passages import chunk
from tests.support.patience import PATIENCE_S

ANN, BOB, EVE = "token-of-ann-0123456789", "token-of-bob-0123456789", "token-of-eve-0123456789"
DOCUMENTS = (
    chunk(0, "plan", "The plan", "The opera moves to Venice. ", acl="hr", owner="ann"),
    chunk(1, "menu", "The menu", "The opera has a kitchen. ", acl="everyone", owner="bob"),
    chunk(2, "pay", "The pay", "Singers of the opera earn more. ", acl="hr", owner="eve"),
)
PLAN = {"chunk_ids": ["plan.1"]}
PAST = "The document of [turn0search0] is no longer there. Search again, or go on without it."


def hash_of(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def write(path: Path, grants: Mapping[str, str]) -> Path:
    path.write_text("".join(f"{hash_of(token)}: {filter}\n" for token, filter in grants.items()))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "access.yaml", {ANN: "acl:(everyone OR hr)", BOB: "acl:everyone"})


def index_of_documents(chunks: tuple[Chunk, ...] = DOCUMENTS) -> Index:
    return Index(MemoryEngine(chunks, metadata=METADATA), "memory", vectors=vectors_of(chunks))


def server(file: Path, preset: str = "logical_read", index: Index | None = None) -> LocalServer:
    indexes = {"memory": index or index_of_documents()}
    return LocalServer(preset=load_preset(preset), indexes=indexes, access=file)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def session_of(listening: Listening, token: str) -> str:
    return (await begin_session(listening, **bearer(token))).headers["mcp-session-id"]


async def ping(listening: Listening, session: str, token: str) -> int:
    async with web_client(bearer(token)) as http:
        return await ping_status(http, listening.url, session)


async def resource(client: ClientSession, address: str) -> str:
    """Return the text at an address, or the message of the error."""
    try:
        (content,) = (await client.read_resource(address)).contents
    except MCPError as error:
        return error.error.message
    return getattr(content, "text", "")


def test_two_sessions_at_the_same_time_see_their_own_parts(file: Path) -> None:
    async def talk(listening: Listening) -> None:
        async with connected(listening.url, ANN) as ann, connected(listening.url, BOB) as bob:
            for client, total, owners in ((ann, 3, '"ann", "bob", "eve"'), (bob, 1, '"bob"')):
                tools = {tool.name: tool for tool in (await client.list_tools()).tools}
                assert f"owner ({owners})" in (tools["logical_search"].description or "")
                reply = await client.call_tool("logical_search", {"query": "opera"})
                assert text_of(reply).startswith(f"{total} of {total} passage")
            assert "Venice" in text_of(await ann.call_tool("chunk_read", PLAN))
            assert "Venice" in await resource(ann, "arag://memory/chunk/plan.1")
            assert "Venice" in await resource(ann, "arag://memory/document/plan")
            hidden = text_of(await bob.call_tool("chunk_read", PLAN))
            never = text_of(await bob.call_tool("chunk_read", {"chunk_ids": ["never.1"]}))
            assert hidden == never.replace("never", "plan")
            for kind, id in (("chunk", "plan.1"), ("document", "plan")):
                hidden = await resource(bob, f"arag://memory/{kind}/{id}")
                never = await resource(bob, f"arag://memory/{kind}/{id.replace('plan', 'never')}")
                assert hidden == never.replace("never", "plan")
                assert hidden.startswith("No ")

    over_http(talk, served=server(file))


def test_requests_without_a_session_see_the_part_of_their_token(file: Path) -> None:
    async def talk(listening: Listening) -> None:
        for token, total, owners in ((ANN, 3, '"ann", "bob", "eve"'), (BOB, 1, '"bob"')):
            async with modern_client(listening.url, token) as client:
                assert client.protocol_version == MODERN
                search, *_ = (await client.list_tools()).tools
                assert f"owner ({owners})" in (search.description or "")
                reply = await client.call_tool("logical_search", {"query": "opera"})
                assert text_of(reply).startswith(f"{total} of {total} passage")
                hidden = await resource(client.session, "arag://memory/chunk/plan.1")
                assert ("Venice" in hidden) == (token == ANN)
        async with modern_client(listening.url, ANN) as client:
            write(file, {BOB: "acl:everyone"})
            with pytest.raises(MCPError):
                await client.call_tool("logical_search", {"query": "opera"})

    over_http(talk, served=server(file))


def test_replies_show_cosines_and_no_scores_of_bm25(file: Path) -> None:
    index = index_of_documents()
    scores = {hit.score for hit in index.logical_search("opera OR venice").hits}
    calls = (
        ("search", {"queries": ["opera venice"]}),
        ("find", {"reference_id": "turn0search0", "patterns": ["opera"], "mode": "semantic"}),
    )

    async def talk(listening: Listening) -> None:
        async with connected(listening.url, ANN) as client:
            texts: list[str] = []
            for name, arguments in calls:
                reply = await client.call_tool(name, arguments)
                texts.append(text_of(reply))
                numbers: dict[str, Any] = (reply.meta or {})["arag_search"]
                assert "score" not in str(numbers)
            assert "(cosine 0." in texts[1]
            for score in scores:
                assert f"{score:.2f}" not in " ".join(texts)

    over_http(talk, served=server(file, "agentic_rag", index))


def test_a_new_token_is_let_in_and_one_that_is_gone_is_refused_in_its_session(file: Path) -> None:
    async def talk(listening: Listening) -> None:
        session = await session_of(listening, ANN)
        assert await ping(listening, session, ANN) == 200
        assert (await begin_session(listening, **bearer(EVE))).status_code == 401
        write(file, {EVE: "acl:hr", BOB: "acl:everyone"})
        assert await ping(listening, session, ANN) == 401
        assert (await begin_session(listening, **bearer(ANN))).status_code == 401
        new = await session_of(listening, EVE)
        assert await ping(listening, new, EVE) == 200

    over_http(talk, served=server(file))


def test_a_changed_filter_holds_at_once_also_for_documents_that_were_shown(file: Path) -> None:
    async def talk(listening: Listening) -> None:
        async with connected(listening.url, ANN) as client:
            shown = text_of(await client.call_tool("search", {"queries": ["venice plan"]}))
            assert "[turn0search0] The plan" in shown
            opened = {"reference_id": "turn0search0"}
            searched = {**opened, "patterns": ["venice"]}
            assert "Venice" in text_of(await client.call_tool("open", opened))
            write(file, {ANN: "acl:everyone"})
            assert text_of(await client.call_tool("open", opened)) == PAST
            assert text_of(await client.call_tool("find", searched)) == PAST
            again = text_of(await client.call_tool("search", {"queries": ["venice plan"]}))
            assert "The plan" not in again
            write(file, {ANN: "acl:hr"})
            assert "Venice" in text_of(await client.call_tool("open", opened))

    over_http(talk, served=server(file, "agentic_rag"))


def test_the_session_of_a_token_is_unknown_to_other_tokens(file: Path) -> None:
    async def talk(listening: Listening) -> None:
        session = await session_of(listening, ANN)
        async with web_client(bearer(BOB)) as http:
            headers = {**HEADERS, "Mcp-Session-Id": session}
            assert (await http.delete(listening.url, headers=headers)).status_code == 404
            assert (await http.get(listening.url, headers=headers)).status_code == 404
        assert await ping(listening, session, BOB) == 404
        assert await ping(listening, session, ANN) == 200

    over_http(talk, served=server(file))


def test_a_file_with_problems_lets_nobody_in_until_it_is_repaired(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def talk(listening: Listening) -> None:
        session = await session_of(listening, ANN)
        good = file.read_text()
        for bad in (good.replace("hr)", "hr"), "", "- a list", good.replace("acl:", "by:")):
            file.write_text(bad)
            for _ in range(2):
                assert await ping(listening, session, ANN) == 503
        file.unlink()
        answer = await begin_session(listening, **bearer(ANN))
        assert answer.status_code == 503
        assert answer.text == (
            "The server lets nobody in: its access file has problems.\n"
            "Do: Tell who runs the server; its log names them."
        )
        file.write_text(good)
        assert await ping(listening, session, ANN) == 200

    with caplog.at_level(logging.WARNING, access_module.__name__):
        over_http(talk, served=server(file))
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 5  # each problem once, and that the file is in order again
    assert messages[0].startswith("Nobody is let in. The access file has 1 problem.\n1. entry 1: ")
    assert messages[-1] == f"The access file is in order again: {file}"


def test_filters_as_data_show_each_user_what_has_exactly_their_name(tmp_path: Path) -> None:
    names = random_values(Random(4), 40)
    chunks = tuple(
        chunk(number, f"d{number}", "A plan", "The opera moves. ", owner=nfc(name))
        for number, name in enumerate(names)
    )
    users = [*enumerate(names)][::11]
    tokens = {f"token-of-user-{number:08}": {"owner": [name]} for number, name in users}
    tokens["token-of-nobody-12345678"] = {"owner": []}
    file = tmp_path / "access.yaml"
    grants = {hash_of(token): {"filter": filter} for token, filter in tokens.items()}
    file.write_text(yaml.safe_dump(grants), "utf-8")

    async def talk(listening: Listening) -> None:
        for token, wanted in zip(tokens, [*(f"d{number}" for number, _ in users), ""], strict=True):
            async with modern_client(listening.url, token) as client:
                reply = await client.call_tool("logical_search", {"query": "opera OR plan"})
                offered = (await client.list_tools()).model_dump_json()
                shown = re.findall(r"\bd\d+(?=\.1)", text_of(reply) + offered)
                assert set(shown) == ({wanted} if wanted else set())
                hidden = await client.call_tool("chunk_read", {"chunk_ids": ["d1.1"]})
                assert text_of(hidden).startswith('No passage has the id "d1.1".')

    over_http(talk, served=server(file, index=index_of_documents(chunks)))


@pytest.mark.parametrize(
    "filter",
    ["{}", "{owner: null}", "{owner: 5}", "{owner: yes}", "{owner: ann, owner: bob}", "[]", "5",
     "{owner: [ann, ~]}", "{not: {}}", "{5: ann}", "{owner: {gte: ''}}", "{owner: !!binary YQ==}"],
)  # fmt: skip
def test_data_that_is_no_filter_lets_nobody_in(tmp_path: Path, filter: str) -> None:
    live = live_indexes({"memory": index_of_documents()})
    file = write(tmp_path / "access.yaml", {ANN: f"{{filter: {filter}}}", BOB: "acl:everyone"})
    with pytest.raises(ConfigError):
        AccessFile(file, live.check)


def test_a_token_sees_its_part_of_every_index(file: Path) -> None:
    indexes = {"all": index_of_documents(), "some": index_of_documents().within("owner:bob")}
    preset = load_preset("logical_read")

    async def talk(listening: Listening) -> None:
        async with connected(listening.url, BOB) as bob, connected(listening.url, ANN) as ann:
            for client, name, total in ((bob, "all", 1), (ann, "all", 3), (ann, "some", 1)):
                arguments = {"query": "opera", "index": name}
                reply = text_of(await client.call_tool("logical_search", arguments))
                assert reply.startswith(f"{total} of {total} passage")

    over_http(talk, served=LocalServer(preset=preset, indexes=indexes, access=file))


def test_a_failure_of_the_server_itself_lets_nobody_in(file: Path) -> None:
    failures: list[Exception] = []

    def check(_: str) -> None:
        if failures:
            raise failures[0]

    access = AccessFile(file, check)
    assert access.grant(ANN) is not None
    failures.append(RuntimeError("a bug"))
    for _ in range(2):
        with pytest.raises(RuntimeError):
            access.grant(ANN)
    failures.clear()
    assert access.grant(ANN) is not None


def checked(_: str) -> None:
    """Accept any filter."""


def test_a_file_is_read_again_when_it_has_changed_and_not_otherwise(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    access = AccessFile(file, read.append)
    access.grant(ANN)
    assert len(read) == 4  # as long as the file is new, its times say nothing
    monkeypatch.setattr(access_module, "_SETTLED_NS", 0)
    access.grant(ANN)
    assert len(read) == 6
    assert access.grant(ANN) == access.grant(ANN)
    assert len(read) == 6
    write(file, {ANN: "acl:sales"})
    grant = access.grant(ANN)
    assert grant is not None
    assert grant.filter == "acl:sales"
    assert access.grant(BOB) is None
    file.unlink()
    with pytest.raises(AccessError):
        access.grant(ANN)


def test_all_problems_of_a_file_are_listed_and_no_token_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "access.yaml"
    live = live_indexes({"memory": index_of_documents()})
    first = hash_of(ANN)
    file.write_text(
        f"{ANN}: acl:hr\n"
        f"{first}: {{name: Ann, filter: 'team:hr'}}\n"
        f"{first.upper()}: acl:hr\n"
        f"{hash_of(BOB)}: {{name: Bob, role: admin}}\n"
        f"{hash_of(EVE)}:\n"
    )
    with pytest.raises(ConfigError) as raised:
        AccessFile(file, live.check)
    assert str(raised.value) == (
        "The access file has 6 problems.\n"
        "1. entry 1: its key is not a SHA-256. A token does not belong here.\n"
        '2. entry 2 (Ann): Query not run: 1 problem. 1. column 1, "team:": there is no field '
        '"team". Fields: doc_id, acl (keyword), deny (keyword), owner (keyword), year (number), '
        "on (date). Text with a colon is quoted. Where: the filter, for the index memory\n"
        "3. entry 3: an earlier entry has the same hash.\n"
        "4. entry 4 (Bob): there is no key role.\n"
        "5. entry 4 (Bob): it has no filter. Without one, it would grant everything.\n"
        "6. entry 5: it has no filter. Without one, it would grant everything.\n"
        f"Where: {file}\n"
        "Allowed: HASH: FILTER, or HASH: {filter: FILTER, name: NAME}; a hash has 64 hexadecimal "
        "digits\n"
        'Do: Make the hash of a token with: printf %s "${SEARCH_TOKEN:?is not set}" | sha256sum'
    )
    file.write_text("")
    with pytest.raises(ConfigError, match=r"The access file holds no token\."):
        AccessFile(file, checked)


@pytest.mark.parametrize("nothing", ["", "\n", "\r\n", " "])
def test_the_hash_of_a_variable_that_is_not_set_is_refused(file: Path, nothing: str) -> None:
    write(file, {nothing: "acl:hr", ANN: "acl:hr"})
    with pytest.raises(ConfigError, match="entry 1: its key is the hash of no token"):
        AccessFile(file, checked)


def test_no_token_an_unknown_one_a_short_one_its_hash_and_two_let_nobody_in(file: Path) -> None:
    write(file, {"short": "acl:everyone", ANN: "acl:hr", BOB: "acl:hr"})
    ann, bob = ("Authorization", f"Bearer {ANN}"), ("Authorization", f"Bearer {BOB}")

    async def talk(listening: Listening) -> None:
        async def status(*headers: tuple[str, str]) -> int:
            async with web_client() as http:
                given = [*HEADERS.items(), *headers]
                return (await http.post(listening.url, json=INITIALIZE, headers=given)).status_code

        for shown in ("Bearer short", f"Bearer {EVE}", f"Bearer {hash_of(ANN)}"):
            assert await status(("Authorization", shown)) == 401
        answer = await begin_session(listening)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert answer.text.startswith("The token is missing or wrong.\n")
        for several in ((ann, bob), (ann, ann), (ann, ("Authorization", ""))):
            assert await status(*several) == 401
        assert await status(ann, ("Mcp-Session-Id", "a"), ("Mcp-Session-Id", "b")) == 404
        assert await status(ann) == 200

    over_http(talk, served=server(file))


def test_a_request_that_no_gate_has_seen_is_answered_from_no_index(file: Path) -> None:
    async def talk(client: ClientSession) -> None:
        with pytest.raises(MCPError, match="The request has no grant"):
            await client.list_tools()
        with pytest.raises(MCPError, match="The request has no grant"):
            await client.call_tool("logical_search", {"query": "opera"})
        with pytest.raises(MCPError, match="The request has no grant"):
            await client.read_resource("arag://memory/chunk/plan.1")

    server(file).serve(talk)


def test_a_host_other_than_loopback_is_allowed_where_a_file_names_tokens() -> None:
    with listen("127.0.0.1", 0, None, ["search.example.org"], has_access_file=True) as listening:
        assert "search.example.org" in listening.names


def test_a_file_and_a_token_are_refused_together(arag: Command) -> None:
    options = ("--access", "a.yaml", "--transport", "http", "--token-env", "TOKEN")
    done = arag("mcp", "my-index", *options)
    first = "arag-search: --token-env and --access are given together."
    assert (done.code, done.err.splitlines()[0]) == (1, first)


@pytest.mark.server
@pytest.mark.usefixtures("commands_folder")
def test_the_command_serves_parts_and_reports_a_file_with_problems(file: Path) -> None:
    write(file, {ANN: "doc_id:vivaldi"})
    script = "from arag_search.cli.app import main; main()"
    options = ["--transport", "http", "--host", "0.0.0.0", "--port", "0", "--access", str(file)]
    with subprocess.Popen(
        [sys.executable, "-c", script, "mcp", "my-index", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        started, warned = process.stderr.readline(), process.stderr.readline()
        try:
            url = started.split()[3].rstrip(";")

            async def main() -> None:
                with anyio.fail_after(PATIENCE_S):
                    async with connected(url, ANN) as client:
                        reply = await client.call_tool("logical_search", {"query": "opera"})
                        assert "[vivaldi." in text_of(reply)
                        assert "[griselda." not in text_of(reply)
                    file.write_text("")
                    answer = httpx2.post(url, json=INITIALIZE, headers={**HEADERS, **bearer(ANN)})
                    assert answer.status_code == 503

            anyio.run(main)
        finally:
            process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=PATIENCE_S)
    assert warned == (
        "Other machines can connect, and may use up its connections: put a proxy in front.\n"
    )
    assert "Nobody is let in. The access file holds no token.\n" in log


@pytest.mark.parametrize("seed", range(300, 300 + examples(20)))
def test_clients_with_random_parts_get_the_replies_of_their_passages_alone(
    tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    corpus = guarded_corpus(random)
    index = index_of_documents(tuple(chunk for document in corpus for chunk in document))
    parts = [part_of(index, corpus, random, (0,)) for _ in range(3)]
    tokens = {
        f"token-number-{number:08}": str(part.part.scope) for number, part in enumerate(parts)
    }
    preset = load_preset("logical_read")

    async def talk(listening: Listening) -> None:
        async with AsyncExitStack() as stack:
            clients = [
                await stack.enter_async_context(connected(listening.url, token)) for token in tokens
            ]
            calls = [
                ("logical_search", {"query": "opera OR poet", "sort": "year:asc", "top_k": 20}),
                ("logical_search", {"query": "opera AND poe*", "show": "counts"}),
                *(("chunk_read", {"chunk_ids": [id]}) for id in random.sample(parts[0].ids, 3)),
            ]
            for client, part in zip(clients, parts, strict=True):
                offered = {tool.name: tool for tool in (await client.list_tools()).tools}
                tools = tools_of(preset, part.alone)
                seen = ReadSet(is_kept=False)
                for name, arguments in calls:
                    served = tools[name].served_as("memory")
                    assert offered[name].description == served.description
                    reply = await client.call_tool(name, arguments)
                    expected = tools[name].run(arguments, seen)
                    assert sorted(text_of(reply).split()) == sorted(expected.text.split())
                    part.hides(reply.model_dump_json(), arguments)

    file = write(tmp_path / "access.yaml", tokens)
    over_http(talk, served=server(file, index=index))

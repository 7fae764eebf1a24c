"""arag-search mcp over standard input and output, as a client starts it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time
import tomllib
from array import array
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import jsonrpc_message_adapter

from arag_search.mcp_server import stdio
from arag_search.mcp_server.listening import DEFAULT_HOST, DEFAULT_PORT, PATH
from arag_search.system.extras import install_line
from arag_search.tokens import count_tokens
from tests.support.commands import Command
from tests.support.guides import blocks_of
from tests.support.mcp_http import ENVELOPE
from tests.support.mcp_servers import text_of
from tests.support.patience import PATIENCE_S

pytestmark = [pytest.mark.usefixtures("commands_folder"), pytest.mark.server]

MAIN = "from arag_search.cli.app import main; main()"
NOISE = """
import logging, os, subprocess, sys, warnings
from arag_search.engines.lucene import jvm
from arag_search.tools.passages.logical import LogicalSearch

def noisy(run):
    def call(*arguments):
        print("noise of print")
        os.write(1, b"noise of a library\\n")
        sys.__stdout__.write("noise of a stream\\n")
        subprocess.run(["echo", "noise of a child"], check=True)
        assert sys.stdin.read() == ""
        logging.getLogger("other").error("noise of a log")
        jvm.java("java.lang.System").out.println("noise of Java")
        return run(*arguments)
    return call

def noisy_start(start):
    def call(*arguments):
        print("noise of print at the start")
        os.write(1, b"noise of a library at the start\\n")
        warnings.warn("noise of a warning at the start")  # The SDK hides those of calls.
        return start(*arguments)
    return call

LogicalSearch._call = noisy(LogicalSearch._call)
jvm._start = noisy_start(jvm._start)
"""
SLOW = """
import time
from arag_search.mcp_server.workers import Workers
from arag_search.tools.passages.logical import LogicalSearch
Workers.close.__defaults__ = (0.2,)

def slow(*arguments):
    print("at work", flush=True)
    time.sleep(600)

LogicalSearch._call = slow
"""
PATIENT = """
close = Workers.close

def patient(workers):
    print("ending", flush=True)
    while not close(workers, 0.5):  # Python sees a signal just before a wait only after the wait
        pass
    return True

Workers.close = patient
"""
QUICK = """
from arag_search.mcp_server import stdio
stdio.CLIENT_LOOK_S = 0.2
stdio._DRAIN_S = 0.2
"""
WAITS = "time.sleep(600)"
WRAPPED = """
import os, sys, time
parent = os.getpid()
if os.fork():
    {parent}
while {waits}:
    time.sleep(0.01)
print(os.getpid(), file=sys.stderr, flush=True)
"""
"""The parent of a server, of which nobody knows but the pipes that both hold."""
CLAIMED = """
claim = stdio.claim_stdio
def claim_stdio():
    print("claimed", file=sys.stderr, flush=True)
    return claim()
stdio.claim_stdio = claim_stdio
"""
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def start_server(script: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-W", "always", "-c", script + MAIN, "mcp", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


class Wrapped:
    """A server below a process that does as ``parent`` says, and that the server waits for while
    ``waits`` is true."""

    def __init__(self, script: str = "", parent: str = WAITS, waits: str = "False") -> None:
        lines = WRAPPED.format(parent=parent, waits=waits) + QUICK + script
        self.wrapper = start_server(lines, "my-index")

    def __enter__(self) -> Wrapped:
        self.pid = int(self.error())
        return self

    def __exit__(self, *exception: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.wrapper.kill()
        with self.wrapper:  # closes the pipes
            pass

    def send(self, lines: bytes) -> None:
        assert self.wrapper.stdin is not None
        self.wrapper.stdin.write(lines)
        self.wrapper.stdin.flush()

    def answer(self) -> Any:
        """Return the id of the next answer."""
        assert self.wrapper.stdout is not None
        return json.loads(self.wrapper.stdout.readline())["id"]

    def error(self) -> bytes:
        """Return the next line of standard error, which is empty if the server has ended."""
        assert self.wrapper.stderr is not None
        assert select.select([self.wrapper.stderr], [], [], PATIENCE_S)[0]
        return self.wrapper.stderr.readline()


def request(number: int | str, method: str, **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"


BEGINNING = (
    request(0, "initialize", **INITIALIZE)
    + b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n'
)
SEARCH = request(1, "tools/call", name="logical_search", arguments={"query": "vivaldi"})


@asynccontextmanager
async def connected(*arguments: str) -> AsyncIterator[ClientSession]:
    """Yield the SDK's client of a server in its own process, which prints no errors."""
    parameters = StdioServerParameters(
        command=sys.executable, args=["-c", MAIN, "mcp", *arguments], env=dict(os.environ)
    )
    with tempfile.TemporaryFile("w+") as errors:
        async with (
            stdio_client(parameters, errlog=errors) as streams,
            ClientSession(*streams) as client,
        ):
            await client.initialize()
            yield client
        errors.seek(0)
        assert errors.read() == ""


def test_the_settings_in_the_guide_say_how_to_start_and_to_find_the_server() -> None:
    blocks = blocks_of("arag_search/mcp_server/README.md")
    settings = [json.loads(block.text) for block in blocks if block.kind == "json"]
    desktop, code, zed, http, gemini = (
        next(iter(servers.values()))["my-corpus"] for servers in settings
    )
    assert desktop == zed == {"command": "arag-search", "args": ["mcp", "/path/to/my-index"]}
    assert code == {"type": "stdio", **desktop}
    codex, codex_http = (
        tomllib.loads(block.text)["mcp_servers"]["my-corpus"]
        for block in blocks
        if block.kind == "toml"
    )
    assert codex == desktop
    address = f"http://{DEFAULT_HOST}:{DEFAULT_PORT}{PATH}"
    assert http["url"] == gemini["httpUrl"] == codex_http["url"] == address


def test_a_client_starts_the_command_searches_and_reads_in_two_indexes_within_its_bound() -> None:
    Path("short.yaml").write_text("extends: logical_read\nmax_result_tokens: 250\n")

    async def main() -> None:
        with anyio.fail_after(PATIENCE_S):
            async with connected("my-index", "notes=plain", "--preset", "short.yaml") as client:
                query = {"index": "my-index", "query": "opera OR vivaldi", "top_k": 20}
                reply = text_of(await client.call_tool("logical_search", query))
                assert 100 < count_tokens(reply) <= 250
                read = {"index": "notes", "chunk_ids": ["n2.1"]}
                assert text_of(await client.call_tool("chunk_read", read)).endswith("Café & co.")

    anyio.run(main)


def test_a_connector_is_started_with_a_description() -> None:
    options = ("--preset", "connector", "--describe", "Notes of the Vivaldi project.")

    async def main() -> None:
        with anyio.fail_after(PATIENCE_S):
            async with connected("my-index", *options) as client:
                search, fetch = (await client.list_tools()).tools
                assert (search.name, fetch.name) == ("search", "fetch")
                assert str(search.description).startswith("Notes of the Vivaldi project.\nSearch")
                answer = await client.call_tool("search", {"query": "Who revised Griselda?"})
                results = json.loads(text_of(answer))["results"]
                page = await client.call_tool("fetch", {"id": results[0]["id"]})
                assert "Griselda" in json.loads(text_of(page))["text"]

    anyio.run(main)


def test_every_byte_of_standard_output_is_protocol_whatever_prints() -> None:
    malformed = (
        b'\n{"jsonrpc": "2.0", "id": "x", "method": 7}\n'  # This gets an answer by its id.
        b"not json\n"
        + b'{"jsonrpc": "2.0", "id": 5, "method": "'
        + b"x" * 1_100_000  # This is longer than a message may be.
        + b'"}\n[[[[\n\xff\xfe\n{"id": "\\ud800"}\n'
    )
    read_request = request(2, "tools/call", name="chunk_read", arguments={"chunk_ids": ["\ud800"]})
    with start_server(NOISE, "my-index") as server:
        out, err = server.communicate(
            BEGINNING + malformed + SEARCH + read_request.rstrip(), timeout=PATIENCE_S
        )
    assert server.returncode == 0, err
    lines = out.split(b"\n")
    assert lines.pop() == b""
    messages = [jsonrpc_message_adapter.validate_json(line) for line in lines]
    answers = {message.id: message for message in messages}
    assert answers.keys() == {0, 1, 2, 5, "x", "\ufffd", None}
    assert 'No passage has the id "\ufffd"' in answers[2].result["content"][0]["text"]
    assert " passages\n" in answers[1].result["content"][0]["text"]
    assert answers["x"].error.message.startswith(
        "The message is not valid JSON-RPC 2.0.\nAllowed: "
    )
    assert answers[5].error.message.startswith("The message is longer than 1,048,576 bytes.")
    assert sum(message.id is None for message in messages) == 3
    for origin in ("print", "a library", "a stream", "a child", "a log", "Java"):
        assert f"noise of {origin}\n".encode() in err, origin
    for origin in ("print", "a library", "a warning"):
        assert f"noise of {origin} at the start\n".encode() in err, origin


def test_several_requests_of_the_same_id_are_all_answered_even_after_the_input_has_ended() -> None:
    with start_server("", "my-index") as server:
        out, err = server.communicate(BEGINNING + SEARCH * 5, timeout=PATIENCE_S)
    assert (server.returncode, err) == (0, b"")
    messages = [jsonrpc_message_adapter.validate_json(line) for line in out.splitlines()]
    answers = [message for message in messages if message.id == 1]
    assert len(answers) == 5
    assert all(" passages\n" in answer.result["content"][0]["text"] for answer in answers)


DEEP = b'{"a":' * 300 + b"1" + b"}" * 300


@pytest.mark.parametrize("is_modern", [False, True])
def test_faults_of_clients_are_answered_by_their_ids_and_leave_no_line_on_standard_error(
    is_modern: bool,
) -> None:
    meta: dict[str, Any] = ENVELOPE if is_modern else {}
    long = b"x" * 1_100_000
    lines = [
        b"" if is_modern else BEGINNING,
        request(20, "tools/list", **meta),
        request(21, "no/such", **meta),
        request(22, "sampling/createMessage", **meta),
        b'{"jsonrpc": "2.0", "id": 23, "method": "x", "params": ' + DEEP + b"}\n",
        b'{"method": "x", "params": ' + DEEP + b', "jsonrpc": "2.0", "id": 24}\n',
        b'{"jsonrpc": "2.0", "id": "25", "method": "x", "params": {"a": "' + long + b'"}}\n',
        b'{"method": "x", "params": {"id": 1, "a": "' + long + b'"}, "jsonrpc": "2.0", "id": 26}\n',
        b'{"params": {"a": "' + long + b'", "id": 1}}\n',
        request(27, "tools/list", **meta, cursor=7),
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}\n',
        request(28, "prompts/list", **meta),
    ]
    with start_server("", "my-index") as server:
        out, err = server.communicate(b"".join(lines), timeout=PATIENCE_S)
    assert (server.returncode, err) == (0, b"")
    answers = [json.loads(line) for line in out.splitlines()]
    assert all("method" not in answer for answer in answers)  # nothing but answers: no log
    codes = {answer["id"]: answer.get("error", {}).get("code") for answer in answers}
    assert codes.pop(0, None) is None
    assert codes == {
        20: None, 21: -32601, 22: -32601, 23: -32700, 24: -32700, "25": -32600, 26: -32600,
        None: -32600, 27: -32602, 28: None,
    }  # fmt: skip


def test_a_cancelled_call_leaves_no_line_on_standard_error() -> None:
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    with start_server(SLOW, "my-index") as server:
        assert server.stdin is not None
        assert server.stderr is not None
        server.stdin.write(BEGINNING + SEARCH)
        server.stdin.flush()
        assert server.stderr.readline() == b"at work\n"
        lines = json.dumps(cancelled).encode() + b"\n" + request(2, "ping")
        out, err = server.communicate(lines, timeout=PATIENCE_S)
    assert (server.returncode, err) == (0, b"")
    assert [json.loads(line)["id"] for line in out.splitlines()] == [0, 2]


@pytest.mark.parametrize(
    ("number", "code", "errors"),
    [(signal.SIGTERM, 143, b""), (signal.SIGINT, 130, b"arag-search: interrupted.\n")],
)
def test_a_signal_ends_the_server_in_the_middle_of_a_call(
    number: signal.Signals, code: int, errors: bytes
) -> None:
    with start_server(SLOW, "my-index") as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdin.write(BEGINNING + SEARCH)
        server.stdin.flush()
        assert server.stderr.readline() == b"at work\n"
        server.send_signal(number)
        assert server.wait(PATIENCE_S) == code
        assert server.stderr.read() == errors
        lines = server.stdout.read().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [0]


def test_a_second_ctrl_c_does_not_wait_for_calls() -> None:
    with start_server(SLOW + PATIENT, "my-index") as server:
        assert server.stdin is not None
        assert server.stderr is not None
        server.stdin.write(BEGINNING + SEARCH)
        server.stdin.flush()
        for line in (b"at work\n", b"ending\n"):
            assert server.stderr.readline() == line
            server.send_signal(signal.SIGINT)
        assert server.wait(PATIENCE_S) == 130
        assert server.stderr.read() == b"arag-search: interrupted.\n"


def test_a_signal_ends_the_server_of_a_client_that_takes_no_replies() -> None:
    impatient = "from arag_search.mcp_server import serving; serving.END_S = 0.2\n"
    with start_server(impatient, "my-index") as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(BEGINNING + request(1, "tools/list") * 200)
        server.stdin.flush()
        size = array("i", [0])
        while size[0] < 16_000:  # all replies are more than a pipe takes
            assert server.poll() is None
            time.sleep(0.05)
            fcntl.ioctl(server.stdout, termios.FIONREAD, size)
        server.terminate()
        assert server.wait(PATIENCE_S) == 143


def test_a_client_that_vanishes_ends_the_server() -> None:
    with start_server("", "my-index") as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(BEGINNING)
        server.stdin.flush()
        assert server.stdout.readline()
        server.stdout.close()
        server.stdin.write(SEARCH * 50 + b"not json\n" * 50)
        server.stdin.close()
        assert server.wait(PATIENCE_S) == 0


def lost(what: str) -> bytes:
    return f"arag-search: {what}, so that the server ends.\n".encode()


PARENT_LOST = lost("the process that started the server has ended")


@pytest.mark.parametrize("is_read", [True, False])
def test_the_server_of_a_killed_wrapper_ends_though_its_pipes_are_held(is_read: bool) -> None:
    assert 3 * stdio.CLIENT_LOOK_S < 10
    with Wrapped() as server:
        server.send(BEGINNING + request(1, "tools/list") * (1 if is_read else 200))
        assert server.answer() == 0
        if is_read:
            assert server.answer() == 1
        server.wrapper.kill()
        assert server.error() == PARENT_LOST
        assert server.error() == b""


def test_a_call_that_runs_is_answered_before_the_server_of_a_killed_wrapper_ends() -> None:
    before = "from arag_search.tools.passages.logical import LogicalSearch as L; run = L._call\n"
    after = "LogicalSearch._call = lambda *given: slow() or run(*given)\n"
    with Wrapped(before + SLOW.replace("600", "3") + after) as server:
        server.send(BEGINNING + SEARCH)
        assert server.error() == b"at work\n"
        server.wrapper.kill()
        assert [server.answer(), server.answer()] == [0, 1]
        assert server.error() == PARENT_LOST


@pytest.mark.parametrize("is_early", [True, False])
def test_a_server_stays_whose_parent_ended_before_it_was_initialized(is_early: bool) -> None:
    # A double fork leaves no parent at the start; that of setsid ends at any time.
    early = {"parent": "os._exit(0)", "waits": "os.getppid() == parent"} if is_early else {}
    with Wrapped(CLAIMED, **early) as server:
        assert server.error() == b"claimed\n"
        server.wrapper.kill()
        server.wrapper.wait(PATIENCE_S)
        server.send(BEGINNING)
        assert server.answer() == 0
        time.sleep(8 * 0.2)
        server.send(request(1, "ping"))
        assert server.answer() == 1
        assert server.wrapper.stdin is not None
        server.wrapper.stdin.close()
        assert server.error() == b""


def test_a_server_ends_when_nobody_can_read_its_answers() -> None:
    with start_server(QUICK, "my-index") as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdin.write(BEGINNING)
        server.stdin.flush()
        assert server.stdout.readline()
        server.stdout.close()
        assert server.wait(PATIENCE_S) == 143
        assert server.stderr.read() == lost("the client has closed its end")


def test_a_server_ends_whose_input_has_ended_though_its_answers_are_not_taken() -> None:
    with start_server(QUICK, "my-index") as server:
        assert server.stdin is not None
        server.stdin.write(BEGINNING + request(1, "tools/list") * 200)
        server.stdin.close()
        assert server.wait(PATIENCE_S) == 0


def test_an_absent_index_is_reported_on_standard_error_before_a_client_waits() -> None:
    with start_server("", "nothing-there") as server:
        out, err = server.communicate(BEGINNING, timeout=PATIENCE_S)
    assert (server.returncode, out) == (1, b"")
    assert err.startswith(b"arag-search: There is no index")


@pytest.mark.parametrize(
    ("arguments", "first", "do"),
    [
        (["i", "j", "--preset", "connector"],
         "The tools of connectors (connector_search, connector_fetch) search one index, and "
         "there are 2.", "Start a server for each index, each with a port of its own."),
        (["i", "j", "--vectors", "v"], "--vectors is one folder, and there are 2 indexes.",
         "Leave it out where the vectors are in the folders of the indexes."),
        (["i", "--host", "0.0.0.0"], "--host has no effect here.", "Leave it out."),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_together_are_refused_before_anything_is_opened(
    arag: Command, arguments: list[str], first: str, do: str
) -> None:
    done = arag("mcp", *arguments)
    assert (done.code, done.out) == (1, "")
    lines = done.err.splitlines()
    assert lines[0] == f"arag-search: {first}"
    assert lines[-1] == f"Do: {do}"


def test_without_the_sdk_the_command_says_how_to_install_it(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert arag("mcp", "my-index").err == (
        'arag-search: mcp is not installed.\nWhere: extra "mcp" of arag-search\n'
        f"Do: Install the extra: {install_line('mcp')}\n"
    )

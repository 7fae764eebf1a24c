"""Calls to servers that fail: which are retried, for how long, and the text of the errors."""

import base64
import logging
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from arag_search.engines.opensearch.address import ConnectionOptions, parse_address
from arag_search.engines.opensearch.client import REPEATABLE, Client
from arag_search.engines.opensearch.faults import deepest_reason
from arag_search.errors import (
    AccessError,
    ArgumentError,
    EngineError,
    IndexClosedError,
    RefusedError,
    UnavailableError,
)
from tests.support.unruly_server import (
    WHOLE,
    Answer,
    UnrulyServer,
    failed_phase,
    refusal,
    unruly,
    version,
)

QUICK = ConnectionOptions(attempt_timeout_s=0.3, request_budget_s=1.5, opening_budget_s=0.5)
SEE = "Do: Check that all nodes are running, then try again."


@pytest.fixture(name="server")
def running_server() -> Iterator[UnrulyServer]:
    with unruly() as server:
        yield server


@pytest.fixture(name="client")
def connected(server: UnrulyServer) -> Iterator[Client]:
    server.reply_with(version())
    client = Client.connect(parse_address(f"{server.url}/wiki"), QUICK)
    server.at_root = version()
    yield client
    client.close()


def client_of(server: UnrulyServer, other: UnrulyServer) -> Client:
    """Connect to two hosts of one cluster, which answer ``GET /``."""
    for host in (server, other):
        host.at_root = version()
    address = parse_address(f"{server.url},{other.url.removeprefix('http://')}/wiki")
    return Client.connect(address, QUICK)


def search(client: Client) -> object:
    return client.call("POST", "/wiki/_search", {"size": 0})


# Which faults are retried


def partial(kind: str, **cause: object) -> Answer:
    """Return an answer of status 200 of which a shard failed for this reason."""
    failures = [{"reason": {"type": kind, "reason": "x", **cause}}]
    return Answer({**WHOLE, "_shards": {"total": 3, "failed": 1, "failures": failures}})


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (refusal(429, "rejected_execution_exception", "queue is full"), ""),
        (refusal(503, "no_shard_available_action_exception", "no shard"), ""),
        (Answer("<html>bad gateway</html>", 502), ""),
        (failed_phase("node_disconnected_exception", "[n2] disconnected"), ""),
        (failed_phase("node_not_connected_exception", "[n2] Node not connected"), ""),
        (failed_phase("no_shard_available_action_exception", ""), ""),
        (failed_phase("task_cancelled_exception", "cancelled"), ""),
        (partial("node_closed_exception"), ""),
        (Answer(silent=True), ""),
        (Answer(broken=True), ""),
        (failed_phase("script_exception", "runtime error"),
         "The server refused (status 500): script_exception: runtime error"),
        (failed_phase("query_phase_execution_exception", "Time exceeded"),
         "The search ran out of time on the server."),
        (refusal(400, "parsing_exception", "outer", caused_by={"type": "i", "reason": "deep"}),
         "The server refused (status 400): i: deep"),
        (refusal(429, "cluster_block_exception", "blocked by: [TOO_MANY_REQUESTS/12/disk]"),
         "The server blocks this (index.blocks.read_only_allow_delete): "
         "cluster_block_exception: blocked by: [TOO_MANY_REQUESTS/12/disk]"),
        (refusal(403, "index_create_block_exception", "blocked by: [FORBIDDEN/10/create-index]"),
         "The server blocks this (cluster.blocks.create_index): index_create_block_exception: "
         "blocked by: [FORBIDDEN/10/create-index]"),
        (refusal(503, "cluster_block_exception", "[SERVICE_UNAVAILABLE/1/state]"), ""),
        (Answer({**WHOLE, "timed_out": True}), "The search ran out of time on the server."),
        (Answer({**WHOLE, "terminated_early": True}), "The search ended early on the server."),
        (partial("q", caused_by={"type": "script_exception", "reason": "inner"}),
         "1 of 3 shards did not answer: script_exception: inner"),
    ],
)  # fmt: skip
def test_a_fault_of_the_nodes_is_retried_and_one_of_the_request_is_not(
    server: UnrulyServer, client: Client, answer: Answer, what: str
) -> None:
    server.reply_with(answer, Answer(WHOLE))
    if what:
        with pytest.raises(EngineError) as caught:
            search(client)
        assert caught.value.what == what
    else:
        assert search(client) == WHOLE
    assert len(server.requests) == (1 if what else 2)


def test_an_overloaded_server_is_retried_until_the_budget_is_spent(
    server: UnrulyServer, client: Client
) -> None:
    server.reply_with(refusal(429, "circuit_breaking_exception", "Data too large"))
    started = time.monotonic()
    with pytest.raises(UnavailableError) as caught:
        search(client)
    assert time.monotonic() - started < 2
    assert caught.value.what.startswith(
        "The server is not able to answer: circuit_breaking_exception: Data too large ("
    )
    assert caught.value.what.endswith(f"{len(server.requests)} attempts in 1 s).")
    assert len(server.requests) > 3


def test_a_slow_answer_is_given_more_time_at_each_attempt(
    server: UnrulyServer, client: Client
) -> None:
    server.reply_with(Answer(silent=True))
    with pytest.raises(UnavailableError) as caught:
        search(client)
    assert re.fullmatch(r"No answer within 0\.\d+ s \(3 attempts in [12] s\)\.", caught.value.what)
    limits = [path.partition("interval=")[2] for _, path, _, _ in server.requests]
    assert limits[:2] == ["300ms", "600ms"]


def test_more_time_is_given_after_every_host_had_its_turn(server: UnrulyServer) -> None:
    """Check that the first host that hangs does not use up the rest of the budget."""
    with unruly() as other:
        client = client_of(server, other)
        for host in (server, other):
            host.reply_with(Answer(silent=True))
        with pytest.raises(UnavailableError):
            search(client)
        client.close()
        limits = sorted(
            path.partition("interval=")[2]
            for host in (server, other)
            for _, path, _, _ in host.requests
        )
        assert limits[-3:] == ["300ms", "300ms", "600ms"]
        assert len(limits) == 4


def test_hosts_are_used_in_turn_and_a_busy_one_is_not_set_aside(server: UnrulyServer) -> None:
    with unruly() as other:
        client = client_of(server, other)
        server.reply_with(refusal(429, "rejected_execution_exception", "queue is full"))
        other.reply_with(Answer(WHOLE))
        for _ in range(6):
            assert search(client) == WHOLE
        client.close()
        assert len(server.requests) >= 5
        assert len(other.requests) == 6


def test_an_address_without_a_server_is_reported_within_the_opening_budget() -> None:
    address = parse_address(f"http://127.0.0.1:{free_port()}/wiki")
    started = time.monotonic()
    with pytest.raises(UnavailableError) as caught:
        Client.connect(address, QUICK)
    assert time.monotonic() - started < 1
    assert caught.value.what.startswith("No connection: [Errno 111] Connection refused (")
    assert (caught.value.where, f"Do: {caught.value.do}") == (address.server, SEE)


def test_a_change_of_aliases_is_never_sent_twice(server: UnrulyServer, client: Client) -> None:
    for answer in (Answer(silent=True), refusal(503, "x", "y")):
        server.reply_with(answer)
        with pytest.raises(UnavailableError):
            client.call("POST", "/_aliases", {"actions": []})
        assert len(server.requests) == 1
    assert not {call for call in REPEATABLE if "_aliases" in call}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"), ("GET", "/wiki"), ("GET", "/wiki/_alias"),
        ("GET", "/_cluster/health/wiki"), ("GET", "/wiki/_count"), ("GET", "/wiki/_doc/holder"),
        ("GET", "/wiki/_mapping"), ("GET", "/wiki/_stats/docs"), ("POST", "/wiki/_search"),
        ("POST", "/_msearch"), ("POST", "/wiki/_count"), ("POST", "/wiki/_refresh"),
        ("POST", "/wiki/_flush"), ("POST", "/wiki/_forcemerge"), ("POST", "/_bulk"),
        ("PUT", "/wiki"), ("PUT", "/wiki/_mapping"), ("PUT", "/wiki/_settings"),
        ("PUT", "/wiki/_doc/holder"), ("DELETE", "/wiki"),
    ],
)  # fmt: skip
def test_a_repeatable_call_is_sent_again(
    server: UnrulyServer, client: Client, method: str, path: str
) -> None:
    server.at_root = None
    server.reply_with(refusal(429, "x", "y"), refusal(400, "parsing_exception", "z"))
    with pytest.raises(RefusedError):
        client.call(method, path)
    assert len(server.requests) == 2


def test_a_refusal_has_its_status_and_kind(server: UnrulyServer, client: Client) -> None:
    server.reply_with(refusal(404, "index_not_found_exception", "no such index [wiki]"))
    with pytest.raises(RefusedError) as caught:
        search(client)
    assert (caught.value.status, caught.value.kind) == (404, "index_not_found_exception")


def test_one_failed_search_of_several_fails_all(server: UnrulyServer, client: Client) -> None:
    failure = failed_phase("script_exception", "x").body
    server.reply_with(Answer({"responses": [WHOLE, failure]}))
    with pytest.raises(EngineError) as caught:
        client.call("POST", "/_msearch", [{}, {}, {}, {}])
    assert caught.value.what == "The server refused (status 500): script_exception: x"
    lost_node = failed_phase("node_disconnected_exception", "x").body
    complete = Answer({"responses": [WHOLE, WHOLE]})
    server.reply_with(Answer({"responses": [WHOLE, lost_node]}), complete)
    assert client.call("POST", "/_msearch", [{}, {}, {}, {}]) == complete.body


def test_the_deepest_reason_of_any_reply_is_one_line() -> None:
    assert deepest_reason("<html>\n bad </html>") == "<html> bad </html>"
    assert deepest_reason({"error": "no handler", "status": 400}) == "no handler"
    assert deepest_reason(None) == ""
    assert len(deepest_reason("x" * 10_000)) == 500


# Permissions, and kinds of servers


@pytest.mark.parametrize(
    ("username", "password", "sent"),
    [
        pytest.param("elastic", "á", "ZWxhc3RpYzrDoQ==", id="elastic/elasticsearch-py#1054"),
        pytest.param(
            "user", "unusual-char-é", "dXNlcjp1bnVzdWFsLWNoYXItw6k=", id="djc/couchdb-python#301"
        ),
        pytest.param("test", "654ö21", "dGVzdDo2NTTDtjIx", id="httpie/cli#212"),
        pytest.param("user", "€uro", "dXNlcjrigqx1cm8=", id="HenriWahl/Nagstamon#1126"),
        pytest.param(
            "Сергей", "пароль", "0KHQtdGA0LPQtdC5OtC/0LDRgNC+0LvRjA==", id="psf/requests#7523"
        ),
        pytest.param("John", "ż🙂", "Sm9objrFvPCfmYI=", id="KR8MER/eas-station#531"),
        pytest.param("anna", "p\udce4ss", "YW5uYTpw5HNz", id="bytes of another encoding"),
    ],
)
def test_user_and_password_are_sent_in_utf_8_and_never_shown(
    server: UnrulyServer, monkeypatch: pytest.MonkeyPatch, username: str, password: str, sent: str
) -> None:
    monkeypatch.setenv("OPENSEARCH_USERNAME", username)
    monkeypatch.setenv("OPENSEARCH_PASSWORD", password)
    server.reply_with(Answer(f"Unauthorized: Basic {sent} {username}:pass", 401))
    with pytest.raises(AccessError) as caught:
        Client.connect(parse_address(f"{server.url}/wiki"))
    assert server.requests[0][2]["authorization"] == f"Basic {sent}"
    assert "Unauthorized: Basic [password] " in str(caught.value)


def test_wrong_credentials_are_reported_without_showing_them(
    server: UnrulyServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENSEARCH_USERNAME", "anna")
    monkeypatch.setenv("OPENSEARCH_PASSWORD", "s3cret")
    server.reply_with(Answer("Unauthorized", 401))
    options = ConnectionOptions.from_environment()
    with caplog.at_level(logging.DEBUG), pytest.raises(AccessError) as caught:
        Client.connect(parse_address(f"{server.url}/wiki"), options)
    assert str(caught.value) == (
        "The server does not accept the user and the password: Unauthorized\n"
        f"Where: {server.url}\n"
        "Allowed: OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD as the server knows them\n"
        "Do: Set both."
    )
    assert server.requests[0][2]["authorization"] == "Basic YW5uYTpzM2NyZXQ="
    assert "s3cret" not in f"{options!r}{caplog.text}{caught.value!r}"


def test_a_password_whose_file_changed_is_read_again_once(
    server: UnrulyServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text("old\n")
    monkeypatch.setenv("OPENSEARCH_USERNAME", "anna")
    monkeypatch.setenv("OPENSEARCH_PASSWORD_FILE", str(file))
    monkeypatch.delenv("OPENSEARCH_PASSWORD", raising=False)
    server.reply_with(version())
    client = Client.connect(parse_address(f"{server.url}/wiki"))
    for password, answers, requests in (
        ("old", [Answer("no", 401)], 1),  # the file is as it was
        ("new", [Answer("no", 401), Answer(WHOLE)], 2),
        ("newest", [Answer("no", 401)], 2),
    ):
        file.write_text(password)
        server.reply_with(*answers)
        if len(answers) == 1:
            with pytest.raises(AccessError):
                search(client)
        else:
            assert search(client) == WHOLE
        sent = [headers["authorization"] for _, _, headers, _ in server.requests]
        assert (len(sent), sent[-1]) == (requests, basic(password))
    client.close()


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"anna:{password}".encode()).decode()


def test_a_user_without_permission_gets_an_error_that_names_it(server: UnrulyServer) -> None:
    server.reply_with(
        refusal(403, "security_exception", "no permissions for [cluster:monitor/main]")
    )
    with pytest.raises(AccessError) as caught:
        Client.connect(parse_address(f"{server.url}/wiki"), QUICK)
    assert str(caught.value).startswith(
        "The user has no permission for this: security_exception: no permissions for "
        f"[cluster:monitor/main]\nWhere: {server.url}\n"
    )


def test_a_user_without_a_password_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENSEARCH_USERNAME", "anna")
    monkeypatch.delenv("OPENSEARCH_PASSWORD", raising=False)
    with pytest.raises(ArgumentError) as caught:
        ConnectionOptions.from_environment()
    assert str(caught.value).startswith("OPENSEARCH_PASSWORD is not set.\n")


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (version("7.10.2", None), "The server is not OpenSearch."),
        (Answer({"hello": "world"}), "The server is not OpenSearch."),
        (version("2.19.1"), "The server is OpenSearch 2.19.1."),
    ],
)
def test_another_kind_of_server_is_refused(server: UnrulyServer, answer: Answer, what: str) -> None:
    server.reply_with(answer)
    with pytest.raises(EngineError) as caught:
        Client.connect(parse_address(f"{server.url}/wiki"), QUICK)
    assert caught.value.what == what
    assert caught.value.allowed == "OpenSearch 3 or newer"


def test_a_web_page_is_rejected_as_an_answer(server: UnrulyServer) -> None:
    server.reply_with(Answer("<html>hello</html>"))
    with pytest.raises(EngineError) as caught:
        Client.connect(parse_address(f"{server.url}/wiki"), QUICK)
    assert str(caught.value).startswith(
        "The server's answer is not JSON: Expecting value: line 1 column 1 (char 0)\n"
        f"Where: {server.url}\n"
    )


def test_a_call_on_a_closed_client_is_an_error(client: Client) -> None:
    client.close()
    with pytest.raises(IndexClosedError):
        search(client)


def test_each_thread_keeps_its_connection(server: UnrulyServer) -> None:
    server.reply_with(version())
    client = Client.connect(parse_address(f"{server.url}/wiki"), ConnectionOptions())
    server.reply_with(Answer(WHOLE))
    before = server.connections
    with ThreadPoolExecutor(16) as threads:
        replies = list(threads.map(lambda _: search(client), range(800)))
    client.close()
    assert replies == [WHOLE] * 800
    assert server.connections - before <= 16


def test_a_password_does_not_go_unencrypted_to_another_machine() -> None:
    address = parse_address("http://127.0.0.1:9200,search.example.org:9200/wiki")
    with pytest.raises(ArgumentError) as caught:
        Client.connect(address, replace(QUICK, username="anna", password="s3cret"))
    assert str(caught.value).startswith(
        "The password would be sent over the network unencrypted.\nWhere: "
        "http://127.0.0.1:9200,search.example.org:9200\n"
    )


def test_a_password_is_sent_unencrypted_only_with_explicit_permission(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (("USERNAME", "a"), ("PASSWORD", "b"), ("ALLOW_UNENCRYPTED", "1")):
        monkeypatch.setenv(f"OPENSEARCH_{name}", value)
    options = replace(ConnectionOptions.from_environment(), opening_budget_s=0.1)
    with pytest.raises(UnavailableError):  # No host has an address in 192.0.2.0/24.
        Client.connect(parse_address("http://192.0.2.1:9/wiki"), replace(options,
                       attempt_timeout_s=0.1))  # fmt: skip


def test_failures_are_raised_and_not_logged_to_stderr(
    server: UnrulyServer, client: Client, capfd: pytest.CaptureFixture[str]
) -> None:
    server.reply_with(refusal(400, "parsing_exception", "x"))
    with pytest.raises(RefusedError):
        search(client)
    assert capfd.readouterr() == ("", "")


def free_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])

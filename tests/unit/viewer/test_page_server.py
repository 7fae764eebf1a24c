"""The server of the page to search by hand: who may ask it, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import httpx2
import pytest

from arag_search.mcp_server.listening import Listening, listen
from arag_search.tools.preset_files import load_preset
from arag_search.viewer.frame import SEARCH_SCRIPTS, SEARCH_STYLES
from arag_search.viewer.page_server import MAX_BODY_BYTES, PageServer
from arag_search.viewer.search_page import SearchPage
from tests.support.passages import VIVALDI, index_of

CALL = {"call": {"preset": "logical_read", "tool": "logical_search", "query": "vivaldi"}}


@contextmanager
def listening() -> Iterator[Listening]:
    with listen("127.0.0.1", 0, None) as opened:
        yield opened


@pytest.fixture(name="server")
def server_of_an_index() -> Iterator[PageServer]:
    page = SearchPage(
        index_of(*VIVALDI), "memory", None, {"logical_read": load_preset("logical_read")}
    )
    with listening() as opened:
        yield PageServer(page, opened)


def request(
    server: PageServer,
    path: str,
    body: object = None,
    *,
    token: str | None = None,
    method: str = "POST",
    **headers: str,
) -> httpx2.Response:
    """Ask the application of a server without a socket."""
    address, _, own = server.address.partition("/#token=")
    headers.setdefault("Authorization", f"Bearer {own if token is None else token}")
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def ask() -> httpx2.Response:
        transport = httpx2.ASGITransport(server.application())
        async with httpx2.AsyncClient(transport=transport, base_url=address) as client:
            return await client.request(method, path, content=content, headers=headers)

    return anyio.run(ask)


def told(response: httpx2.Response) -> Any:
    assert response.status_code == 200
    return response.json()


def test_the_page_and_its_files_are_there_for_everybody_and_hold_nothing(
    server: PageServer,
) -> None:
    for name in ("", *SEARCH_SCRIPTS, *SEARCH_STYLES):
        response = request(server, f"/{name}", method="GET", token="")
        assert response.status_code == 200
        assert "vivaldi" not in response.text.lower()
        policy = response.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
        assert "unsafe" not in policy
    assert "<script>" not in request(server, "/", method="GET").text
    for name in ("app.js", "page.html", "../view.py", "%2e%2e/view.py", "ask/about"):
        assert request(server, f"/{name}", method="GET").status_code == 404


def test_questions_need_the_token(server: PageServer) -> None:
    assert told(request(server, "/ask/call", CALL))["status"] == "ok"
    for wrong in ("", "x", f"{server.address.partition('=')[2]}x"):
        response = request(server, "/ask/call", CALL, token=wrong)
        assert response.status_code == 401
        assert "Open the address that arag-search view printed" in response.text


def test_a_ticket_brings_the_token_once_and_nothing_else(server: PageServer) -> None:
    ticket = server.ticket_address.partition("=")[2]
    assert request(server, "/ask/call", CALL, token=ticket).status_code == 401
    token = told(request(server, "/ask/about", token=ticket))["token"]
    assert request(server, "/ask/about", token=ticket).status_code == 401
    assert told(request(server, "/ask/call", CALL, token=token))["status"] == "ok"


def test_other_pages_and_names_are_refused(server: PageServer) -> None:
    for origin in ("http://evil.com", "http://localhost:evil.com", "null"):
        assert request(server, "/ask/call", CALL, Origin=origin).status_code == 403
    own = server.address.partition("/#")[0]
    assert request(server, "/ask/call", CALL, Origin=own).status_code == 200
    assert request(server, "/ask/call", CALL, Host="evil.com").status_code == 400
    assert request(server, "/", method="GET", Host="evil.com").status_code == 400


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"call": 1}', json.dumps({**CALL, "more": 1}).encode(),
     b'{"call": {"preset": "x", "tool": "x", "query": "\\ud800"}}'],
)  # fmt: skip
def test_a_question_that_cannot_be_read_is_answered_with_the_problem(
    server: PageServer, body: bytes
) -> None:
    problem = told(request(server, "/ask/call", body))["problem"]
    assert problem.startswith("The question cannot be read")


def test_a_question_that_is_too_long_is_not_read(server: PageServer) -> None:
    response = request(server, "/ask/call", b"x" * (MAX_BODY_BYTES + 1))
    assert response.status_code == 413


def test_an_error_of_the_index_is_told_in_its_parts(server: PageServer) -> None:
    problem = told(request(server, "/ask/open", {**CALL, "document": "nowhere"}))["problem"]
    assert problem.splitlines() == [
        'The index has no document "nowhere" any more.',
        "Where: memory",
        "Do: Search again: the index has changed.",
    ]
    wrong = {**CALL, "field": "nowhere", "value": "x"}
    assert "nowhere" in told(request(server, "/ask/add", wrong))["problem"]

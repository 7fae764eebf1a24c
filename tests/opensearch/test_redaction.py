"""Passwords that a server repeats: no error shows them."""

import base64
from collections.abc import Iterator

import pytest

from arag_search.engines.opensearch.address import ConnectionOptions, parse_address
from arag_search.engines.opensearch.client import Client
from arag_search.errors import EngineError
from tests.support.secrets import LOGIN, forms_of
from tests.support.unruly_server import Answer as ServerAnswer
from tests.support.unruly_server import UnrulyServer, unruly, version


@pytest.fixture(scope="module")
def server() -> Iterator[UnrulyServer]:
    with unruly() as running:
        yield running


LOGGED_IN = ConnectionOptions(*LOGIN, attempt_timeout_s=5, opening_budget_s=0, request_budget_s=0)


TOKEN = base64.b64encode(":".join(LOGIN).encode()).decode()


@pytest.mark.parametrize("form", [*forms_of(LOGIN[1]), f"Basic {TOKEN}"])
def test_no_error_of_opensearch_repeats_the_password(server: UnrulyServer, form: str) -> None:
    address = parse_address(f"{server.url}/wiki")
    for answer in (
        ServerAnswer(f"Unauthorized: {form}", 401),
        ServerAnswer({"error": {"type": "security", "reason": form}}, 403),
        ServerAnswer({"error": {"type": form, "reason": form}}, 500),
        ServerAnswer({"error": {"type": "x", "reason": form}}, 503),
        version(f"2 {form}"),
    ):
        server.reply_with(answer)
        with pytest.raises(EngineError) as caught:
            Client.connect(address, LOGGED_IN)
        assert form.lower() not in str(caught.value).lower()
        assert "[password]" in str(caught.value)
        assert form not in repr(caught.value.__cause__) + repr(caught.value.__context__)

"""Servers that redirect a request to another server: no key and no password goes there."""

import base64
from collections.abc import Iterator

import pytest

from arag_search.agent.models.openai import OpenAIModel
from arag_search.engines.opensearch.address import ConnectionOptions, parse_address
from arag_search.engines.opensearch.client import Client
from arag_search.errors import AragError
from arag_search.vectors.encoders.endpoint import EndpointEncoder
from tests.support.openai_asking import FINAL, KEY
from tests.support.unruly_server import WHOLE, Answer, UnrulyServer, unruly, version

STATUSES = (301, 302, 303, 307, 308)
PASSWORD = "swordfish"
OPTIONS = ConnectionOptions(username="user", password=PASSWORD, request_budget_s=0)


@pytest.fixture(name="origin")
def redirecting_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[UnrulyServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with unruly() as server:
        yield server


@pytest.fixture(name="target")
def server_that_requests_are_redirected_to() -> Iterator[UnrulyServer]:
    with unruly() as server:
        server.reply_with(Answer(WHOLE))
        yield server


def check_secrets(origin: UnrulyServer, target: UnrulyServer, secret: str) -> None:
    """Check that the secret was sent to the origin, and not to the target of the redirect."""
    assert any(secret in str(headers) for _, _, headers, _ in origin.requests)
    assert secret not in str(target.requests)


@pytest.mark.parametrize("status", STATUSES)
def test_the_key_of_a_model_is_not_sent_where_a_redirect_leads(
    origin: UnrulyServer, target: UnrulyServer, status: int
) -> None:
    origin.reply_with(Answer({}, status, location=f"{target.url}/v1/chat/completions"))
    model = OpenAIModel("m", base_url=f"{origin.url}/v1", key=KEY, max_retries=0)
    with pytest.raises(AragError):
        model.reply(FINAL)
    model.close()
    check_secrets(origin, target, KEY)


@pytest.mark.parametrize("status", STATUSES)
def test_the_key_of_an_encoder_is_not_sent_where_a_redirect_leads(
    origin: UnrulyServer, target: UnrulyServer, status: int
) -> None:
    origin.reply_with(Answer({}, status, location=f"{target.url}/v1/embeddings"))
    encoder = EndpointEncoder("m", base_url=f"{origin.url}/v1", key=KEY, max_retries=0)
    with pytest.raises(AragError):
        encoder.encode(["text"])
    encoder.close()
    check_secrets(origin, target, KEY)


@pytest.mark.parametrize("status", STATUSES)
def test_the_password_of_opensearch_is_not_sent_where_a_redirect_leads(
    origin: UnrulyServer, target: UnrulyServer, status: int
) -> None:
    origin.reply_with(version())
    client = Client.connect(parse_address(f"{origin.url}/wiki"), OPTIONS)
    origin.reply_with(Answer({}, status, location=f"{target.url}/wiki/_search"))
    with pytest.raises(AragError):
        client.call("POST", "/wiki/_search", {"size": 0})
    client.close()
    check_secrets(origin, target, base64.b64encode(f"user:{PASSWORD}".encode()).decode())

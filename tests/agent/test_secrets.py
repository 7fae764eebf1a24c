"""Keys and passwords stay where they belong, whatever servers say: no error, no log and no record
shows them, and no redirect carries them to another server."""

import base64
import json
import traceback
import urllib.parse
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from arag_search.agent.loop import Agent
from arag_search.agent.models.openai import OpenAIModel
from arag_search.endpoints.refusals import Secrets
from arag_search.engines.opensearch.address import ConnectionOptions, parse_address
from arag_search.engines.opensearch.client import Client
from arag_search.errors import AragError, ModelAccessError
from arag_search.tools.preset_files import load_preset
from arag_search.vectors.encoders.endpoint import EndpointEncoder
from tests.support.commands import Command
from tests.support.endpoint import Answer as Reply
from tests.support.endpoint import Endpoint, completion, refusal, running_endpoint
from tests.support.openai_asking import FINAL
from tests.support.passages import VIVALDI, index_of
from tests.support.unruly_server import WHOLE, Answer, UnrulyServer, unruly, version

KEY = "sk-Very_secret/key+7="
LOGIN = ("anna", "s3cret/p\u00e4ss word")
TOKEN = base64.b64encode(":".join(LOGIN).encode()).decode()  # as the client sends it


def forms_of(secret: str) -> list[str]:
    """Return a secret in the forms in which servers repeat it, each once."""
    escaped = "".join(f"\\u{ord(character):04X}" for character in secret)
    mixed = f"{escaped[:12]}{secret[2:]}"
    twice = json.dumps(escaped)[1:-1]
    address, page = urllib.parse.quote(secret, safe=""), f"&#{ord(secret[0])};{secret[1:]}"
    slashes = secret.replace("/", "\\/")
    forms = [secret, json.dumps(secret)[1:-1], escaped, mixed, twice, address, page, slashes]
    return list(dict.fromkeys(forms))


def ask_model(url: str) -> None:
    model = OpenAIModel("m", base_url=f"{url}/v1", key=KEY, max_retries=0)
    try:
        model.reply(FINAL)
    finally:
        model.close()


def ask_encoder(url: str) -> None:
    encoder = EndpointEncoder("m", base_url=f"{url}/v1", key=KEY, max_retries=0)
    try:
        encoder.encode(["text"])
    finally:
        encoder.close()


def ask_opensearch(url: str) -> None:
    options = ConnectionOptions(*LOGIN, opening_budget_s=0, request_budget_s=0)
    Client.connect(parse_address(f"{url}/wiki"), options).close()


class Service(NamedTuple):
    """A kind of server: how it is asked, the secret that is sent, and what stands for it."""

    ask: Callable[[str], None]
    sent: str
    mark: str


MODEL = Service(ask_model, KEY, "[key]")
ENCODER = Service(ask_encoder, KEY, "[key]")
OPENSEARCH = Service(ask_opensearch, TOKEN, "[password]")
SERVICES = (MODEL, ENCODER, OPENSEARCH)


@pytest.fixture(scope="module")
def server() -> Iterator[UnrulyServer]:
    with pytest.MonkeyPatch.context() as patch, unruly() as running:
        patch.setenv("NO_PROXY", "127.0.0.1")
        yield running


@pytest.fixture
def target() -> Iterator[UnrulyServer]:
    with unruly() as running:
        running.reply_with(Answer(WHOLE))
        yield running


@pytest.mark.parametrize(
    ("service", "form"),
    [
        *((service, form) for service in (MODEL, ENCODER) for form in forms_of(KEY)),
        *((OPENSEARCH, form) for form in (*forms_of(LOGIN[1]), f"Basic {TOKEN}")),
    ],
)
def test_no_error_and_no_log_repeats_a_secret(
    server: UnrulyServer, service: Service, form: str, caplog: pytest.LogCaptureFixture
) -> None:
    for answer in (
        Answer(f"Unauthorized: {form}", 401),
        Answer({"error": {"message": form, "reason": form, "type": "security", "code": form}}, 403),
        Answer({"error": {"message": form, "reason": form, "type": form}}, 500),
        Answer({"error": {"message": form, "reason": form, "type": "x"}}, 503),
        Answer(f"<p>Bad key {form}</p>", 400),
        *(
            [version(f"2 {form}")]
            if service is OPENSEARCH
            else [
                Answer({"detail": [{form: [form]}]}, 400),
                Answer({"choices": form, "data": form}),
                Answer(f"echo {form}"),
            ]
        ),
    ):
        server.reply_with(answer)
        with pytest.raises(AragError) as caught:
            service.ask(server.url)
        error = caught.value
        shown = f"{caplog.text} {''.join(traceback.format_exception(error))}"
        shown += f" {error.__cause__!r} {error.__context__!r}"
        assert form.lower() not in shown.lower()
        assert json.dumps(form)[1:-1] not in shown
        assert service.mark in str(error)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("service", SERVICES)
def test_no_secret_is_sent_where_a_redirect_leads(
    server: UnrulyServer, target: UnrulyServer, service: Service, status: int
) -> None:
    location = f"{target.url}/{urllib.parse.quote(service.sent, safe='')}"
    server.reply_with(Answer({}, status, location=location))
    with pytest.raises(AragError) as caught:
        service.ask(server.url)
    assert service.sent not in str(caught.value)
    assert any(service.sent in str(headers) for _, _, headers, _ in server.requests)
    assert target.requests == []


# Answers of models


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with pytest.MonkeyPatch.context() as patch, running_endpoint() as running:
        patch.setenv("NO_PROXY", "127.0.0.1")
        yield running


@pytest.mark.parametrize("form", forms_of(KEY))
def test_no_record_of_a_question_holds_the_key(endpoint: Endpoint, form: str) -> None:
    model = OpenAIModel("m", base_url=endpoint.base_url, key=KEY, max_retries=0)
    agent = Agent(index_of(*VIVALDI), load_preset("logical_read"), model)
    search = json.dumps({"query": "griselda", "note": form})
    endpoint.reply_with(
        completion(f"Thinking of {form}", ("logical_search", search), reasoning=f"{form}!"),
        completion(f"Answer: {form}\nExplanation: {form}\nSources: griselda.1, {form}"),
    )
    record = agent.ask("Who wrote Griselda?", "q1")
    assert record.status == "answered"
    assert "[key]" in record.answer_short
    for line in (record.to_line().decode(), json.dumps(endpoint.requests)):
        assert form not in line
        assert json.dumps(form)[1:-1] not in line
    endpoint.reply_with(refusal(401, f"Incorrect API key provided: {form}."))
    record = agent.ask("Who wrote Griselda?", "q2")
    assert (record.failure or "").startswith("ModelAccessError: The endpoint refused the key")
    assert form not in record.to_line().decode()
    model.close()


def test_a_key_in_json_escapes_or_in_pieces_reaches_no_answer(endpoint: Endpoint) -> None:
    model = OpenAIModel("m", base_url=endpoint.base_url, key=KEY, max_retries=0)
    escaped = "".join(f"\\u{ord(character):04x}" for character in KEY)
    whole = json.dumps(completion(KEY).body)
    endpoint.reply_with(Reply(200, whole.replace(KEY, escaped)))
    assert model.reply(FINAL).text == "[key]"
    parts = [{"type": "text", "text": KEY[:9]}, {"type": "text", "text": KEY[9:]}]
    endpoint.reply_with(completion(parts, ("logical_search", f'{{"query": "{escaped}"}}')))
    reply = model.reply(FINAL)
    assert reply.text == "[key]"
    assert [json.loads(call.arguments) for call in reply.tool_calls] == [{"query": "[key]"}]
    token = base64.b64encode(KEY.encode()).decode()
    endpoint.reply_with(completion(f"Basic {token}"))
    assert model.reply(FINAL).text == "Basic [key]"
    model.close()


def test_an_answer_may_hold_the_word_that_a_local_server_takes_for_a_key(
    endpoint: Endpoint,
) -> None:
    model = OpenAIModel("m", base_url=endpoint.base_url, key="ollama", max_retries=0)
    endpoint.reply_with(completion("Answer: Ollama"))
    assert model.reply(FINAL).text == "Answer: Ollama"
    endpoint.reply_with(refusal(401, "Bad key ollama"))
    with pytest.raises(ModelAccessError, match="Bad key \\[key\\]"):
        model.reply(FINAL)
    model.close()


def test_text_without_secrets_and_short_secrets_are_unchanged_and_json_stays_valid() -> None:
    text = '{"a": "\\u0073k", "b": [1.50, 1e400]}  %73'
    assert Secrets(KEY, mark="[key]").hide(text) == text
    for secrets in (Secrets("", mark="x"), Secrets("abc", mark="x"), Secrets.of_login("", "")):
        assert secrets.hide("abc : Og==") == "abc : Og=="
    body = json.dumps({"text": 'a none"1234', 'none"1234': [7, None]})
    hidden = Secrets('none"1234', mark="[key]").hide(body)
    assert json.loads(hidden) == {"text": "a [key]", "[key]": [7, None]}


# Arguments


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("usr:s3cret@host:1/i", "...@host:1/i"),
        ("opensearch://usr:s3cret@host:1/i", "opensearch://...@host:1/i"),
        ("HTTPS://usr:s3cret@host:1/i", "HTTPS://...@host:1/i"),
        ("https:/usr:s3cret@host:1/i", "...@host:1/i"),
        ("//usr:s3cret@host:1/i", "...@host:1/i"),
        ("usr:s3c/ret@2://s3cret@host:1/i", "...@host:1/i"),
    ],
)
def test_no_command_prints_the_password_in_the_location_of_an_index(
    arag: Command, location: str, shown: str
) -> None:
    message = f"arag-search: The address holds a user or a password.\nWhere: {shown}\n"
    for arguments in (
        ["search", location, "x"],
        ["read", location, "x"],
        ["info", location],
        ["ask", location, "x", "--model", "offline"],
        ["check", "x", "--index", location],
        ["index", "c.jsonl", "--to", location],
        ["sync", location, "c.jsonl", "--dry-run"],
        ["add", "c.jsonl", "--to", location],
        ["embed", location, "--encoder", "hashing"],
        ["delete", location, "x"],
        ["compact", location],
        ["mcp", location],
    ):
        result = arag(*arguments)
        code = 2 if arguments[0] in ("search", "read") else 1
        assert (result.code, result.out, result.err[: len(message)]) == (code, "", message)
        assert "s3c" not in result.err


@pytest.mark.parametrize("base_url", ["usr:s3cret@host:1/v1", "localhost:1/v1?key=s3cret"])
def test_no_command_prints_the_password_in_a_base_url(arag: Command, base_url: str) -> None:
    result = arag("ask", "i", "x", "--model", "m", "--base-url", base_url)
    assert result.code == 1
    assert "base URL with a user, password or query" in result.err
    assert "s3cret" not in result.err

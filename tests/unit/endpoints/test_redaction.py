"""Keys and passwords do not come back from those that they were sent to."""

import base64
import html
import json
import urllib.parse
from collections.abc import Iterator
from dataclasses import replace

import pytest

from arag_search.agent.loop import Agent
from arag_search.agent.models.openai import OpenAIModel
from arag_search.agent.presets import load_preset
from arag_search.corpus import Chunk, ordinal_of
from arag_search.endpoints.redaction import Secrets
from arag_search.engines.memory.engine import MemoryEngine
from arag_search.engines.opensearch.address import parse_address
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.connection import ConnectionOptions
from arag_search.errors import AragError, EngineError, ModelAccessError
from arag_search.search.index import Index
from tests.support.commands import Command
from tests.support.endpoint import Answer, Endpoint, completion, refusal, running_endpoint
from tests.support.openai_asking import FINAL
from tests.support.unruly_server import Answer as ServerAnswer
from tests.support.unruly_server import Unruly, unruly, version

KEY = 'sk-Very/"secret"+key&7\\'
LOGIN = ("anna", "s3cret/päss word")


def in_forms(secret: str) -> list[str]:
    """The secret in the forms that servers give it."""
    raw = secret.encode()
    return [
        secret,
        secret.upper(),
        secret.swapcase(),
        json.dumps(secret)[1:-1],
        json.dumps(json.dumps(secret))[1:-1],
        json.dumps(secret).replace("/", "\\/")[1:-1],
        "".join(f"\\u{ord(character):04x}" for character in secret),
        "".join(f"\\u{ord(character):04X}" for character in secret),
        urllib.parse.quote(secret),
        urllib.parse.quote(secret, safe="").lower(),
        urllib.parse.quote_plus(secret),
        urllib.parse.quote(urllib.parse.quote(secret, safe="")),
        "".join(f"%{byte:02X}" for byte in raw),
        html.escape(secret),
        "".join(f"&#{ord(character)};" for character in secret),
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
        base64.b64encode(raw).decode().lower(),
        base64.b64encode(b"Bearer " + raw + b" and more").decode(),
        urllib.parse.quote(base64.b64encode(b"x" + raw).decode(), safe=""),
    ]


@pytest.mark.parametrize("form", in_forms(KEY))
def test_a_key_is_hidden_in_every_form(form: str) -> None:
    hidden = Secrets(KEY, mark="[key]").hide(f"before {form} behind")
    assert "[key]" in hidden
    assert form not in hidden
    assert hidden.startswith("before ")
    assert hidden.endswith(" behind")


def test_a_login_is_hidden_as_http_sends_it() -> None:
    secrets = Secrets.of_login(*LOGIN)
    token = base64.b64encode(":".join(LOGIN).encode()).decode()
    for form in (*in_forms(LOGIN[1]), f"Basic {token}", f"basic {token.upper()}"):
        assert "[password]" in secrets.hide(form)
        assert form not in secrets.hide(form)


def test_text_without_secrets_stays_as_it_is() -> None:
    text = '{"a": "\\u0073k", "b": [1.50, 1e400]}  %73'
    assert Secrets(KEY, mark="[key]").hide_in_json(text) == text
    for nothing in (Secrets("", mark="x"), Secrets("abc", mark="x"), Secrets.of_login("", "")):
        assert nothing.hide("abc : Og==") == "abc : Og=="


def test_json_stays_json_where_a_secret_is_taken_out() -> None:
    secrets = Secrets("none1234", mark="[key]")
    body = json.dumps({"text": "a\none1234 none1234", "none1234": ["\\none1234", 7, None]})
    assert json.loads(secrets.hide_in_json(body)) == {
        "text": "a\none1234 [key]",
        "[key]": ["\\[key]", 7, None],
    }
    assert secrets.hide_in_json("no JSON: none1234") == "no JSON: [key]"
    assert "none1234" not in secrets.hide_in_json("[" * 100_000 + '"none1234"')


# Endpoints


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with pytest.MonkeyPatch.context() as patch, running_endpoint() as running:
        patch.setenv("NO_PROXY", "127.0.0.1")
        yield running


@pytest.mark.servers
@pytest.mark.parametrize("form", in_forms(KEY))
def test_no_error_of_an_endpoint_repeats_the_key(endpoint: Endpoint, form: str) -> None:
    model = OpenAIModel("m", base_url=endpoint.base_url, key=KEY, max_retries=0)
    for answer in (
        refusal(401, f"Bad key {form}", code=form),
        refusal(500, f"Bad key {form}"),
        refusal(404, f"Bad key {form}"),
        Answer(400, f"<p>Bad key {form}</p>"),
        Answer(400, {"detail": [{form: [form]}]}),
        Answer(200, f"no JSON {form}"),
        Answer(200, {"choices": [form]}),
    ):
        endpoint.will(answer)
        with pytest.raises(AragError) as caught:
            model.reply(FINAL)
        assert form.lower() not in str(caught.value).lower()
        assert "[key]" in str(caught.value)
    endpoint.will(Answer(307, "", {"Location": f"http://h:1/{urllib.parse.quote(KEY)}"}))
    with pytest.raises(ModelAccessError, match=r"http://h:1/\[key\]"):
        model.reply(FINAL)
    model.close()


@pytest.mark.servers
@pytest.mark.parametrize("form", in_forms(KEY))
def test_no_record_of_an_answer_holds_the_key(endpoint: Endpoint, form: str) -> None:
    opera = Chunk("g.1", "g", "Griselda", "By Vivaldi.", 1, 1, ordinal_of(0, 0, 0), (11,), {})
    model = OpenAIModel("m", base_url=endpoint.base_url, key=KEY, max_retries=0)
    agent = Agent(Index(MemoryEngine([opera]), "memory"), load_preset("logical_read"), model)
    search = json.dumps({"query": "griselda", "note": form})
    endpoint.will(
        completion(f"Thinking of {form}", ("logical_search", search), reasoning=f"{form}!"),
        completion(f"Answer: {form}\nExplanation: {form}\nSources: g.1, {form}"),
    )
    record = agent.ask("Who wrote Griselda?", "q1")
    assert record.status == "answered"
    assert "[key]" in record.answer_short
    for line in (record.to_line().decode(), json.dumps(endpoint.requests)):
        assert form not in line
        assert json.dumps(form)[1:-1] not in line
    model.close()


@pytest.mark.servers
def test_an_answer_may_hold_the_word_that_a_local_server_takes_for_a_key(
    endpoint: Endpoint,
) -> None:
    model = OpenAIModel("m", base_url=endpoint.base_url, key="ollama", max_retries=0)
    endpoint.will(completion("Answer: Ollama"))
    assert model.reply(FINAL).text == "Answer: Ollama"
    endpoint.will(refusal(401, "Bad key ollama"))
    with pytest.raises(ModelAccessError, match="Bad key \\[key\\]"):
        model.reply(FINAL)
    model.close()


# OpenSearch


@pytest.fixture(scope="module")
def server() -> Iterator[Unruly]:
    with unruly() as running:
        yield running


LOGGED_IN = ConnectionOptions(*LOGIN, attempt_timeout_s=5, opening_budget_s=0, request_budget_s=0)
TOKEN = base64.b64encode(":".join(LOGIN).encode()).decode()


@pytest.mark.servers
@pytest.mark.parametrize("form", [*in_forms(LOGIN[1]), f"Basic {TOKEN}", TOKEN.lower()])
def test_no_error_of_opensearch_repeats_the_password(server: Unruly, form: str) -> None:
    address = parse_address(f"{server.url}/wiki")
    for answer in (
        ServerAnswer(f"Unauthorized: {form}", 401),
        ServerAnswer({"error": {"type": "security", "reason": form}}, 403),
        ServerAnswer({"error": {"type": form, "reason": form}}, 500),
        ServerAnswer({"error": {"type": "x", "reason": form}}, 503),
        version(f"2 {form}"),
    ):
        server.will(answer)
        with pytest.raises(EngineError) as caught:
            Client.connect(address, LOGGED_IN)
        assert form.lower() not in str(caught.value).lower()
        assert "[password]" in str(caught.value)
        assert form not in repr(caught.value.__cause__) + repr(caught.value.__context__)


@pytest.mark.servers
def test_no_answer_to_a_bulk_repeats_the_password_and_passages_stay_as_they_are(
    server: Unruly,
) -> None:
    server.will(version())
    client = Client.connect(parse_address(f"{server.url}/wiki"), replace(LOGGED_IN))
    refused = {"status": 400, "error": {"type": "x", "reason": f"Basic {TOKEN}"}}
    server.will(ServerAnswer({"errors": True, "items": [{"create": refused}]}))
    reply = client.call("POST", "/_bulk", [{"create": {}}, {}])
    assert reply["items"][0]["create"]["error"]["reason"] == "Basic [password]"
    shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
    hits = {"hits": [{"_id": "1", "_source": {"content": LOGIN[1]}}]}
    server.will(ServerAnswer({"_shards": shards, "timed_out": False, "hits": hits}))
    body = {"_source": ["content"], "track_total_hits": False}
    reply = client.call("POST", "/wiki/_search", body)
    assert reply["hits"]["hits"][0]["_source"]["content"] == LOGIN[1]
    client.close()


# Locations


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
        ["index", "c.jsonl", "--to", location, "--dry-run"],
        ["index", "c.jsonl", "--to", location, "--add"],
        ["index", "--rollback", "--to", location],
        ["embed", location, "--encoder", "hashing"],
        ["delete", location, "x"],
        ["compact", location],
        ["mcp", location],
    ):
        done = arag(*arguments)
        assert (done.code, done.out, done.err[: len(message)]) == (1, "", message)
        assert "s3c" not in done.err


@pytest.mark.parametrize("base_url", ["usr:s3cret@host:1/v1", "localhost:1/v1?key=s3cret"])
def test_no_command_prints_the_password_in_a_base_url(arag: Command, base_url: str) -> None:
    done = arag("ask", "i", "x", "--model", "m", "--base-url", base_url)
    assert done.code == 1
    assert "base URL with a user, password or query" in done.err
    assert "s3cret" not in done.err

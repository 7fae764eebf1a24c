"""Redaction of keys and passwords in the replies of servers and in messages."""

import base64
import json

import pytest

from arag_search.endpoints.refusals import Secrets
from tests.support.commands import Command
from tests.support.secrets import KEY, LOGIN, forms_of


@pytest.mark.parametrize("form", forms_of(KEY))
def test_a_key_is_hidden_in_every_form(form: str) -> None:
    hidden = Secrets(KEY, mark="[key]").hide(f"before {form} behind")
    assert "[key]" in hidden
    assert form not in hidden
    assert hidden.startswith("before ")
    assert hidden.endswith(" behind")


def test_a_login_is_hidden_in_the_form_that_http_sends() -> None:
    secrets = Secrets.of_login(*LOGIN)
    token = base64.b64encode(":".join(LOGIN).encode()).decode()
    for form in (*forms_of(LOGIN[1]), f"Basic {token}"):
        assert "[password]" in secrets.hide(form)
        assert form not in secrets.hide(form)


def test_text_without_secrets_and_short_secrets_are_unchanged() -> None:
    text = '{"a": "\\u0073k", "b": [1.50, 1e400]}  %73'
    assert Secrets(KEY, mark="[key]").hide(text) == text
    for secrets in (Secrets("", mark="x"), Secrets("abc", mark="x"), Secrets.of_login("", "")):
        assert secrets.hide("abc : Og==") == "abc : Og=="


def test_json_stays_valid_when_a_secret_is_replaced() -> None:
    secrets = Secrets('none"1234', mark="[key]")
    body = json.dumps({"text": 'a none"1234', 'none"1234': [7, None]})
    assert json.loads(secrets.hide(body)) == {"text": "a [key]", "[key]": [7, None]}


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
        ["index", "c.jsonl", "--to", location, "--sync", "--dry-run"],
        ["index", "c.jsonl", "--to", location, "--add"],
        ["index", "--rollback", "--to", location],
        ["embed", location, "--encoder", "hashing"],
        ["delete", location, "x"],
        ["compact", location],
        ["mcp", location],
    ):
        result = arag(*arguments)
        assert (result.code, result.out, result.err[: len(message)]) == (1, "", message)
        assert "s3c" not in result.err


@pytest.mark.parametrize("base_url", ["usr:s3cret@host:1/v1", "localhost:1/v1?key=s3cret"])
def test_no_command_prints_the_password_in_a_base_url(arag: Command, base_url: str) -> None:
    result = arag("ask", "i", "x", "--model", "m", "--base-url", base_url)
    assert result.code == 1
    assert "base URL with a user, password or query" in result.err
    assert "s3cret" not in result.err

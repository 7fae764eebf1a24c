"""TLS and passwords: a proxy in front of a node, with certificates by the commands of the guide."""

import subprocess
from collections.abc import Iterator

import pytest

from tests.support.containers import FOLDER, STAND_IN, TOKEN, Corpus, Stack, running
from tests.support.guides import blocks_of

FILES = (FOLDER / "docker-compose.yml", STAND_IN / "single.yml", STAND_IN / "tls.yml")
RIGHT = "https://opensearch-1:9200/arag-wiki"
COMMANDS = {
    "search": ("search", "{}", "w1 OR w2"),
    "build": ("index", "/corpus", "--overwrite", "--to", "{}"),
    "mcp": ("mcp", "{}", "--transport", "http", "--token-env", "TOKEN"),
}


@pytest.fixture(name="stack", scope="module")
def node_behind_a_proxy(
    corpus: Corpus, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("tls")
    (commands,) = (
        block.text for block in blocks_of("opensearch/README.md") if block.kind == "sh certificates"
    )
    make_others = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other -keyout other.key "
        "-out other-ca.pem; printf 'arag_build:%s\\n' $(openssl passwd -apr1 right) > users; "
        "chmod 644 users other-ca.pem certificates/ca.pem; chmod 755 . .. ../.. certificates"
    )
    for script in (commands, make_others):
        subprocess.run(["bash", "-ec", script], cwd=folder, check=True, capture_output=True)
    variables = {"ARAG_CORPUS": str(corpus.file), "ARAG_TEST_FOLDER": str(folder)}
    with running(*FILES, variables=variables) as stack:
        stack.compose("build", "proxy")
        stack.compose("up", "--wait", "opensearch", "proxy")
        assert "Built" in run(stack, "build", RIGHT)
        yield stack


def run(
    stack: Stack, command: str, location: str, *, ca: str = "/ca.pem", password: str = "right"
) -> str:
    """Return the output of a command in a container; for a server, its output at the start."""
    words = [word.format(location) for word in COMMANDS[command]]
    values = {
        "OPENSEARCH_USERNAME": "arag_build",
        "OPENSEARCH_PASSWORD": password,
        "OPENSEARCH_CA_CERTS": ca,
        "TOKEN": TOKEN,
    }
    options = [word for name, value in values.items() for word in ("-e", f"{name}={value}")]
    limit_s = 15 if command == "mcp" else 120  # a server that is let in runs until then
    program = ["timeout", "--preserve-status", str(limit_s), "arag-search", *words]
    entry = ["--rm", "--no-deps", *options, "--entrypoint", program[0], "client", *program[1:]]
    return stack.compose("run", *entry, check=False)


@pytest.mark.parametrize(
    ("command", "text"), [("search", " passages"), ("mcp", "Serving arag-wiki")]
)
def test_the_right_authority_name_and_password_are_let_in(
    command: str, text: str, stack: Stack
) -> None:
    assert text in run(stack, command, RIGHT)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_authority_is_reported(command: str, stack: Stack) -> None:
    output = run(stack, command, RIGHT, ca="/other-ca.pem")
    assert "The certificate of the server is not trusted" in output
    assert "Put its authority into /other-ca.pem." in output


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_host_name_is_reported(command: str, stack: Stack) -> None:
    output = run(stack, command, "https://elsewhere:9200/arag-wiki")
    assert "The certificate of the server is for another host" in output
    assert "elsewhere" in output


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_password_is_reported(command: str, stack: Stack) -> None:
    output = run(stack, command, RIGHT, password="wrong-password")
    assert "The server does not accept the user and the password" in output
    assert "wrong-password" not in output

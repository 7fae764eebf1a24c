"""docker-compose.yml: from a corpus to an agent, through faults, and away without a trace."""

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from arag_search.search.opening import open_index
from tests.support.containers import (
    FOLDER,
    IMAGE,
    ROOT,
    STAND_IN,
    TOKEN,
    Corpus,
    Stack,
    ask_over_mcp,
    docker,
    running,
)
from tests.support.faults import Clients
from tests.support.guides import blocks_of
from tests.support.parity import differences
from tests.support.patience import PATIENCE_S

FILES = (FOLDER / "docker-compose.yml", STAND_IN / "single.yml")


@pytest.fixture(name="stack", scope="module")
def services_that_are_up(corpus: Corpus) -> Iterator[Stack]:
    with running(*FILES, variables={"ARAG_CORPUS": str(corpus.file)}) as stack:
        stack.compose("up", "--wait")
        yield stack


def call(stack: Stack, method: str, path: str, body: str = "") -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{stack.ports['ARAG_PORT']}{path}",
        data=body.encode() or None,
        headers={"Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
        return json.load(reply)


def assert_answers_are_right(stack: Stack, corpus: Corpus) -> None:
    with open_index(stack.location("ARAG_PORT")) as index:
        assert index.manifest.chunks == 6_000
        for known in corpus.known:
            assert list(differences(known.answer, known.question.ask(index))) == []


def test_the_published_address_answers_as_embedded_lucene(stack: Stack, corpus: Corpus) -> None:
    assert_answers_are_right(stack, corpus)


def test_an_agent_searches_over_mcp_with_the_token_alone(stack: Stack) -> None:
    assert " passages" in ask_over_mcp(stack.mcp_url, "w1 AND w2 OR w3")
    for headers in ({}, {"Authorization": f"Bearer {TOKEN}x"}):
        answer = httpx2.post(stack.mcp_url, json={}, headers=headers)
        assert answer.status_code == 401
    health = httpx2.get(stack.mcp_url.replace("/mcp", "/health"))
    assert health.text == '{"status":"ok"}'


def test_a_corpus_is_loaded_once(stack: Stack) -> None:
    before = call(stack, "GET", "/arag-wiki/_alias")
    assert "Built" not in stack.compose("run", "--rm", "load")
    assert call(stack, "GET", "/arag-wiki/_alias") == before


def test_the_server_does_not_start_without_a_token(stack: Stack) -> None:
    unset = Stack(*FILES, variables=stack.variables)
    output = unset.compose(
        "run", "--rm", "--no-deps", "mcp", check=False, variables={"ARAG_MCP_TOKEN": ""}
    )
    assert "The token in the variable ARAG_MCP_TOKEN is missing" in output
    unset.compose("down", "--volumes", check=False)


def test_the_token_may_be_a_secret_in_a_file(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    secret = {"ARAG_MCP_TOKEN": "", "ARAG_MCP_TOKEN_FILE": str(tmp_path / "token")}
    with_file = Stack(*FILES, FOLDER / "docker-compose.secret.yml", variables=stack.variables)
    with_file.name = stack.name
    with_file.compose("up", "--wait", "--no-deps", "mcp", variables=secret)
    assert " passages" in ask_over_mcp(stack.mcp_url, "w1 OR w2")


def test_a_killed_node_answers_again_and_has_lost_nothing(stack: Stack, corpus: Corpus) -> None:
    def kill_and_start() -> None:
        docker("kill", "--signal", "KILL", stack.container("opensearch"))
        stack.compose("up", "--wait", "opensearch")

    with open_index(stack.location("ARAG_PORT")) as index:
        outcome = Clients(index, corpus.known).run(kill_and_start, 100)
    assert outcome.wrong == ()
    # A search fails at once while the only node is down, and says why.
    assert all("The search server does not answer (since " in of for of in outcome.failed)
    assert_answers_are_right(stack, corpus)
    assert " passages" in ask_over_mcp(stack.mcp_url, "w1 OR w2")


def test_a_snapshot_is_restored_after_the_container_was_replaced(
    stack: Stack, corpus: Corpus
) -> None:
    names = list(call(stack, "GET", "/arag-wiki,arag-wiki.sentences/_alias"))
    repository = {"type": "fs", "settings": {"location": "arag-wiki"}}
    call(stack, "PUT", "/_snapshot/backup", json.dumps(repository))
    indices = {"indices": "arag-wiki-*", "include_global_state": False}
    call(stack, "PUT", "/_snapshot/backup/first?wait_for_completion=true", json.dumps(indices))
    stack.compose("up", "--wait", "--force-recreate", "opensearch")
    assert_answers_are_right(stack, corpus)  # the volume has the data
    for name in names:
        call(stack, "DELETE", f"/{name}")
    call(
        stack,
        "POST",
        "/_snapshot/backup/first/_restore?wait_for_completion=true",
        json.dumps(indices),
    )
    assert_answers_are_right(stack, corpus)


def test_the_commands_of_the_guide_lead_from_a_corpus_to_an_answer(
    corpus: Corpus, tmp_path: Path
) -> None:
    (block,) = (
        block.text
        for block in blocks_of("opensearch/README.md")
        if block.text.startswith("printf 'ARAG_MCP_TOKEN=")
    )
    make_token, start, _ = block.splitlines()
    shutil.copytree(FOLDER, tmp_path / "opensearch")
    shutil.copyfile(ROOT / "arag_search" / "sample" / "corpus.jsonl", tmp_path / "corpus.jsonl")
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    with running(tmp_path / "opensearch" / FILES[0].name, FILES[1], variables={}) as stack:
        begin = "docker compose -f opensearch/docker-compose.yml"
        assert begin in start
        start = start.replace(
            begin, f"docker compose -p {stack.name} -f opensearch/{FILES[0].name} -f {FILES[1]}"
        )
        variables = {"ARAG_HEAP": "512m", **os.environ, **stack.variables}
        for command in (make_token, start):
            subprocess.run(
                ["bash", "-c", command],
                cwd=tmp_path,
                env=variables,
                check=True,
                capture_output=True,
            )
        token = (tmp_path / "opensearch" / ".env").read_text().strip().partition("=")[2]
        assert "passage" in ask_over_mcp(stack.mcp_url, "griselda", token)
        question = "Where was the poet who wrote Evangeline born?"
        options = ["--rm", "--network", "host", IMAGE, "ask", stack.location("ARAG_PORT"), question]
        assert "Portland" in docker("run", *options, "--model", "offline").stdout


def test_down_leaves_nothing(stack: Stack) -> None:
    assert len(stack.left()) >= 7
    stack.compose("down", "--volumes")
    assert stack.left() == []

"""Containers of a real Docker engine, for tests of the image and of the compose files."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import anyio
import pytest
from mcp.types import TextContent

from bench.nodes import OPENSEARCH_VERSION
from tests.support.absent import cannot_run
from tests.support.faults import Known
from tests.support.mcp_http import connected
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "opensearch"
STAND_IN = Path(__file__).parent / "stand_in"
IMAGE = "arag-search"
TOKEN = "correct-horse-battery-staple"
PASSAGES = 6_000
_OPENSEARCH = f"opensearchproject/opensearch:{OPENSEARCH_VERSION}"
_VARIABLES = {
    "ARAG_MCP_TOKEN": TOKEN,
    "ARAG_SEARCH_PASSWORD": "not-used",
    "ARAG_BUILD_PASSWORD": "not-used",
    "ARAG_HEAP": "512m",
}


@dataclass(frozen=True, slots=True)
class Corpus:
    """A file of documents, and questions on it with the answers of embedded Lucene."""

    file: Path
    known: list[Known]


def docker(
    *arguments: str,
    check: bool = True,
    variables: Mapping[str, str] | None = None,
    timeout_s: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Run a command of Docker. With ``check``, one that fails fails the test with its output."""
    done = subprocess.run(
        ["docker", *arguments],
        env={**os.environ, **_VARIABLES, **(variables or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if check and done.returncode:
        pytest.fail(f"docker {' '.join(arguments)}\n{done.stdout}{done.stderr}")
    return done


def build_images() -> None:
    """Build the image, and the stand-in unless the official image of OpenSearch is there.

    Skips the test without an engine, or fails it where one is required.
    """
    if shutil.which("docker") is None or docker("compose", "ls", check=False).returncode:
        cannot_run(
            'no Docker engine with compose runs; eval "$(.ci/docker up)" starts one on Debian'
        )
    docker("compose", "-f", str(FOLDER / "docker-compose.image.yml"), "build", timeout_s=900)
    labels = docker("image", "inspect", "-f", "{{json .Config.Labels}}", _OPENSEARCH, check=False)
    if labels.returncode or "arag-search.stand-in" in (json.loads(labels.stdout) or {}):
        docker("compose", "-f", str(STAND_IN / "docker-compose.yml"), "build", timeout_s=900)


class Stack:
    """A compose project of its own, with free ports of this machine."""

    def __init__(self, *files: Path, variables: Mapping[str, str]) -> None:
        self.name = f"arag-test-{uuid.uuid4().hex[:8]}"
        self._files = [word for file in files for word in ("-f", str(file))]
        ports = ("ARAG_PORT", "ARAG_PORT_1", "ARAG_PORT_2", "ARAG_PORT_3", "ARAG_MCP_PORT")
        self.ports = dict(zip(ports, _free_ports(len(ports)), strict=True))
        self.variables = {name: str(port) for name, port in self.ports.items()} | dict(variables)

    def compose(
        self, *arguments: str, check: bool = True, variables: Mapping[str, str] | None = None
    ) -> str:
        """Run a command of compose and return what it prints."""
        base = ["compose", "-p", self.name, *self._files, "--profile", "load"]
        merged = {**self.variables, **(variables or {})}
        done = docker(*base, *arguments, check=check, variables=merged)
        return done.stdout + done.stderr

    def container(self, service: str) -> str:
        """Return the id of the container of a service."""
        return self.compose("ps", "-aq", service).strip()

    def left(self) -> list[str]:
        """Return the containers, networks and volumes of the project."""
        label = f"label=com.docker.compose.project={self.name}"
        lists = (["ps", "-a"], ["network", "ls"], ["volume", "ls"])
        return [
            line
            for words in lists
            for line in docker(*words, "-q", "--filter", label).stdout.split()
        ]

    @property
    def mcp_url(self) -> str:
        return f"http://127.0.0.1:{self.ports['ARAG_MCP_PORT']}/mcp"

    def location(self, *ports: str) -> str:
        """Return the address of the index through published ports, named by their variables."""
        hosts = ",".join(f"127.0.0.1:{self.ports[port]}" for port in ports)
        return f"http://{hosts}/arag-wiki"


@contextmanager
def running(*files: Path, variables: Mapping[str, str]) -> Generator[Stack]:
    """Provide a project, and remove all of it at the end."""
    stack = Stack(*files, variables=variables)
    try:
        yield stack
    finally:
        stack.compose("down", "--volumes", "--timeout", "2", check=False)


def write_corpus(path: Path) -> Path:
    """Write made-up documents of eight sentences, a passage each."""
    random = Random(1)
    words = [f"w{number}" for number in range(4_000)]
    with path.open("w", encoding="utf-8") as lines:
        for number in range(PASSAGES):
            text = " ".join(f"A {' '.join(random.choices(words, k=12))}." for _ in range(8))
            title = " ".join(random.choices(words, k=3))
            lines.write(json.dumps({"id": f"d{number}", "title": title, "text": text}) + "\n")
    path.chmod(0o644)
    return path


def ask_over_mcp(url: str, query: str, token: str = TOKEN) -> str:
    """Return the reply of a search over MCP."""

    async def ask() -> str:
        async with connected(url, token) as client:
            result = await client.call_tool("logical_search", {"query": query})
            assert isinstance(result.content[0], TextContent)
            return result.content[0].text

    return anyio.run(ask)


def until(condition: Callable[[], bool], what: str, limit_s: float = PATIENCE_S) -> None:
    """Wait until a condition holds; fail the test if it does not in time."""
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"not within {limit_s:g} s: {what}")
        time.sleep(0.5)


def _free_ports(count: int) -> Sequence[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports

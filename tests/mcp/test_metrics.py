"""The figures of a server over HTTP, as Prometheus reads them."""

from __future__ import annotations

import re
import signal
import socket
import urllib.request
from pathlib import Path

import anyio
import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from arag_search.errors import ArgumentError
from arag_search.mcp_server.listening import Listening
from arag_search.mcp_server.metrics import Metrics, scraped
from arag_search.mcp_server.workers import Workers
from tests.support.mcp_http import (
    ENVELOPE,
    HEADERS,
    MODERN,
    begin_session,
    http_command,
    over_http,
    web_client,
)
from tests.support.mcp_servers import DOWN, LocalServer, MoodyEngine, until
from tests.support.patience import PATIENCE_S


def samples(port: int) -> dict[str, float]:
    """Scrape a server, and return its figures by name and labels, in the order of their names."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as page:
        text = page.read().decode()
    return {
        " ".join(
            [sample.name, *(value for _, value in sorted(sample.labels.items()))]
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def asked(http: httpx2.AsyncClient, url: str, tool: str) -> None:
    headers = {"Mcp-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    params = {"name": tool, "arguments": {"chunk_ids": ["scarlatti.1"]}, **ENVELOPE}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    await http.post(url, json=message, headers=HEADERS | headers)


def test_prometheus_reads_calls_queue_sessions_and_indexes_and_no_text_of_a_client() -> None:
    engine = MoodyEngine()
    engine.gate.clear()
    served = LocalServer(engine, workers=Workers(1))
    metrics = Metrics(served.live, served.workers)

    async def talk(listening: Listening) -> None:
        await begin_session(listening)
        with scraped(metrics, 0) as port:
            async with web_client() as http:
                async with anyio.create_task_group() as group:
                    for _ in range(2):
                        group.start_soon(asked, http, listening.url, "chunk_read")
                    await until(lambda: served.workers.busy == 2 and engine.at_work == 1)
                    before = await anyio.to_thread.run_sync(samples, port)
                    engine.gate.set()
                await asked(http, listening.url, "evil")
            for call in served.calls:
                metrics.note(call)
            engine.failure = DOWN
            after = await anyio.to_thread.run_sync(samples, port)
        assert [before[name] for name in ("arag_queue_calls", "arag_running_calls")] == [1, 1]
        assert before["arag_sessions"] == 1
        assert (before["arag_index_up memory"], after["arag_index_up memory"]) == (1, 0)
        assert after["arag_calls_total ok chunk_read"] == 2
        assert after["arag_call_seconds_count chunk_read"] == 2
        assert after["arag_call_round_trips_sum chunk_read"] == 0
        assert after["arag_queue_seconds_count chunk_read"] == 2
        assert after["arag_follower_failures_total memory"] == 0
        assert after["arag_index_age_seconds memory"] > 0
        assert not [name for name in after if "evil" in name]

    over_http(talk, served=served, metrics=metrics)


def test_a_port_that_is_taken_is_an_error() -> None:
    served = LocalServer(MoodyEngine())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(ArgumentError, match="cannot be served there"),
            scraped(Metrics(served.live, served.workers), port),
        ):
            pass
    assert served.workers.close()


@pytest.mark.server
@pytest.mark.usefixtures("commands_folder")
def test_the_command_answers_prometheus_on_loopback(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with http_command(log, "my-index", "--metrics-port", "0") as (server, url):

        async def main() -> None:
            async with web_client() as http:
                await asked(http, url, "chunk_read")

        anyio.run(main)
        (port,) = re.findall(r"at http://127\.0\.0\.1:(\d+)/metrics", log.read_text())
        figures = samples(int(port))
        assert figures["arag_index_up my-index"] == 1
        assert sum(of for name, of in figures.items() if name.startswith("arag_calls_total")) == 1
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE_S) == 128 + signal.SIGTERM

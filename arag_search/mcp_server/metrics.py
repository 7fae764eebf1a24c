"""Figures of the server for Prometheus, on a port that only this machine reaches.

Labels are names of the server's own, never text of clients.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Histogram, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from arag_search.errors import ArgumentError
from arag_search.mcp_server.calls import ServedCall
from arag_search.mcp_server.listening import DEFAULT_HOST
from arag_search.mcp_server.live import LiveIndexes
from arag_search.mcp_server.workers import Workers

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_ROUND_TRIPS = (0, 1, 2, 3, 4, 6, 8, 12, 24)


class Metrics(Collector):
    """The counts of calls, and the values at the time when somebody asks."""

    def __init__(self, live: LiveIndexes, workers: Workers) -> None:
        self._live, self._workers = live, workers
        self.sessions: Callable[[], int] = lambda: 0
        self.registry = CollectorRegistry()
        self._calls = Counter(
            "arag_calls", "Calls that have ended.", ("tool", "outcome"), registry=self.registry
        )
        self._seconds, self._round_trips, self._queue_seconds = (
            Histogram(f"arag_{name}", what, ("tool",), registry=self.registry, buckets=buckets)
            for name, what, buckets in (
                ("call_seconds", "Seconds of a call, with its wait.", _SECONDS),
                ("call_round_trips", "Requests of a call to search servers.", _ROUND_TRIPS),
                ("queue_seconds", "Seconds until a call started.", _SECONDS),
            )
        )
        self.registry.register(self)

    def note(self, call: ServedCall) -> None:
        """Count a call that has ended."""
        self._calls.labels(call.tool, call.outcome).inc()
        self._seconds.labels(call.tool).observe(call.ms / 1000)
        self._round_trips.labels(call.tool).observe(call.round_trips)
        if call.queue_ms is not None:
            self._queue_seconds.labels(call.tool).observe(call.queue_ms / 1000)

    def collect(self) -> Iterator[Metric]:
        """Yield what is true now."""
        turns = self._workers.turns
        waiting = sum(map(len, list(turns.waiting.values())))
        yield GaugeMetricFamily("arag_queue_calls", "Calls that wait.", waiting)
        yield GaugeMetricFamily("arag_running_calls", "Calls that run.", turns.running.total())
        yield GaugeMetricFamily("arag_sessions", "Sessions, those of 2025.", self.sessions())
        up = GaugeMetricFamily("arag_index_up", "1 if it can be searched.", labels=["index"])
        age = GaugeMetricFamily(
            "arag_index_age_seconds", "Since the index was built.", labels=["index"]
        )
        failures = CounterMetricFamily(
            "arag_follower_failures", "New states that could not be opened.", labels=["index"]
        )
        for name, index in self._live.availability().items():
            up.add_metric([name], not index.problem)
            failures.add_metric([name], index.failures)
            if index.created:
                created_s = datetime.fromisoformat(index.created).timestamp()
                age.add_metric([name], time.time() - created_s)
        yield from (up, age, failures)


@contextmanager
def scraped(metrics: Metrics, port: int) -> Generator[int]:
    """Answer scrapes of the figures on a port of loopback, which is yielded; 0 takes any. Raises
    ArgumentError if the port is taken."""
    try:
        server, thread = start_http_server(port, DEFAULT_HOST, metrics.registry)
    except OSError as error:
        raise ArgumentError(
            f"The figures cannot be served there ({error.strerror}).",
            where=f"--metrics-port {port}",
            allowed="a free port",
            do="Choose another one.",
        ) from error
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""What a forked process does not share with its parent: connections to endpoints, and threads."""

import os
import signal
import time
import warnings
from collections.abc import Callable

import pytest

from arag_search.vectors.encoders.endpoint import EndpointEncoder
from tests.support.endpoint import embeddings, running_endpoint
from tests.support.passages import chunk
from tests.support.patience import PATIENCE_S
from tests.support.semantic_indexes import vector_index


def exit_code_of(work: Callable[[], object]) -> int:
    """Return the exit code of a forked process that does some work."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of a fork with threads.
        child = os.fork()
    if not child:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    until = time.monotonic() + PATIENCE_S
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < until:
        time.sleep(0.01)
    if not ended[0]:
        os.kill(child, signal.SIGKILL)
        ended = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(ended[1])


@pytest.mark.parametrize("report", ["The-PR-Agent/pr-agent#2735", "benoitc/gunicorn#3206"])
def test_a_connection_to_an_endpoint_is_of_one_process(
    report: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with running_endpoint() as endpoint:
        endpoint.reply_with(embeddings([1, 0]))
        encoder = EndpointEncoder("m", base_url=endpoint.base_url)
        encoder.encode(["a"])
        assert exit_code_of(lambda: encoder.encode(["b"])) == 0
        encoder.encode(["c"])
        own, forked, again = endpoint.peers
        assert own == again != forked
        encoder.close()


def test_a_hybrid_search_has_threads_of_its_own_in_each_process() -> None:
    with vector_index(chunk(1, "d1", "", "The opera was long.")) as index:
        assert index.hybrid_search("opera").hits
        assert exit_code_of(lambda: index.hybrid_search("opera").hits[0]) == 0

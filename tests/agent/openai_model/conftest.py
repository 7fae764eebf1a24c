"""An endpoint on loopback, and models that send requests to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from arag_search.agent.models.openai import OpenAIModel
from tests.support.endpoint import Endpoint, running_endpoint
from tests.support.openai_asking import KEY, WaitLog, fail_on_wait


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with pytest.MonkeyPatch.context() as patch, running_endpoint() as running:
        patch.setenv("NO_PROXY", "127.0.0.1")
        yield running


@pytest.fixture(scope="module")
def all_waits() -> WaitLog:
    return WaitLog()


@pytest.fixture
def waits(all_waits: WaitLog) -> WaitLog:
    all_waits.seconds.clear()
    all_waits.retries.clear()
    return all_waits


@pytest.fixture(scope="module")
def shared(endpoint: Endpoint) -> Iterator[OpenAIModel]:
    """Yield a model for the tests that change none of its options and wait for nothing."""
    model = OpenAIModel("m", base_url=endpoint.base_url, key=KEY, sleep=fail_on_wait)
    yield model
    model.close()


@pytest.fixture(scope="module")
def patient(endpoint: Endpoint, all_waits: WaitLog) -> Iterator[OpenAIModel]:
    """Yield a model that tries three times, with no chance in its waits."""
    model = OpenAIModel(
        "m",
        base_url=endpoint.base_url,
        key=KEY,
        max_retries=2,
        sleep=all_waits.sleep,
        chance=lambda: 0.0,
        on_retry=all_waits.retries.append,
    )
    yield model
    model.close()

"""What a clone may lack: a server, a real model, a program. A test that asks for such a fixture has
the mark ``server``, unless it runs with those marked ``long`` or ``shared_data``."""

import os
from collections.abc import Iterable
from typing import NoReturn

import pytest

FIXTURES = frozenset(("opensearch_jars", "opensearch_url", "opensearch_cluster", "minilm"))
FIXTURES |= {"browser", "compiler", "ripgrep"}

REQUIRE_VARIABLE = "ARAG_REQUIRE_OPENSEARCH"
"""If it is 1, a test fails where it would otherwise be skipped, as it does in CI."""


def mark(items: Iterable[pytest.Item]) -> None:
    for item in items:
        names = getattr(item, "fixturenames", ())
        others = map(item.get_closest_marker, ("long", "shared_data"))
        if not (FIXTURES.isdisjoint(names) or any(others)):
            item.add_marker("server")


def cannot_run(reason: str) -> NoReturn:
    """Skip a test that lacks something, with the reason; fail it where everything must run."""
    if os.environ.get(REQUIRE_VARIABLE) == "1" or os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason.splitlines()[0])

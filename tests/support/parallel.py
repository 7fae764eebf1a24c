"""Which tests run beside each other: the workers share the modules of whole folders."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[2]
WORKERS = 2
"""Each collects all tests, so that a third costs more than it saves."""

EXPENSIVE = {
    "opensearch_cluster": re.compile(r"\bopensearch_cluster: "),
    "opensearch": re.compile(r"\bopensearch(_url)?: "),
    "model": re.compile(r"\bminilm: "),
}
"""What a session starts or loads once: all modules whose tests ask for it run in one worker."""

LONG = ("opensearch", "jobs", "vectors", "bench", "viewer", "mcp", "cli", "lucene")
"""Folders whose modules take long, longest first, so that both workers end at about one time."""


def worker_count(arguments: Sequence[str], cores: int) -> int:
    """Return how many workers run these arguments of pytest: none where modules or tests are
    named, because starting workers takes longer than a few tests; and none for containers, which
    several workers would build."""
    folders = [Path(argument) for argument in arguments]
    whole_folders = all(folder.is_dir() and folder.name != "docker" for folder in folders)
    return WORKERS if whole_folders and cores >= WORKERS else 0


def group_of(module: str) -> str:
    """Return the name under which a module, "tests/jobs/test_build.py", is given to a worker."""
    source = (ROOT / module).read_text("utf-8")
    return next((name for name, asks in EXPENSIVE.items() if asks.search(source)), module)


class ModuleScheduling(LoadScopeScheduling):
    """Modules one by one to whichever worker is free; the modules of a group to the same."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        self._groups: dict[str, str] = {}

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        if module not in self._groups:
            self._groups[module] = group_of(module)
        return self._groups[module]


def longest_first(items: list[pytest.Item]) -> None:
    """Sort tests, so that groups and the modules of long folders come first."""
    ranks: dict[str, tuple[int, int]] = {}
    for item in items:
        module = item.nodeid.partition("::")[0]
        if module not in ranks:
            grouped = group_of(module) in EXPENSIVE
            folder = module.split("/")[1]
            ranks[module] = (not grouped, LONG.index(folder) if folder in LONG else len(LONG))
    items.sort(key=lambda item: ranks[item.nodeid.partition("::")[0]])


def is_worker() -> bool:
    return "PYTEST_XDIST_WORKER" in os.environ

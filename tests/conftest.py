"""Fixtures of all tests: a temporary home, and one cache of downloads."""

import contextlib
import gc
import io
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import hypothesis
import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from arag_search.cli.app import run
from arag_search.engines.jars import CLASSPATH_VARIABLE, lucene_jars
from arag_search.engines.lucene import jvm
from arag_search.search.index import Index
from arag_search.system.cache import CACHE_VARIABLE, cache_folder
from arag_search.system.processes import usable_cores
from arag_search.tools.passages.keyword import KeywordSearch
from arag_search.tools.passages.logical import LogicalSearch
from arag_search.tools.passages.read import ChunkRead
from arag_search.tools.preset import plain_preset
from tests.support import absent, parallel
from tests.support.browser import browser  # noqa: F401
from tests.support.commands import SAMPLE, Command, CommandResult
from tests.support.examples import examples
from tests.support.opensearch_indexes import opensearch  # noqa: F401
from tests.support.opensearch_node import (  # noqa: F401
    opensearch_cluster,
    opensearch_jars,
    opensearch_url,
    own_node,
)
from tests.support.passages import VIVALDI, index_of
from tests.support.real_model import minilm  # noqa: F401
from tests.support.shared_data import prepare

# Else each of the processes that tests start would compile torch and all else anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Java in this process compiles its code once and quickly, as short-lived nodes do, because better
# code saves less time here than it takes. The processes that tests start compile as usual.
_cache_flags = jvm.cache_flags
jvm.cache_flags = lambda cache: [*_cache_flags(cache), "-XX:TieredStopAtLevel=1"]

# The cache is chosen before the home changes, so that all tests and processes download jars once.
_CACHE = str(cache_folder())


@pytest.fixture(autouse=True, scope="session")
def interrupts_as_at_a_terminal() -> None:
    """Let Ctrl-C interrupt even in background jobs, which ignore it by default."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def temporary_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the tests a temporary home, so that they do not touch the home of their user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv(CACHE_VARIABLE, _CACHE)
        patch.delenv("XDG_CACHE_HOME", raising=False)
        for name in ("MODEL", "API_KEY", "BASE_URL"):  # so that no test calls the user's model
            patch.delenv(f"ARAG_{name}", raising=False)
            patch.delenv(f"OPENAI_{name}", raising=False)
        yield


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty cache of downloads for a test. Lucene stays where it is, and with it the cache
    of Java's classes, so that no process starts to make another."""
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv(CLASSPATH_VARIABLE, lucene_jars(jvm.LUCENE_CORE)[0])
    classes = jvm.aot_cache(jvm.class_path())
    (folder / classes.name).symlink_to(classes if classes.exists() else os.devnull)
    monkeypatch.setenv(CACHE_VARIABLE, str(folder))
    return folder


# A deadline would be a test of time, which a busy machine fails.
hypothesis.settings.register_profile("project", deadline=None, max_examples=examples(100))
hypothesis.settings.load_profile("project")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    return parallel.worker_count(config.args, usable_cores())


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    return parallel.ModuleScheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    absent.mark(items)
    if parallel.is_worker():
        parallel.longest_first(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are collected; later, collect it less often, and leave out
    what exists by then. This saves a sixth of the time of the fast tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    prepare(item)


# Commands


@pytest.fixture(scope="session")
def built_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build two read-only indexes: ``my-index``, and ``plain`` without titles and sentences."""
    place = tmp_path_factory.mktemp("built")
    with contextlib.chdir(place), contextlib.redirect_stdout(io.StringIO()):
        assert run(["index", SAMPLE, "--to", "my-index", "--metadata",
                    "year:number,kind:keyword"]) == 0  # fmt: skip
        texts = ("Alpha beta. Gamma delta.", "Beta gamma beta.", "Café & co.")
        lines = (json.dumps({"id": f"n{at}", "text": text}) for at, text in enumerate(texts))
        Path("plain.jsonl").write_text("\n".join(lines))
        assert run(["index", "plain.jsonl", "--to", "plain", "--without", "sentences"]) == 0
    return place


@pytest.fixture(scope="module")
def commands_folder(built_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Provide a working folder with copies of both indexes, for the tests of one module."""
    place = tmp_path_factory.mktemp("cli")
    shutil.copytree(built_folder, place, symlinks=True, dirs_exist_ok=True)
    with contextlib.chdir(place):
        yield place


@pytest.fixture
def arag(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command in this process."""

    def call(*arguments: str) -> CommandResult:
        capsys.readouterr()
        code = run(list(arguments))
        return CommandResult(code, *capsys.readouterr())

    return call


@pytest.fixture
def give_input(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Put bytes on standard input."""

    def give(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return give


# Tools


@pytest.fixture(scope="module")
def index() -> Index:
    return index_of(*VIVALDI)


@pytest.fixture(scope="module")
def logical(index: Index) -> LogicalSearch:
    return LogicalSearch(index)


@pytest.fixture(scope="module")
def keyword(index: Index) -> KeywordSearch:
    return KeywordSearch(index)


@pytest.fixture(scope="module")
def read(index: Index) -> ChunkRead:
    return ChunkRead(index, plain_preset(reproduces="A-RAG"))

"""The AOT cache of Java: created beside a build, used by later starts, never needed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from arag_search.engines import aot_cache as caches
from arag_search.engines.jars import CACHE_VARIABLE, CLASSPATH_VARIABLE, lucene_jars
from arag_search.engines.lucene import aot_cache, jvm
from arag_search.system.lock import hold

_SEARCH = """
import sys
from collections.abc import Iterator
from arag_search.engines.lucene import jvm
from arag_search.search.index import open_index
jvm.start(f"-XX:AOTCache={jvm.aot_cache(jvm.class_path())}", *sys.argv[2:])
with open_index(sys.argv[1]) as index:
    print(len(index.logical_search("alpha").hits))
"""


@pytest.fixture(scope="module", autouse=True)
def class_path() -> Iterator[None]:
    """Name the jar of Lucene, so that folders of caches hold nothing but caches."""
    [jar] = lucene_jars(jvm.LUCENE_CORE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CLASSPATH_VARIABLE, jar)
        yield


@pytest.fixture(scope="module")
def cache(class_path: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a cache as a build does, in a folder where a process that did so was killed."""
    folder = tmp_path_factory.mktemp("home") / "cache"
    (folder / ".aot-classes-of-a-process-that-was-killed").mkdir(parents=True)
    (folder / ".aot-classes.lock").write_text("4711\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(folder))
        process = aot_cache.create_in_background()
        assert process is not None
        assert process.wait(timeout=120) == 0
        assert list(folder.iterdir()) == [jvm.aot_cache(jvm.class_path())]
        assert aot_cache.create_in_background() is None
    return folder


@pytest.fixture
def index(tmp_path: Path) -> Path:
    source = tmp_path / "alpha.txt"
    source.write_text("alpha beta")
    from index_jobs.build.new_index import build_index
    from index_jobs.build.options import BuildOptions

    build_index([str(source)], tmp_path / "index", BuildOptions())
    return tmp_path / "index"


def _python(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, CACHE_VARIABLE: str(cache)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_java_takes_its_classes_from_the_cache_that_a_build_created(
    cache: Path, index: Path
) -> None:
    # With AOTMode=on, Java does not start without the cache.
    process = _python(cache, "-c", _SEARCH, str(index), "-XX:AOTMode=on")
    assert (process.stdout, process.stderr) == ("1\n", "")


@pytest.mark.parametrize("size", [0, 1000, 9_000_000])
def test_a_truncated_cache_does_no_harm(
    size: int, cache: Path, index: Path, tmp_path: Path
) -> None:
    [archive] = cache.iterdir()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / archive.name).write_bytes(archive.read_bytes()[:size])
    process = _python(tmp_path / "cache", "-c", _SEARCH, str(index))
    assert (process.stdout, process.stderr) == ("1\n", "")


def test_a_cache_for_other_flags_does_no_harm(
    cache: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(jvm.HEAP_VARIABLE, "40g")  # With this heap, pointers have another size.
    process = _python(cache, "-c", _SEARCH, str(index))
    assert (process.stdout, process.stderr) == ("1\n", "")


def test_a_cache_that_another_process_is_creating_is_not_created_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    lock = hold(tmp_path / ".aot-classes.lock", "")
    try:
        assert aot_cache.create() is None
    finally:
        os.close(lock)
    assert [path.name for path in tmp_path.iterdir()] == [".aot-classes.lock"]


def test_only_the_caches_used_last_are_kept(tmp_path: Path) -> None:
    for number in range(6):
        path = tmp_path / f"classes-{number}.aot"
        path.touch()
        os.utime(path, (number, number))
    (tmp_path / "node-classes-0.aot").touch()
    caches._remove_old(tmp_path / "classes-0.aot")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "classes-0.aot",
        "classes-4.aot",
        "classes-5.aot",
        "node-classes-0.aot",
    ]

"""The AOT cache of Java: created beside a build, used by later starts, never needed."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from arag_search.engines.jars import CLASSPATH_VARIABLE, lucene_jars
from arag_search.engines.lucene import jvm
from arag_search.engines.lucene.aot_cache import _MAX_CACHES
from arag_search.system.cache import CACHE_VARIABLE
from tests.support.examples import some_of
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.long

CREATE = ("-c", "from arag_search.engines.lucene.aot_cache import create; create()")
"""Create a cache at once; as a module, the program leaves the processors to others."""
BUILD = """
import sys
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
build_index(sys.argv[1:2], sys.argv[2], BuildOptions(language="none"))
"""
SEARCH = """
import sys
from arag_search.engines.lucene import jvm
from arag_search.search.opening import open_index
if sys.argv[2:]:
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


def python(cache: Path, *arguments: str, largest: int = -1) -> subprocess.Popen[str]:
    """Start Python with a cache folder; ``largest`` limits the size of files, in bytes."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        env={**os.environ, CACHE_VARIABLE: str(cache)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest)),
    )


def found(cache: Path, index: Path, *flags: str) -> tuple[str, str]:
    """Return what a search in a process of its own prints, and its errors."""
    with python(cache, "-c", SEARCH, str(index), *flags) as process:
        return process.communicate(timeout=300)


def archives(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name[0] != "." and path.name != "watched"]


OLD = [f"java-{number}.aot" for number in range(_MAX_CACHES + 1)]
KEPT = OLD[2:]


@pytest.fixture(scope="module")
def cache(index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a cache by a build, beside a process that does nothing else, in a folder with old
    caches where a process that created one was killed."""
    folder = tmp_path_factory.mktemp("cache")
    for name in (".new.aot", ".new.config"):
        (folder / name).write_text("a part")
    for second, name in enumerate(OLD):
        (folder / name).touch()
        os.utime(folder / name, (second, second))
    source, target = index.parent / "alpha.txt", tmp_path_factory.mktemp("built") / "i"
    with python(folder, "-c", BUILD, str(source), str(target)) as build:
        with python(folder, *CREATE) as creator:
            creator.communicate(timeout=300)
        assert build.communicate(timeout=300) == ("", "")
    assert creator.returncode == 0
    until = time.monotonic() + PATIENCE_S
    while (there := {path.name for path in archives(folder)}) > {*OLD} or there <= {*OLD}:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert len(there - {*OLD}) == 1
    assert there & {*OLD} == {*KEPT}
    for name in KEPT:
        (folder / name).unlink()
    return folder


@pytest.fixture(scope="module")
def index(class_path: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build an index with a cache folder that cannot be written."""
    folder = tmp_path_factory.mktemp("index")
    (folder / "alpha.txt").write_text("alpha beta")
    no_folder = folder / "alpha.txt" / "cache"
    with python(no_folder, "-c", BUILD, str(folder / "alpha.txt"), str(folder / "i")) as process:
        assert process.communicate(timeout=300) == ("", "")
    return folder / "i"


def test_java_takes_its_classes_from_the_cache(cache: Path, index: Path) -> None:
    # With AOTMode=on, Java does not start without the cache.
    assert found(cache, index, "-XX:AOTMode=on") == ("1\n", "")


@pytest.mark.parametrize("size", some_of([9_000_000, 0]))
def test_a_truncated_cache_does_no_harm(
    size: int, cache: Path, index: Path, tmp_path: Path
) -> None:
    [archive] = archives(cache)
    (tmp_path / archive.name).write_bytes(archive.read_bytes()[:size])
    assert found(tmp_path, index) == ("1\n", "")


@pytest.mark.parametrize("tenth", some_of([6, 0, 3, 9]))
def test_a_damaged_byte_in_the_cache_does_no_harm(
    tenth: int, cache: Path, index: Path, tmp_path: Path
) -> None:
    [archive] = archives(cache)
    data = bytearray(archive.read_bytes())
    data[tenth * len(data) // 10 + 20] ^= 0xFF
    (tmp_path / archive.name).write_bytes(data)
    assert found(tmp_path, index) == ("1\n", "")
    assert archives(tmp_path) == [tmp_path / archive.name]


def test_a_cache_for_other_flags_does_no_harm(
    cache: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(jvm.HEAP_VARIABLE, "40g")  # With this heap, pointers have another size.
    assert found(cache, index) == ("1\n", "")


def test_the_third_search_without_a_cache_lets_one_be_created(index: Path, tmp_path: Path) -> None:
    for runs in (1, 2):
        assert found(tmp_path, index) == ("1\n", "")
        assert len((tmp_path / ".aot.runs").read_text().splitlines()) == runs
        assert archives(tmp_path) == []
    assert found(tmp_path, index) == ("1\n", "")
    until = time.monotonic() + 300
    while not archives(tmp_path) or any(path.suffix == ".config" for path in tmp_path.iterdir()):
        assert time.monotonic() < until
        time.sleep(0.1)
    assert found(tmp_path, index, "-XX:AOTMode=on") == ("1\n", "")
    assert not (tmp_path / ".aot.runs").exists()


def test_a_cache_that_java_cannot_write_whole_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "java-0.aot").touch()
    with python(tmp_path, *CREATE, largest=20_000_000) as creator:
        creator.communicate(timeout=300)
        assert archives(tmp_path) == [tmp_path / "java-0.aot"]

"""The class archive: made beside a build, used by later starts, never needed."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from arag_search.engines.lucene import class_archive, jvm
from arag_search.engines.lucene.bridge import ours

_SEARCH = """
import sys
from arag_search.engines.lucene import class_archive, jvm
from arag_search.engines.lucene.bridge import ours
from arag_search.search.index import open_index
archive = class_archive.path(jvm.class_path())
jvm.start(f"-XX:SharedArchiveFile={archive}", *sys.argv[2:])
with open_index(sys.argv[1]) as index:
    print(len(index.logical_search("alpha").hits))
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with the jar and an archive."""
    folder = tmp_path_factory.mktemp("cache")
    _copy_jars(folder)
    done = _python(folder, "-m", "arag_search.engines.lucene.class_archive")
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_file()
    return folder


@pytest.fixture
def index(tmp_path: Path) -> Path:
    source = tmp_path / "alpha.txt"
    source.write_text("alpha beta")
    from index_jobs.build.build import build_index
    from index_jobs.build.options import BuildOptions

    build_index([str(source)], tmp_path / "index", BuildOptions())
    return tmp_path / "index"


def _copy_jars(folder: Path) -> None:
    ours("Queries")
    for jar in map(Path, jvm.class_path()):
        shutil.copy(jar, folder)


def _python(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, jvm.CACHE_VARIABLE: str(cache)}
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_java_takes_its_classes_from_the_archive(cache: Path, index: Path) -> None:
    # -Xshare:on refuses to start without the archive.
    done = _python(cache, "-c", _SEARCH, str(index), "-Xshare:on")
    assert (done.stdout, done.stderr) == ("1\n", "")
    assert sorted(each.suffix for each in cache.iterdir()) == [".jar", ".jar", ".jsa"]


def test_a_broken_archive_does_no_harm(cache: Path, index: Path, tmp_path: Path) -> None:
    broken = tmp_path / "cache"
    shutil.copytree(cache, broken)
    jar = next(broken.glob("*.jar"))
    shutil.copystat(next(cache.glob("*.jar")), jar)
    for archive in broken.glob("*.jsa"):
        archive.unlink()
    code = "from arag_search.engines.lucene import class_archive, jvm\n"
    code += "class_archive.path(jvm.class_path()).write_bytes(b'no archive' * 1000)"
    assert _python(broken, "-c", code).returncode == 0
    done = _python(broken, "-c", _SEARCH, str(index))
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_a_build_has_it_made_beside_its_work(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = tmp_path / "cache"
    fresh.mkdir()
    _copy_jars(fresh)
    (fresh / ".classes-of-one-that-died").mkdir()
    os.utime(fresh / ".classes-of-one-that-died", (0, 0))
    monkeypatch.setenv(jvm.CACHE_VARIABLE, str(fresh))
    class_archive.make_beside()
    [child] = class_archive._started[-1:]
    assert child.wait(timeout=120) == 0
    assert class_archive.path(jvm.class_path()).is_file()
    assert not list(fresh.glob(".classes-*"))
    before = len(class_archive._started)
    class_archive.make_beside()
    assert len(class_archive._started) == before


def test_one_that_another_process_makes_is_waited_for_by_nobody(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = tmp_path / "cache"
    (fresh / ".classes-of-another").mkdir(parents=True)
    _copy_jars(fresh)
    monkeypatch.setenv(jvm.CACHE_VARIABLE, str(fresh))
    before, began = len(class_archive._started), time.monotonic()
    class_archive.make_beside()
    assert len(class_archive._started) == before
    assert time.monotonic() - began < 5


def test_only_the_archives_used_last_are_kept(tmp_path: Path) -> None:
    for number in range(6):
        each = tmp_path / f"classes-{number}.jsa"
        each.touch()
        os.utime(each, (number, number))
    class_archive._forget_old(tmp_path / "classes-0.jsa")
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "classes-0.jsa",
        "classes-4.jsa",
        "classes-5.jsa",
    ]

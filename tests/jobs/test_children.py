"""The processes that convert files end with the process that started them, and not before."""

import pickle
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from index_jobs.sources.conversion import Conversions, FileLimits
from index_jobs.sources.converters.child import Request
from index_jobs.sources.folders.safe_open import Place
from index_jobs.sources.lines.files import Fields
from tests.support.converted import written

PARENT = """
import sys, threading
from pathlib import Path
from index_jobs.sources.conversion import Conversions, FileLimits
from index_jobs.sources.converters.child import Request
from index_jobs.sources.folders.safe_open import Place
from index_jobs.sources.lines.files import Fields
conversions = Conversions(FileLimits(3_600.0, 1 << 30))
begun = conversions.begin(Request("html", Place(sys.argv[1]), "a.html", Fields()))
print(begun.child._process.pid, flush=True)
list(conversions.entries(begun))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends the children of a process")
def test_a_child_ends_with_its_parent_though_a_library_holds_the_interpreter(
    tmp_path: Path,
) -> None:
    page = b"<p " + b" ".join(b"a%d=1" % n for n in range(400_000)) + b">x"
    path = written(tmp_path / "a.html", page)
    with subprocess.Popen([sys.executable, "-c", PARENT, path], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        while child.cpu_times().user < 2:
            time.sleep(0.05)
        parent.kill()
    with suppress(psutil.NoSuchProcess):
        child.wait(60)


def test_a_process_that_reads_ahead_ends_when_its_pipe_is_closed() -> None:
    code = """
import pickle, sys, time
from arag_search.system.processes import read_ahead
waiting = read_ahead(lambda: pickle.load(sys.stdin.buffer))
print(waiting.get(), flush=True)
time.sleep(600)
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(pickle.dumps(1))
        process.stdin.flush()
        assert process.stdout.readline() == b"1\n"
        process.stdin.close()
        assert process.wait(60) == 0


def test_a_process_whose_parent_has_ended_meanwhile_ends() -> None:
    code = "from arag_search.system.processes import end_with; end_with(1 << 22); print('on')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b""


def test_a_child_does_not_end_with_the_thread_that_needed_it_first(tmp_path: Path) -> None:
    path = written(tmp_path / "a.html", "<p>Page.")
    conversions = Conversions(FileLimits())
    request = Request("html", Place(str(path)), "a.html", Fields())

    def read() -> None:
        assert len(list(conversions.entries(conversions.begin(request)))) == 1

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    (child,) = conversions._children
    for _ in range(2):
        read()
    assert conversions._children == [child]

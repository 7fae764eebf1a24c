"""What a process may do with an open index that it inherits from the one it was forked from.

Each row does what a public report says, in a forked process, after its parent has searched.
"""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent

import pytest

from index_jobs.build.new_index import build_index
from tests.support.patience import PATIENCE_S

SCRIPT = """
import faulthandler, os, sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from arag_search import open_index
from arag_search.engines.lucene import jvm
from arag_search.errors import AragError

def search():
    with open_index(sys.argv[1]) as opened:
        return len(opened.logical_search("opera").hits)

def child():
    faulthandler.dump_traceback_later({patience}, exit=True)
    try:
{in_child}
    except AragError as error:
        print(type(error).__name__, error.do)
    print("done")

index = open_index(sys.argv[1])
index.logical_search("opera")
sys.stdout.flush()
if not (pid := os.fork()):
    child()
    sys.exit()  # with all that the end of an interpreter does
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(len(index.logical_search("opera").hits), "in the parent")
index.close()
"""
SPAWN = (
    'JvmError Use multiprocessing.get_context("spawn"), or open the index after the fork only.\n'
)


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forks")
    (folder / "opera.txt").write_text("The opera was long.")
    build_index([str(folder / "opera.txt")], folder / "index")
    return folder / "index"


@pytest.mark.parametrize(
    ("in_child", "printed"),
    [
        pytest.param("index.logical_search('opera')", SPAWN, id="deepset-ai/haystack#2409"),
        pytest.param("index.read(['opera.txt.1'])", SPAWN, id="jpype-project/jpype#764"),
        pytest.param("open_index(sys.argv[1])", SPAWN, id="jpype-project/jpype#1077"),
        pytest.param("jvm.java('arag.Searcher')", SPAWN, id="gem/oq-engine#524"),
        pytest.param(
            "open_index(sys.argv[1], refresh='auto')", SPAWN, id="jpype-project/jpype#1024"
        ),
        pytest.param("index.close(); index.close()", "", id="jpype-project/jpype#1169"),
        pytest.param("index.close(); index.search", "", id="angr/pysoot#20"),
        pytest.param("pass", "", id="jpype-project/jpype#936"),
        pytest.param(
            "with index: ProcessPoolExecutor(1, get_context('fork')).submit(search).result()",
            SPAWN,
            id="jpype-project/jpype#358",
        ),
    ],
)
def test_a_forked_process_neither_hangs_nor_harms_its_parent(
    location: Path, in_child: str, printed: str
) -> None:
    script = dedent(SCRIPT).format(patience=PATIENCE_S / 2, in_child=indent(in_child, " " * 8))
    ran = subprocess.run(
        [sys.executable, "-c", script, str(location)],
        env={**os.environ, "PYTHONWARNINGS": "ignore::DeprecationWarning"},  # of forks with threads
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == (f"{printed}done\n0\n1 in the parent\n", "")

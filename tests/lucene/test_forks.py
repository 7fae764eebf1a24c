"""What a process may do with an open index that it inherits from the one it was forked from.

Each row does what a public report says, in a forked process, after its parent has searched.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from index_jobs.build.new_index import build_index
from tests.support.patience import PATIENCE_S

SCRIPT = """
import faulthandler, json, os, sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from arag_search import open_index
from arag_search.engines.lucene import jvm
from arag_search.errors import AragError

def search():
    with open_index(sys.argv[1]) as opened:
        return len(opened.logical_search("opera").hits)

def child(done):
    faulthandler.dump_traceback_later(float(sys.argv[2]), exit=True)
    try:
        exec(done)
    except AragError as error:
        print(type(error).__name__, error.do)
    print("done")

index = open_index(sys.argv[1])
for done in json.loads(sys.argv[3]):
    index.logical_search("opera")
    sys.stdout.flush()
    if not (pid := os.fork()):
        child(done)
        sys.exit()  # with all that the end of an interpreter does
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
print(len(index.logical_search("opera").hits), "in the parent")
index.close()
"""
SPAWN = (
    'JvmError Use multiprocessing.get_context("spawn"), or open the index after the fork only.\n'
)


IN_CHILD = {
    "deepset-ai/haystack#2409": ("index.logical_search('opera')", SPAWN),
    "jpype-project/jpype#764": ("index.read(['opera.txt.1'])", SPAWN),
    "jpype-project/jpype#1077": ("open_index(sys.argv[1])", SPAWN),
    "gem/oq-engine#524": ("jvm.java('arag.Searcher')", SPAWN),
    "jpype-project/jpype#1024": ("open_index(sys.argv[1], refresh='auto')", SPAWN),
    "jpype-project/jpype#1169": ("index.close(); index.close()", ""),
    "angr/pysoot#20": ("index.close(); index.search", ""),
    "jpype-project/jpype#936": ("pass", ""),
    "jpype-project/jpype#358": (
        "with index: ProcessPoolExecutor(1, get_context('fork')).submit(search).result()",
        SPAWN,
    ),
}
"""By report: what a forked process does, and what it prints."""


@pytest.mark.server
def test_forked_processes_neither_hang_nor_harm_their_parent(tmp_path: Path) -> None:
    (tmp_path / "opera.txt").write_text("The opera was long.")
    build_index([str(tmp_path / "opera.txt")], tmp_path / "index")
    sources = json.dumps([source for source, _ in IN_CHILD.values()])
    arguments = (str(tmp_path / "index"), str(PATIENCE_S / 2), sources)
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        env={**os.environ, "PYTHONWARNINGS": "ignore::DeprecationWarning"},  # of forks with threads
        capture_output=True,
        text=True,
        timeout=len(IN_CHILD) * PATIENCE_S,
        check=False,
    )
    printed = "".join(f"{text}done\n0\n" for _, text in IN_CHILD.values())
    assert (ran.stdout, ran.stderr) == (f"{printed}1 in the parent\n", "")

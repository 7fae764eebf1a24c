"""Builds, updates, vectors and locks on a system without /proc and affinity."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from arag_search.system.processes import Process
from tests.support.commands import SAMPLE

WITHOUT_LINUX = """
import os, sys
del os.sched_getaffinity
def refuse_proc(event, arguments):
    if event == "open" and str(arguments[0]).startswith("/proc"):
        raise FileNotFoundError(arguments[0])
sys.addaudithook(refuse_proc)
"""
"""A ``sitecustomize`` that hides both from Python and from its worker processes."""


COMMANDS = """
import json, os, sys
from dataclasses import astuple
from pathlib import Path
from arag_search.cli.app import run
from arag_search.system.lock import HeldError, hold
from arag_search.system.processes import this_process

assert not hasattr(os, "sched_getaffinity")
try:
    Path("/proc/self/stat").read_text()
    sys.exit("/proc is there")
except FileNotFoundError:
    pass
for words in json.loads(sys.argv[1]):
    code = run(words)
    assert code == 0, (code, words)
hold(Path("lock"), "test ")
try:
    hold(Path("lock"), "test ")
    sys.exit("held twice")
except HeldError as error:
    assert error.holder == f"process {os.getpid()}"
print(json.dumps(astuple(this_process())))
"""


@pytest.mark.long
def test_builds_updates_vectors_and_locks_work_without_proc_and_affinity(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(WITHOUT_LINUX)
    commands = [
        ["index", SAMPLE, "--to", "i", "--workers", "1"],
        ["embed", "i", "--encoder", "hashing", "--workers", "1"],
        ["search", "i", "--tool", "hybrid", "Who revised the libretto of Griselda?"],
        ["delete", "i", "byron"],
        ["add", SAMPLE, "--to", "i"],
        ["embed", "i", "--encoder", "hashing"],
        ["compact", "i"],
        ["info", "i"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(commands)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(folder)},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    process = Process(*json.loads(done.stdout.splitlines()[-1]))
    assert process.started  # The time comes from ps.
    assert not process.runs

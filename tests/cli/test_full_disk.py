"""Messages of commands that cannot write a file because the disk is full."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import file_of

COMMANDS = [
    (0, ["embed", "my-index", "--encoder", "hashing", "--vectors", "v"], "v"),
    (200, ["embed", "my-index", "--encoder", "hashing", "--vectors", "w"], "w"),
    (0, ["index", "c.jsonl", "--to", "new"], "new"),
    (0, ["delete", "my-index", "goldoni"], "my-index"),
    (200, ["run", "my-index", "q.jsonl", "--preset", "logical_read", "--model", "offline",
           "--out", "r"], "r/run.json"),
    (9, ["ask", "my-index", "Who?", "--model", "offline", "--record-replies", "g.jsonl"],
     "g.jsonl"),
]  # fmt: skip
"""How many bytes a file may have, the command, and the place that it names."""

LIMITED = """
import contextlib, io, json, resource, signal, sys
from arag_search.cli.app import run
from arag_search.engines.lucene.jvm import start

start()  # Java itself writes larger files.
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.dont_write_bytecode = True  # Python would leave truncated files
ended = []
for limit, arguments, _ in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, -1))
        code = run(arguments)
        resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
    ended.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(ended))
"""


def test_a_full_disk_names_the_path_and_what_to_do(
    commands_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(commands_folder)
    file_of("c.jsonl", {"id": "z", "title": "T", "text": "An opera."})
    file_of("q.jsonl", {"id": "q1", "question": "Who?", "answer": "Vivaldi"})
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, json.dumps(COMMANDS)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    for (_, arguments, where), ended in zip(COMMANDS, json.loads(done.stdout), strict=True):
        code, output, errors = ended
        assert (code, output, "Traceback" in errors) == (1, "", False), (arguments, errors)
        what, place, do = errors.splitlines()[-3:]
        assert what.startswith("arag-search: ")
        assert "(File too large)" in what or "(the disk took only a part of it)" in what
        assert place.startswith(f"Where: {where}")
        assert do.startswith("Do: Free some space ")
        assert "run the same command again" in do

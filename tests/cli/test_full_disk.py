"""Messages of commands that cannot write a file because the disk is full."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import file_of

_LIMITED = (
    "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
    "sys.dont_write_bytecode = True;"  # Python would leave truncated files
    "limit = int(sys.argv.pop(1)); resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit));"
    "from arag_search.cli.app import main; main()"
)


def last_lines(limit: int, *arguments: str) -> list[str]:
    """Run a command whose files may have ``limit`` bytes, and return its last lines."""
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(limit), *arguments], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-3:]


@pytest.mark.parametrize(
    ("limit", "arguments", "where"),
    [
        (0, ["embed", "my-index", "--encoder", "hashing", "--vectors", "v"], "v"),
        (200, ["embed", "my-index", "--encoder", "hashing", "--vectors", "w"], "w"),
        (0, ["index", "c.jsonl", "--to", "new"], "new"),
        (0, ["delete", "my-index", "goldoni"], "my-index"),
        (200, ["run", "my-index", "q.jsonl", "--preset", "logical_read", "--model", "offline",
               "--out", "r"], "r/run.json"),
        (9, ["ask", "my-index", "Who?", "--model", "offline", "--record-replies", "g.jsonl"],
         "g.jsonl"),
    ],
)  # fmt: skip
def test_a_full_disk_names_the_path_and_what_to_do(
    commands_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: int,
    arguments: list[str],
    where: str,
) -> None:
    monkeypatch.chdir(commands_folder)
    file_of("c.jsonl", {"id": "z", "title": "T", "text": "An opera."})
    file_of("q.jsonl", {"id": "q1", "question": "Who?", "answer": "Vivaldi"})
    what, place, do = last_lines(limit, *arguments)
    assert what.startswith("arag-search: ")
    assert "(File too large)" in what or "(the disk took only a part of it)" in what
    assert place.startswith(f"Where: {where}")
    assert do.startswith("Do: Free some space ")
    assert "run the same command again" in do

"""A command that changes an index and is killed at any moment leaves the old state or the new one,
and the same command completes it."""

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import arag_search
from arag_search.errors import VectorsError
from arag_search.search.index import Index
from tests.support.commands import Command, file_of
from tests.support.examples import some_of

KILLS = 2
MAIN = "import sys; from arag_search.cli.app import run; sys.exit(run(sys.argv[1:]))"
COMMANDS = {
    "add": ("index", "more.jsonl", "--to", "{}", "--add"),
    "delete": ("delete", "{}", "d1", "d5"),
    "compact": ("compact", "{}"),
    "overwrite": ("index", "more.jsonl", "--to", "{}", "--overwrite"),
    "embed": ("embed", "{}", "--encoder", "hashing"),
}


@pytest.fixture(name="before", scope="module")
def an_index_with_a_deleted_document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import contextlib
    import io

    from arag_search.cli.app import run

    place = tmp_path_factory.mktemp("kills")
    with contextlib.chdir(place), contextlib.redirect_stdout(io.StringIO()):
        file_of("first.jsonl", *(document(n, f"Passage {n} tells of the sea.") for n in range(40)))
        file_of("more.jsonl", *(document(n, f"New text {n} of the sea.") for n in (3, 50, 51)))
        assert run(["index", "first.jsonl", "--to", "i"]) == 0
        assert run(["embed", "i", "--encoder", "hashing"]) == 0
        assert run(["delete", "i", "d0"]) == 0
    return place


def document(number: int, text: str) -> dict[str, str]:
    return {"id": f"d{number}", "text": text}


def state(location: Path) -> tuple[object, ...]:
    """Return the passages that are found and read, their documents and the nearest passages."""
    with arag_search.open_index(str(location)) as index:
        hits = index.logical_search("sea", top_k=100).hits
        texts = {hit.id: index.chunk_read([hit.id])[0].chunk.content for hit in hits}
        assert len(texts) == len(hits) == index.manifest.chunks
        return (sorted(texts.items()), index.manifest.documents, _nearest(index))


def _nearest(index: Index) -> tuple[str, ...] | None:
    try:
        hits = index.semantic_search("Passage 7 tells of the sea.", top_k=5).hits
    except VectorsError:
        return None
    assert "d7.1" in {hit.id for hit in hits}
    return tuple(hit.id for hit in hits)


@pytest.mark.parametrize("name", some_of(list(COMMANDS), 2))
def test_a_command_that_is_killed_at_any_moment_leaves_the_old_state_or_the_new_one(
    name: str, before: Path, arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(before)
    chance = random.Random(name)
    whole, copy = before / f"{name}-whole", before / name
    for folder in (whole, copy):
        shutil.copytree(before / "i", folder)
        if name == "embed":
            shutil.rmtree(folder / "vectors")
    old_state = state(whole)
    began = time.monotonic()
    assert _process(name, whole).wait() == 0
    seconds = time.monotonic() - began
    new_state = state(whole)
    # Added passages are encoded once the index has them; until then no vectors are searched.
    unencoded = (*new_state[:2], None)
    finished = False
    for _ in range(KILLS):
        child = _process(name, copy)
        time.sleep(chance.uniform(0.2, 1) * seconds)
        child.kill()
        finished = child.wait() != -signal.SIGKILL or finished
        current = state(copy)
        assert current in (old_state, new_state) or (name == "add" and current == unencoded)
        finished = finished or current == new_state
    retry = arag(*(word.format(copy) for word in COMMANDS[name]))
    assert retry.code == 0 or (name == "delete" and finished), retry
    assert state(copy) == new_state


def _process(name: str, place: Path) -> "subprocess.Popen[bytes]":
    words = (word.format(place) for word in COMMANDS[name])
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

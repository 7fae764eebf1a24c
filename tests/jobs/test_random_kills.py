"""A command that is stopped at any step leaves the old state or the new one, and the same command
completes it: a kill, Ctrl-C and a full disk, of every job."""

import random
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

import arag_search
from arag_search.errors import IndexNotFoundError, VectorsError
from arag_search.search.index import Index
from tests.support.commands import Command, file_of, process
from tests.support.examples import examples, some_of

pytestmark = pytest.mark.long

COMMANDS = {
    "build with workers": ("index", "first.jsonl", "--to", "{}", "--workers", "2"),
    "add": ("add", "more.jsonl", "--to", "{}"),
    "embed": ("embed", "{}", "--encoder", "hashing:16"),
    "delete": ("delete", "{}", "d1", "d5"),
    "sync": ("sync", "{}", "first.jsonl", "--allow-deletes"),
    "build": ("index", "first.jsonl", "--to", "{}"),
    "compact": ("compact", "{}"),
    "overwrite": ("index", "more.jsonl", "--to", "{}", "--overwrite"),
    "embed with workers": ("embed", "{}", "--encoder", "hashing:16", "--workers", "2"),
}
"""The jobs; in a run that is not long, the first of them."""

STOPPED = """
import os, signal, sys
from arag_search.engines.lucene import update, writer
stop, moment, *command = sys.argv[1:]
steps = 0

def step():
    global steps
    steps += 1
    if steps == int(moment):
        print("stopped", flush=True)
        signal.raise_signal(int(stop))

here = os.getcwd() + os.sep
changing = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate"}
def hook(event, arguments):
    if event in changing:
        step()
    elif event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
        if arguments[2] & (os.O_WRONLY | os.O_RDWR):
            if os.path.abspath(os.fsdecode(arguments[0])).startswith(here):
                step()

def counted(owner, name):
    original = getattr(owner, name)
    def call(*arguments, **options):
        step()
        return original(*arguments, **options)
    setattr(owner, name, call)

sys.dont_write_bytecode = True
sys.addaudithook(hook)  # what changes files
for owner, name in (  # what Java writes
    (writer._Index, "prepare"),
    (writer._Index, "commit"),
    (writer._Index, "forget_previous"),
    (update._Writer, "add"),
    (update.LuceneUpdate, "begin"),
    (update.LuceneUpdate, "remove"),
    (update.LuceneUpdate, "__exit__"),
):
    counted(owner, name)
from arag_search.cli.app import run
code = run(command)
print(steps)
sys.exit(code)
"""

FULL_DISK = """
import resource, signal, sys
from arag_search.cli.app import run
from arag_search.engines.lucene.jvm import start
start()  # Java itself writes larger files.
sys.dont_write_bytecode = True  # Python would leave truncated files
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
sys.exit(run(sys.argv[2:]))
"""


@pytest.fixture(name="place", scope="module")
def a_folder_with_an_index_and_changed_sources(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Path]:
    from arag_search.cli.app import run

    place = tmp_path_factory.mktemp("stops")
    with chdir(place), redirect_stdout(StringIO()):
        file_of("first.jsonl", *(document(n, f"Passage {n} tells of the sea.") for n in range(40)))
        assert run(["index", "first.jsonl", "--to", "i"]) == 0
        assert run(["embed", "i", "--encoder", "hashing:16"]) == 0
        assert run(["delete", "i", "d0"]) == 0
        file_of("more.jsonl", *(document(n, f"New text {n} of the sea.") for n in (3, 50, 51)))
        now = [document(n, f"Passage {n} tells of the sea.") for n in range(5, 80)]
        file_of("first.jsonl", *now, document(2, "Of the sea, anew."))
        yield place


def document(number: int, text: str) -> dict[str, str]:
    return {"id": f"d{number}", "text": text}


def prepared(name: str, place: Path, folder: str) -> Path:
    """Copy the index to a folder, as far as the command needs it."""
    copy = place / folder
    shutil.rmtree(copy, ignore_errors=True)
    if not name.startswith("build"):
        shutil.copytree(place / "i", copy)
    if name.startswith("embed"):
        shutil.rmtree(copy / "vectors")
    return copy


def state(location: Path) -> tuple[object, ...] | None:
    """Return the passages that are found and read, their documents and the nearest passages; None
    if there is no index."""
    try:
        index = arag_search.open_index(str(location))
    except IndexNotFoundError:
        return None
    with index:
        passages = [(chunk.id, chunk.content) for chunk in index.scan()]
        for granularity in ("chunk", "sentence"):
            hits = index.logical_search("sea", top_k=100, granularity=granularity).hits
            assert sorted(hit.id for hit in hits) == sorted(id for id, _ in passages)
        read = index.chunk_read([id for id, _ in passages])
        assert [chunk.chunk.content for chunk in read] == [text for _, text in passages]
        assert len(passages) == index.manifest.chunks
        return (passages, index.manifest.documents, _nearest(index))


def _nearest(index: Index) -> tuple[str, ...] | None:
    try:
        hits = index.semantic_search("Passage 7 tells of the sea.", top_k=5).hits
    except VectorsError:
        return None
    assert "d7.1" in {hit.id for hit in hits}
    return tuple(hit.id for hit in hits)


def files(location: Path) -> list[str]:
    """Return what is in the folder of an index, whatever the number of its generation."""
    return sorted(re.sub(r"\d+", "", path.name) for path in location.iterdir())


def words(name: str, location: Path) -> list[str]:
    return [word.format(location) for word in COMMANDS[name]]


@pytest.mark.parametrize("name", some_of(list(COMMANDS), 4))
def test_a_command_that_is_stopped_at_any_step_leaves_the_old_state_or_the_new_one(
    name: str, place: Path, arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    chance = random.Random(name)
    whole = prepared(name, place, f"{name} whole")
    old_state = state(whole)
    child = process(STOPPED, "0", "0", *words(name, whole))
    output, errors = child.communicate()
    assert child.returncode == 0, errors
    steps = int(output.splitlines()[-1])
    new_state = state(whole)
    assert new_state is not None
    assert new_state != old_state or name == "compact"
    states = [old_state, new_state]
    copy = prepared(name, place, name)
    for number in range(examples(20)):
        stop = signal.SIGINT if number % 3 == 2 else signal.SIGKILL
        moment = str(chance.randint(1, steps))
        child = process(STOPPED, str(int(stop)), moment, *words(name, copy))
        output, errors = child.communicate()
        is_stopped = "stopped" in output
        where = (stop.name, moment, steps, errors)
        # What Ctrl-C finds nearly done is done: it is heard between batches.
        codes = {signal.SIGKILL: {-stop}, signal.SIGINT: {-stop, 128 + stop, 0}}[stop]
        assert child.returncode in (codes if is_stopped else {0}), where
        current = state(copy)
        assert current in states, where
        if child.returncode == 0 or (name.startswith("build") and current is not None):
            copy = prepared(name, place, name)
    retry = arag(*words(name, copy))
    assert retry.code == 0, retry
    assert state(copy) == new_state
    assert files(copy) == files(whole)


@pytest.mark.parametrize(
    ("name", "bytes", "what"),
    [
        ("build", 1_000, "index"),
        ("add", 1_000, "index"),
        ("compact", 1_000, "index"),
        ("embed", 2_000, "vectors"),
    ],
)
def test_a_full_disk_is_reported_and_the_same_command_completes(
    name: str,
    bytes: int,
    what: str,
    place: Path,
    arag: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(place)
    copy = prepared(name, place, f"{name} full")
    old_state = state(copy)
    child = process(FULL_DISK, str(bytes), *words(name, copy))
    _, errors = child.communicate()
    assert child.returncode == 1, errors
    assert f"There is no space left to write the {what} (File too large).\n" in errors
    assert "Do: Free some space and run the same command again: " in errors
    assert "Traceback" not in errors
    assert state(copy) == old_state
    assert arag(*words(name, copy)).code == 0
    assert state(copy) != old_state or name == "compact"

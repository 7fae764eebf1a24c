"""Folders of notes that change at random, and watchers of them."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from arag_search.manifest import CorpusDigest, fingerprint_hex
from arag_search.search.opening import open_index
from index_jobs.build.new_index import build_index
from index_jobs.updates.folder_index import OPTIONS
from index_jobs.updates.watching import Watcher
from tests.support.patience import PATIENCE_S

MAIN = "import sys; from arag_search.cli.app import run; sys.exit(run(sys.argv[1:]))"
WORDS = [
    "sea", "harbour", "vessel", "anchor", "sail", "storm", "captain", "lantern", "tide", "wharf",
]  # fmt: skip


def make_notes(folder: Path, count: int) -> Path:
    """Make a folder of ``count`` notes on the sea, and return it."""
    folder.mkdir()
    for number in range(count):
        (folder / f"note{number}.md").write_text(f"# Note {number}\n\nThe sea, word{number}.\n")
    return folder


def digest_of(location: Path) -> str:
    """Return the fingerprint of an index without the times of its files, which are not renewed
    where nothing else has changed."""
    with open_index(location) as index:
        chunks = (
            replace(chunk, metadata={k: v for k, v in chunk.metadata.items() if k != "modified"})
            for chunk in index.scan()
        )
        return fingerprint_hex(CorpusDigest.of(chunks).fingerprint)


def fresh_digest(folder: Path, place: Path) -> str:
    """Return the fingerprint of a new build of a folder."""
    shutil.rmtree(place, ignore_errors=True)
    build_index([str(folder)], place, OPTIONS)
    return digest_of(place)


def eventually(condition: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    """Wait until a condition is true. Asking takes at most a fifth of the time."""
    end = time.monotonic() + seconds
    asked = time.monotonic()
    while not condition():
        now = time.monotonic()
        assert now < end
        time.sleep(max(0.05, 4 * (now - asked)))
        asked = time.monotonic()


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Run a watcher in a thread."""
    stop = threading.Event()
    thread = threading.Thread(target=watcher.run, args=(stop,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def watch_process(folder: Path, index: Path) -> subprocess.Popen[bytes]:
    """Start ``arag-search sync --watch``, after a build if there is no index."""
    if not index.exists():
        build_index([str(folder)], index, OPTIONS)
    command = [sys.executable, "-c", MAIN, "sync", str(index), str(folder), "--watch"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Notes:
    """A folder of notes, changed as people, editors and programs change them."""

    def __init__(self, folder: Path, seed: int, count: int = 30) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self._made = self._most = 0
        for _ in range(count):
            self._create()

    def step(self) -> None:
        """Make one random change."""
        steps = (
            *(self._create, self._edit, self._save, self._save, self._rename, self._delete),
            *(self._rename_folder, self._checkout, self._ignore, self._break),
        )
        self.random.choice(steps)()

    def _files(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*.md") if path.is_file())

    def _text(self) -> str:
        self._made += 1
        words = " ".join(self.random.choices(WORDS, k=self.random.randint(3, 200)))
        return f"# Note {self._made}\n\n{words}. Mark{self._made}.\n"

    def _create(self) -> None:
        place = self.folder / self.random.choice(("", "a", "a/b", "c"))
        place.mkdir(parents=True, exist_ok=True)
        (place / f"note{self._made}.md").write_text(self._text())
        self._most = max(self._most, len(self._files()))

    def _edit(self) -> None:
        self.random.choice(self._files()).write_text(self._text())

    def _save(self) -> None:
        """Save as an editor does: to a temporary file, which then takes the name."""
        file = self.random.choice(self._files())
        temporary = file.with_name(f".{file.name}.swp")
        temporary.write_text(self._text())
        temporary.replace(file)

    def _rename(self) -> None:
        file = self.random.choice(self._files())
        self._made += 1
        file.rename(file.with_name(f"moved{self._made}.md"))

    def _delete(self) -> None:
        files = self._files()
        if len(files) > 0.8 * self._most:  # or the guard would rightly stop
            self.random.choice(files).unlink()

    def _rename_folder(self) -> None:
        folders = sorted(path for path in self.folder.iterdir() if path.is_dir())
        if folders:
            self._made += 1
            self.random.choice(folders).rename(self.folder / f"folder{self._made}")

    def _checkout(self) -> None:
        """Change half of the files at once."""
        files = self._files()
        for file in self.random.sample(files, len(files) // 2):
            file.write_text(self._text())

    def _ignore(self) -> None:
        """Ignore one file, and no other that was ignored before."""
        name = self.random.choice(self._files()).name
        (self.folder / ".gitignore").write_text(f"{name}\n")

    def _break(self) -> None:
        """Write a file that cannot be read, under a new name: an index keeps the document of a file
        that could be read before, which a new build does not have."""
        self._made += 1
        (self.folder / f"broken{self._made}.md").write_bytes(b"\0\x01\xff" * 40)

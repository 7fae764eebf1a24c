"""Indexes that tests embed, and the vectors of their sidecars."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from arag_search.search.index import open_index
from arag_search.system.progress import Progress
from arag_search.vectors.base import VECTOR_UNITS, Encoder, VectorUnit, rows_of
from arag_search.vectors.encoders.choose import open_encoder
from arag_search.vectors.storage.files import map_array
from arag_search.vectors.storage.folders import sidecars
from arag_search.vectors.storage.manifest import VectorManifest, ordinals_file
from arag_search.vectors.storage.shards import vectors_role
from index_jobs.build.new_index import build_index
from index_jobs.embedding.plan import EmbedOptions
from tests.support.builds import PLAIN, corpus

ENCODER = "hashing:16"
SMALL = EmbedOptions(sentence_titles=False, shard_rows=50, batch_size=1)

LOADING = f"Loading the encoder {ENCODER}."

Rows = tuple[NDArray[np.int64], NDArray[np.float32]]


def with_options(**changes: object) -> EmbedOptions:
    """Return options with small shards and these changes."""
    return dataclasses.replace(SMALL, **changes)  # type: ignore[arg-type]


def build_small_index(documents: int, words: int = 30, where: str = "index") -> None:
    """Build an index with a number of passages, each of one short and two long sentences."""
    build_index([corpus("index.jsonl", documents, words)], Path(where), PLAIN)


def only_sidecar(root: str | Path) -> tuple[Path, VectorManifest]:
    ((path, manifest),) = sidecars(Path(root))
    assert isinstance(manifest, VectorManifest)
    return path, manifest


def rows_in(path: Path, manifest: VectorManifest, unit: VectorUnit) -> Rows:
    """Return the ordinals and vectors of the rows of a sidecar that have a text, by ordinal."""
    ordinals = map_array(ordinals_file(path, unit))
    vectors = np.concatenate(
        [map_array(shard.file(vectors_role(unit))) for shard in manifest.shards_in(path)]
    )
    live = np.flatnonzero(ordinals >= 0)
    order = live[np.argsort(ordinals[live])]
    return ordinals[order], vectors[order]


def expected_rows(location: str, unit: VectorUnit, encoder: Encoder) -> Rows:
    """Return the ordinals and vectors that a sidecar must have, from the chunks of an index."""
    with open_index(location) as index:
        rows = [row for chunk in index.scan() for row in rows_of(chunk, unit)]
    return np.array([ordinal for ordinal, _ in rows]), encoder.encode([text for _, text in rows])


def check_embedded(location: str, root: str | Path | None = None, encoder: str = ENCODER) -> None:
    """Check that an index has one sidecar, which holds the right vector for each row."""
    path, manifest = only_sidecar(root or Path(location) / "vectors")
    open_model = open_encoder(encoder)
    for unit in VECTOR_UNITS:
        ordinals, vectors = rows_in(path, manifest, unit)
        expected_ordinals, expected_vectors = expected_rows(location, unit, open_model)
        assert ordinals.tolist() == expected_ordinals.tolist()
        np.testing.assert_allclose(vectors, expected_vectors, atol=1e-6)
        assert manifest.live_rows[unit] == len(ordinals)
    with open_index(location) as index:
        assert manifest.placement == index.manifest.placement


class NotingProgress(Progress):
    """A progress that records notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


class InterruptingProgress(NotingProgress):
    """A progress that presses Ctrl-C when a number of rows are encoded."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self._rows = rows

    def update(self, done: int, encoded: int, details: str = "") -> None:
        if encoded >= self._rows:
            raise KeyboardInterrupt


CHILD = """
import os, resource, signal, sys, time
from arag_search.cli.embed import embed_command
from arag_search.errors import AragError
import arag_search.system.progress

action, moment, *arguments = sys.argv[1:]

class Meddling(arag_search.system.progress.PlainProgress):
    def update(self, done, encoded, details=""):
        if action == "SIGKILL" and encoded >= int(moment):
            os.kill(os.getpid(), signal.SIGKILL)
        if action == "SLOW":
            print(encoded, flush=True)
            time.sleep(0.02)

arag_search.system.progress.open_progress = lambda: Meddling(sys.stderr)
if action == "LIMIT":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    sys.dont_write_bytecode = True  # Python would leave truncated files
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(moment), int(moment)))
if action == "PUBLISH":
    # killed at the moment-th call that changes what a folder lists or a file holds
    import index_jobs.embedding.job
    calls = 0
    def counting(name):
        real = getattr(os, name)
        def call(*arguments, **others):
            global calls
            calls += 1
            if calls == int(moment):
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **others)
        return call
    real_publish = index_jobs.embedding.job.publish_sidecar
    def publish(*arguments, **others):
        for name in ("replace", "rename", "link", "unlink", "fsync", "mkdir", "rmdir"):
            setattr(os, name, counting(name))
        manifest = real_publish(*arguments, **others)
        print("calls", calls, flush=True)
        return manifest
    index_jobs.embedding.job.publish_sidecar = publish
try:
    code = embed_command(
        "index", "hashing:16", sentence_titles=False, shard_size=50, batch_size=1,
        workers=int(arguments[0]),
    )
except AragError as error:
    print(error, file=sys.stderr)
    code = 1
sys.exit(code)
"""


def command(action: str, moment: int, *, workers: int = 0) -> "subprocess.Popen[str]":
    """Start arag-search embed in its own process, with an action: the process kills itself when it
    has encoded ``moment`` rows (SIGKILL) or at the ``moment``-th step of publishing (PUBLISH), may
    only write files of up to ``moment`` bytes (LIMIT), or prints its count of rows, slowly
    (SLOW)."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, action, str(moment), str(workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "ARAG_JVM_HEAP": "128m"},
    )


def newest_sidecar() -> tuple[Path, VectorManifest]:
    with open_index("index") as index:
        placement = index.manifest.placement
    for path, manifest in sidecars(Path("index/vectors")):
        if isinstance(manifest, VectorManifest) and manifest.placement == placement:
            return path, manifest
    raise AssertionError("none of this state")


def check_rows_of_live_chunks() -> None:
    """Check that all chunks of the index have rows, and the right ones."""
    path, manifest = newest_sidecar()
    encoder = open_encoder(ENCODER)
    for unit in VECTOR_UNITS:
        vectors = dict(zip(*rows_in(path, manifest, unit), strict=True))
        for ordinal, vector in zip(*expected_rows("index", unit, encoder), strict=True):
            np.testing.assert_allclose(vectors[ordinal], vector, atol=1e-6)

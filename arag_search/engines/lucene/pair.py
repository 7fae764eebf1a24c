"""The chunks and sentences of a generation, opened at the same update.

An update commits the two one after the other. A reader that opens them in between, or after a
process that died there, sees different updates; it then opens the newest one that both have.
"""

from __future__ import annotations

import time
from pathlib import Path

from arag_search.engines.lucene import jvm, schema
from arag_search.engines.lucene.snapshot import REBUILD, Snapshot
from arag_search.errors import IndexDamagedError
from arag_search.manifest import Manifest

_ATTEMPTS = 25
_PAUSE_S = 0.02


def open_pair(generation: Path, where: str) -> tuple[Snapshot, Snapshot | None, Manifest]:
    """Open the chunks, the sentences (None if the build left them out) and the manifest.

    Raises IndexDamagedError if files are missing or have no update in common, IndexVersionError
    for another format.
    """
    update: int | None = None
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            return _open(generation, where, update)
        except _MixedError as mixed:
            if not attempts_left:
                raise _refusal(mixed, where) from None
            update = max(mixed.common, default=None)
        except IndexDamagedError:
            if update is None or not attempts_left:
                raise
            update = None  # the update has been completed, and the older commit is gone
        if update is None:
            time.sleep(_PAUSE_S)
    raise AssertionError("the last attempt returns or raises")


class _MixedError(Exception):
    """Chunks and sentences of different updates; ``common`` are the updates that both have."""

    def __init__(self, chunks: int, sentences: str | None, common: set[int]) -> None:
        super().__init__()
        self.chunks = chunks
        self.sentences = sentences
        self.common = common


def _open(
    generation: Path, where: str, update: int | None
) -> tuple[Snapshot, Snapshot | None, Manifest]:
    chunks = Snapshot(generation / schema.CHUNKS_FOLDER, where, update)
    try:
        manifest = _manifest(chunks, where)
        chunks.use_bm25(manifest.k1, manifest.b)
        if not manifest.has_sentences:
            return chunks, None, manifest
        sentences = Snapshot(generation / schema.SENTENCES_FOLDER, where, update)
    except BaseException:
        chunks.close()
        raise
    sentences_update = sentences.user_data().get(schema.UPDATE_KEY)
    if sentences_update != str(manifest.update):
        try:
            common = chunks.updates() & sentences.updates()
        except jvm.java_error():  # a commit was deleted while they were listed
            common = set[int]()
        sentences.close()
        chunks.close()
        raise _MixedError(manifest.update, sentences_update, common)
    sentences.use_bm25(manifest.k1, manifest.b)
    return chunks, sentences, manifest


def _manifest(chunks: Snapshot, where: str) -> Manifest:
    data = chunks.user_data()
    if schema.MANIFEST_KEY not in data:
        raise IndexDamagedError("The index has no manifest.", where=where, do=REBUILD)
    manifest = Manifest.from_json(data[schema.MANIFEST_KEY], where)
    if manifest.engine != schema.ENGINE:
        raise IndexDamagedError(
            f'The manifest is of an index of engine "{manifest.engine}".',
            where=where,
            allowed=f"engine {schema.ENGINE}",
            do=REBUILD,
        )
    return manifest


def _refusal(mixed: _MixedError, where: str) -> IndexDamagedError:
    return IndexDamagedError(
        f"The sentences are of update {mixed.sentences}, the chunks of update {mixed.chunks}.",
        where=where,
        do=REBUILD,
    )

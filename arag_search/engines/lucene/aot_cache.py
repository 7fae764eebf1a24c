"""The ahead-of-time cache of the classes that a search needs.

With the cache a first search takes two thirds of the time. The first build on a machine creates it
(engines/aot_cache.py).

``python -m arag_search.engines.lucene.aot_cache`` creates it now.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from arag_search.corpus import Chunk, ordinal_of
from arag_search.engines import aot_cache
from arag_search.engines.base import KeywordRequest, SearchRequest
from arag_search.engines.lucene import jvm, schema
from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.engines.lucene.writer import LuceneWriter
from arag_search.manifest import Manifest
from arag_search.query.fields import MetadataType
from arag_search.query.parser import parse

_PASSAGES = 40
_QUERIES = (
    "opera",
    "opera OR vivaldi griselda",
    '"antonio vivaldi" AND (title:gris* OR number) NOT handel',
    '"antonio by"~4^2 AND kind:opera AND year:>=1700 day:1735-05',
    "handel AND opera",
)


def create_in_background() -> subprocess.Popen[bytes] | None:
    """Start a process that creates the cache, and return it; None if there is a cache already."""
    return aot_cache.create_in_background(jvm.aot_cache(jvm.class_path()), __name__)


def create() -> Path | None:
    """Create the cache in this process, which must not have started Java, and return its path.

    Returns None if another process is creating it. Raises JvmError, and see aot_cache.create.
    """
    jars = jvm.class_path()
    return aot_cache.create(jvm.aot_cache(jars), jars, jvm.FIXED_FLAGS, _train)


def _train(folder: Path, flags: Sequence[str]) -> None:
    jvm.start(*flags)
    _build_and_search(folder / "index")
    jvm.stop()  # Java writes what it recorded now


def _build_and_search(folder: Path) -> None:
    """Build a small index and search it in every way, so that Java loads the classes for it."""
    types: dict[str, MetadataType] = {"kind": "keyword", "year": "number", "day": "date"}
    values = {"kind": "opera", "year": 1735, "day": "1735-05-18"}
    manifest = Manifest(
        engine=schema.ENGINE,
        engine_version=jvm.LUCENE_VERSION,
        created="",
        documents=_PASSAGES,
        chunks=_PASSAGES,
        sentences=_PASSAGES,
        tokens=0,
        chunk_tokens=1000,
        metadata=types,
        fingerprint="",
    )
    writer = LuceneWriter(folder, metadata=types, sentences=True, resume=False)
    for number in range(_PASSAGES):
        text = f"Griselda is opera number {number} by Antonio Vivaldi."
        ordinal = ordinal_of(0, number, 0)
        chunk = Chunk(
            f"{number}.1", str(number), "Griselda", text, 1, 1, ordinal, (len(text),), values
        )
        writer.add([chunk])
        if number % 20 == 10:
            writer.commit({})
    writer.finish({schema.MANIFEST_KEY: manifest.to_json(), schema.UPDATE_KEY: "1"})
    with closing(LuceneEngine.open(folder, "the training run")) as engine:
        for text in _QUERIES:
            query = parse(text, manifest.query_schema).tree
            engine.search(SearchRequest(query))
            engine.search(SearchRequest(query, granularity="sentence"))
            engine.counts([(query, "chunk"), (query, "sentence")], None)
        engine.keyword_search(KeywordRequest(("Antonio Vivaldi", "opera")))
        engine.read(["3.1"], None)


if __name__ == "__main__":
    aot_cache.main(create)

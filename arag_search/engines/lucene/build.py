"""Building an index in a folder."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from arag_search.engines.lucene import aot_cache, schema
from arag_search.engines.lucene.jvm import LUCENE_VERSION
from arag_search.engines.lucene.location import BuildSite
from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.engines.lucene.writer import BLOCKS_FOLDER, LuceneWriter, ShardWriting
from arag_search.engines.write import IndexWriter, TargetOptions
from arag_search.manifest import Manifest
from arag_search.query.fields import MetadataType


class LuceneBuild:
    """A folder as a Build."""

    engine = schema.LUCENE
    engine_version = LUCENE_VERSION

    def __init__(self, location: Path, options: TargetOptions) -> None:
        self._location = location
        self._options = options
        self._site = BuildSite(location, overwrite=options.overwrite)

    def __enter__(self) -> LuceneBuild:
        self._folder = self._location.absolute()
        self._site.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._site.__exit__(*exception)

    def begin(self, signature: Mapping[str, Any]) -> tuple[str, bool, str]:
        generation, resumed, why = self._site.begin(signature)
        return generation.name, resumed, why

    def open_writer(
        self, generation: str, *, metadata: Mapping[str, MetadataType], language: str, resume: bool
    ) -> IndexWriter:
        self._generation = self._folder / generation
        self._writer = LuceneWriter(
            self._folder / generation,
            metadata=metadata,
            language=language,
            sentences="sentences" not in self._options.without,
            resume=resume,
        )
        aot_cache.create_in_background()
        return self._writer

    def block_writing(self) -> ShardWriting:
        return ShardWriting.begin(
            self._generation,
            self._writer.packer.metadata,
            self._writer.packer.language,
            sentences="sentences" not in self._options.without,
        )

    def discard(self, generation: str) -> None:
        self._site.discard(self._folder / generation)

    def finish(self, manifest: Manifest, data: Mapping[str, str]) -> None:
        keys = {
            schema.MANIFEST_KEY: manifest.to_json(),
            schema.UPDATE_KEY: str(manifest.update),
        }
        self._writer.finish({**keys, **data})
        shutil.rmtree(self._generation / BLOCKS_FOLDER, ignore_errors=True)

    def counts(self, generation: str) -> tuple[int, int | None]:
        """See Build. Opens the new index before any other process can."""
        engine = LuceneEngine.open(self._folder / generation, str(self._location))
        try:
            statistics = engine.statistics()
        finally:
            engine.close()
        sentences = None if statistics.sentences is None else statistics.sentences.documents
        return statistics.chunks.documents, sentences

    def publish(self, generation: str) -> None:
        self._site.publish(generation)

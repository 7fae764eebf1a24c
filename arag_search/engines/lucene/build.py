"""Building an index in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from arag_search.engines.lucene import aot_cache, schema
from arag_search.engines.lucene.jvm import LUCENE_VERSION
from arag_search.engines.lucene.location import BuildSite
from arag_search.engines.lucene.writer import LuceneWriter
from arag_search.engines.write import TargetOptions
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
    ) -> LuceneWriter:
        return LuceneWriter(
            self._folder / generation,
            metadata=metadata,
            language=language,
            sentences="sentences" not in self._options.without,
            resume=resume,
        )

    def discard(self, generation: str) -> None:
        self._site.discard(self._folder / generation)

    def publish(self, generation: str) -> None:
        self._site.publish(generation)
        aot_cache.create_in_background()

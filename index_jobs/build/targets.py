"""The targets of a build: a local folder, or an index on OpenSearch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from arag_search.engines.lucene import aot_cache
from arag_search.engines.lucene import schema as lucene_schema
from arag_search.engines.lucene.jvm import LUCENE_VERSION
from arag_search.engines.lucene.location import BuildSite
from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.engines.lucene.schema import ChunkPacker
from arag_search.engines.lucene.writer import LuceneWriter
from arag_search.engines.opensearch import schema as opensearch_schema
from arag_search.engines.opensearch.address import is_address, parse_address
from arag_search.engines.opensearch.bulk import NODE_WAIT_S
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.site import KEPT, OpenSearchSite
from arag_search.engines.opensearch.writer import IndexDefinition, OpenSearchWriter
from arag_search.engines.write import BuildTarget, BulkCounts, IndexWriter, Packer
from arag_search.errors import ArgumentError, BuildError, EngineError, IndexDamagedError
from arag_search.manifest import Manifest
from arag_search.query.fields import MetadataType
from index_jobs.build.options import BuildOptions

_DAMAGE = ("Corrupt", "IndexFormat", "NoSuchFile", "FileNotFound", "EOF")
_SOURCES = "the sources"


def open_target(
    location: str | Path, options: BuildOptions, note: Callable[[str], None] | None = None
) -> BuildTarget:
    """Open the target at ``location``; ``note`` reports waiting for a server. Raises ArgumentError
    for options that do not apply to it."""
    check_options(location, options)
    if isinstance(location, str) and is_address(location):
        return OpenSearchTarget(location, options, note)
    return LuceneTarget(Path(location), options)


def check_options(location: str | Path, options: BuildOptions) -> None:
    """Raise ArgumentError for an invalid address, and for options that do not apply to this kind of
    location."""
    name = str(location)
    if isinstance(location, str) and is_address(name):
        parse_address(name)
        return
    for option, value, why in (
        ("--shards", options.shards, "has none"),
        ("--node-wait", options.node_wait_s, "has no nodes"),
        ("--keep", options.keep, "keeps no previous index"),
    ):
        if value is not None:
            raise server_only(option, why, name)
    if "exact" in options.without:
        raise ArgumentError(
            "--without: exact takes no space in a folder.",
            where=name,
            allowed="sentences",
            do="Leave it out.",
        )


def server_only(option: str, why: str, location: str) -> ArgumentError:
    """Return the error for an option that applies only to a server but was used with a folder."""
    return ArgumentError(
        f"{option}: an index in a folder {why}.",
        where=location,
        allowed="an index on a server",
        do="Leave it out.",
    )


class LuceneTarget:
    """A local folder as a BuildTarget."""

    engine = lucene_schema.ENGINE
    engine_version = LUCENE_VERSION
    sent = BulkCounts()

    def __init__(self, location: Path, options: BuildOptions) -> None:
        self._location = location
        self._options = options
        self._site = BuildSite(location, overwrite=options.overwrite)

    def __enter__(self) -> LuceneTarget:
        self._folder = self._location.absolute()
        self._site.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._site.__exit__(*exception)

    def begin(self, signature: Mapping[str, Any]) -> tuple[str, bool, str]:
        generation, resumed, why = self._site.begin(signature)
        return generation.name, resumed, why

    def open_writer(
        self, generation: str, *, metadata: Mapping[str, MetadataType], resume: bool
    ) -> IndexWriter:
        self.packer = ChunkPacker(metadata)
        try:
            self._writer = LuceneWriter(
                self._folder / generation,
                metadata=metadata,
                sentences="sentences" not in self._options.without,
                resume=resume,
            )
        except (BuildError, EngineError) as error:
            if not resume or not any(reason in str(error) for reason in _DAMAGE):
                raise
            raise IndexDamagedError(error.what, where=error.where) from error
        aot_cache.create_in_background()
        return self._writer

    def add(self, packed: Any) -> None:
        self._writer.add_packed(packed)

    def discard(self, generation: str) -> None:
        self._site.discard(self._folder / generation)

    def finish(self, manifest: Manifest, data: Mapping[str, str]) -> None:
        keys = {
            lucene_schema.MANIFEST_KEY: manifest.to_json(),
            lucene_schema.UPDATE_KEY: str(manifest.update),
        }
        self._writer.finish({**keys, **data})

    def counts(self, generation: str) -> tuple[int, int | None]:
        """See BuildTarget. Opens the new index before any other process can."""
        engine = LuceneEngine.open(self._folder / generation, str(self._location))
        try:
            statistics = engine.statistics()
        finally:
            engine.close()
        sentences = None if statistics.sentences is None else statistics.sentences.documents
        return statistics.chunks.documents, sentences

    def publish(self, generation: str) -> None:
        self._site.publish(generation)


class OpenSearchTarget:
    """A name on a cluster as a BuildTarget."""

    engine = opensearch_schema.ENGINE

    def __init__(
        self, location: str, options: BuildOptions, note: Callable[[str], None] | None = None
    ) -> None:
        self._note = note
        self._address = parse_address(location)
        self._overwrite = options.overwrite
        self._keep = KEPT if options.keep is None else options.keep
        wait_s = options.node_wait_s
        self._node_wait_s = NODE_WAIT_S if wait_s is None else wait_s
        self._options = options
        self._signature: dict[str, Any] = {}

    def __enter__(self) -> OpenSearchTarget:
        self._client = Client.connect(self._address)
        try:
            self.engine_version = self._client.version()
            self._site = OpenSearchSite(
                self._client,
                self._address.name,
                str(self._address),
                overwrite=self._overwrite,
                keep=self._keep,
            )
            self._site.__enter__()
        except BaseException:
            self._client.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._site.__exit__(*exception)
        self._client.close()

    def begin(self, signature: Mapping[str, Any]) -> tuple[str, bool, str]:
        """See BuildTarget. Stores only a digest of the sources, to keep the signature small."""
        plain: dict[str, Any] = orjson.loads(orjson.dumps(signature))
        sources = orjson.dumps(plain[_SOURCES], option=orjson.OPT_SORT_KEYS)
        self._signature = {**plain, _SOURCES: hashlib.sha256(sources).hexdigest()}
        return self._site.begin(self._signature)

    def open_writer(
        self, generation: str, *, metadata: Mapping[str, MetadataType], resume: bool
    ) -> IndexWriter:
        options = self._options
        definition = IndexDefinition(
            metadata=dict(metadata),
            k1=options.k1,
            b=options.b,
            shards=options.shards or 1,
            exact="exact" not in options.without,
            sentences="sentences" not in options.without,
        )
        self._writer = OpenSearchWriter(
            self._client,
            generation,
            definition,
            self._signature,
            resume=resume,
            node_wait_s=self._node_wait_s,
            note=self._note,
        )
        if not resume:
            try:
                self._site.check_alone(generation)
            except BaseException:
                self._writer.abort()
                raise
        return self._writer

    @property
    def packer(self) -> Packer:
        return self._writer.packer

    @property
    def sent(self) -> BulkCounts:
        return self._writer.bulk_counts

    def add(self, packed: Any) -> None:
        self._writer.add_packed(packed)

    def discard(self, generation: str) -> None:
        self._site.discard(generation)

    def finish(self, manifest: Manifest, data: Mapping[str, str]) -> None:
        self._writer.finish(manifest, data)

    def counts(self, generation: str) -> tuple[int, int | None]:
        counts = self._writer.counts()
        self._writer.close()
        return counts

    def publish(self, generation: str) -> None:
        self._site.publish(generation, "sentences" not in self._options.without)

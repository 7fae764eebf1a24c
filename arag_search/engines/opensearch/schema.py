"""The schema of the two OpenSearch indexes of an index: names, settings, documents, ``_meta``.

A build creates ``<name>-<yyyymmddhhmmss>-<8 hex digits>`` with one document per chunk, and
``<that>.sentences`` with one document per sentence. The aliases ``<name>`` and ``<name>.sentences``
name what is searched. The alias ``<physical>.building.<token>`` exists while a build is unfinished.
Bulks are written through it, so that they never recreate a deleted index, and only the holder of
the lease with this token writes.

Documents have their ordinal as ``_id`` and are routed by ``doc_id``. ``record`` is stored and not
indexed: hits show it and queries do not see it. Declared metadata are exact terms, doubles or
longs in ``metadata.<name>``, as ``query/field_types.py`` says of their type.

Settings and mappings are in ``opensearch/*.json``. The mapping of the chunks has our ``_meta``; an
index without it is not ours.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, cast

import orjson

from arag_search.corpus import (
    Chunk,
    MetadataValue,
    PassageOutline,
)
from arag_search.engines.base import REBUILD
from arag_search.engines.stored import ID, NAME, ORDINAL, RECORD
from arag_search.errors import IndexDamagedError, IndexVersionError
from arag_search.manifest import Manifest
from arag_search.query.field_types import MetadataType, Storage, columns
from arag_search.query.fields import (
    CONTENT,
    DOC_ID,
    FORM_FIELDS,
    NAMES,
    TEXT_FIELDS,
    TITLE,
)
from arag_search.query.forms import ChunkForms
from arag_search.query.names import names_of

OPENSEARCH = "opensearch"
"""The name of this engine in manifests."""

CHUNK_ID = "chunk_id"
PART = "part"
PARTS = "parts"
METADATA = "metadata"
SENTENCE_ENDS = "sentence_ends"
OUTLINE = "outline"
SENTENCES = "sentences"
"""In the record of a sentence: the number of sentences in its chunk."""
EXACT = "exact"
SENTENCES_SUFFIX = ".sentences"
BUILDING_SUFFIX = ".building"
UPDATING_SUFFIX = ".updating"
"""BUILDING_SUFFIX and this one end the aliases through which a build or an update writes."""
LOCK_SUFFIX = ".lock"

META_KEY = "arag_search"
META_VERSION = 2
UNFINISHED_KEY = "update"
"""In ``build`` of ``_meta``: an unfinished update."""

WITHOUT_TEXT = (CONTENT, f"{RECORD}.{SENTENCE_ENDS}")
"""The fields to exclude from ``_source`` for hits without text."""

Terms = Mapping[str, tuple[str, ...]]
"""For each scored field, a small set of terms of which every shard with the field holds one."""

_PHYSICAL = re.compile(r"(?P<name>.+)-\d{14}(?:\d{3})?-[0-9a-f]{8}")


# Names


def physical_name(name: str, now: datetime, random_hex: str) -> str:
    """Return the name of the chunk index that a build creates for ``name``. Names sort by time, to
    the millisecond."""
    return f"{name}-{now:%Y%m%d%H%M%S}{now.microsecond // 1000:03}-{random_hex[:8]}"


def is_physical(index: str, name: str) -> bool:
    """Return whether ``index`` is a name that builds of ``name`` give to chunk indexes."""
    match = _PHYSICAL.fullmatch(index)
    return match is not None and match["name"] == name


def sentences_name(name: str) -> str:
    """Return the sentence index (or its alias) of a chunk index (or its alias)."""
    return name + SENTENCES_SUFFIX


def lock_name(index: str) -> str:
    """Return the index with the lease of a name, or of the name that a physical index is of."""
    match = _PHYSICAL.fullmatch(index)
    return (match["name"] if match else index) + LOCK_SUFFIX


def opensearch_field(name: str) -> str:
    """Return the field in documents for a metadata field in queries, or for the names."""
    return {DOC_ID: DOC_ID, NAMES: NAME}.get(name, f"{METADATA}.{name}")


def exact_field(name: str) -> str:
    """Return the subfield of a text field that scores boost x frequency."""
    return f"{name}.{EXACT}"


# Settings and mappings


def index_body(
    kind: Literal["chunks", "sentences"],
    metadata: Mapping[str, MetadataType],
    *,
    k1: float,
    b: float,
    shards: int,
    exact: bool = True,
    forms: bool = True,
    meta: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the body that creates an index of chunks or of sentences. For chunks, keyword_search
    requires ``exact``; normal forms of words require ``forms``."""
    body: dict[str, Any] = orjson.loads(_definition(kind))
    index, properties = body["settings"]["index"], body["mappings"]["properties"]
    index["number_of_shards"] = shards
    index["similarity"]["default"].update(k1=k1, b=b)
    if not exact and kind == "chunks":
        del index["similarity"]["counts"]
        for name in TEXT_FIELDS:
            del properties[name]["fields"]
    for name in () if forms else FORM_FIELDS.values():
        del properties[name]
    properties[METADATA]["properties"] = metadata_properties(metadata)
    body["mappings"]["_meta"] = {META_KEY: dict(meta)}
    return body


def metadata_properties(metadata: Mapping[str, MetadataType]) -> dict[str, Any]:
    """Return the mapping of metadata fields."""
    types: dict[Storage, str] = {"term": "keyword", "double": "double", "long": "long"}
    own = columns(metadata).items()
    return {name: {"type": types[kind.storage]} for name, (_, kind) in own}


@functools.cache
def _definition(name: str) -> bytes:
    package = Path(__file__).parents[2]
    packaged = package / "opensearch"
    folder = packaged if packaged.is_dir() else package.parent / "opensearch"
    return (folder / f"{name}.json").read_bytes()


# Documents


def chunk_document(
    chunk: Chunk, metadata: Mapping[str, MetadataType], forms: ChunkForms | None = None
) -> dict[str, Any]:
    """Return the document of a chunk, whose declared metadata fields are ``metadata``."""
    return {
        **({} if forms is None else _forms(forms.title, forms.content)),
        ID: chunk.id,
        NAME: names_of(chunk.title, chunk.doc_id) if chunk.part == 1 else [],
        DOC_ID: chunk.doc_id,
        ORDINAL: chunk.ordinal,
        TITLE: chunk.title,
        CONTENT: chunk.content,
        PART: chunk.part,
        PARTS: chunk.parts,
        METADATA: _indexed(chunk.metadata, metadata),
        RECORD: {SENTENCE_ENDS: chunk.sentence_ends, **_record(chunk)},
    }


def sentence_documents(
    chunk: Chunk, metadata: Mapping[str, MetadataType], forms: ChunkForms | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the documents of the sentences of a chunk, in order."""
    texts = chunk.sentences()
    common: dict[str, Any] = {
        CHUNK_ID: chunk.id,
        DOC_ID: chunk.doc_id,
        TITLE: chunk.title,
        PART: chunk.part,
        PARTS: chunk.parts,
        METADATA: _indexed(chunk.metadata, metadata),
        RECORD: {SENTENCES: len(texts), **_record(chunk)},
    }
    for number, text in enumerate(texts):
        of_text: dict[str, list[str]] = {}
        if forms is not None:
            titles = forms.sentence_titles
            of_text = _forms(titles[number] if titles else forms.title, forms.sentences[number])
        yield {**common, **of_text, ORDINAL: chunk.ordinal + number, CONTENT: text}


def _record(chunk: Chunk) -> dict[str, Any]:
    outline = chunk.outline.to_json()
    return {METADATA: chunk.metadata, **({OUTLINE: outline} if outline else {})}


def _forms(title: str, content: str) -> dict[str, list[str]]:
    # Between the texts of a list, positions have a gap.
    return {FORM_FIELDS[TITLE]: title.split("\n"), FORM_FIELDS[CONTENT]: content.split("\n")}


def _indexed(
    values: Mapping[str, MetadataValue], declared: Mapping[str, MetadataType]
) -> dict[str, Any]:
    terms: dict[str, Any] = {}
    for name, (own, kind) in columns(declared).items():
        value = values.get(own)
        if isinstance(value, tuple):
            terms[name] = [kind.stored(scalar) for scalar in value]
        elif value is not None:
            terms[name] = kind.stored(value)
    return terms


def chunk_of(source: Mapping[str, Any]) -> Chunk:
    """Return the chunk of a document; without content if that was not requested."""
    return Chunk(
        id=source[ID],
        doc_id=source[DOC_ID],
        title=source[TITLE],
        content=source.get(CONTENT, ""),
        part=source[PART],
        parts=source[PARTS],
        ordinal=source[ORDINAL],
        sentence_ends=tuple(source[RECORD].get(SENTENCE_ENDS, ())),
        metadata=metadata_of(source),
        outline=passage_outline(source),
    )


def passage_outline(source: Mapping[str, Any]) -> PassageOutline:
    """Return the outline in the document of a chunk or a sentence."""
    return PassageOutline.of_json(*source[RECORD].get(OUTLINE, ()))


def metadata_of(source: Mapping[str, Any]) -> dict[str, MetadataValue]:
    """Return the metadata in the document of a chunk or a sentence, as in the corpus."""
    loaded = cast("dict[str, Any]", source[RECORD].get(METADATA, {}))
    return {
        name: tuple(value) if isinstance(value, list) else value  # pyright: ignore
        for name, value in loaded.items()
    }


# The content of ``_meta``


@dataclass(frozen=True, slots=True)
class Meta:
    """The description of a chunk index of ours in its mapping.

    ``sentences`` is the name of its sentence index, None if left out. ``manifest`` and the shard
    terms (see ``Terms``) are present when everything is written. ``build`` holds what is needed to
    resume a build.
    """

    sentences: str | None
    manifest: Manifest | None = None
    chunk_terms: Terms = field(default_factory=dict[str, tuple[str, ...]])
    sentence_terms: Terms = field(default_factory=dict[str, tuple[str, ...]])
    build: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def unfinished_update(self) -> str:
        """The command of the unfinished update; empty if no update is unfinished."""
        update = self.build.get(UNFINISHED_KEY)
        return "" if update is None else str(update["record"]["command"])

    def completed(
        self, manifest: Manifest, chunk_terms: Terms, sentence_terms: Terms | None = None
    ) -> Meta:
        """Return the description of the index with everything written and refreshed."""
        return replace(
            self,
            manifest=manifest,
            chunk_terms=chunk_terms,
            sentence_terms={} if sentence_terms is None else sentence_terms,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON to store under ``META_KEY``."""
        manifest = None if self.manifest is None else orjson.loads(self.manifest.to_json())
        return {
            "version": META_VERSION,
            "sentences": self.sentences,
            "manifest": manifest,
            "shard_terms": {"chunks": self.chunk_terms, "sentences": self.sentence_terms},
            "build": self.build,
        }


def read_meta(mapping: Mapping[str, Any], where: str) -> Meta | None:
    """Read ``_meta`` of the mapping of a chunk index; None if it is not ours.

    Raises IndexVersionError for another version, IndexDamagedError if it cannot be read.
    """
    described: Any = mapping.get("_meta")
    ours: Any = described.get(META_KEY) if isinstance(described, dict) else None  # pyright: ignore
    if not isinstance(ours, dict):
        return None
    loaded = cast("dict[str, Any]", ours)
    if loaded.get("version") != META_VERSION:
        raise IndexVersionError(
            f"The index has format version {loaded.get('version')}.",
            where=where,
            allowed=f"version {META_VERSION}",
            do=f"Build the index again: arag-search index SOURCE --to {where} --overwrite",
        )
    try:
        terms = loaded["shard_terms"]
        manifest = loaded["manifest"]
        return Meta(
            sentences=_typed(loaded["sentences"], str, type(None)),
            manifest=None
            if manifest is None
            else Manifest.from_json(orjson.dumps(manifest).decode(), where),
            chunk_terms=_terms(terms["chunks"]),
            sentence_terms=_terms(terms["sentences"]),
            build=_build(loaded["build"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise IndexDamagedError(
            f"The _meta of the index cannot be read ({error!r}).", where=where, do=REBUILD
        ) from error


def _terms(loaded: Any) -> Terms:
    return {
        name: tuple(_typed(value, str) for value in _typed(values, list))
        for name, values in _typed(loaded, dict).items()
    }


def _build(loaded: Any) -> Mapping[str, Any]:
    """Return the notes of builds and updates. Raises KeyError and TypeError if malformed."""
    build = cast("dict[str, Any]", _typed(loaded, dict))
    for name in build.keys() & _NOTES.keys():
        note = _typed(build[name], dict)
        for part, kinds in _NOTES[name].items():
            _typed(note[part], *kinds)
    _typed(build.get("last_ordinal", -1), int)
    update = build.get(UNFINISHED_KEY, {})
    _typed(update.get("record", {}).get("command", ""), str)
    if update.get("stage") == "committing":
        _typed(update["manifest"], dict)
        for doc_id in _typed(update["remove"], list):
            _typed(doc_id, str)
    return build


_NOTES: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "signature": {},
    "state": {},
    UNFINISHED_KEY: {"stage": (str,), "record": (dict,), "first": (int, type(None))},
}
"""The notes of builds and updates that are objects, and the fields that are read."""


def _typed(value: Any, *kinds: type) -> Any:
    if type(value) not in kinds:
        raise TypeError(f"{type(value).__name__} instead of {kinds[0].__name__}")
    return value

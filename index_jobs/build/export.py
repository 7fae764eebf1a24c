"""Documents of an index as records of a corpus, from which the same index can be built again."""

from __future__ import annotations

import shlex
from typing import Any

from arag_search.corpus import NO_OUTLINE, Chunk, Document
from arag_search.engines.hits import metadata_dict
from arag_search.engines.write import DEFAULT_BM25, Bm25
from arag_search.manifest import Manifest
from arag_search.search.reading.documents import IndexDocument
from index_jobs.cutting.chunking import DEFAULT_CHUNK_TOKENS, PASSAGE_KIND, cut
from index_jobs.cutting.sentences import sentence_ends
from index_jobs.sources.lines.formats import PASSAGE_OUTLINES, PRE_CHUNKED_MARK, SENTENCE_ENDS


def record_of(document: IndexDocument, manifest: Manifest) -> dict[str, Any]:
    """Return a record of the format ``documents``, or ``pre-chunked`` if the index is.

    The record gives the ends of sentences only if they could not be found again from the text. For
    instance, a source may have its own sentences. The record gives the passages only if they have
    an outline. Metadata cannot have the names of other keys, which are reserved.
    """
    text = document.text
    record: dict[str, Any] = {"id": document.id, "title": document.title, "text": text}
    if manifest.already_chunked:
        record[PRE_CHUNKED_MARK] = True
    metadata = metadata_dict(document.metadata)
    if any(chunk.outline != NO_OUTLINE for chunk in document.chunks):
        record[SENTENCE_ENDS] = list(document.sentence_ends)
        record[PASSAGE_OUTLINES] = [_passage(chunk) for chunk in document.chunks]
        if PASSAGE_KIND in metadata:
            metadata[PASSAGE_KIND] = "text"
    elif not _is_cut_again(document, text, manifest):
        record[SENTENCE_ENDS] = list(document.sentence_ends)
    return {**record, **metadata}


def _passage(chunk: Chunk) -> dict[str, Any]:
    values: dict[str, Any] = chunk.outline._asdict()
    if chunk.metadata.get(PASSAGE_KIND) == "index":
        values["index"] = True
    shown = {name: value for name, value in values.items() if value}
    return {"sentences": len(chunk.sentence_ends), **shown}


def build_command(source: str, manifest: Manifest) -> str:
    """Return the command that builds an index from exported documents, with the same passages."""
    words = ["arag-search", "index", source, "--to", "INDEX"]
    if manifest.metadata:
        fields = (f"{name}:{kind}" for name, kind in manifest.metadata.items())
        words += ["--metadata", ",".join(fields)]
    if manifest.chunk_tokens != DEFAULT_CHUNK_TOKENS and not manifest.already_chunked:
        words += ["--chunk-tokens", str(manifest.chunk_tokens)]
    if (bm25 := Bm25(manifest.k1, manifest.b)) != DEFAULT_BM25:
        words += ["--bm25", str(bm25)]
    if manifest.without:
        words += ["--without", ",".join(manifest.without)]
    return shlex.join(words)


def _is_cut_again(document: IndexDocument, text: str, manifest: Manifest) -> bool:
    """Return whether the passages of the document result from its text alone.

    A sentence that is longer than a passage is stored as several; only then is the text cut again.
    """
    if tuple(sentence_ends(text, document.title)) == document.sentence_ends:
        return True
    whole = Document(document.id, document.title, text, whole=manifest.already_chunked)
    chunks, _ = cut(whole, shard=0, number=0, chunk_tokens=manifest.chunk_tokens)
    return [(chunk.content, chunk.sentence_ends) for chunk in chunks] == [
        (chunk.content, chunk.sentence_ends) for chunk in document.chunks
    ]

"""Chunks and documents by address: ``arag://INDEX/chunk/ID``, ``arag://INDEX/document/ID``.

An id is percent-encoded, including its slashes. Clients that parse addresses cannot name the ids
``.`` and ``..``: however they are encoded, they are path segments with a meaning of their own. An
address yields a text with the bounds of chunk_read's replies.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from urllib.parse import unquote

from arag_search.errors import ArgumentError, UnknownDocumentError
from arag_search.search.index import Index
from arag_search.search.reading.documents import unknown_chunks
from arag_search.system.progress import counted
from arag_search.tools.passages.connector import KINDS, AddressKind, address_start, document_ids
from arag_search.tools.passages.read import IN_BRACKETS, MAX_IDS, ChunkRead
from arag_search.tools.preset import FULL_TEXT_RESULT_TOKENS, plain_preset

_SHOWN_CHARACTERS = 80


def template_of(index: str, kind: AddressKind) -> str:
    """Return the addresses of all chunks or documents of an index as a URI template (RFC 6570)."""
    return f"{address_start(index, kind)}{{id}}"


def read_address(address: str, served: Mapping[str, Index]) -> str:
    """Read the text at an address, of indexes by name.

    Raises ArgumentError for an address that belongs to no served index. Raises UnknownChunkError
    and UnknownDocumentError for ids that an index does not hold, or not in its scope.
    """
    for name, index in served.items():
        for kind in KINDS:
            start = address_start(name, kind)
            if address[: len(start)].lower() == start.lower():
                id_ = unquote(address[len(start) :])
                read = _chunk if kind == "chunk" else _document
                return index.at_one_state(partial(read, id_=id_, name=name))
    shown = address if len(address) <= _SHOWN_CHARACTERS else f"{address[:_SHOWN_CHARACTERS]}..."
    templates = [template_of(name, kind) for name in served for kind in KINDS]
    raise ArgumentError(
        "There is nothing at this address.",
        where=shown,
        allowed=", ".join(templates),
        do="Percent-encode the id.",
    )


def _chunk(index: Index, id_: str, name: str) -> str:
    result = _reader(index).run({"chunk_ids": [id_]})
    if result.status == "error":
        raise unknown_chunks([id_], name)
    return result.text


def _document(index: Index, id_: str, name: str) -> str:
    """Return the first chunks of a document, as many as chunk_read shows at once."""
    ids, total = document_ids(index, id_, MAX_IDS)
    if not ids:
        raise UnknownDocumentError(
            f'No document has the id "{id_}".',
            where=name,
            allowed="ids as the field doc_id has them",
            do="Search with doc_id:ID, or copy an id from what searches show.",
        )
    text = _reader(index).run({"chunk_ids": ids}).text
    left = total - len(ids)
    if not left:
        return text
    more = counted(left, "more passage")
    return f"{text}\n{more} of this document after [{ids[-1]}]. {IN_BRACKETS}"


def _reader(index: Index) -> ChunkRead:
    return ChunkRead(index, plain_preset(max_result_tokens=FULL_TEXT_RESULT_TOKENS))

"""connector_fetch: the tool ``fetch`` of connectors, from an id to a text with its metadata."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from pydantic import Field

from arag_search.corpus import Chunk, is_unicode, nfc
from arag_search.query.fields import DOC_ID
from arag_search.tokens import count_tokens
from arag_search.tools.base import Arguments, ReadSet, ToolResult, error_result
from arag_search.tools.connector import (
    AddressKind,
    ConnectorTool,
    citation_url,
    document_ids,
    json_result,
    json_text,
    texts_of,
)
from arag_search.tools.rendering import cut_to, one_line, shown_title

MAX_PASSAGES = 50
"""The largest number of passages of a document that are read at once."""
_SHOWN_CHARACTERS = 80
_SHARE_OF_METADATA = 4  # titles and metadata take at most this part of a reply


class ConnectorFetchArguments(Arguments):
    """The arguments of connector_fetch."""

    id: str = Field(description="An id that search returned.")


class ConnectorFetch(ConnectorTool):
    """A tool that returns a passage by its id, or the passages of a document by the document's id,
    cut at the bound of a reply."""

    name = "connector_fetch"
    arguments = ConnectorFetchArguments
    output_schema: ClassVar[dict[str, Any] | None] = {
        "type": "object",
        "properties": {
            **{name: {"type": "string"} for name in ("id", "title", "text", "url")},
            "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["id", "title", "text", "url", "metadata"],
    }

    def _call(self, arguments: ConnectorFetchArguments, read_set: ReadSet) -> ToolResult:
        started = time.perf_counter()
        id_ = nfc(arguments.id)
        if is_unicode(id_):
            (chunk,) = self.index.read([id_])
            if chunk is not None:
                metadata = self._passage_metadata(chunk)
                return self._reply("chunk", id_, [chunk], metadata, started)
            ids, total = document_ids(self.index, id_, MAX_PASSAGES)
            if ids:
                chunks = [chunk for chunk in self.index.read(ids) if chunk is not None]
                metadata = {"passages": str(total)}
                if len(chunks) < total:
                    metadata["truncated"] = f"{len(chunks)} of {total} passages; search for others"
                return self._reply("document", id_, chunks, metadata, started)
        shown = id_ if len(id_) <= _SHOWN_CHARACTERS else f"{id_[:_SHOWN_CHARACTERS]}..."
        return error_result(f'There is nothing with the id "{shown}". Use an id that search gave.')

    def _passage_metadata(self, chunk: Chunk) -> dict[str, str]:
        read_chunk = self.index.with_neighbours(chunk)
        metadata = {DOC_ID: chunk.doc_id, "part": f"{chunk.part} of {chunk.parts}"}
        if read_chunk.previous_id is not None:
            metadata["previous_id"] = read_chunk.previous_id
        if read_chunk.next_id is not None:
            metadata["next_id"] = read_chunk.next_id
        return metadata

    def _reply(
        self,
        kind: AddressKind,
        id_: str,
        chunks: list[Chunk],
        about: dict[str, str],
        started: float,
    ) -> ToolResult:
        """Return the texts of the chunks as one, which is cut if the reply would be too long."""
        first = chunks[0]
        share = self.max_result_tokens // _SHARE_OF_METADATA
        own: dict[str, str] = {}
        for name, value in first.metadata.items():
            own[name] = cut_to(", ".join(map(one_line, texts_of(value))), share)
        text = "\n\n".join(chunk.content.strip() for chunk in chunks)
        content: dict[str, Any] = {
            "id": id_,
            "title": shown_title(first.title) or first.doc_id,
            "text": "",
            "url": citation_url(self.index_name, kind, id_, first.metadata),
            "metadata": {**own, **about},
        }
        while count_tokens(json_text(content)) > 2 * share and own:
            own.popitem()
            content["metadata"] = {**own, **about}
        content["text"] = text
        room = self.max_result_tokens
        while (excess := count_tokens(json_text(content)) - self.max_result_tokens) > 0:
            room -= excess + 1  # escapes of JSON and the note take room, too
            content["text"] = cut_to(text, max(room, 0))
            content["metadata"] = {**own, "truncated": "the text ends early", **about}
            if room <= 0:
                break
        return json_result(
            content,
            [chunk.id for chunk in chunks],
            (time.perf_counter() - started) * 1000,
            retrieved_tokens=count_tokens(content["title"]) + count_tokens(content["text"]),
        )

"""The contract of connectors: what ``search`` and ``fetch`` share.

A client such as ChatGPT knows only these two tools, and reads their replies as JSON: a search
returns results with ``id``, ``title`` and ``url``, a fetch a document with ``id``, ``title``,
``text``, ``url`` and ``metadata``. The same object is the text and the structured content of the
reply.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, cast, get_args
from urllib.parse import quote, urlsplit

from arag_search.corpus import is_unicode
from arag_search.query.fields import DOC_ID
from arag_search.query.printing import keyword_text
from arag_search.query.problems import QueryError
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.base import (
    FULL_TEXT_RESULT_TOKENS,
    Status,
    Tool,
    ToolResult,
    ToolSettings,
)
from arag_search.tools.index_description import described

AddressKind = Literal["chunk", "document"]
KINDS: tuple[AddressKind, ...] = get_args(AddressKind)

_SCHEME = "arag://"
_URL = "url"
"""The metadata field with the web address of a document."""
_WEB = ("http", "https")


def address_start(index: str, kind: AddressKind) -> str:
    """Return the common beginning of the addresses of all chunks or documents of an index."""
    return f"{_SCHEME}{index}/{kind}/"


def citation_url(index: str, kind: AddressKind, id_: str, metadata: Mapping[str, object]) -> str:
    """Return the URL for citing a passage or document: its metadata field ``url`` if that is a web
    address, else its address on the server."""
    for text in texts_of(metadata.get(_URL)):
        if _is_web_address(text.strip()):
            return text.strip()
    return f"{address_start(index, kind)}{quote(id_, safe='')}"


def texts_of(value: object) -> list[str]:
    """Return the value of a metadata field, or its values, as texts; none if it is absent."""
    values = cast(Sequence[object], value if isinstance(value, tuple | list) else (value,))
    return [str(item) for item in values if item is not None]


def document_ids(index: Index, doc_id: str, limit: int) -> tuple[list[str], int]:
    """Return the ids of the first chunks of a document, in order, and the number of its chunks."""
    try:
        result = index.logical_search(
            f"{DOC_ID}:{keyword_text(doc_id)}", top_k=limit, snippets=False, feedback=False
        )
    except QueryError:  # nothing that can be an id: empty, or longer than a query may be
        return [], 0
    return [hit.id for hit in result.hits], result.total or 0


class ConnectorTool(Tool):
    """A tool of the contract over one index, which clients know by the name ``index_name``."""

    def __init__(
        self,
        index: Index,
        *,
        index_name: str = "index",
        max_result_tokens: int = FULL_TEXT_RESULT_TOKENS,
    ) -> None:
        text = described(self.name, index)
        super().__init__(index, description=text, max_result_tokens=max_result_tokens)
        self.index_name = index_name

    @classmethod
    def of(cls, index: Index, settings: ToolSettings) -> Self:
        return cls(index, max_result_tokens=settings.max_result_tokens)

    def served_as(self, name: str) -> Self:
        return type(self)(self.index, index_name=name, max_result_tokens=self.max_result_tokens)


def json_result(
    content: dict[str, Any],
    ids: Sequence[str],
    milliseconds: float,
    *,
    status: Status = "ok",
    total: int | None = None,
    total_is_exact: bool = True,
    retrieved_tokens: int = 0,
) -> ToolResult:
    """Return a result whose text is the content as JSON, with the content beside it."""
    text = json_text(content)
    return ToolResult(
        text=text,
        status=status,
        ids=tuple(ids),
        total=total,
        total_is_exact=total_is_exact,
        retrieved_tokens=retrieved_tokens,
        result_tokens=count_tokens(text),
        milliseconds=milliseconds,
        structured=content,
    )


def json_text(content: Mapping[str, Any]) -> str:
    """Return an object as JSON in one line."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _is_web_address(text: str) -> bool:
    """Return whether a text of a corpus is a web address, and not a script or a file."""
    if not is_unicode(text) or any(character.isspace() for character in text):
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme.lower() in _WEB and bool(parts.netloc)

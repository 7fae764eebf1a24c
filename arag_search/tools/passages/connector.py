"""The contract of connectors: two tools whose replies are JSON.

The tool ``search`` (connector_search) returns ``results`` with ``id``, ``title`` and ``url``. The
tool ``fetch`` (connector_fetch) returns the ``id``, ``title``, ``text``, ``url`` and ``metadata``
of an id. A client such as ChatGPT knows only these two. If the index is behind its files, ``state``
says so. The object is the text of a reply. It is also its structured content for a client that
declares that it reads that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self, get_args
from urllib.parse import quote, urlsplit

from pydantic import Field

from arag_search.corpus import Chunk, is_unicode, nfc, typed_id
from arag_search.engines.hits import Hit
from arag_search.plan.clauses import leaf_clauses, wanted_leaves
from arag_search.plan.lower import lower
from arag_search.query.fields import DOC_ID
from arag_search.query.limits import MAX_CHARACTERS
from arag_search.query.printing import keyword_text
from arag_search.query.problems import QueryError
from arag_search.query.reading import parse
from arag_search.search.finding.by_vectors import words_query
from arag_search.search.index import Index
from arag_search.search.results import SearchResult
from arag_search.tokens import count_tokens, cut_to
from arag_search.tools.replies.apart import safe_signs
from arag_search.tools.replies.spans import texts_of, value_text
from arag_search.tools.replies.writing import shown_heading, shown_path, shown_title
from arag_search.tools.tool import (
    STATE,
    Arguments,
    Mistake,
    ReadSet,
    Status,
    Tool,
    ToolResult,
    json_text,
)

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

    index_name: str = "index"

    def served_as(self, name: str) -> Self:
        tool = type(self)(self.index, self.preset)
        tool.index_name = name
        return tool


def json_result(
    content: dict[str, Any],
    ids: Sequence[str],
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
        is_absent=status == "empty",
        retrieved_tokens=retrieved_tokens,
        structured=content,
    )


def _is_web_address(text: str) -> bool:
    # A text of a corpus may also be a script or a file.
    if not is_unicode(text) or any(character.isspace() for character in text):
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme.lower() in _WEB and bool(parts.netloc)


RESULTS = 10
_NO_WORDS = "Tool not run: the query holds no word to look up. Write a question, or a few words."


class ConnectorSearchArguments(Arguments):
    """The arguments of connector_search."""

    query: str = Field(description="A question, plain words, or a logical query.")


class ConnectorSearch(ConnectorTool):
    """A search that understands logical queries, and treats everything else as plain words.

    A query with mistakes is corrected. If it cannot be corrected, or if a query of words alone
    matches nothing, its words are alternatives. Field clauses and NOT are never dropped.
    """

    name = "connector_search"
    arguments = ConnectorSearchArguments
    output_schema: ClassVar[dict[str, Any] | None] = {
        "type": "object",
        "properties": {
            "results": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {name: {"type": "string"} for name in ("id", "title", "url")},
                    "required": ["id", "title", "url"],
                },
            },
            STATE: {"type": "string"},
        },
        "required": ["results"],
    }

    def _call(self, arguments: ConnectorSearchArguments, read_set: ReadSet) -> ToolResult:
        result = self._search(arguments.query)
        if result is None:
            raise Mistake(_NO_WORDS)
        results = [self._entry(hit) for hit in result.hits]
        while count_tokens(json_text({"results": results})) > self.max_result_tokens:
            results.pop()  # titles of a hostile corpus
        return json_result(
            {"results": results},
            [entry["id"] for entry in results],
            status="ok" if results else "empty",
            total=result.total,
            total_is_exact=result.total_is_exact,
            retrieved_tokens=sum(count_tokens(entry["title"]) for entry in results),
        )

    def _search(self, query: str) -> SearchResult | None:
        result = self._logical(query)
        if result is not None and (result.hits or self._is_narrowed(result.query)):
            return result
        words = _as_words(query)
        return result if words is None else self._logical(words)

    def _logical(self, query: str) -> SearchResult | None:
        try:
            return self._ask(query)
        except QueryError as error:
            if error.mended is None:
                return None
            try:
                return self._ask(error.mended)
            except QueryError:
                return None

    def _ask(self, query: str) -> SearchResult:
        return self.index.logical_search(query, top_k=RESULTS, snippets=False, feedback=False)

    def _is_narrowed(self, query: str) -> bool:
        plan = lower(parse(query, self.index.manifest.query_schema).tree)
        wanted = wanted_leaves(plan)
        return len(wanted) < len(list(leaf_clauses(plan))) or not all(
            leaf.kind in ("word", "phrase", "prefix") and leaf.field is None for leaf in wanted
        )

    def _entry(self, hit: Hit) -> dict[str, Any]:
        title = shown_heading(shown_title(hit.title) or hit.doc_id, hit.outline.path)
        if hit.parts > 1:
            title = f"{title} ({hit.part} of {hit.parts})"
        url = citation_url(self.index_name, "chunk", hit.id, hit.metadata)
        return {"id": hit.id, "title": title, "url": url}


def _as_words(query: str) -> str | None:
    plan, _ = words_query(nfc(query[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")))
    if plan is None:
        return None
    words = [leaf.text for leaf in leaf_clauses(plan)]
    while len(" ".join(words)) > MAX_CHARACTERS:
        words.pop()
    return " ".join(words) or None


MAX_PASSAGES = 50
"""The largest number of passages of a document that are read at once."""
_SHOWN_CHARACTERS = 80
_SHARE_OF_METADATA = 4  # titles and metadata take at most this part of a reply


class ConnectorFetchArguments(Arguments):
    """The arguments of connector_fetch."""

    id: str = Field(description="An id that search returned.")


class ConnectorFetch(ConnectorTool):
    """A tool that returns a passage by its id, or the passages of a document by the document's id.
    The text is cut at the bound of a reply."""

    name = "connector_fetch"
    arguments = ConnectorFetchArguments
    output_schema: ClassVar[dict[str, Any] | None] = {
        "type": "object",
        "properties": {
            **{name: {"type": "string"} for name in ("id", "title", "text", "url")},
            "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
            STATE: {"type": "string"},
        },
        "required": ["id", "title", "text", "url", "metadata"],
    }

    def _call(self, arguments: ConnectorFetchArguments, read_set: ReadSet) -> ToolResult:
        id_ = typed_id(arguments.id)
        if is_unicode(id_):
            (chunk,) = self.index.read([id_])
            if chunk is not None:
                metadata = self._passage_metadata(chunk)
                return self._reply("chunk", id_, [chunk], metadata)
            ids, total = document_ids(self.index, id_, MAX_PASSAGES)
            if ids:
                chunks = [chunk for chunk in self.index.read(ids) if chunk is not None]
                metadata = {"passages": str(total)}
                if len(chunks) < total:
                    metadata["truncated"] = f"{len(chunks)} of {total} passages; search for others"
                return self._reply("document", id_, chunks, metadata)
        shown = id_ if len(id_) <= _SHOWN_CHARACTERS else f"{id_[:_SHOWN_CHARACTERS]}..."
        raise Mistake(f'There is nothing with the id "{shown}". Use an id that search gave.')

    def _passage_metadata(self, chunk: Chunk) -> dict[str, str]:
        read_chunk = self.index.with_neighbours([chunk])[0]
        metadata = {DOC_ID: chunk.doc_id, "part": f"{chunk.part} of {chunk.parts}"}
        place = {"headings": shown_path(chunk.outline.path), "line": str(chunk.outline.line or "")}
        metadata |= {name: value for name, value in place.items() if value}
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
    ) -> ToolResult:
        first = chunks[0]
        share = self.max_result_tokens // _SHARE_OF_METADATA
        own = {name: cut_to(value_text(value), share) for name, value in first.metadata.items()}
        text = safe_signs("\n\n".join(chunk.content.strip() for chunk in chunks))
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
            retrieved_tokens=count_tokens(content["title"]) + count_tokens(content["text"]),
        )

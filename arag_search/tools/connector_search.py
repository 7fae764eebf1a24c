"""connector_search: the tool ``search`` of connectors, from a query to ids, titles and URLs."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from pydantic import Field

from arag_search.corpus import nfc
from arag_search.query.limits import MAX_CHARACTERS
from arag_search.query.problems import QueryError
from arag_search.query.tree import Phrase, Prefix, Term, leaves, positive_leaves
from arag_search.search.by_vectors import words_query
from arag_search.search.results import SearchHit, SearchResult
from arag_search.tokens import count_tokens
from arag_search.tools.base import Arguments, ReadSet, ToolResult, error_result
from arag_search.tools.connector import ConnectorTool, citation_url, json_result, json_text
from arag_search.tools.rendering import shown_title

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
            }
        },
        "required": ["results"],
    }

    def _call(self, arguments: ConnectorSearchArguments, read_set: ReadSet) -> ToolResult:
        started = time.perf_counter()
        result = self._search(arguments.query)
        if result is None:
            return error_result(_NO_WORDS)
        results = [self._entry(hit) for hit in result.hits]
        while count_tokens(json_text({"results": results})) > self.max_result_tokens:
            results.pop()  # titles of a hostile corpus
        return json_result(
            {"results": results},
            [entry["id"] for entry in results],
            (time.perf_counter() - started) * 1000,
            status="ok" if results else "empty",
            total=result.total,
            total_is_exact=result.total_is_exact,
            retrieved_tokens=sum(count_tokens(entry["title"]) for entry in results),
        )

    def _search(self, query: str) -> SearchResult | None:
        """Return the best passages for a query; None if it has no word."""
        result = self._logical(query)
        if result is not None and (result.hits or self._is_narrowed(result.query)):
            return result
        words = _as_words(query)
        return result if words is None else self._logical(words)

    def _logical(self, query: str) -> SearchResult | None:
        """Search for a query, or for its correction; None if it has none."""
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
        """Return whether a query names a field or excludes something."""
        tree = self.index.parse(query).tree
        wanted = list(positive_leaves(tree))
        return len(wanted) < len(list(leaves(tree))) or not all(
            isinstance(leaf, Term | Phrase | Prefix) and leaf.field is None for leaf in wanted
        )

    def _entry(self, hit: SearchHit) -> dict[str, Any]:
        title = shown_title(hit.title) or hit.doc_id
        if hit.parts > 1:
            title = f"{title} ({hit.part} of {hit.parts})"
        url = citation_url(self.index_name, "chunk", hit.id, hit.metadata)
        return {"id": hit.id, "title": title, "url": url}


def _as_words(query: str) -> str | None:
    """Return a query for any of the words of a text, up to the limit of a query; None if there are
    none."""
    tree, _ = words_query(nfc(query[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")))
    if tree is None:
        return None
    words = [str(leaf) for leaf in leaves(tree)]
    while len(" ".join(words)) > MAX_CHARACTERS:
        words.pop()
    return " ".join(words) or None

"""Reranking: a cross-encoder orders the first passages of a search again."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ParamSpec, Protocol, cast

from arag_search.corpus import Chunk
from arag_search.errors import NotServedError
from arag_search.search.results import SearchHit, SearchResult, check_page
from arag_search.vectors.base import Reranker, rows_of

RERANKED = 30
"""The number of passages that are ordered again; the ranking goes on after them."""

P = ParamSpec("P")


class Readable(Protocol):
    """An index, as far as its passages are read and scored again."""

    location: str
    reranker: Reranker | None

    def read(self, ids: Sequence[str]) -> list[Chunk | None]: ...


def reranks(search: Callable[P, SearchResult]) -> Callable[P, SearchResult]:
    """Make a search of an index with the option ``rerank`` order its first passages again.

    The passages, total, notes and feedback are those of the search for the first RERANKED. Lists
    and sorted results are left as they are.
    """
    default: int = inspect.signature(search).parameters["top_k"].default
    run: Callable[..., SearchResult] = search

    @functools.wraps(search)
    def reranking(*arguments: P.args, **options: P.kwargs) -> SearchResult:
        top_k: Any = options.get("top_k", default)
        offset: Any = options.get("offset", 0)
        is_ranking = options.get("show", "text") == "text" and not options.get("sort")
        if not (options.get("rerank") and is_ranking and type(top_k) is type(offset) is int):
            return search(*arguments, **options)
        check_page(top_k, offset)
        if offset >= RERANKED:
            return search(*arguments, **options)
        started = time.perf_counter()
        first = run(*arguments, **{**options, "top_k": RERANKED, "offset": 0})
        end = offset + top_k
        further = {"top_k": end - RERANKED, "offset": RERANKED}
        last = run(*arguments, **{**options, **further}) if end > RERANKED else first
        query = options.get("query", options.get("keywords"))
        question = _question(arguments[1] if len(arguments) > 1 else query, options, first)
        hits = _reordered(cast(Readable, arguments[0]), question, first.hits)
        milliseconds = (time.perf_counter() - started) * 1000
        return replace(
            first,
            offset=offset,
            hits=(*hits[offset:end], *(() if last is first else last.hits)),
            passages=last.passages,
            milliseconds=milliseconds,
        )

    return reranking


def _reordered(index: Readable, question: str, hits: tuple[SearchHit, ...]) -> list[SearchHit]:
    """Return passages by their score for a question, equal ones in the order that they have."""
    if not hits:
        return []
    if index.reranker is None:
        raise NotServedError(
            "The index was opened without a reranker.",
            where=index.location,
            do="Name one: open_index(..., reranker=NAME), or --reranker NAME.",
        )
    chunks = index.read([hit.id for hit in hits])
    texts = [
        "\n".join(text for _, text in rows_of(chunk, "passage")) if chunk else hit.title
        for hit, chunk in zip(hits, chunks, strict=True)
    ]
    scores = index.reranker.scores(question, texts)
    scored = [hit._replace(relevance=score) for hit, score in zip(hits, scores, strict=True)]
    return sorted(scored, key=lambda hit: -cast(float, hit.relevance))


def _question(query: object, options: Mapping[str, object], result: SearchResult) -> str:
    """Return the text that passages are compared with: the meaning of a hybrid search, the words of
    a logical query, keywords, otherwise the query."""
    leaves = result.highlighter.leaves if result.highlighter else ()
    words = dict.fromkeys(text for leaf in leaves if (text := getattr(leaf, "text", "")))
    query = query if isinstance(query, str) else " ".join(cast(tuple[str], query))
    return str(options.get("meaning") or " ".join(words) or query)

"""What is asked for a page of hits, and what the answers say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from arag_search.corpus import chunk_ordinal
from arag_search.engines.base import (
    MAX_TOTAL,
    Hit,
    KeywordRequest,
    Page,
    SearchRequest,
    only_matched,
)
from arag_search.engines.compiling import float32
from arag_search.engines.opensearch import schema
from arag_search.engines.opensearch.compile import Dsl

BY_SCORE: list[Dsl] = [{"_score": "desc"}, {schema.ORDINAL: "asc"}]
BY_ORDINAL: list[Dsl] = [{schema.ORDINAL: "asc"}]
BY_ORDINAL_DOWN: list[Dsl] = [{schema.ORDINAL: "desc"}]
MATCHED = "matched"


@dataclass(frozen=True, slots=True)
class ShardStatistics:
    """What one of the two physical indexes consists of, its replicas left out."""

    documents: int
    deleted: int
    segments: int
    shards: int
    bytes: int


def page_body(query: Dsl, scored: bool, request: SearchRequest | KeywordRequest) -> Dsl:
    """The body of a search for a page."""
    return {
        "query": query,
        "from": request.offset,
        "size": request.top_k,
        "sort": BY_SCORE if scored else BY_ORDINAL,
        # Enough to know the number of passages wherever the page reaches past their end.
        "track_total_hits": max(MAX_TOTAL, request.offset + request.top_k),
        "_source": source_filter(request.with_text),
    }


def source_filter(with_text: bool) -> Any:
    """What of the documents is wanted."""
    return True if with_text else {"excludes": list(schema.WITHOUT_TEXT)}


def hits_of(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The hits of an answer."""
    return answer["hits"]["hits"]


def count_of(answer: Mapping[str, Any]) -> tuple[int, bool]:
    """How many matches there are, and whether that is exact or a bound above MAX_TOTAL."""
    total = answer["hits"]["total"]
    if total["relation"] == "eq":
        return int(total["value"]), True
    return max(int(total["value"]), MAX_TOTAL + 1), False


def score_of(hit: Mapping[str, Any]) -> float:
    """The score as the 32-bit float that it is on the server; 0.0 where unscored."""
    return float32(hit["_score"] or 0.0)


def page_of(answer: Mapping[str, Any], request: SearchRequest | KeywordRequest) -> Page:
    """The page of an answer whose hits are chunks."""
    hits = [
        hit_of(
            hit["_source"], hit["_source"][schema.ID], hit["_source"][schema.ORDINAL], score_of(hit)
        )
        for hit in hits_of(answer)
    ]
    count, exact = count_of(answer)
    return Page(tuple(hits), count, exact, count if len(hits) < request.top_k else None)


def sentence_hit(hit: Mapping[str, Any]) -> Hit:
    """The chunk of a sentence, the best of those that match there; with the texts of the matched
    ones where they came."""
    source: dict[str, Any] = hit["_source"]
    first = chunk_ordinal(int(source[schema.ORDINAL]))
    inner = hits_of(hit["inner_hits"][MATCHED])
    numbers = tuple(int(each["sort"][0]) - first for each in inner)
    found = hit_of(source, source[schema.CHUNK_ID], first, score_of(hit), numbers)
    if "_source" not in inner[0]:
        return found
    texts = {
        number: each["_source"][schema.CONTENT] for number, each in zip(numbers, inner, strict=True)
    }
    content, ends = only_matched(texts, source[schema.RECORD][schema.SENTENCES])
    return found._replace(content=content, sentence_ends=ends)


def hit_of(
    source: Mapping[str, Any],
    id_: str,
    ordinal: int,
    score: float,
    matched: tuple[int, ...] = (),
) -> Hit:
    """A hit from the document of a chunk or a sentence, with such text as it came with."""
    return Hit(
        id_,
        source[schema.DOC_ID],
        source[schema.TITLE],
        source[schema.PART],
        source[schema.PARTS],
        ordinal,
        schema.metadata_of(source),
        score,
        source.get(schema.CONTENT),
        tuple(source[schema.RECORD].get(schema.SENTENCE_ENDS, ())),
        matched,
    )


def shard_statistics(index: Mapping[str, Any], shards: int) -> ShardStatistics:
    """What ``_stats`` says of a physical index."""
    held = index["primaries"]
    return ShardStatistics(
        documents=int(held["docs"]["count"]),
        deleted=int(held["docs"]["deleted"]),
        segments=int(held["segments"]["count"]),
        shards=shards,
        bytes=int(held["store"]["size_in_bytes"]),
    )

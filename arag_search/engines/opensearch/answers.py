"""The requests for pages of hits, and the reading of their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from arag_search.corpus import chunk_ordinal
from arag_search.engines.base import MAX_TOTAL, Count, KeywordRequest, Page, SearchRequest, SortBy
from arag_search.engines.hits import Hit
from arag_search.engines.opensearch import schema
from arag_search.engines.opensearch.compile import Dsl
from arag_search.engines.opensearch.faults import BLOCKS, OF_DISKS
from arag_search.plan.clauses import float32
from arag_search.query.fields import DOC_ID

_Read = TypeVar("_Read")

BY_SCORE: list[Dsl] = [{"_score": "desc"}, {schema.ORDINAL: "asc"}]
BY_ORDINAL: list[Dsl] = [{schema.ORDINAL: "asc"}]
BY_ORDINAL_DOWN: list[Dsl] = [{schema.ORDINAL: "desc"}]
MATCHED = "matched"


@dataclass(frozen=True, slots=True)
class ShardStatistics:
    """The size of one of the two physical indexes, without its replicas."""

    documents: int
    deleted: int
    segments: int
    shards: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ClusterStatistics:
    """The statistics of both indexes on the server; ``sentences`` is None if left out."""

    chunks: ShardStatistics
    sentences: ShardStatistics | None


def page_body(query: Dsl, scored: bool, request: SearchRequest | KeywordRequest) -> Dsl:
    """Return the body of a search for a page."""
    sort = request.sort if isinstance(request, SearchRequest) else None
    return {
        "query": query,
        "from": request.offset,
        "size": request.top_k,
        "sort": order(scored, sort),
        **({"track_scores": True} if sort is not None and scored else {}),
        # Enough to know the number of passages if the page reaches past the last one.
        "track_total_hits": max(MAX_TOTAL, request.offset + request.top_k),
        "_source": source_filter(request.with_text),
    }


def list_body(query: Dsl, size: int, *, by: list[Dsl] = BY_ORDINAL, source: Any = False) -> Dsl:
    """Return the body of a search for so many documents, which are not counted."""
    return {"query": query, "size": size, "sort": by, "track_total_hits": False, "_source": source}


def order(scored: bool, sort: SortBy | None) -> list[Dsl]:
    """Return the order of matches: by a field, by score, then by ordinal."""
    rest = BY_SCORE if scored else BY_ORDINAL
    if sort is None:
        return rest
    ends = {"order": "desc", "mode": "max"} if sort.descending else {"order": "asc", "mode": "min"}
    field = schema.opensearch_field(sort.field)
    return [{field: {**ends, "missing": "_last"}}, *rest]


def source_filter(with_text: bool) -> Any:
    """Return which parts of the documents a search returns."""
    return True if with_text else {"excludes": list(schema.WITHOUT_TEXT)}


def hits_of(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the hits of an answer."""
    return answer["hits"]["hits"]


def hits_and_last(
    answer: Mapping[str, Any], reading: Callable[[dict[str, Any]], _Read]
) -> tuple[list[_Read], Any]:
    """Return what ``reading`` makes of each hit of an answer, and the sort values of the last hit:
    the next page comes after them."""
    hits = hits_of(answer)
    return list(map(reading, hits)), hits[-1]["sort"] if hits else None


def doc_id_of(hit: Mapping[str, Any]) -> str:
    """Return the document of a hit without its source."""
    return str(hit["fields"][DOC_ID][0])


def documents_counted(answer: Mapping[str, Any]) -> int:
    """Return the number in an answer of ``_count``."""
    return int(answer["count"])


def first_id(answer: Mapping[str, Any]) -> str | None:
    """Return the id of the first hit of an answer, if there is one."""
    return next((hit["_source"][schema.ID] for hit in hits_of(answer)), None)


def sorted_by(hit: Mapping[str, Any]) -> int:
    """Return the ordinal that a hit was sorted by last."""
    return stored_ordinal(hit["sort"][-1])


def count_of(answer: Mapping[str, Any]) -> Count:
    """Return the number of all matches."""
    total = answer["hits"]["total"]
    number = int(total["value"])
    is_exact = total["relation"] == "eq"
    return Count(number if is_exact else max(number, MAX_TOTAL + 1), is_exact)


def score_of(hit: Mapping[str, Any]) -> float:
    """Return the score as a 32-bit float, as it is on the server; 0.0 if unscored."""
    return float32(hit["_score"] or 0.0)


def stored_ordinal(value: Any) -> int:
    """Return an ordinal that the server has. Raises OverflowError for a number that is none."""
    ordinal = int(value)
    if ordinal.bit_length() > 63:
        raise OverflowError(f"the ordinal {value}")
    return ordinal


def page_of(answer: Mapping[str, Any], request: SearchRequest | KeywordRequest) -> Page:
    """Return the page of an answer whose hits are chunks."""
    hits = [
        hit_of(
            hit["_source"], hit["_source"][schema.ID], hit["_source"][schema.ORDINAL], score_of(hit)
        )
        for hit in hits_of(answer)
    ]
    total = count_of(answer)
    return Page(tuple(hits), total, total.number if len(hits) < request.top_k else None)


def sentence_hit(hit: Mapping[str, Any]) -> Hit:
    """Return the chunk of the best sentence that matches in it, with the texts of the matching
    sentences if the answer has them."""
    source: dict[str, Any] = hit["_source"]
    first = chunk_ordinal(stored_ordinal(source[schema.ORDINAL]))
    inner = hits_of(hit["inner_hits"][MATCHED])
    numbers = tuple(int(sentence["sort"][0]) - first for sentence in inner)
    chunk_hit = hit_of(source, str(source[schema.CHUNK_ID]), first, score_of(hit), numbers)
    if "_source" not in inner[0]:
        return chunk_hit
    texts = {
        number: sentence["_source"][schema.CONTENT]
        for number, sentence in zip(numbers, inner, strict=True)
    }
    return chunk_hit.with_sentences(texts, source[schema.RECORD][schema.SENTENCES])


def hit_of(
    source: Mapping[str, Any],
    id_: str,
    ordinal: int,
    score: float,
    matched: tuple[int, ...] = (),
) -> Hit:
    """Return the hit for the document of a chunk or a sentence, with the text it contains."""
    return Hit(
        id_,
        source[schema.DOC_ID],
        source[schema.TITLE],
        source[schema.PART],
        source[schema.PARTS],
        ordinal,
        schema.metadata_of(source),
        tuple(source[schema.RECORD].get(schema.SENTENCE_ENDS, ())),
        source.get(schema.CONTENT, ""),
        schema.passage_outline(source),
        score,
        matched,
    )


def shard_statistics(index: Mapping[str, Any], shards: int) -> ShardStatistics:
    """Return the statistics of a physical index in an answer of ``_stats``."""
    primaries = index["primaries"]
    return ShardStatistics(
        documents=int(primaries["docs"]["count"]),
        deleted=int(primaries["docs"]["deleted"]),
        segments=int(primaries["segments"]["count"]),
        shards=shards,
        bytes=int(primaries["store"]["size_in_bytes"]),
    )


# The first positions of a search of which at most some belong to the same document


MAX_WINDOW = 10_000
"""``max_result_window`` of the indexes: the greatest ``from + size``."""


class HitPosition(NamedTuple):
    """A chunk, or the chunk of a sentence, in the order of a search. ``chunk_id`` names the chunk
    of a sentence, else it is empty."""

    doc_id: str
    chunk_id: str
    ordinal: int
    score: float


def position_of(hit: Mapping[str, Any]) -> HitPosition:
    """Return the position of a hit without its document."""
    fields = hit["fields"]
    chunk_id = str(fields.get(schema.CHUNK_ID, [""])[0])
    ordinal = chunk_ordinal(stored_ordinal(hit["sort"][-1]))
    return HitPosition(doc_id_of(hit), chunk_id, ordinal, score_of(hit))


class Scan:
    """The positions of a search that were kept, in order, and the number of all its matches.

    ``full`` are the documents that have ``most`` positions.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.positions: list[HitPosition] = []
        self.full: set[str] = set()
        self.total = Count(0)
        self._kept: dict[str, int] = {}

    def add(self, position: HitPosition) -> None:
        """Keep the position unless its document has enough."""
        kept = self._kept.get(position.doc_id, 0)
        if kept == self.most:
            return
        self.positions.append(position)
        self._kept[position.doc_id] = kept + 1
        if kept + 1 == self.most:
            self.full.add(position.doc_id)

    def unfinished(self) -> int:
        """Return the number of kept positions of documents that may have further ones."""
        return len(self.positions) - self.most * len(self.full)


def _health(reply: Any) -> str:
    return f"{reply['status']}; copies of shards on no node: {reply['unassigned_shards']}"


def _blocks(reply: Any) -> str:
    of: dict[str, Any] = reply["blocks"]
    places: list[dict[str, Any]] = [of.get("global", {}), *of.get("indices", {}).values()]
    names = sorted({BLOCKS.get(id, id) for place in places for id in place})
    lifting = {name: "free disk space" if name in OF_DISKS else "set it to null" for name in names}
    return "; ".join(f"{name} ({do})" for name, do in lifting.items())


def _disks(reply: Any) -> str:
    return ", ".join(f"{at['disk.avail']} free on {at['node']}" for at in reply if at["disk.avail"])


CONDITIONS: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "health": ("/_cluster/health/{}", _health),
    "blocks": ("/_cluster/state/blocks/{}", _blocks),
    "disks": ("/_cat/allocation?format=json", _disks),
}
"""By topic: the path of the question, and how its answer is read."""

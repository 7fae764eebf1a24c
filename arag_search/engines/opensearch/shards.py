"""The shards of an index on a server: shards without a primary copy, and terms of which every shard
holds some. Without these terms, BM25 would lack the statistics of some shards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from arag_search.engines.opensearch.answers import hits_of
from arag_search.engines.opensearch.client import Client
from arag_search.engines.opensearch.schema import Terms
from arag_search.errors import EngineError
from arag_search.plan.matching import Words
from arag_search.query.fields import TEXT_FIELDS, index_field
from arag_search.query.forms import HOLE

_ASK_S = 5.0


def lost_shards(client: Client, indexes: Sequence[str], shards: int) -> str:
    """Describe the shards of ``indexes`` that have no primary; all of them if no node answers.

    Empty if none is lost. Never raises EngineError.
    """
    names = ",".join(indexes)
    try:
        reply = client.call(
            "GET",
            f"/_cluster/health/{names}",
            params={"level": "shards", "timeout": "1s"},
            budget_s=0,
            attempt_timeout_s=_ASK_S,
        )
        lost = client.read(lambda reply: [_without_primary(reply, name) for name in indexes], reply)
    except EngineError:
        every = "shard 0" if shards == 1 else f"shards 0 to {shards - 1}"
        return f"{', '.join(indexes)}: no node answers for {every}"
    named = zip(indexes, lost, strict=True)
    texts = [(index, ", ".join(map(str, numbers))) for index, numbers in named if numbers]
    return "; ".join(f"{index}: no node has shard {text}" for index, text in texts)


def _without_primary(reply: Any, index: str) -> list[int]:
    """Return the shards of an index that have no primary copy, by the health of the cluster."""
    by_number = reply.get("indices", {}).get(index, {}).get("shards", {})
    return sorted(int(at) for at, shard in by_number.items() if not shard.get("primary_active"))


# Terms that every shard holds
#
# A shard that holds none of a query's terms returns no statistics of the field's lengths, and
# scores then differ from those of a single shard. All shards return them if the query also
# contains a term of each, with a negligible weight.


_SAMPLES = (50, 10_000)
_CANDIDATES = 30


def find_shard_terms(client: Client, index: str, shards: int, language: str) -> Terms:
    """Find, for each scored field, a small set of terms of which every shard holds at least one.

    Fields that no document has are left out. The index must have been refreshed; ``language`` is
    the language of its normal forms.
    """
    by_field = {
        index_field(name, of_forms): _terms_of(client, index, shards, name, of_forms)
        for of_forms in dict.fromkeys(("", language))
        for name in TEXT_FIELDS
    }
    return {name: terms for name, terms in by_field.items() if terms}


def _terms_of(client: Client, index: str, shards: int, name: str, language: str) -> tuple[str, ...]:
    chosen: list[str] = []
    missing = set(range(shards))
    for shard in range(shards):
        if shard not in missing:
            continue
        candidates = _candidates(client, index, shard, name, language)
        if not candidates:
            continue  # the field is empty in this shard, so there are no statistics to return
        field = index_field(name, language)
        missing_by_term = _holders(client, index, shards, field, candidates)
        best = max(candidates, key=lambda term: len(missing_by_term[term] & missing))
        chosen.append(best)
        missing -= missing_by_term[best]
    return tuple(chosen)


def _candidates(client: Client, index: str, shard: int, name: str, language: str) -> list[str]:
    """Return words of a sample of the shard's documents, by descending document count."""
    counts: Counter[str] = Counter()
    for sample in _SAMPLES:  # the first few may all be blank
        body = {"size": sample, "query": {"exists": {"field": name}}, "_source": [name]}
        reply = client.call("POST", f"/{index}/_search", body, _on(shard), attempt_timeout_s=60)
        texts = client.read(
            lambda reply: [str(hit["_source"][name]) for hit in hits_of(reply)], reply
        )
        for text in texts:
            counts.update(set(Words(text).terms(language)) - {HOLE})
        if counts or len(texts) < sample:
            break
    return [term for term, _ in counts.most_common(_CANDIDATES)]


def _holders(
    client: Client, index: str, shards: int, name: str, candidates: Sequence[str]
) -> dict[str, set[int]]:
    lines: list[dict[str, Any]] = []
    for term in candidates:
        for shard in range(shards):
            body = {"size": 0, "track_total_hits": 1, "query": {"term": {name: term}}}
            lines += [{"index": index, **_on(shard)}, body]
    reply = client.call("POST", "/_msearch", lines, attempt_timeout_s=60)
    totals = client.read(
        lambda reply: [response["hits"]["total"]["value"] for response in reply["responses"]], reply
    )
    return {
        term: {shard for shard in range(shards) if totals[at * shards + shard]}
        for at, term in enumerate(candidates)
    }


def _on(shard: int) -> dict[str, str]:
    return {"preference": f"_shards:{shard}"}

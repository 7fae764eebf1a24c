"""The required shapes of answers, by request. Answers are checked here and nowhere else.

Other modules may rely on the fields that they read: they exist, have the right type, and cover all
shards. Any other answer, of the server or of a proxy that changes answers, is an error that names
the problem, so that no incomplete answer passes for a complete one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from arag_search.corpus import MAX_SENTENCES
from arag_search.engines.opensearch import schema
from arag_search.engines.opensearch.faults import Fault, fault_of_answer, fault_of_reply
from arag_search.errors import EngineError
from arag_search.query.fields import CONTENT, DOC_ID, TITLE

_KINDS: Mapping[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}
_DOCUMENT: Mapping[str, type] = {
    schema.ID: str,
    schema.CHUNK_ID: str,
    DOC_ID: str,
    TITLE: str,
    CONTENT: str,
    schema.PART: int,
    schema.PARTS: int,
    schema.ORDINAL: int,
    schema.RECORD: dict,
}
"""The fields that are read from documents, and their types."""
_ALWAYS = (DOC_ID, TITLE, schema.PART, schema.PARTS, schema.ORDINAL, schema.RECORD)
_MAX_SHOWN_CHARACTERS = 80


class Exchange(NamedTuple):
    """A request and its answer."""

    method: str
    path: str
    params: Mapping[str, str]
    body: Any
    """What was sent: a mapping, a sequence of mappings, bytes, or None."""

    answer: Any
    server: str

    @property
    def endpoint(self) -> str:
        """The part of the path that begins with an underscore, such as ``_search``; empty if the
        path names indexes alone."""
        if self.path == "/":
            return self.path
        return next((part for part in self.path.split("/") if part.startswith("_")), "")

    @property
    def indexes(self) -> list[str]:
        """The names of indexes in the path, without patterns."""
        first = self.path.split("/")[1]
        return [name for name in first.split(",") if name and "*" not in name]


class _WrongShapeError(Exception):
    """A value in an answer is missing or has the wrong type."""

    def __init__(self, at: str, value: object, allowed: str) -> None:
        super().__init__(at)
        self.at = at
        self.value = value
        self.allowed = allowed


def fault_of_shape(exchange: Exchange) -> Fault | None:
    """Return the fault of an answer with status 200; None if it is complete and well formed.
    Answers of endpoints that the engine does not use are not checked."""
    check = _CHECKS.get((exchange.method, exchange.endpoint))
    try:
        return None if check is None else check(exchange)
    except _WrongShapeError as wrong:
        what = f"{wrong.at} is {_shown(wrong.value)}"
        request = f"{exchange.method} {exchange.endpoint or 'of an index'}"
        return Fault(
            False,
            EngineError(
                f"The server does not answer {request} as OpenSearch does: {what}.",
                where=exchange.server,
                allowed=wrong.allowed,
                do="See what answers at this address: a proxy may change or cut answers.",
            ),
        )


# Values


_MISSING = object()


def _shown(value: object) -> str:
    if value is _MISSING:
        return "missing"
    if isinstance(value, str | int | float):
        text = repr(value)
        return text if len(text) <= _MAX_SHOWN_CHARACTERS else f"{text[:_MAX_SHOWN_CHARACTERS]}..."
    return _KINDS.get(type(value), type(value).__name__)


def _typed(value: Any, kind: type, at: str) -> Any:
    """Return the value, which must be of this type; booleans do not count as numbers."""
    if type(value) is not kind and not (kind is float and type(value) is int):
        raise _WrongShapeError(at, value, _KINDS[kind])
    return value


def _get(holder: Mapping[str, Any], name: str, kind: type, at: str) -> Any:
    value = holder.get(name, _MISSING)
    return value if type(value) is kind else _typed(value, kind, f"{at}{name}")


def _optional(holder: Mapping[str, Any], name: str, kind: type, at: str) -> Any:
    return _get(holder, name, kind, at) if name in holder else kind()


def _object(value: Any, at: str = "the answer") -> dict[str, Any]:
    return cast("dict[str, Any]", _typed(value, dict, at))


def _count(holder: Mapping[str, Any], name: str, at: str) -> int:
    value = int(_get(holder, name, int, at))
    if value < 0:
        raise _WrongShapeError(f"{at}{name}", value, "0 or more")
    return value


def _digits(holder: Mapping[str, Any], name: str, at: str) -> None:
    value = holder.get(name, _MISSING)
    text = str(value) if type(value) in (str, int) else ""
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise _WrongShapeError(f"{at}{name}", value, "a whole number, also in quotes")


def _length(values: Sequence[Any], due: int, at: str) -> None:
    if len(values) != due:
        raise _WrongShapeError(f"the number of {at}", len(values), f"{due:,}, as requested")


# Shards


def _whole(answer: Mapping[str, Any], server: str, at: str = "", *, all_copies: bool) -> Any:
    """Return the fault of an answer that lacks shards. ``all_copies``: the request also goes to
    replicas, some of which may be unassigned."""
    shards = _get(answer, "_shards", dict, at)
    total, failed = (
        _count(shards, "total", f"{at}_shards."),
        _count(shards, "failed", f"{at}_shards."),
    )
    if failed:
        return fault_of_answer(answer, server)
    if not all_copies:
        _count_of_all(shards, total, f"{at}_shards.")
    if "_clusters" in answer:
        clusters = _object(answer["_clusters"], f"{at}_clusters")
        _count_of_all(clusters, _count(clusters, "total", f"{at}_clusters."), f"{at}_clusters.")
        if _count(clusters, "skipped", f"{at}_clusters."):
            raise _WrongShapeError(f"{at}_clusters.skipped", clusters["skipped"], "0")
    return None


def _count_of_all(holder: Mapping[str, Any], total: int, at: str) -> None:
    """Check that all shards were successful; those without a match count as successful."""
    successful = _count(holder, "successful", at)
    if successful != total:
        raise _WrongShapeError(f"{at}successful", successful, f"{total}, as {at}total")


def _of_shards(exchange: Exchange) -> Fault | None:
    return _whole(_object(exchange.answer), exchange.server, all_copies=True)


def _counted(exchange: Exchange) -> Fault | None:
    answer = _object(exchange.answer)
    _count(answer, "count", "")
    return _whole(answer, exchange.server, all_copies=False)


# Searches


def _search(exchange: Exchange) -> Fault | None:
    body = cast("Mapping[str, Any]", exchange.body or {})
    return _searched(exchange.answer, body, exchange.server, "")


def _searches(exchange: Exchange) -> Fault | None:
    lines = cast("Sequence[Mapping[str, Any]]", exchange.body)
    answers = _get(_object(exchange.answer), "responses", list, "")
    _length(answers, len(lines) // 2, "responses")
    faults: list[Fault] = []
    for number, (answer, body) in enumerate(zip(answers, lines[1::2], strict=True)):
        at = f"responses[{number}]."
        if "error" in _object(answer, at[:-1]):
            status = answer.get("status", 500)
            faults.append(
                fault_of_reply(_typed(status, int, f"{at}status"), answer, exchange.server)
            )
        elif fault := _searched(answer, body, exchange.server, at):
            faults.append(fault)
    faults.sort(key=lambda fault: fault.retryable)  # a fault that is not retryable decides
    return faults[0] if faults else None


def _searched(answer: Any, body: Mapping[str, Any], server: str, at: str) -> Fault | None:
    """Return the fault of the answer to a search."""
    _object(answer, at[:-1] or "the answer")
    if fault := _whole(answer, server, at, all_copies=False) or fault_of_answer(answer, server):
        return fault
    hits = _get(answer, "hits", dict, at)
    if body.get("track_total_hits") is not False:
        total = _get(hits, "total", dict, f"{at}hits.")
        _count(total, "value", f"{at}hits.total.")
        if total.get("relation") not in ("eq", "gte"):
            raise _WrongShapeError(f"{at}hits.total.relation", total.get("relation"), "eq or gte")
    _hits(hits, body, f"{at}hits.")
    if "aggs" in body:
        _aggregations(_get(answer, "aggregations", dict, at), body["aggs"], f"{at}aggregations.")
    return None


def _aggregations(holder: Mapping[str, Any], requested: Mapping[str, Any], at: str) -> None:
    for name, aggregation in requested.items():
        values = _get(holder, name, dict, at)
        here = f"{at}{name}."
        if "filter" in aggregation:
            _count(values, "doc_count", here)
            with_value = values["doc_count"] > 0
        else:
            with_value = holder.get("doc_count") != 0
        if "terms" in aggregation:
            _count(values, "sum_other_doc_count", here)
            for bucket in _buckets(values, aggregation["terms"]["size"], here):
                _get(bucket, "key", str, f"{here}buckets[].")
                _get(bucket, "doc_count_error_upper_bound", int, f"{here}buckets[].")
            _get(values, "doc_count_error_upper_bound", int, here)
        elif "composite" in aggregation:
            buckets = _buckets(values, aggregation["composite"]["size"], here)
            for bucket in buckets:
                _get(_get(bucket, "key", dict, f"{here}buckets[]."), "value", str, f"{here}key.")
            if len(buckets) == aggregation["composite"]["size"]:
                _get(values, "after_key", dict, here)
        elif "filter" not in aggregation and with_value:
            _get(values, "value", float, here)
        if "aggs" in aggregation:
            _aggregations(values, aggregation["aggs"], here)


def _buckets(values: Mapping[str, Any], size: int, at: str) -> list[Mapping[str, Any]]:
    """Return the buckets of an aggregation, of which there are at most ``size``."""
    buckets = cast("list[Any]", _get(values, "buckets", list, at))
    if len(buckets) > size:
        raise _WrongShapeError(f"the number of {at}buckets", len(buckets), f"at most {size:,}")
    for bucket in buckets:
        _count(_object(bucket, f"{at}buckets[]"), "doc_count", f"{at}buckets[].")
    return buckets


def _hits(holder: Mapping[str, Any], body: Mapping[str, Any], at: str) -> None:
    hits = cast("list[Any]", _get(holder, "hits", list, at))
    size = body.get("size", 10)
    if len(hits) > size:
        raise _WrongShapeError(f"the number of {at}hits", len(hits), f"at most {size:,}")
    sort = [key if isinstance(key, str) else next(iter(key)) for key in body.get("sort", ())]
    required = _required_fields(body)
    for number, hit in enumerate(hits):
        try:
            _hit(hit, body, sort, required, "hit.")
        except _WrongShapeError:  # check again to name the place, which is slower
            _hit(hit, body, sort, required, f"{at}hits[{number}].")


def _hit(
    hit: Any,
    body: Mapping[str, Any],
    sort: Sequence[str],
    required: Sequence[str] | None,
    at: str,
) -> None:
    _object(hit, at[:-1])
    if sort:
        if hit.get("_score", _MISSING) is not None:
            _get(hit, "_score", float, at)
        values = _get(hit, "sort", list, at)
        _length(values, len(sort), f"values in {at}sort")
        for name, value in zip(sort, values, strict=True):
            if name == schema.ORDINAL:
                _typed(value, int, f"{at}sort")
    if required is not None:
        _document(_get(hit, "_source", dict, at), required, f"{at}_source.")
    if "docvalue_fields" in body:
        _digits(hit, "_id", at)
        fields = _get(hit, "fields", dict, at)
        for name in body["docvalue_fields"]:
            values = _get(fields, name, list, f"{at}fields.")
            if not values:
                raise _WrongShapeError(f"{at}fields.{name}", [], "a value")
            if name in _DOCUMENT:
                _typed(values[0], _DOCUMENT[name], f"{at}fields.{name}")
    inner = body.get("collapse", {}).get("inner_hits")
    if inner is not None:
        inner_hits = _get(
            _get(hit, "inner_hits", dict, at), inner["name"], dict, f"{at}inner_hits."
        )
        held = _get(inner_hits, "hits", dict, f"{at}inner_hits.")
        _hits(held, inner, f"{at}inner_hits.hits.")
        if not held["hits"]:
            raise _WrongShapeError(f"{at}inner_hits.hits.hits", [], "one hit or more")


def _required_fields(body: Mapping[str, Any]) -> list[str] | None:
    """Return the fields of the documents of a search; None if it requests no documents."""
    wanted = body.get("_source", False)
    if wanted is False:
        return None
    if isinstance(wanted, list):
        return cast("list[str]", wanted)
    if "collapse" in body:
        return [*_ALWAYS, schema.CHUNK_ID]
    excluded = body["_source"] is not True
    return [*_ALWAYS, schema.ID, *([] if excluded else [CONTENT])]


def _document(source: Mapping[str, Any], required: Sequence[str], at: str) -> None:
    for name in required:
        if name not in source:
            raise _WrongShapeError(f"{at}{name}", _MISSING, _KINDS[_DOCUMENT.get(name, str)])
    for name, value in source.items():
        kind = _DOCUMENT.get(name)
        if kind is not None and type(value) is not kind:
            _typed(value, kind, f"{at}{name}")
    record = source.get(schema.RECORD)
    if record is None:
        return
    at = f"{at}{schema.RECORD}."
    ends = _optional(record, schema.SENTENCE_ENDS, list, at)
    if set(map(type, ends)) - {int}:
        for end in ends:
            _typed(end, int, f"{at}{schema.SENTENCE_ENDS}")
    if schema.CHUNK_ID in required:  # a sentence has the number of sentences in its chunk
        number = _count(record, schema.SENTENCES, at)
        if number > MAX_SENTENCES:
            raise _WrongShapeError(f"{at}{schema.SENTENCES}", number, f"0 to {MAX_SENTENCES:,}")
    _optional(record, schema.METADATA, dict, at)


# Documents and indexes


def _bulk(exchange: Exchange) -> Fault | None:
    """Check that each action has its outcome. A deletion is one line, anything else two."""
    if isinstance(exchange.body, bytes):
        lines, is_deletion = exchange.body.count(b"\n"), exchange.body.startswith(b'{"delete"')
    else:
        body = cast("Sequence[Mapping[str, Any]]", exchange.body)
        lines, is_deletion = len(body), "delete" in body[0]
    items = _get(_object(exchange.answer), "items", list, "")
    _length(items, lines if is_deletion else lines // 2, "items")
    for number, item in enumerate(items):
        at = f"items[{number}]"
        outcomes = list(_object(item, at).items())
        _length(outcomes, 1, at)
        name, outcome = outcomes[0]
        if (name == "delete") is not is_deletion:
            raise _WrongShapeError(at, name, "the outcome of the action that was sent")
        status = _get(_object(outcome, f"{at}.{name}"), "status", int, f"{at}.{name}.")
        if status >= 300 and (status != 404 or not is_deletion):
            error = _get(outcome, "error", dict, f"{at}.{name}.")
            _get(error, "type", str, f"{at}.{name}.error.")
    return None


def _written(exchange: Exchange) -> Fault | None:
    answer = _object(exchange.answer)
    for name in ("_seq_no", "_primary_term"):
        _count(answer, name, "")
    return None


def _lock(exchange: Exchange) -> Fault | None:
    _written(exchange)
    source = _get(exchange.answer, "_source", dict, "")
    kinds = {"token": str, "machine": str, "process": int, "started": str, "seen": float}
    for name, kind in kinds.items():
        _get(source, name, kind, "_source.")
    return None


def _objects_by_name(exchange: Exchange) -> dict[str, dict[str, Any]]:
    answer = _object(exchange.answer)
    for name, value in answer.items():
        _object(value, name)
    return answer


def _indexes(exchange: Exchange) -> Fault | None:
    is_filtered = "filter_path" in exchange.params
    for name, index in _objects_by_name(exchange).items():
        for part in ("aliases", "mappings"):
            if part in index or not is_filtered:
                _get(index, part, dict, f"{name}.")
        settings = _get(
            _get(index, "settings", dict, f"{name}."), "index", dict, f"{name}.settings."
        )
        number = "creation_date" if is_filtered else "number_of_shards"
        _digits(settings, number, f"{name}.settings.index.")
        for alias, of in _optional(index, "aliases", dict, f"{name}.").items():
            _object(of, f"{name}.aliases.{alias}")
    return None


def _mappings(exchange: Exchange) -> Fault | None:
    for name in _objects_by_name(exchange):
        _get(exchange.answer[name], "mappings", dict, f"{name}.")
    for name in exchange.indexes:
        _get(exchange.answer, name, dict, "")
    return None


def _aliases(exchange: Exchange) -> Fault | None:
    for name in _objects_by_name(exchange):
        _get(exchange.answer[name], "aliases", dict, f"{name}.")
    return None


def _acknowledged(exchange: Exchange) -> Fault | None:
    _get(_object(exchange.answer), "acknowledged", bool, "")
    return None


def _statistics(exchange: Exchange) -> Fault | None:
    indices = _get(_object(exchange.answer), "indices", dict, "")
    metrics = exchange.path.rpartition("/")[2].split(",")
    counts = {"docs": ("count", "deleted"), "segments": ("count",), "store": ("size_in_bytes",)}
    for name in indices if not exchange.indexes else exchange.indexes:
        at = f"indices.{name}."
        primaries = _get(_get(indices, name, dict, "indices."), "primaries", dict, at)
        for metric in metrics:
            held = _get(primaries, metric, dict, f"{at}primaries.")
            for count in counts.get(metric, ()):
                _count(held, count, f"{at}primaries.{metric}.")
    return _whole(exchange.answer, exchange.server, all_copies=True)


def _health(exchange: Exchange) -> Fault | None:
    for name, index in _optional(_object(exchange.answer), "indices", dict, "").items():
        at = f"indices.{name}"
        for number, shard in _optional(_object(index, at), "shards", dict, f"{at}.").items():
            _digits({"number": number}, "number", f"{at}.shards ")
            _object(shard, f"{at}.shards.{number}")
    return None


def _search_shards(exchange: Exchange) -> Fault | None:
    for copies in _get(_object(exchange.answer), "shards", list, ""):
        for copy in _typed(copies, list, "shards[]"):
            held = _object(copy, "shards[][]")
            _get(held, "state", str, "shards[][].")
            if held["state"] == "STARTED":
                _get(held, "node", str, "shards[][].")
                _get(held, "index", str, "shards[][].")
                _count(held, "shard", "shards[][].")
    return None


_CHECKS: Mapping[tuple[str, str], Callable[[Exchange], Fault | None]] = {
    ("POST", "_search"): _search,
    ("POST", "_msearch"): _searches,
    ("GET", "_count"): _counted,
    ("POST", "_count"): _counted,
    ("POST", "_bulk"): _bulk,
    ("GET", "_doc"): _lock,
    ("PUT", "_doc"): _written,
    ("GET", ""): _indexes,
    ("PUT", ""): _acknowledged,
    ("DELETE", ""): _acknowledged,
    ("GET", "_mapping"): _mappings,
    ("PUT", "_mapping"): _acknowledged,
    ("PUT", "_settings"): _acknowledged,
    ("GET", "_alias"): _aliases,
    ("POST", "_aliases"): _acknowledged,
    ("GET", "_stats"): _statistics,
    ("POST", "_refresh"): _of_shards,
    ("POST", "_flush"): _of_shards,
    ("POST", "_forcemerge"): _of_shards,
    ("GET", "_cluster"): _health,
    ("GET", "_search_shards"): _search_shards,
}

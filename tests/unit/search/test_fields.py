"""The fields of an index, and the values nearest to one that a field lacks."""

from __future__ import annotations

from typing import Any

import pytest

from arag_search.corpus import MetadataValue
from arag_search.engines.base import FieldsPage, FieldsRequest, ValueCount
from arag_search.errors import ArgumentError
from arag_search.query.field_types import MetadataType
from arag_search.query.filters import parse_filter
from arag_search.query.problems import QueryError
from arag_search.search.advice.values import nearest_values
from arag_search.search.counting.fields import FieldSummary
from arag_search.search.index import Index
from tests.support.oracle.engine import MemoryEngine
from tests.support.passages import VIVALDI, chunk, index_of
from tests.support.plans import scoped

TYPES: dict[str, MetadataType] = {"kind": "keyword", "year": "number", "published": "date"}


def typed_index(*rows: dict[str, MetadataValue], scope: str | None = None) -> Index:
    chunks = [chunk(n, f"d{n}", "", "An opera.", **row) for n, row in enumerate(rows)]
    engine = MemoryEngine(chunks, metadata=TYPES)
    schema = engine.manifest.query_schema
    return Index(engine, "memory", None if scope is None else scoped(parse_filter(scope, schema)))


PEOPLE = typed_index(*[{"kind": "person", "year": 1678.0, "published": "2001-05"}] * 3, {})


def text_of(index: Index, query: str, **options: Any) -> str:
    return str(index.logical_search(query, **options).feedback)


def test_every_field_has_its_passages_and_metadata_has_its_values(index: Index) -> None:
    result = index.fields()
    assert result.passages == 5
    assert result.fields == (
        FieldSummary("title", "text", 4),
        FieldSummary("content", "text", 5),
        FieldSummary("doc_id", "keyword", 5),
        FieldSummary("year", "number", 4, least="1678", greatest="1735"),
        FieldSummary("lang", "keyword", 2, 2, (ValueCount("en", 2), ValueCount("it", 2))),
    )


def test_only_passages_that_match_a_query_are_counted(index: Index) -> None:
    by_hand = index.logical_search("griselda OR vivald*", top_k=10)
    result = index.fields("year", where="griselda OR vivald*")
    assert result.passages == by_hand.total
    assert result.fields[0].passages == sum("year" in hit.metadata for hit in by_hand.hits)
    assert index.fields("year", where="griselda AND nowhere").passages == 0
    with pytest.raises(QueryError):
        index.fields("year", where="griselda AND (")


def test_only_passages_in_scope_are_counted() -> None:
    result = index_of(*VIVALDI, scope="year:>=1700").fields("year", "lang", "doc_id")
    assert result.passages == 2
    assert result.fields == (
        FieldSummary("year", "number", 2, least="1721", greatest="1735"),
        FieldSummary("lang", "keyword", 0, 0),
        FieldSummary(
            "doc_id", "keyword", 2, 2, (ValueCount("griselda", 1), ValueCount("scarlatti", 1))
        ),
    )


def test_the_number_of_values_is_bounded_and_that_of_distinct_values_is_not(index: Index) -> None:
    (lang,) = index.fields("lang", values=1).fields
    assert (lang.distinct, lang.values) == (2, (ValueCount("en", 2),))


@pytest.mark.parametrize("arguments", [{"names": ["colour"]}, {"values": -1}, {"values": 1001}])
def test_an_unknown_field_and_a_wrong_number_are_rejected(
    index: Index, arguments: dict[str, Any]
) -> None:
    with pytest.raises(ArgumentError):
        index.fields(*arguments.get("names", ()), values=arguments.get("values", 10))


# Feedback


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("kind:persona", 'kind has no value "persona"; nearest: "person" (3 passages).'),
        ("kind:place", 'kind has no value "place"; most frequent: "person" (3 passages).'),
        ("year:19985", "year has no value 19985; only value: 1678."),
        ("published:2002", "published has no value 2002; only value: 2001-05-01."),
        ("doc_id:dd0", 'doc_id has no value "dd0"; nearest: "d0" (1 passage).'),
        ("doc_id:vivaldi", 'doc_id has no value "vivaldi".'),
        ("opera AND kind:Persons",
         'Alone: opera 4. kind has no value "Persons"; nearest: "person" (3 passages).'),
        ("cantata OR kind:Persons",
         "Alone: cantata occurs nowhere. "
         'kind has no value "Persons"; nearest: "person" (3 passages).'),
        ("cantata NOT kind:Person", "Alone: cantata occurs nowhere; kind:Person occurs nowhere."),
    ],
)  # fmt: skip
def test_a_clause_without_a_match_is_answered_with_the_values_that_there_are(
    query: str, text: str
) -> None:
    assert text_of(PEOPLE, query) == text


def test_ranges_are_answered_with_the_range_of_the_values() -> None:
    index = typed_index({"year": 1678.0}, {"year": (1700.5, 1977.0)})
    assert text_of(index, "year:>=2000") == "year has no value >=2000; values: 1678 to 1977."
    text = text_of(index, "year:[1 TO 5] AND opera")
    assert text.endswith(" year has no value in [1 TO 5]; values: 1678 to 1977.")


def test_a_very_large_number_is_written_with_an_exponent() -> None:
    (year,) = typed_index({"year": (-5.25, 1e300)}).fields("year").fields
    assert (year.least, year.greatest) == ("-5.25", "1e+300")
    assert typed_index({"year": 1e300}).logical_search(f"year:>={year.greatest}").total == 1


def test_values_outside_of_the_scope_are_not_named() -> None:
    rows: tuple[dict[str, MetadataValue], ...] = ({"kind": "person", "year": 1.0}, {"year": 2.0})
    index = typed_index(*rows, scope="year:2")
    assert text_of(index, "kind:PERSON") == "no passage has a value of kind."
    assert text_of(index, "year:1") == "year has no value 1; only value: 2."


def test_where_nothing_matches_no_note_says_how_passages_are_ranked() -> None:
    assert PEOPLE.logical_search("kind:persons").notes == ()
    assert len(PEOPLE.logical_search("kind:persons", feedback=False).notes) == 1
    assert len(PEOPLE.logical_search("kind:person").notes) == 1


class CountingEngine(MemoryEngine):
    """An engine that counts requests for values."""

    requests = 0

    def field_values(self, request: FieldsRequest) -> FieldsPage:
        self.requests += 1
        assert request.quick
        return super().field_values(request)


def test_values_are_requested_once_and_only_where_nothing_matches() -> None:
    engine = CountingEngine([chunk(0, "a", "", "An opera.", kind="person")], metadata=TYPES)
    index = Index(engine, "memory")
    index.logical_search("kind:person")
    index.logical_search("operas")
    index.logical_search("kind:PERSON", feedback=False)
    assert engine.requests == 0
    feedback = index.logical_search(
        "kind:A AND kind:B AND kind:C AND year:1 AND published:2001 AND year:2"
    ).feedback
    assert engine.requests == 1
    assert feedback is not None
    assert [missing.clause for missing in feedback.missing] == [
        "kind:A",
        "kind:B",
        "kind:C",
        "year:1",
    ]


def test_case_comes_before_beginnings_and_these_before_few_letters() -> None:
    values = ("operas", "opra", "Opera", "opera seria", "song", "OPERA")
    counts = [ValueCount(value, 9 - place) for place, value in enumerate(values)]
    assert [count.value for count in nearest_values("opera", counts)] == [
        "Opera",
        "OPERA",
        "operas",
    ]
    assert [count.value for count in nearest_values("operra", counts)][:1] == ["Opera"]
    assert nearest_values("xyz", counts) == []


def test_a_rare_value_in_another_case_is_searched_too() -> None:
    rows: list[dict[str, MetadataValue]] = [{"kind": f"k{n % 1100}"} for n in range(2200)]
    index = typed_index(*rows, {"kind": "Carlo Goldoni"}, {"kind": "x/Scores/"})
    for wrong in ("carlo goldoni", "CARLO GOLDONI", "CARLO goldoni"):
        result = index.logical_search(f'kind:"{wrong}"')
        assert (result.understood, result.total) == ('kind:"Carlo Goldoni"', 1)
    assert index.logical_search("kind:x/Scores").total == 1


# Values in another case, or with other slashes at their ends


FOLDERS = typed_index(
    {"kind": "projects/heatpump/", "year": 1.0},
    {"kind": "Energy", "year": 1.0},
    {"kind": "energy", "year": 2.0},
    {"kind": "Water", "year": 2.0},
)


@pytest.mark.parametrize(
    ("query", "understood", "notes"),
    [
        ("opera AND kind:/Projects/heatpump", "(opera AND kind:projects/heatpump/)", 1),
        ("cantata OR kind:water", "(cantata OR kind:Water)", 1),
        (
            "opera AND (kind:WATER AND year:2 OR kind:projects/heatpump AND year:2)",
            "(opera AND ((kind:Water AND year:2) OR (kind:projects/heatpump/ AND year:2)))",
            2,
        ),
        ("kind:water AND cantata", "(kind:Water AND cantata)", 1),
        ("opera AND kind:ENERGY", "(opera AND kind:ENERGY)", 0),  # two values differ in case
        ("opera AND kind:projects", "(opera AND kind:projects)", 0),
        ("kind:/", "kind:/", 0),
        ("opera OR kind:water", "(opera OR kind:water)", 0),  # some passages match
    ],
)
def test_a_value_that_only_case_or_slashes_tell_from_the_only_one_is_searched_as_it(
    query: str, understood: str, notes: int
) -> None:
    result = FOLDERS.logical_search(query)
    on_values = [note for note in result.notes if note.endswith(" was searched.")]
    assert (result.understood, len(on_values)) == (understood, notes)
    if notes and "AND cantata" not in query:
        assert result.total == 1
        assert result.feedback is None


def test_a_note_names_the_value_that_was_asked_for_and_the_one_that_was_searched() -> None:
    assert 'kind has no value "WATER"; "Water" was searched.' in (
        FOLDERS.logical_search("kind:WATER").notes
    )


def test_pages_and_lists_go_on_with_the_value_that_was_searched() -> None:
    first = PEOPLE.logical_search("kind:Person", top_k=2)
    rest = PEOPLE.logical_search("kind:Person", top_k=2, offset=2)
    assert [hit.doc_id for hit in (*first.hits, *rest.hits)] == ["d0", "d1", "d2"]
    listed = PEOPLE.logical_search("kind:Person", show="titles", after=first.hits[0].id)
    assert [hit.doc_id for hit in listed.hits] == ["d1", "d2"]
    end = PEOPLE.logical_search("kind:person", show="titles", after=rest.hits[0].id)
    assert (end.hits, end.feedback) == ((), None)


def test_a_value_outside_of_the_scope_is_neither_searched_nor_named() -> None:
    rows: tuple[dict[str, MetadataValue], ...] = (
        {"kind": "Energy", "year": 1.0},
        {"kind": "Water", "year": 2.0},
    )
    within = typed_index(*rows, scope="year:2").logical_search("kind:energy")
    filtered = typed_index(*rows).logical_search("kind:energy", filter="year:2")
    for result in (within, filtered):
        assert (result.total, "Energy" in str(result)) == (0, False)
    both = typed_index(*rows, {"kind": "ENERGY", "year": 2.0}, scope="year:2")
    assert both.logical_search("kind:energy").understood == "kind:ENERGY"


@pytest.mark.parametrize("filter", ["kind:water", {"kind": "water"}])
def test_values_of_filters_stay_exact(filter: Any) -> None:
    assert FOLDERS.logical_search("opera", filter=filter).total == 0
    assert typed_index({"kind": "Water"}, scope="kind:water").logical_search("opera").total == 0
    assert FOLDERS.logical_search("kind:water", feedback=False).total == 0

"""The values of metadata fields that a manifest has: counted, bounded, and honest about it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arag_search.errors import IndexDamagedError
from arag_search.field_counts import (
    KEPT_VALUES,
    MAX_COUNTED_VALUES,
    MAX_VALUE_CHARACTERS,
    FieldCounts,
    counts_of_fields,
    include_counts,
    kept_counts,
    remove_counts,
)
from arag_search.manifest import Manifest
from arag_search.query.fields import MetadataType
from tests.support.examples import examples
from tests.support.passages import VIVALDI, chunk, index_of

METADATA: dict[str, MetadataType] = {"year": "number", "lang": "keyword", "day": "date"}
LANGUAGES = st.lists(st.sampled_from([f"l{number}" for number in range(30)]), max_size=3)


def test_the_fields_of_passages_have_their_values_and_ranges() -> None:
    counts = counts_of_fields(VIVALDI, {"year": "number", "lang": "keyword"})
    assert counts == {
        "year": FieldCounts(passages=4, least=1678.0, greatest=1735.0),
        "lang": FieldCounts(passages=2, values={"en": 2, "it": 2}),
    }


def test_a_value_longer_than_any_query_repeats_is_not_counted() -> None:
    long = chunk(0, "a", "A", "Text.", lang=("y" * (MAX_VALUE_CHARACTERS + 1), "de"))
    assert counts_of_fields([long], METADATA)["lang"].values == {"de": 1}


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.tuples(LANGUAGES, st.none() | st.integers(-5, 5)), max_size=40),
    st.lists(st.integers(0, 39), max_size=40, unique=True),
    st.integers(1, 9),
)
@example([(["l1"], 1), (["l1", "l2"], 2)], [1], 9)
def test_counts_that_call_themselves_exact_are_those_of_the_passages_left(
    documents: list[tuple[list[str], int | None]], deleted: list[int], step: int
) -> None:
    chunks = [
        chunk(n, f"d{n}", "", "x", **({"lang": tuple(langs)} if langs else {}), **_year(year))
        for n, (langs, year) in enumerate(documents)
    ]
    counts = counts_of_fields(chunks[:step], METADATA)
    for start in range(step, len(chunks), step):  # each update begins with what a manifest kept
        counts = kept_counts(counts)
        include_counts(counts, counts_of_fields(chunks[start : start + step], METADATA))
    counts = kept_counts(counts)
    for number in deleted:
        if number < len(chunks):
            remove_counts(counts, chunks[number], METADATA)
    left = [document for n, document in enumerate(documents) if n not in deleted]
    languages = Counter(lang for langs, _ in left for lang in set(langs))
    years = [float(year) for _, year in left if year is not None]
    lang, year = counts["lang"], counts["year"]
    assert lang.passages == sum(bool(langs) for langs, _ in left)
    assert year.passages == len(years)
    for value, passages in lang.values.items():
        assert passages <= languages[value]  # what was forgotten is never counted twice
    if lang.is_exact and lang.is_complete:
        assert lang.values == dict(languages)
    elif lang.is_exact:
        assert set(lang.values.items()) <= set(languages.items())
        assert min(lang.values.values()) >= max((languages - Counter(lang.values)).values())
    if year.is_exact:
        assert (year.least, year.greatest) == (min(years, default=None), max(years, default=None))
    else:
        assert year.least is not None
        assert year.greatest is not None
        assert year.least <= min(years) <= max(years) <= year.greatest
    assert len(lang.kept().values) <= KEPT_VALUES


def _year(year: int | None) -> dict[str, Any]:
    return {} if year is None else {"year": year}


def test_the_rarest_of_too_many_values_are_forgotten() -> None:
    counts = FieldCounts()
    for batch in range(5):
        every = {f"v{batch}-{number}": 1 for number in range(MAX_COUNTED_VALUES)}
        counts.include(FieldCounts(MAX_COUNTED_VALUES, {**every, "often": 7}))
    assert len(counts.values) <= 2 * MAX_COUNTED_VALUES
    assert (counts.is_exact, counts.is_complete) == (False, False)
    assert next(iter(counts.kept().values.items())) == ("often", 35)


def test_a_manifest_keeps_the_counts() -> None:
    before = index_of(*VIVALDI).manifest
    counts = kept_counts(counts_of_fields(VIVALDI, before.metadata))
    stored: dict[str, Any] = orjson.loads(before.to_json())
    with_counts = {
        **stored,
        "field_counts": {name: asdict(field_counts) for name, field_counts in counts.items()},
    }
    assert Manifest.from_json(orjson.dumps(with_counts).decode(), "x").field_counts == counts


def test_values_are_in_order_of_frequency_however_a_server_keeps_them() -> None:
    shuffled = asdict(FieldCounts(9, {"a": 1, "z": 5, "m": 5}))
    assert list(FieldCounts.from_json(shuffled).values) == ["m", "z", "a"]


@pytest.mark.parametrize("wrong", [[], {"lang": 1}, {"lang": {"sightings": 1}}])
def test_a_manifest_with_other_counts_is_damaged(wrong: object) -> None:
    stored: dict[str, Any] = orjson.loads(index_of(*VIVALDI).manifest.to_json())
    with pytest.raises(IndexDamagedError, match="The manifest cannot be read"):
        Manifest.from_json(orjson.dumps({**stored, "field_counts": wrong}).decode(), "x")

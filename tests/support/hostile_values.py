"""Values of a keyword field with every sign of the query language, and documents that have them.

Each value has a document of its own, and each neighbour of a value (what a filter would ask for if
it lost a sign) another one, so that a filter that asks for anything else finds the wrong documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st

from arag_search import open_index, quote
from arag_search.corpus import nfc
from arag_search.errors import UnknownDocumentError
from arag_search.query.field_types import MAX_KEYWORD_BYTES, MetadataType
from arag_search.search.index import Index
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support.commands import file_of

SIGNS = "\"\\*?():^~/[]{}<>=!+-&|,;.#@'’“”«»$%_ "
CONTROLS = "\0\t\n\r\x0b\x1b\x7f\x85\u2028\u2029\ufeff\u200b\u202e"
LETTERS = "abANDORTné\u0301e한ก東😀👩\u200d👧\u0301\u0323"
METADATA: dict[str, MetadataType] = {"owner": "keyword", "year": "number", "on": "date"}
VALUES = (
    'x" OR owner:"bob', 'x\\" OR owner:"bob', "bob) OR (owner:bob", "bob", "Bob", "bob ", " bob",
    "bob,", "*", "b*", "?", "\\", "\\\\", '"', '\\"', "AND", "NOT bob", "-bob", ">=0", "<z",
    "[a TO z]",
    "{a TO z}", "/b.*/", "/b.*/i", "bob~1", "bob^2", "null", "true", "2020", "{}", '{"gte":""}',
    "$ne",
    "doc_id:d0", "a\nb", "a\r\nb", "a\0b", "\0", "“bob”", "«bob»", "‘bob’", "−bob", "é", "e\u0301",
    "\u0301", "ﬁ", "İ", "😀", "\u200b", "\ufeff", " ", "\n", "x" * MAX_KEYWORD_BYTES,
)  # fmt: skip


def values() -> st.SearchStrategy[str]:
    """Draw values, most of them of a few signs, controls and letters."""
    alphabet = st.sampled_from(SIGNS + CONTROLS + LETTERS)
    return st.one_of(
        st.sampled_from(VALUES),
        st.text(alphabet, min_size=1, max_size=12),
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40),
    )


def random_values(random: Random, count: int) -> list[str]:
    """Return VALUES and random ones, distinct in NFC."""
    signs = SIGNS + CONTROLS + LETTERS
    drawn = ["".join(random.choices(signs, k=random.randint(1, 8))) for _ in range(count)]
    return list({nfc(value): value for value in (*VALUES, *drawn)}.values())


def records_of(values: list[str]) -> Iterator[dict[str, Any]]:
    """Yield a record for each value, and one without a value."""
    for number, value in enumerate(values):
        yield {"id": f"d{number}", "title": "A plan", "text": "An opera.", "owner": value}
    yield {"id": "none", "title": "A plan", "text": "An opera.", "year": 7, "on": "2001-05-31"}


def check_filters(location: str | Path, drawn: list[str]) -> None:
    """Build an index of documents with these values, and check what filters admit."""
    lines = file_of("d.jsonl", *records_of(drawn))
    build_index([lines], location, BuildOptions(metadata=METADATA))
    with open_index(location) as index:
        check_values(index, drawn)
        check_nothing(index)
        check_long_lists(index)


def check_values(index: Index, values: list[str]) -> None:
    """Check that filters for each value, as data and in text, admit its document alone."""
    for number, value in enumerate(values):
        for filter in ({"owner": value}, f"owner:{quote(value)}"):
            assert documents_of(index, filter) == [f"d{number}"], (value, filter)
    some = values[::7]
    wanted = [f"d{number}" for number in range(len(values)) if number % 7 == 0]
    assert documents_of(index, {"owner": some}) == wanted
    others = documents_of(index, {"not": {"owner": some}})
    assert len(others) + len(wanted) == len(values) + 1
    assert not set(others) & set(wanted)


def documents_of(index: Index, filter: Any) -> list[str]:
    """Return the ids of the documents that a filter admits."""
    return [chunk.doc_id for chunk in index.scan(filter=filter)]


def check_nothing(index: Index) -> None:
    """Check that an empty list admits no document, and that no reply holds anything of one."""
    part = index.within({"owner": []})
    for query in ("opera", "opera OR plan", "owner:bob", "nothing NOT bob"):
        assert part.logical_search(query, relax=True, branches=True).total == 0
        result = index.logical_search(query, filter={"owner": [], "not": {"owner": "x"}})
        assert (result.total, result.hits, result.nearest) == (0, (), ())
        assert 'within (doc_id:"an empty list" AND NOT ' in result.understood
    assert part.keyword_search(["opera"]).hits == ()
    assert [*part.scan(), *part.documents(), *part.read(["d0.1"])] == [None]
    words = part.words("opera", "opra", "oper*", "opera AND bob")
    assert [(w.passages, w.forms, w.nearest) for w in words] == [(0, {}, {})] * 4
    about = part.fields("owner", "doc_id", values=10)
    assert about.passages == 0
    assert all(not field.passages and not field.values for field in about.fields)
    assert (part.some_titles, part.named({"A plan": "opera"})) == ((), {})
    with pytest.raises(UnknownDocumentError) as unknown:
        part.document_read("d0")
    assert "Did you mean" not in str(unknown.value)
    assert len(list(index.scan(filter={"not": {"owner": []}}))) == index.manifest.chunks


def check_long_lists(index: Index) -> None:
    """Check lists of thousands of keywords, and of a thousand numbers and dates."""
    some = [f"group-{number:05}@example.org" for number in range(5_000)]
    assert documents_of(index, {"owner": [*some, "bob"]}) == documents_of(index, {"owner": "bob"})
    days = [date.fromordinal(700_000 + number).isoformat() for number in range(1_000)]
    for field, listed in (("year", list(range(1_000))), ("on", [*days, "2001-05"])):
        assert documents_of(index, {field: listed}) == ["none"]
        assert documents_of(index, {field: listed, "owner": some}) == []

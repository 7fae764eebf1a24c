"""Items of a JSON array, each read independently of the others."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag_search.errors import SourceError
from index_jobs.sources import arrays
from index_jobs.sources.arrays import array_records
from index_jobs.sources.records import CorpusFile
from tests.support.corpus_files import FIX, documents, in_own_folder, problems, resumes, source_of  # noqa: F401

values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 1 << 40) | st.text('ab"\\,:{}[]\n\u0301😀'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xy{", max_size=3), inner),
    max_leaves=8,
)


def items(raw: bytes) -> list[Any]:
    Path("a.json").write_bytes(raw)
    with CorpusFile(Path("a.json"), "a.json") as file:
        return [record for _, record in array_records(file, 0, lambda _: None)]


def items_or_none(raw: str) -> list[Any]:
    """Return the items, with None for each bad one."""
    return [None if isinstance(item, SourceError) else item for item in items(raw.encode())]


@given(
    st.lists(values.filter(lambda value: value is not None), max_size=5),
    st.sampled_from((1, 7, 60, 4096)),
    st.sampled_from((None, 0, 2)),
    st.booleans(),
)
def test_every_array_is_read_as_python_reads_it(
    array: list[Any], block: int, indent: int | None, ascii: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK_BYTES", max(block, 4))
        records = items(json.dumps(array, indent=indent, ensure_ascii=ascii).encode())
    assert records == array


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("[]", []),
        ("\n [ ] ", []),
        ('["a", tru, "b"]', ["a", None, "b"]),
        ('["a",, "b"]', ["a", None, "b"]),
        ('["a", "b",]', ["a", "b", None]),
        ('[, "a"]', [None, "a"]),
        ('[{"a": 1 "b": 2}, {"c": 3}]', [None, {"c": 3}]),
        ('[{"a": 1}}, {"c": 3}]', [None, {"c": 3}]),
        ('[{"a": 1, {"c": 3}, {"d": [4]}]', [None, {"c": 3}, {"d": [4]}]),
        ('[{"a": {"b": 1}, \n {"c": 3}]', [None, {"c": 3}]),
        ('[{"a": [1, 2}, {"c": 3}]', [None, {"c": 3}]),
        ('[{"c": 3}, {"a": 1 ]', [{"c": 3}, None]),
        ('[{"a": "one\ntwo"}, {"c": 3}]', [None, {"c": 3}]),
        ('[{"a": "one},\n {"c": 3}, {"d": 4}]', [None, {"c": 3}, {"d": 4}]),
        ('[{"a": "\\x"}, {"c": 3}]', [None, {"c": 3}]),
        ('[{"a": 1, "a": 2}, {"c": 3}]', [None, {"c": 3}]),
    ],
)
def test_a_bad_item_does_not_hide_the_others(raw: str, expected: list[Any]) -> None:
    assert items_or_none(raw) == expected


def test_the_problem_of_a_bad_item_names_its_number() -> None:
    raw = b'[{"text": "a"}, {"text" "b"}, {"text": "\xff"}, , {"text": "e"}]'
    source = source_of("c.json", raw)
    assert problems(source) == [
        "The item is not JSON (unexpected character, expected ':' after key, character 9).\n"
        f"Where: c.json, item 2\nDo: {FIX}",
        "The item is not JSON (not UTF-8 at byte 11 of the item).\n"
        f"Where: c.json, item 3\nDo: {FIX}",
        f"There is a comma, but no item.\nWhere: c.json, item 4\nDo: {FIX}",
    ]
    assert resumes(source)


@pytest.mark.parametrize(
    ("raw", "problem", "after"),
    [
        ('["0:a", "1:b"', "The array is not closed: the file ends before that.", 1),
        ('["0:a", {"b": ["c', "The array is not closed: the file ends before that.", 1),
        ('["0:a"]\n["1:b"]', "There is more text after the end of the array.", 1),
        ('["0:a", "1:b"], "2:c"]', "There is more text after the end of the array.", 2),
    ],
)
def test_an_array_whose_rest_cannot_be_read_is_an_error(raw: str, problem: str, after: int) -> None:
    with pytest.raises(SourceError) as caught:
        documents(source_of("c.json", raw))
    assert str(caught.value) == (
        f"{problem}\nWhere: c.json, after item {after}\n"
        "Do: Correct the file; nothing after this can be read."
    )

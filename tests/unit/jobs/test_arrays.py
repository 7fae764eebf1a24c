"""Items of a JSON array, read one at a time."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag_search.errors import SourceError
from index_jobs.sources.lines.files import MAX_DEPTH, CorpusFile, array_records
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


@given(st.lists(values, max_size=5), st.sampled_from((None, 0, 2)), st.booleans())
def test_every_array_is_read_as_python_reads_it(
    array: list[Any], indent: int | None, ascii: bool
) -> None:
    assert items(json.dumps(array, indent=indent, ensure_ascii=ascii).encode()) == array


def test_a_record_with_a_problem_does_not_hide_the_others() -> None:
    source = source_of("c.json", '[{"text": "a"}, {"text": 3}, {}]')
    assert [problem.split("\n")[0] for problem in problems(source)] == [
        'The field "text" is a number.',
        'There is no field "text".',
    ]
    assert resumes(source)


@pytest.mark.parametrize(
    ("raw", "problem", "after"),
    [
        ('["0:a", "1:b"', "parse error: premature EOF", 2),
        ('["0:a", {"b": ["c', "parse error: premature EOF", 1),
        ('["0:a"]\n["1:b"]', "parse error: trailing garbage", 1),
        ('["0:a", tru, "1:b"]', "lexical error: invalid string in json text.", 1),
        (b'["0:a", "\xff"]', "lexical error: invalid bytes in UTF8 string.", 1),
    ],
)
def test_an_array_whose_rest_cannot_be_read_is_an_error(
    raw: str | bytes, problem: str, after: int
) -> None:
    with pytest.raises(SourceError) as caught:
        documents(source_of("c.json", raw))
    assert caught.value.where == f"c.json, after item {after}"
    assert str(problem) in caught.value.what


def test_an_item_that_is_nested_too_deeply_is_an_error() -> None:
    assert len(items(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)) == 1
    with pytest.raises(SourceError, match=r"nested more than 1,000 levels deep"):
        items(b"[" * (1 << 20))

"""Arguments that a client has changed: they are taken as they were meant, and nothing else is."""

from __future__ import annotations

import ast

import pytest

from arag_search.tools.arguments import taken

SCHEMA = {
    "properties": {
        "query": {"type": "string"},
        "chunk_ids": {"type": "array", "items": {"type": "string"}},
        "patterns": {"type": "array", "items": {"type": "string"}},
        "reference_id": {"type": "string"},
        "top_k": {"type": "integer"},
        "share": {"type": "number"},
        "whole": {"type": "boolean"},
        "granularity": {"type": "string", "enum": ["chunk", "sentence"]},
        "sort": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["query"],
}


def test_only_short_texts_with_letters_beyond_ascii_are_read_as_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []

    def noted(text: str) -> object:
        read.append(text)
        raise ValueError

    monkeypatch.setattr(ast, "literal_eval", noted)
    for text in ("['é']", "[a" + "\u0301\u0316" * 50_000 + "]", "['" + "a" * 50_000):
        assert taken({"query": "a", "chunk_ids": text}, SCHEMA)
    assert [len(text) for text in read] == [5, 50_002]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("a.1 ,\n b.2;c.3\n\n, d.4", ["a.1", "b.2", "c.3", "d.4"]),
        ("a.1, b", ["a.1, b"]),
        ("a.1 b.2", ["a.1 b.2"]),
        ("a.1 , ,b.2", ["a.1 , ,b.2"]),
    ],
)
def test_ids_are_cut_at_separators(text: str, ids: list[str]) -> None:
    assert taken({"query": "a", "chunk_ids": text}, SCHEMA)[0]["chunk_ids"] == ids


@pytest.mark.parametrize(
    ("name", "given", "meant"),
    [
        ("chunk_ids", '["a.1", "b.2"]', ["a.1", "b.2"]),
        ("top_k", "5", 5),
        ("share", "0.5", 0.5),
        ("share", "1", 1),
        ("whole", "true", True),
        ("whole", "True", True),
        ("chunk_ids", "['a.1', 'b.2']", ["a.1", "b.2"]),
        ("top_k", 2.0, 2),
        ("top_k", "2.0", 2),
        ("granularity", "SENTENCE", "sentence"),
        ("granularity", ["sentence"], "sentence"),
        ("query", ["vivaldi"], "vivaldi"),
        ("patterns", "a, b", ["a, b"]),
    ],
)
def test_what_a_value_was_turned_into_is_the_value(name: str, given: object, meant: object) -> None:
    values, (note,) = taken({name: given}, SCHEMA)
    assert values == {name: meant}
    assert note.startswith(f'argument "{name}" was taken as ')


@pytest.mark.parametrize(
    ("name", "given", "meant"),
    [
        ("chunk_ids", ["[a.1]", "b.2"], ["a.1", "b.2"]),
        ("chunk_ids", "[a.1]", ["a.1"]),
        ("chunk_ids", "[a.1], [b.2]", ["a.1", "b.2"]),
        ("chunk_ids", "[a.1]\n[b.2]", ["a.1", "b.2"]),
        ("chunk_ids", "a.1", ["a.1"]),
        ("chunk_ids", "a.1, b.2", ["a.1", "b.2"]),
        ("chunk_ids", "[a.1], b.2", ["a.1", "b.2"]),
        ("chunk_ids", "Letters, 1735.txt.1", ["Letters, 1735.txt.1"]),
        ("chunk_ids", ["`a.1`", " b.2 "], ["a.1", " b.2"]),
        ("chunk_ids", [["a.1"], {"id": "b.2"}], ["a.1", "b.2"]),
        ("chunk_ids", {"chunk_id": "a.1"}, ["a.1"]),
        ("reference_id", "[turn0search1]", "turn0search1"),
        ("reference_id", '"turn0search1"', "turn0search1"),
    ],
)
def test_ids_lose_what_stands_around_them(name: str, given: object, meant: object) -> None:
    assert taken({name: given}, SCHEMA) == ({name: meant}, [])


@pytest.mark.parametrize(
    ("name", "given"),
    [("sort", None), ("top_k", None), ("top_k", ""), ("granularity", ""), ("whole", "")],
)
def test_nothing_given_is_the_default(name: str, given: object) -> None:
    assert taken({name: given}, SCHEMA) == ({}, [])


def test_a_name_in_another_spelling_is_the_name() -> None:
    values, notes = taken({"Query": "a", "chunkIds": ["a.1"], "top-k": 2, "top_k": 3}, SCHEMA)
    assert values == {"query": "a", "chunk_ids": ["a.1"], "top-k": 2, "top_k": 3}
    assert notes == [
        'argument "Query" was taken as "query".',
        'argument "chunkIds" was taken as "chunk_ids".',
    ]


@pytest.mark.parametrize(
    "given",
    [
        {"query": "[1, 2]"}, {"query": "5"}, {"query": ""}, {"query": None}, {"top_k": "true"},
        {"top_k": "five"}, {"top_k": "1.5"}, {"whole": "1"}, {"top_k": 1.5},
        {"query": ["a", "b"]}, {"query": [1]}, {"queries": "a"}, {"top_k": "[1]"},
        {"granularity": "passage"}, {"sort": "year"}, {"colour": "5"},
        {"reference_id": "see [a]"}, {"reference_id": "[a][b]"}, {"chunk_ids": ["see [a.1]", 7]},
    ],
)  # fmt: skip
def test_anything_else_stays_as_it_is(given: dict[object, object]) -> None:
    assert taken(given, SCHEMA) == (given, [])

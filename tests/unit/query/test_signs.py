"""Queries as people and small models write them: what they mean is read with a note, or refused
with a correction; nothing changes its meaning silently."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arag_search.corpus import nfc
from arag_search.errors import AragError
from arag_search.query import analysis
from arag_search.query.fields import Schema
from arag_search.query.problems import QueryError
from arag_search.query.reading import parse
from arag_search.query.tree import Modifier, Node
from arag_search.query.typography import HYPHENS
from tests.support.examples import examples
from tests.support.strategies import SCHEMA as TREE_SCHEMA
from tests.support.strategies import trees

SCHEMA = Schema({"price": "number", "tweet": "number", "kind": "keyword", "url": "keyword"})

READ_WITH_A_NOTE = [
    ("multi −ubuntu", "(multi AND NOT ubuntu)", "−"),
    ("multi －ubuntu", "(multi AND NOT ubuntu)", "－"),
    (r"\"multi agent\"", '"multi agent"', "read as a phrase"),
    (r"title:\"multi agent\"~3", 'title:"multi agent"~3', "read as a phrase"),
    ("'multi agent' nginx", '("multi agent" OR nginx)', "'multi agent' was read"),
    ('“multi agent"', '"multi agent"', "read as a phrase"),
    ('"multi agent”', '"multi agent"', "read as a phrase"),
    ("title:“multi agent”~3^2", 'title:"multi agent"~3^2', "read as a phrase"),
    ("«four seasons» opera", '("four seasons" OR opera)', "read as a phrase"),
    ("„four seasons“", '"four seasons"', "read as a phrase"),
    ("「東京 大学」", '"東京 大学"', "read as a phrase"),
    ("kind:(person, place)", '(kind:"person," OR kind:person OR kind:place)', "kind:person,"),
    ("cats And dogs", "(cats OR And OR dogs)", '"And" was searched as a word'),
    ("std::vector", '"std::vector"', "std::vector"),
    ("http://user@host:80/x?y=z", '"http://user@host:80/x?y=z"', "colon"),
    (r"C:\Users\Bob", r'"C:\\Users\\Bob"', "colon"),
    ("at 10:30", '(at OR "10:30")', "10:30"),
    ("Star Wars: hope", "(Star OR Wars OR hope)", 'colon of "Wars:"'),
    (":a", "a", "colon"),
    ("Who made Gaby: A True Story?", "(Who OR made OR Gaby OR A OR True OR Story)",
     'colon of "Gaby:"'),
]  # fmt: skip


@pytest.mark.parametrize(("query", "understood", "note"), READ_WITH_A_NOTE)
def test_what_is_meant_is_read_with_a_note(query: str, understood: str, note: str) -> None:
    parsed = parse(query, SCHEMA)
    assert parsed.text == understood
    assert note in " ".join(parsed.notes)


CORRECTED = [
    *((query, "price:>5") for query in ("price > 5", "price:> 5", "price :>5", "Price>5")),
    *((query, "price:5") for query in ("price = 5", "price == 5", "price :5", "price : 5")),
    ("price ≥ 5", "price:>=5"),
    ("price =< 5", "price:<=5"),
    ("price:1 TO 5", "price:[1 TO 5]"),
    ("nginx AND price > 5 AND NOT kind = place", "(nginx AND price:>5 AND NOT kind:place)"),
    ("title :nginx", "title:nginx"),
    ("Title: nginx", "title:nginx"),
    ("url:https://example.org/a?b=c", 'url:"https://example.org/a?b=c"'),
    ("POL-3*", "POL"),
    ("192.168.*", "192.168"),
    ("multi-agent*", "(multi AND agent*)"),
    ("東京*", "東京"),
    ("tweet:1983516295378495150", None),
    ("tweet:>9007199254740993", None),
    ("How tall is a 6'2\" player?", '(How OR tall OR is OR a OR 6\'2 OR "player?")'),
    ("What is b) in it?", "(What OR is OR b OR in OR it)"),
]


@pytest.mark.parametrize(("query", "corrected"), CORRECTED)
def test_a_correction_keeps_the_field_and_parses(query: str, corrected: str | None) -> None:
    with pytest.raises(QueryError) as caught:
        parse(query, SCHEMA)
    assert caught.value.mended == corrected
    if corrected is not None:
        assert parse(corrected, SCHEMA).text == corrected


@pytest.mark.parametrize(
    ("query", "understood"),
    [
        ("Title:nginx", "title:nginx"),
        ("KIND:Person", "kind:Person"),
        ("a price of 5", "(a OR price OR of OR 5)"),
        ("price:>=5", "price:>=5"),
        ('"a “b c” d"', '"a “b c” d"'),
        ("什么？怎么", "什么？怎么"),
        ("London–Paris", "London–Paris"),
        ("（a OR b） title：c", "(（a OR b） OR title：c)"),
        (r"""/x|'"/ "o’neil \"a b" """, r"""(/x|'"/ OR "o’neil \"a b")"""),
    ],
)
def test_what_is_plain_is_read_as_it_is(query: str, understood: str) -> None:
    parsed = parse(query, SCHEMA)
    assert parsed.text == understood
    assert not [note for note in parsed.notes if "read as" in note]


def test_names_that_differ_only_in_case_are_told_apart() -> None:
    schema = Schema({"Lang": "keyword", "lang": "keyword"})
    assert parse("Lang:en", schema).text == "Lang:en"
    with pytest.raises(QueryError, match="no field"):
        parse("LANG:en", schema)


# Random queries


def as_people_write(text: str, choices: st.DataObject) -> tuple[str, bool]:
    """Return a canonical query with signs of other keyboards, and whether any was changed."""
    pieces = re.split(r'((?<![^ (:])/(?:[^/\\]|\\.)+/|"(?:[^"\\]|\\.)*"|\\.)', text)
    changed = False
    for at, piece in enumerate(pieces):
        if piece.startswith(("\\", "/")):
            continue
        if piece.startswith('"'):
            inside = piece[1:-1]
            plain = (
                " " in inside.strip()
                and inside == inside.strip()
                and not re.search(r"[^\w ]", inside)
            )
            before = pieces[at - 1]
            if plain and (not before or before[-1] in " (:") and choices.draw(st.booleans()):
                pair = choices.draw(st.sampled_from(("“”", "„“", "«»", '“"', "「」")))
                pieces[at] = pair[0] + inside + pair[1]
                changed = True
            continue
        dash = choices.draw(st.sampled_from(["NOT ", *HYPHENS]))
        new = re.sub(r'\bNOT (?=[\w"(])', dash, piece)
        changed = changed or new != piece
        pieces[at] = new
    return "".join(pieces), changed


@given(trees(awkward=False), st.data())
@settings(max_examples=examples(2_000))
def test_a_query_with_the_signs_of_other_keyboards_means_the_same(
    tree: Node, data: st.DataObject
) -> None:
    text = str(tree)
    query, changed = as_people_write(text, data)
    try:
        parsed = parse(query, TREE_SCHEMA)
    except QueryError:
        return
    wanted = parse(text, TREE_SCHEMA)
    assert parsed.text == wanted.text
    assert parsed.tree == wanted.tree
    assert not changed or len(parsed.notes) > len(wanted.notes)


PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                *(
                    "nginx", "multi", "O'Neill", "what", "C++", "AT&T", "10:30", "6'2\"", "東京",
                    "don't",
                ),
                *(
                    "(a", "b)", "（a）", "“a b”", "'a b'", '"a b"', '\\"a b\\"', "«a»", ":)",
                    "...", "?",
                ),
                *(
                    "https://x.org/a?b=c", "std::vector", "re:", "foo:bar", "a/b", "--x", "[1]",
                    "{a}",
                ),
                *(
                    "a=5",
                    "x > 5",
                    "a&&b",
                    "NEAR/3",
                    "And",
                    "or",
                    "Not",
                    "XOR",
                    "+a",
                    "~a",
                    "a^",
                    "#1",
                ),
                *(
                    "١٢",
                    "ｆｏｏ",
                    "！a",
                    "a！",
                    "—b",
                    "–b",
                    "@?",
                    "#>>",
                    "`ls -l`",
                    "$HOME",
                    "<b>",
                    "50%",
                ),
            ]
        ),
        st.text(
            alphabet="abc1 é東\\:/\"()（）：“”‘’'-!+.,?？*~^[]{}<>=＝&|", min_size=1, max_size=6
        ),
    ),
    min_size=1,
    max_size=8,
).map(" ".join)  # fmt: skip

_WEIGHT = re.compile(r"[~^][\d.]+")
_OPERATOR = re.compile(r"(?<!\S)\W*(?:AND|OR|NOT|PREFER|DEMOTE)\b")


@given(PIECES)  # fmt: skip
@settings(max_examples=examples(50_000, share=100))
def test_what_is_accepted_without_a_note_searches_every_word_as_it_is(query: str) -> None:
    try:
        parsed = parse(query, SCHEMA)
    except QueryError as error:
        if error.mended is not None:
            parse(error.mended, SCHEMA)
        return
    if parsed.notes or _OPERATOR.search(query):  # fmt: skip
        return
    wanted = Counter(analysis.terms(nfc(_WEIGHT.sub("", query).replace("\\", ""))))
    understood = Counter(
        analysis.terms(nfc(_OPERATOR.sub(" ", _WEIGHT.sub("", parsed.text)).replace("\\", "")))
    )
    assert understood == wanted
    if not re.search(r"(?:^|[\s(\")])[-!－−]", query):
        assert not any(isinstance(node, Modifier) for node in parts(parsed.tree))


def parts(node: object) -> list[object]:
    """Return a node and all below it."""
    children = getattr(node, "children", None) or ([node.child] if hasattr(node, "child") else [])  # type: ignore[union-attr]
    return [node, *(part for child in children for part in parts(child))]


def test_every_refusal_is_an_error_of_the_query() -> None:
    for query in ("\ud800", "“" * 3_000, "'a" * 900, "（" * 1_900, '\\"a ' * 600, "a：" * 900):
        try:
            parse(query, SCHEMA)
        except AragError as error:
            assert isinstance(error, QueryError)

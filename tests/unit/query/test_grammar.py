"""The grammar reads a text as the reader of any text does, or not at all."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arag_search.query import reading
from arag_search.query.fields import ANY_SCHEMA, Schema
from arag_search.query.grammar import Options, read
from arag_search.query.problems import QueryError
from arag_search.query.reading import Query, parse_checked
from arag_search.query.tree import Node, render
from tests.support import strategies
from tests.support.examples import examples

SCHEMA = strategies.SCHEMA
READINGS = (
    Options(SCHEMA),
    Options(SCHEMA, "AND"),
    Options(SCHEMA, operators=False),
    Options(SCHEMA, published=True),
    Options(SCHEMA, ranked=False),
    Options(ANY_SCHEMA),
    Options(Schema({"Year": "number", "a.b-c": "keyword"}), "AND", limits=False),
)
PIECES = r"""
    AND OR NOT PREFER DEMOTE DEMOTE^0.2 DEMOTE^2 && || and TO XOR NEAR/5 ( (( ) )) )^2 NOT( -( -
    ! + -OR -19 -x --x title:( lang:( year:( title: Title: year:[1 TO 2] year:>=1970 year:1-2 [sic]
    [a lang:en lang:"en_GB" published:2001-05 published:>=2001-05-31T12:00
    lang:(en_or_de) lang:(en_NEAR/5) lang:en, lang:=x year:> year:=5 12:30 x:y
    librett* ab* a* vivladi~1 it~2 x~ a^2 a^0.5 a^2000 "a"~2 "a_b" "a_b"~3^2 "=films" "*" "a*" 東京
    ? who what .NET C++ A&B a.b O'Brien 'tis rock’n’roll \AND \-x \x a\:b /x/ /a_b/i title:/a/ Émile
    /etc/x “a_b” a"b" a(b _ 北
"""
SOUPS = st.lists(st.sampled_from(PIECES.split()), max_size=9).flatmap(
    lambda pieces: st.sampled_from((" ", " ", "")).map(
        lambda gap: gap.join(pieces).replace("_", " ")
    )
)


def damaged(text: str, seed: int) -> str:
    """Return a text in which a few characters are left out, doubled, exchanged or put in."""
    random = Random(seed)
    for _ in range(random.randrange(4)):
        at = random.randrange(len(text) + 1)
        sign = random.choice(strategies.SPECIAL)
        text = text[:at] + random.choice(("", text[at : at + 1] * 2, sign)) + text[at + 1 :]
    return text


TREES = strategies.trees(awkward=True)
TEXTS = st.one_of(SOUPS, st.builds(damaged, TREES.map(str), st.integers(0, 1 << 30)))


def outcome(text: str, options: Options) -> Query | str:
    try:
        return parse_checked(text, options)
    except QueryError as error:
        return str(error)


def outcome_of_the_reader(text: str, options: Options) -> Query | str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_is_doubtful", lambda *_: True)
        return outcome(text, options)


@settings(max_examples=examples(3_000))
@given(TEXTS, st.sampled_from(READINGS))
@example("(a AND content:b venice^2)^2.5", READINGS[0])
@example("a lang:(--en)", READINGS[0])
@example('lang:" "', READINGS[0])
@example("title:a DEMOTE^0.2", READINGS[3])
def test_a_text_is_understood_as_by_the_reader_alone(text: str, options: Options) -> None:
    assert outcome(text, options) == outcome_of_the_reader(text, options)


@settings(max_examples=examples(1_000))
@given(TREES, st.sampled_from([options for options in READINGS if options.schema is SCHEMA]))
def test_every_canonical_text_is_read(tree: Node, options: Options) -> None:
    operators = options.operators
    if options.has_additions and options.ranked:
        assert read(render(tree, operators), options) == tree


@settings(max_examples=examples(1_000))
@given(TEXTS, st.sampled_from(READINGS[:4]))
def test_what_was_understood_is_read(text: str, options: Options) -> None:
    parsed = outcome_of_the_reader(text, options)
    if not isinstance(parsed, str):
        assert read(parsed.text, options) == parsed.tree

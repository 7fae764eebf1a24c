"""A word, also in a phrase, matches its possessives; what else does not, and when none does."""

import string
from random import Random

import pytest
from hypothesis import given, settings

from arag_search.query import analysis
from arag_search.query.analysis import APOSTROPHES, possessive_spellings, spellings_of
from arag_search.query.limits import MAX_POSSESSIVE_WORDS, MAX_WORDS
from arag_search.query.parser import parse
from arag_search.query.tree import (
    Node,
    Phrase,
    Term,
    TextLeaf,
    leaves,
    spelled_words,
    with_possessives,
)
from tests.support.examples import examples
from tests.support.passages import chunk, index_of
from tests.support.strategies import SCHEMA, trees

INDEX = index_of(
    chunk(0, "straight", "", "It was Freud's theory of dreams."),
    chunk(1, "curly", "", "FREUD’S theory of dreams."),
    chunk(2, "plain", "", "The theory of dreams by Freud."),
    chunk(3, "other", "Freudian", "A theory of dream’s."),
)


def spellings(node: Node) -> list[tuple[tuple[str, ...], ...]]:
    return [leaf.spellings for leaf in leaves(node) if isinstance(leaf, TextLeaf)]


@pytest.mark.parametrize(
    ("query", "matched"),
    [
        ("freud", {"straight", "curly", "plain"}),
        ('"freud"', {"straight", "curly", "plain"}),
        ('"=freud"', {"plain"}),
        ('content:"=Freud"^2', {"plain"}),
        ("freud's", {"straight", "curly"}),
        ('"freud theory"', {"straight", "curly"}),
        ('"=freud theory"', set[str]()),
        ('"was freud theory"', {"straight"}),
        ('"theory dream"~2', {"other"}),
        ("theory AND NOT freud", {"other"}),
        ("theory AND NOT freud AND NOT dream", set[str]()),
        ("freudia*", {"other"}),
        ("dre*", {"straight", "curly", "plain", "other"}),
    ],
)
def test_words_match_their_possessives(query: str, matched: set[str]) -> None:
    result = INDEX.logical_search(query, feedback=False)
    assert {hit.doc_id for hit in result.hits} == matched
    assert result.notes == ()


def test_presets_of_papers_queries_without_operators_and_keywords_match_whole_words() -> None:
    assert INDEX.logical_search("freud", published=True).total == 1
    assert INDEX.logical_search("freud", operators=False).total == 1
    assert INDEX.keyword_search(["freud"]).total == 1
    assert spellings_of("freud") == (("freud",),)
    assert spellings(parse("freud*").tree) == [(("freud",),)]
    for options in ({"published": True}, {"operators": False}):
        parsed = parse('"=freud"', **options)  # type: ignore[arg-type]
        assert spellings(parsed.tree) == [(("freud",),)]
        assert parsed.notes == ('"=freud" is searched as "freud": symbols are not indexed.',)


@pytest.mark.parametrize(
    ("text", "possessives"),
    [
        ("Freud", {("freud's",), ("freud’s",)}),
        ("1678", set[tuple[str, ...]]()),
        ("freud’s", set[tuple[str, ...]]()),
        ("東京", set[tuple[str, ...]]()),
        ("café", {("café's",), ("café’s",)}),
        ("AT&T", {("at's", "t"), ("at’s", "t"), ("at", "t's"), ("at", "t’s")}),
        ("COVID-19", {("covid's", "19"), ("covid’s", "19")}),
        ("a" * 254, set[tuple[str, ...]]()),
    ],
)
def test_one_token_at_a_time_takes_the_form_unless_it_ends_in_a_digit_or_has_it(
    text: str, possessives: set[tuple[str, ...]]
) -> None:
    plain, expanded = Term(text), Term(text, possessives=True)
    assert expanded.spellings[: len(plain.spellings)] == plain.spellings
    assert set(expanded.spellings[len(plain.spellings) :]) == possessives


def test_the_quick_answer_for_plain_words_is_that_of_the_analyser() -> None:
    random = Random(11)
    for length in [*range(1, 8), *range(250, 256)] * 20:
        word = "".join(random.choices(string.ascii_lowercase + string.digits, k=length))
        forms = [f"{word}{apostrophe}s" for apostrophe in APOSTROPHES]
        made = [(form,) for form in forms if analysis.terms(form) == [form]]
        assert possessive_spellings(((word,),)) == ((word,), *made)


def test_a_long_phrase_is_searched_without_possessives_and_a_note_says_so() -> None:
    assert len(Phrase("a b c d e", possessives=True).spellings) == 11
    long = Phrase("a b c d e f", possessives=True)
    assert not long.possessives
    assert long.spellings == (("a", "b", "c", "d", "e", "f"),)
    parsed = parse('"a b c d e f" "f e d c b a" x')
    assert parsed.notes == (
        'searched without possessives (\'s), which would be too many: "a b c d e f" and 1 more.',
    )
    assert [len(leaf) for leaf in spellings(parsed.tree)] == [1, 1, 3]


def test_a_query_of_many_words_has_possessives_of_its_single_words_only() -> None:
    words = [f"w{number}x" for number in range(60)]
    parsed = parse(" ".join([*words, *4 * ['"a b c"']]))
    assert [len(leaf) for leaf in spellings(parsed.tree)] == [3] * 60 + [1] * 4
    assert parsed.notes[0].endswith('too many: "a b c" and 3 more.')
    parsed = parse(" ".join([*words, '"a b c d e f g h i j k l m"']))
    assert [len(leaf) for leaf in spellings(parsed.tree)] == [1] * 61
    assert parsed.notes[0].endswith("too many: w0x and 60 more.")
    assert parse(" ".join([*words, "x1", "y", "z", "v"])).notes == ()


@settings(max_examples=examples(200))
@given(trees(awkward=True, max_leaves=20))
def test_possessives_are_tokens_within_the_limits_and_parsing_gives_them(tree: Node) -> None:
    texts = [leaf for leaf in leaves(tree) if isinstance(leaf, Term | Phrase)]
    plain_words = sum(spelled_words(type(leaf)(leaf.text)) for leaf in texts)
    all_words = sum(spelled_words(leaf) for leaf in texts)
    assert all_words == plain_words or all_words <= MAX_WORDS
    for leaf in texts:
        plain = type(leaf)(leaf.text).spellings
        assert type(leaf)(leaf.text, possessives=leaf.possessives).spellings == leaf.spellings
        assert leaf.spellings[: len(plain)] == plain
        if leaf.spellings != plain:
            assert sum(map(len, leaf.spellings)) <= MAX_POSSESSIVE_WORDS
            assert all(analysis.terms(" ".join(words)) == [*words] for words in leaf.spellings)
    parsed = parse(str(tree), SCHEMA, limits=False).tree
    assert spellings(parsed) == spellings(tree) == spellings(with_possessives(parsed))

"""The sentences of a chunk that are shown for a query."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arag_search.corpus import nfc
from arag_search.engines.base import Matching
from arag_search.engines.hits import Hit, join_sentences
from arag_search.plan.lower import lower
from arag_search.plan.matching import Pattern, patterns_of
from arag_search.query import analysis
from arag_search.query.analysis import is_prefix
from arag_search.query.fields import Schema
from arag_search.query.reading import parse
from arag_search.query.tree import Phrase, Prefix, Term
from arag_search.search.reading.occurrences import Sentences
from arag_search.search.reading.snippets import (
    Snippets,
    best_sentence,
    keyword_sentences,
    sentences_with,
)
from tests.support.examples import examples
from tests.support.plans import written

SCHEMA = Schema({"year": "number", "lang": "keyword"}, language="en")


def hit_of(*sentences: str, matched: tuple[int, ...] = ()) -> Hit:
    ends = tuple(itertools.accumulate(map(len, sentences)))
    content = "".join(sentences)
    return Hit("d.1", "d", "A Title", 1, 1, 0, {}, ends, content, matched_sentences=matched)


VIVALDI = hit_of(
    "Antonio Vivaldi wrote Griselda. ",  # 0
    "It was an opera. ",  # 1
    "The libretto of the opera was by Zeno. ",  # 2
    "Goldoni changed the libretto. ",  # 3
    "Vivaldi’s singers liked the opera Griselda. ",  # 4
    "Nobody kept a copy of the four. ",  # 5
    "Seasons went by.",  # 6
)


def shown_sentences(query: str, hit: Hit = VIVALDI) -> list[int]:
    return Snippets(lower(parse(query, SCHEMA).tree, "en")).choose(hit)


def test_the_sentence_with_the_rarest_word_is_shown_beside_any_number_of_others() -> None:
    pairs = ["An opera in Venice. ", "A song about Rome. ", "A heron near water. "]
    hit = hit_of(*pairs * 3, "The qix.")
    shown = shown_sentences("opera venice song rome heron water qix", hit)
    assert (len(shown), shown[-1]) == (3, 9)


@pytest.mark.parametrize(
    ("query", "sentences"),
    [
        ("griselda", [0, 4]),
        ("opera", [1, 2, 4]),
        ("opera OR libretto", [1, 2, 3]),  # 2 has both; of the others the earlier ones are shown
        ("opera OR libretto OR griselda", [0, 2, 4]),  # 2 and 4 hold two; then the first
        ("opera opera^3 content:opera OR libretto", [1, 2, 3]),  # the same leaf three times
        ('"antonio vivaldi"', [0]),
        ('"vivaldi antonio"', [0, 4]),  # the phrase occurs nowhere: its parts
        ('"vivaldi antonio"~2', [0]),
        ('"griselda antonio"~4', [0]),
        ("librett*", [2, 3]),
        ("opera AND NOT goldoni", [1, 2, 4]),
        ("opera AND NOT (libretto OR griselda)", [1, 2, 4]),
        ("title:opera AND libretto", [2, 3]),  # a title leaf does not count
        ("year:>=1700 AND libretto", [2, 3]),
        ("title:vivaldi", [0]),
        ("year:>=1700", [0]),
        ("griseldas", [0, 4]),
        ('"=griseldas"', [0]),
        ('"four seasons"', [5, 6]),  # across the end of a sentence: its parts
        ('"four seasons" OR libretto', [2, 3]),
        ('"opera griselda zeno"', [2, 4, 0]),
        ("vivaldi's", [0, 4]),
        ("vivaldi’s", [0, 4]),
        ('"=vivaldi\'s"', [4]),
        ('"vivaldi\'s singers"', [4]),
        ("vivaldi's*", [4]),
        ("Vivaldi", [0, 4]),
        ('"=Vivaldi"', [0]),  # the analyser keeps Vivaldi’s as one word
        ('"vivaldi singers"', [4]),
    ],
)
def test_the_best_three_sentences_are_shown_in_text_order(query: str, sentences: list[int]) -> None:
    assert shown_sentences(query) == sorted(sentences)


NAMES = hit_of("Dori met us. ", "Dori sang. ", "Dori left. ", "Doris came. ", "Dori and a friend.")


@pytest.mark.parametrize(
    ("query", "sentences"),
    [
        ("Doris", [0, 1, 3]),
        ("dori", [0, 1, 2]),
        ('"doris"', [0, 1, 3]),
        ('"=dori"', [0, 1, 2]),
        ("title:doris OR dori", [0, 1, 2]),
        ("doris OR friends", [0, 3, 4]),  # 4 has both
    ],
)
def test_of_sentences_that_match_alike_those_with_words_as_typed_are_shown(
    query: str, sentences: list[int]
) -> None:
    assert shown_sentences(query, NAMES) == sentences


def test_the_best_sentence_for_words_has_them_as_they_were_typed() -> None:
    text = Sentences(NAMES.content, NAMES.sentence_ends)
    assert best_sentence("Doris", text, "en") == 3
    assert best_sentence("doris", text, "") == 3
    assert sentences_with("Doris", NAMES.content, NAMES.sentence_ends, "en") == [0, 1, 3]


def test_a_word_that_the_analyser_splits_is_a_phrase() -> None:
    hit = hit_of("The 19 cases of covid. ", "COVID-19 came later.")
    assert shown_sentences("COVID-19", hit) == [1]
    assert shown_sentences("covid-20", hit) == [0, 1]  # only a part of it occurs, in both


def test_at_sentence_granularity_all_matching_sentences_are_shown() -> None:
    hit = hit_of("a. ", "b. ", "c. ", "d. ", "e.", matched=(0, 1, 3, 4))
    assert shown_sentences("nothing", hit) == [0, 1, 3, 4]


def test_a_chunk_without_text_has_no_snippet() -> None:
    assert shown_sentences("opera", hit_of()) == []
    assert keyword_sentences(hit_of(), ["opera"], "token", 9) == []
    assert keyword_sentences(hit_of(), ["opera"], "substring", 9) == []


@pytest.mark.parametrize(
    ("keywords", "matching", "sentences"),
    [
        (["OPERA"], "token", [1, 2, 4]),
        (["opera", "libretto", "griselda"], "token", [0, 1, 2, 3, 4]),
        (["the opera"], "token", [2, 4]),
        (["four seasons"], "token", [5, 6]),
        (["four seasons", "goldoni"], "token", [3]),
        (["vivaldi's"], "token", [4]),
        (["oper", "..."], "token", [0]),
        (["per"], "substring", [1, 2, 4]),
        (["VIVALDI"], "substring", [0, 4]),
        (["vivaldi's"], "substring", [0]),  # as the text is typed
        (["four. Seasons"], "substring", [0]),
        ([" of the "], "substring", [2, 5]),
    ],
)
def test_all_sentences_with_a_keyword_are_shown(
    keywords: list[str], matching: Matching, sentences: list[int]
) -> None:
    assert keyword_sentences(VIVALDI, keywords, matching, 9) == sentences


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ([], ""),
        ([0], "a. ..."),
        ([1], "... b. ..."),
        ([2], "... c."),
        ([0, 1], "a. b. ..."),
        ([0, 2], "a. ... c."),
        ([0, 1, 2], "a. b. c."),
    ],
)
def test_gaps_between_sentences_are_written_as_dots(shown: list[int], text: str) -> None:
    assert join_sentences(["a. ", "b.\n", "c."], shown) == text


@given(
    st.lists(st.sampled_from("abc"), max_size=7),
    st.lists(st.sampled_from("abc"), min_size=2, max_size=4),
    st.integers(0, 6),
)
@settings(max_examples=examples(80))
def test_slop_agrees_with_trying_all_distinct_positions(
    text: list[str], words: list[str], slop: int
) -> None:
    def matches(places: tuple[int, ...]) -> bool:
        shifted = [place - number for number, place in enumerate(places)]
        return max(shifted) - min(shifted) <= slop

    candidates = itertools.permutations(range(len(text)), len(words))
    expected = any(
        matches(places)
        for places in candidates
        if all(text[place] == word for place, word in zip(places, words, strict=True))
    )
    assert Pattern((tuple(words),), slop).matches(text) == expected


_ODD_TEXTS = st.text(st.sampled_from("ab1א .,'’-_(é\u0301\u200d東カ😀\u05d0\""), max_size=12).map(
    nfc
)


@given(
    st.lists(_ODD_TEXTS, min_size=1, max_size=4),
    st.lists(_ODD_TEXTS.filter(analysis.terms), min_size=1, max_size=3),
    st.integers(0, 2),
)
@settings(max_examples=examples(150))
def test_leaves_occur_in_the_sentences_whose_tokens_match(
    sentences: list[str], texts: list[str], slop: int
) -> None:
    text = Sentences("".join(sentences), tuple(itertools.accumulate(map(len, sentences))))
    tokens = [analysis.terms(sentence) for sentence in sentences]
    for leaf_text in texts:
        words = written(Phrase(leaf_text)).root.words
        phrase = {
            number
            for number, sentence_tokens in enumerate(tokens)
            if any(
                sentence_tokens[at : at + len(w)] == list(w)
                for w in words
                for at in range(len(sentence_tokens))
            )
        }
        assert text.matching(patterns_of(written(Phrase(leaf_text)).root)[0]) == phrase
        assert text.matching(patterns_of(written(Term(leaf_text)).root)[0]) == phrase
        slop = slop if len(words[0]) > 1 else 0
        loose = {
            n
            for n, sentence_tokens in enumerate(tokens)
            if any(within(sentence_tokens, w, slop) for w in words)
        }
        assert text.matching(patterns_of(written(Phrase(leaf_text, slop)).root)[0]) == loose
        if is_prefix(leaf_text):
            starts = tuple(spelling[0] for spelling in written(Prefix(leaf_text)).root.words)
            assert text.matching(patterns_of(written(Prefix(leaf_text)).root)[0]) == {
                n
                for n, sentence_tokens in enumerate(tokens)
                if any(t.startswith(starts) for t in sentence_tokens)
            }


def within(tokens: list[str], words: tuple[str, ...], slop: int) -> bool:
    if len(words) == 1:
        return words[0] in tokens
    return Pattern((words,), slop).matches(tokens) if slop else words in ngrams(tokens, len(words))


def ngrams(tokens: list[str], length: int) -> set[tuple[str, ...]]:
    return {tuple(tokens[at : at + length]) for at in range(len(tokens))}

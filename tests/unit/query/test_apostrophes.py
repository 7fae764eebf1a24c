"""A leaf with apostrophes finds every mix of U+0027 and U+2019."""

import itertools
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arag_search.corpus import nfc
from arag_search.engines.base import Granularity, KeywordRequest, SearchRequest
from arag_search.errors import ArgumentError
from arag_search.query import analysis
from arag_search.query.analysis import APOSTROPHES, inner_apostrophes, spellings_of
from arag_search.query.limits import MAX_APOSTROPHES
from arag_search.query.tree import Not, Phrase, Prefix, Term, all_of
from arag_search.search.keywords import checked_keywords
from arag_search.search.occurrences import marks
from tests.support.examples import examples
from tests.support.passages import chunk, index_of
from tests.support.plans import written

_TEXTS = st.text(
    st.sampled_from("ab1\u05d0'\u2019.,\"_-\u200d\u0301\u6771\u30ab \U0001f600"), max_size=9
)
_FRENCH = st.lists(
    st.sampled_from(["l'art", "d'aujourd'hui", "qu'il", "Poetry", "Don't", "n'est", "rock'n'roll"]),
    min_size=1,
    max_size=3,
).map(" ".join)


def mixes(text: str) -> list[str]:
    """Return the text with every mix of apostrophes."""
    places = [at for at, character in enumerate(text) if character in APOSTROPHES]
    spelled: list[str] = []
    for mix in itertools.product(APOSTROPHES, repeat=len(places)):
        characters = list(text)
        for at, apostrophe in zip(places, mix, strict=True):
            characters[at] = apostrophe
        spelled.append("".join(characters))
    return spelled


@settings(max_examples=examples(300))
@given(st.one_of(_TEXTS, _TEXTS.map(lambda text: "a" * 250 + text)))
def test_the_spellings_of_a_leaf_are_the_tokens_of_every_mix(text: str) -> None:
    text = nfc(text)
    if not analysis.terms(text) or len(inner_apostrophes(text)) > MAX_APOSTROPHES:
        return
    spellings = spellings_of(text)
    assert set(spellings) == {tuple(analysis.terms(mix)) for mix in mixes(text)}
    assert len(set(spellings)) == len(spellings)


@settings(max_examples=examples(40))
@given(_FRENCH, st.randoms(use_true_random=False))
def test_every_mix_in_a_text_is_found_marked_shown_counted_and_excluded(
    text: str, random: Random
) -> None:
    query_text = random.choice(mixes(text))
    texts = [random.choice(mixes(text)) for _ in range(3)]
    chunks = [
        chunk(n, str(n), "", "Nothing here. ", f"{text} is here.") for n, text in enumerate(texts)
    ]
    index = index_of(*chunks, chunk(9, "9", "", "Nothing at all."))
    engine = index.engine
    leaf, everything = Phrase(query_text), Term("nothing")
    expected = {"0.1", "1.1", "2.1"}
    assert {hit.id for hit in engine.search(SearchRequest(written(leaf))).hits} == expected
    excluded_hits = engine.search(SearchRequest(written(all_of(everything, Not(leaf))))).hits
    assert [hit.id for hit in excluded_hits] == ["9.1"]
    granularities: tuple[Granularity, ...] = ("chunk", "sentence")
    for granularity in granularities:
        result = index.logical_search(f'"{query_text}"', granularity=granularity)
        assert {(hit.id, hit.sentences) for hit in result.hits} == {
            (name, (1,)) for name in expected
        }
    page = engine.keyword_search(KeywordRequest((query_text,)))
    assert {(hit.id, hit.score) for hit in page.hits} == {
        (name, len(query_text)) for name in expected
    }
    explained = index.keyword_search([query_text], explain=True).hits
    assert all(hit.explanation[0].scores == {"content": len(query_text)} for hit in explained)  # type: ignore[index]
    for mix in texts:
        assert marks(f"- {mix} -", [written(leaf).root], "content") == [(2, 2 + len(mix))]


def test_every_mix_of_a_word_matches_every_mix_of_its_prefix() -> None:
    for prefix in mixes("rock'n'r"):
        for text in mixes("rock'n'roll"):
            assert marks(text, [written(Prefix(prefix)).root], "content") == [(0, len(text))]


def test_keywords_with_many_apostrophes_are_rejected_and_outer_ones_do_not_count() -> None:
    with pytest.raises(ArgumentError, match="many apostrophes within words"):
        checked_keywords(["it's " * 8])
    assert checked_keywords(["'it' " * 8])
    assert spellings_of("'it' " * 20) == (("it",) * 20,)

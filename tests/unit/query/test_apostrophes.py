"""A leaf with apostrophes finds texts with U+0027, and with U+2019."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from arag_search.corpus import nfc
from arag_search.engines.base import Granularity, KeywordRequest, SearchRequest
from arag_search.query import analysis
from arag_search.query.analysis import SEARCHED_APOSTROPHES, spellings_of
from arag_search.query.operators import NOT
from arag_search.query.tree import Modifier, Phrase, Prefix, Term, all_of
from arag_search.search.reading.occurrences import marks
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


def spelled(text: str) -> list[str]:
    """Return the text with straight and with typographic apostrophes, and as it is."""
    return [
        *(text.translate(dict.fromkeys((0x27, 0x2019), sign)) for sign in SEARCHED_APOSTROPHES),
        text,
    ]


@settings(max_examples=examples(300))
@given(st.one_of(_TEXTS, _TEXTS.map(lambda text: "a" * 250 + text)))
def test_the_spellings_of_a_leaf_are_the_tokens_with_either_apostrophe(text: str) -> None:
    text = nfc(text)
    spellings = spellings_of(text)
    assert set(spellings) == {tuple(analysis.terms(mix)) for mix in spelled(text)} - {()}
    assert len(set(spellings)) == len(spellings)


@settings(max_examples=examples(40))
@given(_FRENCH, st.randoms(use_true_random=False))
def test_either_apostrophe_in_a_text_is_found_marked_shown_counted_and_excluded(
    text: str, random: Random
) -> None:
    query_text = random.choice(spelled(text))
    texts = [random.choice(spelled(text)) for _ in range(3)]
    chunks = [
        chunk(n, str(n), "", "Nothing here. ", f"{text} is here.") for n, text in enumerate(texts)
    ]
    index = index_of(*chunks, chunk(9, "9", "", "Nothing at all."))
    engine = index.engine
    leaf, everything = Phrase(query_text), Term("nothing")
    expected = {"0.1", "1.1", "2.1"}
    assert {hit.id for hit in engine.search(SearchRequest(written(leaf))).hits} == expected
    excluded_hits = engine.search(
        SearchRequest(written(all_of(everything, Modifier(NOT, leaf))))
    ).hits
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


def test_either_apostrophe_of_a_word_matches_either_of_its_prefix() -> None:
    for prefix in spelled("rock'n'r"):
        for text in spelled("rock'n'roll"):
            assert marks(text, [written(Prefix(prefix)).root], "content") == [(0, len(text))]


def test_outer_apostrophes_do_not_count() -> None:
    assert spellings_of("'it' " * 20) == (("it",) * 20,)

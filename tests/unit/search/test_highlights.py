"""Where the words of a query occur in the titles and snippets of its hits."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag_search.corpus import Chunk, nfc
from arag_search.engines.base import Granularity
from arag_search.engines.hits import Hit
from arag_search.plan.clauses import Clause, wanted_leaves
from arag_search.plan.lower import lower
from arag_search.plan.matching import Words, patterns_of
from arag_search.query import analysis
from arag_search.query.forms import HOLE
from arag_search.query.reading import parse
from arag_search.query.tree import Node, Phrase
from arag_search.search.index import Index
from arag_search.search.results import SearchResult
from tests.support.oracle.engine import LANGUAGE
from tests.support.passages import chunk, index_of
from tests.support.plans import written
from tests.support.strategies import AWKWARD, COMMON, WORDS, queried_keywords, trees

PIECES = st.sampled_from((*AWKWARD, *WORDS[:20], *COMMON, "ΣΑΣ", "İİ x", "🇫🇷🇩🇪", "ﬃ", "x" * 300))
sentences = st.lists(
    st.builds(
        "".join,
        st.tuples(
            st.lists(PIECES, max_size=6).map(" ".join), st.sampled_from((". ", "", "。", "\n"))
        ),
    ),
    max_size=7,
)


@st.composite
def passages(draw: st.DrawFn) -> Chunk:
    texts = [nfc(text) for text in draw(sentences)]
    content = nfc("".join(texts))
    ends = tuple(dict.fromkeys(end for end in accumulate(map(len, texts)) if end < len(content)))
    ends = (*(end for end in ends if end), len(content)) if content else ()
    return Chunk("d.1", "d", draw(PIECES), content, 1, 1, 0, ends, {})


def marked(result: SearchResult, hit: Hit) -> tuple[list[str], list[str]]:
    highlights = result.highlights(hit)
    assert highlights is not None
    for text, marks in ((hit.title, highlights.title), (hit.snippet, highlights.snippet)):
        offsets = [offset for mark in marks for offset in mark]
        assert offsets == sorted(offsets)
        assert all(0 <= start < end <= len(text) for start, end in marks)
    return (
        [hit.title[start:end] for start, end in highlights.title],
        [hit.snippet[start:end] for start, end in highlights.snippet],
    )


def terms_of(text: str) -> list[str]:
    return [term for term in Words(text).terms(LANGUAGE) if term != HOLE]


def words_of(leaf: Clause) -> set[str]:
    return {word for pattern in patterns_of(leaf) for word in pattern.words()}


def matches(leaf: Clause, text: str) -> bool:
    """Tell whether a marked text matches a leaf; of a loose phrase, every word has its mark."""
    words = Words(text)
    if any(map(words.match, patterns_of(leaf))):
        return True
    is_loose = leaf.kind == "phrase" and leaf.slop > 0
    terms = set(words.terms(leaf.language))
    return is_loose and any(terms <= set(spelling) for spelling in leaf.words)


@given(
    passages(),
    trees(awkward=False, metadata=False, max_leaves=5),
    st.sampled_from(("chunk", "sentence")),
)
def test_every_mark_of_a_logical_search_matches_a_leaf_of_the_query(
    passage: Chunk, tree: Node, granularity: Granularity
) -> None:
    check_marks(index_of(passage), str(tree), granularity)


@given(passages(), PIECES, st.booleans(), st.sampled_from(("chunk", "sentence")))
def test_every_mark_of_awkward_words_matches_them(
    passage: Chunk, piece: str, loose: bool, granularity: Granularity
) -> None:
    words = len(analysis.terms(nfc(piece)))
    if words:
        query = str(Phrase(piece, 2 if loose and words > 1 else 0))
        check_marks(index_of(passage), query, granularity)


def check_marks(index: Index, query: str, granularity: Granularity) -> None:
    result = index.logical_search(query, granularity=granularity)
    leaves = [
        leaf
        for leaf in wanted_leaves(lower(parse(query, index.manifest.query_schema).tree, LANGUAGE))
        if leaf.is_text
    ]
    for hit in result.hits:
        in_title, in_snippet = marked(result, hit)
        for field, texts in (("title", in_title), ("content", in_snippet)):
            possible = [leaf for leaf in leaves if leaf.field in (None, field)]
            for text in texts:
                assert any(matches(leaf, text) for leaf in possible), text
        words = {word for leaf in leaves if leaf.field in (None, "title")
                 for word in words_of(leaf) if leaf.kind != "phrase"}  # fmt: skip
        if words & set(terms_of(hit.title)):
            assert in_title
        words = {word for leaf in leaves if leaf.field in (None, "content")
                 for word in words_of(leaf) if leaf.kind != "phrase"}  # fmt: skip
        tokens = set(terms_of(hit.content)) & set(terms_of(hit.snippet))
        if words & tokens:
            assert in_snippet


@given(passages(), queried_keywords(), st.sampled_from(("token", "substring")))
def test_every_mark_of_a_keyword_search_is_a_keyword(
    passage: Chunk, keywords: tuple[str, ...], matching: str
) -> None:
    index = index_of(passage)
    result = index.keyword_search(keywords, matching=matching)  # type: ignore[arg-type]
    for hit in result.hits:
        in_title, in_snippet = marked(result, hit)
        for text in (*in_title, *in_snippet):
            if matching == "token":
                patterns = [
                    patterns_of(written(Phrase(word)).root)[0]
                    for word in keywords
                    if analysis.terms(word)
                ]
                assert any(pattern.matches(analysis.terms(text)) for pattern in patterns)
            else:
                low = text.lower().replace("ς", "σ")
                assert any(nfc(word).lower().replace("ς", "σ") in low for word in keywords)
        if matching == "substring" and any(nfc(w).lower() in hit.title.lower() for w in keywords):
            assert in_title


HIT = chunk(
    0, "d", "Vivaldi’s Seasons", "He met Antonio ", "Vivaldi, in Paris. ", "Nothing here. ",
    "  Vivaldi's sea. ", "The seasons 𝒳 of Vivaldi; a librettist.", "東京に。", "それから。",
)  # fmt: skip


@pytest.mark.parametrize(
    ("query", "title", "snippet"),
    [
        ("vivaldi's", ["Vivaldi’s"], ["Vivaldi", "Vivaldi's", "Vivaldi"]),
        ('"=vivaldi\'s"', ["Vivaldi’s"], ["Vivaldi's"]),
        ("seasons", ["Seasons"], ["seasons"]),
        ('"=antonio vivaldi" OR "=vivaldi"', [], ["Vivaldi", "Vivaldi"]),  # one is not shown
        ("vivaldi", ["Vivaldi’s"], ["Vivaldi", "Vivaldi's", "Vivaldi"]),
        ('"antonio vivaldi"', [], ["Antonio Vivaldi"]),
        ('"of vivaldi a" OR "vivaldi a librettist"', [], ["of Vivaldi; a librettist"]),
        ('"=seasons vivaldi"~3', [], ["seasons", "Vivaldi"]),
        ('"seasons vivaldi"~3', ["Vivaldi’s", "Seasons"], ["seasons", "Vivaldi"]),
        ("librett*", [], ["librettist"]),
        ("libretist~1 OR sezon~2", ["Seasons"], ["seasons", "librettist"]),
        ("year:1678 OR paris", [], ["Paris"]),
        ("𝒳", [], ["𝒳"]),
        ("title:seasons AND antonio", ["Seasons"], ["Antonio"]),
        ("content:seasons AND NOT venice", [], ["seasons"]),
        ('"に それ"', [], ["に。 それ"]),
        ('"paris vivaldi\'s"', [], []),  # never side by side in the passage
    ],
)
def test_marks_are_located_in_the_snippet(query: str, title: list[str], snippet: list[str]) -> None:
    result = index_of(HIT).logical_search(query)
    for hit in result.hits:
        assert marked(result, hit) == (title, snippet)
    assert bool(result.hits) == bool(snippet)


def test_a_phrase_is_not_marked_across_sentences_of_which_some_are_left_out() -> None:
    passage = chunk(0, "d", "", "red ", "x. ", "blue fish. ", "red blue. ", "red blue again. ")
    index = index_of(passage)
    result = index.logical_search('"red blue"')
    assert marked(result, result.hits[0]) == ([], ["red blue", "red blue"])
    sentences = index.logical_search('"red blue"', granularity="sentence")
    assert marked(sentences, sentences.hits[0]) == ([], ["red blue", "red blue"])


def test_without_text_only_titles_are_marked(index: Index) -> None:
    result = index.logical_search("vivaldi", snippets=False, top_k=1)
    highlights = result.highlights(result.hits[0])
    assert highlights is not None
    assert (len(highlights.title), highlights.snippet) == (1, ())

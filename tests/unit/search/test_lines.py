"""The numbered lines of documents: folding, places of passages and sentences, occurrences."""

from __future__ import annotations

import re
import unicodedata
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arag_search.search.reading.documents import IndexDocument
from arag_search.search.reading.lines import DocumentLines
from tests.support.examples import examples
from tests.support.long_documents import index_of_documents, long_document, random_text
from tests.support.strategies import WORDS

TEXTS = st.text(st.sampled_from("ab .\n\r\tßİ’'é\u2028漢"), max_size=300)


def lines_of(text: str, fold: int = 200, passage: int = 40) -> DocumentLines:
    return DocumentLines.of(IndexDocument(tuple(long_document(0, "d", "D", text, passage))), fold)


def naive_lines(text: str, fold: int) -> list[str]:
    """Fold each physical line by itself, from left to right."""
    lines: list[str] = []
    for line in text.removesuffix("\n").split("\n") if text else []:
        is_rest = False
        while len(line) > fold:
            blanks = [at for at in range(1, fold + 1) if line[at] == " "]
            lines.append(line[: blanks[-1] if blanks else fold])
            line = line[blanks[-1] + 1 :] if blanks else line[fold:]
            is_rest = True
        if line or not is_rest:
            lines.append(line)
    return lines


@given(text=TEXTS, fold=st.sampled_from([1, 3, 7, 20]))
@settings(max_examples=examples(300))
def test_lines_are_those_of_the_text_with_long_ones_folded(text: str, fold: int) -> None:
    lines = lines_of(text, fold)
    assert [lines.line(number) for number in range(len(lines))] == naive_lines(text, fold)
    for number in range(len(lines)):
        assert lines.line_at(lines.starts[number]) == number


@given(text=TEXTS, passage=st.integers(1, 60))
@settings(max_examples=examples(300))
def test_lines_and_passages_map_to_each_other(text: str, passage: int) -> None:
    lines = lines_of(text, 10, passage)
    for first in range(len(lines)):
        last = min(first + 2, len(lines) - 1)
        start, end = lines.starts[first], lines.ends[last]
        expected = [
            at
            for at in range(len(lines.passages))
            if lines.passage_starts[at] < max(end, start + 1)
            and lines.passage_starts[at + 1] > start
        ]
        assert list(lines.passages_of(first, last)) == expected


@given(text=TEXTS, passage=st.integers(1, 60))
@settings(max_examples=examples(200))
def test_the_lines_of_a_sentence_hold_its_text(text: str, passage: int) -> None:
    document = IndexDocument(tuple(long_document(0, "d", "D", text, passage)))
    lines = DocumentLines.of(document, 10)
    for chunk in document.chunks:
        for number, sentence in enumerate(chunk.sentences()):
            if not sentence.strip():
                continue
            at = lines.lines_of_sentences(chunk.id, [number])
            assert at is not None
            shown = " ".join(lines.line(n) for n in range(at[0], at[1] + 1))
            assert "".join(sentence.split()) in "".join(shown.split())
    assert lines.lines_of_sentences("another", [0]) is None


def naive_occurrences(text: str, pattern: str) -> int:
    """Count matches by comparing folded words at every character of the folded text."""

    def fold(value: str) -> str:
        value = unicodedata.normalize("NFC", value).replace("’", "'").replace("′", "'").casefold()
        return re.sub(r"\s+", " ", value)

    wanted = fold(pattern).strip()
    return fold(text).count(wanted) if wanted else 0


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("Capital\n expenditures of 3M", "capital expenditures", ["Capital\n expenditures"]),
        ("the dog’s ear, the DOG'S tail", "dog's", ["dog’s", "DOG'S"]),
        ("İstanbul and ISTANBUL", "istanbul", ["ISTANBUL"]),
        ("İstanbul", "i\u0307stanbul", ["İstanbul"]),
        ("Straße STRASSE", "strasse", ["Straße", "STRASSE"]),
        ("cafe\u0301 Café", "CAFÉ", ["Café"]),
        ("a.b a+b", "a.b", ["a.b"]),
        ("aaaa", "aa", ["aa", "aa"]),
        ("ŉ x", "x", ["x"]),
        ("text", " ", []),
    ],
)
def test_patterns_match_whatever_their_case_blanks_and_apostrophes(
    text: str, pattern: str, expected: list[str]
) -> None:
    lines = lines_of(text)
    assert [lines.text[start:end] for start, end in lines.occurrences(pattern)] == expected


@given(seed=st.integers(0, 10_000), pattern=st.sampled_from([*WORDS, "a", "in opera", "’s", "SS"]))
@settings(max_examples=examples(300))
def test_occurrences_are_those_of_a_naive_scan(seed: int, pattern: str) -> None:
    text = unicodedata.normalize("NFC", random_text(Random(seed), WORDS, 80))
    places = lines_of(text).occurrences(pattern)
    assert len(places) == naive_occurrences(text, pattern)
    assert all(naive_occurrences(text[start:end], pattern) == 1 for start, end in places)


def test_an_index_keeps_the_lines_of_a_document_as_long_as_it_is_the_same() -> None:
    index = index_of_documents(
        long_document(0, "a", "A", "One.\nTwo."), long_document(1, "b", "B", "Three.")
    )
    first, missing, second = index.document_lines(["a", "none", "b"])
    assert missing is None
    assert first is not None
    assert second is not None
    assert [first.line(0), first.line(1), second.line(0)] == ["One.", "Two.", "Three."]
    assert index.document_lines(["a"])[0] is first
    assert index.document_lines(["", "\ud800"]) == [None, None]

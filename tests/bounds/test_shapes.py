"""Texts of any shape: what is done with them after conversion takes time that grows with their
length. One file of a stranger must not hold up a build, or all users of a server."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from arag_search.corpus import Chunk, Document, nfc
from arag_search.query import analysis
from arag_search.query.forms import forms_of_chunk
from arag_search.query.names import links_in, possible_names
from arag_search.search.reading.documents import IndexDocument
from arag_search.search.reading.lines import DocumentLines
from arag_search.search.reading.occurrences import Sentences
from arag_search.search.reading.snippets import best_sentence
from arag_search.tokens import count_tokens, cut_to
from index_jobs.cutting.chunking import cut
from index_jobs.cutting.sentences import sentence_ends
from index_jobs.sources.converters import code, rst
from index_jobs.sources.converters.text import markdown

SHAPES = {
    "blank lines": ("", "\n"),
    "spaces": ("", " "),
    "tabs": ("a", "\t"),
    "mixed line ends": ("", "a\r\nb\n\rc "),
    "marks": ("e", "\u0301\u0316\u0327"),
    "one long word": ("", "a"),
    "dots": ("", "."),
    "dotted names": ("", "A."),
    "abbreviations": ("", "Dr. A. "),
    "quotes": ("", '"a '),
    "brackets": ("", "(a "),
    "open brackets": ("", "[(!{"),
    "digits": ("", "12.5,"),
    "addresses": ("", "https://example.org/a?b=c&d "),
    "Chinese": ("", "漢字。"),
    "Thai": ("", "กั ข"),
    "emoji": ("", "👩\u200d👩🏽\u200d👧"),
    "signs of no width": ("a", "\u200b\u200f\u2060"),
    "nested quotations": ("", "> > > a\n>"),
    "items": ("", "- a\n  - 1. b\n"),
    "backticks": ("", "`a``"),
    "fences": ("", "```\na\n~~~\n"),
    "tables": ("|a|\n|-|\n", "|a|b|\n"),
    "headings": ("", "# a\n===\n"),
    "links": ("", "[a](b[["),
    "a link without an end": ("[[", "a"),
    "an address without an end": ("](", "a"),
    "emphasis": ("", "*a_b **"),
    "tags": ("", "<b>a<a href="),
    "an open string": ('"""', "a\n'"),
    "definitions": ("", "def a(b):\n  class A {\n"),
}
LEAST, LONGEST = 8_000, 1 << 20
LEAST_S, RUNS, TRIES = 0.02, 5, 3
MOST = 2.6
"""How many times as long a text of twice the length may take. Quadratic time is 4."""


def _cut(text: str, **values: Any) -> None:
    document = Document("a.txt", "The T. T", text, is_file=True, **values)
    cut(document, shard=0, number=0, chunk_tokens=1_000)


def _chunk(text: str) -> Chunk:
    return Chunk("a", "a", "The T. T", text, 1, 1, 0, (len(text),), {})


STEPS: dict[str, Callable[[str], object]] = {
    "nfc": nfc,
    "sentences": lambda text: sentence_ends(text, "The T. T"),
    "a long title": lambda text: sentence_ends("A b. C. D " * 100, text),
    "passages": _cut,
    "whole": lambda text: _cut(text, whole=True),
    "Markdown": lambda text: _cut(text, outline=markdown(text)[1]),
    "RST": lambda text: rst.title_and_outline(text),
    "Python": lambda text: code.outline(text, "py"),
    "JavaScript": lambda text: code.outline(text, "js"),
    "C": lambda text: code.outline(text, "c"),
    "shell": lambda text: code.outline(text, "sh"),
    "words": analysis.tokens,
    "forms": lambda text: forms_of_chunk(_chunk(text), "en", written=True),
    "names": lambda text: list(possible_names(text, analysis.token_columns(text), ())),
    "links": lambda text: list(links_in(text, "a/b.md")),
    "best sentence": lambda text: best_sentence("a b", Sentences(text, [len(text)]), "en"),
    "lines": lambda text: DocumentLines.of(IndexDocument((_chunk(text),)), 2_000).place(0),
    "occurrences": lambda text: DocumentLines.of(IndexDocument((_chunk(text),)), 2_000).occurrences(
        "a b"
    ),
    "count of tokens": count_tokens,
    "cut to tokens": lambda text: cut_to(text, 1_000),
}
_numbers = count()


def seconds(step: Callable[[str], object], shape: str, length: int) -> float:
    """Return the least processor time of some runs of a step over a text of this length."""
    first, unit = SHAPES[shape]
    times: list[float] = []
    for _ in range(RUNS):
        text = (first + unit * (length // len(unit)))[:length] + f" {next(_numbers)}"  # not kept
        began = time.thread_time()
        step(text)
        times.append(time.thread_time() - began)
        if times[0] > 1:
            break
    return min(times)


@pytest.fixture(autouse=True)
def _without_collections() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", STEPS)
def test_twice_the_text_takes_about_twice_the_time(name: str, shape: str) -> None:
    step, length = STEPS[name], LEAST
    step("A b. C.")
    ratios: list[float] = []
    while len(ratios) < TRIES and length < LONGEST:
        before, after = (seconds(step, shape, times * length) for times in (1, 2))
        if after >= LEAST_S:
            if after <= MOST * before:
                return
            ratios.append(after / before)  # at another length it may not be a threshold
        length *= 2
    assert len(ratios) < TRIES, f"{name} of {shape}: {ratios}"

"""Passages read from the text of replies, as tools write them."""

from __future__ import annotations

from random import Random

import pytest

from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.passages.keyword import KeywordSearch
from arag_search.tools.passages.logical import LogicalSearch
from arag_search.tools.passages.read import ChunkRead
from arag_search.tools.preset import plain_preset
from arag_search.tools.replies.parts import ShownPassage, offers_more, passages_at, read_spans
from arag_search.tools.tool import ReadSet
from tests.support.passages import index_of, random_chunks


def passages_in(reply: str, *, of_read: bool = False) -> list[ShownPassage]:
    return passages_at(reply, read_spans(reply, of_read=of_read))


def test_a_search_shows_passages_with_title_and_text(logical: LogicalSearch) -> None:
    reply = logical.run({"query": "venice", "top_k": 1}).text
    (passage,) = passages_in(reply)
    assert passage.id in ("vivaldi.1", "griselda.1")
    assert "Venice" in passage.text
    assert "part" not in passage.title
    assert offers_more(reply)
    assert not offers_more(logical.run({"query": "goldoni"}).text)
    assert passages_in(logical.run({"query": "nowhere"}).text) == []


def test_a_read_shows_no_more_than_title_and_text(read: ChunkRead) -> None:
    read_set = ReadSet()
    first = read.run({"chunk_ids": ["vivaldi.2"]}, read_set).text
    assert passages_in(first, of_read=True) == [
        ShownPassage(
            "vivaldi.2", "Antonio Vivaldi", "He died in Vienna. Vivaldi's music was forgotten."
        )
    ]
    repeated = read.run({"chunk_ids": ["vivaldi.2", "page.1"]}, read_set).text
    assert [passage.text for passage in passages_in(repeated, of_read=True)] == [
        "",
        "A page without a title.",
    ]


def test_a_passage_shown_before_has_no_text(index: Index) -> None:
    tool = LogicalSearch(index, plain_preset(full_text=True))
    read_set = ReadSet()
    tool.run({"query": "goldoni"}, read_set)
    (passage,) = passages_in(tool.run({"query": "goldoni"}, read_set).text)
    assert passage == ShownPassage("griselda.1", "Griselda (Vivaldi)", "")


def test_the_beginning_of_a_page_of_a_pdf_is_no_header() -> None:
    reply = "1 of 1 passage for a\n[a.pdf.1] A\n[page 1]\nOne.\n[page 2]\nTwo."
    assert passages_in(reply) == [ShownPassage("a.pdf.1", "A", "[page 1]\nOne.\n[page 2]\nTwo.")]


@pytest.mark.parametrize("seed", range(20))
def test_parsed_passages_have_the_tokens_that_the_tool_counts(seed: int) -> None:
    random = Random(seed)
    index = index_of(*random_chunks(random))
    preset = plain_preset(
        full_text=random.random() < 0.5, max_result_tokens=random.choice((300, 3000))
    )
    for tool, arguments in (
        (LogicalSearch(index, preset), {"query": "opera"}),
        (KeywordSearch(index, preset), {"keywords": ["opera"]}),
    ):
        result = tool.run(arguments)
        passages = passages_in(result.text)
        assert [passage.id for passage in passages] == list(result.ids)
        counted = sum(
            count_tokens(passage.title) + count_tokens(passage.text) for passage in passages
        )
        assert counted == result.retrieved_tokens

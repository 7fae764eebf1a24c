"""keyword_search of arag_full: counts of keywords, rare ones, titles and few sentences."""

from __future__ import annotations

import pytest

from arag_search.search.index import Index
from arag_search.tools.preset_files import load_preset
from arag_search.tools.tool import Tool
from arag_search.tools.toolbox import tools_of
from tests.support.passages import chunk, index_of

LONG = [f"Number {number} of the gondola is black. " for number in range(9)]
SOLD = "One gondola of Zorble was sold. "
CANALS = [
    chunk(number, f"canal{number}", f"Canal {number}", *["A gondola waits. "] * 6)
    for number in range(6)
]


@pytest.fixture(scope="module")
def index() -> Index:
    rare = chunk(7, "rare", "Lagoon", "Qix is an island. ", "It is small. ")
    named = chunk(8, "named", "Zorble and its gondola", "A city. ", "It has boats. ", *LONG, SOLD)
    return index_of(*CANALS, rare, named)


def keyword_tool(preset: str, index: Index) -> Tool:
    chosen = load_preset(preset).model_copy(update={"tools": ("keyword_search", "chunk_read")})
    return tools_of(chosen, index)["keyword_search"]


def test_all_keywords_are_counted_and_the_passage_of_a_rare_one_is_on_the_page(
    index: Index,
) -> None:
    tool = keyword_tool("arag_full", index)
    counts, *lines = tool.run({"keywords": ["gondola", "qix", "zeppelin"]}).text.splitlines()[1:]
    assert counts == 'Passages per keyword: "gondola" 7, "qix" 1, "zeppelin" 0.'
    assert 'Best for "qix":' in lines
    assert "Qix is an island. It is small." in lines
    assert "[rare.1]" not in tool.run({"keywords": ["gondola", "qix"], "offset": 5}).text[:200]
    assert "Passages per keyword" not in tool.run({"keywords": ["gondola"]}).text


def test_titles_come_first_with_their_lead_and_at_most_four_sentences_match(index: Index) -> None:
    result = keyword_tool("arag_full", index).run({"keywords": ["zorble", "gondola"], "top_k": 7})
    first = result.passages[0]
    text = first.text_in(result.text)
    assert first.id == "named.1"
    assert text.startswith("A city. ")
    assert SOLD.strip() in text
    assert text.count("gondola") <= 4


def test_replies_and_descriptions_of_the_paper_stay(index: Index) -> None:
    result = keyword_tool("arag_paper", index).run({"keywords": ["zorble", "gondola", "qix"]})
    assert "Passages per" not in result.text
    assert result.text.count("is black") == 9
    assert "Best for" not in result.text
    for preset, says in (("arag_paper", True), ("arag_full", False)):
        chosen = load_preset(preset).model_copy(update={"tools": ("keyword_search", "chunk_read")})
        for tool in tools_of(chosen, index).values():
            assert ("before you" in tool.description) is says

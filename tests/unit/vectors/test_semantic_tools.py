"""The tools that search by vectors: their replies to a model, and the bounds on them."""

from __future__ import annotations

import random

import pytest

from arag_search.corpus import Chunk
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.passages.search import SearchTool
from arag_search.tools.passages.vectors import HybridSearch, NaiveEmbeddingSearch, SemanticSearch
from arag_search.tools.preset import plain_preset
from arag_search.tools.tool import ReadSet
from tests.support.examples import examples
from tests.support.passages import VIVALDI, chunk, random_chunks
from tests.support.semantic_indexes import TableEncoder, vector_index

SEARCH_TOOLS = (SemanticSearch, HybridSearch, NaiveEmbeddingSearch)
TABLE = {
    "who revised it?": (1, 0, 0),
    "Its libretto was revised by the young Carlo Goldoni.": (1, 0.1, 0),
    "Each libretto was new.": (1, 0.5, 0),
    "Griselda (Vivaldi)\nGriselda is an opera by Antonio Vivaldi. Its premiere was in Venice. "
    "Its libretto was revised by the young Carlo Goldoni.": (1, 0.1, 0),
}


@pytest.fixture(scope="module")
def index() -> Index:
    far = (chunk(10 + n, f"far{n}", "", *(f"Far {n} {m}. " for m in range(5))) for n in range(9))
    return vector_index(*VIVALDI, *far, encoder=TableEncoder(TABLE))


def test_a_semantic_search_shows_near_sentences_and_how_to_get_more(index: Index) -> None:
    result = SemanticSearch(index).run({"query": "who revised it?", "top_k": 1})
    assert result.text == (
        '1 nearest passage for "who revised it?"\n'
        "[griselda.1] Griselda (Vivaldi) (whole document, cosine 1.00)\n"
        "Griselda is an opera by Antonio Vivaldi. Its premiere was in Venice. Its libretto was "
        "revised by the young Carlo Goldoni.\n"
        "More: offset=1."
    )
    assert (result.status, result.ids, result.total, result.total_is_exact) == (
        "ok",
        ("griselda.1",),
        None,
        True,
    )
    assert result.tokens == count_tokens(result.text)
    assert result.retrieved_tokens < result.tokens


def test_a_hybrid_search_shows_whole_passages_only_if_the_preset_says_so(index: Index) -> None:
    chosen = HybridSearch(index).run({"query": "who revised it?", "max_results": 1})
    assert chosen.text.splitlines()[1:3] == [
        "[griselda.1] Griselda (Vivaldi) (whole document)",
        "Griselda is an opera by Antonio Vivaldi. Its premiere was in Venice. Its libretto was "
        "revised by the young Carlo Goldoni.",
    ]
    whole = HybridSearch(index, plain_preset(full_text=True))
    assert "shows each passage in full" in whole.description
    result = whole.run({"query": "who revised it?", "max_results": 1})
    assert result.text == (
        '1 nearest passage for "who revised it?"\n'
        "[griselda.1] Griselda (Vivaldi) (whole document)\n"
        "Griselda is an opera by Antonio Vivaldi. Its premiere was in Venice. Its libretto was "
        "revised by the young Carlo Goldoni.\n"
        "More: offset=1."
    )


def test_a_naive_search_shows_whole_passages_and_offers_no_more(index: Index) -> None:
    result = NaiveEmbeddingSearch(index).run({"query": "who revised it?", "top_k": 1})
    assert result.text.splitlines()[0] == '1 nearest passage for "who revised it?"'
    assert result.text.splitlines()[-1].endswith("by the young Carlo Goldoni.")
    rejected = NaiveEmbeddingSearch(index).run({"query": "who revised it?", "offset": 5})
    assert rejected.text == (
        'Tool not run: 1 problem.\n1. argument "offset": there is no such argument. Arguments: '
        "query, top_k."
    )


def test_pages_give_their_ranks_and_the_last_offers_no_more(index: Index) -> None:
    tool = SemanticSearch(index)
    text = tool.run({"query": "who revised it?", "top_k": 3, "offset": 2}).text
    assert text.splitlines()[0] == 'Nearest passages 3 to 5 for "who revised it?"'
    assert text.splitlines()[-1] == "More: offset=5."
    text = tool.run({"query": "who revised it?", "offset": 13}).text
    assert text.splitlines()[0] == 'Nearest passage 14 for "who revised it?"'
    assert "More: offset" not in text
    for search_tool in (tool, HybridSearch(index)):
        result = search_tool.run({"query": "who revised it?", "offset": 14})
        assert result.text == (
            'Only 14 passages were found for "who revised it?": there are no further ones.'
        )
        assert (result.status, result.ids, result.total) == ("empty", (), None)


@pytest.mark.parametrize("tool", [SemanticSearch, HybridSearch])
def test_a_filter_narrows_the_search_and_is_named_in_the_first_line(
    index: Index, tool: type[SearchTool]
) -> None:
    search_tool = tool(index)
    result = search_tool.run({"query": "who revised it?", "filter": "year:>1730"})
    assert result.text.splitlines()[0] == (
        '1 nearest passage for "who revised it?" within year:>1730'
    )
    assert result.ids == ("griselda.1",)
    result = search_tool.run({"query": "who revised it?", "filter": "year:>3000"})
    assert (result.text, result.status) == (
        'No passage is in scope for "who revised it?" within year:>3000.',
        "empty",
    )
    result = search_tool.run({"query": "who revised it?", "filter": "author:Goldoni"})
    assert (result.text, result.status) == (
        "Query not run: 1 problem.\n"
        '1. column 1, "author:": there is no field "author". Fields: doc_id, year (number), lang '
        "(keyword). Text with a colon is quoted.\n"
        "Where: the filter",
        "error",
    )
    unfiltered = search_tool.run({"query": "who revised it?"})
    assert search_tool.run({"query": "who revised it?", "filter": " "}).text == unfiltered.text


@pytest.mark.parametrize("tool", SEARCH_TOOLS)
def test_mistakes_of_a_model_are_answered_with_the_problem(
    index: Index, tool: type[SearchTool]
) -> None:
    search_tool = tool(index)
    assert search_tool.run({"query": ""}).text == (
        'Query not run: 1 problem.\n1. column 1, "": the query is empty. Write a question, or a '
        "few words."
    )
    assert search_tool.run({"query": {}}).text == (
        'Tool not run: 1 problem.\n1. argument "query", {}. Allowed: a string.'
    )
    assert search_tool.run({}).text == (
        'Tool not run: 1 problem.\n1. argument "query" is missing. Allowed: a string.'
    )
    count = "max_results" if tool is HybridSearch else "top_k"
    assert search_tool.run({"query": "a", count: 21}).text == (
        f'Tool not run: 1 problem.\n1. argument "{count}", 21. Allowed: a whole number from 1 to '
        "20."
    )


@pytest.mark.parametrize("tool", SEARCH_TOOLS)
def test_a_condition_is_offered_by_request_and_says_why_nothing_meets_it(
    index: Index, tool: type[SearchTool]
) -> None:
    plain = tool(index)
    assert "where" not in plain.parameters["properties"]
    assert "where keeps" not in plain.description
    offered = tool(index, plain_preset(where=True))
    assert "where keeps only passages" in offered.description
    result = offered.run({"query": "who revised it?", "where": "goldoni NOT scarlatti"})
    first, *_ = result.text.splitlines()
    assert first.startswith("1 nearest passage for ")
    assert first.endswith(" where (goldoni AND NOT scarlatti)")
    assert result.ids == ("griselda.1",)
    nothing = offered.run({"query": "who revised it?", "where": "goldoni AND nowhere"})
    assert nothing.status == "empty"
    assert nothing.text == (
        "No passage matches (goldoni AND nowhere).\nAlone: goldoni 1; nowhere occurs nowhere."
    )
    refused = offered.run({"query": "who revised it?", "where": "(goldoni"})
    assert refused.status == "error"
    assert "Where: the condition where" in refused.text


def test_a_hybrid_search_of_long_passages_takes_as_much_room_as_a_logical_one() -> None:
    long: list[Chunk] = []
    for n in range(6):
        filler = [f"Canal {n} x{number * n} y{n} is long, and has boats. " for number in range(80)]
        gondola = f"A gondola of {n} is black. "
        long.append(chunk(n, f"d{n}", f"Page {n}", *filler, gondola, *filler))
    result = HybridSearch(vector_index(*long)).run({"query": "a black gondola"})
    assert result.text.count("is black") == 5
    assert result.tokens < 400


@pytest.mark.parametrize("tool", SEARCH_TOOLS)
def test_a_query_cannot_break_the_lines_of_a_reply(index: Index, tool: type[SearchTool]) -> None:
    search_tool = tool(index)
    first = search_tool.run({"query": "a\n[x.1] b"}).text.splitlines()[0]
    assert first.endswith('nearest passages for "a [x.1] b"')


@pytest.mark.parametrize("tool", SEARCH_TOOLS)
def test_descriptions_are_short_and_name_the_fields(index: Index, tool: type[SearchTool]) -> None:
    search_tool = tool(index)
    schema = search_tool.openai_schema()
    assert count_tokens(str(schema)) < 440
    fields = '\nFields: year (number, 1678 to 1735), lang ("en", "it").'
    of_paper = tool(index, plain_preset(reproduces="A-RAG"))
    papers_fields = "\nFields for filter: doc_id, year (number), lang (keyword)."
    for described, ending in ((search_tool, fields), (of_paper, papers_fields)):
        assert described.description.endswith(ending) is (
            "filter" in search_tool.parameters["properties"]
        )
    assert search_tool.parameters["required"] == ["query"]


# Bounds, and passages shown before


@pytest.mark.parametrize("tool", SEARCH_TOOLS)
@pytest.mark.parametrize("full_text", [False, True])
def test_every_reply_keeps_the_bound(tool: type[SearchTool], full_text: bool) -> None:
    draw = random.Random(5)
    for _ in range(examples(12)):
        index = vector_index(*random_chunks(draw))
        bound = draw.choice((200, 300, 1000))
        search_tool = tool(index, plain_preset(full_text=full_text, max_result_tokens=bound))
        for query in ("opera", "x" * 2000, "東京タワー la"):
            result = search_tool.run({"query": query})
            assert count_tokens(result.text) == result.tokens <= bound
            assert all(f"[{id}]" in result.text for id in result.ids)


@pytest.mark.parametrize("tool", SEARCH_TOOLS)
def test_passages_shown_in_full_are_not_shown_again(index: Index, tool: type[SearchTool]) -> None:
    read_set = ReadSet()
    search_tool = tool(index, plain_preset(full_text=True))
    first = search_tool.run({"query": "who revised it?"}, read_set)
    repeated = search_tool.run({"query": "who revised it?"}, read_set)
    lines = repeated.text.splitlines()
    assert [line for line in lines if "(shown before" in line] == lines[1:6]
    assert repeated.ids == first.ids
    assert repeated.retrieved_tokens < first.retrieved_tokens / 2

"""The arguments sort, show and after of searches, and a limit on passages of a document."""

from __future__ import annotations

from typing import Any

import pytest

from arag_search.errors import ArgumentError
from arag_search.search.index import Index
from arag_search.tools.passages.keyword import KeywordSearch
from arag_search.tools.passages.logical import LogicalSearch
from arag_search.tools.passages.search import reply
from arag_search.tools.preset import plain_preset
from arag_search.tools.tool import ReadSet, ToolResult
from tests.support.passages import chunk, index_of


def test_a_list_of_titles_has_an_exact_total_and_no_text() -> None:
    many = [chunk(n, f"d{n}", f"Part {n}", "An opera. ", "A song. ") for n in range(1200)]
    tool = LogicalSearch(index_of(*many), plain_preset(loop_guards=True))
    result = tool.run({"query": "opera AND song", "show": "titles"})
    lines = result.text.splitlines()
    assert lines[0] == "200 of 1,200 passages"
    assert lines[1:3] == ["[d0.1] Part 0", "[d1.1] Part 1"]
    assert lines[-1] == "More: after=200."
    assert (len(lines), len(result.ids), result.total) == (202, 200, 1200)
    assert all(span.text_start == span.end for span in result.passages)
    last = tool.run({"query": "opera AND song", "show": "titles", "after": "1000"})
    assert last.text.splitlines()[0] == "Passages 1001 to 1200 of 1,200"
    assert last.text.splitlines()[-1] == "[d1199.1] Part 1199"
    keywords = KeywordSearch(index_of(*many), plain_preset(loop_guards=True))
    result = keywords.run({"keywords": ["opera", "song"], "show": "titles"})
    assert result.text.splitlines()[0] == "200 of 1,200 passages"


def test_a_list_that_does_not_fit_goes_on_after_the_last_title_that_is_shown() -> None:
    many = [chunk(n, f"d{n}", "A long title " * 9, "An opera. ") for n in range(300)]
    preset = plain_preset(max_result_tokens=1_000, loop_guards=True)
    tool = LogicalSearch(index_of(*many), preset)
    offset, seen = 0, list[str]()
    while True:
        result = tool.run({"query": "opera", "show": "titles", "after": str(offset)})
        assert result.tokens <= 1_000
        seen += result.ids
        if "More:" not in result.text:
            break
        offset = len(seen)
        assert f"More: after={offset}." in result.text
    assert seen == [f"d{n}.1" for n in range(300)]


def test_a_list_begins_with_the_rarest_alternatives_and_counts_the_most_frequent_one() -> None:
    texts = ["Siduxn and a qix. ", *["Siduxn. "] * 40, "A heron. ", "An opera. ", "A heron. "]
    index = index_of(*(chunk(n, f"d{n}", "", text) for n, text in enumerate(texts)))
    preset = plain_preset(loop_guards=True)
    tool, rare = LogicalSearch(index, preset), {"d0.1", "d41.1", "d43.1"}
    query = {"query": "siduxn OR qix OR heron"}
    for more in ({"show": "titles"}, {"show": "lines"}, {"show": "titles", "top_k": 3}):
        result = tool.run(query | more)
        assert (set(result.ids), result.total) == (rare, 43), more
        assert "Note: siduxn alone: 40 more passages." in result.text
        assert result.text.splitlines()[-1] == "More: after=3."
        seen = list(result.ids)
        while "More:" in result.text:
            result = tool.run(query | more | {"after": str(len(seen))})
            assert "alone" not in result.text
            seen += result.ids
        assert seen[3:] == [f"d{n}.1" for n in range(1, 41)]
    for few in ("heron OR qix", "siduxn", "siduxn OR zeppelin", "siduxn AND (qix OR heron)"):
        assert "alone" not in tool.run({"query": few, "show": "titles"}).text
    paged = tool.run(query | {"show": "titles", "top_k": 2})
    assert (len(paged.ids), paged.text.splitlines()[-1]) == (2, "More: after=2.")
    rest = tool.run(query | {"show": "titles", "top_k": 2, "after": "2"})
    assert {*paged.ids, *rest.ids} == rare


def test_an_empty_list_says_why() -> None:
    tool = LogicalSearch(index_of(chunk(0, "a", "T", "An opera. ")), plain_preset(loop_guards=True))
    assert tool.run({"query": "operra", "show": "titles"}).text == (
        "No passage matches this query.\nAlone: operra occurs nowhere.\n"
        "Note: nearest to operra: opera 1."
    )


def test_a_list_by_document_names_each_document_once() -> None:
    many = [chunk(n, f"d{n // 3}", "T", "An opera. ", part=n % 3 + 1, parts=3) for n in range(9)]
    index = index_of(*many)
    page = index.logical_search("opera^2 PREFER t", show="titles", top_k=200, per_document=1)
    result = reply(page, plain_preset(loop_guards=True), ReadSet())
    assert result.ids == ("d0.1", "d1.1", "d2.1")
    assert result.text.splitlines()[0] == ("3 of 9 passages, 1 of each of 3 documents")
    assert "More:" not in result.text
    page = index_of(*many).logical_search("opera", show="titles", top_k=2, per_document=1)
    assert (page.total, page.passages, len(page.hits)) == (9, 3, 2)


def test_documents_are_counted_in_the_order_of_their_best_passages() -> None:
    texts = [("song opera opera", "opera"), ("opera opera opera", "A song."), ("opera", "opera")]
    many = [
        chunk(2 * n + at, f"d{n}", "T", f"{text} ", f"An opera ({at}). ", part=at + 1, parts=2)
        for n, parts in enumerate(texts)
        for at, text in enumerate(parts)
    ]
    index = index_of(*many)
    tool = LogicalSearch(index, plain_preset(loop_guards=True))
    by_text = index.logical_search("opera", per_document=1).hits
    result = tool.run({"query": "opera", "show": "counts"})
    lines = result.text.splitlines()
    assert lines[0] == "6 passages: documents 1 to 3 of 3"
    assert lines[1:] == [f"[{hit.id}] T: 2" for hit in by_text]
    assert (result.ids, result.total) == (tuple(hit.id for hit in by_text), 6)
    assert tool.run({"query": "opera", "show": "counts", "after": "2"}).text.splitlines() == [
        "6 passages: documents 3 to 3 of 3", lines[3]
    ]  # fmt: skip
    assert tool.run({"query": "opera", "show": "counts", "after": "3"}).text == (
        "Only 3 documents match this query: there are no further ones."
    )
    by_sentence = index.logical_search("song", show="counts", granularity="sentence")
    assert reply(by_sentence, tool.preset, ReadSet()).text.startswith("2 sentences: documents 1 to")
    part = index.within("doc_id:d1").logical_search("opera", show="counts")
    assert [(hit.doc_id, hit.matches) for hit in part.hits] == [("d1", 2)]
    assert part.to_dict()["documents"] == 1
    assert part.to_dict()["hits"][0]["matches"] == 2


def test_counts_of_more_documents_than_one_request_returns_are_exact() -> None:
    many = [
        chunk(n, f"d{n // 2:04}", "T", f"{'opera ' * (n % 5)}opera. ", part=n % 2 + 1, parts=2)
        for n in range(2400)
    ]
    result = index_of(*many).logical_search("opera", show="counts", top_k=10, offset=1150)
    assert (result.passages, result.total, len(result.hits)) == (1200, 2400, 10)
    assert {hit.matches for hit in result.hits} == {2}


def test_counts_are_of_logical_queries_and_of_all_passages_of_a_document(index: Index) -> None:
    with pytest.raises(ArgumentError, match='per_document does not go with show "counts"'):
        index.logical_search("opera", show="counts", per_document=2)
    keywords = KeywordSearch(index, plain_preset(loop_guards=True))
    assert "counts" not in keywords.parameters["properties"]["show"]["enum"]
    with pytest.raises(ArgumentError, match="keywords does not go with"):
        index.keyword_search(["opera"], show="counts")


def test_a_list_of_more_than_can_be_paged_through_is_in_corpus_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arag_search.search.counting.reply_forms.MAX_REACH", 450)
    many = [chunk(n, f"d[{n}]", "T", "opera " * (n % 7 + 1)) for n in range(451)]
    index = index_of(*many)
    tool = LogicalSearch(index, plain_preset(loop_guards=True))
    after, seen = "", list[str]()
    while True:
        result = tool.run({"query": "opera", "show": "titles", "after": after})
        assert "451 passages, in corpus order" in result.text.splitlines()[0]
        seen += result.ids
        _, more, rest = result.text.rpartition('More: after="')
        if not more:
            break
        after = rest.partition('"')[0]
    assert seen == [f"d[{n}].1" for n in range(451)]
    assert after == "[d［399］.1]"
    ranked = tool.run({"query": "opera", "show": "titles", "after": 1}).text
    assert "in corpus order" not in ranked.splitlines()[0]
    ended = tool.run({"query": "opera", "show": "titles", "after": "d[450].1"})
    assert (ended.status, ended.total) == ("empty", 451)
    page = index.logical_search("opera", show="titles", top_k=2, after="d[0].1")
    assert [hit.id for hit in page.hits] == ["d[1].1", "d[2].1"]
    assert (page.total, page.total_is_exact, page.passages) == (451, True, None)


def test_after_stands_alone_and_names_a_passage(index: Index) -> None:
    tool = LogicalSearch(index, plain_preset(loop_guards=True))
    for more in ({}, {"show": "titles", "sort": "year"}, {"show": "counts"}):
        assert tool.run({"query": "vivaldi", "after": "[griselda.1]", **more}).text == (
            'Tool not run: 1 problem.\n1. after is "[griselda.1]". Allowed: what "More:" says.'
        )
    for more in ({"per_document": 1}, {"offset": 5}):
        with pytest.raises(ArgumentError, match="after goes on with a list in corpus order"):
            index.logical_search("vivaldi", show="titles", after="griselda.1", **more)
    unknown = tool.run({"query": "vivaldi", "show": "titles", "after": "x.1"})
    assert 'No passage has the id "x.1".' in unknown.text
    hidden = LogicalSearch(index.within("lang:en"), plain_preset(loop_guards=True))
    assert hidden.run({"query": "vivaldi", "show": "titles", "after": "scarlatti.1"}).status == (
        "error"
    )


def test_a_search_says_how_passages_were_sorted_and_limited(index: Index) -> None:
    preset = plain_preset(loop_guards=True)

    def shown(**asked: Any) -> ToolResult:
        return reply(index.logical_search("vivaldi", **asked), preset, ReadSet())

    result = shown(sort="year:desc", per_document=1, top_k=1)
    lines = result.text.splitlines()
    assert lines[0] == "1 of 3 passages, sorted by year:desc, at most 1 of a document"
    assert lines[1] == "[griselda.1] Griselda (Vivaldi) (whole document)"
    assert lines[-1] == "More: offset=1."
    assert result.total == 3
    last = shown(per_document=1, offset=1).text.splitlines()
    assert last[0] == "Passage 2 of 3, at most 1 of a document"
    assert last[-1].endswith("revised by the young Carlo Goldoni.")
    assert shown(per_document=1, offset=2).text == (
        "Only 2 passages are shown for this query, at most 1 of a document: there are no further "
        "ones."
    )


def test_a_wrong_sort_comes_back_to_the_model(index: Index) -> None:
    result = LogicalSearch(index, plain_preset(loop_guards=True)).run(
        {"query": "vivaldi", "sort": "colour"}
    )
    assert result.status == "error"
    assert result.text == (
        'Tool not run: 1 problem.\n1. sort names the field "colour", which the index does not '
        "have. Allowed: year, lang, doc_id; with :asc or :desc. Leave it out to rank by score."
    )

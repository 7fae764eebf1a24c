"""Replies stay within their bound and count what they show."""

from __future__ import annotations

import re
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from arag_search.search.index import Index
from arag_search.tokens import count_tokens, cut_to
from arag_search.tools.passages.keyword import KeywordSearch
from arag_search.tools.passages.logical import LogicalSearch
from arag_search.tools.preset import MIN_RESULT_TOKENS, plain_preset
from arag_search.tools.replies.writing import MAX_TITLE_TOKENS, shown_title
from arag_search.tools.tool import ReadSet, Tool
from tests.support.examples import examples
from tests.support.passages import VIVALDI, chunk, index_of, random_chunks


def test_the_longest_snippets_are_shortened_first() -> None:
    long = [f"Opera {number} {'lasted long ' * 12}. " for number in range(3)]
    index = index_of(
        chunk(0, "short", "", "An opera about nothing. ", "A second opera."),
        chunk(1, "long", "", *long),
    )
    full_reply = LogicalSearch(index).run({"query": "opera"})
    tool = LogicalSearch(index, plain_preset(max_result_tokens=MIN_RESULT_TOKENS))
    assert full_reply.tokens < MIN_RESULT_TOKENS
    assert tool.run({"query": "opera"}).text == full_reply.text
    tool.max_result_tokens = 110
    tool.preset = tool.preset.model_copy(update={"max_result_tokens": 110})
    assert tool.run({"query": "opera"}).text == (
        "2 of 2 passages\n"
        "[short.1] (whole document)\n"
        "An opera about nothing. A second opera.\n"
        "[long.1]\n"
        f"{long[0].strip()} {long[1].strip()} (1 left out)"
    )


def test_hits_that_do_not_fit_are_dropped_from_the_end_and_named() -> None:
    index = index_of(*(chunk(n, f"d{n}", "", f"opera {n} " + f"la{n} " * 300) for n in range(20)))
    tool = LogicalSearch(index, plain_preset(max_result_tokens=MIN_RESULT_TOKENS))
    result = tool.run({"query": "opera", "top_k": 20})
    count = len(result.ids)
    assert 4 <= count < 20
    assert result.ids == tuple(f"d{number}.1" for number in range(count))
    lines = result.text.splitlines()
    assert lines[0] == f"{count} of 20 passages"
    assert re.fullmatch(
        rf"Not shown for want of room: \[d{count}\.1\], .* and \d+ more\.", lines[-2]
    )
    assert lines[-1] == f"More: after={count}."
    tool = LogicalSearch(index, plain_preset(max_result_tokens=400))
    result = tool.run({"query": "opera", "top_k": 20})
    dropped = ", ".join(f"[d{number}.1]" for number in range(len(result.ids), 20))
    assert f"\nNot shown for want of room: {dropped}.\n" in result.text


def test_a_long_title_is_truncated_and_its_shown_tokens_count() -> None:
    title = "The opera " + "of the opera " * 200
    result = LogicalSearch(index_of(chunk(0, "d", title, "opera"))).run({"query": "opera"})
    _, header, body = result.text.splitlines()
    shown = header.removeprefix("[d.1] ").removesuffix(" (whole document)")
    assert shown.endswith("opera of ...")
    assert shown == cut_to(title, MAX_TITLE_TOKENS)
    assert result.retrieved_tokens == count_tokens(shown) + count_tokens(body)


def test_the_query_and_the_notes_leave_room_for_hits() -> None:
    index = index_of(*VIVALDI)
    tool = LogicalSearch(index, plain_preset(max_result_tokens=MIN_RESULT_TOKENS))
    dropped = " ".join("." * number for number in range(1, 50))
    for query in ("opera " * 60 + "x", f"opera {dropped}", "opera " + "ඞ" * 1_990):
        result = tool.run({"query": query})
        assert result.tokens <= MIN_RESULT_TOKENS
        assert result.ids[0] in ("griselda.1", "scarlatti.1")
        assert any("opera" in span.text_in(result.text) for span in result.passages)


def test_problems_are_cut_to_the_bound_and_the_mended_query_stays(index: Index) -> None:
    tool = LogicalSearch(index, plain_preset(max_result_tokens=MIN_RESULT_TOKENS))
    result = tool.run({"query": " ".join(f"f{number}:x" for number in range(12))})
    assert result.tokens <= MIN_RESULT_TOKENS
    assert result.text.startswith("Query not run: 12 problems.\n1. column 1,")
    assert result.text.splitlines()[-1].startswith('Write: ("f0 x" OR "f1 x" OR')
    assert result.text.endswith('"f11 x")')
    result = tool.run({f"argument {number}": "x" for number in range(50)})
    assert result.tokens <= MIN_RESULT_TOKENS
    assert result.text.startswith("Tool not run: 51 problems.\n")


@given(st.integers(0, 1_000_000).map(Random), st.sampled_from((200, 300, 700)), st.booleans())
@settings(max_examples=examples(20), deadline=None)
def test_every_reply_of_a_search_keeps_the_bound_shows_a_sentence_and_counts_what_it_shows(
    random: Random, bound: int, full_text: bool
) -> None:
    chunks = {chunk.id: chunk for chunk in random_chunks(random)}
    preset = plain_preset(full_text=full_text, max_result_tokens=bound)
    index = index_of(*chunks.values())
    searches: tuple[tuple[Tool, dict[str, object]], ...] = (
        (LogicalSearch(index, preset), {"query": "opera naïve", "top_k": 20}),
        (KeywordSearch(index, preset), {"keywords": ["opera"], "top_k": 5, "offset": 2}),
    )
    for tool, arguments in searches:
        result = tool.run(arguments)
        assert count_tokens(result.text) == result.tokens <= bound
        if result.status == "empty":
            assert "there are no further ones" in result.text
            continue
        shown = [(span, span.text_in(result.text)) for span in result.passages]
        assert result.retrieved_tokens == sum(
            count_tokens(shown_title(span.title)) + count_tokens(text)
            for span, text in shown
            if span.left_out is None
        )
        for span, text in shown:
            if span.left_out is None:
                content = chunks[span.id].content.strip()
                assert bool(text) == bool(content)
                assert not span.whole or text == content
        if len(result.ids) < len(chunks) and "Not shown" in result.text:
            more = re.search(r"\nMore: \w+=(\d+)\.", result.text)
            assert more
            assert int(more[1]) == len(result.ids) + (2 if "offset" in arguments else 0)


# Passages in full


def test_full_passages_are_whole_or_left_out_except_the_first() -> None:
    texts = [f"opera {'la ' * 118}{number}" for number in ("one", "two", "three")]
    index = index_of(*(chunk(n, f"d{n}", "", text) for n, text in enumerate(texts)))
    preset = plain_preset(full_text=True, max_result_tokens=300)
    assert LogicalSearch(index, preset).run({"query": "opera"}).text == (
        f"2 of 3 passages\n[d0.1] (whole document)\n{texts[0]}\n"
        f"[d1.1] (whole document)\n{texts[1]}\n"
        "Not shown for want of room: [d2.1].\nMore: after=2."
    )
    index = index_of(*(chunk(n, f"d{n}", "", f"{text} " * 3) for n, text in enumerate(texts)))
    read_set = ReadSet()
    result = LogicalSearch(index, preset).run({"query": "opera"}, read_set)
    assert result.ids == ("d0.1",)
    assert result.text.endswith(" ...\nNot shown for want of room: [d1.1], [d2.1].\nMore: after=1.")
    assert not any(read_set.seen.values())

"""Replies on passages that know their place: headers, names of units, lists of lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arag_search.corpus import Chunk, PassageOutline, PassageUnit
from arag_search.search.counting.reply_forms import Show
from arag_search.tools.passages.keyword import KeywordSearch
from arag_search.tools.passages.logical import LogicalSearch
from arag_search.tools.passages.search import reply as reply_of
from arag_search.tools.preset import plain_preset
from arag_search.tools.replies.writing import header_line
from arag_search.tools.tool import ReadSet
from tests.support.passages import chunk, index_of

RESTART = "It is read at server start.\n"


def settings(document: int, doc_id: str, *names: str, part: int = 1, parts: int = 1) -> Chunk:
    """Return a passage of settings, each a name and three sentences."""
    sentences: list[str] = []
    units: list[PassageUnit] = []
    for name in names:
        first = len(sentences)
        units.append(PassageUnit(first, first + 4, f"{name} (integer)"))
        sentences += [f"{name} (integer)\n", f"A size of {name}. ", "The default is ten. ", RESTART]
    passage = chunk(document, doc_id, "Resources", *sentences, part=part, parts=parts)
    outline = PassageOutline("Settings > Memory", 10 * part, tuple(units))
    return replace(passage, outline=outline)


PASSAGES = (
    settings(0, "resources.html", "shared_size", "work_size", parts=2),
    settings(0, "resources.html", "huge_size", part=2, parts=2),
    chunk(1, "other.html", "Start", "A server start takes long. ", "It is read."),
)


def by_sentence(query: str, show: Show = "text") -> str:
    result = index_of(*PASSAGES).logical_search(query, show=show, granularity="sentence")
    return reply_of(result, plain_preset(loop_guards=True), ReadSet()).text


def reply(query: str, *passages: Chunk, **arguments: object) -> list[str]:
    tool = LogicalSearch(index_of(*(passages or PASSAGES)), plain_preset(loop_guards=True))
    return tool.run({"query": query, **arguments}).text.splitlines()


@pytest.fixture
def open_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arag_search.tools.replies.chosen.GAP_TOKENS", 0)


def test_a_header_says_where_a_passage_stands_and_does_not_repeat_the_id() -> None:
    outline = PassageOutline("class Trainer > def train", 120)
    assert header_line("src/trainer.py.3", "src/trainer.py", 3, 9, outline) == (
        "[src/trainer.py.3] class Trainer > def train, part 3 of 9, line 120"
    )
    assert header_line("a.md.1", "Guide", 1, 1, PassageOutline("", 1)) == "[a.md.1] Guide"
    long = PassageOutline(" > ".join(f"chapter {number}" for number in range(40)), 7)
    header = header_line("a.md.2", "Guide", 2, 3, long)
    assert header.startswith("[a.md.2] Guide > chapter 3")
    assert header.endswith("> chapter 39, part 2 of 3, line 7")


@pytest.mark.usefixtures("open_gaps")
def test_a_name_that_matches_brings_the_text_below_it_but_no_other_entry() -> None:
    first = reply("shared_size", top_k=1)
    assert first[0] == "1 of 1 passage"
    assert first[1].startswith("[resources.html.1] Resources > Settings > Memory, part 1 of 2")
    text = "\n".join(first[2:])
    assert "shared_size (integer)\nA size of shared_size. The default is ten." in text
    assert "work_size" not in text


@pytest.mark.usefixtures("open_gaps")
def test_a_sentence_in_an_entry_stands_below_the_name_of_the_entry() -> None:
    body = "\n".join(reply('"size of work_size"', top_k=1))
    assert "(4 left out) work_size (integer)\nA size of work_size." in body
    assert "> work_size (integer)\nA size of work_size." in by_sentence('"size of work_size"')


@pytest.mark.usefixtures("open_gaps")
def test_a_clause_on_titles_shows_the_entry_that_it_names() -> None:
    body = "\n".join(reply("title:work_size", top_k=1))
    assert "(4 left out) work_size (integer)\nA size of work_size." in body
    assert "shared_size" not in body


def test_names_and_paths_are_searched_as_titles_in_normal_form_only() -> None:
    assert reply("title:memories")[0] == "2 of 2 passages"
    assert reply("title:huge_size")[1].startswith("[resources.html.2]")
    assert reply('title:"=memory"')[0].startswith("No passage matches")
    assert reply('title:"resources settings"')[0].startswith("No passage matches")
    assert reply('title:"settings memory"')[0].startswith("2 of 2")


def test_a_list_of_lines_has_each_sentence_with_its_entry_and_its_line_once() -> None:
    assert reply('"read at server start"', show="lines") == [
        "2 of 2 passages",
        "Resources:",
        "[resources.html.1]",
        "11: shared_size (integer): It is read at server start.",
        "13: work_size (integer): same",
        "[resources.html.2]",
        "21: huge_size (integer): same",
    ]


def test_a_list_of_lines_by_sentence_counts_sentences_and_numbers_those_of_records() -> None:
    lines = by_sentence('"server start"', show="lines")
    assert lines.startswith("3 passages: 4 sentences match\n")
    assert lines.count("\nStart:\n[other.html.1]\n1: A server start takes long.") == 1
    record = chunk(0, "d", "T", "Nothing. ", "An opera. ")
    assert reply("opera", record, show="lines")[1:4] == ["T:", "[d.1]", "2: An opera."]


def test_a_long_line_of_code_is_shown_from_the_part_of_a_name_that_matches() -> None:
    long = chunk(0, "pool.py", "pool.py", f"{'and so on ' * 50}until SharedSize is set. ")
    assert "SharedSize is set" in "\n".join(reply("size", long, show="lines"))


def test_keywords_list_lines_too_and_a_list_keeps_its_bound() -> None:
    tool = KeywordSearch(index_of(*PASSAGES), plain_preset(loop_guards=True))
    text = tool.run({"keywords": ["default"], "show": "lines"}).text
    assert "\n12: shared_size (integer): The default is ten.\n" not in text
    assert "\n11: shared_size (integer): The default is ten.\n13: work_size (integer): same" in text
    many = [settings(n, f"d{n}.html", *(f"s_{n}_{k}" for k in range(9))) for n in range(200)]
    result = LogicalSearch(index_of(*many), plain_preset(loop_guards=True)).run(
        {"query": '"server start"', "show": "lines"}
    )
    assert result.tokens <= 4_000
    assert result.text.splitlines()[-1].startswith("More: after=")
    assert {span.kind for span in result.passages} == {"lines"}
    assert result.passages[0].text_in(result.text).startswith("s_0_0 (integer): It is read")

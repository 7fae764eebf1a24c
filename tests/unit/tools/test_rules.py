"""Replies that say of every passage what is left out of it, and show nothing twice."""

from __future__ import annotations

import re
from random import Random

import pytest

from arag_search.corpus import Chunk
from arag_search.search.index import Index
from arag_search.tools.passages.search import reply
from arag_search.tools.preset_files import load_preset
from arag_search.tools.replies.chosen import begins_with_pronoun
from arag_search.tools.replies.spans import check_spans
from arag_search.tools.tool import ReadSet, Tool, ToolResult
from arag_search.tools.toolbox import tools_of
from tests.support.passages import VIVALDI, chunk, index_of, random_chunks

FILLER = [
    f"The canal number {number} is long, and boats of many kinds cross it. " for number in range(30)
]
LONG = chunk(9, "canals", "The canals", "The canals are old. ", "They were dug by hand. ", *FILLER,
             "A gondola is black. ", "In 1562 that became a law.")  # fmt: skip


def tools(*chunks: Chunk, whole_up_to: int = 160) -> dict[str, Tool]:
    preset = load_preset("logical_read")
    preset = preset.model_copy(update={"whole_up_to_tokens": whole_up_to})
    return tools_of(preset, index_of(*chunks))


def search(offered: dict[str, Tool], query: str, read_set: ReadSet | None = None) -> ToolResult:
    return offered["logical_search"].run({"query": query}, read_set)


def read(offered: dict[str, Tool], read_set: ReadSet | None = None, **arguments: object) -> str:
    return offered["chunk_read"].run(arguments, read_set).text


def test_a_short_passage_is_whole_and_a_long_one_counts_its_gaps() -> None:
    assert search(tools(*VIVALDI, LONG), "older OR gondola").text == (
        "2 of 2 passages\n"
        "[scarlatti.1] Griselda (Scarlatti) (whole document)\nThis opera is older.\n"
        "[canals.1] The canals\n"
        "The canals are old. They were dug by hand. (30 left out) A gondola is black. In 1562 that "
        "became a law."
    )


def test_without_a_length_up_to_which_passages_are_whole_all_are_snippets() -> None:
    long = chunk(1, "d", "Opera", "An opera by Vivaldi. ", *FILLER)
    offered = tools(long, whole_up_to=0)
    assert "Opera\nAn opera by Vivaldi. The canal number 0" in search(offered, "vivaldi").text


def test_a_sentence_after_a_match_is_shown_if_it_begins_with_a_pronoun() -> None:
    text = (
        "The long history of the architect who built it is told in every book about the town. " * 3
    )
    passage = chunk(1, "d", "Bridge", text, "He was born in Kuwait. ", *FILLER)
    assert f"{text}He was born in Kuwait. (30 left out)" in search(tools(passage), "architect").text
    assert begins_with_pronoun('"Sie kam.')
    assert not begins_with_pronoun("Hers Street is long.".replace("Hers", "Herz"))
    assert not begins_with_pronoun("")


def test_a_snippet_is_never_the_title_alone() -> None:
    name = "The Very Long Title of a Film " * 12
    passage = chunk(1, "d", name, f"{name}! ", "It is a film of 1919. ", *FILLER)
    assert "It is a film of 1919." in search(tools(passage), '"very long title"').text


def test_what_is_visible_is_not_shown_again_sentence_by_sentence() -> None:
    offered, read_set = tools(LONG), ReadSet()
    first = search(offered, "gondola", read_set)
    assert first.passages[0].sentences == (33, 34)
    again = search(offered, "gondola AND 1562", read_set)
    assert again.text.splitlines()[1:] == [
        "[canals.1] The canals (what matches was shown before)"
    ]  # fmt: skip
    assert (again.passages[0].left_out, again.retrieved_tokens < 5) == ("shown", True)
    more = search(offered, "dug OR gondola", read_set)
    assert "They were dug by hand. The canal number 0" in more.text
    assert "2 shown before)" in more.text
    rest = read(offered, read_set, chunk_ids=["canals.1"])
    assert "gondola" not in rest
    assert "dug" not in rest
    assert read(offered, read_set, chunk_ids=["canals.1"]) == "[canals.1] The canals (shown before)"


def test_clients_that_may_have_forgotten_see_everything_again_with_a_mark() -> None:
    offered, read_set = tools(*VIVALDI), ReadSet(is_kept=False)
    search(offered, "older", read_set)
    line = "[scarlatti.1] Griselda (Scarlatti) (whole document, shown before)"
    assert search(offered, "older", read_set).text.splitlines()[1:] == [
        line,
        "This opera is older.",
    ]
    assert read(offered, read_set, chunk_ids=["scarlatti.1"]).endswith("This opera is older.")


def test_a_changed_text_counts_as_new() -> None:
    read_set = ReadSet()
    search(tools(chunk(0, "d", "Opera", "An old opera.")), "opera", read_set)
    text = search(tools(chunk(0, "d", "Opera", "A new opera.")), "opera", read_set).text
    assert text.endswith("[d.1] Opera (whole document)\nA new opera.")


def test_near_duplicates_share_a_line_and_stay_hits() -> None:
    copies = [chunk(n, f"d{n}", f"Copy {n}", *FILLER, f"Edition {n}. ") for n in range(3)]
    other = chunk(7, "x", "Canal", "Another canal.")
    result = search(tools(*copies, other), "canal")
    assert sorted(result.ids) == ["d0.1", "d1.1", "d2.1", "x.1"]
    assert result.total == 4
    assert "\nNearly the same text: [d1.1], [d2.1]." in result.text
    assert [span.id for span in result.passages if span.left_out == "same"] == ["d1.1", "d2.1"]
    check_spans(result.passages, result.text)


def test_of_near_copies_the_one_with_words_as_typed_is_shown() -> None:
    passages = [
        chunk(n, f"d{n}", "", *FILLER, text)
        for n, text in enumerate(["Dori and Dori. ", "Dori came. ", "Doris came. "])
    ]
    result = search(tools(*passages), "Doris")
    assert result.ids == ("d0.1", "d2.1", "d1.1")  # the first one has a better score
    assert result.text.endswith(" Doris came.\nNearly the same text: [d0.1], [d1.1].")
    check_spans(result.passages, result.text)


def test_different_pages_that_share_a_sentence_do_not_hide_each_other() -> None:
    shared = "This setting of the canal takes effect at the next start of the server. "
    pages = [
        chunk(1, "locks.html", "Locks", shared),
        chunk(2, "ports.html", "Ports", shared),
        chunk(3, "copies/ports.html", "Locks", shared),
        chunk(4, "a", "", "Canal."),
        chunk(5, "b", "", "Canal."),
    ]
    text = search(tools(*pages), "canal").text
    assert "Nearly the same text" not in text
    assert text.count("takes effect") == 3


def test_one_page_in_two_formats_shares_a_line_however_short_it_is() -> None:
    pages = [
        chunk(1, "locks.html", "Locks", "The canal has a lock: max_boats, 5 by default."),
        chunk(
            2,
            "_sources/locks.rst.txt",
            "Locks",
            "The canal has a lock: ``max_boats``, *5* by default.",
        ),
    ]
    result = search(tools(*pages), "canal")
    assert result.ids == ("locks.html.1", "_sources/locks.rst.txt.1")
    assert "\nNearly the same text: [_sources/locks.rst.txt.1]." in result.text
    check_spans(result.passages, result.text)


def test_a_part_of_a_chunk_is_read_by_sentences_or_near_words() -> None:
    offered = tools(LONG)
    part = read(offered, chunk_ids=["canals.1"], near="sentence 33")
    assert part.startswith("[canals.1] The canals\n(32 left out) ")
    assert "has 34" in read(offered, chunk_ids=["canals.1"], near="sentence 35")
    near = read(offered, chunk_ids=["canals.1"], near="black gondola law")
    assert near.endswith("A gondola is black. In 1562 that became a law.")
    assert "(24 left out)" in near
    assert "no sentence of passage" in read(offered, chunk_ids=["canals.1"], near="violin")
    assert "It takes one" in read(offered, chunk_ids=["canals.1", "x"], near="law")


@pytest.mark.parametrize("seed", range(30))
def test_no_sentence_is_shown_twice_and_every_reply_is_bounded(seed: int) -> None:
    random = Random(seed)
    chunks = random_chunks(random)
    index: Index = index_of(*chunks)
    preset = load_preset("logical_read").model_copy(
        update={
            "whole_up_to_tokens": random.choice((0, 30, 160)),
            "max_result_tokens": random.choice((200, 4000)),
        }
    )
    offered, read_set = tools_of(preset, index), ReadSet()
    texts = {passage.id: passage.sentences() for passage in chunks}
    shown: set[tuple[str, str]] = set()
    for _ in range(8):
        before = set(shown)
        if random.random() < 0.7:
            query = random.choice(("opera", "opera OR la", "naïve", "a.b.c"))
            result = search(offered, query, read_set)
        else:
            result = offered["chunk_read"].run({"chunk_ids": [random.choice(chunks).id]}, read_set)
        check_spans(result.passages, result.text)
        assert result.tokens <= preset.max_result_tokens
        for span in result.passages:
            whole = True
            for number in span.sentences or ():
                sentence = texts[span.id][number - 1].strip()
                if sentence in span.text_in(result.text):
                    assert (span.id, sentence) not in before
                    shown.add((span.id, sentence))
                else:
                    whole = False  # cut, because it alone is too long
            assert span.whole is not True or whole


def test_a_table_of_one_long_sentence_that_differs_by_a_comma_is_a_near_copy() -> None:
    rows = " ".join(f"Player {n} $26,540,10{n} Team Number {n}" for n in range(12))
    pages = [chunk(n, f"d{n}", "Players by season", rows.replace("5 $", f"5{end} $"))
             for n, end in enumerate(("", ", Jr."))]  # fmt: skip
    result = search(tools(*pages), "player")
    assert "\nNearly the same text: [d1.1]." in result.text


def test_a_snippet_that_begins_with_a_last_name_or_a_pronoun_shows_the_sentence_before_it() -> None:
    name = chunk(1, "apa", "Psychology", *FILLER[:2], "It was founded by G. Stanley Hall. ",
                 "Hall, its first president, taught at Clark. ", *FILLER)  # fmt: skip
    assert "founded by G. Stanley Hall. Hall, its" in search(tools(name), "clark").text
    pronoun = chunk(1, "p", "Psychology", *FILLER[:2], "The society is old. ",
                    "It was moved to Clark. ", *FILLER)  # fmt: skip
    assert "The society is old. It was moved" in search(tools(pronoun), "clark").text
    titled = chunk(1, "h", "G. Stanley Hall", *FILLER[:2], "This is G. Stanley Hall. ",
                   "Hall taught at Clark. ", *FILLER)  # fmt: skip
    assert "(3 left out) Hall taught" in search(tools(titled), "clark").text


def test_a_search_for_a_title_lists_what_has_another_one() -> None:
    same = chunk(1, "iron", "Iron Maiden", "A band of Leyton. ")
    album = chunk(2, "album", "Iron Maiden (album)", "Their first album. ")
    read_set = ReadSet()
    result = search(tools(same, album), 'title:"iron maiden"', read_set)
    assert result.text.splitlines()[1:] == [
        "[iron.1] Iron Maiden (whole document)",
        "A band of Leyton.",
        "Other titles:",
        "[album.1] Iron Maiden (album)",
    ]
    assert (result.ids, result.passages[1].kind) == (("iron.1", "album.1"), "title")
    assert "album.1" not in read_set.seen or not read_set.seen["album.1"]
    assert "Their first album." in search(tools(same, album), "title:iron").text


def test_parts_of_which_the_page_shows_all_are_said_to_be_shown() -> None:
    pages = [
        chunk(n, f"d{n}", f"Page {n}", f"An opera. {'Vivaldi. ' * (n == 0)}") for n in range(9)
    ]
    text = search(tools(*pages), 'opera OR "vivaldi"').text
    assert text.splitlines()[1] == 'All shown: "vivaldi" 1.'


def test_parts_also_count_what_earlier_replies_showed() -> None:
    offered, read_set = tools(*(
        chunk(n, f"d{n}", f"Page {n}", "He wrote cantatas. ", "Mozart. " * (n == 2))
        for n in range(3)
    )), ReadSet()  # fmt: skip

    def counted() -> str:
        return search(offered, "mozart AND cantatas", read_set).text.splitlines()[1]

    assert counted() == "Alone: cantatas 3: also Page 0; Page 1."
    search(offered, "wrote", read_set)
    assert counted() == "All shown: cantatas: all 3 shown before."
    read_set.forget(["d2.1"], ())
    assert counted() == "All shown: cantatas 3."
    read_set.forget(["d0.1"], ())
    assert counted() == "Alone: cantatas 3: also Page 0."


def test_matches_that_were_shown_before_are_said_to_be_so() -> None:
    offered, read_set = tools(LONG), ReadSet()
    search(offered, "gondola", read_set)
    tool = offered["logical_search"]
    by_sentence = tool.index.logical_search("gondola", granularity="sentence")
    again = reply(by_sentence, tool.preset, read_set)
    assert again.text.endswith("[canals.1] The canals (what matches was shown before)")
    assert (again.passages[0].left_out, again.passages[0].sentences) == ("shown", ())


def test_a_snippet_has_a_sentence_for_each_condition_of_the_query() -> None:
    passage = chunk(1, "gershwin", "Gershwin", *(f"Gershwin wrote song {n}. " for n in range(12)),
                    "Its end was sad: he died in 1937. ", *FILLER)  # fmt: skip
    text = search(tools(passage), "gershwin AND (died OR death)").text
    assert "he died in 1937" in text
    assert "song 4" not in text


def test_a_sentence_of_which_a_list_shows_a_part_does_not_count_as_shown() -> None:
    long = f"In the north {'and so on ' * 50}a heron, {'of many kinds ' * 20}. "
    offered, read_set = tools(chunk(1, "d", "Birds", long)), ReadSet()
    listed = offered["logical_search"].run({"query": "heron", "show": "lines"}, read_set)
    header, line = listed.text.splitlines()[2:]
    assert header == "[d.1]"
    assert (line.startswith("1: ... "), line.endswith(" ..."), "heron" in line) == (True,) * 3
    assert listed.passages[0].whole is False
    assert "In the north" in search(offered, "heron", read_set).text
    assert "(shown before)" in search(offered, "heron", read_set).text
    near = read(offered, read_set, chunk_ids=["d.1"], near="heron")
    assert near.startswith("[d.1] Birds (whole document, shown before)\nIn the north")


def test_of_a_text_that_is_cut_only_its_complete_sentences_count_as_shown() -> None:
    passage = chunk(1, "d", "T", "No one came. ", f"One {'sings ' * 42}. ", "One ")
    preset = load_preset("logical_read").model_copy(
        update={"full_text": True, "max_result_tokens": 60}
    )
    offered, read_set = tools_of(preset, index_of(passage)), ReadSet()
    assert offered["logical_search"].run({"query": "sings"}, read_set).text.endswith("sings ...")
    assert len(read_set.seen["d.1"]) == 1


@pytest.mark.parametrize(
    ("sentences", "query", "shown"),
    [
        # a gap of as many tokens as its count is closed, also at the ends
        (("Short. ", "A heron came. ", "It flew. ", "And so on. ", "A swan. ", *FILLER),
         "heron swan", "Short. A heron came. It flew. And so on. A swan. The canal number 0"),
        # a colon leads to a block, and not to the paragraph after it
        (("To reload a heron:\n\n", "$ load -a\n", "$ load -b\n\n\n"), "heron", ""),
        # a line of code brings its block
        (("RAISE 'x'\n", "  USING heron\n", "  WHEN 1;\n\n\n"), "heron", ""),
        # a row of a table brings those below it
        (("heron | grey\n\n", "swan | white\n\n", "crow | black\n\n"), "heron", ""),
        # a term brings its definition, a term within a line the rest of the paragraph
        (("--heron\n\n", "Seconds to wait. ", "They are three.\n\n"), "heron", ""),
        (("EHERON (No bird): Too many. ", "Run more. ", "Then wait.\n\n"), "eheron", ""),
        # what begins in the middle of a sentence has its beginning
        (("then the command\n\n", "git rebase\n\n", "would remove a heron.\n\n"), "heron", ""),
    ],
)  # fmt: skip
def test_what_stands_beside_a_match_and_belongs_to_it_is_shown(
    sentences: tuple[str, ...], query: str, shown: str
) -> None:
    if not shown:
        shown = f"(1 left out) {''.join(sentences).strip()} (1 left out)"
        sentences = (f"{'Boats ' * 400}pass. ", *sentences, f"{'Boats ' * 400}pass. ")
    passage = chunk(1, "d", "Birds", *sentences)
    assert shown in search(tools(passage, whole_up_to=16), query).text


def test_the_first_sentence_of_a_passage_that_the_query_names_is_shown() -> None:
    passage = chunk(
        1, "canals", "Old canals", "They are of 1500. ", "Boats pass. ", *FILLER, "A gondola. "
    )
    assert "\nThey are of 1500." in search(tools(passage), 'title:"old canals" AND gondola').text
    assert "\nThey are of 1500. Boats pass." in search(tools(passage), 'title:"old canals"').text


def test_of_manuals_the_first_passage_is_whole_and_the_fourth_brief() -> None:
    code = "def heron():\n    return 1\n\n\n"
    texts = [*(f"A heron of kind {n}. {'La ' * 30}. " for n in range(4)), "Other. " + "la " * 30]
    manuals = [chunk(n, f"d{n}", "", code, *texts, f"End {n}. " + "la " * 9) for n in range(5)]
    blocks = search(tools(*manuals, whole_up_to=64), "heron kind").text.split("\n[")[1:]
    assert ["(whole document)" in block for block in blocks] == [True] + [False] * 4
    assert [len(re.findall("of kind", block)) for block in blocks] == [4, 3, 3, 1, 1]


def test_a_passage_that_a_reply_completes_says_so() -> None:
    offered, read_set = tools(LONG), ReadSet()
    search(offered, "gondola", read_set)
    rest = read(offered, read_set, chunk_ids=["canals.1"])
    assert rest.splitlines()[0] == "[canals.1] The canals (all shown now)"


def test_a_list_has_as_many_passages_as_are_asked_for() -> None:
    pages = [chunk(n, f"d{n}", f"Page {n}", "An opera. ") for n in range(9)]
    tool = tools(*pages)["logical_search"]
    for show in ("titles", "lines", "counts"):
        listed = tool.run({"query": "opera", "show": show, "top_k": 5})
        assert (len(listed.ids), listed.text.splitlines()[-1]) == (5, "More: after=5.")
    assert len(tool.run({"query": "opera", "show": "titles"}).ids) == 9

"""arag-search search with one query at a time."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from arag_search.tokens import count_tokens
from arag_search.tools.preset import DEFAULT_RESULT_TOKENS
from arag_search.tools.replies.apart import MARK
from tests.support.commands import NOT_ALTERNATIVE, Command, CommandResult
from tests.support.hostile_passages import FORGED

pytestmark = pytest.mark.usefixtures("commands_folder")


def test_search_prints_the_reply_of_the_tool(arag: Command) -> None:
    done = arag("search", "my-index", '"antonio vivaldi" AND librett*', "--top-k", "2")
    passages = arag("read", "my-index", "vivaldi.1", "orlando-vivaldi.1", "--json").json["passages"]
    assert done == CommandResult(
        0,
        "2 of 8 passages\n"
        f"[vivaldi.1] Antonio Vivaldi (whole document)\n{passages[0]['content']}\n"
        "[orlando-vivaldi.1] Orlando furioso (Vivaldi)\n"
        f"{passages[1]['content'].partition('Ariosto.')[0]}Ariosto. (2 left out)\n"
        "More: offset=2.\n",
        "",
    )


def test_words_are_joined_and_options_may_be_anywhere(arag: Command) -> None:
    expected = arag("search", "my-index", "griselda NOT title:scarlatti")
    assert expected.lines[0] == "2 of 2 passages for (griselda AND NOT title:scarlatti)"
    for arguments in (
        ["search", "my-index", "griselda", "NOT", "title:scarlatti"],
        ["search", "--top-k", "5", "my-index", "griselda", "--offset=0", "NOT title:scarlatti"],
        ["search", "my-index", "--", "-title:scarlatti", "AND", "griselda"],
        ["search", "--tool=logical", "--", "my-index", "-title:scarlatti AND griselda"],
    ):
        assert arag(*arguments) == expected


def test_a_search_without_hits_says_why_and_ends_with_1_as_grep_does(arag: Command) -> None:
    done = arag("search", "my-index", '"antonio vivaldi" AND title:librettist')
    assert (done.code, done.err) == (1, "")
    assert done.lines[:4] == [
        "No passage matches this query.",
        'Alone: "antonio vivaldi" 13; title:librettist occurs nowhere.',
        "Nearest, without title:librettist:",
        "[vivaldi.1] Antonio Vivaldi (whole document)",
    ]


def test_a_query_with_problems_is_not_run_and_ends_with_2(arag: Command) -> None:
    assert arag("search", "my-index", "vivaldi OR NOT opera OR author:Walker") == CommandResult(
        2,
        "",
        "Query not run: 2 problems.\n"
        f'1. column 12, "NOT opera": {NOT_ALTERNATIVE}\n'
        '2. column 25, "author:": there is no field "author". Fields: title, content, doc_id, '
        "year (number), kind (keyword). Text with a colon is quoted.\n"
        'Write: ((vivaldi AND NOT opera) OR "author Walker")\n',
    )


def test_the_json_of_a_search_has_every_key(arag: Command) -> None:
    done = arag("search", "my-index", "title:vivaldi librett*", "--top-k", "1", "--json")
    assert done.code == 0
    result = done.json
    assert result["milliseconds"] > 0
    assert result["hits"][0]["score"] == pytest.approx(2.2616, abs=1e-4)
    result["milliseconds"] = result["hits"][0]["score"] = 0
    assert result == {
        "query": "title:vivaldi librett*",
        "understood": "(title:vivaldi OR librett*)",
        "total": 9,
        "total_is_exact": True,
        "total_text": "9",
        "total_unit": "passages",
        "offset": 0,
        "hits": [
            {
                "id": "vivaldi.1",
                "doc_id": "vivaldi",
                "title": "Antonio Vivaldi",
                "part": 1,
                "parts": 1,
                "score": 0,
                "snippet": "... He also composed several dozen operas and worked with many "
                "different librettists. ...",
                "metadata": {"year": 1678, "kind": "person"},
                "highlights": {"title": [[8, 15]], "snippet": [[73, 84]]},
            }
        ],
        "notes": [
            'title: covers only "vivaldi"; for more words write title:(two words) or title:"two '
            'words".'
        ],
        "problems": [],
        "feedback": None,
        "branches": [
            {"clause": "title:vivaldi", "count": 4},
            {"clause": "librett*", "count": 8},
        ],
        "retrieved_tokens": 22,
        "milliseconds": 0,
        "state": None,
    }
    assert list(result) == ["query", "understood", "total", "total_is_exact", "total_text",
                            "total_unit", "offset", "hits", "notes", "problems", "feedback",
                            "branches", "retrieved_tokens", "milliseconds", "state"]  # fmt: skip


def test_the_json_of_a_refused_query_holds_its_problems(arag: Command) -> None:
    done = arag("search", "my-index", "vivaldi OR NOT opera", "--json", "--offset", "3")
    assert (done.code, done.err) == (2, "")
    assert done.json == {
        "query": "vivaldi OR NOT opera",
        "understood": None,
        "total": 0,
        "total_is_exact": True,
        "total_text": "0",
        "total_unit": "passages",
        "offset": 3,
        "hits": [],
        "notes": [],
        "problems": [
            {
                "column": 12,
                "piece": "NOT opera",
                "message": NOT_ALTERNATIVE,
                "kind": "NOT_ALTERNATIVE",
                "values": {},
            }
        ],
        "mended": "(vivaldi AND NOT opera)",
        "feedback": None,
        "retrieved_tokens": 0,
        "milliseconds": 0.0,
        "state": None,
    }


def test_the_json_of_a_search_without_hits_holds_the_feedback(arag: Command) -> None:
    done = arag("search", "my-index", "operetta AND vivaldi", "--granularity", "sentence", "--json")
    assert done.code == 1
    result = done.json
    assert (result["total"], result["total_unit"], result["hits"]) == (0, "sentences", [])
    assert result["feedback"] == {
        "text": "Alone: operetta occurs nowhere; vivaldi 33. With granularity chunk: 0.",
        "alone": [
            {"clause": "operetta", "count": 0, "excluded": False},
            {"clause": "vivaldi", "count": 33, "excluded": False},
        ],
        "without": [],
        "in_chunks": 0,
        "missing_values": [],
    }


def test_a_value_that_a_field_lacks_is_answered_with_the_nearest(arag: Command) -> None:
    assert arag("search", "my-index", "kind:PERSONS") == CommandResult(
        1,
        "No passage matches this query.\n"
        'Note: kind has no value "PERSONS"; nearest: "person" (32 passages).\n',
        "",
    )
    feedback = arag("search", "my-index", "year:19985", "--json").json["feedback"]
    assert feedback["missing_values"] == [
        {
            "clause": "year:19985",
            "field": "year",
            "text": "year has no value 19985; values: 421 to 1982",
            "nearest": [],
            "least": "421",
            "greatest": "1982",
        }
    ]


def test_passages_are_sorted_by_a_field_and_limited_per_document(arag: Command) -> None:
    options = ("--sort", "year:desc", "--per-document", "1", "--top-k", "2")
    done = arag("search", "my-index", "opera", *options)
    assert done.lines[0] == "2 of 14 passages, sorted by year:desc, at most 1 of a document"
    result = arag("search", "my-index", "opera", *options, "--json").json
    years = [hit["metadata"]["year"] for hit in result["hits"]]
    assert years == sorted(years, reverse=True)
    assert (result["sort"], result["per_document"]) == ("year:desc", 1)
    for wrong in (
        ["--sort", "title"],
        ["--per-document", "0"],
        ["--tool", "keyword", "--sort", "year"],
    ):
        assert arag("search", "my-index", "opera", *wrong).code == 2


def test_words_counts_words_with_their_forms(arag: Command) -> None:
    words = ("librett*", "carlo goldoni", "vivaldi AND opera", "vivladi")
    assert arag("words", "my-index", *words).lines == [
        "Every number counts passages.",
        "librett*: 8; libretto 4, librettos 3, librettists 1",
        '"carlo goldoni": 4 (title 1, text 4)',
        "(vivaldi AND opera): 9",
        "vivladi: 0; nearest vivaldi 13",
    ]
    done = arag("words", "my-index", "librett*", "--filter", "year:<1700", "--json")
    assert done.json == {
        "location": "my-index",
        "filter": "year:<1700",
        "state": None,
        "words": [
            {
                "word": "librett*",
                "passages": 3,
                "title": 0,
                "text": 3,
                "forms": {"librettos": 2, "librettists": 1},
                "other_forms": 0,
                "nearest": {},
            }
        ],
    }
    assert arag("words", "my-index", "opera AND").code == 2
    assert arag("words", "my-index", "vivladi").code == 1
    assert arag("words", "my-index", "vivladi", "opera").code == 0


def test_titles_are_listed_with_an_exact_total_and_go_on_in_corpus_order(arag: Command) -> None:
    assert arag("search", "my-index", "opera OR vivaldi", "--show", "titles", "--top-k", "2") == (
        CommandResult(
            0,
            "2 of 18 passages\n"
            "[griselda-vivaldi.1] Griselda (Vivaldi)\n"
            "[orlando-vivaldi.1] Orlando furioso (Vivaldi)\nMore: offset=2.\n",
            "",
        )
    )
    listing = ("search", "my-index", "opera OR vivaldi", "--show", "titles", "--json", "--after")
    first = arag(*listing, "", "--top-k", "17").json
    rest = arag(*listing, first["hits"][-1]["id"]).json
    ids = [hit["id"] for page in (first, rest) for hit in page["hits"]]
    assert (len(set(ids)), first["sort"], rest["total"]) == (18, "corpus order", 18)
    assert arag(*listing, "nowhere.1").code == 2
    assert arag("search", "my-index", "opera", "--after", "vivaldi.1").code == 2
    lists = ("--show", "titles")
    assert arag("search", "my-index", "opera", "--tool", "semantic", *lists).code == 2
    keywords = arag("search", "my-index", "--tool", "keyword", "opera", "Vivaldi", *lists)
    assert keywords.lines[0] == "5 of 18 passages"


def test_documents_are_counted(arag: Command) -> None:
    counts = ("search", "my-index", "opera OR vivaldi", "--show", "counts")
    lines = arag(*counts, "--top-k", "2").lines
    assert lines[0] == "18 passages: documents 1 to 2 of 18"
    assert lines[1] == "[griselda-vivaldi.1] Griselda (Vivaldi): 1"
    result = arag(*counts, "--json").json
    assert (result["documents"], result["hits"][0]["matches"]) == (18, 1)
    assert arag("search", "my-index", "--tool", "keyword", "opera", "--show", "counts").code == 2


def test_fields_are_listed_with_their_values(arag: Command) -> None:
    assert arag("words", "my-index", "--values", "2") == CommandResult(
        0,
        "Fields of 63 passages; every number counts passages.\n"
        "title (text): 63\ncontent (text): 63\ndoc_id (keyword): 63\n"
        "year (number): 63; 421 to 1982\n"
        "kind (keyword): 63; 5 values: person 32, place 10, ...\n",
        "",
    )
    filter = ("--filter", "year:<1700", "--json")
    done = arag("words", "my-index", "--fields", "kind", "--values", "1", *filter)
    assert done.json == {
        "state": None,
        "location": "my-index",
        "filter": "year:<1700",
        "passages": 12,
        "fields": [
            {
                "name": "kind",
                "type": "keyword",
                "passages": 12,
                "distinct": 4,
                "values": [{"value": "person", "passages": 6}],
            }
        ],
    }
    assert arag("words", "my-index", "--fields", "colour").code == 2


def test_each_keyword_is_an_argument(arag: Command) -> None:
    done = arag("search", "my-index", "--tool", "keyword", "Antonio Vivaldi", "libretto",
                "--top-k", "2", "--explain")  # fmt: skip
    assert (done.code, done.err) == (0, "")
    assert done.lines[:3] == [
        "2 of 13 passages",
        'Passages per keyword: "Antonio Vivaldi" 13, "libretto" 4.',
        "[vivaldi.1] Antonio Vivaldi",
    ]
    assert done.out.endswith(
        "\n"
        "Scores:\n"
        "[vivaldi.1] 30.0000\n"
        '  "Antonio Vivaldi": title 15.0000, content 15.0000\n'
        '  "libretto": does not match\n'
        "[griselda-vivaldi.1] 23.0000\n"
        '  "Antonio Vivaldi": content 15.0000\n'
        '  "libretto": content 8.0000\n'
    )


def test_a_logical_search_is_explained_by_leaf_and_field(arag: Command) -> None:
    arguments = ["search", "my-index", "title:vivaldi", "librett*^2", "--top-k", "1", "--explain"]
    done = arag(*arguments)
    assert done.out.endswith(
        "\n"
        "Scores:\n"
        "[vivaldi.1] 3.2616\n"
        "  title:vivaldi: title 1.2616\n"
        "  librett*^2: content 2.0000\n"
    )
    (hit,) = arag(*arguments, "--json").json["hits"]
    assert hit["explanation"] == [
        {"leaf": "title:vivaldi", "scores": {"title": pytest.approx(1.2616, abs=1e-4)}},
        {"leaf": "librett*^2", "scores": {"content": 2.0}},
    ]
    assert "Scores" not in arag("search", "my-index", "operetta", "--explain").out


def test_granularity_sentence_counts_sentences(arag: Command) -> None:
    done = arag("search", "my-index", "vivaldi AND born", "--granularity", "sentence")
    assert done.lines[0] == "1 passage: 1 sentence matches"


def test_granularity_sentence_needs_an_index_with_sentences(arag: Command) -> None:
    assert arag("search", "plain", "beta", "--granularity", "sentence") == CommandResult(
        2,
        "",
        "arag-search: The index has no sentences.\nWhere: plain\nAllowed: granularity chunk\n"
        "Do: Build it again with sentences.\n",
    )


def test_an_index_without_titles_says_so(arag: Command) -> None:
    assert arag("search", "plain", "title:alpha").out == (
        "No passage matches this query.\n"
        "Alone: title:alpha occurs nowhere.\n"
        "Note: no passage of this index has a title: title: finds nothing.\n"
        "Note: 1 passage has alpha in the text: [n0.1].\n"
    )
    assert arag("search", "plain", "beta").out == (
        "2 of 2 passages\n[n1.1] (whole document)\nBeta gamma beta.\n"
        "[n0.1] (whole document)\nAlpha beta. Gamma delta.\n"
    )


def test_a_filter_is_obeyed_by_searches_counts_and_reads(arag: Command) -> None:
    scope = ["--filter", "year:>=1700 AND NOT kind:person"]
    done = arag("search", "my-index", "vivaldi NOT operetta", "--json", *scope)
    assert done.json["total"] == 5
    assert {hit["metadata"]["kind"] for hit in done.json["hits"]} == {"work"}
    assert arag("search", "my-index", "title:goldoni", *scope).out == (
        "No passage matches this query.\nAlone: title:goldoni occurs nowhere.\n"
        "Note: 1 passage has goldoni in the text: [griselda-vivaldi.1].\n"
    )
    assert arag("read", "my-index", "griselda-vivaldi.1", *scope).code == 0
    assert arag("read", "my-index", "vivaldi.1", *scope).err == (
        'arag-search: No passage has the id "vivaldi.1".\nWhere: my-index\n'
        "Allowed: ids as searches show them in brackets\nDo: Search first, and copy the id.\n"
    )


@pytest.mark.parametrize("command", [["search", "my-index", "vivaldi"], ["read", "my-index", "x"]])
@pytest.mark.parametrize(
    ("scope", "problem"),
    [
        ("", 'column 1, "": the query is empty. Write at least one word, phrase or condition.'),
        (
            "vivaldi",
            'column 1, "vivaldi": a filter searches no text. Conditions on metadata are allowed, '
            "with AND, OR and NOT; fields: doc_id, year (number), kind (keyword).",
        ),
    ],
)
def test_a_filter_with_problems_is_refused_never_ignored(
    arag: Command, command: list[str], scope: str, problem: str
) -> None:
    assert arag(*command, "--filter", scope) == CommandResult(
        2, "", f"Query not run: 1 problem.\n1. {problem}\nWhere: the filter\n"
    )


def test_pages_follow_each_other_to_the_end(arag: Command) -> None:
    def page(*options: str) -> CommandResult:
        return arag("search", "my-index", "vivaldi", *options)

    assert page("--offset", "10", "--top-k", "2").lines[0] == "Passages 11 to 12 of 13"
    done = page("--offset", "12")
    assert done.lines[0] == "Passage 13 of 13"
    assert not done.lines[-1].startswith("More: ")
    beyond_end = CommandResult(
        1, "Only 13 passages match this query: there are no further ones.\n", ""
    )
    assert page("--offset", "13") == beyond_end
    assert page("--offset", "9000", "--top-k", "1000") == beyond_end
    assert len(page("--top-k", "1000", "--json").json["hits"]) == 13


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--top-k", "0"], "top_k is 0.\nAllowed: 1 to 1,000"),
        (
            ["--top-k", "1001"],
            "top_k is 1001.\nAllowed: 1 to 1,000\nDo: Ask for the rest with offset.",
        ),
        (
            ["--offset", "-1"],
            "offset is -1 with top_k 5.\nAllowed: offset from 0, and offset + top_k at most 10,000",
        ),
        (
            ["--offset", "9996"],
            "offset is 9996 with top_k 5.\n"
            "Allowed: offset from 0, and offset + top_k at most 10,000\n"
            "Do: Narrow the query instead of paging further.",
        ),
        (
            ["--documents", "--sort", "year"],
            "--sort has no effect here.\nAllowed: --sort with passages, without --documents\n"
            "Do: Leave it out.",
        ),
        (
            ["--tool", "keyword", "--granularity", "sentence"],
            "--granularity has no effect here.\nAllowed: --granularity with --tool logical\n"
            "Do: Leave it out.",
        ),
        (
            ["--tool", "keyword", "--granularity", "chunk"],  # typed, although it is the default
            "--granularity has no effect here.\nAllowed: --granularity with --tool logical\n"
            "Do: Leave it out.",
        ),
        (
            ["--tool", "keyword", *"abcdefghijklmnopqrst"],
            "There are 21 keywords.\nAllowed: 1 to 20 keywords",
        ),
        (["--tool", "keyword", " "], "A keyword is empty.\nAllowed: words or short phrases"),
    ],
)
def test_options_out_of_bounds_or_without_effect_are_refused(
    arag: Command, options: list[str], message: str
) -> None:
    assert arag("search", "my-index", "vivaldi", *options) == CommandResult(
        2, "", f"arag-search: {message}\n"
    )


def test_text_is_bounded_as_for_a_model_unless_more_is_asked_for(arag: Command) -> None:
    done = arag("search", "my-index", "the", "--top-k", "20")
    assert done.lines[0] == "20 of 63 passages"
    assert count_tokens(done.out) <= DEFAULT_RESULT_TOKENS
    done = arag("search", "my-index", "the", "--top-k", "63")
    assert done.lines[0] == "63 of 63 passages"
    assert count_tokens(done.out) > DEFAULT_RESULT_TOKENS


def test_no_command_prints_a_line_that_a_text_forged(arag: Command, tmp_path: Path) -> None:
    signs = "\x1b]8;;https://evil.org\x1b\\ \x9b31m \u202eabc \u2066x \U000e0041"
    text = "\n".join(["An opera.", *FORGED, *(f"\u3164\u2800{line}" for line in FORGED), signs])
    named = {"title": f"Opera\u2028{FORGED[0]}\x1b[2J", "kind": f"new\n{FORGED[0]} {signs}"}
    file = tmp_path / "texts.jsonl"
    file.write_text(json.dumps({"id": "d", "text": text, **named}) + "\n")
    index = str(tmp_path / "index")
    assert arag("index", str(file), "--to", index, "--metadata", "kind:keyword").code == 0
    for arguments in (
        ("search", index, "opera"),
        ("search", index, "opera", "--show", "titles"),
        ("search", index, "opera", "--show", "lines"),
        ("search", index, "opera", "--documents"),
        ("search", index, "opera AND zebra"),
        ("search", index, "kind:none"),
        ("read", index, "d.1"),
        ("read", index, "--document", "d"),
        ("read", index, "--all"),
        ("read", index, "d:1"),
        ("words", index, "opera", "--fields", "kind"),
    ):
        done = arag(*arguments)
        assert not {*FORGED}.intersection(line.strip("\u3164\u2800 ") for line in done.lines)
        assert not any(unicodedata.category(sign) in ("Cc", "Cf") for sign in "".join(done.lines))
        if "d.1" in arguments or "--document" in arguments:
            assert [line for line in done.lines if line.startswith(MARK)][: len(FORGED)] == [
                f"{MARK}{line}" for line in FORGED
            ]


def test_a_field_that_was_not_declared_is_named_with_the_option_that_declares_it(
    arag: Command, tmp_path: Path
) -> None:
    source, place = tmp_path / "a.jsonl", str(tmp_path / "index")
    source.write_text('{"id": "a", "text": "An opera.", "author": "Smith"}\n')
    assert arag("index", str(source), "--to", place).code == 0
    assert "  ignored      metadata that --metadata does not declare: author (1)" in (
        arag("info", place).lines
    )
    assert arag("search", place, "author:smith OR nothing:x").err.endswith(
        'Write: ("author smith" OR "nothing x")\n'
        "Do: Declare the field when you build the index: "
        "arag-search index SOURCE --to INDEX --metadata author:keyword\n"
    )
    assert "Do: " not in arag("search", place, "nothing:x").err

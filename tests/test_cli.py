"""The commands search, read, check, info and demo, as someone at a terminal meets them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from arag_search.cli.app import run
from arag_search.cli.info import check_counts
from arag_search.engines.lucene.reader import IndexStatistics, PartStatistics
from arag_search.errors import IndexDamagedError
from arag_search.manifest import Manifest

SAMPLE = str(files("arag_search") / "sample" / "corpus.jsonl")
NOT_ALTERNATIVE = (
    "a NOT cannot be an alternative of OR; alone it matches nearly every passage. Write AND NOT, "
    "or a space before NOT."
)


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Command = Callable[..., Done]


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working folder with two indexes: ``my-index``, and ``plain`` without titles, sentences."""
    place = tmp_path_factory.mktemp("cli")
    with contextlib.chdir(place), contextlib.redirect_stdout(io.StringIO()):
        assert run(["index", SAMPLE, "--to", "my-index", "--metadata",
                    "year:number,kind:keyword"]) == 0  # fmt: skip
        texts = ("Alpha beta. Gamma delta.", "Beta gamma beta.", "Café & co.")
        lines = (json.dumps({"id": f"n{at}", "text": text}) for at, text in enumerate(texts))
        Path("plain.jsonl").write_text("\n".join(lines))
        assert run(["index", "plain.jsonl", "--to", "plain", "--without", "sentences"]) == 0
        yield place


@pytest.fixture
def arag(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command in this process."""

    def call(*arguments: str) -> Done:
        capsys.readouterr()
        code = run(list(arguments))
        return Done(code, *capsys.readouterr())

    return call


@pytest.fixture
def give_input(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Put bytes on standard input."""

    def give(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return give


def file_of(name: str, *lines: object) -> str:
    """A file of lines; what is not a string becomes JSON."""
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    Path(name).write_text("\n".join(texts), encoding="utf-8")
    return name


# search


def test_search_prints_the_reply_of_the_tool(arag: Command) -> None:
    done = arag("search", "my-index", '"antonio vivaldi" AND librett*', "--top-k", "2")
    assert done == Done(
        0,
        '2 of 8 passages for ("antonio vivaldi" AND librett*)\n'
        "[vivaldi.1] Antonio Vivaldi\n"
        "Antonio Vivaldi was an Italian composer and violinist, born in Venice on 4 March 1678. "
        "... He also composed several dozen operas and worked with many different librettists. "
        "...\n"
        "[orlando-vivaldi.1] Orlando furioso (Vivaldi)\n"
        "Orlando furioso is an opera in three acts by Antonio Vivaldi, listed in the catalogue of "
        "his works as RV 728. ... The libretto is by Grazio Braccioli and draws on the epic poem "
        "by Ludovico Ariosto. ...\n"
        "More: offset=2. Full text: chunk_read.\n",
        "",
    )


def test_words_are_joined_and_options_may_stand_anywhere(arag: Command) -> None:
    expected = arag("search", "my-index", "griselda NOT title:scarlatti")
    assert expected.lines[0] == "2 of 2 passages for (griselda AND NOT title:scarlatti)"
    for arguments in (
        ["search", "my-index", "griselda", "NOT", "title:scarlatti"],
        ["search", "--top-k", "5", "my-index", "griselda", "--offset=0", "NOT title:scarlatti"],
        ["search", "my-index", "--", "-title:scarlatti", "AND", "griselda"],
        ["search", "--tool=logical", "--", "my-index", "-title:scarlatti AND griselda"],
    ):
        assert arag(*arguments) == expected


def test_a_search_without_hits_says_why_and_is_no_failure(arag: Command) -> None:
    assert arag("search", "my-index", '"antonio vivaldi" AND title:librettist') == Done(
        0,
        'No passage matches ("antonio vivaldi" AND title:librettist).\n'
        'Alone: "antonio vivaldi" 13; title:librettist occurs nowhere. '
        "Without title:librettist: 13.\n",
        "",
    )


def test_a_query_with_problems_is_not_run_and_ends_with_2(arag: Command) -> None:
    assert arag("search", "my-index", "vivaldi OR NOT opera OR author:Walker") == Done(
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
            }
        ],
        "notes": [
            'title: covers only "vivaldi"; for more words write title:(two words) or title:"two '
            'words".'
        ],
        "problems": [],
        "feedback": None,
        "retrieved_tokens": 22,
        "milliseconds": 0,
    }
    assert list(result) == ["query", "understood", "total", "total_is_exact", "total_unit",
                            "offset", "hits", "notes", "problems", "feedback", "retrieved_tokens",
                            "milliseconds"]  # fmt: skip


def test_the_json_of_a_refused_query_holds_its_problems(arag: Command) -> None:
    done = arag("search", "my-index", "vivaldi OR NOT opera", "--json", "--offset", "3")
    assert (done.code, done.err) == (2, "")
    assert done.json == {
        "query": "vivaldi OR NOT opera",
        "understood": None,
        "total": 0,
        "total_is_exact": True,
        "total_unit": "passages",
        "offset": 3,
        "hits": [],
        "notes": [],
        "problems": [{"column": 12, "piece": "NOT opera", "message": NOT_ALTERNATIVE}],
        "mended": "(vivaldi AND NOT opera)",
        "feedback": None,
        "retrieved_tokens": 0,
        "milliseconds": 0.0,
    }


def test_the_json_of_a_search_without_hits_holds_the_feedback(arag: Command) -> None:
    result = arag(
        "search", "my-index", "operetta AND vivaldi", "--granularity", "sentence", "--json"
    ).json
    assert (result["total"], result["total_unit"], result["hits"]) == (0, "sentences", [])
    assert result["feedback"] == {
        "text": "Alone: operetta occurs nowhere; vivaldi 33. Without operetta: 33. With "
        "granularity chunk: 0.",
        "alone": [
            {"clause": "operetta", "count": 0, "excluded": False},
            {"clause": "vivaldi", "count": 33, "excluded": False},
        ],
        "without": [{"clause": "operetta", "count": 33}],
        "in_chunks": 0,
    }


def test_keywords_are_arguments_each(arag: Command) -> None:
    done = arag("search", "my-index", "--tool", "keyword", "Antonio Vivaldi", "libretto",
                "--top-k", "2", "--explain")  # fmt: skip
    assert done == Done(
        0,
        '2 of 13 passages for "Antonio Vivaldi", "libretto"\n'
        "[vivaldi.1] Antonio Vivaldi\n"
        "Antonio Vivaldi was an Italian composer and violinist, born in Venice on 4 March 1678. "
        "...\n"
        "[griselda-vivaldi.1] Griselda (Vivaldi)\n"
        "Griselda is an opera in three acts by Antonio Vivaldi. Its libretto had been written by "
        "Apostolo Zeno in 1701 and was revised for this production by the young Carlo Goldoni. "
        "...\n"
        "More: offset=2. Full text: chunk_read.\n"
        "\n"
        "Scores:\n"
        "[vivaldi.1] 30.0000\n"
        '  "Antonio Vivaldi": title 15.0000, content 15.0000\n'
        '  "libretto": no match\n'
        "[griselda-vivaldi.1] 23.0000\n"
        '  "Antonio Vivaldi": content 15.0000\n'
        '  "libretto": content 8.0000\n',
        "",
    )


def test_substring_matching_finds_parts_of_words(arag: Command) -> None:
    keyword = ["search", "my-index", "--tool", "keyword", "tonio vi"]
    assert arag(*keyword).out == 'No passage matches "tonio vi".\n'
    assert arag(*keyword, "--matching", "substring", "--top-k", "1").lines[:2] == [
        '1 of 13 passages for "tonio vi"',
        "[vivaldi.1] Antonio Vivaldi",
    ]


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
    assert done.lines[0] == "1 passage for (vivaldi AND born): 1 sentence matches"


def test_granularity_sentence_needs_an_index_with_sentences(arag: Command) -> None:
    assert arag("search", "plain", "beta", "--granularity", "sentence") == Done(
        1,
        "",
        "arag-search: The index has no sentences.\nWhere: plain\nAllowed: granularity chunk\n"
        "Do: Build it again without --without sentences.\n",
    )


def test_an_index_without_titles_says_so(arag: Command) -> None:
    assert arag("search", "plain", "title:alpha").out == (
        "No passage matches title:alpha.\n"
        "Alone: title:alpha occurs nowhere.\n"
        "Note: no passage of this index has a title: title: finds nothing.\n"
    )
    assert arag("search", "plain", "beta").out == (
        "2 of 2 passages for beta\n[n1.1]\nBeta gamma beta.\n[n0.1]\nAlpha beta. ...\n"
        "Full text: chunk_read.\n"
    )


def test_the_default_operator_and_operators_off(arag: Command) -> None:
    first = arag("search", "my-index", "vivaldi opera", "--default-operator", "AND").lines[0]
    assert first == "5 of 7 passages for (vivaldi AND opera)"
    off = ["--operators", "off"]
    assert arag("search", "my-index", "vivaldi and opera", *off).lines[0] == (
        "5 of 63 passages for (vivaldi and opera)"
    )
    assert arag("search", "my-index", "vivaldi AND opera", *off) == Done(
        2,
        "",
        'Query not run: 1 problem.\n1. column 9, "AND": operators are off here. Words, phrases, '
        "fields and weights are allowed; write them with spaces between.\nWrite: (vivaldi opera)\n",
    )


def test_a_filter_is_obeyed_by_searches_counts_and_reads(arag: Command) -> None:
    scope = ["--filter", "year:>=1700 AND NOT kind:person"]
    done = arag("search", "my-index", "vivaldi NOT operetta", "--json", *scope)
    assert done.json["total"] == 5
    assert {hit["metadata"]["kind"] for hit in done.json["hits"]} == {"work"}
    assert arag("search", "my-index", "title:goldoni", *scope).out == (
        "No passage matches title:goldoni.\nAlone: title:goldoni occurs nowhere.\n"
    )
    assert arag("read", "my-index", "griselda-vivaldi.1", *scope).code == 0
    assert arag("read", "my-index", "vivaldi.1", *scope).err == (
        'arag-search: No chunk has the id "vivaldi.1".\nWhere: my-index\n'
        "Allowed: ids as searches show them in brackets\nDo: Search first, and copy the id.\n"
    )


@pytest.mark.parametrize("command", [["search", "my-index", "vivaldi"], ["read", "my-index", "x"]])
@pytest.mark.parametrize(
    ("scope", "problem"),
    [
        ("", 'column 1, "": the query is empty. Write at least one word, phrase or field clause.'),
        (
            "vivaldi",
            'column 1, "vivaldi": a filter searches no text. Metadata clauses are allowed, with '
            "AND, OR and NOT; fields: doc_id, year (number), kind (keyword).",
        ),
    ],
)
def test_a_filter_with_problems_is_refused_never_ignored(
    arag: Command, command: list[str], scope: str, problem: str
) -> None:
    assert arag(*command, "--filter", scope) == Done(
        2, "", f"Query not run: 1 problem.\n1. {problem}\nWhere: the filter\n"
    )


def test_pages_follow_each_other_to_the_end(arag: Command) -> None:
    def page(*options: str) -> Done:
        return arag("search", "my-index", "vivaldi", *options)

    assert page("--offset", "10", "--top-k", "2").lines[0] == "Passages 11 to 12 of 13 for vivaldi"
    done = page("--offset", "12")
    assert (done.lines[0], done.lines[-1]) == (
        "Passage 13 of 13 for vivaldi",
        "Full text: chunk_read.",
    )
    past = Done(0, "Only 13 passages match vivaldi; offset must be below 13.\n", "")
    assert page("--offset", "13") == past
    assert page("--offset", "9000", "--top-k", "1000") == past
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
            ["--max-result-tokens", "199"],
            "--max-result-tokens is 199.\nAllowed: 200 or more, or 0 for no bound",
        ),
        (
            ["--max-result-tokens", "500", "--json"],
            "--max-result-tokens has no effect here.\n"
            "Allowed: --max-result-tokens with plain output\nDo: Leave it out.",
        ),
        (
            ["--matching", "substring"],
            "--matching has no effect here.\nAllowed: --matching with --tool keyword\n"
            "Do: Leave it out.",
        ),
        (
            ["--tool", "keyword", "--granularity", "sentence"],
            "--granularity has no effect here.\nAllowed: --granularity with --tool logical\n"
            "Do: Leave it out.",
        ),
        (
            ["--output-format", "trec"],
            "--output-format has no effect here.\nAllowed: --output-format with --queries\n"
            "Do: Leave it out.",
        ),
        (
            ["--queries", "queries.txt"],
            "There is a query and a file of queries.\nAllowed: QUERY or --queries FILE\n"
            "Do: Leave one of them out.",
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
    assert arag("search", "my-index", "vivaldi", *options) == Done(
        1, "", f"arag-search: {message}\n"
    )


def test_text_is_bounded_as_for_a_model_unless_more_is_asked_for(arag: Command) -> None:
    done = arag("search", "my-index", "the", "--top-k", "20", "--max-result-tokens", "200")
    assert done.lines[0] == "5 of 63 passages for the"
    assert done.lines[-2].startswith("Not shown for want of room: [")
    assert done.lines[-1] == "More: offset=5. Full text: chunk_read."
    done = arag("search", "my-index", "the", "--top-k", "20", "--max-result-tokens", "0")
    assert done.lines[0] == "20 of 63 passages for the"
    done = arag("search", "my-index", "the", "--top-k", "63")
    assert done.lines[0] == "63 of 63 passages for the"


# search --queries


def test_a_file_of_plain_queries_gives_one_json_result_a_line(arag: Command) -> None:
    name = file_of("queries.txt", "vivaldi", "", "opera OR NOT x\r", "  ", "\tgriselda ")
    done = arag("search", "my-index", "--queries", name, "--top-k", "1")
    assert (done.code, done.err) == (0, "1 of 3 queries has problems.\n")
    first, second, third = map(json.loads, done.lines)
    assert list(first)[:3] == ["id", "query", "understood"]
    assert [(one["id"], one["total"]) for one in (first, second, third)] == [
        ("1", 13),
        ("3", 0),
        ("5", 3),
    ]
    assert second["query"] == "opera OR NOT x"
    assert second["problems"] == [{"column": 10, "piece": "NOT x", "message": NOT_ALTERNATIVE}]
    assert second["mended"] == "(opera AND NOT x)"
    assert third["hits"][0]["id"] == "griselda-scarlatti.1"


def test_json_lines_hold_queries_or_keywords_with_ids(arag: Command) -> None:
    name = file_of(
        "queries.jsonl",
        {"id": "q1", "query": "vivaldi", "question": "ignored"},
        {"id": 2, "keywords": ["Antonio Vivaldi", "opera"]},
        {"query": "griselda"},
    )
    done = arag("search", "my-index", "--queries", name, "--top-k", "1", "--explain")
    assert (done.code, done.err) == (0, "")
    results = [json.loads(line) for line in done.lines]
    assert [(one["id"], one["understood"]) for one in results] == [
        ("q1", "vivaldi"),
        ("2", '"Antonio Vivaldi", "opera"'),
        ("3", "griselda"),
    ]
    assert results[1]["hits"][0]["score"] == 30.0
    assert results[0]["hits"][0]["explanation"][0]["leaf"] == "vivaldi"


def test_plain_keywords_have_tabs_between(arag: Command) -> None:
    name = file_of("keywords.txt", "Antonio Vivaldi\topera\t", "libretto")
    done = arag("search", "my-index", "--tool", "keyword", "--queries", name)
    assert [json.loads(line)["query"] for line in done.lines] == [
        '"Antonio Vivaldi", "opera"',
        '"libretto"',
    ]


def test_queries_come_from_standard_input_too(
    arag: Command, give_input: Callable[[bytes], None]
) -> None:
    give_input(b"\xef\xbb\xbfgriselda\n")
    assert json.loads(arag("search", "my-index", "--queries", "-").out)["total"] == 3
    give_input(b"\n")
    assert arag("search", "my-index", "--queries", "-") == Done(
        1,
        "",
        "arag-search: There are no queries.\nWhere: -\n"
        'Allowed: a query a line, or JSON lines {"id", "query"} or {"id", "keywords": [...]}\n',
    )


def test_a_trec_run_has_a_line_a_hit_and_names_refused_queries(arag: Command) -> None:
    name = file_of(
        "trec.jsonl",
        {"id": "first é", "query": "vivaldi"},
        {"id": "q2", "query": "a OR NOT b"},
        {"id": "q3", "keywords": ["Antonio Vivaldi", "opera"]},
    )
    done = arag("search", "my-index", "--queries", name, "--output-format", "trec",
                "--top-k", "2", "--offset", "1")  # fmt: skip
    assert done == Done(
        0,
        "first_é Q0 griselda-vivaldi.1 2 1.261637 arag-search\n"
        "first_é Q0 orlando-vivaldi.1 3 1.059218 arag-search\n"
        "q3 Q0 orlando-vivaldi.1 2 25.000000 arag-search\n"
        "q3 Q0 griselda-vivaldi.1 3 20.000000 arag-search\n",
        "trec.jsonl, line 2: Query not run: 1 problem.\n"
        f'1. column 6, "NOT b": {NOT_ALTERNATIVE}\nWrite: (a AND NOT b)\n'
        "1 of 3 queries has problems.\n",
    )


FORMS = 'Allowed: a query a line, or JSON lines {"id", "query"} or {"id", "keywords": [...]}\n'
GOOD = {"id": "q1", "query": "vivaldi"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '{"id": "q2"',
            "The line is not JSON (unexpected end of data: line 1 column 12 (char 11)).\n"
            f"Where: bad.jsonl, line 3\n{FORMS}",
        ),
        (
            {"id": "q2"},
            "The line holds neither a query nor keywords.\nWhere: bad.jsonl, line 3\n"
            f"{FORMS}Do: Mend the line.\n",
        ),
        (
            ["opera"],
            "The line holds neither a query nor keywords.\nWhere: bad.jsonl, line 3\n"
            f"{FORMS}Do: Mend the line.\n",
        ),
        (
            {"query": "opera", "keywords": ["opera"]},
            "The line holds both a query and keywords.\nWhere: bad.jsonl, line 3\n"
            f"{FORMS}Do: Mend the line.\n",
        ),
        (
            {"query": 7},
            'The field "query" is 7.\nWhere: bad.jsonl, line 3\nAllowed: a string\n'
            "Do: Mend the line.\n",
        ),
        (
            {"keywords": ["opera", None]},
            'The field "keywords" is ["opera",null].\nWhere: bad.jsonl, line 3\n'
            "Allowed: a list of strings\nDo: Mend the line.\n",
        ),
        (
            {"id": None, "query": "opera"},
            'The field "id" is null.\nWhere: bad.jsonl, line 3\nAllowed: a string or a number\n'
            "Do: Mend the line.\n",
        ),
        (
            {"id": "q1", "query": "opera"},
            'The id "q1" stands twice.\nWhere: bad.jsonl, line 3, and bad.jsonl, line 1\n'
            "Do: Give each query an id of its own.\n",
        ),
        (
            {"keywords": []},
            "There are 0 keywords.\nWhere: bad.jsonl, line 3\nAllowed: 1 to 20 keywords\n",
        ),
    ],
)
def test_a_malformed_line_names_file_and_line_before_anything_is_searched(
    arag: Command, line: object, message: str
) -> None:
    name = file_of("bad.jsonl", GOOD, "", line)
    assert arag("search", "my-index", "--queries", name) == Done(1, "", f"arag-search: {message}")


def test_queries_that_cannot_be_read(arag: Command) -> None:
    allowed = "Allowed: a file, or - for standard input\n"
    assert arag("search", "my-index", "--queries", "nowhere.txt").err == (
        "arag-search: The queries cannot be read (No such file or directory).\n"
        f"Where: nowhere.txt\n{allowed}"
    )
    Path("latin.txt").write_bytes(b"vivaldi\nPiet\xe0\n")
    assert arag("search", "my-index", "--queries", "latin.txt").err == (
        "arag-search: Byte 5 of the line is not UTF-8.\nWhere: latin.txt, line 2\n"
        "Do: Save the file as UTF-8.\n"
    )
    name = file_of("explained.txt", "vivaldi")
    assert arag("search", "my-index", "--queries", name, "--output-format", "trec",
                "--explain").err == (
        "arag-search: --explain has no effect here.\n"
        "Allowed: --explain with --output-format json\nDo: Leave it out.\n"
    )  # fmt: skip


# read


def test_read_prints_chunks_in_full_a_blank_line_between(arag: Command) -> None:
    done = arag("read", "plain", "n1.1", "n0.1", "n1.1")
    assert done == Done(
        0,
        "[n1.1]\nBeta gamma beta.\n\n[n0.1]\nAlpha beta. Gamma delta.\n\n"
        "[n1.1]\nBeta gamma beta.\n",
        "",
    )
    assert arag("read", "my-index", "vivaldi.1").out.startswith(
        "[vivaldi.1] Antonio Vivaldi\n(year: 1678; kind: person)\nAntonio Vivaldi was an Italian"
    )


def test_the_json_of_a_read_is_a_list_of_chunks(arag: Command) -> None:
    assert arag("read", "plain", "n0.1", "--json").json == [
        {
            "id": "n0.1",
            "doc_id": "n0",
            "title": "",
            "part": 1,
            "parts": 1,
            "content": "Alpha beta. Gamma delta.",
            "sentences": ["Alpha beta. ", "Gamma delta."],
            "metadata": {},
            "previous_id": None,
            "next_id": None,
        }
    ]


def test_unknown_ids_are_all_named(arag: Command) -> None:
    assert arag("read", "plain", "n0.1", "n7.1", "\udcff") == Done(
        1,
        "",
        'arag-search: No chunks have the ids "n7.1", "\\udcff".\nWhere: plain\n'
        "Allowed: ids as searches show them in brackets\nDo: Search first, and copy the id.\n",
    )


# check


def test_check_shows_the_canonical_form_the_tree_and_the_tokens(arag: Command) -> None:
    done = arag("check", 'vivaldi (a OR COVID-19)^2 NOT title:it\'s AND year:1678 "x y"~2')
    assert done == Done(
        0,
        '(vivaldi OR (a OR COVID-19)^2 OR (year:1678 AND NOT title:it\'s) OR "x y"~2)\n'
        "\n"
        "OR\n"
        "├── vivaldi    tokens: vivaldi; in title, content\n"
        "├── OR ^2\n"
        "│   ├── a    tokens: a; in title, content\n"
        "│   └── COVID-19    tokens: covid 19; in title, content\n"
        "├── AND\n"
        "│   ├── year:1678    filter\n"
        "│   └── NOT\n"
        "│       └── title:it's    tokens: it's | it’s; in title\n"
        '└── "x y"~2    tokens: x y; in title, content\n'
        'Note: whether an index has a field "year" was not checked; its type was guessed.\n',
        "",
    )


def test_check_with_an_index_knows_its_fields(arag: Command) -> None:
    assert arag("check", "author:Walker", "year:1678", "--index", "my-index").code == 1
    assert arag("check", "year:1678", "--index", "my-index").out == (
        "year:1678\n\nyear:1678    filter\n"
        "Note: no words to rank by: passages are in corpus order.\n"
    )
    assert arag("check", "--index", "my-index", "author:Walker") == Done(
        2,
        "",
        'Query not run: 1 problem.\n1. column 1, "author:": there is no field "author". Fields: '
        "title, content, doc_id, year (number), kind (keyword). Text with a colon is quoted.\n"
        'Write: "author Walker"\n',
    )


def test_the_json_of_a_check_has_the_same_keys_for_good_and_bad_queries(arag: Command) -> None:
    good = arag("check", "a AND NOT b^1", "--json", "--default-operator", "AND")
    assert good.code == 0
    assert good.json == {
        "query": "a AND NOT b^1",
        "understood": "(a AND NOT b)",
        "tree": {
            "kind": "And",
            "weight": 1.0,
            "children": [
                {
                    "kind": "Term",
                    "query": "a",
                    "tokens": [["a"]],
                    "fields": ["title", "content"],
                },
                {
                    "kind": "Not",
                    "children": [
                        {
                            "kind": "Term",
                            "query": "b",
                            "tokens": [["b"]],
                            "fields": ["title", "content"],
                        }
                    ],
                },
            ],
        },
        "notes": [],
        "problems": [],
        "mended": None,
    }
    bad = arag("check", "a OR NOT b", "--json")
    assert (bad.code, bad.err) == (2, "")
    assert bad.json == {
        "query": "a OR NOT b",
        "understood": None,
        "tree": None,
        "notes": [],
        "problems": [{"column": 6, "piece": "NOT b", "message": NOT_ALTERNATIVE}],
        "mended": "(a AND NOT b)",
    }


def test_half_a_character_is_refused_and_printed_as_json(arag: Command) -> None:
    surrogate = "this is half of a character (a lone surrogate). Text must be valid Unicode; " \
        "leave it out."  # fmt: skip
    done = arag("check", "a\udcff", "--json")
    assert done.code == 2
    assert done.json["query"] == "a\udcff"
    assert done.json["problems"] == [{"column": 2, "piece": "?", "message": surrogate}]
    assert arag("search", "my-index", "a\udcff", "--json").json["query"] == "a\udcff"
    assert arag("search", "my-index", "--tool", "keyword", "a\udcff").err == (
        "arag-search: A keyword holds half of a character (a lone surrogate).\n"
        "Allowed: valid Unicode\nDo: Leave it out.\n"
    )


# info


def test_info_describes_an_index_in_words(arag: Command) -> None:
    done = arag("info", "my-index", "--checksums")
    assert done.code == 0
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+\+00:00", "TIME", done.out)
    text = re.sub(r"[\d,]+ bytes in \d+ files, 1 segment\n", "BYTES\n", text)
    text = re.sub(r"[0-9a-f]{64}", "FINGERPRINT", text)
    assert text == (
        "Index my-index\n"
        f"  built        TIME from {SAMPLE} (documents)\n"
        "  holds        63 documents, 63 passages (cut at 1,000 tokens), 393 sentences, 8,916 "
        "tokens\n"
        "  serves       chunks and sentences; fields title, content, doc_id, year (number), kind "
        "(keyword)\n"
        "  titles       yes\n"
        "  ranking      BM25, k1 1.2, b 0.75; standard analyser\n"
        "  engine       lucene 10.5.0, format 1, update 1\n"
        "  fingerprint  FINGERPRINT\n"
        "  on disk      chunk index: BYTES\n"
        "  on disk      sentence index: BYTES\n"
        "  verified     files, counts and checksums agree\n"
    )
    lines = arag("info", "plain").lines
    assert "  serves       chunks; fields title, content, doc_id" in lines
    assert "  titles       none: title: finds nothing" in lines
    assert lines[-1] == "  verified     files and counts agree"


def test_the_json_of_info_holds_the_manifest_and_the_files(arag: Command) -> None:
    shown = arag("info", "plain", "--json").json
    assert list(shown) == ["location", "manifest", "files", "verified"]
    manifest = Manifest.from_json(json.dumps(shown["manifest"]), "here")
    assert (manifest.documents, manifest.sentences, manifest.without) == (3, 4, ("sentences",))
    assert shown["files"]["sentences"] is None
    assert list(shown["files"]["chunks"]) == [
        "documents",
        "deleted",
        "segments",
        "files",
        "bytes",
    ]
    assert shown["verified"] == ["counts", "files"]
    assert arag("info", "plain", "--json", "--checksums").json["verified"][-1] == "checksums"


def test_counts_that_do_not_agree_are_an_error() -> None:
    manifest = Manifest(
        engine="lucene",
        engine_version="10.5.0",
        created="",
        documents=2,
        chunks=2000,
        sentences=5,
        tokens=9,
        chunk_tokens=1000,
        fingerprint="",
    )
    part = PartStatistics(documents=1999, deleted=0, segments=1, files=4, bytes=9)
    with pytest.raises(IndexDamagedError) as caught:
        check_counts(manifest, IndexStatistics(part, None), "my-index")
    assert str(caught.value) == (
        "The manifest says 2,000 chunks, the index holds 1,999.\nWhere: my-index\n"
        "Do: Build the index again with --overwrite."
    )


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[Path]:
    """The largest file of a copy of the index, to be damaged; the copy is called ``broken``."""
    shutil.copytree("my-index", "broken")
    yield max(Path("broken").glob("g*/chunks/*"), key=lambda path: path.stat().st_size)
    shutil.rmtree("broken")


@pytest.mark.parametrize(
    "command", [["info", "broken"], ["search", "broken", "beta"], ["read", "broken", "n0.1"]]
)
def test_a_file_that_is_cut_off_is_noticed_on_opening(
    arag: Command, broken: Path, command: list[str]
) -> None:
    broken.write_bytes(broken.read_bytes()[:-20])
    done = arag(*command)
    assert (done.code, done.out) == (1, "")
    assert re.fullmatch(
        r"arag-search: The chunks of the index cannot be opened: CorruptIndexException: .*\n"
        r"Where: broken\n"
        r"Do: Build the index again with --overwrite\.\n",
        done.err,
    )


def test_a_bit_that_has_changed_is_found_by_its_checksum(arag: Command, broken: Path) -> None:
    data = bytearray(broken.read_bytes())
    data[len(data) // 2] ^= 1
    broken.write_bytes(data)
    done = arag("info", "broken", "--checksums")
    assert (done.code, done.out) == (1, "")
    assert re.fullmatch(
        r"arag-search: A file of the index is broken: CorruptIndexException: checksum failed .*\n"
        r"Where: broken\n"
        r"Do: Build the index again with --overwrite\.\n",
        done.err,
    )


@pytest.mark.parametrize(
    ("location", "message"),
    [
        (
            "nowhere",
            "There is no index.\nWhere: nowhere\n"
            "Do: Build one: arag-search index SOURCE --to nowhere",
        ),
        (
            "plain.jsonl",
            "There is a file, not an index.\nWhere: plain.jsonl\n"
            "Do: Build one: arag-search index SOURCE --to plain.jsonl",
        ),
        (
            ".",
            "The folder holds no index.\nWhere: .\n"
            "Do: Name the folder that was given to arag-search index as --to.",
        ),
        (
            " ",
            "The path of the index is empty.\nAllowed: a file or folder\nDo: Name it.",
        ),
        (
            "caf\udce9",
            "The path of the index is not UTF-8.\nWhere: caf\\udce9\nDo: Rename it.",
        ),
        (
            "https://localhost:9200/wiki",
            "The location is an address of a server; this release opens folders.\n"
            "Where: https://localhost:9200/wiki\n"
            "Allowed: a folder that arag-search index has built\n"
            "Do: Build an index with: arag-search index SOURCE --to FOLDER",
        ),
    ],
)
def test_what_is_no_index_is_said_by_every_command(
    arag: Command, location: str, message: str
) -> None:
    for command in (
        ["search", location, "vivaldi"],
        ["read", location, "vivaldi.1"],
        ["info", location],
        ["check", "vivaldi", "--index", location],
    ):
        assert arag(*command) == Done(1, "", f"arag-search: {message}\n")


# demo


def test_the_demo_shows_replies_and_what_to_type_next(arag: Command) -> None:
    done = arag("demo", "--to", "demo index")
    assert (done.code, done.err) == (0, "")
    assert re.match(
        r"The sample corpus: 63 short articles with two-hop links, near-duplicate names and "
        r"distractors, indexed in \d+\.\d s\.\n",
        done.out,
    )
    for shown in (
        "\n> logical_search vivaldi opera\n2 of 18 passages for (vivaldi OR opera)\n",
        '\n> logical_search "antonio vivaldi" AND librett*\n2 of 8 passages for ',
        "\n2 of 4 passages for "
        '("antonio vivaldi" AND librett* AND year:>=1690 AND NOT title:griselda)\n',
        "\nNo passage matches (",
        "\n  (error, 99 tokens)\n",
        "\n> chunk_read orlando-vivaldi.1\n[orlando-vivaldi.1] Orlando furioso (Vivaldi)\n",
    ):
        assert shown in done.out
    (command,) = re.findall(r"\n  arag-search (search .* NOT title:scarlatti)'\n", done.out)
    assert command.startswith("search 'demo index' 'griselda AND")
    again = arag("demo", "--to", "demo index")
    assert again == Done(
        1,
        "",
        "arag-search: There is an index already.\nWhere: demo index\n"
        "Do: Name a folder that is not there yet: arag-search demo --to INDEX\n",
    )


# How commands are written, and how they end


@pytest.mark.parametrize("command", ["search", "read", "check", "info"])
def test_examples_of_the_help_stand_on_lines_of_their_own(arag: Command, command: str) -> None:
    done = arag(command, "--help")
    assert (done.code, done.err) == (0, "")
    assert done.lines[0].startswith(f"Usage: arag-search {command} [OPTIONS]")
    examples = done.lines[done.lines.index("  Examples:") + 2 :]
    examples = examples[: examples.index("")]
    assert len(examples) >= 2
    for line in examples:
        assert line.startswith(f"    arag-search {command} ")
        assert len(line) <= 80


def test_without_arguments_the_commands_are_listed(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = arag()
    assert done == arag("--help") == arag("-h")
    assert done.code == 0
    assert done.lines[done.lines.index("Commands:") + 1 :] == [
        "  demo    Index the sample corpus and search it.",
        "  index   Build an index from a corpus.",
        "  search  Search an index and print the reply that a model would see.",
        "  read    Print chunks in full.",
        "  check   Show how a query is understood, or what is wrong with it.",
        "  info    Describe an index, and verify it.",
    ]
    assert re.fullmatch(r"arag-search \d+\.\d+\.\d+\n", arag("--version").out)


@pytest.mark.parametrize(
    ("arguments", "what", "command"),
    [
        (["frobnicate"], "No such command 'frobnicate'.", ""),
        (["--frobnicate"], "No such option: --frobnicate.", ""),
        (["search"], "Missing argument 'INDEX'.", " search"),
        (["search", "my-index", "a", "--limit", "3"], "No such option: --limit.", " search"),
        (
            ["search", "my-index", "a", "--tool", "vector"],
            "Invalid value for '--tool': 'vector' is not one of 'logical', 'keyword'.",
            " search",
        ),
        (["read", "my-index"], "Missing argument 'CHUNK_ID'.", " read"),
        (["check", "a", "b"], "Got unexpected extra argument(s) (b).", " check"),
    ],
)
def test_a_wrong_command_line_is_told_how_it_should_be(
    arag: Command, arguments: list[str], what: str, command: str
) -> None:
    done = arag(*arguments)
    assert (done.code, done.out) == (1, "")
    first, allowed, do = done.err.splitlines()
    assert first == f"arag-search: {what}"
    assert allowed.startswith(f"Allowed: arag-search{command} [OPTIONS] ")
    assert allowed.endswith("commands: demo, index, search, read, check, info") == (not command)
    assert do == f"Do: See arag-search{command} --help."


def test_an_option_needs_its_value(arag: Command) -> None:
    assert arag("check", "a", "--index").err.splitlines()[0] == (
        "arag-search: Option '--index' requires an argument."
    )


def test_a_number_must_be_a_number(arag: Command) -> None:
    done = arag("search", "my-index", "a", "--top-k", "many")
    assert done.err.startswith("arag-search: Invalid value for '--top-k': ")


def test_a_query_that_starts_with_a_minus_is_told_where_to_stand(arag: Command) -> None:
    done = arag("search", "my-index", "-opera vivaldi")
    assert done.code == 1
    assert done.err.splitlines()[-1] == (
        "Do: See arag-search search --help. An argument that starts with a minus goes after --."
    )


def test_without_a_query_there_is_nothing_to_search(arag: Command) -> None:
    assert arag("search", "my-index").err == (
        "arag-search: There is no query.\nAllowed: QUERY or --queries FILE\n"
        "Do: Write: arag-search search INDEX 'QUERY'\n"
    )
    assert arag("search", "my-index", "").err == (
        'Query not run: 1 problem.\n1. column 1, "": the query is empty. Write at least one word, '
        "phrase or field clause.\n"
    )


def test_ctrl_c_ends_with_130_and_one_line(arag: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    class Pressed(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Pressed()))
    assert arag("search", "my-index", "--queries", "-") == Done(
        130, "", "arag-search: interrupted.\n"
    )


def test_output_that_cannot_be_written_is_a_failure(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    for arguments in (["check", "vivaldi"], ["check", "vivaldi", "--json"], ["--version"]):
        with open("/dev/full", "w") as full, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", full)
            done = arag(*arguments)
        assert done == Done(
            1, "", "arag-search: The output cannot be written (No space left on device).\n"
        )


def test_a_pipe_that_is_closed_early_ends_a_batch(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = file_of("many.txt", *["vivaldi opera"] * 300)
    reading, writing = os.pipe()

    def read_one_line() -> None:
        with os.fdopen(reading) as pipe:
            assert json.loads(pipe.readline())["id"] == "1"

    reader = threading.Thread(target=read_one_line)
    reader.start()
    with os.fdopen(writing, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        done = arag("search", "my-index", "--queries", name)
    reader.join()
    assert done == Done(1, "", "")


def test_a_terminal_that_is_not_utf_8_shows_what_it_can(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", shown)
    assert arag("read", "plain", "n2.1").code == 0
    assert arag("read", "plain", "n2.1", "--json").code == 0
    text, as_json = shown.buffer.getvalue().split(b"\n", 2)[1:]
    assert text == b"Caf? & co."
    assert json.loads(as_json)[0]["content"] == "Café & co."


def process(script: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def test_a_process_whose_output_nobody_reads_ends_without_a_word() -> None:
    with process("from arag_search.cli.app import main; main()", "check", "vivaldi") as started:
        assert started.stdout
        assert started.stderr
        started.stdout.close()
        assert started.stderr.read() == ""
        assert started.wait() == 1


def test_a_process_starts_light_and_writes_to_any_terminal() -> None:
    script = (
        "import sys; from arag_search.cli.app import main, run; run(['search', '--help'])\n"
        "heavy = {'jpype', 'regex', 'orjson', 'rich', 'numpy', 'bpe_openai', 'index_jobs'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "main()"
    )
    with process(script, "check", "é OR NOT à", PYTHONIOENCODING="ascii") as started:
        out, err = started.communicate()
    assert started.returncode == 2
    assert out.endswith("\n[]\n")
    assert err.splitlines()[-1] == r"Write: (\xe9 AND NOT \xe0)"


def test_an_index_is_not_built_from_or_to_a_path_that_is_not_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words in (["c.jsonl", "--to", "new\udcff"], ["c\udcff", "--to", "new"]):
        assert run(["index", *words]) == 1
        assert "is not UTF-8." in capsys.readouterr().err
    assert run(["index", "c.jsonl", "--to", ""]) == 1
    assert capsys.readouterr().err == (
        "arag-search: The path of the index is empty.\nAllowed: a file or folder\nDo: Name it.\n"
    )

"""arag-search search --queries runs the queries of a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import NOT_ALTERNATIVE, Command, CommandResult, file_of

pytestmark = pytest.mark.usefixtures("commands_folder")


def test_a_file_of_plain_queries_gives_one_json_result_a_line(arag: Command) -> None:
    name = file_of("queries.txt", "vivaldi", "", "opera OR NOT x\r", "  ", "\tgriselda ")
    done = arag("search", "my-index", "--queries", name, "--top-k", "1")
    assert (done.code, done.err) == (2, "1 of 3 queries has problems.\n")
    first, second, third = map(json.loads, done.lines)
    assert list(first)[:3] == ["id", "query", "understood"]
    assert [(result["id"], result["total"]) for result in (first, second, third)] == [
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
    assert [(result["id"], result["understood"]) for result in results] == [
        ("q1", "vivaldi"),
        ("2", '"Antonio Vivaldi", "opera"'),
        ("3", "griselda"),
    ]
    assert results[1]["hits"][0]["score"] == 30.0
    assert results[0]["hits"][0]["explanation"][0]["leaf"] == "vivaldi"


def test_queries_in_the_form_of_beir_or_with_other_names_of_ids_are_read(arag: Command) -> None:
    name = file_of(
        "beir.jsonl",
        {"_id": "PLAIN-1", "text": "vivaldi"},
        {"qid": 12, "query": "griselda", "text": "ignored"},
        {"query_id": "k", "keywords": ["opera"], "text": "ignored"},
    )
    results = [json.loads(line) for line in arag("search", "my-index", "--queries", name).lines]
    assert [(result["id"], result["understood"]) for result in results] == [
        ("PLAIN-1", "vivaldi"),
        ("12", "griselda"),
        ("k", '"opera"'),
    ]


def test_plain_keywords_have_tabs_between(arag: Command) -> None:
    name = file_of("keywords.txt", "Antonio Vivaldi\topera\t", "libretto")
    done = arag("search", "my-index", "--tool", "keyword", "--queries", name)
    assert [json.loads(line)["query"] for line in done.lines] == [
        '"Antonio Vivaldi", "opera"',
        '"libretto"',
    ]


def test_queries_are_read_from_standard_input_too(
    arag: Command, give_input: Callable[[bytes], None]
) -> None:
    give_input(b"\xef\xbb\xbfgriselda\n")
    assert json.loads(arag("search", "my-index", "--queries", "-").out)["total"] == 3
    give_input(b"\n")
    assert arag("search", "my-index", "--queries", "-") == CommandResult(
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
    assert done == CommandResult(
        2,
        "first_é Q0 griselda-vivaldi.1 2 1.261637 arag-search\n"
        "first_é Q0 orlando-vivaldi.1 3 1.059218 arag-search\n"
        "q3 Q0 orlando-vivaldi.1 2 25.000000 arag-search\n"
        "q3 Q0 griselda-vivaldi.1 3 20.000000 arag-search\n",
        "trec.jsonl, line 2: Query not run: 1 problem.\n"
        f'1. column 6, "NOT b": {NOT_ALTERNATIVE}\nWrite: (a AND NOT b)\n'
        "1 of 3 queries has problems.\n",
    )


FORMS = 'Allowed: a query a line, or JSON lines {"id", "query"} or {"id", "keywords": [...]}\n'
WHERE = "Where: bad.jsonl, line 3\n"
GOOD = {"id": "q1", "query": "vivaldi"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '{"id": "q2"',
            "The line is not JSON (unexpected end of data: line 1 column 12 (char 11)).\n"
            f"Where: bad.jsonl, line 3\n{FORMS}",
        ),
        *(
            (
                line,
                f"The line is not a query.\nWhere: bad.jsonl, line 3\n{FORMS}Do: Fix the line.\n",
            )
            for line in (
                {"id": "q2"},
                ["opera"],
                {"query": "opera", "keywords": ["opera"]},
                {"query": 7},
                {"keywords": ["opera", None]},
                {"id": None, "query": "opera"},
            )
        ),
        (
            {"id": "q1", "query": "opera"},
            'The id "q1" is duplicated.\nWhere: bad.jsonl, line 3, and bad.jsonl, line 1\n'
            "Do: Give each query a unique id.\n",
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
    assert arag("search", "my-index", "--queries", name) == CommandResult(
        1, "", f"arag-search: {message}"
    )


def test_queries_that_cannot_be_read_are_reported(arag: Command) -> None:
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

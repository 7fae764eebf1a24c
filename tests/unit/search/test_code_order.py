"""The rules for the order of passages of code, each on hits with scores."""

from __future__ import annotations

import pytest

from arag_search.corpus import NO_OUTLINE, PassageOutline, PassageUnit
from arag_search.engines.hits import Hit
from arag_search.field_counts import FieldCounts
from arag_search.plan.clauses import Clause
from arag_search.plan.lower import lower
from arag_search.query.fields import Schema
from arag_search.query.reading import parse
from arag_search.search.finding.code_order import has_code, ordered
from tests.support.oracle.engine import MemoryEngine
from tests.support.passages import VIVALDI, index_of

SCHEMA = Schema({"path": "keyword", "type": "keyword"})


def hit(doc_id: str, score: float, *defines: str, part: int = 1) -> Hit:
    units = tuple(PassageUnit(0, 1, name) for name in defines)
    outline = PassageOutline(units=units) if units else NO_OUTLINE
    return Hit(f"{doc_id}.{part}", doc_id, doc_id, part, 9, part, {}, (), "", outline, score)


def clause(query: str) -> Clause:
    return lower(parse(query, SCHEMA).tree)


def scores(query: str, *hits: Hit) -> dict[str, float]:
    return {hit.id: pytest.approx(hit.score) for hit in ordered(hits, clause(query))}


@pytest.mark.parametrize(
    ("unit", "query"),
    [
        ("def parse_reply", "parse_reply"),
        ("class ParseReply", "lib.parsing.ParseReply"),
        ("parseReply()", "parseReply"),
        ("exports.parseReply()", "parseReply"),
        ("func (c *Client) ParseReply", "ParseReply"),
        ("Reply::parse_reply()", "parse_reply"),
        ("def valid?", "valid"),
        ("def parse_reply", "parse_reply OR ReplyParser"),
        ("def run", "run"),
    ],
)
def test_what_defines_the_name_of_the_query_counts_twice(unit: str, query: str) -> None:
    hits = ordered([hit("a.py", 3), hit("b.py", 2, unit)], clause(query))
    assert [(of.id, of.score) for of in hits] == [("b.py.1", 4), ("a.py.1", 3)]
    assert hits[0].rules[0].says.startswith("it defines ")


@pytest.mark.parametrize(
    ("unit", "query"),
    [("class Parse", "parse_reply"), ("impl Show for Reply", "Reply"), ("def run", "run a server")],
)
def test_what_defines_another_name_is_not_raised(unit: str, query: str) -> None:
    assert scores(query, hit("b.py", 2, unit)) == {"b.py.1": 2}


def test_the_words_of_a_name_count_half_as_much_more_unless_the_name_is_defined() -> None:
    worded, other = hit("a.py", 2, "def parse_reply"), hit("b.py", 2, "class ParseReply")
    for query in ("parse reply", "reply AND parse"):
        assert scores(query, worded, other) == {"a.py.1": 3, "b.py.1": 3}
    assert scores("ParseReply", worded, other) == {"b.py.1": 4, "a.py.1": 2}


def test_a_file_counts_more_by_its_name_and_by_its_other_hits() -> None:
    assert scores("retry of sockets", hit("lib/retry.py", 2)) == {"lib/retry.py.1": 2.3}
    assert scores("retry of sockets", hit("socket_retry.js", 2)) == {"socket_retry.js.1": 2.15}
    parts = [hit("a.py", 2, part=part) for part in range(1, 7)]
    assert scores("weather", *parts[:2], hit("b.py", 2)) == {
        "a.py.1": 2.1,
        "b.py.1": 2,
        "a.py.2": 2.1 * 0.85,
    }
    assert max(score.expected for score in scores("weather", *parts).values()) == 2 * 1.15


@pytest.mark.parametrize(
    ("file", "query", "is_lowered"),
    [
        ("tests/a.py", "weather", True),
        ("src/examples/a.ts", "weather", True),
        ("lib/a.test.ts", "weather", True),
        ("lib/a_test.go", "weather", True),
        ("legacy/a.py", "weather", True),
        ("latest/contests.py", "weather", False),
        ("tests/a.py", "weather tests", False),
        ("tests/a.py", "test_weather", False),
        ("tests/a.py", 'weather AND path:"tests/"', False),
        ("tests/notes.md", "weather", False),
    ],
)
def test_tests_and_examples_are_lowered_unless_asked_for(
    file: str, query: str, is_lowered: bool
) -> None:
    assert scores(query, hit("b.py", 1), hit(file, 2))[f"{file}.1"] == (1.8 if is_lowered else 2)


def test_hits_that_are_no_code_keep_their_scores_and_those_without_any_are_the_same() -> None:
    notes = [hit("notes.md", 3, "parse_reply"), hit("notes.md", 2, part=2), hit("a.yaml", 1, "run")]
    assert ordered(notes, clause("parse_reply")) is notes
    mixed = scores("parse_reply", *notes, hit("a.py", 1, "def parse_reply"))
    assert mixed == {"notes.md.1": 3, "notes.md.2": 2, "a.py.1": 2, "a.yaml.1": 1}


def test_hits_of_equal_score_stay_in_the_order_of_the_engine() -> None:
    hits = [hit(name, 2) for name in ("c.py", "a.py", "b.py")]
    assert [of.doc_id for of in ordered(hits, clause("weather"))] == ["c.py", "a.py", "b.py"]


@pytest.mark.parametrize(
    ("values", "is_complete", "may_have"),
    [({"md": 9}, True, False), ({"md": 9, "py": 1}, True, True), ({"md": 9}, False, True)],
)
def test_the_manifest_says_whether_an_index_may_have_code(
    values: dict[str, int], is_complete: bool, may_have: bool
) -> None:
    index = index_of(*VIVALDI)
    assert not has_code(index.state)
    assert isinstance(index.engine, MemoryEngine)
    manifest = index.manifest
    manifest.metadata["type"] = "keyword"
    manifest.field_counts["type"] = FieldCounts(9, values, is_complete=is_complete)
    assert has_code(index.state) == may_have

"""The parser of queries: the trees of query texts, and the messages for rejected ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arag_search.errors import ArgumentError
from arag_search.query.fields import ANY_SCHEMA, Schema
from arag_search.query.filters import parse_filter
from arag_search.query.operators import NOT
from arag_search.query.problems import QueryError
from arag_search.query.reading import parse
from arag_search.query.tree import (
    And,
    KeywordEquals,
    Modifier,
    Or,
    Phrase,
    Prefix,
    Range,
    Term,
    leaves,
    render,
)
from tests.support import strategies
from tests.support.examples import examples

SCHEMA = Schema({"year": "number", "lang": "keyword", "published": "date"})
EXAMPLES = examples(1_000)
TABLES = Path(__file__).parents[2] / "support" / "tables"

READ_AS = [
    ("vivaldi", "vivaldi"),
    ('"four seasons"', '"four seasons"'),
    ('"vivaldi seasons"~3', '"vivaldi seasons"~3'),
    ("librett*", "librett*"),
    ('title:griselda content:"born in"', '(title:griselda OR content:"born in")'),
    ("title:(a OR b)", "(title:a OR title:b)"),
    ('lang:en OR lang:"en GB"', '(lang:en OR lang:"en GB")'),
    ("lang:(en OR de)", "(lang:en OR lang:de)"),
    ("year:1678", "year:1678"),
    ("year:[1670 TO 1680]", "year:[1670 TO 1680]"),
    ("year:{1670 TO 1680]", "year:{1670 TO 1680]"),
    ("year:[1670 TO *]", "year:>=1670"),
    ("year:{* TO 1680}", "year:<1680"),
    ("year:[* TO *]", "year:[* TO *]"),
    ("year:>=1670.0", "year:>=1670"),
    ("year:(-44 OR [1 TO 2])", "(year:-44 OR year:[1 TO 2])"),
    ("published:2001", "published:2001"),
    ("published:[2001-05 TO 2002}", "published:[2001-05 TO 2002}"),
    ("published:>=2001-05-31T12:00", "published:>=2001-05-31T12:00"),
    ("doc_id:notes/a.md", "doc_id:notes/a.md"),
    ('lang:">=x" OR lang:"[x"', '(lang:">=x" OR lang:"[x")'),
    ("a && b || c", "((a AND b) OR c)"),
    ("a AND !b -c", "(a AND NOT b AND NOT c)"),
    ('a^2.0 "a b"~3^0.5 (a OR b)^3', '(a^2 OR "a b"~3^0.5 OR (a OR b)^3)'),
    ("a^1", "a"),
    ("(a^2)^3", "a^6"),
    (r"\: \" \AND", r"\AND"),
    (r"a\:b \AND", r"(a\:b OR \AND)"),
    ("a b AND c", "(a OR (b AND c))"),
    # scope of NOT
    ("a OR b AND NOT c", "(a OR (b AND NOT c))"),
    ("a b AND NOT c", "(a OR (b AND NOT c))"),
    ("a OR b NOT c", "((a OR b) AND NOT c)"),
    ("a b NOT c", "((a OR b) AND NOT c)"),
    ("NOT c a b", "((a OR b) AND NOT c)"),
    ("a AND b OR c NOT d", "(((a AND b) OR c) AND NOT d)"),
    ("a NOT b OR c", "((a OR c) AND NOT b)"),
    ("a NOT b AND c", "(a OR (c AND NOT b))"),
    ("a OR NOT b AND c", "(a OR (c AND NOT b))"),
    ("a NOT b AND NOT c", "(a AND NOT b AND NOT c)"),
    ("a AND (NOT b)", "(a AND NOT b)"),
    ("a (NOT b NOT c)", "(a AND NOT b AND NOT c)"),
    ("a AND (NOT b NOT c) d", "(((a AND NOT b) OR d) AND NOT c)"),
    ("a AND NOT (b AND NOT c)", "(a AND NOT (b AND NOT c))"),
    ("title:(a NOT b)^2", "(title:a AND NOT title:b)^2"),
    ("NOT a b", "(b AND NOT a)"),
    ("-(a b) c", "(c AND NOT (a OR b))"),
    ('-title:"a b" c', '(c AND NOT title:"a b")'),
    # canonical form
    ("((a))", "a"),
    ("a OR (b OR (c d))", "(a OR b OR c OR d)"),
    ("a AND (b AND NOT c) AND d", "(a AND b AND d AND NOT c)"),
    ("(a OR b)^1 OR c", "(a OR b OR c)"),
    ("(a OR b)^2 OR c", "((a OR b)^2 OR c)"),
    # ordinary words
    ("AT&&T", "AT&&T"),
    ("Jeopardy!", "Jeopardy!"),
    ("lay-abbot", "lay-abbot"),
    ("AC/DC", "AC/DC"),
    ("and/or", "and/or"),
    ("C++", "C++"),
    ("[sic]", "[sic]"),
    ("a||b", "a||b"),
    ("a(b)", "(a OR b)"),
    ('"a""b"', '("a" OR "b")'),
    ("O'Neill l’opéra", "(O'Neill OR l’opéra)"),
    ("Cafe\u0301", "Café"),
    ("vivaldi\u3000griselda", "(vivaldi OR griselda)"),
]

NOTED = [
    ("title:antonio vivaldi", "(title:antonio OR vivaldi)",
     'title: covers only "antonio"; for more words write title:(two words) or '
     'title:"two words".'),
    ("year:>=1970 AND lang:en", "(year:>=1970 AND lang:en)",
     "no words to rank by: passages are in corpus order."),
    ("wrote Griselda?", "(wrote OR Griselda)", 'the "?" after "Griselda" was read as punctuation.'),
    ("Simon & Garfunkel", "(Simon OR Garfunkel)", '"&" was left out: it holds nothing to search.'),
    ("a - b", "(a OR b)", '"-" was left out: it holds nothing to search.'),
    ("Vivaldi ...", "Vivaldi", '"..." was left out: it holds nothing to search.'),
    ('"Griselda"?', '"Griselda"', 'the "?" after "Griselda" was read as punctuation.'),
    ("Portland, OR?", r"(Portland, OR \OR)", 'the "?" after "OR" was read as punctuation.'),
    ('("a" b)?', '("a" OR b)', 'the "?" after "b" was read as punctuation.'),
    ('"a"|"b"', '("a" OR "b")', '"|" was left out: it holds nothing to search.'),
    ("covid -19", "(covid AND NOT 19)",
     '"-19" excludes passages with "19"; for a number after a hyphen quote it.'),
    ("romeo and juliet", "(romeo OR and OR juliet)",
     '"and" was searched as a word; operators are in upper case.'),
    ("logging %(asctime)s", "(logging OR asctime OR s)",
     '"%" was left out: it holds nothing to search.'),
    ("jsonb ->>", "jsonb", '"->>" was left out: it holds nothing to search.'),
    ("pg_dump AND --jobs, ", '(pg_dump AND "--jobs")',
     '"--jobs" was searched as the option of a command; to exclude the word write NOT jobs.'),
    ("“four seasons” opera", '("four seasons" OR opera)', "“four seasons” was read as a phrase."),
    (r"drafts\report", "draftsreport",
     r'"drafts\report" was read as "draftsreport": a backslash makes the character after it '
     r"ordinary; for a backslash itself write \\."),
    (r'"C:\Users"', '"C:Users"',
     r'"C:\Users" was read as "C:Users": a backslash makes the character after it ordinary; '
     r"for a backslash itself write \\."),
    ("not (a b)", "(not OR a OR b)", '"not" was searched as a word; operators are in upper case.'),
]  # fmt: skip

WITHOUT_NOTE = [
    "O'Neill l’opéra 'tis the dogs",
    "lay-abbot, U.S. e.g. 3.14 1890–1972 AC/DC and/or... Jeopardy!",
    "[sic] opera; “seasons” «quatre» ¿qué!",
    "Windows® 5°C word_joined naïve co\u0301te ِحسين 東京，大阪 😀",
    '"Simon & Garfunkel"',
]

MENDED = [
    # operators and parentheses
    ("mouse OR", "mouse"),
    ("OR mouse", "mouse"),
    ("AND mouse", "mouse"),
    ("mouse ||", "mouse"),
    ("&& mouse", "mouse"),
    ("mouse NOT", "mouse"),
    ("mouse AND NOT", "mouse"),
    ("mouse AND OR NOT", "mouse"),
    ("NOT OR mouse", "mouse"),
    ("mouse AND OR cat", "(mouse OR cat)"),
    ("OR mouse OR cat AND", "(mouse OR cat)"),
    ("AND (mouse OR cat) AND", "(mouse OR cat)"),
    ("(OR mouse)", "mouse"),
    ("mouse OR (AND)", "mouse"),
    ("mouse AND (cat OR", "(mouse AND cat)"),
    ("mouse OR NOT cat", "(mouse AND NOT cat)"),
    ("OR OR", None),
    ("AND NOT", None),
    ("(OR)", None),
    ("( mouse", "mouse"),
    ("mouse )", "mouse"),
    ("((mouse", "mouse"),
    ("mouse))", "mouse"),
    ("mouse (", "mouse"),
    ("mouse AND ()", "mouse"),
    ("a AND b) OR c", "((a AND b) OR c)"),
    ("(a AND (b OR c)", "(a AND (b OR c))"),
    ("NOT (mouse", None),
    # quotes
    ('"mouse', '"mouse"'),
    ('" mouse', '"mouse"'),
    ('mouse"', "mouse"),
    ('mouse "', "mouse"),
    ('mouse AND "', "mouse"),
    ('mouse AND ""', "mouse"),
    ('mouse "grey cat', '(mouse OR "grey cat")'),
    ('title:"mouse', 'title:"mouse"'),
    # text with a colon or a backslash
    (r"C:\Users" + "\\", r'"C:\\Users"'),
    ("title:a:b", 'title:"a:b"'),
    ("mouse" + "\\", "mouse"),
    # fields, ranges, weights and wildcards
    ("mouse AND title:", "mouse"),
    ("title: AND mouse", "mouse"),
    ("title:(mouse", "title:mouse"),
    ("year:[1670 TO]", "year:>=1670"),
    ("year:{TO 1680}", "year:<1680"),
    ("year:[TO]", "year:[* TO *]"),
    ("mouse ^2", "mouse"),
    ("mouse ~2", "mouse"),
    ("mouse ~", "mouse"),
    ("^", None),
    ("mouse**", "mouse*"),
    # technical text
    ("jsonb AND ->>", "(jsonb AND /->>/)"),
    ('title:"@>"', "title:/@>/"),
    ('jsonb "||"^2', r"(jsonb OR /\|\|/)"),
    ('mouse AND "..."', "mouse"),
    (
        "*_timeout AND NOT *.conf",
        r"(timeout AND /\b\w*_timeout\b/i AND NOT (conf AND /\b\w*\.conf\b/i))",
    ),
    ("title:col?r", r"(title:col* AND title:/\bcol\wr\b/i)"),
    ("git NOT --no-verify^2", '(git AND NOT "--no-verify")'),
    ("git ---all", "(git AND NOT all)"),
    ("*?*", None),
]

DEFAULT_AND = [
    ("a b OR c", "((a AND b) OR c)"),
    ("a OR b NOT c", "(a OR (b AND NOT c))"),
    ("a b OR c NOT d", "((a AND b) OR (c AND NOT d))"),
    ("a NOT b", "(a AND NOT b)"),
]


@pytest.mark.parametrize(("query", "understood"), READ_AS)
def test_a_query_is_understood_as_the_table_says(query: str, understood: str) -> None:
    assert parse(query, SCHEMA).text == understood
    assert parse(understood, SCHEMA).tree == parse(query, SCHEMA).tree


@pytest.mark.parametrize(("query", "understood", "note"), NOTED)
def test_ambiguous_text_gets_a_note(query: str, understood: str, note: str) -> None:
    parsed = parse(query, SCHEMA)
    assert parsed.text == understood
    assert parsed.notes == (note,)


@pytest.mark.parametrize(
    "suffix", ["", "^2", "^2or?", "^x", "^0", "^2^3", "^2~1", "~30", "~x", "?"]
)
@pytest.mark.parametrize("before", ["", "title:", "title: ", "-", "lang:", "year:", "nothing:"])
def test_a_phrase_of_plain_words_is_read_like_any_other(before: str, suffix: str) -> None:
    def read(phrase: str) -> list[str]:
        try:
            parsed = parse(f"{before}{phrase}{suffix} opera", SCHEMA)
            return [parsed.text, *parsed.notes]
        except QueryError as error:
            return [str(error)]

    comma = [text.replace('after "four,', 'after "') for text in read('"four,seasons"')]
    assert read('"four seasons"') == [
        text.replace("four,seasons", "four seasons") for text in comma
    ]


@pytest.mark.parametrize("query", WITHOUT_NOTE)
def test_ordinary_punctuation_gets_no_note(query: str) -> None:
    assert parse(query, SCHEMA).notes == ()


@pytest.mark.parametrize(("query", "mended"), MENDED)
def test_a_malformed_query_is_corrected_to_what_was_meant(query: str, mended: str | None) -> None:
    with pytest.raises(QueryError) as caught:
        parse(query, SCHEMA)
    assert caught.value.mended == mended


@pytest.mark.parametrize(("query", "understood"), DEFAULT_AND)
def test_a_space_can_mean_and(query: str, understood: str) -> None:
    assert parse(query, SCHEMA, default_operator="AND").text == understood


def test_published_queries_read_technical_text_as_papers_do() -> None:
    assert parse("pg_dump -j ->>", SCHEMA, as_written=True).notes == (
        '"->>" was left out: it holds nothing to search.',
    )
    for query, mended in (
        ("git --all", "(git OR all)"),
        ("wom?n a", "(wom* OR a)"),
        ('a AND "->>"', "a"),
    ):
        with pytest.raises(QueryError) as caught:
            parse(query, SCHEMA, as_written=True)
        assert caught.value.mended == mended


def test_an_option_is_no_field_and_no_value() -> None:
    for query in ("git --year:5", "lang:(--en)"):
        with pytest.raises(QueryError, match="an option of a command"):
            parse(query, SCHEMA)
    assert parse("title:(--jobs x)", SCHEMA).text == '(title:"--jobs" OR title:x)'


def bad_queries() -> list[tuple[str, str]]:
    blocks = (TABLES / "bad_queries.txt").read_text(encoding="utf-8").strip().split("\n\n")
    return [(query, message) for query, message in (block.split("\n", 1) for block in blocks)]


@pytest.mark.parametrize(("query", "message"), bad_queries())
def test_a_bad_query_is_rejected_with_this_message(query: str, message: str) -> None:
    schema = Schema({"year": "number"}) if query.startswith("vivaldi OR") else SCHEMA
    with pytest.raises(QueryError) as caught:
        parse(query, schema)
    assert str(caught.value) == message
    assert caught.value.mended is None or parse(caught.value.mended, schema).tree


def test_a_blank_query_is_rejected() -> None:
    for query in ("", "   ", "\n\t"):
        with pytest.raises(QueryError, match="the query is empty"):
            parse(query, SCHEMA)


def test_short_prefixes_count_as_several() -> None:
    for query in ("aaa* bbb* cccc* dddd* eeee* fffff* ggggg*", " ".join(["abcde*"] * 16)):
        assert parse(query, SCHEMA).text
        with pytest.raises(QueryError, match="count as 17; at most 16"):
            parse(f"{query} abcdef*", SCHEMA)


def test_queries_beyond_the_limits_are_rejected_with_the_numbers() -> None:
    cases = {
        "a" * 2_001: "the query has 2,001 characters; at most 2,000 are read. "
        "Write a shorter query, or several.",
        " ".join(f"w{n}" for n in range(65)): "the query has 65 words, phrases and conditions; at "
        "most 64 are allowed. Leave out the least telling ones, or write several queries.",
        "aaa* bbb* ccc* ddd* eeeee*": "the prefixes of the query count as 17; at most 16 are "
        "allowed (one of 3 characters counts as 4, one of 4 as 2). Write longer ones, or whole "
        "words for some.",
        '"'
        + "of the " * 60
        + '" "'
        + "in a " * 40
        + '"': "the phrases of the query have 200 words; "
        "at most 192 are allowed (a word with an apostrophe counts in each of its spellings). "
        "Write shorter phrases, or several queries.",
        '"'
        + "l'art " * 97
        + '"': "the phrases of the query have 194 words; at most 192 are allowed "
        "(a word with an apostrophe counts in each of its spellings). Write shorter phrases, or "
        "several queries.",
        "(" * 13 + "a" + ")" * 13: "parentheses more than 12 deep. Leave out those that "
        "change nothing, or write several queries.",
    }
    for query, message in cases.items():
        with pytest.raises(QueryError) as caught:
            parse(query, SCHEMA)
        assert [problem.message for problem in caught.value.problems] == [message]
        assert caught.value.mended is None


@pytest.mark.parametrize(
    ("query", "beyond"),
    [
        (" ".join(f"w{n}" for n in range(70)), "w64 w65"),
        ("x NOT title:w0 " + " ".join(f"w{n}" for n in range(1, 70)), "w63 w64"),
        ("(aaa* bbb*)^2 c ccc* lang:en ddd* title:eeeee* fff*", "title:eeeee* fff*"),
        ('a "' + "of the " * 90 + '" "' + "in a " * 20 + '" z', '"in a in a'),
    ],
)
def test_a_limit_of_the_whole_is_exceeded_at_the_first_leaf_beyond_it(
    query: str, beyond: str
) -> None:
    with pytest.raises(QueryError) as caught:
        parse(query, SCHEMA)
    assert caught.value.problems[0].column == query.index(beyond) + 1


def test_leaves_know_where_their_clauses_start_and_are_values_all_the_same() -> None:
    query = 'title:a  -(bbb~1^2 OR "c d"~2 lang:"en") NOT /x/ AND year:>=5 col*^2 published:2001'
    tree = parse(query, SCHEMA).tree
    again = parse(str(tree), SCHEMA).tree
    assert again == tree
    assert repr(again) == repr(tree)
    assert hash(again) == hash(tree)
    pieces = [query[leaf.start :].split(" ")[0].rstrip(")") for leaf in leaves(tree)]
    assert sorted(pieces) == sorted(
        ["title:a", "bbb~1^2", '"c', 'lang:"en"', "/x/", "year:>=5", "col*^2", "published:2001"]
    )


def test_a_program_can_branch_on_the_kind_of_a_problem_and_on_its_values() -> None:
    kinds = {
        "author:x": ("UNKNOWN_FIELD", "name", "author"),
        "vi*": ("PREFIX", "text", "vi"),
        "year:z": ("NOT_A_VALUE", "type", "number"),
        "a^5000": ("SUFFIX", None, None),
        "/(/": ("PATTERN", "pattern", "("),
        "year:[2 TO 1]": ("EMPTY_RANGE", None, None),
        "a PREFER lang:en": ("PREFER_WITHOUT_SCORE", None, None),
        "a DEMOTE^2 b": ("FACTOR_OF_DEMOTE", None, None),
        " ".join(f"w{n}" for n in range(65)): ("TOO_MANY_LEAVES", "count", 65),
    }
    for query, (kind, name, value) in kinds.items():
        with pytest.raises(QueryError) as caught:
            parse(query, SCHEMA)
        problem = caught.value.problems[0]
        assert problem.kind == kind
        assert problem.values.get(name or "") == value
    with pytest.raises(QueryError) as caught:
        parse_filter({"year": "x"}, SCHEMA)
    assert caught.value.problems[0].kind == "NOT_ALLOWED"
    assert caught.value.problems[0].values["what"] == '"x" is no value of a number field.'


_PIECES = (
    *("opera", "Vivaldi", "librett*", "vi*", "vivladi~1", '"four seasons"', "/born/", "a:born",
    "seen^x"),
    *("title:", "author:born", "year:5", "lang:en", ")^2é", "x*y", "born^0drawn", "NOT", "DEMOTE"),
    *("PREFER", "(", "NOT (", "DEMOTE (", "PREFER (", ")", "AND", "OR", "-", "--all", "~2", '"',
    "^0"),
)  # fmt: skip


def _words_of(text: str) -> set[str]:
    names = {"and", "or", "not", "prefer", "demote", "title", "content", "year", "lang"}
    return set(re.findall(r"[^\W\d_]+", text.lower())) - names


@settings(max_examples=EXAMPLES)
@given(st.lists(st.sampled_from(_PIECES), max_size=12), st.sampled_from([" ", ""]))
@example(["opera", "NOT (", "born", "PREFER (", *["opera"] * 9, "Vivaldi"], " ")
@example(["opera", "DEMOTE", "author:drawn^0born"], " ")
@example(["opera", ")^2é", "Vivaldi"], " ")
@example(["opera", ")^2é", *["opera"] * 9, "author:born"], "")
def test_a_corrected_query_holds_every_word_that_no_problem_names(
    pieces: list[str], between: str
) -> None:
    typed = between.join(pieces)
    try:
        parse(typed, SCHEMA)
    except QueryError as error:
        if error.mended is not None:
            problems = [f"{problem.piece} {problem.message}" for problem in error.problems]
            known = " ".join([error.mended, *problems]).lower()  # the end of a piece may be cut
            assert not [word for word in _words_of(typed) if word[:9] not in known]


def test_a_query_at_the_limits_is_accepted() -> None:
    parse("a" * 2_000, SCHEMA)
    parse(" ".join(f"w{n}" for n in range(64)), SCHEMA)
    parse("aaa* bbb* ccc* ddd*", SCHEMA)
    parse('"' + "of the " * 96 + '"', SCHEMA)
    parse("qu'est-ce-que-l'art-d'aujourd'hui", SCHEMA)
    parse("(" * 12 + "a" + ")" * 12, SCHEMA)


def test_all_problems_are_reported_at_once_in_order_of_column() -> None:
    with pytest.raises(QueryError) as caught:
        parse('a~ OR vi* OR author:x OR "" OR year:z OR b^0', SCHEMA)
    assert [problem.column for problem in caught.value.problems] == [1, 2, 7, 14, 26, 37, 43]


FILES = Schema(
    {
        "tags": "keyword",
        "authors": "keyword",
        "created": "date",
        "Case": "keyword",
        "case": "keyword",
    }
)


@pytest.mark.parametrize(
    ("query", "near", "mended"),
    [
        ("tag:energy", "tags", "tags:energy"),
        ('TAG:"heat pump"', "tags", 'tags:"heat pump"'),
        ("-tag:a b", "tags", "(b AND NOT tags:a)"),
        ("tag:(a OR b)", "tags", "(tags:a OR tags:b)"),
        ('tag:"a b', "tags", 'tags:"a b"'),
        ("author:a:b", "authors", 'authors:"a:b"'),
        ("crated:[2020 TO 2021]", "created", "created:[2020 TO 2021]"),
        ("crated:>2020", "created", "created:>2020"),
        ("docid:x", "doc_id", "doc_id:x"),
        ("titel:a", "title", "title:a"),
        ("CASE:x", "Case, case", None),
        ("place:x", "", '"place x"'),
    ],
)
def test_an_unknown_field_is_corrected_to_the_only_near_one(
    query: str, near: str, mended: str | None
) -> None:
    with pytest.raises(QueryError) as caught:
        parse(query, FILES)
    named = caught.value.problems[0].message.split(". Fields: ")[0].partition("; nearest: ")[2]
    assert (named, caught.value.mended) == (near, mended)


@pytest.mark.parametrize(
    "text", ["http://x", "12:30", r"C:\\dir", "C:/dir", "std::vector", "tag::x", "tag:/x"]
)
def test_text_with_a_colon_that_names_no_field_stays_text(text: str) -> None:
    assert parse(text, FILES).text == f'"{text}"'


def test_a_filter_names_near_fields_of_metadata_and_none_for_very_long_text() -> None:
    for text, mended in (("tag:x", "tags:x"), ("titel:x", None)):
        with pytest.raises(QueryError) as caught:
            parse_filter(text, FILES)
        assert caught.value.mended == mended
    with pytest.raises(QueryError) as caught:
        parse_filter("tag:x OR " * 500 + "tag:x", FILES)
    assert "nearest" not in caught.value.problems[0].message


def test_without_operators_they_are_rejected_and_spaces_are_printed() -> None:
    assert parse('a "b c" title:d^2', SCHEMA, operators=False).text == ('(a "b c" title:d^2)')
    with pytest.raises(QueryError) as caught:
        parse("a AND b NOT c -d !(e f) || g", SCHEMA, operators=False)
    assert [problem.piece for problem in caught.value.problems] == ["AND", "NOT", "-", "!", "||"]
    assert caught.value.problems[0].message == (
        "operators are off here. Words, phrases, fields and weights are allowed; write them with "
        "spaces between."
    )
    assert caught.value.mended == "(a b g)"


def test_without_an_index_other_fields_are_noted() -> None:
    parsed = parse("lang:en AND year:>=1970 AND published:[2001-05 TO 2002]", ANY_SCHEMA)
    assert parsed.tree == And(
        (
            KeywordEquals("lang", "en"),
            Range("year", "number", "1970", None),
            Range("published", "date", "2001-05", "2002"),
        )
    )
    assert parsed.notes[0] == (
        'whether an index has a field "lang" was not checked; its type was guessed.'
    )


def test_a_scope_is_of_metadata_and_may_consist_of_nots_alone() -> None:
    assert parse_filter("lang:en -year:1678", SCHEMA) == (
        parse("lang:en AND NOT year:1678", SCHEMA).tree,
    )
    assert parse_filter("NOT lang:en NOT lang:de", SCHEMA) == (
        Modifier(NOT, KeywordEquals("lang", "en")),
        Modifier(NOT, KeywordEquals("lang", "de")),
    )
    many = " OR ".join(f"doc_id:d{n}" for n in range(3_000))
    assert len(parse_filter(many, SCHEMA)[0].children) == 3_000  # type: ignore[union-attr]
    with pytest.raises(QueryError) as caught:
        parse_filter("lang:en AND vivaldi", SCHEMA)
    assert caught.value.where == "the filter"
    assert "vivaldi" in caught.value.what


@pytest.mark.parametrize("text", ["<a href=javascript:x>", "a=b:c", "x+y:(a OR b)", 'é&:"a b"'])
def test_text_that_cannot_name_a_field_is_an_unknown_field_without_an_index(text: str) -> None:
    with pytest.raises(QueryError, match="there is no field"):
        parse(text, ANY_SCHEMA)


def test_an_unknown_field_in_a_scope_is_rejected_with_the_fields_of_filters() -> None:
    with pytest.raises(QueryError) as caught:
        parse_filter("author:goldoni", SCHEMA)
    assert "Fields: doc_id, year (number), lang (keyword), published (date)." in str(caught.value)


def test_an_invalid_tree_cannot_be_built() -> None:
    a, b = Term("a"), Term("b")
    wrong = [
        lambda: Or((a, Modifier(NOT, b))),  # type: ignore[arg-type]
        lambda: And((Modifier(NOT, a), Modifier(NOT, b))),
        lambda: And((Modifier(NOT, a), b)),
        lambda: And((a,)),
        lambda: Or((a, Or((a, b)))),
        lambda: Modifier(NOT, Modifier(NOT, a)),  # type: ignore[arg-type]
        lambda: Term("..."),
        lambda: Term("a", weight=0.001),
        lambda: Or((Term("a", weight=100), b), weight=100),
        lambda: Term("\ud800"),
        lambda: Phrase("a", slop=2),
        lambda: Phrase("a b", slop=21),
        lambda: Prefix("vi"),
        lambda: Prefix("AT&T"),
        lambda: Range("year", "number", "2", "1"),
        lambda: Range("year", "number", "nan", "1"),
        lambda: Range("published", "date", "2001-13", None),
        lambda: Range("published", "date", "2002", "2001"),
        lambda: Or((KeywordEquals("x", "a"), KeywordEquals("x", "b")), weight=2),
    ]
    for make in wrong:
        with pytest.raises(ArgumentError):
            make()


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_every_tree_parses_back_from_its_text(data: st.DataObject) -> None:
    tree = data.draw(strategies.trees(awkward=True))
    assert parse(str(tree), strategies.SCHEMA, limits=False).tree == tree
    assert parse(str(tree), strategies.SCHEMA, limits=False, default_operator="AND").tree == tree


@settings(max_examples=EXAMPLES)
@given(
    st.one_of(
        st.text(max_size=60),
        st.text(alphabet='ab \\"()[]{}:^~*?-!+&|/<>=.12\u0301\u200f\u200b', max_size=60),
        st.lists(
            st.sampled_from(
                ["AND", "OR", "NOT", "(", ")", "a", '"a b"', "title:", "year:", "[1 TO 2]", "^2",
                 "~3", "-", "!", "+", "*", "?", "lang:en", "x:y", "\\", '"', "abc*",
                 "PREFER", "DEMOTE", "DEMOTE^0.2", "DEMOTE^2", "PREFER^3", "NOT(", "DEMOTE(", "-(",
                 "(", ")", ")^2", "it's", "C:\\x", "a'b'c'd'e'f'g'h'i"]
            ),
            max_size=14,
        ).flatmap(lambda pieces: st.sampled_from((" ", "")).map(lambda gap: gap.join(pieces))),
        st.characters(codec=None).map(str),
    ),
    st.booleans(),
    st.booleans(),
)  # fmt: skip
@example("A'A'A'A'A'A'A'A'A^A", False, False)
@example("A'A'A'A'A'A'A'A'A*b", True, False)
def test_any_text_either_parses_or_raises_a_query_error(
    text: str, operators: bool, default_and: bool
) -> None:
    default = "AND" if default_and else "OR"
    try:
        parsed = parse(text, SCHEMA, operators=operators, default_operator=default)
    except QueryError as error:
        assert error.problems
        assert "\n" in str(error)
        if error.mended is not None:
            parse(error.mended, SCHEMA, operators=operators, default_operator=default)
        return
    assert render(parsed.tree, operators) == parsed.text
    reparsed = parse(
        parsed.text, SCHEMA, operators=operators, default_operator=default, limits=False
    )
    assert reparsed.tree == parsed.tree


@settings(max_examples=EXAMPLES)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                ["AND", "OR", "NOT", "(", ")", '"', "&&", "||", "-", "!", "+", "C++", "x:",
                 "(AND", 'OR"', r"C:\Users\Bob", r"C:\\Users", r"\\host\x", "http://h:80/p?q=r",
                 "10:30", "a:b:c", "it’s", "/etc/x", "東京", "x.y,", "a\\"]
            ),
            st.text(alphabet='abc1é東\\:/"()-!+.,', min_size=1, max_size=8),
        ),
        min_size=1,
        max_size=8,
    ).map(" ".join),
    st.sampled_from(("OR", "AND")),
)  # fmt: skip
@example('(-"bob"/)1', "OR")
@example("bob -1 AND /", "OR")
@example('bob 1:"', "OR")
def test_a_corrected_query_parses_and_keeps_every_letter_and_digit_of_the_words(
    text: str, default: Literal["OR", "AND"]
) -> None:
    try:
        parse(text, SCHEMA, default_operator=default)
    except QueryError as error:
        if error.mended is None:
            return
        parse(error.mended, SCHEMA, default_operator=default)
        kept = letters_and_digits(error.mended)
        words = set(re.split(r'[\s()"]+', text)) - {"AND", "OR", "NOT"}
        assert all(letters_and_digits(word) in kept for word in words)


def letters_and_digits(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def test_a_megabyte_of_text_is_rejected_before_it_is_scanned() -> None:
    with pytest.raises(QueryError) as caught:
        parse('"vivaldi\ud800(' * 100_000, SCHEMA)
    assert [problem.message for problem in caught.value.problems] == [
        "the query has 1,000,000 characters; at most 2,000 are read. Write a shorter query, or "
        "several."
    ]


def test_problems_after_the_twentieth_are_only_counted() -> None:
    with pytest.raises(QueryError) as caught:
        parse("vi* " * 30, SCHEMA)
    assert len(caught.value.problems) == 30
    assert str(caught.value).splitlines()[-1] == "And 10 more, further on."


@pytest.mark.parametrize(
    ("query", "understood"),
    [
        ("vivaldi PREFER (libretto OR opera)", "(vivaldi PREFER (libretto OR opera))"),
        ("a b DEMOTE^0.2 c PREFER d NOT e", "((a OR b) AND NOT e PREFER d DEMOTE^0.2 c)"),
        ("a OR b AND DEMOTE c", "(a OR (b DEMOTE c))"),
        ("a (DEMOTE b PREFER c)", "(a PREFER c DEMOTE b)"),
        ("(a DEMOTE b) AND c", "(a AND c DEMOTE b)"),
        ("a PREFER (b DEMOTE c)^2", "(a PREFER (b DEMOTE c)^2)"),
        ("lang:en PREFER a DEMOTE year:1900", "(lang:en PREFER a DEMOTE year:1900)"),
        (r"\PREFER a DEMOTE \DEMOTE", r"((\PREFER OR a) DEMOTE \DEMOTE)"),
    ],
)
def test_prefer_and_demote_apply_as_far_as_not_does(query: str, understood: str) -> None:
    parsed = parse(query, SCHEMA)
    assert parsed.text == understood
    assert parse(understood, SCHEMA).tree == parsed.tree


@pytest.mark.parametrize(
    ("query", "mended"),
    [
        ("a OR DEMOTE b", "(a DEMOTE b)"),
        ("NOT (a DEMOTE b) c", "(c AND NOT a)"),
        ("a DEMOTE (b PREFER c)", "(a DEMOTE b)"),
        ("a DEMOTE (b OR c)^3", "(a DEMOTE (b OR c))"),
        ("a DEMOTE^1 b", "(a DEMOTE b)"),
        ("a PREFER^2 b", "(a PREFER b)"),
        ("a PREFER lang:en", "a"),
        ("a PREFER NOT b", None),
        ("a DEMOTE (NOT b)", None),
        ("PREFER a DEMOTE b", None),
        ("a DEMOTE", "a"),
    ],
)
def test_a_misplaced_prefer_or_demote_is_rejected_with_a_rewrite(
    query: str, mended: str | None
) -> None:
    with pytest.raises(QueryError) as caught:
        parse(query, SCHEMA)
    assert caught.value.mended == mended


def test_filters_and_conditions_reject_prefer_and_demote() -> None:
    for operator in ("PREFER", "DEMOTE"):
        with pytest.raises(QueryError, match="a filter has no scores") as caught:
            parse_filter(f"lang:en {operator} year:1678", SCHEMA)
        assert caught.value.mended == "lang:en"
        with pytest.raises(QueryError, match="a filter has no scores") as caught:
            parse(f"opera {operator} vivaldi", SCHEMA, ranked=False)
        assert caught.value.mended == "opera"


def test_prefer_and_demote_are_words_where_they_are_no_operators() -> None:
    assert parse("a PREFER b", SCHEMA, as_written=True).text == r"(a OR \PREFER OR b)"
    assert parse("a DEMOTE b", SCHEMA, operators=False).text == r"(a \DEMOTE b)"

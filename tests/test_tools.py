"""The three tools, over an index in memory: what a model sees, to the letter and to the token."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arag_search.corpus import Chunk, MetadataValue, ordinal_of
from arag_search.engines.memory import MemoryEngine
from arag_search.errors import AragError, ArgumentError
from arag_search.index import Index
from arag_search.query.fields import Schema
from arag_search.query.parser import parse_scope
from arag_search.tokens import count_tokens
from arag_search.tools.base import MIN_RESULT_TOKENS, ReadSet, Tool, ToolResult
from arag_search.tools.chunk_read import ChunkRead
from arag_search.tools.keyword_search import KeywordSearch
from arag_search.tools.logical_search import Description, LogicalSearch
from arag_search.tools.rendering import MAX_TITLE_TOKENS, cut_to
from arag_search.tools.search import ReplyStyle

SCHEMA = Schema({"year": "number", "lang": "keyword"})


def chunk(
    document: int,
    doc_id: str,
    title: str,
    *sentences: str,
    part: int = 1,
    parts: int = 1,
    **metadata: MetadataValue,
) -> Chunk:
    ends: list[int] = []
    for sentence in sentences:
        ends.append((ends[-1] if ends else 0) + len(sentence))
    return Chunk(
        id=f"{doc_id}.{part}",
        doc_id=doc_id,
        title=title,
        content="".join(sentences),
        part=part,
        parts=parts,
        ordinal=ordinal_of(0, document, part - 1),
        sentence_ends=tuple(ends),
        metadata=metadata,
    )


def index_of(*chunks: Chunk, scope: str | None = None, sentences: bool = True) -> Index:
    engine = MemoryEngine(chunks, metadata=SCHEMA.metadata, sentences=sentences)
    return Index(engine, "memory", None if scope is None else parse_scope(scope, SCHEMA))


VIVALDI = (
    chunk(
        0,
        "vivaldi",
        "Antonio Vivaldi",
        "Antonio Vivaldi was born in Venice. ",
        "He wrote many operas. ",
        "The priest taught violin. ",
        "Each libretto was new.",
        parts=2,
        year=1678,
        lang=("en", "it"),
    ),
    chunk(
        0,
        "vivaldi",
        "Antonio Vivaldi",
        "He died in Vienna. ",
        "Vivaldi's music was forgotten.",
        part=2,
        parts=2,
        year=1678,
        lang=("en", "it"),
    ),
    chunk(
        1,
        "griselda",
        "Griselda (Vivaldi)",
        "Griselda is an opera by Antonio Vivaldi. ",
        "Its premiere was in Venice. ",
        "Its libretto was revised by the young Carlo Goldoni.",
        year=1735,
    ),
    chunk(2, "scarlatti", "Griselda (Scarlatti)", "This opera is older.", year=1721),
    chunk(3, "page", "", "A page without a title."),
)


@pytest.fixture(scope="module")
def index() -> Index:
    return index_of(*VIVALDI)


@pytest.fixture(scope="module")
def logical(index: Index) -> LogicalSearch:
    return LogicalSearch(index)


@pytest.fixture(scope="module")
def keyword(index: Index) -> KeywordSearch:
    return KeywordSearch(index)


@pytest.fixture(scope="module")
def read(index: Index) -> ChunkRead:
    return ChunkRead(index)


# What a search shows


def test_a_logical_search_shows_query_hits_snippets_and_how_to_get_more(
    logical: LogicalSearch,
) -> None:
    result = logical.run({"query": '"antonio vivaldi" AND librett*', "top_k": 1})
    assert result.text == (
        '1 of 2 passages for ("antonio vivaldi" AND librett*)\n'
        "[vivaldi.1] Antonio Vivaldi, part 1 of 2\n"
        "Antonio Vivaldi was born in Venice. ... Each libretto was new.\n"
        "More: offset=1. Full text: chunk_read."
    )
    assert (result.status, result.ids, result.total) == ("ok", ("vivaldi.1",), 2)
    assert result.total_is_exact
    assert result.result_tokens == count_tokens(result.text)
    assert result.retrieved_tokens == count_tokens("Antonio Vivaldi") + count_tokens(
        "Antonio Vivaldi was born in Venice. ... Each libretto was new."
    )


def test_notes_stand_under_the_first_line(logical: LogicalSearch) -> None:
    result = logical.run({"query": "premiere and opera", "top_k": 1})
    assert result.text == (
        "1 of 2 passages for (premiere OR and OR opera)\n"
        'Note: lower-case "and" was searched as a word.\n'
        "[griselda.1] Griselda (Vivaldi)\n"
        "Griselda is an opera by Antonio Vivaldi. Its premiere was in Venice. ...\n"
        "More: offset=1. Full text: chunk_read."
    )


@pytest.mark.parametrize(
    ("arguments", "first_line", "last_line"),
    [
        (
            {"query": "vivaldi", "top_k": 2},
            "2 of 3 passages for vivaldi",
            "More: offset=2. Full text: chunk_read.",
        ),
        (
            {"query": "vivaldi", "offset": 1, "top_k": 1},
            "Passage 2 of 3 for vivaldi",
            "More: offset=2. Full text: chunk_read.",
        ),
        (
            {"query": "vivaldi", "offset": 1},
            "Passages 2 to 3 of 3 for vivaldi",
            "Full text: chunk_read.",
        ),
        ({"query": "page"}, "1 of 1 passage for page", "Full text: chunk_read."),
        (
            {"query": "venice", "granularity": "sentence"},
            "2 passages for venice: 2 sentences match",
            "Full text: chunk_read.",
        ),
        (
            {"query": "venice", "granularity": "sentence", "top_k": 1, "offset": 1},
            "Passage 2 for venice: 2 sentences match",
            "More: offset=2. Full text: chunk_read.",
        ),
        (
            {"query": "premiere", "granularity": "sentence"},
            "1 passage for premiere: 1 sentence matches",
            "Full text: chunk_read.",
        ),
    ],
)
def test_the_first_and_the_last_line_say_where_in_the_hits_this_is(
    logical: LogicalSearch, arguments: dict[str, object], first_line: str, last_line: str
) -> None:
    lines = logical.run(arguments).text.splitlines()
    assert (lines[0], lines[-1]) == (first_line, last_line)


def test_totals_are_counted_up_to_a_thousand() -> None:
    many = [chunk(number, f"d{number}", "", "opera") for number in range(1001)]
    result = LogicalSearch(index_of(*many, sentences=False)).run({"query": "opera", "top_k": 1})
    assert result.text.splitlines()[0] == "1 of more than 1,000 passages for opera"
    assert (result.total, result.total_is_exact) == (1000, False)
    result = LogicalSearch(index_of(*many[1:], sentences=False)).run({"query": "opera"})
    assert result.text.splitlines()[0] == "5 of 1,000 passages for opera"
    assert result.text.splitlines()[-1] == "More: offset=5. Full text: chunk_read."
    result = LogicalSearch(index_of(*many, sentences=False)).run(
        {"query": "opera", "top_k": 20, "offset": 980}
    )
    assert result.text.splitlines()[0] == "Passages 981 to 1000 of more than 1,000 for opera"
    assert result.text.splitlines()[-1] == "Full text: chunk_read."  # 1000 cannot be asked for


def test_an_offset_past_the_end_is_empty_and_says_where_the_end_is(
    logical: LogicalSearch, keyword: KeywordSearch
) -> None:
    result = logical.run({"query": "vivaldi", "offset": 3})
    assert result.text == "Only 3 passages match vivaldi; offset must be below 3."
    assert (result.status, result.ids, result.total) == ("empty", (), 3)
    result = keyword.run({"keywords": ["page"], "offset": 980})
    assert result.text == 'Only 1 passage matches "page"; offset must be below 1.'
    result = logical.run({"query": "vivaldi", "granularity": "sentence", "offset": 9})
    assert result.text == "Only 3 passages match vivaldi; offset must be below 3."


def test_what_matches_nothing_is_taken_apart(logical: LogicalSearch) -> None:
    result = logical.run({"query": '"antonio vivaldi" AND title:librettist'})
    assert result.text == (
        'No passage matches ("antonio vivaldi" AND title:librettist).\n'
        'Alone: "antonio vivaldi" 3; title:librettist occurs nowhere. '
        "Without title:librettist: 3."
    )
    assert (result.status, result.total, result.retrieved_tokens) == ("empty", 0, 0)
    result = logical.run({"query": "born AND violin", "granularity": "sentence"})
    assert result.text == (
        "No sentence matches (born AND violin).\n"
        "Alone: born 1; violin 1. Without born: 1. Without violin: 1. With granularity chunk: 1."
    )
    result = logical.run({"query": "operetta NOT opera"})
    assert result.text == (
        "No passage matches (operetta AND NOT opera).\n"
        "Alone: operetta occurs nowhere; opera 2 (excluded)."
    )


def test_a_query_with_problems_is_an_error_with_all_of_them(logical: LogicalSearch) -> None:
    result = logical.run({"query": "vivaldi OR NOT opera OR author:Walker"})
    assert result.text == (
        "Query not run: 2 problems.\n"
        '1. column 12, "NOT opera": a NOT cannot be an alternative of OR; alone it matches nearly '
        "every passage. Write AND NOT, or a space before NOT.\n"
        '2. column 25, "author:": there is no field "author". Fields: title, content, doc_id, year '
        "(number), lang (keyword). Text with a colon is quoted.\n"
        'Write: ((vivaldi AND NOT opera) OR "author Walker")'
    )
    assert (result.status, result.ids, result.total) == ("error", (), None)


def test_keywords_are_scored_and_shown_as_in_the_paper(keyword: KeywordSearch) -> None:
    result = keyword.run({"keywords": ["Antonio Vivaldi", "libretto"]})
    assert result.text == (
        '3 of 3 passages for "Antonio Vivaldi", "libretto"\n'
        "[vivaldi.1] Antonio Vivaldi, part 1 of 2\n"
        "Antonio Vivaldi was born in Venice. ... Each libretto was new.\n"
        "[griselda.1] Griselda (Vivaldi)\n"
        "Griselda is an opera by Antonio Vivaldi. ... Its libretto was revised by the young Carlo "
        "Goldoni.\n"
        "[vivaldi.2] Antonio Vivaldi, part 2 of 2\n"
        "He died in Vienna. ...\n"
        "Full text: chunk_read."
    )


def test_keywords_that_are_nowhere_or_nothing(keyword: KeywordSearch) -> None:
    assert keyword.run({"keywords": ["operetta"]}).text == 'No passage matches "operetta".'
    assert keyword.run({"keywords": ["..."]}).text == (
        'No passage matches "...".\nNote: "..." holds nothing to search.'
    )


def test_substring_matching_finds_parts_of_words(index: Index) -> None:
    result = KeywordSearch(index, matching="substring").run({"keywords": ["NIO VIV"], "top_k": 1})
    assert result.text.splitlines()[:3] == [
        '1 of 3 passages for "NIO VIV"',
        "[vivaldi.1] Antonio Vivaldi, part 1 of 2",
        "Antonio Vivaldi was born in Venice. ...",
    ]


def test_a_title_cannot_pass_for_another_line_of_the_reply() -> None:
    index = index_of(chunk(0, "d", "Opera\n[x.1] Fake\tTitle", "A forgery."))
    result = LogicalSearch(index).run({"query": "forgery"})
    assert result.text.splitlines()[1] == "[d.1] Opera [x.1] Fake Title"


# Arguments


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        (
            {},
            ['argument "keywords" is missing. Allowed: a list of 1 to 20 strings of at most 200 '
             "characters each."],
        ),
        (
            {"keywords": "opera"},
            ['argument "keywords", "opera". Allowed: a list of 1 to 20 strings of at most 200 '
             "characters each."],
        ),
        (
            {"keywords": ["opera", 7]},
            ['argument "keywords", 7. Allowed: a list of 1 to 20 strings of at most 200 '
             "characters each."],
        ),
        (
            {"keywords": [], "top_k": 0, "offset": 981},
            ['argument "keywords", []. Allowed: a list of 1 to 20 strings of at most 200 '
             "characters each.",
             'argument "top_k", 0. Allowed: a whole number from 1 to 20.',
             'argument "offset", 981. Allowed: a whole number from 0 to 980.'],
        ),
        (
            {"keywords": ["opera"], "top_k": True, "offset": None},
            ['argument "top_k", true. Allowed: a whole number from 1 to 20.',
             'argument "offset", null. Allowed: a whole number from 0 to 980.'],
        ),
        (
            {"keywords": ["opera"], "top_k": "5", "offset": 2.0},
            ['argument "top_k", "5". Allowed: a whole number from 1 to 20.',
             'argument "offset", 2.0. Allowed: a whole number from 0 to 980.'],
        ),
        (
            {"keywords": ["opera"], "query": "opera", "limit": 5},
            ['argument "query": there is no such argument. Arguments: keywords, top_k, offset.',
             'argument "limit": there is no such argument. Arguments: keywords, top_k, offset.'],
        ),
        ({"keywords": [" "]}, ['argument "keywords": A keyword is empty. Allowed: words or short '
                               "phrases."]),
        (
            {"keywords": ["x" * 201]},
            [f'argument "keywords", "{"x" * 56}.... Allowed: a list of 1 to 20 strings of at most '
             "200 characters each."],
        ),
        (
            {"keywords": ["half \ud800"]},
            ['argument "keywords", "half ?". Allowed: a list of 1 to 20 strings of at most 200 '
             "characters each."],
        ),
        (None, ["the arguments, null. Allowed: a JSON object of keywords, top_k, offset."]),
        (["opera"], ['the arguments, ["opera"]. Allowed: a JSON object of keywords, top_k, '
                     "offset."]),
    ],
)  # fmt: skip
def test_wrong_arguments_are_all_answered_with_name_value_and_what_is_allowed(
    keyword: KeywordSearch, arguments: object, problems: list[str]
) -> None:
    result = keyword.run(arguments)
    many = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    lines = [f"{number}. {problem}" for number, problem in enumerate(problems, 1)]
    assert result.text.splitlines() == [f"Tool not run: {many}.", *lines]
    assert result.status == "error"


def test_choices_are_named(logical: LogicalSearch) -> None:
    result = logical.run({"query": "opera", "default_operator": "and", "granularity": "word"})
    assert result.text == (
        "Tool not run: 2 problems.\n"
        '1. argument "default_operator", "and". Allowed: "OR" or "AND".\n'
        '2. argument "granularity", "word". Allowed: "chunk" or "sentence".'
    )


def test_hidden_arguments_are_refused_and_not_described() -> None:
    tool = LogicalSearch(index_of(*VIVALDI, sentences=False), operators=False)
    assert list(tool.parameters["properties"]) == ["query", "top_k", "offset"]
    assert "granularity" not in tool.description
    result = tool.run({"query": "opera", "granularity": "chunk", "default_operator": "OR"})
    assert result.text == (
        "Tool not run: 2 problems.\n"
        '1. argument "granularity": there is no such argument. Arguments: query, top_k, offset.\n'
        '2. argument "default_operator": there is no such argument. Arguments: query, top_k, '
        "offset."
    )
    assert tool.run({"query": "vivaldi AND opera"}).text == (
        "Query not run: 1 problem.\n"
        '1. column 9, "AND": operators are off here. Words, phrases, fields and weights are '
        "allowed; write them with spaces between.\n"
        "Write: (vivaldi opera)"
    )
    assert tool.run({"query": "vivaldi premiere"}).text.startswith(
        "3 of 3 passages for (vivaldi premiere)\n"
    )


def test_the_schema_is_that_of_openai_compatible_endpoints(
    logical: LogicalSearch, read: ChunkRead
) -> None:
    schema = logical.openai_schema()
    assert list(schema) == ["type", "function"]
    assert schema["type"] == "function"
    assert list(schema["function"]) == ["name", "description", "parameters"]
    assert schema["function"]["name"] == "logical_search"
    assert schema["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "query": {
                "description": "The logical query, at most 2,000 characters.",
                "type": "string",
            },
            "default_operator": {
                "default": "OR",
                "description": "What a space between clauses means.",
                "enum": ["OR", "AND"],
                "type": "string",
            },
            "top_k": {
                "default": 5,
                "description": "Passages to show.",
                "maximum": 20,
                "minimum": 1,
                "type": "integer",
            },
            "offset": {
                "default": 0,
                "description": "Passages to skip.",
                "maximum": 980,
                "minimum": 0,
                "type": "integer",
            },
            "granularity": {
                "default": "chunk",
                "description": "Judge the conditions on a whole passage, or on one sentence.",
                "enum": ["chunk", "sentence"],
                "type": "string",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    assert read.openai_schema()["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "chunk_ids": {
                "description": "Ids as searches show them in brackets.",
                "items": {"minLength": 1, "type": "string"},
                "maxItems": 20,
                "minItems": 1,
                "type": "array",
            },
            "from_sentence": {
                "default": 1,
                "description": "Sentence to start from; above 1 with one id only.",
                "minimum": 1,
                "type": "integer",
            },
        },
        "required": ["chunk_ids"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("sentences", [True, False])
@pytest.mark.parametrize("operators", [True, False])
@pytest.mark.parametrize("description", ["full", "syntax"])
def test_a_description_of_logical_search_is_short_and_fits_its_arguments(
    description: Description, operators: bool, sentences: bool
) -> None:
    index = index_of(*VIVALDI, sentences=sentences)
    tool = LogicalSearch(index, description=description, operators=operators)
    assert count_tokens(tool.description) < 400
    assert ("granularity" in tool.description) == sentences
    assert "  " not in tool.description
    assert tool.description.splitlines()[-1] == (
        "Fields of this index: title, content, doc_id, year (number), lang (keyword)."
    )


def test_the_other_descriptions_are_short_too(keyword: KeywordSearch, read: ChunkRead) -> None:
    assert count_tokens(keyword.description) < 400
    assert count_tokens(read.description) < 400


# Within the bound


def test_the_longest_snippets_are_shortened_first() -> None:
    long = [f"Opera {number} {'lasted long ' * 12}. " for number in range(3)]
    index = index_of(
        chunk(0, "short", "", "An opera about nothing. ", "A second opera."),
        chunk(1, "long", "", *long),
    )
    whole = LogicalSearch(index).run({"query": "opera"})
    tool = LogicalSearch(index, style=ReplyStyle(max_result_tokens=MIN_RESULT_TOKENS))
    assert whole.result_tokens < MIN_RESULT_TOKENS
    assert tool.run({"query": "opera"}).text == whole.text
    tool.max_result_tokens = 110
    tool.style = ReplyStyle(max_result_tokens=110)
    assert tool.run({"query": "opera"}).text == (
        "2 of 2 passages for opera\n"
        "[short.1]\n"
        "An opera about nothing. A second opera.\n"
        "[long.1]\n"
        f"{long[0].strip()} {long[1].strip()} ...\n"
        "Full text: chunk_read."
    )


def test_hits_that_do_not_fit_are_dropped_from_the_end_and_named() -> None:
    index = index_of(*(chunk(n, f"d{n}", "", "opera " + "la " * 300) for n in range(20)))
    tool = LogicalSearch(index, style=ReplyStyle(max_result_tokens=MIN_RESULT_TOKENS))
    result = tool.run({"query": "opera", "top_k": 20})
    shown = len(result.ids)
    assert 4 <= shown < 20
    assert result.ids == tuple(f"d{number}.1" for number in range(shown))
    lines = result.text.splitlines()
    assert lines[0] == f"{shown} of 20 passages for opera"
    assert re.fullmatch(
        rf"Not shown for want of room: \[d{shown}\.1\], .* and \d+ more\.", lines[-2]
    )
    assert lines[-1] == f"More: offset={shown}. Full text: chunk_read."
    tool = LogicalSearch(index, style=ReplyStyle(max_result_tokens=450))
    result = tool.run({"query": "opera", "top_k": 20})
    dropped = ", ".join(f"[d{number}.1]" for number in range(len(result.ids), 20))
    assert f"\nNot shown for want of room: {dropped}.\n" in result.text


def test_a_giant_sentence_is_cut() -> None:
    index = index_of(chunk(0, "d", "Opera", "opera " + "la " * 9_000))
    result = LogicalSearch(index).run({"query": "opera"})
    assert 3_950 < result.result_tokens <= 4_000
    assert result.text.startswith("1 of 1 passage for opera\n[d.1] Opera\nopera la la la")
    assert result.text.endswith("la la ...\nFull text: chunk_read.")


def test_a_long_title_is_cut_and_counts_as_it_is_shown() -> None:
    title = "The opera " + "of the opera " * 200
    result = LogicalSearch(index_of(chunk(0, "d", title, "opera"))).run({"query": "opera"})
    _, header, body, _ = result.text.splitlines()
    shown = header.removeprefix("[d.1] ")
    assert shown.endswith("opera of ...")
    assert shown == cut_to(title, MAX_TITLE_TOKENS)
    assert result.retrieved_tokens == count_tokens(shown) + count_tokens(body)


def test_the_query_and_the_notes_leave_room_for_hits() -> None:
    index = index_of(*VIVALDI)
    tool = LogicalSearch(index, style=ReplyStyle(max_result_tokens=MIN_RESULT_TOKENS))
    dropped = " ".join("." * number for number in range(1, 50))
    for query in ("opera " * 60 + "x", f"opera {dropped}", "opera " + "ඞ" * 1_990):
        result = tool.run({"query": query})
        assert result.result_tokens <= MIN_RESULT_TOKENS
        assert result.ids[0] in ("griselda.1", "scarlatti.1")
        assert "opera" in result.text.splitlines()[-2]


def test_problems_are_cut_to_the_bound_and_the_mended_query_stays(index: Index) -> None:
    tool = LogicalSearch(index, style=ReplyStyle(max_result_tokens=MIN_RESULT_TOKENS))
    result = tool.run({"query": " ".join(f"f{number}:x" for number in range(12))})
    assert result.result_tokens <= MIN_RESULT_TOKENS
    assert result.text.startswith("Query not run: 12 problems.\n1. column 1,")
    assert result.text.splitlines()[-1].startswith('Write: ("f0 x" OR "f1 x" OR')
    assert result.text.endswith('"f11 x")')
    result = tool.run({f"argument {number}": "x" for number in range(50)})
    assert result.result_tokens <= MIN_RESULT_TOKENS
    assert result.text.startswith("Tool not run: 51 problems.\n")


def test_a_bound_that_is_too_small_is_refused(index: Index) -> None:
    with pytest.raises(ArgumentError) as caught:
        ChunkRead(index, max_result_tokens=199)
    assert str(caught.value) == "max_result_tokens is 199.\nAllowed: 200 or more"


WORDS = ("opera", "la", "東京タワー", "x" * 60, "ඞ🧿", "naïve,", "a.b.c")


def random_chunks(random: Random) -> list[Chunk]:
    def words(count: int) -> str:
        return " ".join(random.choice(WORDS) for _ in range(count))

    chunks: list[Chunk] = []
    for number in range(random.choice((1, 3, 8))):
        doc_id = f"d{number}" + random.choice(("", "", "-é" * 20))
        parts = random.choice((1, 3))
        for part in range(1, parts + 1):
            sentences = [
                f"opera {words(random.choice((0, 3, 10, 80)))}. "
                for _ in range(random.choice((0, 1, 2, 5)))
            ]
            title = f"opera {words(random.choice((0, 3, 100)))}" if random.random() < 0.8 else ""
            lang = ("y" * 300,) * random.choice((1, 9))
            metadata = {"lang": lang} if random.random() < 0.3 else {}
            chunks.append(
                chunk(
                    number, doc_id, title or "opera", *sentences, part=part, parts=parts, **metadata
                )
            )
    return chunks


def written_blocks(result: ToolResult) -> dict[str, tuple[str, str]]:
    """Title and body of each passage as the text has them. No content here holds a line break."""
    found: dict[str, tuple[str, str]] = {}
    lines = result.text.splitlines()
    for chunk_id in result.ids:
        (at,) = (n for n, line in enumerate(lines) if f"{line} ".startswith(f"[{chunk_id}] "))
        title = lines[at].removeprefix(f"[{chunk_id}]").removesuffix(" (shown before)").strip()
        title = re.sub(r"(^|, )part \d of \d$", "", title)
        after = lines[at + 1] if at + 1 < len(lines) else ""
        is_text = not after.startswith(("[", "More: ", "Full text: ", "Not shown for want"))
        found[chunk_id] = title, after if is_text else ""
    return found


@given(
    st.integers(0, 1_000_000).map(Random),
    st.sampled_from((200, 300, 700)),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=20, deadline=None)
def test_every_reply_of_a_search_keeps_the_bound_shows_a_sentence_and_counts_what_it_shows(
    random: Random, bound: int, full_text: bool, chunk_read: bool
) -> None:
    chunks = {one.id: one for one in random_chunks(random)}
    style = ReplyStyle(full_text=full_text, chunk_read=chunk_read, max_result_tokens=bound)
    index = index_of(*chunks.values())
    searches: tuple[tuple[Tool, dict[str, object]], ...] = (
        (LogicalSearch(index, style=style), {"query": "opera naïve", "top_k": 20}),
        (KeywordSearch(index, style=style), {"keywords": ["opera"], "top_k": 5, "offset": 2}),
    )
    for tool, arguments in searches:
        result = tool.run(arguments)
        assert count_tokens(result.text) == result.result_tokens <= bound
        if result.status == "empty":
            assert "offset must be below" in result.text
            continue
        blocks = written_blocks(result)
        assert result.retrieved_tokens == sum(
            count_tokens(title) + count_tokens(body) for title, body in blocks.values()
        )
        for number, (chunk_id, (_, body)) in enumerate(blocks.items()):
            content = chunks[chunk_id].content.strip()
            start = body.removeprefix("... ").removesuffix("...").strip()
            assert bool(start) == bool(content)
            if full_text and (number or len(blocks) > 1) and not body.endswith("..."):
                assert body == content
        if len(blocks) < len(chunks) and "Not shown" in result.text:
            more = re.search(r"\nMore: offset=(\d+)\.", result.text)
            assert more
            assert int(more[1]) == len(blocks) + (2 if "offset" in arguments else 0)


# Passages in full


FULL = ReplyStyle(full_text=True, chunk_read=False)


def test_without_chunk_read_whole_passages_are_shown(index: Index) -> None:
    result = LogicalSearch(index, style=FULL).run({"query": "vivaldi", "top_k": 2})
    assert result.text == (
        "2 of 3 passages for vivaldi\n"
        "[vivaldi.1] Antonio Vivaldi, part 1 of 2\n"
        "Antonio Vivaldi was born in Venice. He wrote many operas. The priest taught violin. Each "
        "libretto was new.\n"
        "[griselda.1] Griselda (Vivaldi)\n"
        "Griselda is an opera by Antonio Vivaldi. Its premiere was in Venice. Its libretto was "
        "revised by the young Carlo Goldoni.\n"
        "More: offset=2."
    )
    assert FULL.bound == 12_000


def test_full_passages_are_whole_or_not_there_but_for_the_first() -> None:
    long = "opera " + "la " * 120
    index = index_of(*(chunk(number, f"d{number}", "", long) for number in range(3)))
    style = ReplyStyle(full_text=True, chunk_read=False, max_result_tokens=300)
    assert LogicalSearch(index, style=style).run({"query": "opera"}).text == (
        f"2 of 3 passages for opera\n[d0.1]\n{long.strip()}\n[d1.1]\n{long.strip()}\n"
        "Not shown for want of room: [d2.1].\nMore: offset=2."
    )
    index = index_of(*(chunk(number, f"d{number}", "", long * 3) for number in range(3)))
    read_set = ReadSet()
    result = LogicalSearch(index, style=style).run({"query": "opera"}, read_set)
    assert result.ids == ("d0.1",)
    assert result.text.endswith(
        "la la ...\nNot shown for want of room: [d1.1], [d2.1].\nMore: offset=1."
    )
    assert not read_set.shown


def test_a_passage_that_was_shown_in_full_is_not_shown_again_where_that_is_asked(
    index: Index, read: ChunkRead
) -> None:
    read_set = ReadSet()
    LogicalSearch(index, style=FULL).run({"query": "premiere"}, read_set)
    read.run({"chunk_ids": ["vivaldi.2"]}, read_set)
    style = ReplyStyle(full_text=True, suppress_shown=True, chunk_read=False)
    result = LogicalSearch(index, style=style).run({"query": "vivaldi"}, read_set)
    assert result.text == (
        "3 of 3 passages for vivaldi\n"
        "[vivaldi.1] Antonio Vivaldi, part 1 of 2\n"
        "Antonio Vivaldi was born in Venice. He wrote many operas. The priest taught violin. Each "
        "libretto was new.\n"
        "[griselda.1] Griselda (Vivaldi) (shown before)\n"
        "[vivaldi.2] Antonio Vivaldi, part 2 of 2 (shown before)"
    )
    assert result.ids == ("vivaldi.1", "griselda.1", "vivaldi.2")
    assert read_set.shown == {"griselda.1", "vivaldi.1"}
    assert read_set.read == {"vivaldi.2"}
    blocks = written_blocks(result)
    assert blocks["griselda.1"] == ("Griselda (Vivaldi)", "")
    again = LogicalSearch(index, style=FULL).run({"query": "premiere"}, read_set)
    assert "(shown before)" not in again.text


def test_a_search_does_not_mark_as_read(logical: LogicalSearch) -> None:
    read_set = ReadSet()
    logical.run({"query": "page"}, read_set)
    assert read_set == ReadSet()


# Reading


def test_python_code_gets_whole_results_and_errors_instead_of_texts(index: Index) -> None:
    found = index.chunk_read(["vivaldi.2", "page.1"])
    assert [(one.chunk.id, one.previous_id, one.next_id) for one in found] == [
        ("vivaldi.2", "vivaldi.1", None),
        ("page.1", None, None),
    ]
    for call, message in (
        (lambda: index.chunk_read("page.1"), 'ids is one string.\nAllowed: a list of strings\n'
         'Do: Write ["page.1"].'),
        (lambda: index.keyword_search("page"), 'keywords is one string.\nAllowed: a list of '
         'strings\nDo: Write ["page"].'),
        (lambda: index.logical_search("page", granularity="word"),  # type: ignore[arg-type]
         'granularity is "word".\nAllowed: chunk or sentence'),
        (lambda: index.chunk_read(["page"]), 'No chunk has the id "page".\nWhere: memory\n'
         "Allowed: ids as searches show them in brackets\nDo: Search first, and copy the id."),
    ):  # fmt: skip
        with pytest.raises(AragError) as caught:
            call()
        assert str(caught.value) == message


def test_chunks_are_read_with_their_place_neighbours_and_metadata(read: ChunkRead) -> None:
    read_set = ReadSet()
    result = read.run({"chunk_ids": ["vivaldi.1", "page.1", "vivaldi.1"]}, read_set)
    assert result.text == (
        "[vivaldi.1] Antonio Vivaldi, part 1 of 2\n"
        "(next: vivaldi.2; year: 1678; lang: en, it)\n"
        "Antonio Vivaldi was born in Venice. He wrote many operas. The priest taught violin. Each "
        "libretto was new.\n"
        "[page.1]\n"
        "A page without a title."
    )
    assert (result.status, result.ids, result.total) == ("ok", ("vivaldi.1", "page.1"), None)
    assert result.retrieved_tokens == sum(
        map(
            count_tokens,
            ("Antonio Vivaldi", VIVALDI[0].content, "A page without a title."),
        )
    )
    assert read_set.read == {"vivaldi.1", "page.1"}


def test_a_chunk_that_was_read_before_costs_nothing(read: ChunkRead) -> None:
    read_set = ReadSet()
    read.run({"chunk_ids": ["page.1"]}, read_set)
    result = read.run({"chunk_ids": ["page.1"]}, read_set)
    assert result.text == "[page.1] This chunk has been read before."
    assert (result.status, result.ids, result.retrieved_tokens) == ("ok", ("page.1",), 0)
    assert read.run({"chunk_ids": ["page.1"]}).retrieved_tokens == 6  # another question


def test_unknown_ids_are_named_and_an_error_only_if_all_are(read: ChunkRead) -> None:
    result = read.run({"chunk_ids": ["page", "page.1", "[page.1]"]})
    assert result.text == (
        "[page.1]\nA page without a title.\n"
        'Unknown: "page", "[page.1]". Ids stand in brackets in search replies.'
    )
    assert result.status == "ok"
    result = read.run({"chunk_ids": ["page", "page"]})
    assert result.text == 'No chunk has the id "page". Ids stand in brackets in search replies.'
    assert result.status == "error"
    result = read.run({"chunk_ids": ["page", "z" * 100_000]})
    assert result.text.startswith('No chunks have the ids "page", "zzzz')
    assert result.text.endswith('z ...". Ids stand in brackets in search replies.')
    assert result.result_tokens < 100


def test_ids_are_looked_up_in_nfc() -> None:
    index = index_of(chunk(0, "caf\u00e9", "", "Coffee."))
    assert ChunkRead(index).run({"chunk_ids": ["cafe\u0301.1"]}).text == "[caf\u00e9.1]\nCoffee."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"chunk_ids": ["griselda.1"], "from_sentence": 4},
            'Tool not run: from_sentence is 4. Chunk "griselda.1" has 3 sentences; 1 to 3 is '
            "allowed.",
        ),
        (
            {"chunk_ids": ["griselda.1", "page.1"], "from_sentence": 2},
            "Tool not run: from_sentence is 2 with 2 chunk ids. Above 1 it takes one id; read the "
            "others in another call.",
        ),
        (
            {"chunk_ids": [""], "from_sentence": 0},
            "Tool not run: 2 problems.\n"
            '1. argument "chunk_ids", "". Allowed: a list of 1 to 20 strings.\n'
            '2. argument "from_sentence", 0. Allowed: a whole number, 1 or more.',
        ),
        (
            {"chunk_ids": [str(number) for number in range(21)]},
            "Tool not run: 1 problem.\n"
            '1. argument "chunk_ids", ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", '
            ".... Allowed: a list of 1 to 20 strings.",
        ),
    ],
)
def test_a_read_that_cannot_be_done_is_an_error(
    read: ChunkRead, arguments: dict[str, object], message: str
) -> None:
    result = read.run(arguments)
    assert (result.text, result.status) == (message, "error")


def test_reading_from_the_middle_does_not_mark_the_beginning_as_read(read: ChunkRead) -> None:
    read_set = ReadSet()
    result = read.run({"chunk_ids": ["griselda.1"], "from_sentence": 3}, read_set)
    assert result.text == (
        "[griselda.1] Griselda (Vivaldi)\n(year: 1735)\n"
        "Its libretto was revised by the young Carlo Goldoni."
    )
    assert not read_set.read
    read.run({"chunk_ids": ["griselda.1"]}, read_set)
    assert read_set.read == {"griselda.1"}


def test_a_chunk_without_text_is_its_header_and_is_read_at_once() -> None:
    read_set = ReadSet()
    tool = ChunkRead(index_of(chunk(0, "d", "Only a title")))
    assert tool.run({"chunk_ids": ["d.1"]}, read_set).text == "[d.1] Only a title"
    assert read_set.read == {"d.1"}


def test_a_scope_hides_chunks_from_reads_and_from_neighbours() -> None:
    index = index_of(*VIVALDI, scope="NOT doc_id:page AND year:[1678 TO 1721]")
    tool = ChunkRead(index)
    assert tool.run({"chunk_ids": ["griselda.1"]}).status == "error"
    assert tool.run({"chunk_ids": ["page.1"]}).status == "error"
    assert tool.run({"chunk_ids": ["scarlatti.1"]}).status == "ok"
    assert LogicalSearch(index).run({"query": "title:griselda"}).ids == ("scarlatti.1",)
    assert KeywordSearch(index).run({"keywords": ["griselda", "page"]}).ids == ("scarlatti.1",)


def test_a_long_chunk_is_read_in_several_calls_and_then_marked() -> None:
    sentences = [f"Sentence {number} is about an opera by {'la ' * 9}. " for number in range(40)]
    tool = ChunkRead(index_of(chunk(0, "d", "Long", *sentences)), max_result_tokens=200)
    read_set = ReadSet()
    shown, first, steps = "", 1, 0
    while True:
        result = tool.run({"chunk_ids": ["d.1"], "from_sentence": first}, read_set)
        steps += 1
        assert result.result_tokens <= 200
        body = result.text.splitlines()[1]
        shown += body + " "
        assert result.retrieved_tokens == count_tokens("Long") + count_tokens(body)
        if "d.1" in read_set.read:
            break
        go_on = re.fullmatch(
            r'Shown up to sentence (\d+) of 40\. Go on: chunk_ids \["d\.1"\], '
            r"from_sentence (\d+)\.",
            result.text.splitlines()[-1],
        )
        assert go_on
        assert int(go_on[1]) == int(go_on[2]) - 1 == read_set.sentences_read["d.1"]
        first = int(go_on[2])
    assert steps > 3
    assert shown == "".join(sentences)
    again = tool.run({"chunk_ids": ["d.1"], "from_sentence": 5}, read_set)
    assert again.text == "[d.1] This chunk has been read before."


def test_chunks_that_do_not_fit_are_named_and_shorter_ones_after_them_shown() -> None:
    chunks = [chunk(n, f"d{n}", "", "la " * length) for n, length in enumerate((90, 90, 9, 200))]
    tool = ChunkRead(index_of(*chunks), max_result_tokens=200)
    read_set = ReadSet()
    result = tool.run({"chunk_ids": [one.id for one in chunks] + ["nope"]}, read_set)
    assert result.text == (
        f"[d0.1]\n{('la ' * 90).strip()}\n[d2.1]\n{('la ' * 9).strip()}\n"
        'Not shown for want of room: chunk_ids ["d1.1", "d3.1"].\n'
        'Unknown: "nope". Ids stand in brackets in search replies.'
    )
    assert result.ids == ("d0.1", "d2.1")
    assert read_set.read == {"d0.1", "d2.1"}
    result = tool.run({"chunk_ids": ["d0.1", "d3.1"]}, read_set)  # the first costs no room
    assert result.ids == ("d0.1", "d3.1")
    assert result.text.startswith("[d0.1] This chunk has been read before.\n[d3.1]\nla la")


@given(st.integers(0, 1_000_000).map(Random), st.sampled_from((200, 400)))
@settings(max_examples=10, deadline=None)
def test_every_read_keeps_the_bound_and_reads_to_the_end(random: Random, bound: int) -> None:
    chunks = random_chunks(random)
    tool = ChunkRead(index_of(*chunks), max_result_tokens=bound)
    ids = random.sample([one.id for one in chunks], k=min(len(chunks), 12))
    result = tool.run({"chunk_ids": [*ids, "nope"]})
    assert count_tokens(result.text) == result.result_tokens <= bound
    assert result.retrieved_tokens < result.result_tokens
    for chunk_id in ids[:3]:
        read_set, first = ReadSet(), 1
        while chunk_id not in read_set.read:
            result = tool.run({"chunk_ids": [chunk_id], "from_sentence": first}, read_set)
            assert result.result_tokens <= bound
            assert result.ids == (chunk_id,)
            found = re.search(r"from_sentence (\d+)\.$", result.text)
            assert found or chunk_id in read_set.read
            if found:
                assert int(found[1]) > first
                first = int(found[1])

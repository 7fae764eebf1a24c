"""The replies of searches, and the checks of arguments."""

from __future__ import annotations

import pytest

from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.passages.keyword import KeywordSearch
from arag_search.tools.passages.logical import LogicalSearch
from arag_search.tools.passages.read import ChunkRead
from arag_search.tools.passages.search import reply
from arag_search.tools.preset import Description, plain_preset
from arag_search.tools.tool import ReadSet
from tests.support.passages import VIVALDI, chunk, index_of


def test_a_logical_search_shows_query_hits_snippets_and_how_to_get_more(
    logical: LogicalSearch,
) -> None:
    result = logical.run({"query": '"antonio vivaldi" AND librett*', "top_k": 1})
    assert result.text == (
        "1 of 2 passages\n"
        "[vivaldi.1] Antonio Vivaldi, part 1 of 2 (whole part)\n"
        "Antonio Vivaldi was born in Venice. He wrote many operas. The priest taught violin. Each "
        "libretto was new.\n"
        "More: after=1."
    )
    assert (result.status, result.ids, result.total) == ("ok", ("vivaldi.1",), 2)
    assert result.total_is_exact
    assert result.tokens == count_tokens(result.text)
    assert result.retrieved_tokens == count_tokens("Antonio Vivaldi") + count_tokens(
        "Antonio Vivaldi was born in Venice. He wrote many operas. The priest taught violin. Each "
        "libretto was new."
    )


def test_notes_are_under_the_first_line(logical: LogicalSearch) -> None:
    result = logical.run({"query": "premiere and opera", "top_k": 1})
    assert result.text == (
        "1 of 3 passages for (premiere OR and OR opera)\n"
        "Alone: and occurs nowhere.\n"
        'Note: "and" was searched as a word; operators are in upper case.\n'
        "[griselda.1] Griselda (Vivaldi) (whole document)\n"
        "Griselda is an opera by Antonio Vivaldi. Its premiere was in Venice. Its libretto was "
        "revised by the young Carlo Goldoni.\n"
        "More: after=1."
    )


@pytest.mark.parametrize(
    ("arguments", "first_line", "more"),
    [
        (
            {"query": "vivaldi", "top_k": 2},
            "2 of 3 passages",
            "More: after=2.",
        ),
        (
            {"query": "vivaldi", "after": "1", "top_k": 1},
            "Passage 2 of 3",
            "More: after=2.",
        ),
        (
            {"query": "vivaldi", "after": "1"},
            "Passages 2 to 3 of 3",
            "",
        ),
        ({"query": "page"}, "1 of 1 passage", ""),
    ],
)
def test_the_first_and_the_last_line_give_the_place_among_the_hits(
    logical: LogicalSearch, arguments: dict[str, object], first_line: str, more: str
) -> None:
    lines = logical.run(arguments).text.splitlines()
    assert lines[0] == first_line
    assert (lines[-1] if lines[-1].startswith("More") else "") == more


def test_totals_are_counted_up_to_a_thousand_and_beyond_for_a_single_clause() -> None:
    many = [chunk(number, f"d{number}", "", "opera") for number in range(1001)]
    result = LogicalSearch(index_of(*many, sentences=False)).run({"query": "opera", "top_k": 1})
    assert result.text.splitlines()[0] == "1 of 1,001 passages"
    assert (result.total, result.total_is_exact) == (1001, True)
    index = index_of(*many, sentences=False)
    result = LogicalSearch(index).run({"query": "opera OR x", "top_k": 1})
    assert result.text.splitlines()[0] == "1 of more than 1,000 passages"
    assert (result.total, result.total_is_exact) == (1000, False)
    assert index.logical_search("opera OR x").total_text == "more than 1,000"
    assert index.logical_search("opera").total_text == "1,001"
    result = LogicalSearch(index_of(*many[1:], sentences=False)).run({"query": "opera"})
    assert result.text.splitlines()[0] == "5 of 1,000 passages"
    assert result.text.splitlines()[-1] == "More: after=5."
    result = LogicalSearch(index_of(*many, sentences=False)).run(
        {"query": "opera", "top_k": 20, "after": "980"}
    )
    assert result.text.splitlines()[0] == "Passages 981 to 1000 of 1,001"
    assert result.text.splitlines()[-1] == "More: after=1000."


def test_an_offset_past_the_end_gives_no_hits_and_names_the_end(
    logical: LogicalSearch, keyword: KeywordSearch
) -> None:
    result = logical.run({"query": "vivaldi", "after": "3"})
    assert result.text == "Only 3 passages match this query: there are no further ones."
    assert (result.status, result.ids, result.total) == ("empty", (), 3)
    result = keyword.run({"keywords": ["page"], "offset": 980})
    assert result.text == "Only 1 passage matches this query: there are no further ones."


def test_a_query_without_hits_is_explained_clause_by_clause(logical: LogicalSearch) -> None:
    result = logical.run({"query": '"antonio vivaldi" AND title:librettist'})
    assert result.text == (
        "No passage matches this query.\n"
        'Alone: "antonio vivaldi" 3; title:librettist occurs nowhere.'
    )
    assert (result.status, result.total, result.retrieved_tokens) == ("empty", 0, 0)
    result = logical.run({"query": "operetta NOT opera"})
    assert result.text == (
        "No passage matches (operetta AND NOT opera).\n"
        "Alone: operetta occurs nowhere; opera 3 (excluded)."
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


def test_keywords_are_scored_as_in_the_paper(keyword: KeywordSearch) -> None:
    result = keyword.run({"keywords": ["Antonio Vivaldi", "libretto"]})
    assert result.text == (
        "3 of 3 passages\n"
        'Passages per keyword: "Antonio Vivaldi" 3, "libretto" 2.\n'
        "[vivaldi.1] Antonio Vivaldi, part 1 of 2 (whole part)\n"
        "Antonio Vivaldi was born in Venice. He wrote many operas. The priest taught violin. Each "
        "libretto was new.\n"
        "[vivaldi.2] Antonio Vivaldi, part 2 of 2 (whole part)\n"
        "He died in Vienna. Vivaldi's music was forgotten.\n"
        "[griselda.1] Griselda (Vivaldi) (whole document)\n"
        "Griselda is an opera by Antonio Vivaldi. Its premiere was in Venice. Its libretto was "
        "revised by the young Carlo Goldoni."
    )


def test_keywords_without_hits_or_without_tokens_give_no_passage(keyword: KeywordSearch) -> None:
    assert keyword.run({"keywords": ["operetta"]}).text == "No passage matches this query."
    assert keyword.run({"keywords": ["..."]}).text == (
        'No passage matches this query.\nNote: "..." holds nothing to search.'
    )


def test_a_title_cannot_imitate_another_line_of_the_reply() -> None:
    index = index_of(chunk(0, "d", "Opera\n[x.1] Fake\tTitle", "A forgery."))
    result = LogicalSearch(index).run({"query": "forgery"})
    assert result.text.splitlines()[1] == "[d.1] Opera ［x.1］ Fake Title (whole document)"


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
            {"keywords": 5},
            ['argument "keywords", 5. Allowed: a list of 1 to 20 strings of at most 200 '
             "characters each."],
        ),
        (
            {"keywords": ["opera", 7]},
            ['argument "keywords", 7. Allowed: a list of 1 to 20 strings of at most 200 '
             "characters each."],
        ),
        (
            {"keywords": [], "top_k": 0, "offset": 9801},
            ['argument "keywords", []. Allowed: a list of 1 to 20 strings of at most 200 '
             "characters each.",
             'argument "top_k", 0. Allowed: a whole number from 1 to 20.',
             'argument "offset", 9801. Allowed: a whole number from 0 to 9800.'],
        ),
        (
            {"keywords": ["opera"], "top_k": True, "offset": "two"},
            ['argument "top_k", true. Allowed: a whole number from 1 to 20.',
             'argument "offset", "two". Allowed: a whole number from 0 to 9800.'],
        ),
        (
            {"keywords": {"opera": 1}, "top_k": "true", "offset": 2.5},
            ['argument "keywords", {"opera": 1}. Allowed: a list of 1 to 20 strings of at most 200 '
             "characters each.",
             'argument "top_k", "true". Allowed: a whole number from 1 to 20.',
             'argument "offset", 2.5. Allowed: a whole number from 0 to 9800.'],
        ),
        (
            {"keywords": ["opera"], "query": "opera", "colour": 5},
            ['argument "query": there is no such argument. Arguments: keywords, top_k, offset.',
             'argument "colour": there is no such argument. Arguments: keywords, top_k, offset.'],
        ),
        ({"keywords": [" "]}, ["A keyword is empty. Allowed: words or short phrases."]),
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
def test_all_wrong_arguments_are_reported_with_name_value_and_what_is_allowed(
    keyword: KeywordSearch, arguments: object, problems: list[str]
) -> None:
    result = keyword.run(arguments)
    many = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    lines = [f"{number}. {problem}" for number, problem in enumerate(problems, 1)]
    assert result.text.splitlines() == [f"Tool not run: {many}.", *lines]
    assert result.status == "error"


def test_choices_are_named(logical: LogicalSearch) -> None:
    tool = LogicalSearch(logical.index, plain_preset(loop_guards=True))
    assert tool.run({"query": "opera", "show": "word"}).text.startswith(
        'Tool not run: 1 problem.\n1. argument "show", "word". Allowed: "text" or "titles"'
    )


def test_hidden_arguments_are_rejected_and_not_described() -> None:
    tool = LogicalSearch(index_of(*VIVALDI), plain_preset(operators=False))
    assert list(tool.parameters["properties"]) == ["query", "top_k", "after"]
    result = tool.run({"query": "opera", "per_document": 1, "default_operator": "OR"})
    assert result.text == (
        "Tool not run: 2 problems.\n"
        '1. argument "per_document": there is no such argument. Arguments: query, top_k, after.\n'
        '2. argument "default_operator": there is no such argument. Arguments: query, top_k, '
        "after. Write AND or OR between words of the query."
    )
    assert tool.run({"query": "vivaldi AND opera"}).text == (
        "Query not run: 1 problem.\n"
        '1. column 9, "AND": operators are off here. Words, phrases, fields and weights are '
        "allowed; write them with spaces between.\n"
        "Write: (vivaldi opera)"
    )
    assert tool.run({"query": "vivaldi premiere"}).text.startswith("3 of 3 passages\n")


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
            "top_k": {
                "default": 5,
                "description": "Passages to show.",
                "maximum": 20,
                "minimum": 1,
                "type": "integer",
            },
            "after": {"description": 'What "More:" of a reply says.', "type": "string"},
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


@pytest.mark.parametrize("operators", [True, False])
@pytest.mark.parametrize("description", ["full", "syntax"])
def test_the_description_of_a_papers_preset_fits_its_arguments(
    description: Description, operators: bool
) -> None:
    tool = LogicalSearch(
        index_of(*VIVALDI),
        plain_preset(tool_description=description, operators=operators, reproduces="LogicalRAG"),
    )
    assert count_tokens(tool.description) < 400
    assert "  " not in tool.description
    assert tool.description.splitlines()[-1] == (
        "Fields of this index: title, content, doc_id, year (number), lang (keyword)."
    )


def test_the_other_descriptions_are_short_too(keyword: KeywordSearch, read: ChunkRead) -> None:
    assert count_tokens(keyword.description) < 400
    assert count_tokens(read.description) < 400


@pytest.mark.parametrize(
    ("query", "page", "first_line"),
    [
        ("venice", {}, "2 passages: 2 sentences match"),
        ("venice", {"top_k": 1, "offset": 1}, "Passage 2: 2 sentences match"),
        ("vivaldi", {"offset": 9}, "Only 3 passages match this query: there are no further ones."),
        ("born AND violin", {}, "No sentence matches this query."),
    ],
)
def test_replies_to_searches_by_sentence_count_sentences(
    index: Index, query: str, page: dict[str, int], first_line: str
) -> None:
    result = index.logical_search(query, granularity="sentence", **page)
    assert reply(result, plain_preset(), ReadSet()).text.splitlines()[0] == first_line


def test_whole_passages_are_shown_at_sentence_granularity_too(index: Index) -> None:
    result = index.logical_search("libretto", granularity="sentence", top_k=1)
    assert "Venice" not in result.hits[0].content
    whole = index.logical_search("libretto", granularity="sentence", full_text=True)
    text = reply(whole, plain_preset(full_text=True), ReadSet()).text
    assert "Griselda is an opera by Antonio Vivaldi. Its premiere was in Venice." in text


def test_half_a_character_in_an_argument_that_is_converted_or_left_out_is_replaced(
    keyword: KeywordSearch,
) -> None:
    given = {"keywords": '["\\ud800"]', "\ud800": 1}
    text = keyword.run(given, skips_unknown=True).text
    assert 'argument "keywords" was taken as ["?"].' in text
    assert 'argument "?": there is no such argument.' in text


@pytest.mark.parametrize(
    ("given", "instead"),
    [
        ({"filter": "year:1735"}, 'Write it in the query: (QUERY) AND FIELD:"VALUE".'),
        ({"docId": ["griselda"]}, 'Write it in the query: (QUERY) AND FIELD:"VALUE".'),
        ({"lang": "en"}, 'Write it in the query: (QUERY) AND FIELD:"VALUE".'),
        *(
            ({name: "en"}, 'Write it in the query: (QUERY) AND FIELD:"VALUE".')
            for name in (
                "metadata_filter", "where_clause", "file_types", "statusFilter", "dateRange",
                "restrict-to", "searchPaths", "MIMEType", "index_fields", "tags_any", "FOLDER",
            )
        ),
        ({"per_document": 1}, 'Each document once: show "counts".'),
        ({"granularity": "chunk"}, 'Sentences that match: show "lines".'),
        ({"default_operator": "AND"}, "Write AND or OR between words of the query."),
    ],
)  # fmt: skip
def test_an_unknown_argument_that_narrows_is_refused_with_what_to_write(
    index: Index, given: dict[str, object], instead: str
) -> None:
    logical = LogicalSearch(index, plain_preset(loop_guards=True))
    result = logical.run({"query": "opera", **given}, skips_unknown=True)
    assert result.status == "error"
    assert result.text.endswith(instead)
    empty = logical.run({"query": "opera", **dict.fromkeys(given, "")}, skips_unknown=True)
    assert (empty.status, "Note" in empty.text) == ("ok", False)


@pytest.mark.parametrize(
    "name", ["toolCallId", "tool", "sessionId", "action", "chatInput", "wait_for_previous",
             "task_progress"],
)  # fmt: skip
def test_what_clients_add_to_every_call_is_passed_over_without_a_word(
    logical: LogicalSearch, name: str
) -> None:
    plain = logical.run({"query": "opera"}, skips_unknown=True)
    assert logical.run({"query": "opera", name: "x"}, skips_unknown=True).text == plain.text
    assert logical.run({"query": "opera", name: "x"}).status == "error"


def test_another_unknown_argument_is_noted_once_in_a_conversation(logical: LogicalSearch) -> None:
    seen = ReadSet()
    for argument in ("verbose", "profile", "typed"):
        for is_noted in (True, False):
            given = {"query": "opera", argument: 1}
            shown = seen.copy()
            noted = logical.run(given, shown, skips_unknown=True)
            seen.add(shown)
            assert (f'argument "{argument}": there is no such' in noted.text) == is_noted
    assert 'argument "verbose"' in logical.run(given | {"verbose": 1}, skips_unknown=True).text


@pytest.mark.parametrize("name", ["limit", "k", "maxResults", "num_results", "count"])
def test_the_number_of_passages_has_many_names(logical: LogicalSearch, name: str) -> None:
    result = logical.run({"query": "opera", name: 1}, skips_unknown=True)
    assert result.text.startswith("1 of 3 passages")
    assert result.text.endswith(f'Note: argument "{name}" was taken as "top_k".')


def test_a_page_goes_on_after_a_number_in_any_form(logical: LogicalSearch) -> None:
    pages = {
        logical.run({"query": "opera", "top_k": 1, **after}).text.partition("\nNote")[0]
        for after in ({"after": 1}, {"after": "1"}, {"offset": 1}, {"skip": "1"})
    }
    assert {page.splitlines()[0] for page in pages} == {"Passage 2 of 3"}
    assert len(pages) == 1
    far = logical.run({"query": "opera", "after": "99999"})
    assert far.text.endswith(
        "Allowed: offset from 0, and offset + top_k at most 10,000. Narrow the query instead of "
        "paging further."
    )

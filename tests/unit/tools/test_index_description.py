"""Descriptions that are made from an index: its fields, and no feature that it lacks."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arag_search.corpus import Chunk
from arag_search.engines.base import FieldsPage, FieldsRequest, ValueCount
from arag_search.errors import QueryTimeoutError
from arag_search.field_counts import counts_of_fields, kept_counts
from arag_search.query.fields import MetadataType
from arag_search.query.filters import parse_filter
from arag_search.search.counting.fields import FieldSummary
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.descriptions import MAX_FIELDS_TOKENS, TEXTS, fields_within
from arag_search.tools.passages.keyword import KeywordSearch
from arag_search.tools.passages.logical import LogicalSearch
from arag_search.tools.passages.read import ChunkRead
from arag_search.tools.passages.vectors import SemanticSearch
from arag_search.tools.preset import plain_preset
from arag_search.tools.preset_files import load_preset, preset_names
from arag_search.tools.registry import TOOLS
from arag_search.tools.toolbox import tools_of
from index_jobs.sources.metadata import FILE_FIELDS
from tests.support.examples import examples
from tests.support.oracle.engine import MemoryEngine
from tests.support.passages import SCHEMA, VIVALDI, chunk, index_of
from tests.support.plans import scoped

TYPES: dict[str, MetadataType] = {"kind": "keyword", "year": "number", "day": "date"}
FIELDS_OF_ALL = 'year (number, 1678 to 1735), lang ("en", "it").'
BARE = (chunk(0, "a", "", "An opera."), chunk(1, "b", "", "A libretto."))


def counted_index(*chunks: Chunk, scope: str | None = None) -> Index:
    """Return an index whose manifest has the values, as that of a build, and whose engine does not
    count without a scope."""

    class Engine(MemoryEngine):
        def field_values(self, request: FieldsRequest) -> FieldsPage:
            assert request.scope is not None
            return super().field_values(request)

    engine = Engine(chunks, metadata=SCHEMA.metadata)
    counts = kept_counts(counts_of_fields(chunks, SCHEMA.metadata))
    engine._manifest = replace(engine.manifest, field_counts=counts)  # pyright: ignore
    return Index(engine, "memory", None if scope is None else scoped(parse_filter(scope, SCHEMA)))


# What an index has


def test_fields_are_described_by_their_values_and_ranges() -> None:
    for index in (counted_index(*VIVALDI), index_of(*VIVALDI)):  # of a build, and of an old index
        description = LogicalSearch(index).description
        assert description.endswith(
            f'\n\nMetadata: field:"value", field:[1670 TO 1680], field:>=1970.\n'
            f"Fields: {FIELDS_OF_ALL}"
        )


def test_an_index_without_titles_metadata_and_parts_is_not_said_to_have_them() -> None:
    index = Index(MemoryEngine(BARE, sentences=False), "memory")
    for tool in (LogicalSearch(index), KeywordSearch(index), SemanticSearch(index)):
        assert "title" not in tool.description
        assert "field" not in tool.description.lower()
        assert "year" not in tool.description
    assert "metadata" not in ChunkRead(index).description
    assert "before and after" not in ChunkRead(index).description
    whole = index_of(*VIVALDI)
    assert 'title:"a phrase"' in LogicalSearch(whole).description
    assert "ids before and after" in ChunkRead(whole).description


def test_ranges_are_mentioned_where_a_field_has_one() -> None:
    keywords = MemoryEngine(BARE, metadata={"lang": "keyword"})
    description = LogicalSearch(Index(keywords, "memory")).description
    assert description.endswith('field:"value".\nFields: lang.')


def test_rare_syntax_is_not_described() -> None:
    description = LogicalSearch(index_of(*VIVALDI)).description
    assert not any(rare in description for rare in ("~", "^"))


def test_the_example_joins_two_subjects_by_a_space_and_runs_as_written() -> None:
    example = '"antonio vivaldi" hasse'
    index = index_of(*VIVALDI)
    assert example in (description := LogicalSearch(index).description)
    assert "(a space is OR)" in description
    assert 'near: "born" shows that part' in ChunkRead(index).description
    assert index.logical_search(example).hits[0].id == "vivaldi.1"
    without = LogicalSearch(index, plain_preset(operators=False)).description
    assert not any(text in without for text in (example, "(a space is OR)"))
    assert "AND, OR, NOT, - and ! are refused" in without


# Scopes


def test_within_a_scope_only_its_values_are_shown() -> None:
    index = counted_index(*VIVALDI, scope="year:>=1700")
    assert LogicalSearch(index).description.endswith("Fields: year (number, 1721 to 1735), lang.")
    index = counted_index(*VIVALDI, scope="lang:en")
    assert LogicalSearch(index).description.endswith(
        'Fields: year (number, 1678 to 1678), lang ("en", "it").'
    )


def test_values_that_take_too_long_to_count_are_left_out() -> None:
    class Slow(MemoryEngine):
        def field_values(self, request: FieldsRequest) -> FieldsPage:
            raise QueryTimeoutError("The query took too long.")

    engine = Slow(VIVALDI, metadata=SCHEMA.metadata)
    description = LogicalSearch(
        Index(engine, "memory", scoped(parse_filter("lang:en", SCHEMA)))
    ).description
    assert description.endswith("Fields: year (number), lang.")


# Hostile fields and values

odd = st.sampled_from('ab \n\r\t"\\*[]{}<>?!\u2028\u0085\u202e\x00\x1b東🧿é')
hostile = st.text(odd | st.characters(codec="utf-8"), max_size=70)
names = st.from_regex(r"[a-z東][a-z0-9_.-]{0,60}", fullmatch=True)


@settings(max_examples=examples(200), deadline=None)
@given(
    st.dictionaries(names, st.sampled_from(["keyword", "number", "date"]), max_size=60),
    st.lists(hostile, max_size=6),
    st.integers(1, 80),
)
def test_a_description_keeps_its_bound_and_its_lines_whatever_the_values(
    metadata: dict[str, MetadataType], values: list[str], repeated: int
) -> None:
    metadata = {f"{name}{number}": kind for name, kind in metadata.items() for number in range(2)}
    keywords: dict[str, Any] = {
        name: tuple(value * repeated for value in values) + tuple(values)
        for name, kind in metadata.items()
        if kind == "keyword" and values
    }
    chunks = [chunk(0, "a", "A", "Text.", parts=2, **keywords)]
    index = Index(MemoryEngine(chunks, metadata=metadata), "memory")
    plain = LogicalSearch(Index(MemoryEngine(chunks, metadata={}), "memory")).description
    description = LogicalSearch(index).description
    added = count_tokens(description) - count_tokens(plain)
    syntax = 'Metadata: field:"value", field:[1670 TO 1680], field:>=1970.\nFields: .'
    assert added <= MAX_FIELDS_TOKENS + count_tokens(syntax)
    assert len(description.splitlines()) == len(plain.splitlines()) + 3 * bool(metadata)
    assert description.startswith(plain)
    assert all(character.isprintable() for character in description if character != "\n")


def test_of_many_fields_the_values_go_first_and_then_the_last_fields() -> None:
    def field(name: str, *values: str) -> FieldSummary:
        return FieldSummary(name, "keyword", 1, 9, tuple(ValueCount(value, 1) for value in values))

    fields = [field("lang", "en", "de", "fr", "it"), field("x" * 50, "y"), field("kind", "opera")]
    assert fields_within(fields, 200) == (
        'lang ("en", "de", "fr", ...), kind ("opera", ...) and 1 more'
    )
    assert fields_within(fields, 9) == "lang, kind and 1 more"
    assert fields_within(fields, 6) == "lang and 2 more"
    assert fields_within(fields, 3) == "3"
    assert fields_within([field("lang", 'a "b" \\*')], 50) == r'lang ("a \"b\" \\\*", ...)'
    assert fields_within([field("lang", "a\nb", "y" * 41)], 50) == "lang"


def test_of_a_folder_the_description_names_files_folders_and_no_field_without_use() -> None:
    files: dict[str, MetadataType] = dict(FILE_FIELDS)
    values = {
        "file": "a.md",
        "type": "md",
        "path": ("notes/", "notes/a.md"),
        "passage_kind": "text",
    }
    chunks = [chunk(0, "notes/a.md", "Pumps", "Text.", **values)]
    tool = LogicalSearch(Index(MemoryEngine(chunks, metadata=files), "memory"))
    assert tool.description.startswith('Search the files ("Pumps", ...) with a logical query.')
    assert tool.served_as("work").description.startswith('Search the files in work ("Pumps", ...)')
    assert tool.description.endswith('Fields: type ("md"), path ("notes/", ...), modified (date).')


def test_a_title_with_the_words_of_a_description_does_not_take_the_name_of_the_index() -> None:
    tool = LogicalSearch(index_of(chunk(0, "a", "Where the files are", "Text.")))
    named = 'Search the documents in work ("Where the files are", ...)'
    assert tool.served_as("work").description.startswith(named)


# Presets


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_that_reproduces_a_paper_keeps_its_descriptions(name: str) -> None:
    preset = load_preset(name)
    tools = tuple(tool for tool in preset.tools if TOOLS[tool].vectors is None)
    preset = preset.model_copy(update={"tools": tools, "given": "none"})
    for tool in tools_of(preset, index_of(*VIVALDI)).values():
        assert "{" not in tool.description
        if tool.name == "chunk_read":
            text = TEXTS.joinpath("papers", "chunk_read.md").read_text("utf-8")
            of_paper = text.partition("{")[0]
            assert tool.description.startswith(of_paper) is (preset.reproduces is not None)
        if preset.replies is not None:
            ours = "first line|mended|offset|filter|counts each|year:|from which"
            assert not re.search(ours, tool.description)
        if tool.name == "logical_search":
            fields = "Fields of this index: title, content, doc_id, year (number), lang (keyword)."
            is_described = preset.reproduces is not None and preset.replies is None
            assert tool.description.endswith(fields) is is_described

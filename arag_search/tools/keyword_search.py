"""keyword_search: the tool of A-RAG, exact keywords scored by count times length (Eq. 1, Eq. 2)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from arag_search.errors import ArgumentError
from arag_search.search.index import Index
from arag_search.search.keywords import MAX_KEYWORD_CHARACTERS, MAX_KEYWORDS
from arag_search.search.results import SearchResult
from arag_search.tools.base import (
    DEFAULT_TOP_K,
    MAX_TITLES,
    Arguments,
    ReadSet,
    ToolResult,
    error_result,
    not_run,
)
from arag_search.tools.index_description import described
from arag_search.tools.preset import PLAIN, Preset
from arag_search.tools.search import Offset, SearchTool, ShowAs, TopK

Keyword = Annotated[str, Field(min_length=1, max_length=MAX_KEYWORD_CHARACTERS)]


class KeywordSearchArguments(Arguments):
    """The arguments of keyword_search."""

    keywords: list[Keyword] = Field(
        min_length=1, max_length=MAX_KEYWORDS, description="Exact words or short phrases."
    )
    top_k: TopK = DEFAULT_TOP_K
    offset: Offset = 0
    show: ShowAs = "text"


class PaperKeywordArguments(KeywordSearchArguments):
    """The arguments in presets that reproduce A-RAG: the description repeats the limit of words."""

    keywords: list[Keyword] = Field(
        min_length=1,
        max_length=MAX_KEYWORDS,
        description='Keywords of one to three words, such as ["Antonio Vivaldi", "oratorio", '
        '"1735"].',
    )


class KeywordSearch(SearchTool):
    """A search for exact keywords: with ``matching`` "token" it counts whole words, with
    "substring" it scans as A-RAG's own code does."""

    name = "keyword_search"
    arguments = KeywordSearchArguments
    of_paper = ("keywords", "top_k")

    def __init__(self, index: Index, preset: Preset = PLAIN) -> None:
        if preset.reproduces is not None:
            self.arguments = PaperKeywordArguments
        super().__init__(index, preset)

    def _hidden(self) -> tuple[str, ...]:
        return () if self.preset.loop_guards else ("show",)

    def _description(self) -> str:
        preset = self.preset
        return described(
            self.name, self.index, preset.reproduces, whole=preset.full_text, ours=preset.explains
        )

    def _search(self, arguments: KeywordSearchArguments) -> SearchResult:
        return self.index.keyword_search(
            arguments.keywords,
            top_k=arguments.top_k if arguments.show == "text" else MAX_TITLES,
            offset=arguments.offset,
            show=arguments.show,
            matching=self.preset.matching,
            branches=self.preset.explains,
        )

    def _call(self, arguments: KeywordSearchArguments, read_set: ReadSet) -> ToolResult:
        try:
            return super()._call(arguments, read_set)
        except ArgumentError as error:
            problem = f'argument "keywords": {error.what} Allowed: {error.allowed}.'
            return error_result(not_run([problem]))

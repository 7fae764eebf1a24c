"""keyword_search: the tool of A-RAG, exact keywords scored by count times length (Eq. 1, Eq. 2)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from arag_search.search.asked import MAX_KEYWORD_CHARACTERS, MAX_KEYWORDS, Keywords
from arag_search.search.counting.reply_forms import forms_with, shows
from arag_search.search.index import Index
from arag_search.tools.passages.search import SearchTool, arguments_of
from arag_search.tools.preset import PLAIN, Preset
from arag_search.tools.tool import Arguments

Keyword = Annotated[str, Field(min_length=1, max_length=MAX_KEYWORD_CHARACTERS)]


def _arguments(description: str) -> type[Arguments]:
    keywords = Field(min_length=1, max_length=MAX_KEYWORDS, description=description)
    return arguments_of(
        Keywords,
        "keywords",
        "top_k",
        "offset",
        "show",
        keywords=(list[Keyword], keywords),
        show=(
            Literal[tuple(forms_with("keywords"))],
            Field("text", description=shows("keywords")[0]),
        ),
    )


PAPER_ARGUMENTS = _arguments(
    'Keywords of one to three words, such as ["Antonio Vivaldi", "oratorio", "1735"].'
)
"""The arguments in presets that reproduce A-RAG: the description repeats the limit of words."""


class KeywordSearch(SearchTool):
    """A search for exact keywords: with ``matching`` "token" it counts whole words, with
    "substring" it scans as A-RAG's own code does."""

    name = "keyword_search"
    asked = Keywords
    arguments = _arguments("Exact words or short phrases.")
    of_paper = ("keywords", "top_k")

    def __init__(self, index: Index, preset: Preset = PLAIN) -> None:
        if preset.reproduces is not None:
            self.arguments = PAPER_ARGUMENTS
        super().__init__(index, preset)

    def _hidden(self) -> tuple[str, ...]:
        return () if self.preset.loop_guards else ("show",)

    def _options(self, arguments: Any) -> dict[str, Any]:
        del arguments  # the preset has all
        return {"matching": self.preset.matching, "branches": self.preset.explains}

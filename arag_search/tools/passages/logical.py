"""logical_search: the tool of LogicalRAG, Boolean, phrase and field queries ranked by BM25."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, ClassVar

from arag_search.errors import ArgumentError
from arag_search.query.printing import quoted
from arag_search.search.asked import MAX_TOOL_TOP_K, Search
from arag_search.search.counting.reply_forms import REPLY_FORMS
from arag_search.tools.passages.search import SearchTool, arguments_of
from arag_search.tools.replies.spans import FURTHER
from arag_search.tools.replies.writing import meant_id

_PLACE = re.compile(r"(\d{1,9})(?:/(\d{1,2}))?", re.ASCII)
"""A number of passages shown, then the number on the first page, if it differs and matters."""
_BRACKETED = re.compile(r"\[(.*)\]", re.DOTALL)


class LogicalSearch(SearchTool):
    """A search by logical queries.

    Without ``operators``, AND, OR, NOT, - and ! are rejected. With ``loop_guards``, the tool takes
    show and (if the index has metadata) sort. Unless the preset reproduces a paper, ``after``
    continues a page or a list at the value that the line "More:" of the reply gives. The
    description is then made from the index.
    """

    name = "logical_search"
    asked = Search
    arguments = arguments_of(
        Search, "query", "default_operator", "top_k", "offset", "show", "sort", "after"
    )
    of_paper: ClassVar[Collection[str]] = ("query", "default_operator")

    def _hidden(self) -> list[str]:
        preset = self.preset
        hidden = ["after"] if preset.reproduces else ["default_operator", "offset"]
        if not preset.loop_guards:
            hidden.append("show")
        if not preset.loop_guards or not self.index.manifest.metadata:
            hidden.append("sort")
        if not preset.operators:
            hidden.append("default_operator")
        return hidden

    def _features(self) -> dict[str, bool]:
        preset = self.preset
        return {"operators": preset.operators, "advice": preset.tool_description == "full"}

    def _description(self) -> str:
        text = super()._description()
        if self.preset.reproduces is not None and self.preset.explains:
            text += f"\nFields of this index: {self.index.manifest.query_schema.describe()}."
        return text

    def _begin(self, arguments: Any) -> dict[str, Any]:
        """Return where a page begins: after a number of hits, or after the passage with an id."""
        after = arguments.after.strip()
        if place := _PLACE.fullmatch(after or "0"):
            offset = int(place[1])
            first = int(place[2] or offset or arguments.top_k)
            is_list = REPLY_FORMS[arguments.show].is_list
            first_page = 0 if is_list or first > MAX_TOOL_TOP_K else first
            return {"offset": offset, "after": None, "first_page": first_page}
        if arguments.sort or not REPLY_FORMS[arguments.show].in_corpus_order:
            raise ArgumentError(
                f"after is {quoted(after)}.", allowed=f'what "{FURTHER.strip()}" says'
            )
        bracketed = _BRACKETED.fullmatch(after)
        id = bracketed[1] if bracketed else after
        is_id = meant_id(id) == id or self.index.read([id])[0] is not None
        return {"after": id if is_id else meant_id(id)}

    def _options(self, arguments: Any) -> dict[str, Any]:
        preset = self.preset
        return {
            "operators": preset.operators,
            "full_text": preset.full_text,
            "relax": preset.relax,
            "branches": preset.explains,
            "feedback": preset.explains,
            "as_written": preset.reproduces is not None,
            **(self._begin(arguments) if "after" not in self.hidden else {}),
        }

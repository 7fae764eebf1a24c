"""fields: the tool that lists the fields of an index and their values."""

from __future__ import annotations

from pydantic import Field

from arag_search.errors import ArgumentError
from arag_search.query.printing import keyword_text
from arag_search.search.fields import DEFAULT_VALUES, FieldsResult, FieldSummary
from arag_search.search.index import Index
from arag_search.system.progress import counted
from arag_search.tokens import count_tokens, cut_to
from arag_search.tools.base import (
    DEFAULT_RESULT_TOKENS,
    Arguments,
    ReadSet,
    Tool,
    ToolResult,
    ToolSettings,
    describe,
    error_result,
    not_run,
)
from arag_search.tools.rendering import one_line

MAX_REPLY_TOKENS = 800
_MANY_VALUES = 50
_MAX_VALUE_TOKENS = 20


class FieldsArguments(Arguments):
    """The arguments of fields."""

    field: str = Field("", description="One field, to see more of its values; empty for all.")


class Fields(Tool):
    """A tool that lists the fields of an index in a reply of at most 800 tokens."""

    name = "fields"
    arguments = FieldsArguments

    def __init__(self, index: Index, *, max_result_tokens: int = DEFAULT_RESULT_TOKENS) -> None:
        bound = min(max_result_tokens, MAX_REPLY_TOKENS)
        super().__init__(index, description=describe("fields"), max_result_tokens=bound)

    @classmethod
    def of(cls, index: Index, settings: ToolSettings) -> Fields:
        return cls(index, max_result_tokens=settings.max_result_tokens)

    def _call(self, arguments: FieldsArguments, read_set: ReadSet) -> ToolResult:
        names = (arguments.field,) if arguments.field else ()
        values = _MANY_VALUES if names else DEFAULT_VALUES
        try:
            result = self.index.fields(*names, values=values)
        except ArgumentError as error:
            return error_result(not_run([f"{error.what} Allowed: {error.allowed}."]))
        text = fitted_text(result, self.max_result_tokens)
        return ToolResult(text, "ok", (), None, True, 0, count_tokens(text), result.milliseconds)


def fitted_text(result: FieldsResult, max_tokens: int) -> str:
    """Return the fields in words, with as many values as fit; cut if there are too many fields."""
    most = max((len(field.values) for field in result.fields), default=0)
    text = fields_text(result)
    while most > 0 and count_tokens(text) > max_tokens:
        most = most * 2 // 3
        text = fields_text(result, most)
    return cut_to(text, max_tokens)


def fields_text(result: FieldsResult, most: int | None = None) -> str:
    """Return the fields in words, one on each line, each with a limited number of values."""
    lines = [f"Fields of {counted(result.passages, 'passage')}; every number counts passages."]
    lines += [_line(field, most) for field in result.fields]
    return "\n".join(lines)


def _line(field: FieldSummary, most: int | None) -> str:
    text = f"{field.name} ({field.kind}): {field.passages:,}"
    if field.least is not None:
        return f"{text}; {field.least} to {field.greatest}"
    if field.distinct is None:
        return text
    shown = field.values[:most]
    distinct = counted(field.distinct, "value")
    if not shown:
        return f"{text}; {distinct}"
    rest = "" if len(shown) == field.distinct else ", ..."
    named = ", ".join(f"{_value(count.value)} {count.chunks:,}" for count in shown)
    return f"{text}; {distinct}: {named}{rest}"


def _value(value: str) -> str:
    """Return a value in query syntax, on one line; a long one is cut."""
    return cut_to(one_line(keyword_text(value)), _MAX_VALUE_TOKENS)

"""words: the tool that says what an index holds: which words, and which values of its fields."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from arag_search.query.printing import keyword_text
from arag_search.search.counting.fields import DEFAULT_VALUES, FieldsResult, FieldSummary
from arag_search.search.counting.words import MAX_COUNTED_WORDS, WordSummary
from arag_search.system.progress import counted
from arag_search.tokens import count_tokens, cut_to
from arag_search.tools.replies.writing import one_line
from arag_search.tools.tool import Arguments, ReadSet, Tool, ToolResult

MAX_FIELDS_TOKENS = 800
_MANY_VALUES = 50
_MAX_VALUE_TOKENS = 20


class WordsArguments(Arguments):
    """The arguments of words."""

    words: list[str] = Field([], max_length=MAX_COUNTED_WORDS)
    fields: list[str] = Field([], description="To see more of their values.")
    filter: str = Field("", description="Metadata clauses.")


class Words(Tool):
    """A tool that counts words; without any, it lists the fields of an index in at most 800
    tokens."""

    name = "words"
    arguments = WordsArguments

    def _hidden(self) -> tuple[str, ...]:
        return () if self.index.manifest.metadata else ("fields", "filter")

    def _call(self, arguments: WordsArguments, read_set: ReadSet) -> ToolResult:
        names, filter = arguments.fields, arguments.filter.strip() or None
        texts: list[str] = []
        counts: Sequence[WordSummary] = ()
        if arguments.words:
            counts = self.index.words(*arguments.words, filter=filter)
            texts.append(words_text(counts))
        if names or not arguments.words:
            values = _MANY_VALUES if names else DEFAULT_VALUES
            fields = self.index.fields(*names, values=values, filter=filter)
            texts.append(fitted_text(fields, min(self.max_result_tokens, MAX_FIELDS_TOKENS)))
        is_absent = not all(count.passages for count in counts)
        return ToolResult("\n".join(texts), "ok", is_absent=is_absent)


def words_text(words: Sequence[WordSummary]) -> str:
    """Return the counts of words in words, one on each line."""
    return "\n".join(["Every number counts passages.", *map(_word_line, words)])


def _word_line(word: WordSummary) -> str:
    text = f"{one_line(word.word)}: {word.passages:,}"
    if word.title:
        text += f" (title {word.title:,}, text {word.text:,})"
    is_all = word.forms == {word.word: word.passages}
    pieces = [f"{form} {count:,}" for form, count in word.forms.items() if not is_all]
    if word.other_forms:
        pieces.append(f"only other forms {word.other_forms:,}")
    if word.nearest:
        near = ", ".join(f"{other} {count:,}" for other, count in word.nearest.items())
        pieces.append(f"nearest {near}")
    return f"{text}; {', '.join(pieces)}" if pieces else text


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
    return cut_to(one_line(keyword_text(value)), _MAX_VALUE_TOKENS)

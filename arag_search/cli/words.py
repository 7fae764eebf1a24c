"""arag-search words: count words of an index, or list its fields and their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from arag_search.cli.options.index import IndexFolder, Json, ScopeFilter
from arag_search.cli.output.printing import (
    NOT_FOUND,
    job_progress,
    print_result,
    state_json,
    with_state,
)
from arag_search.query.field_types import FIELD_TYPES
from arag_search.query.printing import keyword_text
from arag_search.search.advice.told import values_json
from arag_search.search.counting.fields import FieldsResult, FieldSummary
from arag_search.search.counting.words import WordSummary
from arag_search.system.progress import counted
from arag_search.tokens import cut_to
from arag_search.tools.replies.writing import one_line
from index_jobs.updates.opening import open_index

_MAX_VALUE_TOKENS = 20


def words_command(
    index: IndexFolder,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="Words, prefixes, phrases, and queries such as 'film AND librett*', at most 70.",
            metavar="WORD",
        ),
    ] = None,
    fields: Annotated[
        list[str] | None,
        typer.Option(
            help="List this field, or several; doc_id also lists the documents with the most "
            "passages. Without words, all fields are listed.",
            metavar="FIELD",
        ),
    ] = None,
    values: Annotated[
        int, typer.Option(help="The most frequent values to list, 0 to 1,000.", metavar="N")
    ] = 10,
    filter: ScopeFilter = None,
    json: Json = False,
) -> int:
    """Count words of an index, or list its fields and their values.

    It counts each word in title and text, with the written forms that occur. If a word occurs
    nowhere, you get the nearest words. Without words, it lists the fields: how many passages have
    them, the most frequent values of keywords, and the ranges of numbers and dates.

    Every number counts passages, exactly. A date is shown as the beginning of its period.

    Examples:

    \b
      arag-search words my-index 'librett*' 'carlo goldoni' 'vivaldi AND opera'
      arag-search words my-index
      arag-search words my-index --fields kind --values 100
      arag-search words my-index opera --filter 'year:>=1900' --json

    The exit code is 0 if any of the words occurs, or without words. It is 1 if none does, and 2 for
    an error.
    """
    described: dict[str, Any] = {"location": index, "filter": filter}
    texts: list[str] = []
    counts: Sequence[WordSummary] = ()
    with open_index(index, filter=filter, progress=job_progress()) as opened:
        if words:
            counts = opened.words(*words)
            described["words"] = [asdict(word) for word in counts]
            texts += ["Every number counts passages.", *map(_word_line, counts)]
            texts += [opened.engine.withheld] if opened.engine.withheld else []
        if fields or not words:
            result = opened.fields(*(fields or ()), values=values)
            described["passages"] = result.passages
            described["fields"] = [_field_json(field) for field in result.fields]
            texts += _field_lines(result)
        state = opened.standing
    described["state"] = state_json(state)
    is_absent = not all(word.passages for word in counts)
    print_result(with_state("\n".join(texts), state, is_absent=is_absent), described, json)
    return 0 if not words or any(word.passages for word in counts) else NOT_FOUND


def _field_json(field: FieldSummary) -> dict[str, Any]:
    described: dict[str, Any] = {"name": field.name, "type": field.kind, "passages": field.passages}
    if field.distinct is not None:
        described |= {"distinct": field.distinct, "values": values_json(field.values)}
    if (kind := FIELD_TYPES.get(field.kind)) and kind.is_ordered:
        described |= {"least": field.least, "greatest": field.greatest}
    return described


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


def _field_lines(result: FieldsResult) -> list[str]:
    head = f"Fields of {counted(result.passages, 'passage')}; every number counts passages."
    return [head, *map(_field_line, result.fields)]


def _field_line(field: FieldSummary) -> str:
    text = f"{field.name} ({field.kind}): {field.passages:,}"
    if field.least is not None:
        return f"{text}; {field.least} to {field.greatest}"
    if field.distinct is None:
        return text
    distinct = counted(field.distinct, "value")
    if not field.values:
        return f"{text}; {distinct}"
    rest = "" if len(field.values) == field.distinct else ", ..."
    named = ", ".join(f"{_value(count.value)} {count.chunks:,}" for count in field.values)
    return f"{text}; {distinct}: {named}{rest}"


def _value(value: str) -> str:
    return cut_to(one_line(keyword_text(value)), _MAX_VALUE_TOKENS)

"""arag-search words: count words of an index, or list its fields and their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

import typer

from arag_search.cli.options.index import IndexFolder, Json, ScopeFilter, located
from arag_search.cli.output.printing import NOT_FOUND, print_result, state_json, with_state
from arag_search.query.field_types import FIELD_TYPES
from arag_search.search.advice.told import values_json
from arag_search.search.counting.fields import FieldSummary
from arag_search.search.counting.words import WordSummary
from arag_search.search.opening import open_index
from arag_search.tools.passages.words import fields_text, words_text


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
    """Count words of an index: in title and text, the written forms that occur, and the nearest
    words of one that occurs nowhere. Without words, list the fields: how many passages have them,
    the most frequent values of keywords, and the ranges of numbers and dates.

    Every number counts passages, exactly. A date is shown as the beginning of its period.

    Examples:

    \b
      arag-search words my-index 'librett*' 'carlo goldoni' 'vivaldi AND opera'
      arag-search words my-index
      arag-search words my-index --fields kind --values 100
      arag-search words my-index opera --filter 'year:>=1900' --json

    The exit code is 0 if any of the words occurs, or without words, 1 if none does, and 2 for an
    error.
    """
    described: dict[str, Any] = {"location": index, "filter": filter}
    texts: list[str] = []
    counts: Sequence[WordSummary] = ()
    with located(index, partial(open_index, filter=filter)) as reader, reader as opened:
        if words:
            counts = opened.words(*words)
            described["words"] = [asdict(word) for word in counts]
            texts.append(words_text(counts))
        if fields or not words:
            result = opened.fields(*(fields or ()), values=values)
            described["passages"] = result.passages
            described["fields"] = [_field_json(field) for field in result.fields]
            texts.append(fields_text(result))
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

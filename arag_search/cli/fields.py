"""arag-search fields: list the fields of an index and their values."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from arag_search.cli.options.index import DEFAULT_TIMEOUT_S, IndexFolder, SearchTimeoutSeconds
from arag_search.cli.output.printing import print_json, print_text
from arag_search.search.fields import FieldSummary
from arag_search.search.index import open_index
from arag_search.search.nearest import values_json
from arag_search.tools.fields import fields_text


def fields_command(
    index: IndexFolder,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Only these fields; doc_id also lists the documents with the most passages.",
            metavar="FIELD",
            show_default=False,
        ),
    ] = None,
    values: Annotated[
        int, typer.Option(help="The most frequent values to list, 0 to 1,000.", metavar="N")
    ] = 10,
    filter: Annotated[
        str | None,
        typer.Option(
            help="Metadata clauses: only passages that match them are counted.", metavar="CLAUSES"
        ),
    ] = None,
    search_timeout_s: SearchTimeoutSeconds = DEFAULT_TIMEOUT_S,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """List the fields of an index: how many passages have them, the most frequent values of
    keywords, and the ranges of numbers and dates.

    Every number counts passages, exactly. A date is shown as the beginning of its period.

    Examples:

    \b
      arag-search fields my-index
      arag-search fields my-index kind --values 100
      arag-search fields my-index --filter 'year:>=1900' --json
    """
    with open_index(index, filter=filter, search_timeout_s=search_timeout_s or None) as opened:
        result = opened.fields(*(names or ()), values=values)
    if json:
        fields = [_field_json(field) for field in result.fields]
        described = {"location": index, "filter": filter, "passages": result.passages}
        print_json({**described, "fields": fields}, pretty=True)
    else:
        print_text(fields_text(result))
    return 0


def _field_json(field: FieldSummary) -> dict[str, Any]:
    described: dict[str, Any] = {"name": field.name, "type": field.kind, "passages": field.passages}
    if field.distinct is not None:
        described |= {"distinct": field.distinct, "values": values_json(field.values)}
    if field.kind in ("number", "date"):
        described |= {"least": field.least, "greatest": field.greatest}
    return described

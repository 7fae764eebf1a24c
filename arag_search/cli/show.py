"""arag-search show: one question of a run, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_NAMED_IDS = 5


def show_command(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.", metavar="DIR")],
    question_id: Annotated[str, typer.Argument(help="The id of a question.", metavar="ID")],
    json: Annotated[bool, typer.Option("--json", help="Print the record as JSON.")] = False,
) -> int:
    """Show one question of a run, step by step.

    Every step is printed as the model saw it, then the answer and the totals. If a question was
    asked more than once, its last record is shown.
    """
    from arag_search.cli.output.results import print_json, print_text
    from arag_search.cli.trajectories import trajectory_text
    from arag_search.errors import RunError
    from arag_search.runs.folder import (
        RECORDS_FILE,
        RUN_FILE,
        read_description,
        read_records,
    )

    path = folder / RECORDS_FILE
    if not path.is_file():
        raise RunError(
            "There are no records.", where=str(path), allowed="the folder given to run --out"
        )
    records = read_records(folder).by_id
    if question_id not in records:
        named = ", ".join(list(records)[:_NAMED_IDS])
        more = f" and {len(records) - _NAMED_IDS:,} more" if len(records) > _NAMED_IDS else ""
        raise RunError(
            f'No record has the question id "{question_id}".',
            where=str(path),
            allowed=f"{named}{more}" if records else "",
            do="" if records else "Run it: no question is recorded yet.",
        )
    record = records[question_id]
    if json:
        print_json(record.to_json(), pretty=True)
    else:
        if (folder / RUN_FILE).is_file():
            model = read_description(folder).model
        else:
            model = record.fingerprints.get("model", "unknown model")
        print_text(trajectory_text(record, model))
    return 0

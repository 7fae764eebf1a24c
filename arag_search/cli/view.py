"""arag-search view: a run as a page for a browser, or one of its questions in the terminal."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from arag_search.cli.options.index import SearchedIndex
from arag_search.cli.options.judge import JudgeOptions
from arag_search.cli.options.parser import Typed, with_groups
from arag_search.cli.output.answers import trajectory_text
from arag_search.cli.output.printing import print_result, print_text
from arag_search.errors import RunError
from arag_search.runs.folder import RECORDS_FILE, RUN_FILE, read_description, read_records
from arag_search.search.opening import open_index
from arag_search.system.progress import counted
from arag_search.viewer.view import view

PAGE_FILE = "view.html"
_NAMED_IDS = 5


@with_groups
def view_command(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.", metavar="DIR")],
    question_id: Annotated[
        str | None,
        typer.Argument(
            help="The id of a question, which is printed instead: every step as the model saw it, "
            "the answer and the totals.",
            metavar="ID",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The file of the page.  [default: view.html in DIR]", metavar="FILE"),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            help="Take gold answers from this file.  [default: the one the run was given]",
            metavar="FILE",
        ),
    ] = None,
    no_gold: Annotated[
        bool,
        typer.Option(
            "--no-gold", help="Show the records without gold answers, evidence and scores."
        ),
    ] = False,
    index: SearchedIndex = None,
    *,
    judge: JudgeOptions,
    json: Annotated[
        bool, typer.Option("--json", help="With an ID: print its record as JSON.")
    ] = False,
    typed: Typed,
) -> int:
    """Show a run in a browser, question by question, or one question in the terminal.

    The page is a single file that needs no network and no server. It has figures with intervals, a
    table of questions to sort and filter, and for each question the queries as they were
    understood, their results, when the evidence was shown, the cost, and the answer with its
    citations. Unfinished runs are shown too. With the options of a judge that the run was scored
    with, the page has its verdicts too.

    If a question was asked more than once, the terminal shows its last record.

    Examples:

    \b
      arag-search view runs/a
      arag-search view runs/a s06
      arag-search view runs/a --judge gpt-4o-mini
    """
    if question_id is not None:
        of_page = ("out", "questions", "no_gold", "index", *JudgeOptions._fields)
        typed.check_effect("the page, without ID", *of_page)
        return _print_question(folder, question_id, json)
    typed.check_effect("the id of a question", "json")
    typed.check_one("no_gold", "questions")
    path = out or folder / PAGE_FILE
    with ExitStack() as stack:
        judges = stack.enter_context(judge.judges(folder))
        opened = None if index is None else stack.enter_context(open_index(index))
        made = view(folder, questions, gold=not no_gold, index=opened, judges=judges)
    made.write(path)
    print_text(f"{path}: {counted(made.questions, 'question')}, {len(made.html) / 1e6:.1f} MB")
    return 0


def _print_question(folder: Path, question_id: str, json: bool) -> int:
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
    model = record.fingerprints.get("model", "unknown model")
    if (folder / RUN_FILE).is_file():
        model = read_description(folder).model
    return print_result(trajectory_text(record, model), record.to_json(), json)

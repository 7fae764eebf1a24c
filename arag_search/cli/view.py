"""arag-search view: pages of runs and of indexes, or a question of a run in the terminal."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from arag_search.cli.options.index import Opening, SearchedIndex
from arag_search.cli.options.judge import JudgeOptions
from arag_search.cli.options.parser import Typed, suggest_presets, with_groups
from arag_search.cli.output.answers import trajectory_text
from arag_search.cli.output.printing import print_result, print_text, say
from arag_search.errors import RunError
from arag_search.runs.folder import RECORDS_FILE, RUN_FILE, read_description, read_records
from arag_search.search.opening import open_index
from arag_search.system.progress import counted
from arag_search.viewer.view import view

PAGE_FILE = "view.html"
_NAMED_IDS = 5


class PageOptions(NamedTuple):
    """The options of the page to search by hand."""

    preset: Annotated[
        list[str] | None,
        typer.Option(
            help="For an index: a preset that comes first in the menu, by its name or the path of "
            "its file; may be repeated.",
            metavar="PRESET",
            autocompletion=suggest_presets,
        ),
    ] = None
    port: Annotated[
        int,
        typer.Option(
            help="For an index: the port of the page on 127.0.0.1; 0 takes any.", metavar="N",
            min=0, max=65_535,
        ),
    ] = 0  # fmt: skip
    no_browser: Annotated[
        bool,
        typer.Option(
            "--no-browser", help="For an index: print the address of the page, and open no browser."
        ),
    ] = False


@with_groups
def view_command(
    place: Annotated[
        str,
        typer.Argument(
            help="The folder of a run; or an index, its folder or address, or a folder of files.",
            metavar="FOLDER",
        ),
    ],
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
        typer.Option(help="The file of the page.  [default: view.html in FOLDER]", metavar="FILE"),
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
    page: PageOptions,
    opening: Opening,
    json: Annotated[
        bool, typer.Option("--json", help="With an ID: print its record as JSON.")
    ] = False,
    typed: Typed,
) -> int:
    """Show a run in a browser, or search an index by hand and see what a model sees.

    FOLDER is a run if it has the file run.json. The page of a run is a single file that needs no
    network and no server. It has figures with intervals, and a table of questions to sort and
    filter. For each question it has the queries as they were understood, their results, and when
    the evidence was shown. The cost and the cited answer follow. Unfinished runs are shown too. If
    the run was scored by a judge, give its options: the page then has its verdicts.

    With an ID, the terminal shows this question of a run, by its last record.

    The page of an index is served on 127.0.0.1 until Ctrl-C. It shows hits, the reply of each tool
    with its tokens, the reasons of scores, and two queries side by side. It is up to date while the
    index changes.

    Examples:

    \b
      arag-search view runs/a
      arag-search view runs/a s06
      arag-search view runs/a --judge gpt-4o-mini
      arag-search view my-index
      arag-search view notes/ --filter type:pdf
    """
    folder = Path(place)
    of_run = ("out", "questions", "no_gold", "index", *JudgeOptions._fields)
    if question_id is None and not (folder / RUN_FILE).is_file():
        typed.check_effect("the folder of a run", *of_run)
        typed.check_effect("the id of a question", "json")
        return _serve(place, page, opening)
    typed.check_effect("an index", *PageOptions._fields, *Opening._fields)
    if question_id is not None:
        typed.check_effect("the page, without ID", *of_run)
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


def _serve(place: str, page: PageOptions, opening: Opening) -> int:
    """Serve the page to search an index by hand until a signal."""
    from arag_search.system.extras import check_extra

    check_extra("mcp", "starlette")
    check_extra("mcp", "uvicorn")
    from arag_search.mcp_server.folders import ServedFolder
    from arag_search.mcp_server.listening import DEFAULT_HOST, listen
    from arag_search.mcp_server.serving import run_until_signalled
    from arag_search.search.index import Index
    from arag_search.tools.preset_files import DEFAULT_PRESET, load_preset, preset_names
    from arag_search.tools.toolbox import Toolbox
    from arag_search.viewer.page_server import PageServer
    from arag_search.viewer.search_page import SearchPage
    from index_jobs.updates.opening import folder_of

    names = dict.fromkeys([*(page.preset or ()), DEFAULT_PRESET, *preset_names()])
    presets = {name: load_preset(name) for name in names}
    with ExitStack() as stack:
        opened: list[Index] = []

        def open_at(location: str) -> None:
            followed = replace(opening.opening(location, is_long=True), refresh="auto")
            opened.append(stack.enter_context(followed.opened()))

        folder, served = folder_of(place, fresh=opening.fresh, yes=opening.yes), None
        if folder is None:
            open_at(place)
        else:
            served = stack.enter_context(ServedFolder(folder, open_at, fresh=opening.fresh))
            served.serve(waits=True)
        for name in page.preset or ():
            Toolbox(opened[0], presets[name])  # what the page would leave out is an error here
        listening = stack.enter_context(listen(DEFAULT_HOST, page.port, None))
        server = PageServer(
            SearchPage(opened[0], place, opening.filter, presets, served), listening
        )
        say(f"Search {place} at {server.address}\nStop with Ctrl-C.")
        if not page.no_browser and has_browser():
            threading.Thread(
                target=webbrowser.open, args=(server.ticket_address,), daemon=True
            ).start()
        return run_until_signalled(server.serve)


def has_browser() -> bool:
    """Return whether a browser would open in a window: one in the terminal would take that."""
    if sys.platform == "darwin":
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"))


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

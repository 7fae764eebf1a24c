"""arag-search ask: one question, answered from an index."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from arag_search.agent.conversation import Conversation, SavedConversation, held_conversation
from arag_search.agent.loop import Agent
from arag_search.agent.models.choose import OFFLINE, OFFLINE_NOTE
from arag_search.agent.presets import DEFAULT_PRESET, load_preset
from arag_search.agent.record import Record, Step
from arag_search.agent.sources import sources_of
from arag_search.cli.options.index import IndexFolder, Opening
from arag_search.cli.options.model import ModelOptions
from arag_search.cli.options.parser import suggest_presets, with_groups
from arag_search.cli.output.printing import print_json, print_text, say
from arag_search.cli.trajectories import answer_text, step_line, totals_line
from arag_search.errors import RunError
from arag_search.runs.folder import RecordsFile

ENDING = ".json"
DOCUMENT_PRESET = "agentic_rag"


@with_groups
def ask_command(
    index: IndexFolder,
    question: Annotated[
        list[str],
        typer.Argument(
            help="The question; several words are joined by spaces.", metavar="QUESTION"
        ),
    ],
    preset: Annotated[
        str | None,
        typer.Option(
            help="How to answer: a name, or the path of a .yaml file.  [default: logical_read, "
            "with --continue that of the conversation]",
            metavar="PRESET",
            autocompletion=suggest_presets,
            show_default=False,
        ),
    ] = None,
    *,
    model: ModelOptions,
    opening: Opening,
    json: Annotated[bool, typer.Option("--json", help="Print the record as JSON.")] = False,
    record: Annotated[
        Path | None,
        typer.Option(help="Append the record to this file, as a line of JSON.", metavar="FILE"),
    ] = None,
    continue_: Annotated[
        str | None,
        typer.Option(
            "--continue",
            help="Continue the conversation in this file, or with this name; or begin it, if there "
            "is none. The answer may use what was found before. Needs a preset with search, find "
            "and open, such as agentic_rag, which is then the default.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    record_replies: Annotated[
        Path | None,
        typer.Option(
            help="Write the model's replies to this file, for --model replay:FILE.", metavar="FILE"
        ),
    ] = None,
) -> int:
    """Answer a question from an index, with its evidence.

    A language model searches step by step and then answers. With no model, key or base URL set,
    built-in rules stand in for it (offline), and the output says so. In a terminal, each step is
    shown as it happens.

    Examples:

    \b
      arag-search ask my-index 'Where was the poet who wrote Evangeline born?'
      arag-search ask my-index 'Who wrote Evangeline?' --model gpt-4o-mini --json
      arag-search ask my-index 'And where was he born?' --continue poets.json
      arag-search ask my-index 'Who wrote Evangeline?' --model qwen3 --base-url http://localhost:8000/v1

    The exit code is 0 for an answer (also "not found in the corpus"), and 1 for a failure.
    """
    path = None if continue_ is None else conversation_file(continue_)
    with ExitStack() as stack:
        saved = None if path is None else stack.enter_context(held_conversation(path))
        settings = load_preset(preset or (DEFAULT_PRESET if path is None else usual_preset(saved)))
        chosen = model.choose(say, record_replies=record_replies)
        stack.callback(chosen.close)
        file = None if record is None else RecordsFile(record)
        if file is not None:
            stack.callback(file.close)
            file.mend()
        opened = stack.enter_context(opening.open(index))
        agent = Agent(opened, settings, chosen)
        if agent.reader is not None:
            say(f"{agent.reader.estimate_text()}.")
        if path is None:
            text = " ".join(question)
            answered = agent.ask(text, _question_id(text), live_steps())
            previous: list[Record] = []
        else:
            conversation = Conversation(agent, saved)
            previous = conversation.saved.all_records()
            answered = conversation.ask(" ".join(question), live_steps())
            conversation.save(path)
        if file is not None:
            file.append(answered)
        return show_answer(answered, agent, json, previous)


def show_answer(record: Record, agent: Agent, json: bool, previous: Sequence[Record] = ()) -> int:
    """Print the answer or the record, with a note if the offline model answered, and return the
    exit code. ``previous`` are the records of the conversation before it."""
    if json:
        note = {"note": OFFLINE_NOTE} if agent.model.name == OFFLINE else {}
        sources = [source.to_json() for source in sources_of(record, agent.index, previous)]
        more = {"sources": sources} if sources else {}
        print_json({**record.to_json(), **more, **note}, pretty=True)
        return 1 if record.status == "failed" else 0
    if record.failure is not None:
        raise RunError(f"The question failed. {record.failure}")
    text = answer_text(record, agent.index, previous)
    print_text(f"{text}\n\n{totals_line(record, agent.model.name)}")
    if agent.model.name == OFFLINE:
        print_text(OFFLINE_NOTE)
    return 0


def _question_id(question: str) -> str:
    """Return an id that is the same for the same question, so that records in a file differ."""
    digest = hashlib.sha256(question.encode("utf-8", "surrogateescape")).hexdigest()
    return f"ask-{digest[:8]}"


def live_steps() -> Callable[[Step], None] | None:
    """Return a function that shows steps as they are made, or None if stderr is not a terminal."""
    if not sys.stderr.isatty():
        return None

    def show(step: Step) -> None:
        line = step_line(step)
        width = shutil.get_terminal_size().columns - 1
        say(line if len(line) <= width else f"{line[: width - 3]}...")

    return show


def conversations_folder() -> Path:
    """Return the folder of conversations: ``arag_search/conversations`` in XDG_DATA_HOME, or else
    in ``~/.local/share``."""
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "arag_search" / "conversations"


def conversation_file(given: str) -> Path:
    """Return the file for a name or a path: a bare name is in the folder of conversations, unless
    there is such a file here."""
    path = Path(given)
    if path.name != given or path.suffix == ENDING or path.exists():
        return path
    return conversations_folder() / f"{given}{ENDING}"


def usual_preset(saved: SavedConversation | None) -> str:
    """Return the preset of a conversation where none is named."""
    return DOCUMENT_PRESET if saved is None else saved.preset

"""arag-search ask: one question, or a conversation, answered from an index."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from arag_search.agent.conversation import (
    Conversation,
    SavedConversation,
    held_conversation,
)
from arag_search.agent.loop import Agent
from arag_search.agent.models.choose import OFFLINE, OFFLINE_NOTE
from arag_search.agent.record import Record, Step
from arag_search.agent.sources import sources_of
from arag_search.agent.wording import is_refusal
from arag_search.cli.options.index import Json, Opening
from arag_search.cli.options.model import ModelOptions, RecordReplies
from arag_search.cli.options.parser import suggest_presets, with_groups
from arag_search.cli.output.answers import answer_text, step_line, totals_line
from arag_search.cli.output.printing import print_json, print_text, say, state_json, with_state
from arag_search.errors import ArgumentError, RunError
from arag_search.search.following import Follower
from arag_search.tools.preset_files import DEFAULT_PRESET, load_preset

ENDING = ".json"
DOCUMENT_PRESET = "agentic_rag"
PROMPT = "> "


@with_groups
def ask_command(
    index: Annotated[
        str,
        typer.Argument(
            help="The folder of the index, or a folder of files, whose index is kept in the cache.",
            metavar="INDEX",
        ),
    ],
    question: Annotated[
        list[str] | None,
        typer.Argument(
            help="The question; several words are joined by spaces. With --continue and without a "
            "question, each line of the input is one.",
            metavar="QUESTION",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="How to answer: a name, or the path of a .yaml file.  [default: logical_read, "
            "with --continue that of the conversation]",
            metavar="PRESET",
            autocompletion=suggest_presets,
        ),
    ] = None,
    *,
    model: ModelOptions,
    opening: Opening,
    json: Json = False,
    continue_: Annotated[
        str | None,
        typer.Option(
            "--continue",
            help="Continue the conversation in this file, or with this name; or begin it, if there "
            "is none. The answer may use what was found before. Needs a preset with search, find "
            "and open, such as agentic_rag, which is then the default.",
            metavar="FILE",
        ),
    ] = None,
    record_replies: RecordReplies = None,
) -> int:
    """Answer a question from an index, with its evidence.

    A language model searches step by step and then answers. With no model, key or base URL set,
    built-in rules stand in for it (offline), and the output says so. In a terminal, each step is
    shown as it happens.

    With --continue and without a question, questions are read line by line, from the terminal or
    from a file (< questions.txt). The conversation is written after every answer, so that it can be
    continued after an interruption.

    Examples:

    \b
      arag-search ask my-index 'Where was the poet who wrote Evangeline born?'
      arag-search ask my-index 'Who wrote Evangeline?' --model gpt-4o-mini --json
      arag-search ask my-index 'And where was he born?' --continue poets
      arag-search ask my-index --continue poets.json < questions.txt
      arag-search ask my-index 'Who wrote Evangeline?' --model qwen3 --base-url http://localhost:8000/v1

    The exit code is 0 for an answer (also "not found in the corpus"), 130 after Ctrl-C, and 1 if
    the last question failed.
    """
    if not (question or continue_):
        raise ArgumentError(
            "There is no question.",
            allowed="arag-search ask INDEX QUESTION, or arag-search ask INDEX --continue FILE, "
            "which reads one question after another",
            do="Write: arag-search ask INDEX 'QUESTION'",
        )
    text = " ".join(question or ())
    path = None if continue_ is None else _conversation_file(continue_)
    with ExitStack() as stack:
        saved = None if path is None else stack.enter_context(held_conversation(path))
        settings = load_preset(preset or (DEFAULT_PRESET if path is None else _preset_of(saved)))
        chosen = model.choose(say, record_replies=record_replies)
        stack.callback(chosen.close)

        def follow(location: str) -> Follower[Agent]:
            return opening.opening(location).follow(lambda opened: Agent(opened, settings, chosen))

        follower = stack.enter_context(opening.located(index, follow))
        stack.callback(follower.close)
        if path is not None:
            return _converse([text] if question else _lines(), follower, saved, path, json)
        with follower.use() as agent:
            if agent.reader is not None:
                say(f"{agent.reader.estimate_text()}.")
            return _show_answer(agent.ask(text, _question_id(text), live_steps()), agent, json)


def _converse(
    questions: Iterable[str],
    follower: Follower[Agent],
    saved: SavedConversation | None,
    path: Path,
    json: bool,
) -> int:
    """Answer questions, each from the newest state of the index, and return the exit code."""
    code = 0
    with follower.use() as agent:
        conversation = Conversation(agent, saved)
    previous = conversation.saved.all_records()
    for at, question in enumerate(questions):
        if at:
            print(flush=True)
        try:
            with follower.use() as agent:
                conversation.follow(agent)
                record = conversation.ask(question, live_steps())
                conversation.save(path)
                code = _show_answer(record, agent, json, previous)
            previous.append(record)
        except (ArgumentError, RunError) as error:
            say(f"arag-search: {error}")
            code = 1
    return code


def _lines() -> Iterator[str]:
    """Yield the lines of the input that are not blank; a terminal is prompted for them."""
    is_terminal = sys.stdin.isatty()
    while True:
        if is_terminal:
            print(PROMPT, end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.strip()


def _show_answer(record: Record, agent: Agent, json: bool, previous: Sequence[Record] = ()) -> int:
    """Print the answer or the record, with a note if the offline model answered, and return the
    exit code. ``previous`` are the records of the conversation before it."""
    for warning in record.warnings:
        say(warning)
    if json:
        note = {"note": OFFLINE_NOTE} if agent.model.name == OFFLINE else {}
        sources = [source.to_json() for source in sources_of(record, agent.index, previous)]
        more = {"sources": sources} if sources else {}
        state = {"state": state_json(agent.index.standing)}
        print_json({**record.to_json(), **more, **note, **state}, pretty=True)
        return 1 if record.status == "failed" else 0
    if record.failure is not None:
        raise RunError(f"The question failed. {record.failure}")
    text = answer_text(record, agent.index, previous)
    text = f"{text}\n\n{totals_line(record, agent.model.name)}"
    if agent.model.name == OFFLINE:
        text = f"{text}\n{OFFLINE_NOTE}"
    is_absent = is_refusal(record.answer_short)
    print_text(with_state(text, agent.index.standing, is_absent=is_absent))
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


def _conversation_file(given: str) -> Path:
    """Return the file for a name or a path: a bare name is in the folder of conversations, unless
    there is such a file here."""
    path = Path(given)
    if path.name != given or path.suffix == ENDING or path.exists():
        return path
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "arag_search" / "conversations" / f"{given}{ENDING}"


def _preset_of(saved: SavedConversation | None) -> str:
    return DOCUMENT_PRESET if saved is None else saved.preset

"""arag-search chat: a conversation with an index, question by question."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from arag_search.agent.conversation import Conversation, held_conversation, read_conversation
from arag_search.agent.loop import Agent
from arag_search.agent.presets import load_preset
from arag_search.cli.ask import (
    ENDING,
    conversation_file,
    conversations_folder,
    live_steps,
    show_answer,
    usual_preset,
)
from arag_search.cli.options.index import Opening
from arag_search.cli.options.model import ModelOptions
from arag_search.cli.options.parser import suggest_presets, with_groups
from arag_search.cli.output.printing import print_json, print_text, say
from arag_search.errors import ArgumentError, ConfigError, RunError
from arag_search.search.following import Follower

PROMPT = "> "
_SLUG = re.compile(r"[^a-z0-9]+")
_MAX_SLUG = 40


@with_groups
def chat_command(
    index: Annotated[
        str | None,
        typer.Argument(help="The folder of the index.", metavar="INDEX", show_default=False),
    ] = None,
    continue_: Annotated[
        str | None,
        typer.Option(
            "--continue",
            help="Continue the conversation in this file, or with this name.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="How to answer: a preset with search, find and open.  [default: agentic_rag, or "
            "that of the conversation]",
            metavar="PRESET",
            autocompletion=suggest_presets,
            show_default=False,
        ),
    ] = None,
    *,
    model: ModelOptions,
    opening: Opening,
    json: Annotated[
        bool, typer.Option("--json", help="Print the record of each question as JSON.")
    ] = False,
    list_: Annotated[
        bool, typer.Option("--list", help="List the stored conversations, and ask nothing.")
    ] = False,
    show: Annotated[
        str | None,
        typer.Option(
            help="Print a stored conversation as Markdown, with --json as records; ask nothing.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
) -> int:
    """Ask questions one after another; each may use what was found for earlier ones.

    Questions are read line by line, from the terminal or from a file (< questions.txt). The
    conversation is written after every answer, so that it can be continued after an interruption.

    Examples:

    \b
      arag-search chat my-index
      arag-search chat my-index --continue 2026-11-23-171502-who-wrote-evangeline
      arag-search chat my-index --continue poets.json --model gpt-4o-mini < questions.txt
      arag-search chat --list
      arag-search chat --show poets.json > poets.md

    The exit code is 0 at the end of the input, 130 after Ctrl-C, and 1 if the last question failed.
    """
    if list_ or show is not None:
        return _print_list(json) if show is None else _print_one(conversation_file(show), json)
    if index is None:
        raise ArgumentError(
            "There is no index.",
            allowed="arag-search chat INDEX, or --list, or --show FILE",
            do="Name the index to ask.",
        )
    path = None if continue_ is None else conversation_file(continue_)
    with ExitStack() as stack:
        saved = None if path is None else stack.enter_context(held_conversation(path))
        settings = load_preset(preset or usual_preset(saved))
        chosen = model.choose(say)
        stack.callback(chosen.close)
        location = stack.enter_context(opening.located(index))
        follower = opening.opening(location).follow(lambda opened: Agent(opened, settings, chosen))
        stack.callback(follower.close)
        with follower.use() as agent:
            conversation = Conversation(agent, saved)
        return _talk(conversation, follower, path, json, stack)


def _talk(
    conversation: Conversation,
    follower: Follower[Agent],
    path: Path | None,
    json: bool,
    stack: ExitStack,
) -> int:
    """Answer questions until the input ends, each from the newest state of the index; return the
    exit code. A new file is held until ``stack`` ends."""
    code = 0
    previous = conversation.saved.all_records()
    if previous and sys.stdin.isatty():
        say(f"Continues after {len(previous)} questions; the last was: {previous[-1].question}")
    for question in _questions():
        try:
            with follower.use() as agent:
                conversation.follow(agent)
                record = conversation.ask(question, live_steps())
                if path is None:
                    stack.enter_context(held_conversation(path := new_file(question)))
                conversation.save(path)
                code = show_answer(record, agent, json, previous)
            previous.append(record)
        except (ArgumentError, RunError) as error:
            say(f"arag-search: {error}")
            code = 1
        print(flush=True)
    if path is not None and path.exists():
        say(f"Conversation: {path}")
    return code


def _questions() -> Iterator[str]:
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


def _print_list(json: bool) -> int:
    """Print the stored conversations, the last changed first; other files are named."""
    folder = conversations_folder()
    rows: list[dict[str, object]] = []
    for path in sorted(folder.glob(f"*{ENDING}")):
        try:
            saved = read_conversation(path)
        except ConfigError as error:
            say(f"arag-search: {error}")
            continue
        rows.append(
            {
                "name": path.stem,
                "changed": saved.changed,
                "questions": len(saved.records),
                "index": saved.index,
                "preset": saved.preset,
                "first_question": saved.records[0]["question"] if saved.records else "",
            }
        )
    rows.sort(key=lambda row: str(row["changed"]), reverse=True)
    if json:
        print_json(rows, pretty=True)
        return 0
    for row in rows:
        print_text(f"{row['name']}  {row['questions']} questions, index {row['index']}")
    print_text(f"{'Folder:' if rows else 'No conversations in'} {folder}")
    return 0


def _print_one(path: Path, json: bool) -> int:
    """Print a conversation as Markdown or as records."""
    saved = read_conversation(path)
    if json:
        print_json(saved.records, pretty=True)
        return 0
    lines = [f"# Conversation with {saved.index}", ""]
    for record in saved.all_records():
        lines += [f"## {record.question}", "", record.answer or f"Failed: {record.failure}", ""]
        for cited in record.citations:
            again = ", found before" if cited.reference in record.reused else ""
            lines.append(f"- {cited.score:.2f} [{cited.reference}] {cited.doc_id}{again}")
        lines += [""] if record.citations else []
    print_text("\n".join(lines).rstrip())
    return 0


def new_file(question: str) -> Path:
    """Return the file for a new conversation, named after the time and its first question."""
    slug = _SLUG.sub("-", question.lower()).strip("-")[:_MAX_SLUG].strip("-") or "conversation"
    return conversations_folder() / f"{datetime.now():%Y-%m-%d-%H%M%S}-{slug}{ENDING}"

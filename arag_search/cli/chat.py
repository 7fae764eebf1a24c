"""arag-search chat: a conversation with an index, question by question."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arag_search.cli.options.completion import suggest_presets
from arag_search.cli.options.groups import with_groups
from arag_search.cli.options.index import IndexFolder
from arag_search.cli.options.model import ModelOptions
from arag_search.cli.options.opening import Opening
from arag_search.cli.output.messages import say

if TYPE_CHECKING:
    from arag_search.agent.conversation import Conversation
    from arag_search.agent.record import Record

PROMPT = "> "


@with_groups
def chat_command(
    index: IndexFolder,
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
) -> int:
    """Ask questions one after another; each may use what was found for earlier ones.

    Questions are read line by line, from the terminal or from a file (< questions.txt). The
    conversation is written after every answer, so that it can be continued after an interruption;
    arag-search conversations lists, prints and exports stored conversations.

    Examples:

    \b
      arag-search chat my-index
      arag-search chat my-index --continue 2026-11-23-171502-who-wrote-evangeline
      arag-search chat my-index --continue poets.json --model gpt-4o-mini < questions.txt

    The exit code is 0 at the end of the input, 130 after Ctrl-C, and 1 if the last question failed.
    """
    from arag_search.agent.conversation import Conversation, read_conversation
    from arag_search.agent.loop import Agent
    from arag_search.agent.presets import load_preset
    from arag_search.cli.options.conversation import conversation_file, usual_preset

    path = None if continue_ is None else conversation_file(continue_)
    saved = None if path is None or not path.exists() else read_conversation(path)
    settings = load_preset(preset or usual_preset(saved))
    chosen = model.choose(say)
    try:
        with opening.open(index) as opened:
            return _talk(Conversation(Agent(opened, settings, chosen), saved), path, json)
    finally:
        chosen.close()


def _talk(conversation: Conversation, path: Path | None, json: bool) -> int:
    """Answer questions until the input ends; return the exit code."""
    from arag_search.cli.ask import live_steps, show_answer
    from arag_search.cli.options.conversation import new_file
    from arag_search.errors import ArgumentError, RunError

    code = 0
    earlier = conversation.saved.all_records()
    if earlier and sys.stdin.isatty():
        say(f"Continues after {len(earlier)} questions; the last was: {earlier[-1].question}")
    for question in _questions():
        try:
            record = conversation.ask(question, live_steps())
            path = path or new_file(question)
            conversation.save(path)
            code = show_answer(record, conversation.agent, json, earlier)
            earlier.append(record)
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


def conversation_lines(records: list[Record]) -> list[str]:
    """Return the questions of a conversation with their answers, as Markdown."""
    lines: list[str] = []
    for record in records:
        lines += [f"## {record.question}", "", record.answer or f"Failed: {record.failure}", ""]
        tools = ", ".join(f"{count} {name}" for name, count in record.tool_usage_summary.items())
        lines += [f"({tools or 'no tools'})", ""]
        for cited in record.citations:
            again = ", found before" if cited.reference in record.reused else ""
            lines.append(f"- {cited.score:.2f} [{cited.reference}] {cited.doc_id}{again}")
        if record.citations:
            lines.append("")
    return lines

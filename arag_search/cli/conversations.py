"""arag-search conversations: list or print the conversations that chat has written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def conversations_command(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A conversation, by its file or name; all are listed without it.",
            metavar="[FILE]",
            show_default=False,
        ),
    ] = None,
    json: Annotated[
        bool,
        typer.Option("--json", help="Print JSON; for one conversation, a record per question."),
    ] = False,
) -> int:
    """List the conversations that arag-search chat has written, or print one.

    A conversation is printed as Markdown: questions, answers and sources. With --json it is a list
    of records, as arag-search run writes them.

    Examples:

    \b
      arag-search conversations
      arag-search conversations 2026-11-23-171502-who-wrote-evangeline > poets.md
      arag-search conversations poets.json --json
    """
    from arag_search.agent.conversation import read_conversation
    from arag_search.cli.chat import conversation_lines
    from arag_search.cli.options.conversation import conversation_file
    from arag_search.cli.output.results import print_json, print_text

    if name is None:
        return _list(json)
    saved = read_conversation(conversation_file(name))
    if json:
        print_json(saved.records, pretty=True)
        return 0
    head = f"# Conversation with {saved.index}\n\nBegan {saved.began}, preset {saved.preset}.\n"
    print_text("\n".join([head, *conversation_lines(saved.all_records())]).rstrip())
    return 0


def _list(json: bool) -> int:
    """Print all conversations, the last changed first; other files are named."""
    from arag_search.agent.conversation import read_conversation
    from arag_search.cli.options.conversation import ENDING, conversations_folder
    from arag_search.cli.output.messages import say
    from arag_search.cli.output.results import print_json, print_text
    from arag_search.errors import ConfigError

    folder = conversations_folder()
    rows: list[dict[str, object]] = []
    for path in sorted(Path(folder).glob(f"*{ENDING}")):
        try:
            saved = read_conversation(path)
        except ConfigError as error:
            say(f"arag-search: {error}")
            continue
        first = str(saved.records[0].get("question", "")) if saved.records else ""
        rows.append(
            {
                "name": path.stem,
                "changed": saved.changed,
                "questions": len(saved.records),
                "index": saved.index,
                "preset": saved.preset,
                "first_question": first,
            }
        )
    rows.sort(key=lambda row: str(row["changed"]), reverse=True)
    if json:
        print_json(rows, pretty=True)
    elif not rows:
        print_text(f"No conversations in {folder}. Begin one: arag-search chat INDEX")
    else:
        lines = [
            f"{row['name']}  {row['questions']} questions, index {row['index']}, {row['changed']}"
            for row in rows
        ]
        print_text("\n".join([*lines, f"Folder: {folder}"]))
    return 0

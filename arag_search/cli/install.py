"""arag-search install: the entry of a client that starts the server, and its skill."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from arag_search.cli.output.printing import print_text
from arag_search.mcp_server.clients.registry import ClientName


def install_command(
    client: Annotated[ClientName, typer.Argument(help="The client.")],
    location: Annotated[
        str,
        typer.Argument(
            help="An index, a folder of files, or NAME= and one of them; with --remove, also the "
            "name alone.",
            metavar="[INDEX]",
        ),
    ] = ".",
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the entry and its skill.")
    ] = False,
    instructions: Annotated[
        bool | None,
        typer.Option(
            help="Also write five lines into the CLAUDE.md, GEMINI.md or AGENTS.md of this folder,"
            " and for Claude Code a sub-agent: assistants use a tool more often if such a file"
            " names it.  [default: asked on a terminal]",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
    ] = False,
) -> int:
    """Let a client search an index or a folder: write the entry that starts arag-search mcp.

    The entry of Claude Code, VS Code, Codex and Gemini CLI is written by their own command (claude,
    code, codex, gemini). For the other clients, it is written into their settings, which are JSON.
    A copy of the file from before the first change is kept beside it. Settings with comments, or
    behind a link, are left alone, and the entry is printed. Claude Code and Codex also get a skill,
    which says when the index serves and when grep does, and teaches the query language.

    An entry of another program or folder stays: the new entry gets a number, such as notes-2.

    Examples:

    \b
      arag-search install claude-code ~/notes
      arag-search install cursor reports=my-index --dry-run
      arag-search install claude-code ~/notes --instructions
      arag-search install codex notes --remove
    """
    from arag_search.mcp_server.clients.installation import installation, removal
    from arag_search.mcp_server.clients.registry import client as client_of

    chosen = client_of(client)
    made = removal(chosen, location) if remove else installation(chosen, location)
    lines = made.instructions()
    for step in lines.remove(dry_run=dry_run) if lines and remove else ():
        print_text(step)  # first, since the client may refuse
    for step in (made.remove if remove else made.install)(dry_run=dry_run):
        print_text(step)
    if lines is None:
        if instructions:
            print_text(f"{chosen.title} reads no file of instructions.")
    elif not remove and (
        instructions or (instructions is None and not dry_run and _agrees(lines.file))
    ):
        for step in lines.write(dry_run=dry_run):
            print_text(step)
    if not dry_run:
        print_text(f"Restart {chosen.title}: it reads its settings when it starts.")
    return 0


def _agrees(file: Path) -> bool:
    """Ask on a terminal whether lines are written into a file; elsewhere they are not."""
    return _is_terminal() and typer.confirm(
        f"Write five lines into {file} that tell the assistant to search first?"
    )


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()

"""arag-search install: the entry of a client that starts the server, and its skill."""

from __future__ import annotations

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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
    ] = False,
) -> int:
    """Let a client search an index or a folder: write the entry that starts arag-search mcp.

    Claude Code, VS Code, Codex and Gemini CLI are asked by their own command (claude, code, codex,
    gemini). In the settings of the others, which are JSON, the entry is written, and a copy of the
    file as it was before the first change is kept beside it; settings with comments, or behind a
    link, are left alone, and the entry is printed. Claude Code and Codex also get a skill, which
    says when the index serves and when grep does, and teaches the query language.

    An entry of another program or folder stays: the new entry gets a number, such as notes-2.

    Examples:

    \b
      arag-search install claude-code ~/notes
      arag-search install cursor reports=my-index --dry-run
      arag-search install codex notes --remove
    """
    from arag_search.mcp_server.clients.installation import installation, removal
    from arag_search.mcp_server.clients.registry import client as client_of

    chosen = client_of(client)
    if remove:
        steps = removal(chosen, location).remove(dry_run=dry_run)
    else:
        steps = installation(chosen, location).install(dry_run=dry_run)
    for step in steps:
        print_text(step)
    if not dry_run:
        print_text(f"{chosen.title} reads this when it starts.")
    return 0

"""Shell completion: the request of a shell, and values of options that the parser does not know.

A shell that completes a command line runs the command with an environment variable instead of
arguments. Paths are completed by the shell itself, where nothing is suggested here.
"""

from __future__ import annotations

import os
from typing import Any


def complete(command: Any, name: str) -> int | None:
    """Answer the request of a shell to complete a command line, on stdout, and return the exit
    code. Return None if there is no such request."""
    variable = f"_{name.replace('-', '_').upper()}_COMPLETE"
    request = os.environ.get(variable)
    if not request:
        return None
    from typer.completion import shell_complete

    return shell_complete(command, {}, name, variable, request)


def suggest_presets(incomplete: str) -> list[str]:
    """Return the presets of this release whose names begin with a text."""
    from arag_search.agent.presets import preset_names

    return [name for name in preset_names() if name.startswith(incomplete)]


def suggest_tools(incomplete: str) -> list[str]:
    """Return the short names of search tools that begin with a text."""
    from arag_search.tools.registry import SEARCH_TOOLS

    names = (tool.short_name for tool in SEARCH_TOOLS.values())
    return [name for name in names if name.startswith(incomplete)]

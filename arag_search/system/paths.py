"""Paths as they are given: on the command line, in settings of clients, and in the environment.

Clients start commands without a shell, so that nobody else expands ``~`` or a variable.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from arag_search.errors import ArgumentError

_VARIABLE = re.compile(r"\$\{[^/}]+\}|(?:^|(?<=/))\$[A-Za-z_]\w*|%[A-Za-z_]\w*%|^~[^/]*")


def given_path(text: str, where: str) -> str:
    """Return a path with the home folder in place of ``~`` or ``~user``, and anything else,
    addresses too, as it is. ``where`` names the option or variable.

    Raises ArgumentError for a path with an unknown user, or with a variable that nothing has
    expanded, unless there is such a file.
    """
    if "://" in text or (text.split("/")[0] != "~" and os.path.exists(text)):
        return text
    path = os.path.expanduser(text)
    if unexpanded := _VARIABLE.search(path):
        raise ArgumentError(
            f"Nothing has expanded {unexpanded[0]} in this path.",
            where=f"{where}: {text}",
            allowed="a path without variables, or one that begins with ~/",
            do=f"Write it out, such as {Path.home() / 'notes'}",
        )
    return path


def path_in(variable: str) -> str:
    """Return the path in an environment variable, or nothing. Raises as ``given_path``."""
    return given_path(os.environ.get(variable, ""), variable)

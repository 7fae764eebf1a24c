"""Passwords and tokens, from the environment or from files that it names.

Orchestrators mount secrets as files, which other processes cannot read as they read variables.
"""

from __future__ import annotations

import os
from pathlib import Path

from arag_search.errors import ArgumentError
from arag_search.system.paths import path_in


def read_secret(variable: str) -> str:
    """Return the value of a variable, or the text of the file that ``<variable>_FILE`` names.

    The end of the file's last line is removed. Without either, the result is empty.
    Raises ArgumentError if both are set, or if the file cannot be read as UTF-8.
    """
    value = os.environ.get(variable, "")
    file = path_in(f"{variable}_FILE")
    if not file:
        return value
    if value:
        raise ArgumentError(
            f"Both {variable} and {variable}_FILE are set.",
            allowed="one of them",
            do="Unset the other.",
        )
    try:
        return Path(file).read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise ArgumentError(
            f"The file that {variable}_FILE names cannot be read ({reason}).",
            where=file,
            allowed="a file with the secret alone, which this user may read",
            do="Correct the path, or the owner of the file.",
        ) from error

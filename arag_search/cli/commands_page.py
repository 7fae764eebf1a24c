"""The page COMMANDS.md, which has the help of every command.

``python -m arag_search.cli.commands_page`` writes it again.
"""

from __future__ import annotations

import io
import os
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

from arag_search.cli.app import COMMANDS, run

PAGE = Path(__file__).with_name("COMMANDS.md")
_BEGIN = """# Commands

What `--help` prints. `python -m arag_search.cli.commands_page` writes this page.
"""


def help_of(*command: str) -> str:
    """Return what a command prints for ``--help`` in a terminal of 100 columns."""
    with patch.dict(os.environ, COLUMNS="100"), redirect_stdout(io.StringIO()) as printed:
        run([*command, "--help"])
    return printed.getvalue().rstrip()


def page() -> str:
    """Return the text of the page."""
    commands = [(f"## {name}", help_of(name)) for name in COMMANDS]
    sections = [("## arag-search", help_of()), *commands]
    return "\n".join([_BEGIN, *(f"{head}\n\n```text\n{text}\n```\n" for head, text in sections)])


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")

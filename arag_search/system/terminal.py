"""Terminals, protected from control characters in what a corpus, a model or a server wrote.

A terminal obeys some characters as commands: they move the cursor, set the title, fill the
clipboard, or reverse the order of letters. ``guard_terminals`` puts a stream in front of each
terminal that escapes such characters as JSON does (``\\u001b``), so that JSON output keeps its
meaning. Pipes and files receive what a command writes unchanged; it writes replies with safe signs
(``arag_search/tools/replies/apart.py``).
"""

from __future__ import annotations

import io
import re
import sys
from typing import TextIO

# C0 except tab and newline, DEL, C1, and the controls of bidirectional text.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Return the text with every character that a terminal obeys escaped as ``\\u`` and its code.

    Tabs and line ends, including ``\\r\\n``, are kept.
    """
    return _COMMANDS.sub(lambda match: f"\\u{ord(match[0]):04x}", text.replace("\r\n", "\n"))


class TerminalStream(io.TextIOBase):
    """A text stream that keeps its writer from sending commands to a terminal.

    ``terminal`` is the stream behind it, for code that draws on the screen itself.
    """

    def __init__(self, terminal: TextIO) -> None:
        self.terminal = terminal

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.terminal.encoding

    @property
    def errors(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.terminal.errors

    def write(self, text: str) -> int:
        self.terminal.write(visible(text))
        return len(text)

    def flush(self) -> None:
        self.terminal.flush()

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.terminal.fileno()

    def writable(self) -> bool:
        return True


def guard_terminals() -> None:
    """Send everything that this process prints on a terminal through a TerminalStream: results,
    messages, progress, warnings and tracebacks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream.isatty() and not isinstance(stream, TerminalStream):
            setattr(sys, name, TerminalStream(stream))


def drawing_stream() -> TextIO:
    """Return stderr for code that draws on the screen and calls ``visible`` itself."""
    return sys.stderr.terminal if isinstance(sys.stderr, TerminalStream) else sys.stderr

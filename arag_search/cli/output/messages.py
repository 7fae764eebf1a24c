"""Messages of commands in addition to their results: lines on stderr."""

from __future__ import annotations

import sys

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


def say(text: str) -> None:
    """Print text to stderr; characters that it cannot show are escaped."""
    encoding = sys.stderr.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), file=sys.stderr)

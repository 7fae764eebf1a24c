"""The option that limits the time of a query, the same for all commands that search."""

from __future__ import annotations

from typing import Annotated

import typer

SearchTimeoutSeconds = Annotated[
    float,
    typer.Option(
        "--search-timeout-s",
        help="Stop a query that the engine works at for longer; 0 for no limit.",
        metavar="SECONDS",
    ),
]

DEFAULT_S = 10.0
"""As in arag_search/engines/deadline.py, which --help is not to import."""


def search_timeout(seconds: float) -> float | None:
    """What the option means to open_index."""
    return None if seconds == 0 else seconds

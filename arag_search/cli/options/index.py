"""The option that names the index a run searched, the same for all commands that look for its
evidence."""

from __future__ import annotations

from typing import Annotated

import typer

SearchedIndex = Annotated[
    str | None,
    typer.Option(
        "--index",
        help="The index that was searched: evidence is what was visible of its passages, not "
        "the titles shown.",
        metavar="INDEX",
        show_default=False,
    ),
]

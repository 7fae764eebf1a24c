"""The option for the index that a run searched, shared by all commands that locate its evidence."""

from __future__ import annotations

from typing import Annotated

import typer

SearchedIndex = Annotated[
    str | None,
    typer.Option(
        "--index",
        help="The index that was searched: evidence is then judged by the text of its "
        "passages that was visible, not by the titles shown.",
        metavar="INDEX",
        show_default=False,
    ),
]

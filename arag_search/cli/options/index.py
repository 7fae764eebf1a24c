"""The index that a command takes, as an argument or as the one that a run searched."""

from __future__ import annotations

from typing import Annotated

import typer

IndexFolder = Annotated[str, typer.Argument(help="The folder of the index.", metavar="INDEX")]
IndexPlace = Annotated[
    str, typer.Argument(help="The folder or address of the index.", metavar="INDEX")
]
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

"""The options that say where the vectors of an index are, the same for every command that uses
them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

VectorsFolder = Annotated[
    Path | None,
    typer.Option(
        "--vectors",
        help="The folder that arag-search embed wrote vectors to.  [default: ARAG_VECTORS, else "
        "vectors in the folder of the index]",
        metavar="DIR",
        show_default=False,
    ),
]
EncoderName = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        help="What encodes queries, where the encoder that made the vectors goes by another name "
        "here.",
        metavar="NAME",
        show_default=False,
    ),
]
AllowStale = Annotated[
    bool,
    typer.Option(
        "--allow-stale",
        help="Search with vectors that lack passages of the index; every reply says so.",
    ),
]

"""The option that keeps every tool inside some of the passages, the same for all commands that give
tools to a model."""

from __future__ import annotations

from typing import Annotated

import typer

ScopeFilter = Annotated[
    str | None,
    typer.Option(
        "--filter",
        help="Metadata clauses that every passage obeys, such as 'lang:en'.",
        metavar="CLAUSES",
    ),
]

"""The options of commands that open an index for searching, each defined once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from arag_search.search.index import Index

ScopeFilter = Annotated[
    str | None,
    typer.Option(
        "--filter",
        help="Metadata clauses that every passage must match, such as 'lang:en'.",
        metavar="CLAUSES",
    ),
]
SearchTimeoutSeconds = Annotated[
    float,
    typer.Option(
        "--search-timeout-s",
        help="Stop a query that takes the engine longer than this; 0 for no limit.",
        metavar="SECONDS",
    ),
]
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
        help="The encoder for queries, if the one that made the vectors has another name on "
        "this machine.",
        metavar="NAME",
        show_default=False,
    ),
]
AllowStale = Annotated[
    bool,
    typer.Option(
        "--allow-stale",
        help="Search even if some passages of the index have no vectors; every reply says so.",
    ),
]

DEFAULT_TIMEOUT_S = 10.0
"""The same as in arag_search/engines/deadline.py, which --help does not import."""


class Opening(NamedTuple):
    """The options of a command that searches an index. A ``search_timeout_s`` of 0 means no
    limit."""

    filter: ScopeFilter = None
    search_timeout_s: SearchTimeoutSeconds = DEFAULT_TIMEOUT_S
    vectors: VectorsFolder = None
    encoder: EncoderName = None
    allow_stale: AllowStale = False

    def open(self, location: str) -> Index:
        """Open the index at a location. Raises as ``open_index``."""
        from arag_search.search.index import open_index

        return open_index(
            location,
            filter=self.filter,
            vectors=self.vectors,
            encoder=self.encoder,
            allow_stale=self.allow_stale,
            search_timeout_s=self.search_timeout_s or None,
        )

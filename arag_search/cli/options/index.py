"""The options of commands that take an index: where it is, how it is opened, and TLS for the
connection to its server."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from arag_search.engines.opensearch.faults import (
    CA_CERTS_VARIABLE,
    CLIENT_CERT_VARIABLE,
    CLIENT_KEY_VARIABLE,
)

if TYPE_CHECKING:
    from arag_search.search.index import Index

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
SynonymsFile = Annotated[
    Path | None,
    typer.Option(
        "--synonyms",
        help="A file of words that stand for each other in logical queries, a line such as "
        "'k8s = kubernetes' for each group.",
        metavar="FILE",
        show_default=False,
    ),
]

DefaultOperator = Literal["OR", "AND"]
OnOff = Literal["on", "off"]
DEFAULT_TIMEOUT_S = 10.0
"""The same as in arag_search/engines/deadline.py, which --help does not import."""


class Opening(NamedTuple):
    """The options of a command that searches an index. A ``search_timeout_s`` of 0 means no
    limit."""

    filter: ScopeFilter = None
    search_timeout_s: SearchTimeoutSeconds = DEFAULT_TIMEOUT_S
    vectors: VectorsFolder = None
    encoder: EncoderName = None
    synonyms: SynonymsFile = None

    def open(self, location: str) -> Index:
        """Open the index at a location. Raises as ``open_index``."""
        from arag_search.search.index import open_index

        return open_index(
            location,
            filter=self.filter,
            vectors=self.vectors,
            encoder=self.encoder,
            search_timeout_s=self.search_timeout_s or None,
            synonyms=self.synonyms,
        )


def add_connection_options(command: Any) -> None:
    """Add the options for TLS to a command, which need not know about them. They set environment
    variables, which work for every command and for worker processes too."""
    app = typer.Typer(add_completion=False)

    def option(name: str, variable: str, what: str) -> Any:
        return typer.Option(
            None,
            name,
            callback=_sets(variable),
            expose_value=False,
            metavar="FILE",
            help=f"For an index on a server: {what}  [env: {variable}]",
        )

    @app.command()
    def only(  # pyright: ignore[reportUnusedFunction]
        ca_certs: str | None = option(
            "--ca-certs", CA_CERTS_VARIABLE, "the CA certificate file (PEM)."
        ),
        client_cert: str | None = option(
            "--client-cert", CLIENT_CERT_VARIABLE, "the client certificate file (PEM)."
        ),
        client_key: str | None = option(
            "--client-key", CLIENT_KEY_VARIABLE, "the key file of the client certificate (PEM)."
        ),
    ) -> None:
        del ca_certs, client_cert, client_key

    made: Any = typer.main.get_command(app)
    command.params += made.params


def _sets(variable: str) -> Callable[[str | None], None]:
    def remember(value: str | None) -> None:
        if value is not None:
            os.environ[variable] = value

    return remember

"""Options of all commands that take an index: TLS for the connection to its server.

They set environment variables, which work for every command and for worker processes too.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from arag_search.engines.opensearch.faults import (
    CA_CERTS_VARIABLE,
    CLIENT_CERT_VARIABLE,
    CLIENT_KEY_VARIABLE,
)


def _sets(variable: str) -> Callable[[str | None], None]:
    def remember(value: str | None) -> None:
        if value is not None:
            os.environ[variable] = value

    return remember


def add_connection_options(command: Any) -> None:
    """Add the options to a command, which need not know about them."""
    import typer

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

"""The files of a TLS connection, looked at before they are used.

What the library below says of them comes late, and it asks for passwords at the terminal.
"""

from __future__ import annotations

import os

from arag_search.engines.opensearch.faults import (
    CA_CERTS_VARIABLE,
    CLIENT_CERT_VARIABLE,
    CLIENT_KEY_VARIABLE,
)
from arag_search.errors import ArgumentError


def check_files(ca_certs: str | None, client_cert: str | None, client_key: str | None) -> None:
    """Raise ArgumentError for a file that is not there or cannot be used; None is no file."""
    given = {
        CA_CERTS_VARIABLE: ca_certs,
        CLIENT_CERT_VARIABLE: client_cert,
        CLIENT_KEY_VARIABLE: client_key,
    }
    for variable, file in given.items():
        if file is not None and not os.path.isfile(file):
            raise ArgumentError(
                "The file for the TLS connection is missing.",
                where=file,
                allowed="a PEM file",
                do=f"Correct the path, which comes from {variable} or an option.",
            )
    if client_key is not None and client_cert is None:
        raise ArgumentError(
            "There is a key without its certificate.",
            where=client_key,
            do=f"Name the certificate too: --client-cert FILE or {CLIENT_CERT_VARIABLE}=FILE.",
        )
    if ca_certs is not None or client_cert is not None:
        _load(ca_certs, client_cert, client_key)


def _load(ca_certs: str | None, client_cert: str | None, client_key: str | None) -> None:
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    file = ca_certs
    try:
        if ca_certs is not None:
            context.load_verify_locations(ca_certs)
        if client_cert is not None:
            file = client_cert if client_key is None else f"{client_cert} and {client_key}"
            # The empty password fails where one is needed, instead of asking for it.
            context.load_cert_chain(client_cert, client_key, password="")
    except (OSError, ValueError) as error:
        raise ArgumentError(
            f"The file for the TLS connection cannot be used: {error}",
            where=file or "",
            allowed="PEM; a key that belongs to its certificate, without a password",
            do="Name another file.",
        ) from error

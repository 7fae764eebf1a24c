"""How to connect to a cluster: login, files for TLS, time limits.

The TLS files are checked before they are used: the library below reports problems late, and asks
for passwords at the terminal.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from arag_search.engines.opensearch.faults import (
    CA_CERTS_VARIABLE,
    CLIENT_CERT_VARIABLE,
    CLIENT_KEY_VARIABLE,
    PASSWORD_VARIABLE,
    USERNAME_VARIABLE,
)
from arag_search.errors import ArgumentError
from arag_search.system.secrets import read_secret

ATTEMPT_TIMEOUT_S = 5.0
REQUEST_BUDGET_S = 60.0
OPENING_BUDGET_S = 5.0
"""An address is more often wrong than a server is about to start."""

UNENCRYPTED_VARIABLE = "OPENSEARCH_ALLOW_UNENCRYPTED"
"""1 allows a password to be sent over http:// to another machine."""


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """The options of a connection. ``ca_certs`` is a file of trusted authorities, in place of the
    usual ones; ``client_cert`` and ``client_key`` are files for servers that ask for a certificate
    (the key may be in the certificate's file). ``allow_unencrypted`` allows a password to be sent
    over http:// to another machine."""

    username: str = ""
    password: str = field(default="", repr=False)
    ca_certs: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    allow_unencrypted: bool = False
    attempt_timeout_s: float = ATTEMPT_TIMEOUT_S
    request_budget_s: float = REQUEST_BUDGET_S
    opening_budget_s: float = OPENING_BUDGET_S

    @staticmethod
    def from_environment(
        ca_certs: str | None = None, client_cert: str | None = None, client_key: str | None = None
    ) -> ConnectionOptions:
        """Read user and password from the environment, and the files unless they are arguments.

        The password may be in a file, which OPENSEARCH_PASSWORD_FILE names. Raises ArgumentError if
        only one of user and password is set, or if a file is missing or cannot be used.
        """
        username = os.environ.get(USERNAME_VARIABLE, "")
        password = read_secret(PASSWORD_VARIABLE)
        if bool(username) != bool(password):
            missing = PASSWORD_VARIABLE if username else USERNAME_VARIABLE
            raise ArgumentError(
                f"{missing} is not set.",
                allowed=f"both {USERNAME_VARIABLE} and {PASSWORD_VARIABLE}, or neither",
                do="Set it, or unset the other.",
            )
        ca_certs = ca_certs or os.environ.get(CA_CERTS_VARIABLE) or None
        client_cert = client_cert or os.environ.get(CLIENT_CERT_VARIABLE) or None
        client_key = client_key or os.environ.get(CLIENT_KEY_VARIABLE) or None
        _check_files(ca_certs, client_cert, client_key)
        allowed = os.environ.get(UNENCRYPTED_VARIABLE) == "1"
        return ConnectionOptions(username, password, ca_certs, client_cert, client_key, allowed)


def _check_files(ca_certs: str | None, client_cert: str | None, client_key: str | None) -> None:
    """Raise ArgumentError for a file that is missing or cannot be used; None is no file."""
    files = {
        CA_CERTS_VARIABLE: ca_certs,
        CLIENT_CERT_VARIABLE: client_cert,
        CLIENT_KEY_VARIABLE: client_key,
    }
    for variable, file in files.items():
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
            # With an empty password, OpenSSL fails instead of asking at the terminal.
            context.load_cert_chain(client_cert, client_key, password="")
    except (OSError, ValueError) as error:
        raise ArgumentError(
            f"The file for the TLS connection cannot be used: {error}",
            where=file or "",
            allowed="PEM; a key that belongs to its certificate, without a password",
            do="Name another file.",
        ) from error

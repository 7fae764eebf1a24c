"""The address of an index on OpenSearch: ``https://h1:9200,h2:9200/prefix/name``.

Several hosts are nodes of one cluster, used in turn. The prefix is the path under which a proxy
serves the cluster, and is usually empty. User and password are never part of an address.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from ipaddress import ip_address

from arag_search.engines.opensearch.faults import (
    CA_CERTS_VARIABLE,
    CLIENT_CERT_VARIABLE,
    CLIENT_KEY_VARIABLE,
    PASSWORD_VARIABLE,
    USERNAME_VARIABLE,
)
from arag_search.errors import ArgumentError
from arag_search.system.paths import path_in
from arag_search.system.secrets import read_secret

MAX_NAME_CHARACTERS = 180
"""Keeps the names of physical indexes, which are longer, within the server's 255 bytes."""

_SCHEMES = ("http://", "https://")
_SCHEME = re.compile(r"[A-Za-z][\w+.-]*://", re.ASCII)
_WITH_LOGIN = re.compile(r"(?://)?[^/]*:.*@", re.DOTALL)
_FORM = "http(s)://HOST:PORT[,HOST:PORT...]/[PREFIX/]NAME"
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z](?:[0-9A-Za-z._-]*[0-9A-Za-z])?):(\d{1,5})")
_PREFIX = re.compile(r"(?:[\w.~-]+/)*", re.ASCII)
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_RESERVED = (".sentences", ".lock")


@dataclass(frozen=True, slots=True)
class Address:
    """The address of an index. ``hosts`` are addresses of nodes (``https://h1:9200``), ``prefix``
    begins with a slash or is empty, ``name`` is the name of the index."""

    hosts: tuple[str, ...]
    prefix: str
    name: str

    @property
    def is_encrypted(self) -> bool:
        """Whether the connections to the nodes use TLS."""
        return self.hosts[0].startswith("https://")

    @property
    def is_local(self) -> bool:
        """Whether all nodes are on this machine, so that nobody can listen in."""
        names = (host.partition("://")[2].rpartition(":")[0] for host in self.hosts)
        return all(map(is_loopback, names))

    @property
    def server(self) -> str:
        """The address without the name, as shown in messages about the cluster."""
        first, *others = self.hosts
        more = "".join("," + host.partition("://")[2] for host in others)
        return f"{first}{more}{self.prefix}"

    def __str__(self) -> str:
        return f"{self.server}/{self.name}"


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is a loopback one, reachable from here alone."""
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_address(location: str) -> bool:
    """Return whether a location is meant to be on a server rather than a folder.

    Raises ArgumentError, as ``check_no_password``.
    """
    check_no_password(location)
    return location.lower().startswith(_SCHEMES)


def check_no_password(location: str) -> None:
    """Raise ArgumentError, which never repeats a password, for a location that contains a user and
    a password, whether or not it is an address otherwise."""
    if _WITH_LOGIN.match(location) is None:
        return
    scheme = _SCHEME.match(location)
    raise ArgumentError(
        "The address holds a user or a password.",
        where=f"{scheme[0] if scheme else ''}...@{location.rpartition('@')[2]}",
        allowed=f"{_FORM}, or a folder (./ stands before one whose name looks like this)",
        do="Set OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD instead.",
    )


def parse_address(location: str) -> Address:
    """Read an address. Raises ArgumentError, which never repeats a password."""
    if not is_address(location):
        raise ArgumentError("The location is not an address.", where=location, allowed=_FORM)
    scheme, _, rest = location.partition("://")
    authority, _, path = rest.partition("/")
    hosts = tuple(_host(scheme.lower(), host, location) for host in authority.split(","))
    prefix, _, name = path.rstrip("/").rpartition("/")
    if not _PREFIX.fullmatch(f"{prefix}/" if prefix else ""):
        raise ArgumentError(
            f'The prefix of the address is "{prefix}".',
            where=location,
            allowed="path segments of letters, digits, . _ ~ and -",
            do=f"Write {_FORM}.",
        )
    _check_name(name, location)
    return Address(tuple(dict.fromkeys(hosts)), f"/{prefix}" if prefix else "", name)


def _host(scheme: str, text: str, location: str) -> str:
    match = _HOST.fullmatch(text)
    if match is None or not 1 <= int(match[2]) <= 65_535:
        do = f"Write {_FORM}."
        if "://" in text or text.endswith(":"):
            do = "Name http:// or https:// once, before the first host."
        elif match is None and _HOST.fullmatch(f"{text}:9200"):
            proxy = 443 if scheme == "https" else 80
            do = f"Add the port: {text}:9200 for a node, {text}:{proxy} for a proxy or a service."
        raise ArgumentError(
            f'The address names the host "{text}".',
            where=location,
            allowed="HOST:PORT, several of them separated by commas",
            do=do,
        )
    return f"{scheme}://{match[1].lower()}:{int(match[2])}"


def _check_name(name: str, location: str) -> None:
    if not name:
        raise ArgumentError(
            "The address names no index.",
            where=location,
            allowed=_FORM,
            do="Add the name of the index after the last slash.",
        )
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME_CHARACTERS or name.endswith(_RESERVED):
        raise ArgumentError(
            f'The name of the index is "{name}".',
            where=location,
            allowed=f"up to {MAX_NAME_CHARACTERS} of a-z, 0-9, . _ and -, a letter or digit first, "
            f"not ending in {' or '.join(_RESERVED)}",
            do="Choose such a name.",
        )


# How to connect to a cluster: login, files for TLS, time limits
#
# The TLS files are checked before they are used: the library below reports problems late, and
# asks for passwords at the terminal.


ATTEMPT_TIMEOUT_S = 5.0
REQUEST_BUDGET_S = 60.0
OPENING_BUDGET_S = 5.0
"""An address is more often wrong than a server is about to start."""

UNENCRYPTED_VARIABLE = "OPENSEARCH_ALLOW_UNENCRYPTED"
"""1 allows a password to be sent over http:// to another machine."""


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """The options of a connection.

    ``ca_certs``: a file of trusted authorities, in place of the usual ones.
    ``client_cert``, ``client_key``: files for servers that ask for a certificate. The key may be in
    the certificate's file.
    ``allow_unencrypted``: a password may be sent over http:// to another machine.
    """

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
        ca_certs = ca_certs or path_in(CA_CERTS_VARIABLE) or None
        client_cert = client_cert or path_in(CLIENT_CERT_VARIABLE) or None
        client_key = client_key or path_in(CLIENT_KEY_VARIABLE) or None
        _check_files(ca_certs, client_cert, client_key)
        allowed = os.environ.get(UNENCRYPTED_VARIABLE) == "1"
        return ConnectionOptions(username, password, ca_certs, client_cert, client_key, allowed)


def _check_files(ca_certs: str | None, client_cert: str | None, client_key: str | None) -> None:
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
                do=f"Correct the path, which comes from {variable} or an argument.",
            )
    if client_key is not None and client_cert is None:
        raise ArgumentError(
            "There is a key without its certificate.",
            where=client_key,
            do=f"Name the certificate too: {CLIENT_CERT_VARIABLE}=FILE.",
        )
    if ca_certs is None and client_cert is None:
        return
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

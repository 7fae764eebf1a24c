"""An open HTTP socket and its access rules: the names of the server, and the token."""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from arag_search.engines.opensearch.address import is_loopback
from arag_search.errors import ArgumentError
from arag_search.system.secrets import read_secret

PATH = "/mcp"
HEALTH_PATH, READY_PATH = "/health", "/ready"
"""The paths that tell anybody whether the server is up, and whether its indexes can be searched,
without a token and without naming an index."""
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8765
MIN_TOKEN_CHARACTERS = 16
MAX_PORT = 65_535
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_NAME = re.compile(r"[0-9a-z_](?:[0-9a-z._-]{0,251}[0-9a-z])?")
_TOKEN = re.compile(r"[!-~]+")
_SET_A_TOKEN = "Put a long random token into a variable, and name it with --token-env NAME."


@dataclass(frozen=True, slots=True)
class Listening:
    """An open socket and its access rules.

    ``names`` are the host names by which clients may reach the server, in lower case. ``token`` is
    the token that clients must send; None if none is required.
    """

    socket: socket.socket
    names: tuple[str, ...]
    token: str | None

    def __enter__(self) -> Listening:
        return self

    def __exit__(self, *exception: object) -> None:
        self.socket.close()

    @property
    def address(self) -> str:
        """The address of the server, without a path."""
        host, port = self.socket.getsockname()[:2]
        return f"http://{_bracketed(host)}:{port}"

    @property
    def url(self) -> str:
        """The address of the server for clients of the protocol."""
        return f"{self.address}{PATH}"

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        return ip_address(self.socket.getsockname()[0]).is_loopback

    @property
    def origin_pattern(self) -> str:
        """The pattern of the Origin of pages that may use the server: pages of these names."""
        return rf"(?i)https?://(?:{'|'.join(map(re.escape, self.names))})(?::[0-9]{{1,5}})?"


def listen(
    host: str,
    port: int,
    token_env: str | None,
    allowed_hosts: Sequence[str] = (),
    *,
    has_access_file: bool = False,
) -> Listening:
    """Open the socket; port 0 takes any that is free.

    ``token_env`` names the variable with the token; with ``_FILE`` added, it names the variable
    with the path of the token's file. ``allowed_hosts`` are names or IP addresses by which clients
    may reach the server. ``has_access_file`` says that a file names the tokens of clients. Raises
    ArgumentError for a host of either kind that is not loopback without a token, and for an invalid
    name. A variable without a good token and a port that is not available raise it too.
    """
    names = [_name(host) for host in allowed_hosts]
    if token_env is None and not has_access_file:
        _check_loopback(host, names)
    if not 0 <= port <= MAX_PORT:
        raise ArgumentError(f"There is no port {port}.", where="--port", allowed=f"0 to {MAX_PORT}")
    token = None if token_env is None else _token_in(token_env)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        opened = socket.create_server((host.strip("[]"), port), family=family)
    except OSError as error:
        raise _not_listening(host, port, error) from error
    if host:
        names.insert(0, _canonical(host) or _bracketed(host.lower()))
    return Listening(opened, (*_LOOPBACK_NAMES, *names), token)


def _check_loopback(host: str, names: Sequence[str]) -> None:
    for option, name in (("--host", host), *(("--allow-host", name) for name in names)):
        if not is_loopback(name):
            raise ArgumentError(
                f"Other machines could reach the server as {name}, and no token is set.",
                where=option,
                allowed="names of loopback; any other one with --token-env or --access",
                do=_SET_A_TOKEN,
            )


def _name(host: str) -> str:
    name = _canonical(host)
    if name is None:
        raise ArgumentError(
            f'"{host}" is not a host name.',
            where="--allow-host",
            allowed="a name or an IP address, without scheme, port and path",
            do="Write it like this: --allow-host search.example.org",
        )
    return name


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _token_in(variable: str) -> str:
    token = read_secret(variable).strip()
    if len(token) >= MIN_TOKEN_CHARACTERS and _TOKEN.fullmatch(token):
        return token
    raise ArgumentError(
        f"The token in the variable {variable} is missing, too short, or not plain ASCII.",
        where="--token-env",
        allowed=f"{MIN_TOKEN_CHARACTERS} or more characters of printable ASCII, without blanks",
        do=f"Set it, such as: export {variable}=$(openssl rand -hex 32)",
    )


def _not_listening(host: str, port: int, error: OSError) -> ArgumentError:
    if error.errno == errno.EADDRINUSE:
        return ArgumentError(
            f"Port {port} of {host} is taken.",
            where="--port",
            allowed="a free port; 0 takes any",
            do="Stop the other server, or choose another port.",
        )
    return ArgumentError(
        f"The server cannot listen there ({error.strerror}).",
        where=f"{host}, port {port}",
        allowed="an address of this machine, and a port that this user may have",
        do="Correct --host or --port.",
    )


def _canonical(host: str) -> str | None:
    """Return the name or address in lower case; None for anything else. An IPv6 address is in its
    short form and in brackets, which ``host`` may lack."""
    name = host.lower()
    if _NAME.fullmatch(name):
        return name
    try:
        address = IPv6Address(name[1:-1] if name[:1] + name[-1:] == "[]" else name)
    except ValueError:
        return None
    return None if address.scope_id else f"[{address}]"

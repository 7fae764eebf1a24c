"""Who may see which part of the served indexes: the access file.

The file maps the SHA-256 of a token to a filter, or to a filter and a name for messages:

    5994...cfc5: acl:(everyone OR hr)
    a3b8...01e7: {filter: {acl: [everyone, alice], not: {deny: alice}}, name: Alice}

A token is long (16 characters or more) and random, so that its hash needs no salt.
"""

from __future__ import annotations

import hmac
import logging
import re
import time
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.requests import Request

from arag_search.errors import AccessError, ArgumentError, ConfigError
from arag_search.mcp_server.listening import MIN_TOKEN_CHARACTERS
from arag_search.query.filters import Data, filter_text
from arag_search.query.problems import QueryError
from arag_search.system.yaml_file import numbered, read_mapping

_GRANT = "arag_search.grant"  # the key in the scope of a request
_WHAT = "access file"
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_FORM = "HASH: FILTER, or HASH: {filter: FILTER, name: NAME}; a hash has 64 hexadecimal digits"
_HASH_IT = 'Make the hash of a token with: printf %s "${SEARCH_TOKEN:?is not set}" | sha256sum'
_OF_NOTHING = frozenset(sha256(text).hexdigest() for text in (b"", b" ", b"\n", b"\r\n"))
"""The digests of texts that the command makes of a variable that is not set. All know them."""
_SETTLED_NS = 2_000_000_000
"""The age from which a file is identified by its times: a later change would have another time."""
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Grant:
    """The rights of a token: its ``digest``, the filter of its part, and the name that operators
    read. The name is by default the beginning of the digest."""

    digest: str
    filter: str
    name: str


class AccessFile:
    """The grants of a file, which is read again when it has changed.

    While the file is absent or has problems, it grants nothing. Its last good content might still
    admit somebody whose token the change was meant to revoke.
    """

    def __init__(self, path: Path, check: Callable[[str], object]) -> None:
        """Read the file. ``check`` raises QueryError for a filter that the served indexes cannot
        use. Raises ConfigError, which lists all problems of the file."""
        self._path = path
        self._check = check
        self._state = _state_of(path)
        self._grants = read_grants(path, check)
        self._failure: ConfigError | None = None

    def grant(self, token: str) -> Grant | None:
        """Return the current grant of a token, given as in the header; None if it is unknown, or
        shorter than a token may be.

        All digests are compared, each in constant time. Raises AccessError while the file has
        problems.
        """
        self._refresh()
        if self._failure is not None:
            raise AccessError(
                "The server lets nobody in: its access file has problems.",
                do="Tell who runs the server; its log names them.",
            )
        if len(token) < MIN_TOKEN_CHARACTERS:
            return None
        digest = sha256(token.encode("latin-1")).hexdigest()
        matching = [grant for grant in self._grants if hmac.compare_digest(grant.digest, digest)]
        return matching[0] if matching else None

    def _refresh(self) -> None:
        state = _state_of(self._path)
        if state is not None and state == self._state:
            return
        before = self._failure
        self._grants = ()
        try:
            self._grants, self._failure = read_grants(self._path, self._check), None
        except ConfigError as error:
            self._failure = error
            if str(error) != str(before):
                _logger.error("Nobody is let in. %s", error)
        if before is not None and self._failure is None:
            _logger.warning("The access file is in order again: %s", self._path)
        self._state = state


def read_grants(path: Path, check: Callable[[str], object]) -> tuple[Grant, ...]:
    """Read the grants of a file, whose filters ``check`` accepts. Raises ConfigError, which does
    not show a key that is not a hash, because it may be a token."""
    content = read_mapping(path, _WHAT, holds="token", allowed=_FORM)
    problems: list[str] = []
    grants: dict[str, Grant] = {}
    for number, (key, value) in enumerate(content.items(), 1):
        fields = cast(
            Mapping[object, object], value if isinstance(value, dict) else {"filter": value}
        )
        filter, name = fields.get("filter"), fields.get("name")
        entry = f"entry {number}" + (f" ({name})" if name is not None else "")
        digest = str(key).lower()
        if not _SHA256.fullmatch(digest):
            problems.append(f"{entry}: its key is not a SHA-256. A token does not belong here.")
        elif digest in _OF_NOTHING:
            problems.append(f"{entry}: its key is the hash of no token, as of an unset variable.")
        elif digest in grants:
            problems.append(f"{entry}: an earlier entry has the same hash.")
        if unknown := [str(field) for field in fields if field not in ("filter", "name")]:
            problems.append(f"{entry}: there is no key {', '.join(unknown)}.")
        if not isinstance(filter, str | dict) or (isinstance(filter, str) and not filter.strip()):
            problems.append(f"{entry}: it has no filter. Without one, it would grant everything.")
            continue
        text = ""
        try:
            text = filter_text(cast("str | Data", filter))
            check(text)
        except (ArgumentError, QueryError) as error:
            problems.append(f"{entry}: {' '.join(str(error).split())}")
        grants[digest] = Grant(digest, text, digest[:8] if name is None else str(name))
    if problems:
        raise ConfigError(numbered(_WHAT, problems), where=str(path), allowed=_FORM, do=_HASH_IT)
    return tuple(grants.values())


def note_grant(scope: MutableMapping[str, Any], grant: Grant) -> None:
    """Store the grant of a request's token in the scope of the request, and whose it is, to whom
    the SDK ties a session."""
    scope[_GRANT] = grant
    scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=grant.digest, scopes=[]))


def grant_of(request: object) -> Grant | None:
    """Return what the token of a request grants; None without an access file."""
    grant = request.scope.get(_GRANT) if isinstance(request, Request) else None
    return grant if isinstance(grant, Grant) else None


def filter_of(request: object) -> str:
    """Return the filter that the token of a request grants. Raises AccessError if there is none, as
    on a path that does not check tokens."""
    grant = grant_of(request)
    if grant is None:
        raise AccessError("The request has no grant.", do="Send it over HTTP, with a token.")
    return grant.filter


def _state_of(path: Path) -> tuple[int, ...] | None:
    # None: the file is absent, or so new that another change might not change its times.
    try:
        state = path.stat()
    except OSError:
        return None
    if time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns) < _SETTLED_NS:
        return None
    return state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino

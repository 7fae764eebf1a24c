"""Names of hosts as headers have them: ``host[:port]``, and an origin around it (RFC 9110, 6454).

Names are parsed strictly and compared as a whole. A header with anything else, such as a user
before an @, has no valid name.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address

MAX_PORT = 65_535
_NAME = re.compile(r"[0-9a-z_](?:[0-9a-z._-]{0,251}[0-9a-z])?")
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"https?://(.*)", re.IGNORECASE)


def canonical_name(host: str) -> str | None:
    """Return the name or address in lower case, an IPv6 address in its short form and in brackets
    (which ``host`` may lack); None for anything else."""
    name = host.lower()
    if _NAME.fullmatch(name):
        return name
    try:
        address = IPv6Address(name[1:-1] if name[:1] + name[-1:] == "[]" else name)
    except ValueError:
        return None
    return None if address.scope_id else f"[{address}]"


def name_in_host(value: str) -> str | None:
    """Return the canonical name in a Host header, ``host[:port]``, or None for anything else."""
    match = _AUTHORITY.fullmatch(value)
    if match is None or int(match[2] or 0) > MAX_PORT:
        return None
    return canonical_name(match[1])


def name_in_origin(value: str) -> str | None:
    """Return the canonical name in an Origin header of http or https, or None for anything else."""
    match = _ORIGIN.fullmatch(value)
    return None if match is None else name_in_host(match[1])

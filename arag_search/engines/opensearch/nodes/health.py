"""The health of a local cluster, as one of its nodes sees it."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

_LIMIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Health:
    """The reply of ``_cluster/health``: green, yellow or red, and the number of joined nodes."""

    status: str
    nodes: int

    def is_ready(self, nodes: int) -> bool:
        return self.status in ("green", "yellow") and self.nodes == nodes


def ask_health(url: str) -> Health | None:
    """Ask the node at ``url`` for the health of its cluster; None if it does not answer yet."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=_LIMIT_S)
    try:
        connection.request("GET", "/_cluster/health")
        reply = connection.getresponse()
        body: Any = json.loads(reply.read())
        if reply.status != 200:
            return None
        return Health(str(body["status"]), int(body["number_of_nodes"]))
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None
    finally:
        connection.close()

"""Shards without a primary copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from arag_search.engines.opensearch.client import Client
from arag_search.errors import EngineError

_ASK_S = 5.0


def lost_shards(client: Client, indexes: Sequence[str], shards: int) -> str:
    """Describe the shards of ``indexes`` that have no primary; all of them if no node answers.

    Empty if none is lost. Never raises EngineError.
    """
    names = ",".join(indexes)
    try:
        reply: Any = client.call(
            "GET",
            f"/_cluster/health/{names}",
            params={"level": "shards", "timeout": "1s"},
            budget_s=0,
            attempt_timeout_s=_ASK_S,
        )
    except EngineError:
        every = "shard 0" if shards == 1 else f"shards 0 to {shards - 1}"
        return f"{', '.join(indexes)}: no node answers for {every}"
    health = cast("dict[str, Any]", reply.get("indices", {}))
    lost: list[str] = []
    for index in indexes:
        by_number = cast("dict[str, Any]", health.get(index, {}).get("shards", {}))
        numbers = sorted(
            int(number) for number, shard in by_number.items() if not shard.get("primary_active")
        )
        if numbers:
            lost.append(f"{index}: no node has shard {', '.join(map(str, numbers))}")
    return "; ".join(lost)

"""The shared part of the scripts, which speak JSON lines with ``bench/rivals/process.py``. It needs
nothing but Python.

The first line has the folder for what is built, model, settings and passages (id, title, text). It
is replied to when the system is open. Each further line is a question, replied to with an answer
and the ids of the passages that were shown for it. Every reply has the calls of models that it took
and their tokens; a failed reply has an error.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

Said = tuple[str, list[str]]
"""An answer, and the ids of the passages that were shown for it."""

COUNTS: Counter[str] = Counter()


def count(usage: Any) -> None:
    """Count a call, with the usage that the endpoint reported."""
    details = getattr(usage, "prompt_tokens_details", None)
    COUNTS["calls"] += 1
    COUNTS["cached_tokens"] += getattr(details, "cached_tokens", 0) or 0
    for name in ("prompt_tokens", "completion_tokens"):
        COUNTS[name] += getattr(usage, name, 0) or 0


def counted(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call like the calls of OpenAI's client that counts what it used. A stream is counted
    at its end."""

    async def pieces(stream: Any) -> Any:
        usage = None
        async for piece in stream:
            usage = getattr(piece, "usage", None) or usage
            yield piece
        count(usage)

    def received(response: Any) -> Any:
        if hasattr(response, "__aiter__"):
            return pieces(response)
        count(response.usage)
        return response

    async def awaited(response: Any) -> Any:
        return received(await response)

    def counting(*arguments: Any, **options: Any) -> Any:
        if options.get("stream"):
            options["stream_options"] = {"include_usage": True}
        response = call(*arguments, **options)
        return awaited(response) if inspect.isawaitable(response) else received(response)

    return counting


def serve(opens: Callable[[Any], Callable[[Any], Said]]) -> None:
    """Reply to the lines of stdin until it ends. What libraries print goes to stderr."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    answers: Callable[[Any], Said] | None = None
    for line in sys.stdin:
        COUNTS.clear()
        reply: dict[str, Any] = {}
        try:
            asked = json.loads(line)
            if answers is None:
                os.chdir(asked["folder"])
                answers = opens(asked)
            else:
                reply["answer"], reply["passages"] = answers(asked)
        except Exception as error:  # whatever a foreign library raises
            reply["error"] = f"{type(error).__name__}: {error}"[:2_000]
        print(json.dumps(reply | COUNTS), file=out, flush=True)

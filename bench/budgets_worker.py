"""One side of the comparison with an earlier commit: a process that searches and builds as told.

It runs with the sources of that commit: it uses names that both have, and imports nothing of the
bench, which needs the sources of today.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import arag_search
from arag_search.agent.presets import load_preset
from arag_search.agent.toolbox import tools_of
from index_jobs.build.new_index import build_index


def _asker(work: str, index: arag_search.Index, tool: Any) -> Callable[[str], object]:
    """Return the function that a work calls for each text."""
    alone = {"top_k": 5, "snippets": False, "feedback": False}
    return {
        "search": index.logical_search,
        "recorded": partial(index.logical_search, **alone),
        "words": partial(index.logical_search, operators=False, **alone),
        "reply": lambda text: tool.run({"query": text}),
    }[work]


def _serve(corpus: str, folder: str) -> None:
    """Answer requests on standard input until it ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    index: arag_search.Index | None = None
    tool: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        began = time.perf_counter()
        if request["do"] == "build":
            target = request.get("to") or str(Path(folder) / "again")
            shutil.rmtree(target, ignore_errors=True)
            began = time.perf_counter()
            build_index([corpus], target)
            answer: Any = time.perf_counter() - began
        else:
            if index is None:
                index = arag_search.open_index(Path(folder) / "index", search_timeout_s=None)
                tool = tools_of(load_preset("logical_read"), index)["logical_search"]
            ask = _asker(request["do"], index, tool)
            began = time.thread_time()  # embedded Lucene searches in this thread
            for text in request["texts"]:
                ask(text)
            answer = (time.thread_time() - began) / len(request["texts"])
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    _serve(*sys.argv[1:])

"""One side of the comparison with an earlier commit: a process that searches and builds as told.

It runs with the sources of that commit and imports of the bench no more than the trace, because the
rest of the bench needs the sources of today.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from arag_search.agent.presets import load_preset
from arag_search.agent.toolbox import tools_of
from arag_search.search.index import Index, open_index
from bench.trace import traced_search
from index_jobs.build.new_index import build_index


def _serve(corpus: str, folder: str) -> None:
    """Answer requests on standard input until it ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    index: Index | None = None
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
        elif request["do"] == "trace":
            answer = traced_search().to_dict()
        else:
            if index is None:
                index = open_index(Path(folder) / "index", search_timeout_s=None)
                tool = tools_of(load_preset("logical_read"), index)["logical_search"]
            search = index.logical_search
            began = time.perf_counter()
            for text in request["texts"]:
                search(text) if request["do"] == "search" else tool.run({"query": text})
            answer = (time.perf_counter() - began) / len(request["texts"])
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    _serve(*sys.argv[1:])

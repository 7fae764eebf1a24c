"""A process that searches and builds with the sources of one tree, for a comparison with a commit.

It imports only names that both trees have, and nothing of the bench.
"""

import json
import os
import sys
import time
from functools import partial
from typing import Any

import arag_search
from arag_search.agent.presets import load_preset
from arag_search.agent.toolbox import tools_of
from index_jobs.build.new_index import build_index


def main(corpus: str, location: str) -> None:
    """Build an index unless it is there, then answer requests on standard input until it ends: the
    processor time of a work for one of its texts."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    if not os.path.exists(location):
        build_index([corpus], location)
    index = arag_search.open_index(location, search_timeout_s=None)
    tool: Any = tools_of(load_preset("logical_read"), index)["logical_search"]
    alone = {"top_k": 5, "snippets": False, "feedback": False}
    works = {
        "recorded": partial(index.logical_search, **alone),
        "words": partial(index.logical_search, operators=False, **alone),
        "reply": lambda text: tool.run({"query": text}),
    }
    for line in sys.stdin:
        request = json.loads(line)
        work = works[request["do"]]
        began = time.thread_time()  # embedded Lucene searches in this thread
        for text in request["texts"]:
            work(text)
        spent = (time.thread_time() - began) / len(request["texts"])
        print(json.dumps(spent), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

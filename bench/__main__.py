"""Run a bench by its name, or list the benches.

python -m bench
python -m bench NAME [OPTION...]
python -m bench NAME --help
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

BENCHES = {
    "ablate": "bench.ablate",
    "agent_loop": "bench.speed.agent_loop",
    "agent_run": "bench.speed.agent_run",
    "build_cost": "bench.replay.build_cost",
    "efficiency": "bench.speed.efficiency",
    "embedding": "bench.speed.embedding",
    "faults": "bench.cluster.faults",
    "figures": "bench.guides.figures",
    "gold_chain": "bench.gold_chain.counts",
    "matching": "bench.quality.matching",
    "offline": "bench.quality.offline",
    "opensearch_load": "bench.cluster.opensearch_load",
    "opensearch_search": "bench.cluster.opensearch_search",
    "parity": "bench.cluster.parity",
    "recall": "bench.quality.recall",
    "replay": "bench.replay.replay",
    "retrieval": "bench.quality.retrieval",
    "scale": "bench.scale.scale",
    "vector_sequences": "bench.quality.vector_sequences",
    "vectors": "bench.speed.vectors",
    "verify": "bench.report.verify",
    "viewer_picture": "bench.guides.viewer_picture",
    "words": "bench.scale.words",
}
"""The module behind each name; its ``main(arguments)`` returns the exit code."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench that the first argument names and return its exit code (2: no such bench)."""
    name, *words = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in ("-h", "--help"):
        print(listing())
        return 0
    if name not in BENCHES:
        print(
            f"There is no bench {name!r}.\n"
            f"  Allowed: {', '.join(BENCHES)}\n"
            "  What to do: run python -m bench for a list that says what each one measures.",
            file=sys.stderr,
        )
        return 2
    return importlib.import_module(BENCHES[name]).main(words)


def listing() -> str:
    """Return all names with the first line of what their modules say, importing none of them."""
    width = max(map(len, BENCHES))
    lines = [f"  {name:<{width}}  {_summary(module)}" for name, module in BENCHES.items()]
    return "\n".join(["Usage: python -m bench NAME [OPTION...]", "", *lines])


def _summary(module: str) -> str:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return ""
    tree = ast.parse(Path(spec.origin).read_text("utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n")[0].partition(": python -m")[0]


if __name__ == "__main__":
    sys.exit(main())

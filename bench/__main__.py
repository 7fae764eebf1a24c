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
from pathlib import Path

from bench import BenchError

ROOT = Path(__file__).parents[1]

BENCHES = {
    "ablate": "bench.ablate",
    "code": "bench.replies.code",
    "counterfactual": "bench.counterfactual.counterfactual",
    "crowd": "bench.crowd",
    "lookup": "bench.replies.lookup",
    "prepare": "bench.published.prepare",
    "replay": "bench.replies.replay",
    "retrieval": "bench.retrieval",
    "ripgrep": "bench.ripgrep.ripgrep",
    "scale": "bench.scale.scale",
    "sets": "bench.sets.sets",
    "speed": "bench.speed.speed",
    "suite": "bench.ablation.own_suite",
    "verify": "bench.report.verify",
}
"""The module behind each name; its ``main(arguments)`` returns the exit code."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench that the first argument names and return its exit code: 2 for no such bench."""
    name, *options = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in ("-h", "--help"):
        print(listing())
        return 0
    if name not in BENCHES:
        error = BenchError(
            f'There is no bench "{name}".',
            allowed=", ".join(BENCHES),
            do="Run python -m bench for a list of what each one measures.",
        )
        print(error, file=sys.stderr)
        return 2
    return importlib.import_module(BENCHES[name]).main(options)


def listing() -> str:
    """Return all names with the first line of their modules' docstrings; no module is imported."""
    width = max(map(len, BENCHES))
    lines = [f"  {name:<{width}}  {_summary(module)}" for name, module in BENCHES.items()]
    return "\n".join(["Usage: python -m bench NAME [OPTION...]", "", *lines])


def _summary(module: str) -> str:
    source = (ROOT / module.replace(".", "/")).with_suffix(".py").read_text("utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


if __name__ == "__main__":
    sys.exit(main())

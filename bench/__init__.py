"""Benches: what this project costs, measured against what it is built on. They call the same
objects as all other code, and contain no search logic.
"""

from pathlib import Path

from arag_search.errors import AragError

RESULTS_FOLDER = Path(__file__).parent / "results"
"""The folder where benches write their results, and from which guides take their figures."""


class BenchError(AragError):
    """A measurement that would mean nothing, for example because two sides do not do the same
    work."""

"""Benches: what this project costs, measured against what it is built on.

They call the same objects as everybody else and hold no logic of the search.
"""

from arag_search.errors import AragError


class BenchError(AragError):
    """A measurement that would mean nothing: the two sides do not do the same."""

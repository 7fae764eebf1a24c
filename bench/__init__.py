"""Benches: what this project costs, measured against what it is built on. They call the same
objects as all other code, and contain no search logic.
"""

from arag_search.errors import AragError


class BenchError(AragError):
    """A measurement that would mean nothing, for example because two sides do not do the same
    work."""

"""The limits of the query language, each defined here and nowhere else."""

MIN_WEIGHT = 0.01
EXACT_INTEGER = 1 << 53
"""The greatest integer of a number field: beyond it, neighbours are one number."""

MAX_WEIGHT = 1000.0
DEFAULT_FACTOR = 0.5
"""What DEMOTE multiplies a score by; between 0.4 and 0.6 it hardly matters which."""
MAX_SLOP = 20
MIN_PREFIX_CHARACTERS = 3
MAX_APOSTROPHES = 7
"""Apostrophes within the words of one leaf: it stands for every mix of their two spellings."""

MAX_POSSESSIVE_WORDS = 60
"""Words of one leaf in all spellings; one with more is searched without its possessives."""

MAX_CHARACTERS = 2_000
MAX_LEAVES = 64
MAX_DEPTH = 12
MAX_PREFIXES = 16
PREFIX_SHARES = {3: 4, 4: 2}
"""How many prefixes one of so many characters counts as; a longer one counts as 1.

So the terms that all prefixes of a query stand for are at most about as many as those of four
prefixes of 3 characters.
"""
MAX_PUBLISHED_PREFIXES = 4
"""Prefixes of any length, without the additions to the language."""
MAX_WORDS = 192
"""Words of all phrases together; those of a leaf with apostrophes count in each of its spellings.
So do possessives, which are left out where they would exceed it.

Each is a clause in title and in content, and on a cluster of several shards another in each for its
statistics: 768 clauses. Beside them a query has 63 words at most, 252 clauses. OpenSearch takes
1,024 by default.
"""

MAX_DEPTH_WITHOUT_LIMITS = 100
MAX_WORDS_WITHOUT_LIMITS = 100_000
MAX_PROBLEMS = 2_000
"""Parsing ends at this many problems, which only a text parsed without limits has."""
MAX_MENDED = 4_000
"""A corrected query is derived only from a text of at most this many characters."""

"""The limits of the query language, each defined here and nowhere else."""

MIN_WEIGHT = 0.01
EXACT_INTEGER = 1 << 53
"""The greatest integer of a number field: beyond it, neighbours are one number."""

MAX_WEIGHT = 1000.0
DEFAULT_FACTOR = 0.5
"""What DEMOTE multiplies a score by; between 0.4 and 0.6 it hardly matters which."""
MAX_SLOP = 20
MIN_PREFIX_CHARACTERS = 3

MAX_CHARACTERS = 2_000
MAX_LEAVES = 64
MAX_DEPTH = 12
MIN_FUZZY_CHARACTERS = {1: 3, 2: 5}
"""How many characters a word has at least that is searched with so many edits."""
FUZZY_WORDS = "one word, of at least 3 characters with ~1, of 5 with ~2"
MAX_PREFIXES = 16
"""Prefixes and fuzzy words together."""
PREFIX_SHARES = {3: 4, 4: 2}
"""How many prefixes one, or a fuzzy word, of so many characters counts as; a longer one is 1.

So all prefixes of a query stand for at most about as many terms as four prefixes of 3 characters.
"""
MAX_WORDS = 192
"""Words of all phrases together. If a leaf has several spellings, its words count in each.

Each is a clause in title and in content, and on a cluster of several shards another in each for its
statistics: 768 clauses. Beside them a query has 63 words at most, 252 clauses. OpenSearch takes
1,024 by default.
"""

MAX_DEPTH_WITHOUT_LIMITS = 100
MAX_PROBLEMS = 2_000
"""Parsing ends at this many problems, which only a text parsed without limits has."""
MAX_MENDED = 4_000
"""A corrected query is derived only from a text of at most this many characters."""

"""The switcher: simple questions get one search, complex ones the loop (AgenticRAG, section 5.5).

The paper specifies no algorithm and gives no figures; our rules are a proposal.
"""

from __future__ import annotations

import re

from arag_search.agent.record import Route

MAX_SIMPLE_WORDS = 40
_COMPARISON = re.compile(
    r"\b(?:both|compare[ds]?|comparison|differences?|versus|vs|rather than|same|than|more|less|"
    r"fewer|older|younger|earlier|later|first|last|most|least|largest|smallest|highest|lowest|"
    r"longest|shortest|best|worst|average|total|trend|change[ds]?)\b",
    re.IGNORECASE,
)
_JOINED = re.compile(
    r"\b(?:and|or|then|also)\s+(?:who|what|when|where|which|why|how|was|were|is|are|did|does|do)\b",
    re.IGNORECASE,
)
_RANGE = re.compile(
    r"\b(?:between|from)\s+\D{0,20}\d{4}\b.{0,20}\b\d{4}\b|\b\d{4}\s*(?:-|–|to|until)\s*\d{4}\b",
    re.IGNORECASE,
)
_NAME = r"(?:[A-Z][\w'’.-]*(?:\s+(?:of|the|de|von|van|la)\s+|\s+)?)+"
_RELATED = re.compile(
    rf"(?<=\s){_NAME}\s*(?:,\s*)?(?:and|or|of|with|by|in|'s|’s)\s+(?:the\s+)?{_NAME}"
)
_RELATION = re.compile(
    r"\b(?:of|whose|by)\s+the\s+\w+\s+(?:of|who|that|which|whose)\b|\b(?:who|that|which)\s+\w+ed\b",
    re.IGNORECASE,
)


def route_by_rules(question: str) -> Route:
    """Return the route of a question, judged by its wording. O(its length)."""
    words = len(question.split())
    reasons = {
        "several question marks": question.count("?") > 1,
        "questions joined by and": _JOINED.search(question) is not None,
        "a comparison": _COMPARISON.search(question) is not None,
        "names in a relation": _RELATED.search(question) is not None,
        "one fact leads to another": _RELATION.search(question) is not None,
        "a range of dates": _RANGE.search(question) is not None,
        f"more than {MAX_SIMPLE_WORDS} words": words > MAX_SIMPLE_WORDS,
    }
    why = next((reason for reason, holds in reasons.items() if holds), "")
    return Route("complex", why) if why else Route("simple", "one short question")

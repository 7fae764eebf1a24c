"""The words that are operators of the query language, with what is true of each.

The lexer, the grammar, the reader, printing, ``check`` and random trees of tests read this table.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from arag_search.query.limits import DEFAULT_FACTOR
from arag_search.query.problems import ProblemKind


class OperatorWord(NamedTuple):
    """A word that is an operator, and ``sign``, which stands for it between blanks.

    ``joins``: it joins the clauses on both sides of it; otherwise it modifies the one after it.
    ``prefixes``: signs that mean the same directly before that clause.
    ``needs_ranking``: it only changes scores.
    ``is_addition``: it is no word of the published language.
    ``factor``: multiplies a score, if it takes a factor and none follows it.
    ``effect``: its effect on the scores of matches.
    ``unranked``, ``on_factor``: the problems of one in a filter, and of a wrong factor.
    """

    word: str
    joins: bool = False
    sign: str = ""
    prefixes: str = ""
    needs_ranking: bool = False
    is_addition: bool = False
    factor: float | None = None
    effect: str = ""
    unranked: ProblemKind = ProblemKind.OPERATORS_OFF
    on_factor: ProblemKind = ProblemKind.SUFFIX


NOT: Final = OperatorWord("NOT", prefixes="-!")
PREFER: Final = OperatorWord(
    "PREFER",
    needs_ranking=True,
    is_addition=True,
    effect="raises",
    unranked=ProblemKind.UNRANKED_PREFER,
    on_factor=ProblemKind.FACTOR_OF_PREFER,
)
DEMOTE: Final = OperatorWord(
    "DEMOTE",
    needs_ranking=True,
    is_addition=True,
    factor=DEFAULT_FACTOR,
    effect="lowers",
    unranked=ProblemKind.UNRANKED_DEMOTE,
    on_factor=ProblemKind.FACTOR_OF_DEMOTE,
)
AND: Final = OperatorWord("AND", joins=True, sign="&&")
OR: Final = OperatorWord("OR", joins=True, sign="||")

OPERATORS: Final = (NOT, PREFER, DEMOTE, AND, OR)
"""All operators; the ones that bind tighter come first."""

SPELLED: Final = {
    spelling: operator
    for operator in OPERATORS
    for spelling in (operator.word, operator.sign)
    if spelling
}
"""The operator that a piece of a query is."""

PUBLISHED: Final = {
    spelling: operator for spelling, operator in SPELLED.items() if not operator.is_addition
}
"""SPELLED without the additions to the published language."""

NOT_SIGNS: Final = NOT.prefixes


def factored(piece: str) -> OperatorWord | None:
    """Return the operator of a piece that is one with a number behind it (``DEMOTE^0.2``)."""
    operator = SPELLED.get(piece.partition("^")[0]) if "^" in piece else None
    return operator if operator is not None and operator.needs_ranking else None

"""The systems that A-RAG's table has beside its own, and ripgrep, over the same index and counts.

A suite names them in ``rivals``; each answers with a record of our agent's kind (``answerer.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

RivalName = Literal[
    "faithful_rag", "graphrag", "hipporag", "linear_rag", "ma_rag", "ragenta", "ripgrep"
]
OUR_READING = "our reading, not the authors' code"


class Rival(NamedTuple):
    """The class of a system, and what the name of its row says of the code. ``usual`` is for
    --dry-run: with k passages, the requests of a usual question, and the passages that they
    show."""

    answerer: str
    row: str
    usual: Callable[[int], tuple[int, int]]


RIVALS: dict[RivalName, Rival] = {
    "faithful_rag": Rival("faithful_rag.FaithfulRag", OUR_READING, lambda k: (4, k)),
    "graphrag": Rival("process.GraphRag", "as published, graphrag 3", lambda k: (1, k)),
    "hipporag": Rival("process.HippoRag", "as published, not run by us", lambda k: (2, k)),
    "linear_rag": Rival("linear_rag.LinearRag", OUR_READING, lambda k: (1, k)),
    "ma_rag": Rival("ma_rag.MaRag", OUR_READING, lambda k: (11, 3 * k)),  # a plan of three steps
    "ragenta": Rival("ragenta.Ragenta", OUR_READING, lambda k: (2 * k + 3, 5 * k)),
    # Five calls, each reply of which is six passages that later requests repeat.
    "ripgrep": Rival("ripgrep.RipgrepAgent", "no index", lambda k: (6, 90)),
}

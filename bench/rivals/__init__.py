"""The systems that A-RAG's table has beside its own, over the same index, questions and counts.

A suite names them in ``rivals``; each answers with a record of our agent's kind (``answerer.py``).
"""

from __future__ import annotations

from typing import Literal

RivalName = Literal["faithful_rag", "linear_rag", "ma_rag", "ragenta"]

OUR_READING = "our reading, not the authors' code"
ROWS: dict[RivalName, str] = {
    "faithful_rag": OUR_READING,
    "linear_rag": OUR_READING,
    "ma_rag": OUR_READING,
    "ragenta": OUR_READING,
}
"""The systems, and what the name of a row says of its code."""

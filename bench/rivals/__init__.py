"""The systems that A-RAG's table has beside its own, over the same index, questions and counts.

A suite names them in ``rivals``; each answers with a record of our agent's kind (``answerer.py``).
"""

from __future__ import annotations

from typing import Literal

RivalName = Literal["ma_rag"]

OUR_READING = "our reading, not the authors' code"
ROWS: dict[RivalName, str] = {
    "ma_rag": OUR_READING,
}
"""The systems, and what the name of a row says of its code."""

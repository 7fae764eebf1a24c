"""Hashes of what a figure depends on.

A commit names the code only if nothing was changed since; the hash of the sources always does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any

from arag_search.questions.files import Question, questions_fingerprint
from arag_search.system import release
from arag_search.system.release import ROOT, digest_of

SOURCES = {
    **release.SOURCES,
    "configs": (".yaml", ".md"),
    "bench": (".py",),
}
"""Folders and endings of the sources of figures, without documents and tables."""


@cache
def code_fingerprint() -> str:
    """Hash all sources of this checkout as they are, committed or not."""
    return digest_of(ROOT, SOURCES)


def prompt_fingerprint(prompt: str) -> str:
    """Hash the text of the first message to a model."""
    return hashlib.sha256(prompt.encode()).hexdigest()[:16]


def questions_of(questions: Sequence[Question]) -> dict[str, Any]:
    """Return the number and the fingerprint of the questions."""
    return {"count": len(questions), "fingerprint": questions_fingerprint(questions)}

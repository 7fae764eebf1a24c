"""Hashes of what a figure depends on.

A commit names the code only if nothing was changed since; the hash of the sources always does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from arag_search.questions.files import Question, questions_fingerprint

ROOT = Path(__file__).parents[2]
SOURCES = {
    "arag_search": (".py", ".java", ".md", ".yaml"),
    "index_jobs": (".py",),
    "configs": (".yaml", ".md"),
    "bench": (".py",),
}
"""Folders and endings of the sources of figures, without documents and tables."""


@cache
def code_fingerprint() -> str:
    """Hash all sources of this checkout as they are, committed or not."""
    digest = hashlib.sha256()
    for folder, endings in SOURCES.items():
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in endings and path.name != "README.md":
                content = path.read_bytes()
                name = path.relative_to(ROOT).as_posix()
                digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def prompt_fingerprint(prompt: str) -> str:
    """Hash the text of the first message to a model."""
    return hashlib.sha256(prompt.encode()).hexdigest()[:16]


def questions_of(questions: Sequence[Question]) -> dict[str, Any]:
    """Return the number and the fingerprint of the questions."""
    return {"count": len(questions), "fingerprint": questions_fingerprint(questions)}

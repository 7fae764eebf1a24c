"""Hashes of everything that a figure depends on, and those that each file of results must name.

A commit names the code only if nothing was changed since; the hash of the sources always does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import orjson

from arag_search.agent.models.base import ChatModel
from arag_search.agent.presets import Preset
from arag_search.questions.files import Question, questions_fingerprint
from arag_search.vectors.base import EncoderIdentity
from bench import BenchError

ROOT = Path(__file__).parents[2]
SOURCES = {
    "arag_search": (".py", ".java", ".md", ".yaml"),
    "index_jobs": (".py",),
    "configs": (".yaml", ".md"),
    "bench": (".py",),
}
"""Folders and endings of the sources of figures, without documents and tables."""

ALWAYS = ("command", "taken", "version", "commit", "code")
_OF_SUITE = ("suite", "questions", "index", "preset", "model", "seed")
_AGENT_SUITES = (
    "agenticrag_ablation", "agenticrag_bright", "agenticrag_financebench", "agenticrag_wixqa",
    "arag_ablation", "arag_main", "default_operator", "documents_of_passages", "granularity",
    "logicalrag_interface",
    "logicalrag_main", "max_steps", "medical", "passage_length", "reasoning_effort", "top_k",
)  # fmt: skip
NEEDED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_AGENT_SUITES, (*_OF_SUITE, "prompt")),
    **dict.fromkeys(
        ("gold_chain", "gold_chain_full", "gold_chain_words"),
        (*_OF_SUITE, "policy"),
    ),
    "efficiency": ("corpus", "seed"),
    "embedding": ("corpus", "encoder"),
    "exclusions": ("corpus", "encoder", "questions", "seed"),
    "offline": ("corpus", "questions", "preset", "prompt", "model"),
    "opensearch": ("corpus", "seed"),
    "opensearch_load": ("corpus", "seed"),
    "parity": ("corpus", "seed"),
    "recall": ("encoder", "queries"),
    "replay": ("corpus", "questions", "preset", "prompt", "model", "seed"),
    "retrieval": ("corpus", "encoder", "questions", "seed"),
    "scale": ("seed",),
    "vectors": ("seed",),
    "where": ("corpus", "seed"),
}
"""The entries that a file of results has in addition to ``ALWAYS``, anywhere in a figure; any other
file only has ``ALWAYS``."""
KEPT_SINCE = "2026-11-22T16:00"
"""Older figures lack the hashes of sources and prompts, and the seeds, which were constants of
their commit."""
_KEPT_LATER = ("code", "prompt", "seed", "preset")


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


def preset_fingerprints(preset: Preset) -> dict[str, Any]:
    """Return the preset and the prompt that it yields."""
    return {
        "preset": {"name": preset.name, "fingerprint": preset.fingerprint},
        "prompt": prompt_fingerprint(preset.system_prompt),
    }


def agent_fingerprints(
    questions: Sequence[Question], preset: Preset, model: ChatModel
) -> dict[str, Any]:
    """Return the questions, the preset and the model."""
    return {
        "questions": questions_of(questions),
        **preset_fingerprints(preset),
        "model": model.fingerprint,
    }


def questions_of(questions: Sequence[Question]) -> dict[str, Any]:
    """Return the number and the fingerprint of the questions."""
    return {"count": len(questions), "fingerprint": questions_fingerprint(questions)}


def encoder_of(identity: EncoderIdentity) -> dict[str, Any]:
    """Return the encoder of the vectors."""
    return {
        "name": identity.name,
        "revision": identity.revision,
        "fingerprint": identity.fingerprint,
    }


def missing(path: Path) -> list[str]:
    """Return the required entries that the figures of a file of results lack, as "figure: name".

    Raises BenchError for a file that is not a file of results.
    """
    lacking: list[str] = []
    for name, entry in _entries(path):
        values = list(_values(entry))
        named = {key for key, value in values if value not in (None, "", {}, [])}
        taken = max((str(value) for key, value in values if key == "taken"), default="")
        for needed in (*ALWAYS, *NEEDED.get(path.stem, ())):
            if needed not in named and (taken >= KEPT_SINCE or needed not in _KEPT_LATER):
                lacking.append(f"{name}: {needed}")
    return lacking


def _entries(path: Path) -> Iterator[tuple[str, object]]:
    """Yield each figure of a file, or the whole file if its figures belong together."""
    try:
        content: Any = orjson.loads(path.read_bytes())
        figures: Any = content.get("figures")
    except (OSError, orjson.JSONDecodeError, AttributeError) as error:
        raise BenchError("The file holds no results.", where=str(path)) from error
    if isinstance(figures, dict):
        yield from figures.items()
    else:
        yield path.stem, content


def _values(value: object) -> Iterator[tuple[str, object]]:
    """Yield all keys at any depth with their values."""
    if isinstance(value, dict):
        for key, below in cast(dict[str, object], value).items():
            yield key, below
            yield from _values(below)
    elif isinstance(value, list):
        for below in cast(list[object], value):
            yield from _values(below)

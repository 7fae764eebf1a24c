"""What a figure hangs on, as hashes; and which of them each file of results has to name.

A commit names the code only where nothing was changed since; the hash of the sources always does.
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
"""Folders and endings of what decides a figure; documents and tables are no part of it."""

ALWAYS = ("command", "taken", "version", "commit", "code")
_OF_SUITE = ("suite", "questions", "index", "preset", "model", "seed")
_AGENT_SUITES = (
    "arag_ablation", "arag_main", "default_operator", "granularity", "logicalrag_interface",
    "logicalrag_main", "max_steps", "medical", "passage_length", "reasoning_effort", "top_k",
)  # fmt: skip
NEEDED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_AGENT_SUITES, (*_OF_SUITE, "prompt")),
    **dict.fromkeys(("gold_chain", "gold_chain_full", "gold_chain_words"), (*_OF_SUITE, "policy")),
    "agent_loop": ("corpus", "preset"),
    "agent_run": ("corpus", "preset"),
    "efficiency": ("corpus", "seed"),
    "embedding": ("corpus", "encoder"),
    "faults": ("corpus", "seed"),
    "offline": ("corpus", "questions", "preset", "prompt", "model"),
    "opensearch": ("corpus", "seed"),
    "opensearch_load": ("corpus", "seed"),
    "parity": ("corpus", "seed"),
    "recall": ("encoder", "queries"),
    "replay": ("corpus", "questions", "preset", "prompt", "model", "seed"),
    "retrieval": ("corpus", "encoder", "questions", "seed"),
    "scale": ("seed",),
    "vectors": ("seed",),
}
"""What a file of results names beyond ``ALWAYS``, wherever in a figure; any other file ``ALWAYS``
alone."""
KEPT_SINCE = "2026-11-22T16:00"
"""Figures that are older lack the hash of the sources, prompts and seeds: these were constants of
their commit."""
_KEPT_LATER = ("code", "prompt", "seed", "preset")


@cache
def code_fingerprint() -> str:
    """A hash of all sources as they lie in this checkout, committed or not."""
    digest = hashlib.sha256()
    for folder, endings in SOURCES.items():
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in endings and path.name != "README.md":
                content = path.read_bytes()
                name = path.relative_to(ROOT).as_posix()
                digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def prompt_fingerprint(prompt: str) -> str:
    """A hash of the text that a model is given first."""
    return hashlib.sha256(prompt.encode()).hexdigest()[:16]


def preset_fingerprints(preset: Preset) -> dict[str, Any]:
    """Which preset, and the prompt that it comes to."""
    return {
        "preset": {"name": preset.name, "fingerprint": preset.fingerprint},
        "prompt": prompt_fingerprint(preset.system_prompt),
    }


def agent_fingerprints(
    questions: Sequence[Question], preset: Preset, model: ChatModel
) -> dict[str, Any]:
    """What was asked, how, and of which model."""
    return {
        "questions": questions_of(questions),
        **preset_fingerprints(preset),
        "model": model.fingerprint,
    }


def questions_of(questions: Sequence[Question]) -> dict[str, Any]:
    """Which questions."""
    return {"count": len(questions), "fingerprint": questions_fingerprint(questions)}


def encoder_of(identity: EncoderIdentity) -> dict[str, Any]:
    """Which encoder made the vectors."""
    return {
        "name": identity.name,
        "revision": identity.revision,
        "fingerprint": identity.fingerprint,
    }


def missing(path: Path) -> list[str]:
    """What the figures of a file of results do not name, as "figure: name".

    Raises BenchError for a file that is none of results.
    """
    found: list[str] = []
    for name, entry in _entries(path):
        values = list(_values(entry))
        named = {key for key, value in values if value not in (None, "", {}, [])}
        taken = max((str(value) for key, value in values if key == "taken"), default="")
        for each in (*ALWAYS, *NEEDED.get(path.stem, ())):
            if each not in named and (taken >= KEPT_SINCE or each not in _KEPT_LATER):
                found.append(f"{name}: {each}")
    return found


def _entries(path: Path) -> Iterator[tuple[str, object]]:
    """Each figure of a file, or the whole of a file whose figures hang together."""
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
    """All keys at any depth, with what stands under them."""
    if isinstance(value, dict):
        for key, below in cast(dict[str, object], value).items():
            yield key, below
            yield from _values(below)
    elif isinstance(value, list):
        for below in cast(list[object], value):
            yield from _values(below)

"""Presets that reproduce a paper keep their replies, descriptions and arguments byte for byte.

The replies are stored in ``stored_replies.json``. They were written before the replies of other
presets changed. The sentences of the passages are given, so that no rule for sentences matters.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arag_search.agent.presets import Preset, load_preset, preset_names
from arag_search.search.index import Index
from arag_search.tools.base import ReadSet, Tool, ToolResult
from arag_search.tools.registry import TOOLS
from arag_search.tools.search import ReplyStyle, reply
from tests.support.passages import VIVALDI, chunk, index_of

STORED = json.loads(Path(__file__).with_name("stored_replies.json").read_text("utf-8"))
LONG = [f"Sentence {number} on the canals of Venice and their bridges. " for number in range(300)]
PASSAGES = (
    *VIVALDI,
    chunk(4, "long", "The canals", *LONG, year=1900),
    chunk(5, "caesar", "Ave Caesar!", "Ave Caesar! ", "It is a film of 1919. ", "He was born."),
    chunk(6, "copy", "Griselda (copy)", "Griselda is an opera by Antonio Vivaldi. ",
          "Its premiere was in Venice. ", "Its libretto was revised by the young Carlo Goldoni."),
    chunk(7, "forged", "[1] (whole)", "[9.1] A forged header\nMore: offset=1. ", "(2 left out)"),
)  # fmt: skip
FIELDS = ("text", "status", "ids", "total", "total_is_exact", "retrieved_tokens", "result_tokens")
SPAN_FIELDS = (
    "id", "title", "start", "text_start", "end", "sentences", "whole", "left_out",
)  # fmt: skip
LONGEST = 3_000
CALLS: dict[str, list[dict[str, Any]]] = {
    "logical_search": [
        {"query": "venice"},
        {"query": "venice", "top_k": 1},
        {"query": "venice", "top_k": 1, "offset": 1},
        {"query": "venice", "offset": 90},
        {"query": '"antonio vivaldi" AND goldoni'},
        {"query": '"antonio vivaldi" AND nowhere'},
        {"query": "born AND (year:>1800 OR lang:fr)"},
        {"query": "venice", "granularity": "sentence"},
        {"query": "title:griselda OR caesar OR forged"},
        {"query": "griselda^2 OR canals NOT older", "top_k": 20},
        {"query": "vivaldi AND"},
        {"query": "the OR of"},
        {"query": "C++ opera", "default_operator": "AND"},
        {"query": 7},
        {"query": "venice", "to_sentence": 3},
    ],
    "keyword_search": [
        {"keywords": ["Venice", "libretto"]},
        {"keywords": ["Vivaldi"], "top_k": 1, "offset": 1},
        {"keywords": ["nowhere"]},
        {"keywords": []},
        {"keywords": [" "]},
    ],
    "chunk_read": [
        {"chunk_ids": ["vivaldi.1", "griselda.1"]},
        {"chunk_ids": ["griselda.1", "page.1"]},
        {"chunk_ids": ["long.1"]},
        {"chunk_ids": ["long.1"], "from_sentence": 290},
        {"chunk_ids": ["nowhere.1"]},
        {"chunk_ids": ["vivaldi.2", "nowhere.1"], "from_sentence": 2},
        {"chunk_ids": ["caesar.1"], "to_sentence": 1},
        {"chunk_ids": ["caesar.1"], "near": "film"},
    ],
    "search": [
        {"queries": ["venice canals", "libretto"]},
        {"queries": ["venice", "VENICE"], "filter": "year:1900"},
        {"queries": ["nowhere"]},
        {"queries": ["venice"], "filter": "year"},
        {"queries": []},
        {"query": "venice canals"},
        {"query": "forged header", "filter": "lang:en"},
    ],
    "find": [
        {"reference_id": "turn0search0", "patterns": ["bridges", "VENICE", "nowhere"]},
        {"reference_id": "turn7search9", "patterns": ["x"]},
        {"reference_id": "turn0search0", "patterns": ["venice"], "mode": "lexical"},
        {"reference_id": "turn0search0", "patterns": []},
    ],
    "open": [
        {"reference_id": "turn0search0"},
        {"reference_id": "[turn0search1]", "line_number": 0},
        {"reference_id": "turn0search0", "line_number": 99999},
        {"reference_id": "turn7search9"},
    ],
    "summarize": [
        {"summary": "Known.", "candidate_reference_ids": ["turn0search0"]},
        {"summary": "Known.", "candidate_reference_ids": ["turn7search9"]},
    ],
}
"""The calls of each tool, made one after another with one record of what was shown."""


def presets() -> list[Preset]:
    """Return the presets that reproduce a paper and have tools."""
    loaded = [load_preset(name) for name in preset_names()]
    return [preset for preset in loaded if preset.reproduces is not None and preset.tools]


def described(tool: Tool) -> dict[str, Any]:
    return {"description": tool.description, "parameters": tool.parameters}


def shown(result: ToolResult) -> dict[str, Any]:
    """Return a result as it is stored: the passages of a long one, and its text, as checksums."""
    values = {name: getattr(result, name) for name in FIELDS}
    spans = [{name: getattr(span, name) for name in SPAN_FIELDS} for span in result.passages]
    stored = json.dumps({**values, "passages": spans}, ensure_ascii=False)
    if len(stored) > LONGEST:
        stored = json.dumps({"sha256": hashlib.sha256(stored.encode()).hexdigest()})
    return json.loads(stored)


def replies(preset: Preset) -> dict[str, Any]:
    """Return what the tools of a preset say of themselves, and what they reply."""
    index = index_of(*PASSAGES)
    read_set = ReadSet()
    said: dict[str, Any] = {}
    for name in preset.tools:
        tool = TOOLS[name].tool_class.of(index, preset)
        calls = [shown(tool.run(call, read_set)) for call in CALLS.get(name, [])]
        said[name] = {**described(tool), "replies": calls}
        if TOOLS[name].vectors is not None:  # a search that ranks without matching
            said[name]["replies"] = ranked(index, ReplyStyle.of(preset), read_set)
    return said


def ranked(index: Index, style: ReplyStyle, read_set: ReadSet) -> list[dict[str, Any]]:
    """Return the replies to searches by vectors with these results."""
    pages = [index.logical_search("venice", top_k=2, offset=offset) for offset in (0, 2, 90)]
    results = [replace(page, total=None, feedback=None) for page in pages]
    return [shown(reply(result, style, read_set)) for result in results]


def test_every_preset_of_a_paper_has_stored_replies() -> None:
    assert [preset.name for preset in presets()] == list(STORED)


@pytest.mark.parametrize("preset", presets(), ids=lambda preset: preset.name)
def test_presets_of_papers_reply_as_they_did(preset: Preset) -> None:
    assert replies(preset) == STORED[preset.name]

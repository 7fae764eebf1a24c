"""The tools that a preset gives, over one index."""

from __future__ import annotations

from arag_search.agent.presets import Preset, ToolName
from arag_search.errors import NotServedError, VectorsNotFoundError
from arag_search.search.index import Index
from arag_search.tools.base import Tool
from arag_search.tools.chunk_read import ChunkRead
from arag_search.tools.hybrid_search import HybridSearch
from arag_search.tools.keyword_search import KeywordSearch
from arag_search.tools.logical_search import LogicalSearch
from arag_search.tools.naive_embedding_search import NaiveEmbeddingSearch
from arag_search.tools.search import ReplyStyle
from arag_search.tools.semantic_search import SemanticSearch
from arag_search.vectors.base import EncoderIdentity

NEEDS: dict[ToolName, str] = {"keyword_search": "exact"}
"""Parts of an index that a build may leave out, by the tool that cannot do without."""


def tools_of(preset: Preset, index: Index) -> dict[str, Tool]:
    """The tools by name, in the order of the preset.

    Raises NotServedError naming all tools that the index was built without, or has no vectors for,
    and what opening the vectors raises.
    """
    missing: list[ToolName] = [
        name for name in preset.tools if NEEDS.get(name) in index.manifest.without
    ]
    if missing:
        parts = ",".join(dict.fromkeys(NEEDS[name] for name in missing))
        raise NotServedError(
            f"The index does not serve {', '.join(missing)}, which preset {preset.name} needs.",
            where=index.location,
            do=f"Build it again without --without {parts}, or take another preset.",
        )
    _check_vectors(preset, index)
    return {name: _tool(name, preset, index) for name in preset.tools}


def encoder_of(preset: Preset, index: Index) -> EncoderIdentity | None:
    """What encodes the queries of the preset; None where it needs no vectors."""
    return index.open_vectors().encoder.identity if preset.needed_vectors else None


def given_by(preset: Preset, index: Index) -> NaiveEmbeddingSearch | None:
    """What finds the passages that stand with a question; None where there are none."""
    if not preset.given_passages:
        return None
    return NaiveEmbeddingSearch(index, style=_style(preset))


def _check_vectors(preset: Preset, index: Index) -> None:
    """Raise NotServedError for vectors that the preset needs and the index has not."""
    needed = preset.needed_vectors
    if not needed:
        return
    try:
        units = index.open_vectors().vectors.units
    except (NotServedError, VectorsNotFoundError) as error:
        error.what = f"Preset {preset.name} needs vectors ({', '.join(needed)}). {error.what}"
        raise
    missing = [f"{name} ({unit} vectors)" for name, unit in needed.items() if unit not in units]
    if missing:
        raise NotServedError(
            f"The index does not serve {', '.join(missing)}, which preset {preset.name} needs.",
            where=index.location,
            allowed=f"vectors by {', '.join(units)}",
            do="Make the others with arag-search embed, or take another preset.",
        )


def _style(preset: Preset) -> ReplyStyle:
    return ReplyStyle(
        full_text=preset.full_text,
        suppress_shown=preset.suppress_shown,
        chunk_read="chunk_read" in preset.tools,
        max_result_tokens=preset.max_result_tokens,
    )


def _tool(name: ToolName, preset: Preset, index: Index) -> Tool:
    style = _style(preset)
    match name:
        case "logical_search":
            return LogicalSearch(
                index,
                description=preset.tool_description,
                operators=preset.operators,
                style=style,
            )
        case "keyword_search":
            return KeywordSearch(index, matching=preset.matching, style=style)
        case "semantic_search":
            return SemanticSearch(index, style=style)
        case "hybrid_search":
            return HybridSearch(index, vectors=preset.vectors, style=style)
        case "naive_embedding_search":
            return NaiveEmbeddingSearch(index, style=style)
        case "chunk_read":
            return ChunkRead(index, max_result_tokens=preset.max_result_tokens)

"""The tools of a preset, over one index."""

from __future__ import annotations

from arag_search.agent.presets import Preset
from arag_search.errors import ConfigError, NotServedError, VectorsNotFoundError
from arag_search.search.index import Index
from arag_search.tools.base import Tool
from arag_search.tools.registry import CONNECTOR_TOOLS, TOOLS
from arag_search.vectors.base import EncoderIdentity


def tools_of(preset: Preset, index: Index) -> dict[str, Tool]:
    """Return the tools by name, in the order of the preset. Tools for metadata are left out over an
    index without metadata.

    Raises NotServedError, naming all tools that the index was built without or has no vectors
    for, and the errors of opening the vectors.
    """
    without = index.manifest.without
    missing = {name: part for name in preset.tools if (part := TOOLS[name].part) in without}
    if missing:
        parts = ",".join(dict.fromkeys(filter(None, missing.values())))
        raise NotServedError(
            f"The index does not serve {', '.join(missing)}, which preset {preset.name} needs.",
            where=index.location,
            do=f"Build it again without --without {parts}, or use another preset.",
        )
    _check_vectors(preset, index)
    names = [
        name for name in preset.tools if index.manifest.metadata or not TOOLS[name].of_metadata
    ]
    return {name: TOOLS[name].tool_class.of(index, preset) for name in names}


def check_for_agent(preset: Preset) -> None:
    """Raise ConfigError for a preset whose tools are only for clients of the MCP server."""
    tools = [name for name in preset.tools if name in CONNECTOR_TOOLS]
    if tools:
        raise ConfigError(
            f"Preset {preset.name} has only tools for connectors: {', '.join(tools)}.",
            allowed="arag-search mcp with this preset, or another preset",
            do="See them with: arag-search presets",
        )


def encoder_of(preset: Preset, index: Index) -> EncoderIdentity | None:
    """Return the encoder for the preset's queries; None if the preset needs no vectors."""
    return index.open_vectors().encoder.identity if preset.needed_vectors else None


def _check_vectors(preset: Preset, index: Index) -> None:
    """Raise NotServedError if the index lacks vectors that the preset needs."""
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
            do="Make the others with arag-search embed, or use another preset.",
        )

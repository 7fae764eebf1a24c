"""arag-search presets: list the presets, or explain one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, cast

import typer

from arag_search.agent.presets import (
    DEFAULT_PRESET,
    Preset,
    allowed_values,
    load_preset,
    preset_folder,
    preset_names,
    preset_yaml,
)
from arag_search.agent.toolbox import tools_of
from arag_search.cli.options.index import ScopeFilter
from arag_search.cli.options.parser import suggest_presets
from arag_search.cli.output.printing import print_bytes, print_json, print_text
from arag_search.errors import ArgumentError
from arag_search.search.index import open_index
from arag_search.tools.base import Tool


def presets_command(
    preset: Annotated[
        str | None,
        typer.Argument(
            help="The preset to explain: a name, or the path of a .yaml file.",
            metavar="PRESET",
            autocompletion=suggest_presets,
            show_default=False,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    yaml: Annotated[
        bool, typer.Option("--yaml", help="Print one preset as a file with every key.")
    ] = False,
    index: Annotated[
        str | None,
        typer.Option(
            help="Also show the tools as a model sees them over this index.",
            metavar="INDEX",
            show_default=False,
        ),
    ] = None,
    filter: ScopeFilter = None,
) -> int:
    """List the presets, or explain one with its prompt.

    A preset says which tools, which prompt and which limits a model gets. To make one of your own,
    write a file with "extends: logical_read" and the keys that you change, and give its path where
    a preset is expected.

    Examples:

    \b
      arag-search presets
      arag-search presets logical_read
      arag-search presets logical_read --index my-index
      arag-search presets my-preset.yaml
      arag-search presets logical_read --yaml > all-keys.yaml
    """
    if yaml and (json or preset is None):
        raise ArgumentError(
            "--yaml and --json are both given." if json else "--yaml is given without a preset.",
            allowed="arag-search presets NAME --yaml",
        )

    if index is not None and (yaml or preset is None):
        raise ArgumentError(
            "--index is given without a preset to explain.",
            allowed="arag-search presets NAME --index INDEX",
        )
    if filter is not None and index is None:
        raise ArgumentError("--filter is given without --index.", do="Name the index too.")

    if preset is not None:
        chosen = load_preset(preset)
        tools = {} if index is None else _tools(chosen, index, filter)
        if json:
            print_json({**_preset_json(chosen), **_tools_json(tools)}, pretty=True)
        elif yaml:
            print_bytes(preset_yaml(chosen).encode())  # a file, in UTF-8 on any terminal
        else:
            print_text(_explained(chosen, tools))
        return 0
    presets = [load_preset(name) for name in preset_names()]
    if json:
        print_json([_preset_json(entry) for entry in presets], pretty=True)
        return 0
    width = max(len(entry.name) for entry in presets)
    for entry in presets:
        tools = ", ".join(entry.tools)
        bounds = f"{tools}; {entry.max_loops} turns" if tools else "no tools"
        default = " The default of ask, run and mcp." if entry.name == DEFAULT_PRESET else ""
        print_text(f"{entry.name.ljust(width)}  {entry.description}{default}")
        needs = "; needs vectors" if entry.needed_vectors else ""
        print_text(f"{' ' * width}  {bounds}, prompt {entry.prompt}{needs}")
    print_text(f"\nFiles: {preset_folder()}\nExplain one with: arag-search presets NAME")
    return 0


def _preset_json(preset: Preset) -> dict[str, object]:
    """Return a preset with its fingerprint and the first message that it yields."""
    return {
        **preset.model_dump(mode="json"),
        "fingerprint": preset.fingerprint,
        "system_prompt": preset.system_prompt,
    }


def _tools(preset: Preset, location: str, filter: str | None) -> dict[str, Tool]:
    """Return the tools of a preset over an index, and close the index again."""
    with open_index(location, filter=filter) as index:
        return tools_of(preset, index)


def _tools_json(tools: Mapping[str, Tool]) -> dict[str, object]:
    """Return the tools as a model gets them, if there are any."""
    schemas = [tool.openai_schema() for tool in tools.values()]
    return {"tool_schemas": schemas} if schemas else {}


def _explained(preset: Preset, tools: Mapping[str, Tool]) -> str:
    """Explain every key with its value and meaning, then show the prompt and the tools."""
    lines = [f"{preset.name}: {preset.description}", f"fingerprint {preset.fingerprint}", ""]
    for key, field in Preset.model_fields.items():
        if key in ("name", "description"):
            continue
        lines.append(f"{key}: {_written(getattr(preset, key))}")
        lines.append(f"    {field.description} ({allowed_values(key)})")
    lines += ["", "The first message of every question:", "", preset.system_prompt]
    for name, tool in tools.items():
        arguments = ", ".join(tool.parameters["properties"])
        lines += ["", f"The tool {name}({arguments}):", "", tool.description]
    return "\n".join(lines)


def _written(value: object) -> str:
    """Format a value as in a file."""
    if isinstance(value, tuple):
        return f"[{', '.join(str(entry) for entry in cast(tuple[object, ...], value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)

"""arag-search presets: list the presets, or explain one."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from arag_search.agent.prompts import preset_fingerprint, system_prompt
from arag_search.cli.options.parser import Typed, suggest_presets, with_groups
from arag_search.cli.output.printing import job_progress, print_bytes, print_text
from arag_search.tools.preset import Preset
from arag_search.tools.preset_files import (
    DEFAULT_PRESET,
    allowed_values,
    load_preset,
    preset_folder,
    preset_names,
    preset_yaml,
)
from arag_search.tools.toolbox import tools_of
from index_jobs.updates.opening import open_index


@with_groups
def presets_command(
    preset: Annotated[
        str | None,
        typer.Argument(
            help="The preset to explain: a name, or the path of a .yaml file.",
            metavar="PRESET",
            autocompletion=suggest_presets,
        ),
    ] = None,
    yaml: Annotated[
        bool, typer.Option("--yaml", help="Print one preset as a file with every key.")
    ] = False,
    index: Annotated[
        str | None,
        typer.Option(
            help="Also show the tools as a model sees them over this index.", metavar="INDEX"
        ),
    ] = None,
    *,
    typed: Typed,
) -> int:
    """List the presets, or explain one with its prompt.

    A preset says which tools, which prompt and which limits a model gets. For a preset of your own,
    write a file with "extends: logical_read" and the keys that you change. Then give its path in
    place of a name.

    Examples:

    \b
      arag-search presets
      arag-search presets logical_read
      arag-search presets logical_read --index my-index
      arag-search presets my-preset.yaml
      arag-search presets logical_read --yaml > all-keys.yaml
    """
    if preset is None:
        typed.check_effect("a preset", "yaml", "index")
    if preset is not None:
        chosen = load_preset(preset)
        if yaml:
            print_bytes(preset_yaml(chosen).encode())  # a file, in UTF-8 on any terminal
        else:
            print_text(_explained(chosen, index))
        return 0
    presets = [load_preset(name) for name in preset_names()]
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


def _explained(preset: Preset, location: str | None) -> str:
    """Explain every key with its value and meaning, then show the prompt, and the tools over an
    index."""
    lines = [
        f"{preset.name}: {preset.description}",
        f"fingerprint {preset_fingerprint(preset)}",
        "",
    ]
    for key, field in Preset.model_fields.items():
        if key in ("name", "description"):
            continue
        lines.append(f"{key}: {_written(getattr(preset, key))}")
        lines.append(f"    {field.description} ({allowed_values(key)})")
    lines += ["", "The first message of every question:", "", system_prompt(preset)]
    if location is not None:
        with open_index(location, progress=job_progress()) as index:
            for name, tool in tools_of(preset, index).items():
                arguments = ", ".join(tool.parameters["properties"])
                lines += ["", f"The tool {name}({arguments}):", "", tool.description]
    return "\n".join(lines)


def _written(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(str(entry) for entry in cast(tuple[object, ...], value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)

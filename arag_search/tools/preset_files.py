"""Files of presets: which tools, which prompt and which bounds, read from YAML and checked.

A file has every key that has no default, or names with ``extends`` the preset from which it takes
the keys that it leaves out. Models and endpoints are not part of a preset.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import orjson
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from arag_search.errors import ConfigError
from arag_search.system.yaml_file import numbered, read_mapping
from arag_search.tools.preset import SYSTEM_PROMPTS, Preset
from arag_search.tools.tool import allowed_text

DEFAULT_PRESET = "logical_read"
EXTENDS = "extends"
"""The key of a file that names the preset to take the other keys from; a Preset has no such key."""
_ENDINGS = (".yaml", ".yml")
_COMPARE = f"Compare with a complete one: arag-search presets {DEFAULT_PRESET} --yaml"
_EXTEND = f'Write "{EXTENDS}: {DEFAULT_PRESET}" to take the missing keys from there.'
_ABSENT = object()


def preset_folder() -> Path:
    """Return the folder of the presets of this release, in the wheel or in the checkout."""
    packaged = Path(__file__).parents[1] / "configs"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "configs"


def preset_names() -> list[str]:
    """Return the names of the presets of this release, sorted."""
    return sorted(path.stem for path in preset_folder().glob("*.yaml"))


def load_preset(name_or_path: str | Path) -> Preset:
    """Return a preset of this release by its name, or one of the user's by its path.

    A file with the key ``extends`` takes the keys that it leaves out from the preset named there:
    one of this release, or a file. The path of a file is relative to the file that names it. The
    preset is then named after its file, unless it has a name of its own.

    Raises ConfigError naming every key that is unknown, missing or wrong, or the files that extend
    each other in a cycle.
    """
    path = _preset_file(str(name_or_path))
    return _of_release(path) if path.parent == preset_folder() else _loaded(path)


def _loaded(path: Path) -> Preset:
    (path, values), *extensions = reversed(_layers(path))
    preset = _check_values(values, path)
    for path, values in extensions:
        preset = _check_values({**preset.model_dump(), "name": path.stem, **values}, path)
    return preset


_of_release = functools.cache(_loaded)
"""The presets of this release, each read once: a web server has a toolbox for each request."""


def changed_preset(preset: Preset, changes: Mapping[str, object], where: str) -> Preset:
    """Return a preset with other values for some keys. ``where`` is the name of the changes in
    errors.

    Raises ConfigError naming every key that is unknown or wrong.
    """
    return _check_values({**preset.model_dump(), **changes}, Path(where))


def preset_yaml(preset: Preset) -> str:
    """Return a preset as the text of a file with every key, from which the same preset is
    loaded."""
    import yaml

    return yaml.safe_dump(
        preset.model_dump(mode="json"),
        sort_keys=False,
        default_flow_style=None,  # lists in one line
        allow_unicode=True,
        width=float("inf"),
    )


def _preset_file(given: str, beside: Path | None = None) -> Path:
    """Return the file of a preset, given as a name of this release or as a path. The path is
    relative to the folder of the file ``beside``, if there is one. Raises ConfigError for another
    name."""
    names = preset_names()
    if given in names:
        return preset_folder() / f"{given}.yaml"
    if not given.endswith(_ENDINGS):
        raise ConfigError(
            f'There is no preset "{given}".',
            where="" if beside is None else f'{beside}, key "{EXTENDS}"',
            allowed=f"{', '.join(names)}, or the path of a .yaml file",
            do="See them with: arag-search presets",
        )
    return Path(given) if beside is None else beside.parent / given


def _layers(path: Path) -> list[tuple[Path, dict[str, object]]]:
    """Return the keys of a file, then the keys of the file that it extends, and so on.

    Raises ConfigError for a cycle, and for a file that is not a preset or cannot be read.
    """
    layers: list[tuple[Path, dict[str, object]]] = []
    seen: dict[Path, Path] = {}
    while True:
        values = _file_values(path)
        seen[path.resolve()] = path
        extends = values.pop(EXTENDS, _ABSENT)
        layers.append((path, values))
        if extends is _ABSENT:
            return layers
        if not isinstance(extends, str) or not extends.strip():
            raise ConfigError(
                numbered("preset", [_wrong_value(EXTENDS, extends)]), where=str(path), do=_COMPARE
            )
        path = _preset_file(extends, beside=path)
        if path.resolve() in seen:
            ring = [*list(seen.values())[list(seen).index(path.resolve()) :], path]
            raise ConfigError(
                "The presets extend each other in a cycle.",
                where=" -> ".join(map(str, ring)),
                allowed="a chain that ends at a preset with every key",
                do=f'Take the key "{EXTENDS}" out of one of them.',
            )


def _file_values(path: Path) -> dict[str, object]:
    values = read_mapping(path, "preset", holds="keys", allowed="lines of the form key: value")
    return {str(key): value for key, value in values.items()}


def _check_values(values: Mapping[str, object], path: Path) -> Preset:
    """Return the preset in the values. Raises ConfigError for all problems at once: unknown keys,
    then wrong values, then missing keys."""
    problems = [_unknown_key(key, values[key]) for key in values if key not in Preset.model_fields]
    given = {key: value for key, value in values.items() if key in Preset.model_fields}
    prompt = given.get("prompt")
    if isinstance(prompt, str):
        beside = path.absolute().parent / prompt
        if prompt.endswith(".md") and beside.is_file():
            _check_prompt(beside, path)
            given["prompt"] = str(beside)
        elif prompt not in SYSTEM_PROMPTS:
            problems.append(_wrong_value("prompt", prompt))
    missing: list[str] = []
    try:
        preset = Preset.model_validate(given)
    except ValidationError as error:
        details = error.errors(include_url=False)
        missing = [str(detail["loc"][0]) for detail in details if detail["type"] == "missing"]
        problems += _wrong_values(details)
    else:
        if len(set(preset.tools)) < len(preset.tools):
            problems.append(_wrong_value("tools", list(preset.tools)))
        if preset.tools and preset.memory_tokens:
            problems.append(
                f'key "memory_tokens", {preset.memory_tokens}, beside tools. Allowed: tools: [], '
                "or memory_tokens: 0."
            )
        if not problems:
            return preset
    if missing:
        problems.append(_missing_keys(missing))
    raise ConfigError(
        numbered("preset", problems), where=str(path), do=_EXTEND if missing else _COMPARE
    )


def _check_prompt(file: Path, preset: Path) -> None:
    try:
        is_empty = not file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"The prompt cannot be read ({why}).", where=f"{file}, named in {preset}"
        ) from error
    if is_empty:
        raise ConfigError("The prompt is empty.", where=f"{file}, named in {preset}")


def _wrong_values(details: Sequence[ErrorDetails]) -> list[str]:
    """Return one problem per key, in the order of the keys; missing keys are left out."""
    problems: dict[str, str] = {}
    for detail in details:
        key = str(detail["loc"][0])
        if detail["type"] != "missing":
            problems.setdefault(key, _wrong_value(key, cast(object, detail["input"])))
    return list(problems.values())


def _missing_keys(keys: list[str]) -> str:
    if len(keys) == 1:
        return f'key "{keys[0]}" is missing. Allowed: {allowed_values(keys[0])}.'
    *others, last = (f'"{key}"' for key in keys)
    return f"keys {', '.join(others)} and {last} are missing."


def _unknown_key(key: str, value: object) -> str:
    keys = [*Preset.model_fields, EXTENDS]
    nearest = difflib.get_close_matches(key, keys, n=1, cutoff=0.5)
    hint = f'Nearest: "{nearest[0]}".' if nearest else f"Keys: {', '.join(keys)}."
    return f'key "{key}", {_preview(value)}: there is no such key. {hint}'


def _wrong_value(key: str, value: object) -> str:
    return f'key "{key}", {_preview(value)}. Allowed: {allowed_values(key)}.'


def _preview(value: object) -> str:
    try:
        text = orjson.dumps(value, default=str).decode("utf-8")
    except TypeError:  # YAML has more than JSON: keys that are not text, cycles
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def allowed_values(key: str) -> str:
    """Return what a key allows, in words."""
    if key == EXTENDS:
        return "the name of a preset, or the path of a .yaml file"
    if key == "prompt":
        return f"{', '.join(SYSTEM_PROMPTS)}, or the name of an .md file beside the preset"
    schema: dict[str, Any] = Preset.model_json_schema()["properties"][key]
    if schema.get("type") == "array":
        return f"a list of any of {', '.join(schema['items']['enum'])}, each once"
    return f"{allowed_text(schema)}{' that is not empty' if schema.get('minLength') else ''}"

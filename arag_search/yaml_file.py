"""A YAML file of ours, read strictly: a mapping, each key once."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from arag_search.errors import ConfigError


def read_mapping(file: Path, what: str, *, holds: str, allowed: str) -> dict[object, object]:
    """The keys and values in a file.

    ``what`` is what the file is called in errors and ``holds`` what it should hold. Raises
    ConfigError where it cannot be read, is not YAML, holds nothing of the kind, or gives a key
    twice (``key.field`` for those a level below), of which loading would keep only one.
    """
    import yaml

    where = str(file)
    try:
        text = file.read_text("utf-8")
        content: object = yaml.safe_load(text)
        twice = _given_twice(text)
    except OSError as error:
        raise ConfigError(f"The {what} cannot be read ({error.strerror}).", where=where) from error
    except RecursionError:
        raise ConfigError(
            f"The {what} is not YAML: nested too deeply.", where=where, allowed=allowed
        ) from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: no UTF-8, or the 45th of a month
        why = " ".join(str(error).split())
        raise ConfigError(
            f"The {what} is not YAML: {why}.", where=where, allowed=allowed
        ) from error
    if not isinstance(content, dict) or not content:
        raise ConfigError(f"The {what} holds no {holds}.", where=where, allowed=allowed)
    if twice:
        raise ConfigError(
            f"The {what} gives {', '.join(twice)} twice.", where=where, allowed="each key once"
        )
    return cast(dict[object, object], content)


def numbered(what: str, problems: list[str]) -> str:
    """Several problems of one file as one message."""
    many = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    lines = [f"{number}. {problem}" for number, problem in enumerate(problems, start=1)]
    return "\n".join([f"The {what} has {many}.", *lines])


def _given_twice(text: str) -> list[str]:
    """Keys of two levels that stand more than once in the text, sorted."""
    import yaml

    loader: Any = yaml.SafeLoader(text)
    root = loader.get_single_node()
    keys: list[str] = []
    for key, value in root.value if isinstance(root, yaml.MappingNode) else ():
        keys.append(str(key.value))
        if isinstance(value, yaml.MappingNode):
            keys += [f"{key.value}.{field.value}" for field, _ in value.value]
    return sorted({key for key in keys if keys.count(key) > 1})

"""Strict reading of YAML: of our files (one mapping, no duplicate keys), and of what others wrote.

Aliases are rejected because a few lines of them can expand to more than a machine can hold.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, cast

from arag_search.errors import ConfigError

_MAX_DEPTH = 100
"""libyaml composes nodes recursively, and very deep nesting would overflow the stack."""


def read_mapping(file: Path, what: str, *, holds: str, allowed: str) -> dict[object, object]:
    """Read the keys and values of a file.

    ``what`` is the file's name in errors, and ``holds`` what it should hold. Raises ConfigError if
    the file cannot be read, is not YAML, contains an alias, or is not a non-empty mapping. A
    duplicate key, of which loading would keep only one, raises it too; further down it is named
    ``key.field``.
    """
    import yaml

    where = str(file)
    try:
        root = composed(file.read_text("utf-8"), what, where)
        content: object = None if root is None else _loader()("").construct_document(root)
    except ConfigError:
        raise
    except OSError as error:
        raise ConfigError(f"The {what} cannot be read ({error.strerror}).", where=where) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # ValueError: not UTF-8, or the 45th of a month; OverflowError: a number like 59:59:...:59
        why = " ".join(str(error).split())
        raise ConfigError(
            f"The {what} is not YAML: {why}.", where=where, allowed=allowed
        ) from error
    if not isinstance(content, dict) or not content:
        raise ConfigError(f"The {what} holds no {holds}.", where=where, allowed=allowed)
    duplicates = sorted(key for key, count in Counter(_keys(root)).items() if count > 1)
    if duplicates:
        raise ConfigError(
            f"The {what} gives {', '.join(duplicates)} twice.", where=where, allowed="each key once"
        )
    return cast(dict[object, object], content)


def composed(text: str, what: str, where: str) -> Any:
    """Return the root node of a text of YAML, None if it is empty.

    Raises ConfigError for an alias and for deep nesting, yaml.YAMLError for what is not YAML.
    """
    import yaml

    depth = 0
    for event in cast(Any, yaml).parse(text, Loader=_loader()):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise ConfigError(
                f"The {what} is nested too deeply.", where=where, allowed=f"{_MAX_DEPTH} levels"
            )
        if isinstance(event, yaml.AliasEvent):
            raise ConfigError(
                f"The {what} has an alias, *{event.anchor}, in line {event.start_mark.line + 1}.",
                where=where,
                allowed="every value written out where it belongs",
                do="Replace the alias by what it stands for.",
            )
    return cast(Any, yaml).compose(text, Loader=_loader())


def _loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def numbered(what: str, problems: list[str]) -> str:
    """Join the problems of a file into one message with a numbered list."""
    many = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    lines = [f"{number}. {problem}" for number, problem in enumerate(problems, start=1)]
    return "\n".join([f"The {what} has {many}.", *lines])


def _keys(root: Any, path: str = "") -> list[str]:
    import yaml

    keys: list[str] = []
    for key, value in root.value:
        keys.append(f"{path}{key.value}")
        if isinstance(value, yaml.MappingNode):
            keys += _keys(value, f"{keys[-1]}.")
    return keys

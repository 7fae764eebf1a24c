"""Strict reading of our YAML files: one mapping, no duplicate keys, no aliases.

Aliases are rejected because a few lines of them can expand to more than a machine can hold.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from arag_search.errors import ConfigError

_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_MAX_NUMBER_CHARACTERS = 1_000
_MAX_DEPTH = 100
"""libyaml composes nodes recursively, and very deep nesting would overflow the stack."""


def read_mapping(file: Path, what: str, *, holds: str, allowed: str) -> dict[object, object]:
    """Read the keys and values of a file.

    ``what`` is the file's name in errors, and ``holds`` what it should hold. Raises ConfigError if
    the file cannot be read, is not YAML, contains an alias, is not a non-empty mapping, or has a
    duplicate key (named ``key.field`` one level down), of which loading would keep only one.
    """
    import yaml

    where = str(file)
    try:
        text = file.read_text("utf-8")
        _check_events(text)
        loader = _loader_class()(text)
        root = loader.get_single_node()
        content: object = None if root is None else loader.construct_document(root)
    except _AliasError as error:
        raise ConfigError(
            f"The {what} has an alias, *{error.name}, in line {error.line}.",
            where=where,
            allowed="every value written out where it belongs",
            do="Replace the alias by what it stands for.",
        ) from None
    except OSError as error:
        raise ConfigError(f"The {what} cannot be read ({error.strerror}).", where=where) from error
    except _DepthError:
        raise ConfigError(
            f"The {what} is nested too deeply.", where=where, allowed=f"{_MAX_DEPTH} levels"
        ) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # ValueError: not UTF-8, or the 45th of a month; OverflowError: a number like 59:59:...:59
        why = " ".join(str(error).split())
        raise ConfigError(
            f"The {what} is not YAML: {why}.", where=where, allowed=allowed
        ) from error
    if not isinstance(content, dict) or not content:
        raise ConfigError(f"The {what} holds no {holds}.", where=where, allowed=allowed)
    duplicates = repeated(_keys(root))
    if duplicates:
        raise ConfigError(
            f"The {what} gives {', '.join(duplicates)} twice.", where=where, allowed="each key once"
        )
    return cast(dict[object, object], content)


def numbered(what: str, problems: list[str]) -> str:
    """Join the problems of a file into one message with a numbered list."""
    many = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    lines = [f"{number}. {problem}" for number, problem in enumerate(problems, start=1)]
    return "\n".join([f"The {what} has {many}.", *lines])


def repeated(keys: Iterable[str]) -> list[str]:
    """Return the keys that occur more than once, sorted."""
    return sorted(key for key, count in Counter(keys).items() if count > 1)


def _keys(root: Any) -> list[str]:
    """Return the keys of the top two levels of a mapping node, including duplicates."""
    import yaml

    keys: list[str] = []
    for key, value in root.value:
        keys.append(str(key.value))
        if isinstance(value, yaml.MappingNode):
            keys += [f"{key.value}.{field.value}" for field, _ in value.value]
    return keys


class _AliasError(Exception):
    """An alias in a file, with its name and line."""

    def __init__(self, name: str, line: int) -> None:
        super().__init__(name)
        self.name = name
        self.line = line


class _DepthError(Exception):
    """Values in a file that are nested too deeply."""


def _check_events(text: str) -> None:
    """Raise _AliasError for an alias, _DepthError for deep nesting, YAMLError for invalid YAML."""
    import yaml

    depth = 0
    for event in cast(Any, yaml).parse(text, Loader=_loader_class()):
        if isinstance(event, yaml.AliasEvent):
            raise _AliasError(str(event.anchor), event.start_mark.line + 1)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MAX_DEPTH:
            raise _DepthError


@functools.cache
def _loader_class() -> Any:
    """Return PyYAML's safe loader, in C if there is one, which also rejects very long numbers."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):
        """A safe loader that rejects very long numbers."""

        def construct_scalar(self, node: Any) -> Any:
            if node.tag in _NUMBERS and len(node.value) > _MAX_NUMBER_CHARACTERS:
                problem = f"a number has {len(node.value):,} characters"
                raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
            return base.construct_scalar(self, node)

    return Loader

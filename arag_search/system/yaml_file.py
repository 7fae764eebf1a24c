"""A YAML file of ours, read strictly: a mapping, each key once, every value written out.

There are no aliases: a few lines of them stand for more than a machine can hold.
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


def read_mapping(file: Path, what: str, *, holds: str, allowed: str) -> dict[object, object]:
    """The keys and values in a file.

    ``what`` is what the file is called in errors and ``holds`` what it should hold. Raises
    ConfigError where it cannot be read, is not YAML, holds an alias or nothing of the kind, or
    gives a key twice (``key.field`` for those a level below), of which loading would keep only one.
    """
    import yaml

    where = str(file)
    try:
        loader = _loader_class()(file.read_text("utf-8"))
        root = loader.get_single_node()
        content: object = None if root is None else loader.construct_document(root)
    except _AliasError as error:
        raise ConfigError(
            f"The {what} has an alias, *{error.name}, in line {error.line}.",
            where=where,
            allowed="every value written out where it belongs",
            do="Write there what the alias stands for.",
        ) from None
    except OSError as error:
        raise ConfigError(f"The {what} cannot be read ({error.strerror}).", where=where) from error
    except RecursionError:
        raise ConfigError(
            f"The {what} is not YAML: nested too deeply.", where=where, allowed=allowed
        ) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # ValueError: no UTF-8, or the 45th of a month; OverflowError: a number such as 59:59:...:59
        why = " ".join(str(error).split())
        raise ConfigError(
            f"The {what} is not YAML: {why}.", where=where, allowed=allowed
        ) from error
    if not isinstance(content, dict) or not content:
        raise ConfigError(f"The {what} holds no {holds}.", where=where, allowed=allowed)
    twice = repeated(_keys(root))
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


def repeated(keys: Iterable[str]) -> list[str]:
    """Return those that are there more than once, sorted."""
    return sorted(key for key, count in Counter(keys).items() if count > 1)


def _keys(root: Any) -> list[str]:
    """Return the keys of two levels of a mapping's node, as often as they stand there."""
    import yaml

    keys: list[str] = []
    for key, value in root.value:
        keys.append(str(key.value))
        if isinstance(value, yaml.MappingNode):
            keys += [f"{key.value}.{field.value}" for field, _ in value.value]
    return keys


class _AliasError(Exception):
    """An alias in a file: its name and its line."""

    def __init__(self, name: str, line: int) -> None:
        super().__init__(name)
        self.name = name
        self.line = line


@functools.cache
def _loader_class() -> Any:
    """Return PyYAML's safe loader without aliases and without endless numbers."""
    import yaml

    class Loader(yaml.SafeLoader):
        """What one file is read with."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            event = cast(Any, self).peek_event()
            if isinstance(event, yaml.AliasEvent):
                raise _AliasError(str(event.anchor), event.start_mark.line + 1)
            return super().compose_node(parent, index)

        def construct_scalar(self, node: Any) -> Any:
            if node.tag in _NUMBERS and len(node.value) > _MAX_NUMBER_CHARACTERS:
                problem = f"a number has {len(node.value):,} characters"
                raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
            return super().construct_scalar(node)

    return Loader

"""Front matter: the keys and values above a text of Markdown, in YAML between lines ``---``, or in
TOML between lines ``+++``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

import yaml

from arag_search.errors import ConfigError
from arag_search.system.yaml_file import composed

MAX_CHARACTERS = 1 << 16
MAX_VALUES = 1_000
"""The most characters and values of front matter; what has more stays text."""

_MAX_DOTS = 1_000

_OPENING = re.compile(r"(---|\+\+\+)[ \t]*\n(?![ \t]*\n)")
_CLOSING = {
    "---": re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE),
    "+++": re.compile(r"^\+\+\+[ \t]*(?:\n|\Z)", re.MULTILINE),
}
_FIRST_KEY = re.compile(r"(?:#.*\n|[ \t]*\n)*(?:\[|[^\s#>*+-][^\n:=]*[:=])")
_MAX_TITLE_CHARACTERS = 300
_LISTS = frozenset(("tags", "tag", "keywords", "categories"))
"""The keys whose value may be one text with commas, or with words that begin with ``#``."""

_LINK = re.compile(r"\[\[([^][|]+)(?:\|[^][]*)?\]\]")
_TRUTH = frozenset(("True", "TRUE", "False", "FALSE"))


class FrontMatter(NamedTuple):
    """The front matter of a text.

    ``title`` is empty if there is none. ``values`` has the other keys, each with its texts, of
    which none is empty; a key within another is joined to it with a dot. ``length`` counts the
    characters up to the text below, and ``lines`` its lines. ``problem`` says why the
    front matter stays text, if it does.
    """

    title: str = ""
    values: Mapping[str, tuple[str, ...]] = {}
    length: int = 0
    lines: int = 0
    problem: str = ""


NO_FRONT_MATTER = FrontMatter()


def front_matter(text: str) -> FrontMatter:
    """Return the front matter of a text whose lines end with a line feed.

    Two lines ``---`` around prose, or before an empty line, are no front matter but rules.
    """
    opening = _OPENING.match(text)
    closing = opening and _CLOSING[opening[1]].search(text, opening.end())
    if not opening or not closing:
        return NO_FRONT_MATTER
    matter = text[opening.end() : closing.start()]
    if matter.strip() and not _FIRST_KEY.match(matter):
        return NO_FRONT_MATTER
    lines = text.count("\n", 0, closing.start()) + 1
    front = FrontMatter(length=closing.end(), lines=lines)
    is_yaml = opening[1] == "---"
    if len(matter) > MAX_CHARACTERS:
        return front._replace(problem=f"longer than {MAX_CHARACTERS:,} characters")
    values: dict[str, list[str]] = {}
    try:
        loaded = composed(matter, "front matter", "") if is_yaml else _toml(matter)
        if loaded is not None and not isinstance(loaded, dict | yaml.MappingNode):
            return NO_FRONT_MATTER
        for key, value in _pairs(loaded, ""):
            values.setdefault(key, []).extend(_texts(key, value))
    except (ConfigError, ValueError, RecursionError, yaml.YAMLError):
        return front._replace(problem="that is no YAML" if is_yaml else "that is no TOML")
    if sum(map(len, values.values())) > MAX_VALUES:
        return front._replace(problem=f"with more than {MAX_VALUES:,} values")
    title = next((key for key in values if key.lower() == "title"), "")
    name = ", ".join(values.get(title, ()))
    if 0 < len(name) <= _MAX_TITLE_CHARACTERS:
        del values[title]
    else:
        name = ""
    kept = {key: tuple(dict.fromkeys(texts)) for key, texts in values.items() if texts}
    return front._replace(title=name, values=kept)


def _toml(matter: str) -> dict[str, Any]:
    if any(line.count(".") > _MAX_DOTS for line in matter.splitlines()):
        raise ValueError("a key of very many parts, whose reading would take minutes")
    return tomllib.loads(matter, parse_float=str)


def _pairs(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """Yield the texts in a value, of TOML or a node of YAML, with their keys. Raises ValueError for
    a key that is no text."""
    inner: Any = value.value if isinstance(value, yaml.Node) else value
    if isinstance(value, dict | yaml.MappingNode):
        below: Any
        pairs: Any = cast("dict[str, Any]", inner).items() if isinstance(inner, dict) else inner
        for name, below in pairs:
            if isinstance(name, yaml.CollectionNode):
                raise ValueError("a key that is no text")
            own = str(getattr(name, "value", name))
            yield from _pairs(below, f"{key}.{own}" if key else own)
    elif isinstance(inner, list):
        for item in cast("list[Any]", inner):
            yield from _pairs(item, key)
    elif inner is not None and getattr(value, "tag", "") != "tag:yaml.org,2002:null":
        text = inner.isoformat() if hasattr(inner, "isoformat") else str(inner)
        yield key, text.lower() if text in _TRUTH else text


def _texts(key: str, value: str) -> Iterator[str]:
    """Yield the texts of a value: the tags of one text, and the target of a link, each on one
    line."""
    pieces = [value]
    if key.lower() in _LISTS:
        words = value.split()
        if "," in value:
            pieces = value.split(",")
        elif words and all(word.startswith("#") for word in words):
            pieces = words
        pieces = [piece.strip().removeprefix("#") for piece in pieces]
    for piece in pieces:
        text = " ".join(piece.split())
        link = _LINK.fullmatch(text)
        if text := link[1].strip() if link else text:
            yield text

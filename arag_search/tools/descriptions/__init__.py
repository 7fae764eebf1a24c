"""Descriptions of tools that are made from the index: its fields and values, and no feature that it
lacks.

A description file may hold ``<documents>``, the documents by some titles, and ``<fields>``, the
metadata fields. ``{feature?text}`` is kept if the index has the feature, and ``{!feature?text}`` if
it lacks it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files

from arag_search.query.field_types import FIELD_TYPES, KEYWORD
from arag_search.query.lemmas import NONE
from arag_search.query.printing import quoted
from arag_search.search.counting.fields import FieldSummary
from arag_search.search.index import Index
from arag_search.tokens import count_tokens
from arag_search.tools.preset import Preset

TEXTS = files(__package__ or "")
MAX_FIELDS_TOKENS = 60
"""The bound of the list of fields in a description."""
MAX_VALUES = 3
_MAX_CHARACTERS = 40
"""A longer value or name of a field is left out, because a query could not use a part of it."""
_OF_FILES = ("file", "passage_kind")
"""Fields of folders that say nothing which a path or a type does not say better."""
_DOCUMENTS = "<documents>"
_FIELDS = "<fields>"
_CONDITION = re.compile(r"\{(!?)(\w+)\?([^{}]*)\}")
_EMPTY_LINES = re.compile(r"\n{3,}")


def described(name: str, index: Index, preset: Preset, features: Mapping[str, bool]) -> str:
    """Return the description of a tool over an index. ``features`` are the features of the tool
    itself. Presets that reproduce a paper have texts of some tools in ``papers/``: what this paper
    says to models, in our words. ``ours`` is what our replies and arguments add.

    Fields have at most MAX_FIELDS_TOKENS tokens: to fit, values go first, then the last fields.
    Titles and values are read once for an index.
    """
    features = {"ours": preset.explains, "whole": preset.full_text, **features}
    file = TEXTS.joinpath("papers", f"{name}.md")
    if preset.reproduces is None or not file.is_file():
        file = TEXTS.joinpath(f"{name}.md")
    text = file.read_text("utf-8")
    text = with_features(text, {**_features_of(index), **features})
    if _DOCUMENTS in text:
        titles = [title for title in index.some_titles if _can_be_shown(title)]
        named = f" ({', '.join(map(quoted, titles))}, ...)" if titles else ""
        text = text.replace(_DOCUMENTS, f"{documents_of(index)}{named}")
    if _FIELDS in text:
        text = text.replace(_FIELDS, fields_within(index.metadata_fields, MAX_FIELDS_TOKENS))
    return text


def documents_of(index: Index) -> str:
    """Return what descriptions of tools call the documents of an index."""
    return "the files" if set(_OF_FILES) <= set(index.manifest.metadata) else "the documents"


def fields_within(fields: Sequence[FieldSummary], max_tokens: int) -> str:
    """Return as many fields as fit on one line, with their types and values. If none fits, return
    only the number of fields. O(fields), apart from the search for the number that fits."""
    fields = [field for field in fields if field.name not in _OF_FILES] or fields
    named = [field for field in fields if len(field.name) <= _MAX_CHARACTERS]
    for values in range(MAX_VALUES, -1, -1):
        text = _fields_text(fields, [_field_text(field, values) for field in named])
        if count_tokens(text) < max_tokens:  # a token less: words joined may count one more
            return text
    shortest = [_field_text(field, 0) for field in named]
    low, high = 0, len(shortest)
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(_fields_text(fields, shortest[:middle])) < max_tokens:
            low = middle
        else:
            high = middle - 1
    return _fields_text(fields, shortest[:low])


def _fields_text(fields: Sequence[FieldSummary], shown: Sequence[str]) -> str:
    others = len(fields) - len(shown)
    if not others:
        return ", ".join(shown)
    return f"{', '.join(shown)} and {others:,} more" if shown else f"{others:,}"


def _field_text(field: FieldSummary, most: int) -> str:
    """Return a field with a limited number of values, or its type: ``lang ("en", "de")``, ``year
    (number, 1670 to 1741)``. Of paths, the folders are shown."""
    about = [field.kind] if field.kind != KEYWORD.name else []
    if most and field.least is not None:
        about.append(f"{field.least} to {field.greatest}")
    values = [count.value for count in field.values if _can_be_shown(count.value)]
    if field.name == "path":
        values = [value for value in values if value.endswith("/")]
    about += map(quoted, values[:most])
    if values[:most] and len(values[:most]) != field.distinct:
        about.append("...")
    return f"{field.name} ({', '.join(about)})" if about else field.name


def _can_be_shown(value: str) -> bool:
    # The values of a corpus may hold anything.
    return len(value) <= _MAX_CHARACTERS and value.isprintable()


def _features_of(index: Index) -> dict[str, bool]:
    manifest = index.manifest
    return {
        "titles": index.contents.has_titles,
        "metadata": bool(manifest.metadata),
        "ranges": any(FIELD_TYPES[kind].is_ordered for kind in manifest.metadata.values()),
        "neighbours": index.contents.has_neighbours,
        "forms": bool(manifest.language),
        "lemmas": manifest.language not in ("", NONE),
    }


def with_features(text: str, features: Mapping[str, bool]) -> str:
    """Resolve the conditions of a description, the inner ones first."""
    while (
        resolved := _CONDITION.sub(
            lambda match: match[3] if features[match[2]] is not bool(match[1]) else "", text
        )
    ) != text:
        text = resolved
    return _EMPTY_LINES.sub("\n\n", text).strip()

"""Arguments as clients write them: where only the client can be at fault, they are taken as meant.

A client may turn values into text, send null or an empty text for an argument that it leaves out,
or copy ids with the brackets in which replies print them. A model cannot correct any of this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

_BRACKETED = re.compile(r"\[([^\[\]]+)\]")
_KINDS: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "object": (dict,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def taken(
    given: Mapping[object, object], schema: Mapping[str, Any]
) -> tuple[dict[object, object], list[str]]:
    """Return the arguments as they are meant, and a note on each that was converted.

    ``schema`` is the JSON schema of a tool. Arguments that it does not have stay as they are. Ids
    lose their brackets without a note.
    """
    values: dict[object, object] = {}
    notes: list[str] = []
    for name, value in given.items():
        known: Mapping[str, Any] | None = schema["properties"].get(name)
        if known is None:
            values[name] = value
            continue
        kinds = _kinds(known)
        has_choices = "enum" in known
        is_empty = value is None or (value == "" and (has_choices or "string" not in kinds))
        if is_empty and name not in schema["required"]:
            continue  # the default
        meant = value
        if isinstance(value, str) and "string" not in kinds and not has_choices:
            meant = _value_in(value, kinds)
        if meant is not value:
            notes.append(f'argument "{name}" was taken as {json.dumps(meant, ensure_ascii=False)}.')
        is_id = str(name).endswith(("_id", "_ids"))
        values[name] = _without_brackets(meant, kinds) if is_id else meant
    return values, notes


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    """Return the types that a JSON schema allows."""
    options = cast(list[Mapping[str, Any]], schema.get("anyOf", [schema]))
    return {str(option.get("type", "string")) for option in options}


def _value_in(text: str, kinds: set[str]) -> object:
    """Return the value whose JSON a text is, if it is of an allowed type, else the text."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    types = tuple(kind for name in kinds for kind in _KINDS.get(name, ()))
    is_flag = isinstance(value, bool) and "boolean" not in kinds
    return value if isinstance(value, types) and not is_flag else text


def _without_brackets(value: object, kinds: set[str]) -> object:
    """Return ids without the brackets around each; a text of several becomes a list of them."""
    if isinstance(value, list):
        return [_without_brackets(item, set()) for item in cast(list[object], value)]
    if not isinstance(value, str) or _BRACKETED.sub("", value).strip(" ,;"):
        return value
    ids = _BRACKETED.findall(value)
    if "array" in kinds:
        return ids or value
    return ids[0] if len(ids) == 1 else value

"""Arguments as clients write them: where only the client can be at fault, they are taken as meant.

A client may turn values into text, put one value into a list, or spell a name or a choice in
another case. It may send null or an empty text for a missing argument, or copy ids with the
brackets of replies. A model cannot correct any of this.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import orjson

from arag_search.query.limits import MAX_CHARACTERS

_SHOWN_CHARACTERS = 80
_MAX_LEVELS = 50
_BRACKETED = re.compile(r"\[([^\[\]]+)\]")
_QUOTED = re.compile(r"""(["'`])(.+)\1""")
_BETWEEN_IDS = re.compile(r"(?:(?<!\s)\s+)?[,;\n]\s*")
_LISTED_ID = re.compile(r"\S*\d[\]\"'`]?")
"""An id in a list of ids. Others may have blanks, commas and semicolons of their own."""
_OTHER_NAMES = {
    ("top_k", "max_results"): frozenset({
        "topk", "k", "n", "limit", "maxresults", "numresults", "count", "size", "topn",
    }),
    ("after", "offset"): frozenset({"offset", "skip", "start"}),
}  # fmt: skip
"""Arguments by what clients call them, in the spelling of ``spelling``."""
_NARROWING = frozenset(
    """
    author category collection date datefrom dateto dir directory docid docids doctype document
    documents enddate exclude file filename files filter filters folder folders from glob include
    lang language metadata namespace path paths project since source sources startdate tag tags to
    type until where year
    """.split()  # noqa: SIM905
)
_NARROWING_WORDS = frozenset(
    "date field file filter folder path range restrict tag type where".split()  # noqa: SIM905
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
OF_CLIENTS = frozenset({
    "toolcallid", "tool",  # n8n-io/n8n#21500
    "sessionid", "action", "chatinput",  # of n8n too: sansan0/TrendRadar#768
    "waitforprevious", "taskprogress",  # google-gemini/gemini-cli#27403, cline/cline#9951
})  # fmt: skip
"""Arguments that clients add to every call by themselves, with a report of each client."""
IN_QUERY = 'Write it in the query: (QUERY) AND FIELD:"VALUE".'
_INSTEAD = {
    "defaultoperator": ("query", "Write AND or OR between words of the query."),
    "granularity": ("show", 'Sentences that match: show "lines".'),
    "perdocument": ("show", 'Each document once: show "counts".'),
}
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
    lose what stands around them without a note.
    """
    values: dict[object, object] = {}
    notes: list[str] = []
    for written, value in given.items():
        name = _meant_name(written, schema["properties"])
        if name is None or (name != written and name in given):
            values[written] = value
            continue
        if name != written and value not in (None, ""):
            notes.append(f'argument "{written}" was taken as "{name}".')
        known: Mapping[str, Any] = schema["properties"][name]
        kinds = _kinds(known)
        is_empty = value is None or (value == "" and ("enum" in known or "string" not in kinds))
        if is_empty and name not in schema["required"]:
            continue  # the default
        is_id = str(name).endswith(("_id", "_ids"))
        meant = _meant(value, kinds, known.get("enum", ()))
        if name == "filter" and isinstance(meant, dict):
            values[name] = json.dumps(meant)
            continue
        if "array" in kinds and isinstance(meant, str) and not is_id:
            meant = [meant]
        if meant is not value and not (isinstance(value, int) and isinstance(meant, str)):
            notes.append(f'argument "{name}" was taken as {json.dumps(meant, ensure_ascii=False)}.')
        if is_id:
            ids = _bare_ids(meant)
            meant = ids if "array" in kinds else ids[0] if len(ids) == 1 else meant
        values[name] = meant
    return values, notes


def _meant_name(written: object, names: Collection[str]) -> object:
    if written in names:
        return written
    spelt = spelling(written)
    same = {spelling(name): name for name in names}.get(spelt)
    meant = next((known for known, others in _OTHER_NAMES.items() if spelt in others), ())
    return same or next((name for name in meant if name in names), None)


def instead_of(written: object, fields: Collection[str]) -> tuple[str, str]:
    """Return the argument that does the work of an unknown one, and how. The second text is empty
    unless the unknown argument seems to narrow a search. ``fields`` are the metadata fields."""
    words = {word.lower().removesuffix("s") for word in _WORD.findall(str(written))}
    named = spelling(written) in _NARROWING or not _NARROWING_WORDS.isdisjoint(words)
    narrows = written in fields or named
    return _INSTEAD.get(spelling(written), ("query", IN_QUERY if narrows else ""))


def spelling(name: object) -> str:
    """Return the name of an argument in one spelling: chunkIds is chunk_ids."""
    return str(name).replace("_", "").replace("-", "").lower()


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    options = cast(list[Mapping[str, Any]], schema.get("anyOf", [schema]))
    return {str(option.get("type", "string")) for option in options}


def _meant(given: object, kinds: set[str], choices: Sequence[object]) -> object:
    value = given if "array" in kinds else _only_text(given)
    if isinstance(value, str) and choices:
        same = (choice for choice in choices if str(choice).lower() == value.strip().lower())
        choice = next(same, value)
        return value if choice == value else choice
    if isinstance(value, str) and "string" not in kinds:
        value = _value_in(value, kinds)
    if isinstance(value, int) and kinds == {"string"} and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and value.is_integer() and "number" not in kinds:
        return int(value) if "integer" in kinds else value
    return value


def _only_text(value: object) -> object:
    if not isinstance(value, list):
        return value
    items = cast(list[object], value)
    return items[0] if len(items) == 1 and isinstance(items[0], str) else items


def _value_in(text: str, kinds: set[str]) -> object:
    """Return the value whose JSON or Python a text is, if it is of an allowed type, else the
    text."""
    types = tuple(kind for name in kinds for kind in _KINDS.get(name, ()))
    for read in (json.loads, ast.literal_eval):
        if read is ast.literal_eval and not text.isascii() and len(text) > MAX_CHARACTERS:
            continue  # Python takes quadratic time for marks in names (python/cpython#149079)
        try:
            value: object = read(text.strip())
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
        is_whole = "integer" in kinds and isinstance(value, float) and value.is_integer()
        is_flag = isinstance(value, bool) and "boolean" not in kinds
        if is_whole or (isinstance(value, types) and not is_flag):
            return value
    return text


def _bare_ids(value: object) -> list[object]:
    """Return the ids in a value: a list, objects with an id, or a text of one or more. Each is
    without the brackets, quotes and blanks around it."""
    if isinstance(value, list):
        return [
            id
            for item in cast(list[object], value)
            for id in (cast(list[object], item) if isinstance(item, list) else _bare_ids(item))
        ]
    if isinstance(value, dict):
        fields = cast(dict[object, object], value)
        return [
            next((fields[key] for key in ("id", "chunk_id", "doc_id") if key in fields), fields)
        ]
    if not isinstance(value, str):
        return [value]
    if (bracketed := _BRACKETED.findall(value)) and not _BRACKETED.sub("", value).strip(" ,;\n"):
        return bracketed
    pieces = _BETWEEN_IDS.split(value.strip())
    if len(pieces) > 1 and all(map(_LISTED_ID.fullmatch, pieces)):
        return [id for piece in pieces for id in _bare_ids(piece)]
    quoted = _QUOTED.fullmatch(value.strip())
    return [quoted[2] if quoted else value.rstrip()]


def parsed_arguments(written: object) -> object:
    """Return the arguments of a call, which may be a JSON text; blank text becomes an empty object.

    Raises ValueError, with a message for the model, for anything that is not JSON.
    """
    text = written if isinstance(written, str) else repr(written)
    if not text.strip():
        return {}
    try:
        arguments: object = orjson.loads(text) if text is written else written
        if not _is_too_deep(arguments):
            return arguments
        problem = "nested too deeply"
    except orjson.JSONDecodeError as error:
        problem = f"{error.msg} at character {error.pos + 1}"
    shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
    raise ValueError(
        f"Tool not run: the arguments are not valid JSON ({problem}): {shown}\n"
        "Allowed: one JSON object with the arguments of the tool."
    ) from None


def _is_too_deep(arguments: object) -> bool:
    """Return whether JSON is nested more deeply than any arguments need, and more than some writers
    can write."""
    level = [arguments]
    for _ in range(_MAX_LEVELS):
        level = [item for value in level for item in _items(value)]
    return bool(level)


def _items(value: object) -> Collection[object]:
    if isinstance(value, dict):
        return cast(dict[str, object], value).values()
    return cast(list[object], value) if isinstance(value, list) else ()

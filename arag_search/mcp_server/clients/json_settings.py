"""Settings in JSON, also with comments and trailing commas, changed as text at one key."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

_TOKEN = re.compile(
    r"(?P<blank>\s+|//[^\r\n]*|/\*.*?\*/)|(?P<sign>[{}\[\],:])"
    r'|(?P<value>"(?:[^"\\\r\n]|\\.)*"|[^\s{}\[\],:"/]+)',
    re.DOTALL,
)
_REST_OF_LINE = re.compile(r"(?:[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/))+(?=[ \t]*[\r\n])")


@dataclass(frozen=True, slots=True)
class _Member:
    """A key with its value; ``comma_end`` is where the comma behind it ends, if there is one."""

    key: str
    start: int
    value: _Value
    comma_end: int | None


@dataclass(frozen=True, slots=True)
class _Value:
    """A value, from ``start`` to ``end`` in the text; only objects have ``members``."""

    start: int
    end: int
    data: object
    members: tuple[_Member, ...] | None = None

    def member(self, key: str) -> _Member | None:
        return next((member for member in self.members or () if member.key == key), None)


def parse(text: str) -> object:
    """Return the value of a text. Raises ValueError with the line for what is no JSON, also with
    comments and trailing commas, and for an object with two equal keys."""
    return _parse(text).data


def with_entry(text: str, section: str, name: str, entry: Mapping[str, object]) -> str:
    """Return the text with an entry in a section, which is an object of the root. Raises
    ValueError, also where root or section are no objects."""
    text = text if text.strip() else "{}\n"
    root = _object(_parse(text), "The file")
    at = root.member(section)
    if at is None:
        return _appended(text, root, section, {name: entry})
    servers = _object(at.value, f'"{section}"')
    old = servers.member(name)
    if old is None:
        return _appended(text, servers, name, entry)
    written = _written(text, entry, _line_indent(text, old.start))
    return text[: old.value.start] + written + text[old.value.end :]


def without_entry(text: str, section: str, name: str) -> str:
    """Return the text without an entry, which must be there. Raises ValueError."""
    at = _object(_parse(text), "The file").member(section)
    servers = at.value.members if at is not None else None
    if servers is None or name not in (keys := [member.key for member in servers]):
        raise ValueError(f'"{section}" has no "{name}".')
    number = keys.index(name)
    member = servers[number]
    start = len(text[: member.start].rstrip())
    kept = text[:start]
    comma_end = servers[number - 1].comma_end if number else None
    if member.comma_end is None and comma_end is not None:  # of the member before, now the last
        kept = text[: comma_end - 1] + text[comma_end:start]
    return kept + text[member.comma_end or member.value.end :]


def _object(value: _Value, what: str) -> _Value:
    if value.members is None:
        raise ValueError(f"{what} is not an object.")
    return value


def _appended(text: str, parent: _Value, key: str, data: object) -> str:
    """Return the text with a member behind those of an object, and behind what is said of the last
    of them on its line."""
    newline = _newline(text)
    outer = _line_indent(text, parent.start)
    if not parent.members:
        item = _item(text, key, data, outer + _step(text))
        end = parent.end - 1
        at = len(text[:end].rstrip())
        closing = "" if "\n" in text[at:end] else newline + outer
        return text[:at] + newline + item + closing + text[at:]
    last = parent.members[-1]
    own_line = not text[: last.start].rstrip(" \t").endswith(("{", ","))
    indent = _line_indent(text, last.start) if own_line else outer + _step(text)
    end = last.comma_end or last.value.end
    rest = _REST_OF_LINE.match(text, end)
    at = rest.end() if rest else end
    first, second = ("", ",") if last.comma_end else (",", "")
    item = _item(text, key, data, indent)
    return text[:end] + first + text[end:at] + newline + item + second + text[at:]


def _item(text: str, key: str, data: object, indent: str) -> str:
    return f"{indent}{json.dumps(key)}: {_written(text, data, indent)}"


def _written(text: str, data: object, indent: str) -> str:
    written = json.dumps(data, indent=_step(text), ensure_ascii=False)
    return written.replace("\n", _newline(text) + indent)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _step(text: str) -> str:
    """Return by how much the text indents: as its first line that is indented."""
    match = re.search(r"\n([ \t]+)[\"}]", text)
    return match[1] if match else "  "


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


class _Token(NamedTuple):
    text: str
    start: int
    end: int


def _parse(text: str) -> _Value:
    tokens: list[_Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"Line {text.count(chr(10), 0, at) + 1} is not JSON.")
        if match.lastgroup != "blank":
            tokens.append(_Token(match[0], at, match.end()))
        at = match.end()
    tokens = [_Token("", at, at), *reversed(tokens)]
    try:
        value = _value(text, tokens)
    except RecursionError as error:
        raise ValueError("It is nested too deeply.") from error
    if len(tokens) > 1:
        raise _misplaced(text, tokens[-1])
    return value


def _value(text: str, tokens: list[_Token]) -> _Value:
    """Take a value from the ``tokens``, which are in reverse order behind a token of the end."""
    token = _take(text, tokens)
    if token.text == "{":
        members: list[_Member] = []
        while tokens[-1].text != "}":
            key = _take(text, tokens)
            name = _scalar(text, key)
            if not isinstance(name, str) or _take(text, tokens).text != ":":
                raise _misplaced(text, key)
            if name in {member.key for member in members}:
                raise ValueError(f'The key "{name}" is there twice in one object.')
            value = _value(text, tokens)
            members.append(_Member(name, key.start, value, _comma(text, tokens, "}")))
        data = {member.key: member.value.data for member in members}
        return _Value(token.start, tokens.pop().end, data, tuple(members))
    if token.text == "[":
        items: list[object] = []
        while tokens[-1].text != "]":
            items.append(_value(text, tokens).data)
            _comma(text, tokens, "]")
        return _Value(token.start, tokens.pop().end, items)
    return _Value(token.start, token.end, _scalar(text, token))


def _take(text: str, tokens: list[_Token]) -> _Token:
    if len(tokens) == 1:
        raise ValueError("It ends too early.")
    return tokens.pop()


def _comma(text: str, tokens: list[_Token], closing: str) -> int | None:
    """Take a comma, if there is one, and return its end."""
    if tokens[-1].text == ",":
        return tokens.pop().end
    if tokens[-1].text != closing:
        raise _misplaced(text, tokens[-1])
    return None


def _scalar(text: str, token: _Token) -> object:
    try:
        return json.loads(token.text, strict=False)
    except ValueError as error:
        raise _misplaced(text, token) from error


def _misplaced(text: str, token: _Token) -> ValueError:
    line = text.count("\n", 0, token.start) + 1
    return ValueError(f"Line {line} is not JSON at {token.text[:20] or 'its end'}.")

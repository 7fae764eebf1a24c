"""Keys and passwords, removed from what servers say before it is shown or stored.

A server may repeat what it was sent, often in another form: in upper case, escaped for JSON, a URL
or HTML, or in base64, as HTTP sends a user and a password. Each character of a secret is therefore
matched in every such form, and the whole secret in every alignment of base64.
"""

from __future__ import annotations

import base64
import functools
import html
import json
import re
from typing import cast

_SHORTEST_SECRET = 4  # anything shorter occurs in every text
_SHORTEST_BASE64 = 8
_BASE64_END = r"(?:[\w+/-]?={1,2})?"  # the character with the secret's last bits, and padding
_JSON_ESCAPED = '"\\/'
_PERCENT = "%(?:25){0,4}"
_BACKSLASHES = (r"\\{1,8}", f"{_PERCENT}5[cC]")  # JSON's, plain and in a URL


class Secrets:
    """Values that no text may show. Values of fewer than 4 characters are ignored.

    ``mark`` replaces them.
    """

    def __init__(self, *values: str, mark: str) -> None:
        self._values = tuple(value for value in values if len(value) >= _SHORTEST_SECRET)
        self._mark = mark

    @classmethod
    def of_login(cls, username: str, password: str) -> Secrets:
        """Return the secrets of HTTP's Basic authentication."""
        login = f"{username}:{password}" if password else ""
        return cls(login, password, mark="[password]")

    def hide(self, text: str) -> str:
        """Return the text without the secrets."""
        return _pattern(self._values).sub(self._replaced, text) if self._values else text

    def hide_in_json(self, text: str) -> str:
        """Return JSON without the secrets in its strings; other text as ``hide`` returns it."""
        if not self._values or not _pattern(self._values).search(text):
            return text
        try:
            return json.dumps(self._hidden(json.loads(text)), ensure_ascii=False)
        except (ValueError, RecursionError):
            return self.hide(text)

    def _replaced(self, match: re.Match[str]) -> str:
        del match
        return self._mark

    def _hidden(self, value: object) -> object:
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, list):
            return [self._hidden(item) for item in cast(list[object], value)]
        if isinstance(value, dict):
            fields = cast(dict[str, object], value)
            return {self.hide(name): self._hidden(item) for name, item in fields.items()}
        return value


@functools.lru_cache(maxsize=16)
def _pattern(secrets: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of the secrets. Built when first needed: a long key takes 0.1 s."""
    encoded = {core for secret in secrets for core in _base64_cores(secret.encode())}
    patterns = [
        *("".join(map(_any_form, secret)) for secret in sorted(secrets, key=len, reverse=True)),
        *("".join(map(_any_form, core)) + _BASE64_END
          for core in sorted(encoded, key=len, reverse=True)),
    ]  # fmt: skip
    return re.compile("|".join(patterns))


def _any_form(character: str) -> str:
    """Return a pattern of a character in either case, plain or escaped.

    Every alternative begins with a literal, which lets ``re`` skip other text quickly.
    """
    letters = sorted({character, character.lower(), character.upper()})
    escaped = [form for letter in letters if len(letter) == 1 for form in _escaped(letter)]
    forms = [*escaped, *map(re.escape, letters)]
    return f"(?:{'|'.join(dict.fromkeys(forms))})"


def _escaped(letter: str) -> list[str]:
    """Return patterns of a character as escaped by JSON, URLs and HTML, also nested."""
    pairs = letter.encode("utf-16-be")
    units = [_hex(pairs[at : at + 2].hex()) for at in range(0, len(pairs), 2)]
    in_url = "".join(f"{_PERCENT}{_hex(f'{byte:02x}')}" for byte in letter.encode())
    forms = ["".join(f"{backslash}u{unit}" for unit in units) for backslash in _BACKSLASHES]
    if letter in _JSON_ESCAPED:
        forms += [f"{mark}(?:{re.escape(letter)}|{in_url})" for mark in _BACKSLASHES]
    forms += [in_url, f"&#0{{0,4}}{ord(letter)};", f"&#[xX]0{{0,4}}{_hex(f'{ord(letter):x}')};"]
    if letter == " ":
        forms.append(r"\+")
    if (named := html.escape(letter)) != letter:
        forms.append(re.escape(named))
    return forms


def _hex(digits: str) -> str:
    """Return a pattern of hexadecimal digits in either case."""
    return "".join(f"[{d}{d.upper()}]" if d.isalpha() else d for d in digits)


def _base64_cores(secret: bytes) -> list[str]:
    """Return the base64 forms of a secret that do not depend on the text around it."""
    cores: list[str] = []
    for before in range(3):
        length = before + len(secret)
        written = base64.b64encode(bytes(before) + secret + bytes(2)).decode()
        core = written[-(-before * 8 // 6) : length * 8 // 6]
        if len(core) >= _SHORTEST_BASE64:
            cores += [core, core.replace("+", "-").replace("/", "_")]
    return cores

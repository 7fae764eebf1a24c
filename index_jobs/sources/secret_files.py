"""Files of passwords and keys, as their names or their texts show: they are left out.

A guide is read whatever its name, and a note of passwords is left out even if it is Markdown. What
tells them apart is running text.
"""

from __future__ import annotations

import os
import re
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Literal

from arag_search.corpus import nfc
from arag_search.query.forms import is_code
from index_jobs.sources.converters.registry import FILE_TYPES, file_type_of

Suspicion = Literal["none", "text", "note", "name"]
"""What leaves a file out: nothing, its text, also that it is no running text, or its name alone."""

NAMED = "named like passwords or keys"
TO_READ = "to read: index --include NAME or --no-ignore"

_KEY_FILE = re.compile(
    r"id_(rsa|dsa|ecdsa|ed25519)(_sk)?([._-].*)?|[._]?(netrc|htpasswd)|pgpass\.conf|rootkey\.csv"
    r"|.*\.(key|pem|p8|p12|pfx|pkcs12|ppk|jks|keystore|keytab|kdbx?|psafe3|1pux|tfstate)"
    r"|.*\.env(\.(local|prod\w*|dev\w*|test|staging|bak|old))?|.*\.tfstate\.backup"
    r"|(.*[ _-])?service[ _-]?account([ _-].*)?\.json|client_secrets?([ _-].*)?\.json"
    r"|(1password|bitwarden|dashlane|enpass|keepassx?c?|lastpass|nordpass|proton ?pass|roboform)"
    r"[ _-]?(.*[ _-])?(export|backup|vault).*\.(csv|json|xml|txt)",
    re.IGNORECASE | re.DOTALL,
)
_SECRETS = (
    r"passwords|passphrases|passcodes|credentials|creds|(api|access|private|secret)[ _-]?keys?"
    r"|(recovery|backup|2fa|mfa)[ _-](codes|keys?)([ _-].*)?|(seed|recovery)[ _-](phrase|words)"
    r"|wallet[ _-]seed|passw(ö|oe)rter|kennwörter|zugangsdaten|mots de passe|contrase[ñn]as|senhas"
    r"|wachtwoorden|пароли|密码|密碼|パスワード|비밀번호"
)
_SECRET = r"passwd|password|passphrase|passcode|secrets?|passwort|kennwort|contraseña|senha|пароль"
_COPY = r"([ ._-]*(\(\d++\)|\d++|copy|old|new|backup|bak))*"
_NOTE = re.compile(rf"((.*[ _-])?({_SECRETS})|{_SECRET}){_COPY}", re.IGNORECASE | re.DOTALL)
_PROSE_NOTE = re.compile(rf"(.*[ _-])?({_SECRETS}|{_SECRET}){_COPY}", re.IGNORECASE | re.DOTALL)
_TABLE = re.compile(rf"(tokens|logins?){_COPY}", re.IGNORECASE)
_TABLES = (".txt", ".csv", ".json")
_PROSE_TYPES = ("rst", "html", "pdf", "word", "slides", "epub")
_PROSE = frozenset((".md", ".markdown", ".mdx", ".qmd", ".rmd", ".org", ".tex", ".adoc")).union(
    (".asciidoc", ".srt", ".vtt"), *(FILE_TYPES[name].endings for name in _PROSE_TYPES)
)

_PRIVATE_KEY = re.compile(r"(?<!\s)\s*-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_CHARACTERS = 100
"""The least length of a key within a text; examples in guides are shorter."""

_PROSE_LINES, _PROSE_WORDS = 3, 8
_NO_WORD = re.compile(r"[\d_=/\\@#$%^&<>|~+{}\[\]]")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
"""A letter of a script without blanks, of which two count as a word."""

SEED_WORDS = Path(__file__).with_name("seed_words.txt")
"""The 2,048 English words for wallets: english.txt of BIP-39 (MIT), as in mnemonic 0.21 on PyPI."""
_SEED_ROW, _OTHER_WORDS, _SEED_CHARACTERS = 12, 5, 4_000
_LETTERS = re.compile(r"[^\W\d_]+")

_KEY_LINES, _LINE_CHARACTERS = 3, 600
_KEY_WORDS = ("key", "token", "secret", "pass", "pwd")
_KEY_LINE = re.compile(
    rf"\W{{0,20}}([^:=|]{{0,60}}?(?:{'|'.join(_KEY_WORDS)})[^:=|]{{0,60}}?)[\s\"'`*]*(?:[:=]+>?|\|)"
    r"[\s\"'`*]*([^\s\"'`,;|]{16,})[\s\"'`*,;|]*",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(r"hash|sha\d|md5|checksum|digest|fingerprint|public", re.IGNORECASE)
_NOT_RANDOM = re.compile(
    r".*://|[~.]{0,2}/|[a-z]:\\|v?\d+(\.\d+)+|(sha\d+|md5)[:-]|.*\.[a-z]{2,5}$|.*(\.\.\.|xxx|\$\w)"
    r"|.*[<({\[].*[>)}\]]",
    re.IGNORECASE,
)
_CHECKSUM = re.compile(r"[0-9a-f]{40}|[0-9a-f]{56}|([0-9a-f]{32}){1,4}", re.IGNORECASE)
_CLEAR_NAME = re.compile(r"secret|token|passw|pwd|(api|access|auth)[ _-]?key", re.IGNORECASE)
_PIECES = re.compile(r"[-_./:]+")


def suspicion_of(name: str) -> Suspicion:
    """Return what can leave a file out, by its name without folders."""
    name = nfc(name)
    stem, ending = os.path.splitext(name)
    ending = ending.lower()
    if _KEY_FILE.fullmatch(name) or (ending in _TABLES and _TABLE.fullmatch(stem)):
        return "name"
    if ending in _PROSE:
        return "note" if _PROSE_NOTE.fullmatch(stem) else "text"
    if is_code(name) and file_type_of(name) is not FILE_TYPES["data"]:
        return "text"  # a program that deals with passwords
    return "name" if _NOTE.fullmatch(stem) else "text"


def is_key_file(name: str) -> bool:
    """Return whether a file is one of keys whatever its type, by its name without folders."""
    return _KEY_FILE.fullmatch(nfc(name)) is not None


def secrets_in(text: str, suspicion: Suspicion, *, is_data: bool) -> str:
    """Return why a text is left out, as words of a report; empty if it is not. Data may have a key
    among other values; another text may speak of one."""
    if "PRIVATE KEY" in text:
        key = (_PRIVATE_KEY.search if is_data else _PRIVATE_KEY.match)(text)
        if key or (_has_whole_key(text) and not _is_prose(text)):
            return "a private key"
    if len(text) <= _SEED_CHARACTERS and _is_seed(text):
        return "the words of a wallet"
    if _are_key_lines(text):
        return "a list of keys"
    return NAMED if suspicion == "note" and not _is_prose(text) else ""


def _has_whole_key(text: str) -> bool:
    key = _PRIVATE_KEY.search(text)
    return key is not None and text.find("-----END", key.end()) >= key.end() + _KEY_CHARACTERS


def _is_prose(text: str) -> bool:
    """Return whether at least three lines have eight words."""
    lines = (line for line in text.splitlines() if _words(line) >= _PROSE_WORDS)
    return len(list(islice(lines, _PROSE_LINES))) == _PROSE_LINES


def _words(line: str) -> int:
    spaced = (any(map(str.isalpha, word)) and not _NO_WORD.search(word) for word in line.split())
    return sum(spaced) + len(_UNSPACED.findall(line)) // 2


@cache
def _seed_words() -> frozenset[str]:
    return frozenset(SEED_WORDS.read_text("ascii").split())


def _is_seed(text: str) -> bool:
    """Return whether a text has twelve words for wallets in a row, and hardly any others."""
    row = longest = others = 0
    for match in _LETTERS.finditer(text.lower()):
        if match[0] in _seed_words():
            row += 1
            longest = max(longest, row)
        else:
            row = 0
            others += 1
            if others == _OTHER_WORDS:
                return False
    return longest >= _SEED_ROW


def _are_key_lines(text: str) -> bool:
    """Return whether three lines, and more than half of all, give a name to a key. Comments,
    headings and braces do not count."""
    lower = text.lower()
    most = min(sum(map(text.count, ":=|")), sum(map(lower.count, _KEY_WORDS)))
    if most < _KEY_LINES:  # found at the speed of memory, as nearly all texts are passed over
        return False
    lines = [line for line in map(str.strip, text.splitlines()) if line and line[0] not in "#{}]"]
    keys = len(lines)
    for line in lines:
        if min(keys, most) * 2 <= len(lines):
            return False
        keys -= not _gives_key(line)
    return keys >= _KEY_LINES and keys * 2 > len(lines)


def _gives_key(line: str) -> bool:
    """Return whether a line is the name of a key, a sign and a random text."""
    match = _KEY_LINE.fullmatch(line) if len(line) <= _LINE_CHARACTERS else None
    if match is None or _NO_SECRET.search(match[1]) or _NOT_RANDOM.match(match[2]):
        return False
    value = match[2]
    if _CHECKSUM.fullmatch(value.replace("-", "")):
        return _CLEAR_NAME.search(match[1]) is not None
    kinds = [[_kind(sign) for sign in piece] for piece in _PIECES.split(value)]
    changes = sum(left != right for piece in kinds for left, right in pairwise(piece))
    has_digits = any("1" in piece for piece in kinds)
    return len(set(value)) >= 8 and changes * (4 if has_digits else 2.5) >= len(value)


def _kind(sign: str) -> str:
    return "1" if sign.isdigit() else "A" if sign.isupper() else "a" if sign.isalpha() else "-"

"""Files of passwords and keys, as their names or their texts show: they are left out.

A guide is read whatever its name, and a note of passwords is left out even if it is Markdown. What
tells them apart is running text.
"""

from __future__ import annotations

import os
import re
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Literal

from arag_search.corpus import is_code, nfc
from index_jobs.sources.converters.registry import FILE_TYPES, file_type_of

Suspicion = Literal["none", "text", "note", "name", "key"]
"""The reason to leave a file out. "none": there is none. "text": its text. "note": its text, or
that this is no running text. "name": its name. "key": its name, even if its type is not known."""

NAMED = "named like passwords or keys"
KEY_LINES = "lines with keys, left out of code"
TO_READ = "to read: index --include NAME or --no-ignore"

_KEY_FILE = (
    r"id_(rsa|dsa|ecdsa|ed25519)(_sk)?([._-].*)?|[._]?(netrc|htpasswd)|pgpass\.conf|rootkey\.csv"
    r"|.*\.(key|pem|p8|p12|pfx|pkcs12|ppk|jks|keystore|keytab|kdbx?|psafe3|1pux|tfstate)"
    r"|.*\.env(\.(local|prod\w*|dev\w*|test|staging|bak|old))?|.*\.tfstate\.backup"
    r"|(.*[ _-])?service[ _-]?account([ _-].*)?\.json|client_secrets?([ _-].*)?\.json"
    r"|(1password|bitwarden|dashlane|enpass|keepassx?c?|lastpass|nordpass|proton ?pass|roboform)"
    r"[ _-]?(.*[ _-])?(export|backup|vault).*\.(csv|json|xml|txt)"
)
_SECRETS = (
    r"passwords|passphrases|passcodes|credentials|creds|(api|access|private|secret)[ _-]?keys?"
    r"|(recovery|backup|2fa|mfa)[ _-](codes|keys?)([ _-].*)?|(seed|recovery)[ _-](phrase|words)"
    r"|wallet[ _-]seed|passw(ö|oe)rter|kennwörter|zugangsdaten|mots de passe|contrase[ñn]as|senhas"
    r"|wachtwoorden|пароли|密码|密碼|パスワード|비밀번호"
)
_SECRET = r"passwd|password|passphrase|passcode|secrets?|passwort|kennwort|contraseña|senha|пароль"
_COPY = r"([ ._-]*(\(\d++\)|\d++|copy|old|new|backup|bak))*"
_KEY, _NOTE, _NOTE_IN_PROSE, _TABLE = (
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        _KEY_FILE,
        rf"((.*[ _-])?({_SECRETS})|{_SECRET}){_COPY}",
        rf"(.*[ _-])?({_SECRETS}|{_SECRET}){_COPY}",
        rf"(tokens|logins?){_COPY}",
    )
)
_PROSE = frozenset(
    ".md .markdown .mdx .qmd .rmd .org .tex .adoc .asciidoc .srt .vtt".split()  # noqa: SIM905
).union(*(FILE_TYPES[name].endings for name in ("rst", "html", "pdf", "word", "slides", "epub")))

_PRIVATE_KEY = re.compile(r"(?<!\s)\s*-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_CHARACTERS = 100  # examples in guides are shorter
_NO_WORD = re.compile(r"[\d_=/\\@#$%^&<>|~+{}\[\]]")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")  # two count as a word

SEED_WORDS = Path(__file__).with_name("seed_words.txt")
"""The 2,048 English words for wallets: english.txt of BIP-39 (MIT), as in mnemonic 0.21 on PyPI."""
_LETTERS = re.compile(r"[^\W\d_]+")

_KEY_WORDS = ("key", "token", "secret", "pass", "pwd")
_KEY_LINE = re.compile(
    rf"\W{{0,20}}([^:=|]{{0,60}}?(?:{'|'.join(_KEY_WORDS)})[^:=|]{{0,60}}?)(?:[:=]+>?|\|)"
    r"[\s\"'`*]{0,20}([^\s\"'`,;|]{16,})[\s\"'`*,;|]*",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(r"hash|sha\d|md5|checksum|digest|fingerprint|public", re.IGNORECASE)
_NOT_RANDOM = re.compile(
    r".*://|[~.]{0,2}/|[a-z]:\\|v?\d+(\.\d+)+|(sha\d+|md5)[:-]|.*\.[a-z]{2,5}$|.*(\.\.\.|xxx|\$\w)"
    r"|.*[<({\[].*[>)}\]]",
    re.IGNORECASE,
)
_CHECKSUM = re.compile(r"[0-9a-f]{40}|[0-9a-f]{56}|([0-9a-f]{32}){1,4}", re.IGNORECASE)
_CHANGE = re.compile(r"[a-z](?=[A-Z\d])|[A-Z](?=[a-z\d])|\d(?=[A-Za-z])")
_CLEAR_NAME = re.compile(r"secret|token|passw|pwd|(api|access|auth)[ _-]?key", re.IGNORECASE)


def suspicion_of(name: str) -> Suspicion:
    """Return what can leave a file out, by its name without folders."""
    stem, ending = os.path.splitext(nfc(name))
    ending = ending.lower()
    if _KEY.fullmatch(stem + ending):
        return "key"
    if ending in _PROSE:
        return "note" if _NOTE_IN_PROSE.fullmatch(stem) else "text"
    if is_code(name) and file_type_of(name) is not FILE_TYPES["data"]:
        return "note" if _NOTE.fullmatch(stem) else "text"
    is_table = ending in (".txt", ".csv", ".json") and _TABLE.fullmatch(stem)
    return "name" if is_table or _NOTE.fullmatch(stem) else "text"


def secrets_in(text: str, suspicion: Suspicion, *, is_data: bool, defines: bool = False) -> str:
    """Return why a text is left out, as words of a report; empty if it is not. Data may have a key
    among other values; another text may speak of one. Code that ``defines`` a function may deal
    with passwords, whatever its name."""
    if key := _PRIVATE_KEY.search(text) if "PRIVATE KEY" in text else None:
        is_whole = text.find("-----END", key.end()) >= key.end() + _KEY_CHARACTERS
        if is_data or not text[: key.start()].strip() or (is_whole and not _is_prose(text)):
            return "a private key"
    if len(text) <= 4_000 and _is_seed(text):
        return "the words of a wallet"
    if _are_key_lines(text):
        return "a list of keys"
    return NAMED if suspicion == "note" and not (defines or _is_prose(text)) else ""


def without_keys(text: str) -> tuple[str, int]:
    """Return code with blanks for the lines that give a name to a key, and how many these are."""
    low = text.lower()
    if not any(word in low for word in _KEY_WORDS):
        return text, 0
    lines = text.split("\n")
    places = [at for at, line in enumerate(lines) if _gives_key(line.strip())]
    for at in places:
        lines[at] = " " * len(lines[at])
    return "\n".join(lines) if places else text, len(places)


def _is_prose(text: str) -> bool:
    """Return whether at least three lines have eight words."""
    return len(list(islice((line for line in text.splitlines() if _words(line) >= 8), 3))) == 3


def _words(line: str) -> int:
    spaced = (any(map(str.isalpha, word)) and not _NO_WORD.search(word) for word in line.split())
    return sum(spaced) + len(_UNSPACED.findall(line)) // 2


@cache
def _seed_words() -> frozenset[str]:
    return frozenset(SEED_WORDS.read_text("ascii").split())


def _is_seed(text: str) -> bool:
    """Return whether a text has twelve words for wallets in a row, and less than five others.
    Nearly all words of a seed are different."""
    row: list[str] = []
    is_seed, others = False, 0
    for match in _LETTERS.finditer(text.lower()):
        if match[0] in _seed_words():
            row.append(match[0])
            is_seed = is_seed or (len(row) >= 12 and len(set(row[-12:])) >= 10)
            continue
        row, others = [], others + 1
        if others == 5:
            return False
    return is_seed


def _are_key_lines(text: str) -> bool:
    """Return whether three lines, and more than half of all, give a name to a key. Comments,
    headings and braces do not count."""
    most = min(sum(map(text.count, ":=|")), sum(map(text.lower().count, _KEY_WORDS)))
    if most < 3:  # counted at the speed of memory, as nearly all texts are passed over
        return False
    lines = [line for line in map(str.strip, text.splitlines()) if line and line[0] not in "#{}]"]
    least = max(3, len(lines) // 2 + 1)
    return most >= least and sum(map(_gives_key, lines)) >= least


def _gives_key(line: str) -> bool:
    """Return whether a line is the name of a key, a sign and a random text."""
    match = _KEY_LINE.fullmatch(line) if len(line) <= 600 else None
    if match is None or _NO_SECRET.search(match[1]) or _NOT_RANDOM.match(value := match[2]):
        return False
    if _CHECKSUM.fullmatch(value.replace("-", "")):
        return _CLEAR_NAME.search(match[1]) is not None
    changes = len(_CHANGE.findall(value)) * (4 if any(map(str.isdigit, value)) else 2.5)
    return len(set(value)) >= 8 and changes >= len(value)

"""Decoding text whose encoding is not known: UTF-8, UTF-16 and UTF-32, else the best guess."""

from __future__ import annotations

import codecs

from arag_search.errors import SourceError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins with the mark of UTF-16, so it is compared first
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CANDIDATES = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "koi8_r"),
    *("cp932", "euc_jp", "gb18030", "big5", "cp949"),
)
"""The encodings that a guess chooses from. Others differ from one of them in few characters, or are
so rare that a wrong guess is more likely than a right one."""

_WESTERN = "cp1252"
_WESTERN_SHARE = 0.2
"""Western European text has at most this share of bytes that are not ASCII."""

_SAMPLE_BYTES = 1 << 16
_GOOD_TO_BAD = 10
"""A text with this many characters of UTF-8 for every byte that is not, is damaged UTF-8."""


def decoded(data: bytes, where: str, declared: str = "") -> str:
    """Decode a whole file, without its byte order mark.

    ``declared`` is the encoding that the file itself names, if any; a byte order mark outranks it,
    and so does the content if it cannot be in this encoding. Raises SourceError that names
    ``where`` if the data is binary, or damaged, or fits no encoding.
    """
    encoding = mark_encoding(data)
    if encoding:
        return _strict(data, encoding, where)
    if b"\0" in data:
        raise SourceError(
            "The file is binary, not text.",
            where=f"{where}, byte {data.index(0) + 1}",
            allowed="text without NUL bytes; UTF-16 and UTF-32 need a byte order mark",
            do="Leave the file out.",
        )
    if declared and (text := _declared(data, declared)) is not None:
        return text
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        for encoding in guessed_encodings(data, where, error.start):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError:
                continue
    raise _undecodable(where)


def mark_encoding(beginning: bytes) -> str:
    """Return the codec for the byte order mark at the beginning of a file; empty without a mark."""
    return next((codec for mark, codec in _MARKS if beginning.startswith(mark)), "")


def guessed_encodings(data: bytes, where: str, start: int) -> list[str]:
    """Return the encodings that text which is not UTF-8 may have, likeliest first.

    ``start`` is the place of the first byte that is not UTF-8. Raises SourceError for UTF-8 that is
    damaged in few places: with another encoding, every special character would be wrong.
    """
    from charset_normalizer import from_bytes

    sample = _sample(data)
    text = sample.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    if sum(character > "\x7f" for character in text) > (_GOOD_TO_BAD + 1) * bad:
        raise SourceError(
            "The file is damaged UTF-8.",
            where=f"{where}, byte {start + 1}",
            do="Correct the bytes that are not UTF-8.",
        )
    guesses = from_bytes(sample, cp_isolation=list(_CANDIDATES), enable_fallback=False)
    names = [guess.encoding for guess in guesses]
    if not names:
        raise _undecodable(where)
    special = sum(byte > 0x7F for byte in sample) / len(sample)
    if special <= _WESTERN_SHARE and not guesses[0].coherence:  # no language is recognised
        western = next((guess for guess in guesses if guess.encoding == _WESTERN), None)
        if western and western.chaos <= guesses[0].chaos:
            names.insert(0, _WESTERN)
    return names


def _sample(data: bytes) -> bytes:
    """Return the first lines that are not ASCII: only they say something about the encoding."""
    lines: list[bytes] = []
    size = 0
    for line in data.splitlines(keepends=True):
        if not line.isascii():
            lines.append(line[: _SAMPLE_BYTES - size])
            size += len(lines[-1])
            if size >= _SAMPLE_BYTES:
                break
    return b"".join(lines)


def _declared(data: bytes, declared: str) -> str | None:
    try:
        encoding = codecs.lookup(declared).name
        # Pages that declare these are in the superset of Windows, as browsers assume.
        return data.decode({"ascii": _WESTERN, "iso8859-1": _WESTERN}.get(encoding, encoding))
    except (LookupError, ValueError, TypeError):
        return None


def _strict(data: bytes, encoding: str, where: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        name = encoding.removesuffix("-sig").upper()
        raise SourceError(
            f"The file is damaged {name}.",
            where=f"{where}, byte {error.start + 1}",
            do=f"Correct the bytes that are not {name}.",
        ) from None


def _undecodable(where: str) -> SourceError:
    return SourceError(
        "The encoding of the file is not recognised.",
        where=where,
        allowed="text in UTF-8 or another common encoding",
        do="Convert the file to UTF-8.",
    )

"""Decoding text whose encoding is not known: UTF-8, UTF-16 and UTF-32, else the best guess."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from contextlib import suppress
from typing import IO

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
_LATIN = frozenset(("cp1250", "cp1252", "cp1254", "cp1257"))
_TIE = 0.08
"""Among Latin alphabets, the Western European is by far the most common: it wins over one whose
disorder ("chaos", as charset-normalizer measures it) is less by at most this."""

_WESTERN_SHARE = 0.2
"""Western European text has at most this share of bytes that are not ASCII."""

_ISO_2022_JP = "iso2022_jp"
_WIDER = {"gbk": "gb18030", "euc_jp": "euc_jis_2004"}
"""Codecs that read what their namesakes in the Encoding Standard read, and Python's do not."""

_JIS = re.compile(rb"\x1b\$[@B]([^\x1b]*)(?:\x1b\([BJ])?")
_HIGH = bytes(byte | 0x80 if 0x20 < byte < 0x7F else byte for byte in range(256))

_SAMPLE_BYTES = 1 << 16
_PIECE_BYTES = 1 << 20
_GOOD_TO_BAD = 10
"""A text with at least this many characters of UTF-8 for every invalid byte is damaged UTF-8."""

_NULS = re.compile(rb"\0+")
_TEXT_BYTES = bytes({*range(256)} - {*range(7), *range(14, 26), *range(28, 32), 127})
"""The bytes of text, with controls for printers and terminals, and the end of a file of DOS."""

_FEW_CONTROLS = 4
_BYTES_TO_FEW = 8
_BYTES_TO_CONTROL = 100
"""How many bytes a text has for each control byte, where these are few and where they are more."""

_SHORT_UNITS = 32
"""The units of 16 bits from which a text may be UTF-16 although most of them have no NUL."""

_GOOD_TO_STRANGE = 20
"""A text in UTF-16 has at least this many characters for each that is none of a text."""


def decoded(data: bytes, where: str, declared: str = "") -> str:
    """Decode a whole file, without its byte order mark, and with blanks in place of NUL.

    ``declared`` is the encoding that the file itself names, if any, by a label of the WHATWG
    Encoding Standard; a byte order mark outranks it, and so does the content if it cannot be in it,
    but for a few damaged characters, which are replaced. Raises SourceError that names
    ``where`` if the data is binary, or damaged, or fits no encoding.
    """
    encoding = mark_encoding(data)
    if not encoding and b"\0" in data:
        encoding = _encoding_with_nul(data, where)
        data = data if encoding else data.replace(b"\0", b" ")
    if encoding:
        try:
            return data.decode(encoding).replace("\0", " ")
        except UnicodeDecodeError as error:
            raise _damaged(encoding, error, where) from None
    encoding = _codec(declared)
    if encoding and (text := _in_codec(data, encoding, "strict")) is not None:
        return text
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        sample = _sample(data)
        if _is_mostly(sample, "utf-8"):
            raise _damaged("utf-8", error, where) from None
        if encoding and _is_mostly(sample, encoding):
            return _in_codec(data, encoding, "replace") or ""
    for encoding in _guesses(sample, where):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise _undecodable(where)


def mark_encoding(beginning: bytes) -> str:
    """Return the codec for the byte order mark at the beginning of a file; empty without a mark."""
    return next((codec for mark, codec in _MARKS if beginning.startswith(mark)), "")


def stream_encoding(stream: IO[bytes], where: str) -> str:
    """Return the codec for text that is too large to be decoded at once, and rewind the stream.

    All of the stream is read, a piece at a time, unless a byte order mark gives the encoding.
    Damaged UTF-8 counts as UTF-8, so that only the damaged characters are lost. Raises SourceError
    if the data is binary, or fits no encoding.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    encoding = ""
    offset = 0
    while not encoding:
        piece = stream.read(_PIECE_BYTES)
        encoding = "" if offset else mark_encoding(piece)
        if b"\0" in piece and not encoding:
            encoding = _encoding_with_nul(piece, where, offset)
        if encoding:
            break
        offset += len(piece)
        try:
            decoder.decode(piece, final=not piece)
        except UnicodeDecodeError:
            sample = _sample(piece + stream.read(_PIECE_BYTES))
            encoding = "utf-8" if _is_mostly(sample, "utf-8") else _guesses(sample, where)[0]
        else:
            encoding = "" if piece else "utf-8"
    stream.seek(0)
    return encoding


def _encoding_with_nul(data: bytes, where: str, offset: int = 0) -> str:
    """Return the codec of data in which NUL occurs: that of UTF-16, or an empty text where NUL
    stands for a blank. ``offset`` counts the bytes before it. Raises SourceError for binary data.
    """
    sample = _NULS.sub(b"\0", data[:_PIECE_BYTES])
    controls = len(sample.translate(None, _TEXT_BYTES))
    needed = _BYTES_TO_FEW if controls <= _FEW_CONTROLS else _BYTES_TO_CONTROL
    is_text = controls * needed <= len(sample)
    if is_text:
        with suppress(UnicodeDecodeError):
            codecs.utf_8_decode(sample)
            return ""
    encoding = "" if offset else _wide_encoding(data[:_SAMPLE_BYTES])
    if not encoding and not is_text:
        raise SourceError(
            "The file is binary, not text.",
            where=f"{where}, byte {offset + data.index(0) + 1}",
            allowed="text with few control characters; UTF-32 needs a byte order mark",
        )
    return encoding


def _wide_encoding(sample: bytes) -> str:
    """Return the codec of UTF-16 without a mark, which has other bytes at even places than at odd
    ones, among them NUL; empty for other data."""
    even, odd = (Counter(sample[first::2]) for first in (0, 1))
    nuls, units = max(even[0], odd[0]), even.total()
    is_short = units < _SHORT_UNITS and 2 * nuls < units
    if is_short or 2 * (even - odd).total() < units or even[0] == odd[0]:
        return ""
    codec = "utf-16-le" if odd[0] > even[0] else "utf-16-be"
    text = sample.decode(codec, "replace")
    good = sum((sign.isprintable() or sign.isspace()) and sign != "\ufffd" for sign in text)
    return codec if good >= _GOOD_TO_STRANGE * (len(text) - good) else ""


def _is_mostly(sample: bytes, encoding: str) -> bool:
    """Return whether text is in an encoding in which it is damaged in few places. In another one,
    every special character would be wrong."""
    text = _in_codec(sample, encoding, "replace") or ""
    bad = text.count("\ufffd")
    return sum(character > "\x7f" for character in text) > (_GOOD_TO_BAD + 1) * bad


def _guesses(sample: bytes, where: str) -> list[str]:
    """Return the possible encodings of text that is not UTF-8, most likely first."""
    from charset_normalizer import from_bytes

    guesses = from_bytes(sample, cp_isolation=list(_CANDIDATES), enable_fallback=False)
    names = [guess.encoding for guess in guesses]
    if not names:
        raise _undecodable(where)
    best = guesses[0]
    western = next((guess for guess in guesses if guess.encoding == _WESTERN), None)
    if western and western.coherence >= best.coherence:
        special = sum(byte > 0x7F for byte in sample) / len(sample)
        is_latin = best.encoding in _LATIN and western.chaos <= best.chaos + _TIE
        if is_latin or (special <= _WESTERN_SHARE and western.chaos <= best.chaos):
            names.insert(0, _WESTERN)
    return names


def _sample(data: bytes) -> bytes:
    """Return the first lines that are not ASCII, because only these reveal the encoding."""
    lines: list[bytes] = []
    size = 0
    for line in data.splitlines(keepends=True):
        if not line.isascii():
            lines.append(line[: _SAMPLE_BYTES - size])
            size += len(lines[-1])
            if size >= _SAMPLE_BYTES:
                break
    return b"".join(lines)


def _codec(label: str) -> str:
    """Return the codec for a label of the Encoding Standard; empty for another one, and for UTF-16,
    which a file that was searched for its label is not in."""
    import webencodings

    encoding = webencodings.lookup(label) if label else None
    if encoding is None or encoding.name in ("replacement", "x-user-defined"):
        return ""
    name = "utf-8" if encoding.name.startswith("utf-16") else encoding.codec_info.name
    return _WIDER.get(name, name)


def _in_codec(data: bytes, encoding: str, errors: str) -> str | None:
    if encoding == _ISO_2022_JP:  # whose codec lacks the circled numbers that Windows writes
        data, encoding = _JIS.sub(_as_euc, data), "euc_jis_2004"
    try:
        return data.decode(encoding, errors)
    except UnicodeDecodeError:
        return None


def _as_euc(section: re.Match[bytes]) -> bytes:
    return section[1].translate(_HIGH)


def _damaged(encoding: str, error: UnicodeDecodeError, where: str) -> SourceError:
    name = encoding.removesuffix("-sig").upper()
    return SourceError(
        f"The file is damaged {name}.",
        where=f"{where}, byte {error.start + 1}",
        do=f"Correct the bytes that are not {name}.",
    )


def _undecodable(where: str) -> SourceError:
    return SourceError(
        "The encoding of the file is not recognised.",
        where=where,
        allowed="text in UTF-8 or another common encoding",
        do="Convert the file to UTF-8.",
    )

"""Decoding text whose encoding is not known: UTF-8, UTF-16 and UTF-32, else the best guess."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from contextlib import suppress
from typing import IO, NamedTuple

from arag_search.errors import SourceError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins with the mark of UTF-16, so it is compared first
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MULTI_BYTE = ("cp932", "euc_jis_2004", "gb18030", "big5hkscs", "cp949")
_CANDIDATES = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258"),
    *("koi8-r", "koi8-u", "cp866", "mac-cyrillic", "cp874", *_MULTI_BYTE),
)
"""The encodings that a guess chooses from. Others differ from one of them in few characters, or are
so rare that a wrong guess is more likely than a right one."""

_WITHOUT_C1 = ("iso8859-2", "iso8859-5", "iso8859-6", "iso8859-13", "iso8859-15")
_WITH_C1 = ("cp437", "cp850", "cp852", "mac-roman")
_C1 = bytes(range(0x80, 0xA0))
"""Bytes that are controls in ISO 8859, signs in Windows, and letters in DOS and Mac OS. Text
without any of them is hardly of DOS, and text with one is not in ISO 8859."""

_WESTERN = "cp1252"
_LATIN = {_WESTERN, "cp1250", "cp1254", "cp1257", "cp1258", "iso8859-2", "iso8859-13", "iso8859-15"}
_WESTERN_LEAD = 1.1
"""Among Latin alphabets, the Western European is by far the most common. It wins unless another is
more likely by more than this factor."""

_LATIN_SHARE = 0.25
"""Text in a Latin alphabet has at most this share of special letters, and most of them are single
ones, or pairs in words. In another alphabet they are whole words."""

_SPECIAL = re.compile(rb"[\x80-\xff]+")
_LONE = re.compile(
    rb"(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])|(?<=[A-Za-z])[\xc0-\xff]{2}(?=[A-Za-z])"
)

_JAPANESE = ("cp932", "euc_jis_2004")
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fc]")
_KINDS_OF_KANA = 4
"""Text whose special characters are mostly kana, of at least so many kinds, is Japanese."""

_DAMAGED_GUESS = 0.8
_DAMAGED_PAIRS = 0.5
"""How much less likely a guess is if it takes the text for damaged. By pairs of bytes, text in
another encoding has often little damage."""

_ISO_2022_JP = "iso2022_jp"
_WIDER = {"gbk": "gb18030", "euc_jp": "euc_jis_2004"}
"""Codecs that read what their namesakes in the Encoding Standard read, and Python's do not."""

_JIS = re.compile(rb"\x1b\$[@B]([^\x1b]*)(?:\x1b\([BJ])?")
_HIGH = bytes(byte | 0x80 if 0x20 < byte < 0x7F else byte for byte in range(256))

_SAMPLE_BYTES = 1 << 16
_CHARACTER_END = re.compile(rb"[\x00-\x7f]")
"""A byte that ends a character in all encodings, alone or after another one."""

_PIECE_BYTES = 1 << 20
_GOOD_TO_BAD = 10
"""A text with more than this many special characters for every damaged one is in its encoding."""

_CHARACTERS_TO_BAD = 200
"""How many characters a text has for each damaged one, if it has several."""

_CONTINUATIONS = bytes(range(0x80, 0xC0))
_WORD_ENDS = (
    b"\x85\x91\x92\x93\x94\x96\x97\xa0\xab\xb0\xbb"  # signs that follow a word in Windows
    b"\xa3\xa4\xa6\xa7\xad"  # letters of KOI8 that are apart from the others
    b"\xa1\xa4\xa5"  # beginnings of kana in EUC-JP
)

_ASCII = re.compile(r"[\x00-\x7f]+")
_NULS = re.compile(rb"\0+")
_TEXT_BYTES = bytes({*range(256)} - {*range(7), *range(14, 26), *range(28, 32), 127})
"""The bytes of text, with controls for printers and terminals, and the end of a file of DOS."""

_CONTROLS = bytes({*range(32)} - {*b"\t\n\r"})

_FEW_CONTROLS = 4
_BYTES_TO_FEW = 8
_BYTES_TO_CONTROL = 100
"""How many bytes a text has for each control byte, where these are few and where they are more."""

_SHORT_UNITS = 32
"""The units of 16 bits from which a text may be UTF-16 although most of them have no NUL."""

_GOOD_TO_STRANGE = 20
"""A text in UTF-16 has at least this many characters for each that is none of a text."""


class Decoded(NamedTuple):
    """The text of a file. Each of the ``damaged`` places, which no character could be read from, is
    U+FFFD."""

    text: str
    damaged: int = 0

    @property
    def unread(self) -> dict[str, int]:
        """Return the counts of the file for a report."""
        return {"damaged characters": self.damaged} if self.damaged else {}


def decoded(data: bytes, where: str, declared: str = "") -> Decoded:
    """Decode a whole file, without its byte order mark, and with blanks in place of NUL.

    ``declared`` is the encoding that the file itself names, if any, by a label of the WHATWG
    Encoding Standard. A byte order mark outranks it. So does the content if it cannot be in it, but
    for a few damaged characters, which are replaced. Raises SourceError that names ``where`` if the
    data is binary, or has much damage, or fits no encoding.
    """
    encoding = mark_encoding(data)
    if not encoding and b"\0" in data:
        encoding = _encoding_with_nul(data, where)
        data = data if encoding else data.replace(b"\0", b" ")
    if encoding:
        read = _read(data, encoding)
        if not _is_hardly(read):
            raise _damaged(encoding, where)
        return read._replace(text=read.text.replace("\0", " "))
    encoding = _codec(declared)
    for strict in (encoding, _ISO_2022_JP if _JIS.search(data) else "", "utf-8"):
        if strict and (text := _in_codec(data, strict, "strict")) is not None:
            return Decoded(text)
    if _is_damaged_utf_8(data):
        return _read(data, "utf-8")
    sample = _sample(data)
    if encoding and _is_mostly(_read(sample, encoding)):
        return _read(data, encoding)
    for encoding in _guesses(sample, where):
        if _is_hardly(read := _read(data, encoding)):
            return read
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
    encoding, before = "", b""
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
            data = before + piece + stream.read(_PIECE_BYTES)
            encoding = "utf-8" if _is_damaged_utf_8(data) else _guesses(_sample(data), where)[0]
        else:
            encoding = "" if piece else "utf-8"
            before = piece[-_SAMPLE_BYTES:].lstrip(_CONTINUATIONS)
    stream.seek(0)
    return encoding


def _encoding_with_nul(data: bytes, where: str, offset: int = 0) -> str:
    """Return the codec of data in which NUL occurs. It is a codec of UTF-16, or an empty text if
    NUL stands for a blank. ``offset`` counts the bytes before it. Raises SourceError for binary
    data."""
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
    """Return the codec of UTF-16 without a mark, or an empty text for other data. UTF-16 has other
    bytes at even places than at odd ones, among them NUL."""
    even, odd = (Counter(sample[first::2]) for first in (0, 1))
    nuls, units = max(even[0], odd[0]), even.total()
    is_short = units < _SHORT_UNITS and 2 * nuls < units
    if is_short or 2 * (even - odd).total() < units or even[0] == odd[0]:
        return ""
    codec = "utf-16-le" if odd[0] > even[0] else "utf-16-be"
    text = sample.decode(codec, "replace")
    good = sum((sign.isprintable() or sign.isspace()) and sign != "\ufffd" for sign in text)
    return codec if good >= _GOOD_TO_STRANGE * (len(text) - good) else ""


def _is_damaged_utf_8(data: bytes) -> bool:
    """Return whether text is UTF-8 but for damage. Most of its special characters are then good. Or
    as many are good as are damaged, and these are one in 200 characters or a single one."""
    read = _read(data, "utf-8")
    special = Counter(_ASCII.sub("", read.text)).items()
    good = sum(number for character, number in special if not _is_accident(character))
    return _is_mostly(read) or (good >= max(1, read.damaged) and _is_hardly(read))


def _is_accident(character: str) -> bool:
    """Return whether the bytes of a character in UTF-8 are likely in another encoding: U+FFFD, or a
    letter and a byte that may follow it."""
    first, *others = character.encode()
    is_letter = first > 0xC5 and first != 0xE2  # which begins quotation marks, dashes and signs
    return character == "\ufffd" or (is_letter and not bytes(others).strip(_WORD_ENDS))


def _is_mostly(read: Decoded) -> bool:
    """Return whether text is in an encoding in which it is damaged in few places. In another one,
    every special character would be wrong."""
    return len(_ASCII.sub("", read.text)) > (_GOOD_TO_BAD + 1) * read.damaged


def _is_hardly(read: Decoded) -> bool:
    return read.damaged <= max(1, len(read.text) // _CHARACTERS_TO_BAD)


def _guesses(sample: bytes, where: str) -> list[str]:
    """Return the possible encodings of text that is not UTF-8, most likely first.

    One in which few characters are damaged is possible as well: it is judged without them.
    """
    from chardet import detect_all

    if len(sample.translate(None, _TEXT_BYTES)) * _BYTES_TO_CONTROL > len(sample):
        raise _undecodable(where)
    alike: dict[bytes, list[str]] = {}
    others = _WITHOUT_C1 if sample.translate(None, _C1) == sample else _WITH_C1
    for name in (*_CANDIDATES, *others):
        if _is_hardly(read := _read(sample, name)):
            kana = _KANA.findall(read.text) if name in _JAPANESE else ()
            if len(set(kana)) >= _KINDS_OF_KANA and 2 * len(kana) >= len(_ASCII.sub("", read.text)):
                return [name]
            good = read.text.replace("\ufffd", "") if read.damaged else ""
            alike.setdefault(good.encode(name, "ignore") or sample, []).append(name)
    scores = {name: 0.0 for names in alike.values() for name in names}
    for whole, names in alike.items():
        for guess in detect_all(
            b"\n" + whole.translate(None, _CONTROLS),  # never begins like a binary format
            ignore_threshold=True,
            compat_names=False,
            include_encodings=["ascii", *names],
            no_match_encoding="ascii",
        ):
            name = guess["encoding"]
            if name in scores:
                weight = _DAMAGED_PAIRS if name in _MULTI_BYTE else _DAMAGED_GUESS
                scores[name] = guess["confidence"] * (1 if whole is sample else weight)
    scores["koi8-u"] = max(scores["koi8-u"], scores.pop("koi8-r"))  # without letters of Ukrainian
    ranked = sorted(scores, key=lambda name: -scores[name])
    runs = _SPECIAL.findall(sample)
    is_latin = sum(map(len, runs)) <= max(2, _LATIN_SHARE * len(sample))
    if is_latin and 2 * len(_LONE.findall(sample)) > len(runs):
        ranked.sort(key=lambda name: name not in _LATIN and name not in _WITH_C1)
    if ranked[0] in _LATIN and scores.get(_WESTERN, 0) * _WESTERN_LEAD >= scores[ranked[0]]:
        ranked.insert(0, _WESTERN)
    return ranked


def _sample(data: bytes) -> bytes:
    """Return the first lines that are not ASCII, because only these reveal the encoding."""
    lines: list[bytes] = []
    size = 0
    for line in data.splitlines(keepends=True):
        if not line.isascii():
            room = _SAMPLE_BYTES - size
            end = _CHARACTER_END.search(line, room, 2 * room)
            lines.append(line[: end.end() if end else room])
            size += len(lines[-1])
            if size >= _SAMPLE_BYTES:
                break
    return b"".join(lines)


def _codec(label: str) -> str:
    """Return the codec for a label of the Encoding Standard, or an empty text for another label. A
    file that was searched for its label is not in UTF-16: UTF-8 stands for it."""
    import webencodings

    encoding = webencodings.lookup(label) if label else None
    if encoding is None or encoding.name in ("replacement", "x-user-defined"):
        return ""
    name = "utf-8" if encoding.name.startswith("utf-16") else encoding.codec_info.name
    return _WIDER.get(name, name)


def _read(data: bytes, encoding: str) -> Decoded:
    if (text := _in_codec(data, encoding, "strict")) is not None:
        return Decoded(text)
    text = _in_codec(data, encoding, "replace") or ""
    return Decoded(text, len(text) - len(_in_codec(data, encoding, "ignore") or ""))


def _in_codec(data: bytes, encoding: str, errors: str) -> str | None:
    if encoding == _ISO_2022_JP:  # whose codec lacks the circled numbers that Windows writes
        data, encoding = _JIS.sub(_as_euc, data), "euc_jis_2004"
    try:
        return data.decode(encoding, errors)
    except UnicodeDecodeError:
        return None


def _as_euc(section: re.Match[bytes]) -> bytes:
    return section[1].translate(_HIGH)


def _damaged(encoding: str, where: str) -> SourceError:
    name = encoding.removesuffix("-sig").upper()
    return SourceError(
        f"The file is damaged {name}.", where=where, do=f"Correct the bytes that are not {name}."
    )


def _undecodable(where: str) -> SourceError:
    return SourceError(
        "The encoding of the file is not recognised.",
        where=where,
        allowed="text in UTF-8 or another common encoding",
        do="Convert the file to UTF-8.",
    )

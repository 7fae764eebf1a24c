"""The words of a text exactly as Lucene's StandardAnalyzer finds them, without Lucene.

Terms and offsets are as Lucene 10.5's ``StandardAnalyzer()`` gives them: StandardTokenizer with
tokens of at most 255 UTF-16 units, then LowerCaseFilter, and no stop words. The tokenizer's grammar
and the table below are pinned to Unicode 12.1. So the terms do not depend on the version of Unicode
that this Python knows. Nothing is normalised.

One difference remains. A lone surrogate is never part of a word, here as in Lucene. But Java takes
a high surrogate and the low one after it for a character, and Python does not.

How it works: characters fall into some twenty classes (``_RUNS``), and a word is a pattern over
the string of their classes (``_word_patterns``). Most text has only letters, digits and
punctuation; for it a simpler pattern over the text itself is enough (``_plain_patterns``). The
first call takes some milliseconds longer, because it compiles the patterns.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from itertools import accumulate, pairwise
from typing import NamedTuple

from arag_search.corpus import is_unicode, nfc
from arag_search.errors import ArgumentError
from arag_search.query.limits import MIN_FUZZY_CHARACTERS, MIN_PREFIX_CHARACTERS

MAX_UNITS = 255  # a longer word is cut after so many UTF-16 units
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")  # two UTF-16 units each
_STRIDE = 64  # the general pattern is applied to at least this many characters at once


class Token(NamedTuple):
    """A word of a text: its lower-cased ``term`` and its offsets, in code points.

    ``start`` is the offset of its first character in the original text, ``end`` the offset after
    its last; ``term`` has ``end - start`` characters.
    """

    term: str
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """Return the words of ``text`` in order, with offsets; an index in the list is a position.

    Any string is accepted, lone surrogates included. O(len(text)).
    """
    low = fold(text)
    plain, special = _plain_patterns()
    out: list[Token] = []
    for start, end, is_plain in _stretches(low, special):
        if is_plain:
            parts = plain.split(low[start:end])  # between words, word, between words, word, …
            words = parts[1::2]
            if len(max(words, key=len, default="")) <= MAX_UNITS:
                at = list(accumulate(map(len, parts), initial=start))
                out += map(Token._make, zip(words, at[1:-1:2], at[2::2], strict=True))
                continue
        out += [Token(low[s:e], s, e) for s, e in _spans(text, start, end)]
    return out


class Places(NamedTuple):
    """The tokens of a text, as columns."""

    terms: list[str]
    starts: list[int]
    ends: list[int]


def token_columns(text: str) -> Places:
    """Return ``tokens(text)`` as columns, in less time for a plain text. O(len(text))."""
    low = fold(text)
    plain, special = _plain_patterns()
    if not special.search(low):
        parts = plain.split(low)
        words = parts[1::2]
        if len(low) <= MAX_UNITS or len(max(words, key=len, default="")) <= MAX_UNITS:
            at = list(accumulate(map(len, parts)))
            return Places(words, at[:-1:2], at[1::2])
    rows = tokens(text)
    return Places(
        [row.term for row in rows], [row.start for row in rows], [row.end for row in rows]
    )


def terms(text: str) -> list[str]:
    """Return only the terms of ``tokens(text)``, in less time for a plain text. O(len(text))."""
    low = fold(text)
    if len(low) <= MAX_UNITS and low.isascii() and low.isalnum():
        return [low]
    plain, special = _plain_patterns()
    if not special.search(low):
        words: list[str] = plain.findall(low)
        if len(low) <= MAX_UNITS or len(max(words, key=len, default="")) <= MAX_UNITS:
            return words
    return [token.term for token in tokens(text)]


def fold(text: str) -> str:
    """Return ``text`` in lower case, character by character, as the analyser does; same length.

    As in Java's ``Character.toLowerCase``, ``İ`` becomes ``i``, and ``Σ`` becomes ``σ`` even at the
    end of a word. Letters introduced by Unicode 15 or later stay as they are if this Python does
    not know them; no term holds them.
    """
    if not text.isascii():  # the two characters that str.lower() does not convert one to one
        text = text.replace("İ", "i").replace("Σ", "σ")
    return text.lower()


def _stretches(low: str, special: re.Pattern[str]) -> Iterator[tuple[int, int, bool]]:
    """Yield ``low`` cut at spaces, which no word holds: (start, end, whether all is plain)."""
    start = 0
    match = special.search(low)
    while match:
        at = match.start()
        left = low.rfind(" ", start, at) + 1 or start
        right = low.find(" ", at + _STRIDE)
        if right < 0:
            right = len(low)
        if left > start:
            yield start, left, True
        yield left, right, False
        start = right
        match = special.search(low, start)
    if start < len(low):
        yield start, len(low), True


@cache
def _plain_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a word of plain folded text (its only group), and of a special one.

    A plain character is in the ranges below, which the Latin, Greek and Cyrillic scripts use. It
    never joins the character before it, and is no underscore, emoji or Hebrew letter. All other
    characters are special.
    """
    sets: dict[str, str] = {}
    classes = _classes()
    for (first, after), letter in zip(pairwise(classes.starts), classes.letters, strict=False):
        for low, high in ((0, 0x530), (0x1E00, 0x2300)):
            if max(first, low) < min(after, high):
                begin, end = chr(max(first, low)), chr(min(after, high) - 1)
                sets[letter] = sets.get(letter, "") + f"{re.escape(begin)}-{re.escape(end)}"
    a, n, both, quote = sets["A"], sets["N"], sets["B"], sets["Q"]
    mid_letter, mid_number = both + quote + sets["L"], both + quote + sets["P"]
    word = (
        rf"([{a}{n}]++(?:[{mid_letter}{mid_number}]"
        rf"(?:(?<=[{a}][{mid_letter}])(?=[{a}])|(?<=[{n}][{mid_number}])(?=[{n}]))"
        rf"[{a}{n}]++){{0,{MAX_UNITS}}})"
    )
    plain = "".join(sets[letter] for letter in "ANBQLPOD#")
    return re.compile(word), re.compile(f"[^{plain}]")


def _spans(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return start and end of every word in ``text[start:end]``, a stretch between spaces."""
    word, beginning = _word_patterns()
    classes = text[start:end].translate(_classes())
    out: list[tuple[int, int]] = []
    at, size = 0, len(classes)
    while at < size:
        too_long = at
        for match in word.finditer(classes, at):
            s, e = match.span()
            if e - s > MAX_UNITS // 2 and e > _cut(text, start + s, end) - start:
                at, too_long = s, e
                break
            out.append((start + s, start + e))
        else:
            break
        while at < too_long:  # as if the text ended where the scanner's buffer does
            match = beginning.search(classes, at)
            if not match:
                return out
            at = match.start()
            match = word.match(classes, at, _cut(text, start + at, end) - start)
            if match:
                out.append((start + at, start + match.end()))
            at = match.end() if match else at + 1
    return out


def _cut(text: str, start: int, end: int) -> int:
    """Return where, up to ``end``, the characters from ``start`` on stop fitting ``MAX_UNITS``."""
    end = min(end, start + MAX_UNITS)
    while (excess := end - start + len(_ASTRAL.findall(text, start, end)) - MAX_UNITS) > 0:
        end -= (excess + 1) // 2
    return end


@cache
def _word_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns over classes: the longest word at an offset, and what can begin a word.

    They are the word break rules of UAX #29 as Lucene's grammar has them. No part can be read in
    two ways. Repetitions are bounded, since a word longer than the scanner's buffer is cut anyway.
    So a match is a whole word or longer than the buffer, and takes little time and memory.
    """
    most, some = f"{{0,{MAX_UNITS}}}", f"{{1,{MAX_UNITS}}}"
    x = "[XVZMCTtFG]*+"  # what joins the character before it (rule WB4)
    # Letters and digits. A mark in the middle holds letters or digits together, a connector (U)
    # everything but a run of connectors alone; katakana joins only itself and connectors. A quote
    # stays after a Hebrew letter, and a double quote between two.
    hebrew = f"H{x}(?:Q{x}|D{x}H{x})"
    letter, digit = f"[AHJ]{x}(?:[LBQ]{x}[AHJ]{x}){most}", f"N{x}(?:[PBQ]{x}N{x}){most}"
    part = f"(?:{hebrew}|{letter}|{digit})"
    body = f"(?:(?:K{x}){some}|{part}{some})"
    lead = f"(?=[UXVZMCTtFG]{some}+[AHJNK])(?:U{x})+"
    letters = f"(?:{lead})?{body}(?:(?:U{x}){some}{body}?){most}"
    # Emoji, which a ZWJ links. In a sequence, y is what joins the character before it: the
    # variation selectors (F, G) are apart from it.
    y = "[XVZMCTt]*+"
    join = "(?:(?<=Z)|Z+)"
    tone = f"(?<=F)ZM{y}"
    link = f"(?:{join}[EJ]{y}F?|{tone})"
    emoji = f"(?:Z{most}+[EJ]{y}F?|M{y})(?:(?<=F)T+t|{link}{most})"
    # A letter that is an emoji as well begins the longer of the two. Only a plain emoji linked to
    # it is beyond what its letters would take.
    letter_emoji = f"J{y}F?(?:{join}J{y}F?|{tone}){most}{join}E{y}F?{link}{most}"
    keycap = f"\\#(?:{y}FC{y}|[XVZMTt]*+C{y})"
    word = (
        "[AN]++(?![^O])"  # most words, recognised by the character that follows
        f"|{letter_emoji}|{letters}"
        f"|[SV]{x[:1]}SV{x[1:]}"  # South-East Asian: the whole run
        f"|[IY]{x}|{emoji}|R{x}R{x}|{keycap}"
    )
    return re.compile(word), re.compile("[AHJNKUSVIYEMZR#]")


class _Classes(dict[int, str]):
    """The class of every code point, looked up in ``_RUNS`` at its first use."""

    def __init__(self) -> None:
        super().__init__()
        runs = re.findall(r"(\D)(\d*)", _RUNS.replace("\n", ""))
        self.letters = [letter for letter, _ in runs] + ["O"]
        self.starts = list(accumulate((int(n or 1) for _, n in runs), initial=0))

    def __missing__(self, code: int) -> str:
        letter = self[code] = self.letters[bisect_right(self.starts, code) - 1]
        return letter


@cache
def _classes() -> _Classes:
    return _Classes()


# The class of every code point from U+0000 on: a letter for the class, then how many code points in
# a row have it (1 is left out). After the last run all is O. Read off the character map of the
# tokenizer in Lucene 10.5; the tests compare the ends of every run with Lucene. What Unicode 12.1
# says of a character decides, in this order (WB: Word_Break, LB: Line_Break):
#   # "#" and "*", which a keycap makes emoji    C U+20E3, the keycap    Z U+200D, the joiner
#   F U+FE0F and G U+FE0E, variation selectors    T U+E0020..E007E, tags, and t their end, U+E007F
#   R WB=Regional_Indicator    M Emoji_Modifier    E Extended_Pictographic or Emoji, and no digit
#     or WB=ALetter    J the same and WB=ALetter
#   A other WB=ALetter    H WB=Hebrew_Letter    N WB=Numeric or a full-width digit
#   K WB=Katakana    V LB=Complex_Context and WB=Extend    S other LB=Complex_Context
#   X other WB=Extend or Format    U WB=ExtendNumLet    L WB=MidLetter    P WB=MidNum
#   B WB=MidNumLet    Q U+0027    D U+0022    I Script=Han    Y Script=Hiragana    O no other
# U+FF10..FF19 are the full-width digits.
_RUNS = """
O34D#O3QO2#OPOBON10LPO5A26O4UOA26O46EAO2XEO6AOLO2AO5A23OA31OA480O6A7O7A20X112A5OA2O2A4PAO6ALA3OAOA20
OA83OA139OX7A166OA38O2AOA2OAOA41PO7X45OXOX2OX2OXO8H27O4H4ALO11X6O6P2O2X11OXO3A43X21N10ONPOA2XA99OAX8
OX6A2X2OX4A2N10A3O2AO15XAXA30X27O2A89X11AO14N10A33X9A2O2POAO2XO2A22X4AX9AX3AX5O18A25X3O4A11O53A21OA8
O21X49A54X3AX18AX7A10X2O2N10OA16X3OA8O2A2O2A22OA7OAO3A4O2XAX7O2X2O2X3AO8XO4A2OA3X2O2N10A2O10AOXO2X3O
A6O4A2O2A22OA7OA2OA2OA2O2XOX5O4X2O2X3O3XO7A4OAO7N10X2A3XO11X3OA9OA3OA22OA7OA2OA5O2XAX8OX3OX3O2AO15A2
X2O2N10O9AX6OX3OA8O2A2O2A22OA7OA2OA5O2XAX7O2X2O2X3O8X2O4A2OA3X2O2N10OAO16XAOA6O3A3OA4O3A2OAOA2O3A2O3
A3O3A12O4X5O3X3OX4O2AO6XO14N10O16X5A8OA3OA23OA16O3AX7OX3OX4O7X2OA3O5A2X2O2N10O16AX3OA8OA3OA23OA10OA5
O2XAX7OX3OX4O7X2O7AOA2X2O2N10OA2O13X4OA8OA3OA41X2AX7OX3OX4AO5A3XO7A3X2O2N10O10A6O2X2OA18O3A24OA9OAO2
A7O3XO4X6OXOX8O6N10O2X2O13S48VS2V7O5S7V8ON10O39S2OSOS5OS24OSOS10VS2V9SO2S5OSOV6O2N10O2S4O32AO23X2O6
N10O11XOXOXO4X2A8OA36O4X20OX2A5X11OX36O9XO57S43V20SN10O6S6V4S4V3SV3S2V7S3V4S13V12SVN10V4S2A38OAO5AO2
A43OA333OA4O2A7OAOA4O2A41OA4O2A33OA4O2A7OAOA4O2A15OA57OA4O2A67O2X3O32A16O16A86O2A6O3A620O2A17OA26O5
A75O3A11O7A13OA4X3O11A18X3O11A18X2O12A13OA3OX2O12S52V32O3SO4SVO2N10O33X4ON10O6A89O7A5X2A34XAO5A70O10
A31OX12O4X12O10N10S30O2S5O11S44O4S26O6N10SO3S2O32A23X5O4S53V10OV29O2XN10O6N10O6S14O2X15O65X5A47X17A7
O4N10O17X9O12X3A30X13A2N10A44X14O12A36X20O8N10O3A3N10A36O2A9O7A43O2A3O16X3OX21A4XA6XA2X3AO5A192X58O
X5A278O2A6O2A38O2A6O2A8OAOAOAOA31O2A53OA7OAO3A3OA7O3A4O2A6O4A13O5A3OA7O15XZX2O8B2O10BO2LO2X5UO12EO2
U2O3PO4EO10UO11X5OX10OAO13AO16A13O51X19CX13O17AO4AO2A10OAO3A5O4EOAOAOAOA4OA10JO2A4O5A5O4AO17A41O11E6
O15E2O367E2O12EO95EO70EO25E11O4E3O187A12JA39O192E2O10EO9EO58E4OE6OE12OE114O10E118O2E11OEOEO6EO3EO6E
O10E2O15EO2EO4EOEO4E3OEO11E5O45E3O9EO14EO14EO372E2O463E3O19E2O51EO4EO170A47OA47OA133O6A4X3A2O12A38OA
O5AO2A56O7AO15XA23O9A7OA7OA7OA7OA7OA7OA7OA7OX32O47AO80I26OI89O12I214O47AOIO25I9X6EK5O2I3A2EO3Y86O2X2
K2Y3K91OK4O5A43OA94O17A27O53K16O151EOEO54K47OK88O168I6582O74I20976O16A1165O67A46O2A269O3A16N10A2O20
A47X4OX10OA31X2A80X2O37A169O2A5O48A11XA3XA4XA23X5O24A52O12X2A50X18O10N10O6X18A6O3AOA2XN10A28X8O2A23
X13O12A29O3X4A47X14O14AN10O6S5VS10N10S5OA41X14O9A3XA8X2O2N10O6S27V3S50VSV3S2V2S5V2SVSO24S5A11X5O2A3
X2O10A6O2A6O2A6O9A7OA7OA56O8A115X8OX2O2N10O6A11172O12A23O4A49O8452I366O2I106O38A7O12A5O5HXH10OH13OH5
OHOH2OH2OH10A98O33A363O18A64O2A54O40A12O4X14GFPO2LPO11X16O3U2O24U3POBOPLO26A5OA135O2XO7BO4POBON10LP
O5A26O4UOA26O11K56X2A31O3A6O2A6O2A6O2A3O28X3O4A12OA26OA19OA2OA15O2A14O34A123O69A53O136XO130A29O3A49
O15XO31A32O13A30O5A38X5O5A30O2A36O4A8OA5O42A158O2N10O6A36O4A36O4A40O8A52O156A311O9A22O10A8O152A6O2AO
A44OA2O3AO2A23O10A23O9A31O65A19OA2O10A22O10A26O70A56O6A2O64AX3OX2O5X4A4OA3OA29O2X3O4XO32A29O3A29O35
A8OA28X2O25A54O10A22O10A19O13A18O110A73O55A51O13A51O13A36X4O8N10O454A29O10AO8A22X11O143A23O9X3A53X15
O31N10O15X4A45X11O2XO15XO2A25O7N10O6X3A36X14ON10O4AX2O9A35XO2AO9X3A48X14A4O4X4O3N10AOAO35A18OA25X12
O6XO65A7OAOA4OA15OA10O7A47X12O5N10O6X4OA8O2A2O2A22OA7OA2OA5OX2AX7O2X2O2X3O2AO6XO5A5X2O2X7O3X5O139A53
X18A4O5N10O4XAO32A48X20A2OAO8N10O166A47X7O2X9O23A4X2O34A48X17O3AO11N10O38A43X13AO7N10O54S27O2V15O4
N10S2O3SO192A44X15O101A64N10O21AO160A8O2A39X7O2X7AOAXO27AX10A40X7AX4O8XO8AX11A46X16O3AO34A57O263A9O
A37X8OX8AO15N10O24A30O2X22OX14O73A7OA2OA38X6O3XOX2OX7AXO8N10O6A6OA2OA32X5OX2OX5AO7N10O310A19X4O265
A922O102A111O17A196O2748A1071OX9O4039A583O8633A569O7A31ON10O102A30O2X5O11A48X7O9A4O12N10O9A21O5A19
O688A64O128A75O4XAX55O7X4A13O64A2OAO16412KY286O49Y3O17K4O2712A107O5A13O3A9O7A10O3X2OX4O5313X5O3X22O2
X7O30X4O148X3O443A85OA71OA2O2AO2A2O2A4OA12OAOA7OA65OA4O2A8OA7OA28OA4OA5OAO3A7OA340O2A25OA25OA31OA25O
A31OA25OA31OA25OA31OA25OA8O2N50O512X55O4X50O8XO14XO22X5OX15O1360X7OX17O2X7OX2OX5O213A45O3X7A7O2N10O4
AO369A44X4N10O1286A197O11X7O41A68X7AO4N10O1190A4OA27OA2OAO2AOA10OA4OAOAO6AO4AOAOAOA3OA2OAO2AOAOAOAOA
OA2OAO2A4OA7OA4OA4OAOA10OA17O5A3OA5OA17O324E256O13E3O31EA26O6A26O2E4J2A12J2A10O4EO2E10O18E57R26YE15
O10EO20EO2E9OE4O9E434M5E318O8E266O48E128O116E12O85E43O12E4O56E8O10E6O40E8O30E82O12E47OE10OE1719O2
I42711O41I4149O11I222O2I5762O14I7473O3103I542O722403XO30T95tO128X240
"""


# Scripts whose words have no blanks between them


_UNIT = re.compile("[SVK][VXZMCTtFG]*+|[^SVK]+")
_HANGUL = re.compile("[가-힣]+|[^가-힣]+")


def is_unspaced(term: str) -> bool:
    """Return whether a term is of a script without blanks, such as Chinese or Thai."""
    return term[0].translate(_classes()) in "IYSV"


def units(term: str) -> list[tuple[int, int]]:
    """Return where each word within one of the analyser starts and ends; an empty list for most.

    Each character of katakana, Thai, Lao, Khmer, Burmese and scripts like these is a word with its
    marks. Hangul is apart from letters and digits beside it (API서버).
    """
    classes = term.translate(_classes())
    if classes[0] in "SVK":
        return [unit.span() for unit in _UNIT.finditer(classes)]
    return [part.span() for part in _HANGUL.finditer(term)] if _SYLLABLE.search(term) else []


# The spellings of a text in a query: the tokens that it stands for
#
# Searched as it is written, a text with apostrophes stands for its tokens with straight ones, with
# typographic ones, and with those that were typed.


Spellings = tuple[tuple[str, ...], ...]
"""The tokens of a text in each of its spellings."""

SEARCHED_APOSTROPHES = ("\u0027", "\u2019")
_APOSTROPHES = tuple(map(ord, SEARCHED_APOSTROPHES))
_SYLLABLE = re.compile("[가-힣]")
_ASCII_TOKEN = re.compile(r"[A-Za-z0-9]")


def checked_text(text: str) -> str:
    """Return a text in NFC. Raises ArgumentError for a lone surrogate."""
    if text.isascii():
        return text
    if not is_unicode(text):
        raise ArgumentError("A text with a lone surrogate.", allowed="Unicode characters")
    return nfc(text)


def spellings_of(text: str) -> Spellings:
    """Return the tokens of a text in each of its spellings; no spelling for a text without tokens.

    Raises ArgumentError for lone surrogates.
    """
    text = checked_text(text)
    if _is_one_token(text):
        return ((text.lower(),),)
    texts = [text]
    if has_apostrophes(text):
        texts = [
            *(text.translate(dict.fromkeys(_APOSTROPHES, sign)) for sign in SEARCHED_APOSTROPHES),
            text,
        ]
    return tuple(filter(None, dict.fromkeys(tuple(terms(spelled)) for spelled in texts)))


def letters_of(text: str) -> int:
    """Return the length of a prefix: its characters, of which a Korean syllable counts as two."""
    return len(text) + len(_SYLLABLE.findall(text))


def is_prefix(text: str) -> bool:
    """Return whether a ``*`` may follow the text: it is long enough, and exactly one token of a
    script with blanks."""
    if letters_of(text) < MIN_PREFIX_CHARACTERS:
        return False
    if _is_one_token(text):
        return True
    words = tokens(text)
    return len(words) == 1 and words[0][1:] == (0, len(text)) and not is_unspaced(words[0].term)


def is_fuzzy(text: str, edits: int) -> bool:
    """Return whether ``~edits`` may follow the text: it is long enough, and exactly one token."""
    return len(text) >= MIN_FUZZY_CHARACTERS[edits] and is_prefix(text)


def has_token(text: str) -> bool:
    """Return whether the analyser makes at least one token of the text."""
    return bool(_ASCII_TOKEN.search(text)) or bool(terms(nfc(text)))


def has_apostrophes(text: str) -> bool:
    """Return whether a text has an apostrophe, which may stand for two spellings."""
    straight, curly = SEARCHED_APOSTROPHES
    return straight in text or curly in text


def _is_one_token(text: str) -> bool:
    """Return whether a text is plainly one token, as most words are; False means unknown."""
    return text.isascii() and text.isalnum() and len(text) <= MAX_UNITS

"""Finding the ends of the sentences of a text.

``sentencex`` knows abbreviations, initials and quotations. But it treats an unbalanced quote or
parenthesis as the start of a quotation that may run for pages. Its time then grows faster than the
text. Therefore it gets one bounded window at a time. An implausibly long sentence is split again:
first with quotes and parentheses hidden, then at plain full stops and line ends.

Then the ends are corrected. No sentence ends inside a title or a parenthesis, before a lower-case
word, or at initials or abbreviations before a name. Nor does one end where no space follows the
period. ``sentencex`` does not separate sentences in Khmer, Thai and Lao. In Khmer they are cut at
its full stop; Thai and Lao have none, and are cut at spaces. Most ends are obvious, and one
comparison settles these; only the others are examined closely.
"""

from __future__ import annotations

import functools
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, cast

import sentencex

ENCLOSED_CHARACTERS = 300
"""The longest parenthesis that keeps a sentence together; a longer one is assumed to be
unbalanced."""

MAX_OPEN = 16
"""Text with more brackets that are not closed has no parentheses, but is code or rows of signs."""

WINDOW_CHARACTERS = 4_000
"""How much text is examined at once; no sentence is longer."""

LONG_CHARACTERS = 600
"""A longer sentence is assumed to be several sentences that were not separated, and is not joined
with the next."""

CLAUSE_CHARACTERS = 80
"""The length from which a sentence in a script without marks is cut at the next blank."""

_MARK = ".!?…。！？｡．‥।॥؟۔።፧፨။។"
_MARKS_WITHOUT_BLANK = frozenset("。！？｡．…‥।॥؟۔።፧፨။។")
_CLOSING = "\"'”’»)\\]」』）】》〉"
_OPENING = "\"'“‘«„‚(\\[¿¡「『（【《〈"

_PLAIN = re.compile(
    r"(?:(?:[a-z \d](?!geb)[a-z]{3}|.\d{3}|\d{3}s|.{3}[)\]\"])[.!?]|.{3}[.!?][)\"]) [A-Z]",
    re.DOTALL,
)
_LAST = re.compile(
    rf"(?:^|.*[\s{_OPENING}])([^\s]*?)([{_MARK}]+)((?:\[\d+\]|[\s{_CLOSING}])*)\Z", re.DOTALL
)
_NEXT = re.compile(rf"[{_OPENING}\s]*([^\W\d_]*)(\d*)([.)]?)")
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n|\u2029")
_LABEL = re.compile(r"\(\s*\w{1,3}\s*\)")
_REFERENCE = re.compile(r"\[[\s\d,–-]{1,20}\]\s*(\S)")
_REMARK = re.compile(rf"\(([^()]{{1,{ENCLOSED_CHARACTERS}}})\)\s*(\S)")
_BRACKETS = re.compile(r"[()\[\]（）「」『』]")
_OPENING_BRACKETS = re.compile(r"[(\[（「『]")
_NESTED = re.compile(r"\([^()]*\(")
_CLOSING_OF = {"(": ")", "[": "]", "（": "）", "「": "」", "『": "』"}
_DISAMBIGUATION = re.compile(r"\s*\([^()]*\)\s*\Z")
_MARK_IN_TITLE = re.compile(rf"[{_MARK}]\W*\s")
_NOTE = re.compile(r"(?:\[[^\[\]\n]{1,40}\])+\s*")
_FREQUENT_UNMARKED = "านານ។៕"
"""Letters of which any text in Thai or Lao has at least one; the text is first searched for
these."""

_UNMARKED_END = re.compile(
    rf"[\u0e00-\u0eff](?:[^\S\n]+(?=[\u0e00-\u0eff])|[^\S\n]*\n\s*)|[។៕][\s{_CLOSING}]*"
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BEFORE_NAME = _words(
    "Dr Prof Mr Mrs Ms Mx Messrs Mme Mmes Mlle Mgr Sr Sra Sres Srta Dn Dña Fr Rev Hon Gov Sen Rep"
    " Gen Col Maj Capt Cdr Lt Sgt Cpl St Ste Hl Ing Dipl Hr Fn av Dott Sig Avv EE им ул просп пр"
    " проф акад тов см св ср архиеп еп митр ген адм Проф Акад Им См geb"
)
"""Abbreviations that a name or another capital follows, in the languages of Europe."""

_MAY_END = _words("St Ste Sr Fr av EE ул просп пр св ср")
"""Those among them that also end sentences."""

_BEFORE_NUMBER = _words(
    "No Nos Nr Nrs Vol Vols Bd Bde Fig Figs Ch Sec Art Op Opp Abb Tab Kap Abs pp fig figs vol vols"
    " nr nos núm pág págs fasc approx ca cf geb gest um circa ungef стр рис табл гл ок No № §"
    " Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec p S c b d n r fl т л art op"
)
"""Abbreviations that a number follows."""

_AFTER_ORDINAL = _words(
    "Januar Jänner Februar März April Mai Juni Juli August September Oktober November Dezember"
    " Jahrhundert Jahrhunderts Jh Jhd Jahrtausend Klasse Auflage Etage Stock Platz Bezirk"
)
"""German nouns that follow an ordinal number, which is written with a period."""

_STARTERS = _words(
    "The A An He She It They We You I This That These Those There In On At From During After Before"
    " When While As His Her Its Their My Our But And Or So If Then However Although For With By To"
    " Of Born Between Until Under Following Despite Because Due Among According Other Another"
    " Several Two Three First Second Only Such Once Where Here Today Now Even What Who Why"
    " How No Not Some Many Most All Each Since Later Also"
    " Der Die Das Er Sie Es Wir Ein Eine Im Am Nach Und Aber Dann Seit Sein Seine Ihre"
    " Le La Les L Il Elle Ils Elles Un Une En Dans Et Mais Ce Cette Son Sa Ses"
    " El Los Las Una Su Sus Pero Y"
    " Он Она Оно Они Это Этот Эта В Во На И Но По С У После Его Её А Я Мы"
)
"""Words that begin sentences, but not names."""

_ROMAN = frozenset("IVX")
"""Letters that are more often the number of a king or a war than an initial; ``sentencex`` judges
these."""

_STRAY = frozenset("”’»)].!?,;:")
_BULLETS = frozenset("bcdfghjklmnpqrtvwxz")


def _joined(text: str, ends: list[int], title: str) -> list[int]:
    """Leave out the ends that are none. A sentence longer than LONG_CHARACTERS is not joined with
    the next, so that wrong joins cannot accumulate."""
    # In a short text, sentencex keeps plain parentheses together, but not those that hold others.
    has_brackets = (
        len(text) > LONG_CHARACTERS
        or "「" in text
        or "『" in text
        or (text.count("(") > 1 and bool(_NESTED.search(text)))
    )
    may_be_within = len(title) <= LONG_CHARACTERS and _MARK_IN_TITLE.search(title)
    name = _DISAMBIGUATION.sub("", title) if may_be_within else ""
    name = name.lstrip(_MARK + " ")
    judge: _Judge | None = None
    is_plain = _PLAIN.match
    right: list[int] = []
    start = 0
    for end, following in pairwise(ends):
        plain = is_plain(text, end - 6)
        is_clear = plain and not (name or (has_brackets and _may_be_inside(text, start, end)))
        is_long = end - start > LONG_CHARACTERS or following - start > WINDOW_CHARACTERS
        if not is_clear and not is_long:
            if judge is None:
                judge = _Judge(text, name, has_brackets)
            if plain:
                is_end = not judge.is_inside(start, end)
            else:
                end = _placed(text, start, end, following)
                is_end = judge.is_end(start, end)
            if not is_end:
                continue
        right.append(end)
        start = end
    right.append(ends[-1])
    return right


def _may_be_inside(text: str, start: int, end: int) -> bool:
    """Return False only where each parenthesis since ``start`` is closed before ``end``."""
    opened = text.count("(", start, end)
    if opened > 1 or opened != text.count(")", start, end):
        return True
    return opened == 1 and text.find("(", start) > text.find(")", start)


def _placed(text: str, start: int, end: int, following: int) -> int:
    """Return the place of an end, which may be on the wrong side of a straight quote or a note."""
    if text[end - 1] == '"' and end - 2 > start and text[end - 2].isspace():
        return end if text[end].isspace() else end - 1
    if text[end - 1].isspace():
        return end
    if text[end] == "[":
        note = _NOTE.match(text, end)
        return note.end() if note and note.end() < following else end
    if text[end] == '"':
        after = end + 1
        while after < following and text[after].isspace():
            after += 1
        if end + 1 < after < following and text.count('"', start, end) % 2:
            return after
    return end


class _Judge:
    """A judge of the ends of one text, which must be called with the ends in order.

    ``name`` is the title if a sentence could end inside it, else empty. With ``has_brackets``, no
    sentence ends inside brackets.
    """

    def __init__(self, text: str, name: str, has_brackets: bool) -> None:
        self._text = text
        self._has_brackets = has_brackets
        whole_words = rf"(?<![^\W_]){re.escape(name)}(?![^\W_])" if name else r"(?!)"
        self._names = deque(match.span() for match in re.finditer(whole_words, text))

    def is_inside(self, start: int, end: int) -> bool:
        """Return whether the end of a sentence is inside the title, or inside brackets."""
        while self._names and self._names[0][1] <= end:
            self._names.popleft()
        if self._names and self._names[0][0] < end:
            return True
        return self._has_brackets and _is_enclosed(self._text, start, end)

    def is_end(self, start: int, end: int) -> bool:
        """Return whether the sentence from ``start`` ends at ``end``."""
        text = self._text
        if self.is_inside(start, end):
            return False
        tail = text[max(start, end - 60) : end]
        last = _LAST.match(tail)
        if _BLANK_LINE.search(tail[len(tail.rstrip()) :]):
            return True
        if last is None:  # the end of a line or a window
            return text[end - 1].isspace()
        following = _NEXT.match(text, end)
        assert following is not None
        if not tail[-1].isspace():
            return not following[1].islower() and _ends_without_blank(last, text, end)
        if _is_label(text[start:end]):
            return "\n" in tail[len(tail.rstrip()) :]
        if _is_before_remark(last[2], text, end):
            return False
        word, number, after = following.groups()
        if word:
            return self._ends_before(word, after, last, following.end(1))
        if number:
            return last[1] not in _BEFORE_NUMBER or last[2] != "."
        return text[end] not in _STRAY or text.startswith("..", end)

    def _ends_before(self, word: str, after: str, last: re.Match[str], word_end: int) -> bool:
        """Return whether a sentence ends before this word; ``after`` is the period or parenthesis
        that follows it."""
        if word[0].islower():
            return (
                not word.islower()  # such as mRNA
                or (after == ")" and len(word) <= 3)  # the label of an item
                or self._text.startswith("://", word_end)
                or (after == "." and word == "www")
                or self._text[word_end : word_end + 1].isdecimal()
                or (word in _BULLETS and _is_before_capital(self._text, word_end))
                or not self.has_capitals
            )
        if last[2] != "." or last[3].strip():
            return True
        before = last[1]
        if before in _BEFORE_NAME:
            return before in _MAY_END and word in _STARTERS and not after
        if before.isdecimal() and len(before) <= 2:
            return word not in _AFTER_ORDINAL
        if _is_initial(before) and before not in _ROMAN:
            return word in _STARTERS and (after != "." or len(word) > 1)
        return True

    @functools.cached_property
    def has_capitals(self) -> bool:
        """Whether the text is written with capitals, so that a lower-case word begins no
        sentence."""
        return not self._text.islower()


def _is_before_capital(text: str, at: int) -> bool:
    return text[at : at + 1] == " " and text[at + 1 : at + 2].isupper()


def _is_initial(word: str) -> bool:
    letters = re.split(r"[.\-‐]+", word)
    return all(len(letter) == 1 and letter.isupper() for letter in letters)


def _is_label(sentence: str) -> bool:
    """Return whether a sentence is only the number of an item, such as "12. "."""
    return len(sentence) <= 8 and sentence.rstrip(" \n.)]").lstrip("([").isdecimal()


def _ends_without_blank(last: re.Match[str], text: str, end: int) -> bool:
    """Return whether a sentence ends where no white space follows its mark."""
    mark, closing, following = last[2][-1], last[3], text[end]
    if any(map(str.isspace, closing)):
        return True
    if mark not in _MARKS_WITHOUT_BLANK:
        return following == "<" or (following == '"' and text[end + 1 : end + 2].isspace())
    if mark == "．" and following.isdecimal():
        return False
    if mark == "…" and not closing:
        return False
    if closing:  # the words of a speaker, with the one who says them
        is_particle = "\u3041" <= following <= "\u309f"
        is_said = mark in "！？" and closing in "”’" and "\u4e00" <= following <= "\u9fff"
        return not is_particle and not is_said
    return True


def _is_before_remark(marks: str, text: str, end: int) -> bool:
    """Return whether a parenthesis follows after which the sentence continues, such as a year after
    a title."""
    if text[end] == "[":
        reference = _REFERENCE.match(text, end)
        return reference is not None and reference[1].islower()
    if text[end] != "(" or _LABEL.match(text, end):
        return False
    is_title = marks[-1] in "!?"
    inside = text[end + 1 : end + 3].strip()
    if is_title and (inside[:1].isdecimal() or inside[:1].islower()):
        return True
    remark = _REMARK.match(text, end)
    if remark is None:
        return False
    return remark[2].islower() or remark[2] in (",;." if is_title else ",;")


def _is_enclosed(text: str, start: int, end: int) -> bool:
    """Return whether the end of a sentence is inside balanced brackets within ENCLOSED_CHARACTERS
    and one paragraph."""
    begin = max(start, end - ENCLOSED_CHARACTERS)
    if not _OPENING_BRACKETS.search(text, begin, end):  # most
        return False
    opened: list[tuple[int, str]] = []
    for match in _BRACKETS.finditer(text, begin, end + ENCLOSED_CHARACTERS):
        bracket, place = match[0], match.start()
        if place >= end and not (opened and opened[0][0] < end):
            return False
        if bracket in _CLOSING_OF:
            opened.append((place, _CLOSING_OF[bracket]))
            if len(opened) > MAX_OPEN:
                return False
        elif opened and opened[-1][1] == bracket:
            begin, _ = opened.pop()
            if begin < end <= place <= begin + ENCLOSED_CHARACTERS:
                return not _BLANK_LINE.search(text, begin, place)
    return False


def _cut(text: str, ends: Sequence[int]) -> Iterator[int]:
    """Yield the ends, and ends inside sentences of scripts that ``sentencex`` does not separate."""
    start = 0
    for end in ends:
        for match in _UNMARKED_END.finditer(text, start, end):
            is_blank = "\n" not in match[0] and match[0][0] not in "។៕"
            if match.end() == end or (is_blank and match.end() - start < CLAUSE_CHARACTERS):
                continue
            if not is_blank or text.count("(", start, match.end()) == text.count(
                ")", start, match.end()
            ):
                yield match.end()
                start = match.end()
        yield end
        start = end


_get_boundaries = cast(
    "Callable[[str, str], list[dict[str, Any]]]", cast("Any", sentencex).get_sentence_boundaries
)
_WIDE_BLANK = re.compile(r"[^\S\x00-\x7f]")
_ENCLOSING = re.compile(r"[()\[\]{}\"'“”„‟«»‹›‘’‚‛]")
_PLAIN_END = re.compile(r"[.!?…][)\]\"'”’»]*\s+(?=[^\Wa-z_]|[\"'“‘«(\[])|\n+")


def sentence_ends(text: str, title: str = "") -> list[int]:
    """Return the offsets after each sentence of ``text``, in code points; the last is
    ``len(text)``.

    ``title`` is the title of the document: no sentence ends inside it.

    The sentences partition the text: white space belongs to the sentence before it (at the
    beginning to the first). An empty text has no ends. Time is linear in the length.
    """
    offsets = _ends_of(text) if len(text) <= WINDOW_CHARACTERS else list(_windowed(text))
    ends = _joined_blanks(text, offsets)
    if len(ends) > 1:
        ends = _joined(text, ends, title)
    if text.isascii() or not any(letter in text for letter in _FREQUENT_UNMARKED):
        return ends
    return list(_cut(text, ends))


def _windowed(text: str) -> Iterator[int]:
    """Yield ends window by window. The last sentence of a window may be cut off, so it is read
    again with the next window."""
    start = 0
    while len(text) - start > WINDOW_CHARACTERS:
        window = text[start : start + WINDOW_CHARACTERS]
        ends = _ends_of(window)[:-1]
        if not ends:
            blank = max(window.rfind(" "), window.rfind("\n"))
            ends = [blank + 1 if blank > 0 else WINDOW_CHARACTERS]
        for end in ends:
            yield start + end
        start += ends[-1]
    for end in _ends_of(text[start:]):
        yield start + end


def _ends_of(text: str) -> list[int]:
    """Return the ends within one window; split overlong sentences again."""
    ends = _boundaries(text)
    if len(text) <= LONG_CHARACTERS:
        return ends
    refined: list[int] = []
    start = 0
    for end in ends:
        if end - start > LONG_CHARACTERS:
            refined.extend(start + offset for offset in _split_long(text[start:end]))
        else:
            refined.append(end)
        start = end
    return refined


def _split_long(text: str) -> Iterator[int]:
    start = 0
    for end in _boundaries(_ENCLOSING.sub("-", text)):
        if end - start > LONG_CHARACTERS:
            yield from (start + match.end() for match in _PLAIN_END.finditer(text[start : end - 1]))
        yield end
        start = end


def _boundaries(text: str) -> list[int]:
    # sentencex fails on multi-byte white space after an initial, so replace it with plain spaces.
    shown = text if text.isascii() else _WIDE_BLANK.sub(" ", text)
    return [boundary["end_index"] for boundary in _get_boundaries("en", shown)]


def _joined_blanks(text: str, ends: list[int]) -> list[int]:
    """Move each end to after the white space that follows it, and drop ends within white space."""
    joined: list[int] = []
    for end in ends:
        if joined and end <= joined[-1]:
            continue
        while end < len(text) and text[end].isspace():
            end += 1
        joined.append(end)
    if len(joined) > 1 and text[: joined[0]].isspace():
        del joined[0]
    return joined

"""Corrections of the ends that ``sentencex`` finds: the rule ``sentencex-joined``.

No sentence ends inside a title or a parenthesis, before a lower-case word, at initials or
abbreviations before a name, or where no space follows the point. Sentences that are not separated
otherwise are cut in Khmer at their mark, and in Thai and Lao, which have none, at blanks. Most ends
are plain, and one comparison settles these; only the others are looked at closely.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

ENCLOSED_CHARACTERS = 300
"""The longest parenthesis that holds a sentence together; a longer one is taken for unbalanced."""

JOINED_CHARACTERS = 600
"""A sentence of this length is not joined with the next."""

MAX_CHARACTERS = 4_000
"""No sentence becomes longer by being joined."""

CLAUSE_CHARACTERS = 80
"""The length from which a sentence in a script without marks is cut at the next blank."""

_MARK = ".!?…。！？｡．‥।॥؟۔።፧፨။។"
_MARKS_WITHOUT_BLANK = frozenset("。！？｡．…‥।॥؟۔።፧፨။។")
_CLOSING = "\"'”’»)\\]」』）】》〉"
_OPENING = "\"'“‘«„‚(\\[¿¡「『（【《〈"

_PLAIN = re.compile(r"[^\W\d_]{5}\. ")
_LAST = re.compile(
    rf"(?:^|.*[\s{_OPENING}])([^\s]*?)([{_MARK}]+)((?:\[\d+\]|[\s{_CLOSING}])*)\Z", re.DOTALL
)
_NEXT = re.compile(rf"[{_OPENING}\s]*([^\W\d_]*)(\d*)([.)]?)")
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n|\u2029")
_LABEL = re.compile(r"\(\s*\w{1,3}\s*\)")
_REFERENCE = re.compile(r"\[[\s\d,–-]{1,20}\]\s*(\S)")
_REMARK = re.compile(rf"\(([^()]{{1,{ENCLOSED_CHARACTERS}}})\)\s*(\S)")
_BRACKETS = re.compile(r"[()\[\]（）「」『』]")
_CLOSING_OF = {"(": ")", "[": "]", "（": "）", "「": "」", "『": "』"}
_DISAMBIGUATION = re.compile(r"\s*\([^()]*\)\s*\Z")
_MARK_IN_TITLE = re.compile(rf"[{_MARK}]\W*\s")
_UNMARKED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff]")
_UNMARKED_END = re.compile(
    rf"[^\n]{{{CLAUSE_CHARACTERS}}}[^\s]*[^\S\n]+(?=[\u0e00-\u0eff])|\n\s*|[។៕][\s{_CLOSING}]*"
)

_BEFORE_NAME = frozenset(
    "Dr Prof Mr Mrs Ms Mx Messrs Mme Mmes Mlle Mgr Sr Sra Sres Srta Dn Dña Fr Rev Hon Gov Sen Rep"
    " Gen Col Maj Capt Cdr Lt Sgt Cpl St Ste Hl Ing Dipl Hr Fn Dott Sig Avv EE им ул просп пр проф"
    " акад тов см св ср архиеп еп митр ген адм Проф Акад Им См geb".split()
)
"""Abbreviations that a name or another capital follows, in the languages of Europe."""

_BEFORE_NUMBER = frozenset(
    "No Nos Nr Nrs Vol Vols Bd Bde Fig Figs Ch Sec Art Op Opp Abb Tab Kap Abs pp fig figs vol vols"
    " nr nos núm pág págs fasc approx ca cf geb gest um circa ungef стр рис табл гл ок No № § art op"
    " Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec p S c b d n r fl т л".split()
)
"""Abbreviations that a number follows."""

_AFTER_ORDINAL = frozenset(
    "Januar Jänner Februar März April Mai Juni Juli August September Oktober November Dezember"
    " Jahrhundert Jahrhunderts Jh Jhd Jahrtausend Klasse Auflage Etage Stock Platz Bezirk".split()
)
"""German nouns that follow an ordinal number, which has a point."""

_STARTERS = frozenset(
    "The A An He She It They We You I This That These Those There In On At From During After Before"
    " When While As His Her Its Their My Our But And Or So If Then However Although For With By To"
    " Of What Who Why How No Not Some Many Most All Both Each Its Since Later Also"
    " Der Die Das Er Sie Es Wir Ein Eine Im Am Nach Und Aber Dann Seit Sein Seine Ihre"
    " Le La Les L Il Elle Ils Elles Un Une En Dans Et Mais Ce Cette Son Sa Ses"
    " El Los Las Una Su Sus Pero Y"
    " Он Она Оно Они Это Этот Эта В Во На И Но По С У После Его Её А Я Мы".split()
)
"""Words that begin sentences and no names."""


def corrected(text: str, ends: Sequence[int], title: str) -> list[int]:
    """Return the ends of sentences after correction; ``ends`` are those of the rule ``sentencex``.

    ``title`` is the title of the document. A sentence longer than JOINED_CHARACTERS is not joined
    with the next, so that a wrong join cannot run on. Time is linear in the length of the text.
    """
    if len(ends) > 1:
        ends = list(_joined(text, ends, title))
    if text.isascii() or not _UNMARKED.search(text):
        return list(ends)
    return list(_cut(text, ends))


def _joined(text: str, ends: Sequence[int], title: str) -> Iterator[int]:
    """Yield the ends that are right, and at last the end of the text."""
    judge = _Judge(text, title)
    start = 0
    for end, following in pairwise(ends):
        if end - 7 >= start and _PLAIN.match(text, end - 7) and text[end].isupper():
            is_end = not judge.has_spans or not judge.is_inside(end)
        else:
            end = _before_opening(text, start, end)
            is_end = (
                end - start > JOINED_CHARACTERS
                or following - start > MAX_CHARACTERS
                or judge.is_end(start, end)
            )
        if is_end:
            yield end
            start = end
    yield ends[-1]


def _before_opening(text: str, start: int, end: int) -> int:
    """Return the end, moved before an opening quote that was taken for a closing one."""
    if text[end - 1] in "\"'“‘«(" and end - 2 > start and text[end - 2].isspace():
        return end if text[end].isspace() else end - 1
    return end


class _Judge:
    """The judge of the ends of one text. ``spans`` are its parentheses and the occurrences of its
    title, as pairs of offsets; no sentence ends inside them. Ends have to be asked in order."""

    def __init__(self, text: str, title: str) -> None:
        self.spans = [*_enclosed(text), *_titles(text, title)]
        self.spans.sort(reverse=True)
        self.has_spans = bool(self.spans)
        self._reach = 0
        self._text = text
        self._has_capitals: bool | None = None

    def is_inside(self, end: int) -> bool:
        """Return whether an offset is inside a parenthesis or a title."""
        while self.spans and self.spans[-1][0] < end:
            self._reach = max(self._reach, self.spans.pop()[1])
        return end < self._reach

    def is_end(self, start: int, end: int) -> bool:
        """Return whether the sentence from ``start`` ends at ``end``."""
        text = self._text
        if self.has_spans and self.is_inside(end):
            return False
        tail = text[max(start, end - 60) : end]
        last = _LAST.match(tail)
        if _BLANK_LINE.search(tail[len(tail.rstrip()) :]):
            return True
        if last is None:
            return text[end - 1].isspace()
        following = _NEXT.match(text, end)
        assert following is not None
        if not tail[-1].isspace():
            return _ends_without_blank(last, text, end)
        if _is_label(text[start:end]):
            return "\n" in tail[len(tail.rstrip()) :]
        if _is_before_remark(last[2], text, end):
            return False
        word, number, after = following.groups()
        if word:
            return self._ends_before(word, after, last, following.end(1))
        if number:
            return last[1] not in _BEFORE_NUMBER or last[2] != "."
        return text[following.end() : following.end() + 1] not in _CLOSING_AND_MARKS

    def _ends_before(self, word: str, after: str, last: re.Match[str], word_end: int) -> bool:
        """Return whether a sentence ends before this word; ``after`` is the point or parenthesis
        that follows it."""
        if word[0].islower():
            if after == ")" and len(word) <= 3:
                return True  # the label of an item
            if not word.islower() or self._text.startswith("://", word_end):
                return True  # such as mRNA, or an address
            if len(word) == 1 and last[2] == "." and _is_bullet(self._text, word_end):
                return True
            return not self.has_capitals
        if last[2] != "." or last[3].strip():
            return True
        before = last[1]
        if before in _BEFORE_NAME:
            return word in _STARTERS and not after
        if before.isdecimal() and len(before) <= 2:
            return word not in _AFTER_ORDINAL
        if _is_initial(before):
            return word in _STARTERS and (after != "." or len(word) > 1)
        return True

    @property
    def has_capitals(self) -> bool:
        """Whether the text is written with capitals, so that a lower-case word begins nothing."""
        if self._has_capitals is None:
            self._has_capitals = not self._text.islower()
        return self._has_capitals


_CLOSING_AND_MARKS = frozenset("\"'”’»)].!?…,;:")


def _is_bullet(text: str, at: int) -> bool:
    """Return whether a single letter before ``at`` stands before a capital, as a bullet does."""
    return text[at : at + 1] == " " and text[at + 1 : at + 2].isupper()


def _is_initial(word: str) -> bool:
    """Return whether a word before a point is an initial, such as "J" or "J.-P"."""
    letters = re.split(r"[.\-‐]+", word)
    return all(len(letter) == 1 and letter.isupper() for letter in letters)


def _is_label(sentence: str) -> bool:
    """Return whether a sentence is only the number of an item, such as "12. "."""
    return len(sentence) <= 8 and sentence.rstrip(" \n.)]").lstrip("([").isdecimal()


def _ends_without_blank(last: re.Match[str], text: str, end: int) -> bool:
    """Return whether a sentence ends where no white space follows its mark."""
    mark, closing, following = last[2][-1], last[3], text[end]
    if mark not in _MARKS_WITHOUT_BLANK:
        return following == "<"
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
    """Return whether a parenthesis follows after which the sentence goes on, such as a year after
    a title."""
    if text[end] == "[":
        reference = _REFERENCE.match(text, end)
        return reference is not None and reference[1].islower()
    if text[end] != "(" or _LABEL.match(text, end):
        return False
    inside = text[end + 1 : end + 3].strip()
    if inside[:1].isdecimal() or inside[:1].islower():
        return True
    remark = _REMARK.match(text, end)
    if remark is None:
        return False
    return remark[2].islower() or remark[2] in (",;" if marks[-1] == "." else ",;.")


def _enclosed(text: str) -> Iterator[tuple[int, int]]:
    """Yield the parentheses that are balanced, within ENCLOSED_CHARACTERS and one paragraph."""
    if not any(bracket in text for bracket in _CLOSING_OF):
        return
    opened: list[tuple[int, str]] = []
    for match in _BRACKETS.finditer(text):
        bracket, place = match[0], match.start()
        if bracket in _CLOSING_OF:
            opened.append((place, _CLOSING_OF[bracket]))
        elif opened and opened[-1][1] == bracket:
            begin, _ = opened.pop()
            if place - begin <= ENCLOSED_CHARACTERS and not _BLANK_LINE.search(text, begin, place):
                yield begin, place + 1


def _titles(text: str, title: str) -> Iterator[tuple[int, int]]:
    """Yield the occurrences of the document's title, if a sentence could end inside it."""
    name = _DISAMBIGUATION.sub("", title)
    if not _MARK_IN_TITLE.search(name):
        return
    place = text.find(name)
    while place >= 0:
        yield place, place + len(name)
        place = text.find(name, place + len(name))


def _cut(text: str, ends: Sequence[int]) -> Iterator[int]:
    """Yield the ends, and ends inside sentences of scripts that ``sentencex`` does not separate."""
    start = 0
    for end in ends:
        if _UNMARKED.search(text, start, end):
            for match in _UNMARKED_END.finditer(text, start, end):
                if match.end() < end:
                    yield match.end()
        yield end
        start = end

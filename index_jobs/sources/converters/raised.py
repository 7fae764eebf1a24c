"""Text that stands above, below or over other text: raised and lowered runs, fractions, roots, and
readings of ruby text.

A converter encloses such text in marks, which no format of text has. ``written`` puts signs in
their place, so that the words and numbers beside it stay as they are: ``10⁶`` and not ``106``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

RAISED, LOWERED, ABOVE, BELOW, ROOT, DEGREE, READING, END = "\x01\x02\x03\x04\x05\x06\x0e\x0f"
"""ABOVE and BELOW begin the parts of a fraction. DEGREE follows the root that it belongs to. END
ends what any of them begins."""

MARKS = {"superscript": RAISED, "subscript": LOWERED}
"""The marks by the names of files of Office."""

_OF_ROOT = "\x10"  # stands around the degree of a root until the root is written
_ANY = f"{RAISED}-{DEGREE}{READING}{END}"
_TO_WRITE = re.compile(f"[{RAISED}-{DEGREE}{READING}⁄]")
_INNERMOST = re.compile(  # with the runs in which raised or lowered text goes on
    rf"([{RAISED}-{DEGREE}])([^{_ANY}]*+(?:{END}(?=[{RAISED}{LOWERED}])\1[^{_ANY}]*+)*){END}"
)
_FREE = dict.fromkeys((*range(ord(RAISED), ord(DEGREE) + 1), *map(ord, (READING, END, _OF_ROOT))))
_APART_FROM_LETTERS = dict.fromkeys(_FREE, "\0")
_UP = str.maketrans(
    "0123456789+-−–=()abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRTUVWαβγδθφχ",
    "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂᵅᵝᵞᵟᶿᵠᵡ",
)
_DOWN = str.maketrans(
    "0123456789+-−–=()aehijklmnoprstuvxβγρφχ", "₀₁₂₃₄₅₆₇₈₉₊₋₋₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ"
)
_STAYING = frozenset(",;.*†‡§¶′″'°™®#")
_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", "0123456789" * 2)
_FRACTION = re.compile(r"(?<![⁰¹²³⁴-⁹])([⁰¹²³⁴-⁹]++)(?: ?[/⁄∕] ?([₀-₉]+)|⁄(\d+))|(?<=\d)⁄(?=\d)")
_NOTE = re.compile(r"[\d\W]+|[^\W_]{1,2}(?:\W{1,2}[^\W_]{1,2})*")
_SIMPLE = re.compile(r"[\w.,%°′∞]+|[^\w\s]?[\w.]+|\([^()]*\)")
_CHARACTERS = "\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = re.compile("[\u3040-\u30ff]")
_READING = re.compile(f"{READING}([^{_ANY}]*){END}")
_READINGS = re.compile(rf"(?:{READING}[^{_ANY}]*{END}[{_CHARACTERS}]*)+")

_ELEMENTS: Sequence[str] = """
    H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br
    Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho
    Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm
    """.split()  # noqa: SIM905
_MASS = re.compile(rf"(?<![\w)\]}}]){RAISED}(\d{{1,3}})m?{END}([A-Z][a-z]?)(?![^\W\d_])")
_POWERS = (
    "mm|cm|dm|km|µm|μm|nm|pm|ft|yd|mi|in|sq|sec|min|hr|kg|mg|mol|rad|deg|sin|cos|tan|log|exp|mc|cc"
)
"""Words of two or three letters that have powers. Digits above another one are the mark of a note,
as they are above longer words."""

_ORDINALS = "st|nd|rd|th|er|re|ère|e|è|ème|me|nde|de|os|as|o|ten|te"
_R, _L, _E = RAISED, LOWERED, END
_A = r"[^\W\d_⁰¹²³⁴-⁹₀-₉]"  # a letter
_STAYS, _IN_SIGNS, _APART, _POWER = "stays", "in signs", "apart", "power"
_RULES = [
    (re.compile(pattern), form)
    for pattern, form in (
        (rf"{_R}\[", _STAYS),
        (rf"{_R}TM{_E}", "™"),
        (rf"{_R}SM{_E}", "℠"),
        (rf"{_R}(?:R|\(R\)){_E}", "®"),
        (rf"\d\s?{_R}(?:[oOº°]{_E}\s?[CFK]?(?!\w)|0{_E}\s?[CF](?!\w))", "°"),
        (rf"(?:\d|(?<!{_A})[IVXLCDM](?:[IVXLCDM]|(?={_R}..{_A}?{_E})))"
         rf"{_R}(?:{_ORDINALS}){_E}", _STAYS),
        (rf"{_R}[\W_]|\S{_R}[^{_E}]*[+−–-]{_E}", _IN_SIGNS),
        (rf"{_R}[\W_]+{_E}", _STAYS),
        # At the beginning of a word
        (rf"(?<![\w)\]}}]){_R}[\W\d_]+{_E}", _IN_SIGNS),
        (rf"(?<![\w)\]}}]){_R}", _APART),
        (rf"(?:(?<!{_A})(?:{_A}|{_POWERS})?|{_A}{{4}})(?<![{_CHARACTERS}]){_R}\d", _IN_SIGNS),
        (rf"(?:{_A}{_A}|[{_CHARACTERS}]|\d(?={_R}(?:[A-Za-h]|{_A}{_A}+){_E})){_R}", _APART),
        (rf"[A-Z]{_R}{_A}{_A}+{_E}", _STAYS),  # an abbreviation such as Mme
        (rf"{_R}", _IN_SIGNS),
        (rf"{_R}", _POWER),
        (rf"{_L}(?!{_A})|(?<!\w){_L}|(?<!{_A}){_A}{_L}{_A}{_E}", _IN_SIGNS),
        (rf"{_L}(?!{_A})", _STAYS),
        (rf"(?<!\w){_L}|(?<!{_A})[^\W\d_A-Z]{{4,}}{_L}", _APART),
        (rf"{_L}", _STAYS),
    )
]  # fmt: skip
"""How text is written, by what stands before it, its mark, and what ends and follows it. The first
rule that matches holds. A rule that needs signs is passed over if there are not enough."""

_CONTEXT = 40
_LONGEST = 24
"""Longer text is raised for its looks, and stays as it is."""

_DEEPEST = 16


def written(text: str) -> str:
    """Return a text with signs in place of marks. O(len(text))."""
    if not _TO_WRITE.search(text):
        return text
    text = _READINGS.sub(_with_readings_behind, text)
    for _ in range(_DEEPEST):
        text, count = _INNERMOST.subn(_written_part, text)
        if not count:
            break
    return _FRACTION.sub(_plain_fraction, text).translate(_FREE)


def _written_part(part: re.Match[str]) -> str:
    """Return what is written in place of a mark, what it holds, and its end."""
    mark, content = part.groups()
    content, degree, behind = f"{content}{_OF_ROOT * 2}".split(_OF_ROOT)[:3]
    content = (content + behind).translate(_FREE).strip()
    before = part.string[max(part.start() - _CONTEXT, 0) : part.start()]
    before = before.rstrip(END).translate(_APART_FROM_LETTERS)
    after = part.string[part.end() : part.end() + _CONTEXT].translate(_FREE)
    if not content and not degree:
        return ""
    if mark == DEGREE:
        return f"{_OF_ROOT}{content}{_OF_ROOT}"
    if mark == ROOT:
        roots = {"": "√", "2": "√", "3": "∛", "4": "∜"}
        return roots.get(degree, f"{_in_signs(mark, degree) or degree}√") + _grouped(content)
    if mark == ABOVE:
        return f"{' ' * before[-1:].isalnum()}{_grouped(content)}/"
    if mark == BELOW:
        return f"{_grouped(content)}{' ' * after[:1].isalnum()}"
    if "\n" in content or len(content) > _LONGEST:
        return _apart(before, content, after)
    if mark == RAISED and not content.strip("⁰¹²³⁴⁵⁶⁷⁸⁹,"):  # twice, as in a link to a note
        content = content.translate(_DIGITS)
    return _on_the_line(before, mark, content, after)


def _on_the_line(before: str, mark: str, content: str, after: str) -> str:
    """Return raised or lowered text as its rule has it."""
    seen = f"{before}{mark}{content}{END}{after}"
    if (mass := _MASS.search(seen)) and mass[2] in _ELEMENTS:
        number = _ELEMENTS.index(mass[2]) + 1
        if number <= int(mass[1]) <= 3 * number + 2:
            return content
    signs = _in_signs(mark, content)
    form = next(form for rule, form in _RULES if (signs or form != _IN_SIGNS) and rule.search(seen))
    if form == _APART:
        is_note = signs and mark == RAISED and _NOTE.fullmatch(content)
        return _apart(before, signs if is_note else content, after)
    return {_STAYS: content, _IN_SIGNS: signs, _POWER: f"^{_grouped(content)}"}.get(form, form)


def _in_signs(mark: str, content: str) -> str:
    """Return a text in raised or lowered signs, or empty if there are not enough of them."""
    content = content.replace(", ", ",")
    signs = content.translate(_DOWN if mark == LOWERED else _UP)
    staying = frozenset[str]() if mark == LOWERED else _STAYING
    return signs if set(signs) & set(content) <= staying else ""


def _grouped(content: str) -> str:
    return content if _SIMPLE.fullmatch(content) else f"({content})"


def _apart(before: str, content: str, after: str) -> str:
    """Return a text with blanks where it would be part of another word."""
    first = before[-1:].strip() and before[-1:] not in "([{/\"'“‘«"
    last = after[:1].isalnum() and content[-1:].isalpha()
    return f"{' ' * bool(first)}{content}{' ' * last}"


def _plain_fraction(fraction: re.Match[str]) -> str:
    above, below, plain = fraction.groups("")
    if not above:
        return "/"
    blank = " " * fraction.string[max(fraction.start() - 1, 0) : fraction.start()].isdecimal()
    return f"{blank}{above.translate(_DIGITS)}/{below.translate(_DIGITS) or plain}"


def _with_readings_behind(ruby: re.Match[str]) -> str:
    """Return a text whose readings stand behind it, so that its words are whole. The readings of
    characters that stand side by side are joined."""
    pieces = cast("list[str]", _READING.split(ruby[0])[1:])
    readings = "".join(
        reading + " " * bool(_KANA.search(base))
        for reading, base in zip(pieces[::2], pieces[1::2], strict=True)
    ).strip()
    return "".join(pieces[1::2]) + f" ({readings})" * bool(readings)

"""Analyse a question: its names, the relations to follow from them, and the value that is
sought."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Literal

from arag_search.agent.models.offline.names import Name, names_in, plain
from arag_search.agent.models.offline.relations import KIN, RELATIONS
from arag_search.agent.models.offline.words import STOP_WORDS

Form = Literal["choice", "yes_no", "open"]
Sought = Literal[
    "birth date", "death date", "date", "lifespan", "birth place", "death place", "place",
    "burial place", "country", "cause of death", "employer", "school", "award", "number", "person",
    "thing",
]  # fmt: skip
Order = Literal["least", "most", ""]

_ATTRIBUTES: tuple[tuple[Sought, str], ...] = (
    ("lifespan", r"liv(?:e|ed|ing) longer|longer life|older when .* died"),
    ("cause of death", r"cause of .*death|why did .*die|how did .*die|die of\b|died of\b"),
    ("burial place", r"buried|burial|interred"),
    ("birth date", r"date of birth|birth ?date|birthday"
     r"|born (?:first|later|earlier|last|before|after)"
     r"|\b(?:older|younger|oldest|youngest|elder)\b|when .*\bborn|(?:what|which) year .*\bborn"
     r"|born .*(?:first|later|earlier)|year of birth"),
    ("death date", r"date of .*death|die[sd]? (?:first|later|earlier|last|before|after)"
     r"|when .*\b(?:die|died|death)|(?:what|which) year .*\bdie|passed? away|year of death"),
    ("birth place", r"place of birth|birth ?place|\bborn\b|native of"),
    ("death place", r"place of death|where .*\bdie|\bdie[sd]?\b|death place"),
    ("country", r"nationalit(?:y|ies)|citizenship|country|countries|nation\b"),
    ("employer", r"\bwork(?:s|ed)? (?:at|for)|employ"),
    ("school", r"stud(?:y|ied)|educated|graduat|alma mater|attend"),
    ("award", r"award|prize|medal"),
    ("number", r"how (?:many|much|old|long|tall|far|high)|what (?:number|percentage)|population"),
    ("date", r"^when|(?:what|which) (?:year|date|day|month|century)|in what year|since when"
     r"|\bdate\b"),
    ("place", r"^where|(?:what|which) (?:city|town|state|county|place|village|province|region"
     r"|district|river|island)"),
    ("person", r"^who|whom"),
)  # fmt: skip

_LEAST = r"\b(?:first|earlier|earliest|older|oldest|elder|before)\b"
_MOST = r"\b(?:later|latest|last|younger|youngest|recent(?:ly)?|newer|newest|after|longer|more)\b"
_ASKS_YES_OR_NO = re.compile(
    r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would)\b", re.I
)


_EXCLUDES = "except(?: for)?|other than|apart from|but not|without"
_EXCLUSION = re.compile(rf"(?:^(?i:{_EXCLUDES})|,? (?:{_EXCLUDES})) (?=\w)")
_MAX_EXCLUDED_WORDS = 3
"""The maximum number of content words of an exclusion that does not begin with a name: a longer one
has a verb in it."""


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """An analysed question. ``hops`` are relations in the order in which they are followed from
    each name; ``words`` are the content words outside of names. ``excluded`` is a name, word or
    phrase that the question excludes (empty if there is none); no other field contains it."""

    text: str
    form: Form
    names: tuple[str, ...]
    hops: tuple[str, ...]
    sought: Sought
    order: Order
    words: tuple[str, ...]
    excluded: str = ""


def parse_question(text: str, *, kin: bool = True) -> ParsedQuestion:
    """Analyse a question. With ``kin`` False, relatives by marriage are not resolved in two
    steps."""
    text, excluded = _without_exclusion(plain(" ".join(text.split())))
    named = _question_names(text)
    rest = _without(text, named)
    choices = _choices(text, named)
    if choices:
        form: Form = "choice"
    elif _ASKS_YES_OR_NO.match(text):
        form = "yes_no"
    else:
        form = "open"
    lower = rest.casefold()
    hops, lower = _hops(lower, kin)
    sought = _sought(lower, form, bool(hops))
    order: Order = ""
    if form == "choice":
        order = "most" if re.search(_MOST, lower) else "least" if re.search(_LEAST, lower) else ""
    names = choices or tuple(dict.fromkeys(name.text for name in named))
    words = re.findall(r"\w[\w'’-]*", re.sub(r"_(?:['’]s)?", " ", lower))
    content = dict.fromkeys(word for word in words if len(word) > 1 and word not in STOP_WORDS)
    return ParsedQuestion(text, form, names, hops, sought, order, tuple(content), excluded)


def _without_exclusion(text: str) -> tuple[str, str]:
    """Return a question without its exclusion, and the exclusion: the name that follows at once, or
    else the name or the last words in the text up to a comma or the end. Return the same question
    and "" if nothing else would be left, or if the exclusion is not recognised.
    """
    match = _EXCLUSION.search(text)
    if match is None or any(n.start < match.start() < n.end for n in _question_names(text)):
        return text, ""
    tail = text[match.end() :]
    clause = re.split(r"[,;?!]|\.$", tail)[0]
    names = names_in(clause, question=True)
    is_named = bool(names) and all(map(_is_small, clause[: names[0].start].split()))
    if is_named:
        clause = clause[: names[0].end]
    runs = [[*run] for small, run in groupby(clause.split(), _is_small) if not small]
    rest = tail[len(clause) :]
    is_short = is_named or sum(map(len, runs)) <= _MAX_EXCLUDED_WORDS
    asked = " ".join(f"{text[: match.start()]} {rest.removeprefix(',')}".split())
    is_left = not all(map(_is_small, re.findall(r"\w+", asked)))
    if not (runs and is_short and is_left) or re.match(r",? (?:and|or)\b", rest):
        return text, ""
    return asked, names[0].text if names else " ".join(runs[-1])


def _is_small(word: str) -> bool:
    return len(word) < 2 or word.casefold() in STOP_WORDS


def _question_names(text: str) -> list[Name]:
    """Return the names of a question, quoted ones whole."""
    quoted = [
        Name(match.group(1).strip(" ,.?"), match.start(1), match.end(1))
        for match in re.finditer(r"[\"“]([^\"”]{2,80})[\"”]", text)
    ]
    others = [
        name
        for name in names_in(text, question=True)
        if not any(quote.start <= name.start < quote.end for quote in quoted)
    ]
    names = sorted([*quoted, *others], key=lambda name: name.start)
    joined: list[Name] = []
    for name in names:
        before = text[joined[-1].end : name.start] if joined else ""
        if before == " and " and not _compares(text):
            first = joined.pop()
            name = Name(text[first.start : name.end], first.start, name.end)
        joined.append(name)
    return joined


def _compares(text: str) -> bool:
    return bool(_ASKS_YES_OR_NO.match(text) or re.search(r"\b(?:both|between|out of|two)\b", text))


def _choices(text: str, named: list[Name]) -> tuple[str, ...]:
    """Return the two names that a question compares; empty if it compares none."""
    for first, second in pairwise(named):
        between = text[first.end : second.start]
        either = re.fullmatch(r"[\"”]?,? or (?:the |a |an |film |song )?[\"“]?", between)
        both = re.fullmatch(r"[\"”]?,? and (?:the )?[\"“]?", between) and re.match(
            r".*\b(?:out of|between)\b", text[: first.start]
        )
        if either or (both and not _ASKS_YES_OR_NO.match(text)):
            return first.text, second.text
    return ()


def _without(text: str, names: list[Name]) -> str:
    """Return the text with ``_`` for each name."""
    for name in reversed(names):
        text = f"{text[: name.start]}_{text[name.end :]}"
    return text


def _hops(rest: str, kin: bool) -> tuple[tuple[str, ...], str]:
    """Return the relations of the question in the order to follow, and the question without their
    words. Relations after a name ("X's father") come before relations in front of it ("the director
    of X"), and the latter are ordered from the inside out.
    """
    at_name = rest.find("_")
    places: list[tuple[int, tuple[str, ...]]] = []
    for noun, steps in KIN:
        pattern = rf"\b(?:{noun})s?\b"
        for match in re.finditer(pattern, rest):
            places.append((match.start(), steps if kin else steps[:1]))
        rest = re.sub(pattern, lambda match: " " * len(match.group()), rest)
    for name, relation in RELATIONS.items():
        pattern = rf"\b(?:{relation.nouns})\b"
        for match in re.finditer(pattern, rest):
            places.append((match.start(), (name,)))
        rest = re.sub(pattern, lambda match: " " * len(match.group()), rest)
    before = sorted((place for place in places if place[0] < at_name), reverse=True)
    after = sorted(place for place in places if place[0] > at_name)
    hops: list[str] = []
    for _, steps in (*after, *before):
        if steps[0] not in hops or len(steps) > 1:
            hops.extend(steps)
    return tuple(hops[:4]), rest


def _sought(rest: str, form: Form, has_hops: bool) -> Sought:
    question = rest.strip()
    for sought, pattern in _ATTRIBUTES:
        if sought == "person" and has_hops:
            return "person"
        if re.search(pattern, question):
            if sought == "birth place" and form == "choice":
                return "birth date"
            if sought == "death place" and form == "choice":
                return "death date"
            return sought
    if form == "choice":
        return "date"
    return "thing"

"""Find the shortest span of a passage that answers a question, with a rule for each kind of
answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from arag_search.agent.models.offline.countries import first_country
from arag_search.agent.models.offline.names import fold, names_in, unqualified
from arag_search.agent.models.offline.questions import Sought
from arag_search.agent.models.offline.words import MONTHS

_MONTH = rf"(?:{'|'.join(MONTHS)})"
DATE = (
    rf"(?:\d{{1,2}}(?:st|nd|rd|th)? {_MONTH},? \d{{3,4}}|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? "
    rf"\d{{3,4}}|{_MONTH},? \d{{4}}|\b\d{{3,4}}\b)"
)
_UP = r"[^\W\d_a-zà-öø-ÿ]"
_PLACE = (
    rf"(?:the )?{_UP}[\w'’.-]*"
    rf"(?:(?: (?:of|de|la|le|du|upon|on|and|am|the|el|del))?[ -]{_UP}[\w'’-]*)*"
)
_EVENT = (
    r"released|published|founded|established|opened|formed|created|built|launched|started|began|"
    r"premiered|inaugurated|incorporated|completed|first"
)

DateKey = tuple[int, int, int]


def value_of(sought: Sought, text: str, words: Sequence[str] = ()) -> str | None:
    """Return the sought value as a passage about the thing states it; None if the passage does not.
    ``words`` are content words of the question."""
    rule = _RULES.get(sought)
    return rule(text, words) if rule is not None else None


def date_key(date: str) -> DateKey:
    """Return year, month and day of a date; a missing part is 0."""
    year = re.findall(r"\d{3,4}", date)
    month = next((n for n, name in enumerate(MONTHS, 1) if name in date), 0)
    day = re.search(r"\b(\d{1,2})(?:st|nd|rd|th)?\b(?!\d)", date)
    return int(year[-1]) if year else 0, month, int(day.group(1)) if day else 0


def _birth_date(text: str, words: Sequence[str]) -> str | None:
    return (
        _first(rf"\([^()]*?({DATE})[^()]*?\s*[–—-]\s*[^()]*?{DATE}[^()]*\)", text[:400])
        or _first(rf"\bborn\b[^.;]*?({DATE})", text)
        or _first(rf"\(\D{{0,40}}({DATE})\D*\)", text[:200])
        or _first(rf"\bbirth\b[^.;]*?({DATE})", text)
    )


def _death_date(text: str, words: Sequence[str]) -> str | None:
    return (
        _first(rf"\([^()]*?{DATE}[^()]*?\s*[–—-]\s*[^()]*?({DATE})[^()]*\)", text[:400])
        or _first(rf"\b(?:died|killed|executed|d\.|death|dead|murdered)\b[^.;]*?({DATE})", text)
        or _first(rf"until (?:his|her) death in ({DATE})", text)
        or _first(rf"\((?:c\. ?)?\d{{3,4}} ?[–-] ?({DATE})\)", text)
    )


def _lifespan(text: str, words: Sequence[str]) -> str | None:
    born, died = _birth_date(text, words), _death_date(text, words)
    if born is None or died is None or born == died:
        return None
    (a, b, c), (x, y, z) = date_key(born), date_key(died)
    return str((x - a) * 372 + (y - b) * 31 + z - c)


def _event_date(text: str, words: Sequence[str]) -> str | None:
    cues = "|".join([*map(re.escape, words), _EVENT]) if words else _EVENT
    return (
        _first(r"\b(?:is|was|are|were) an? (\d{4})\b", text[:300])
        or _first(rf"\b(?:{cues})\b[^.;]*?({DATE})", text)
        or _first(rf"({DATE})", text)
    )


def _birth_place(text: str, words: Sequence[str]) -> str | None:
    return (
        _place_after(r"\b(?:[Bb]orn|birth)\b", text)
        or _first(rf"\(({_PLACE})(?:, {_PLACE})*,? {DATE}", text[:300])
        or _first(rf"\([^()]*?{DATE},? (?:in |at )?({_PLACE})(?:, [^()]*)?\s*[–—-]", text[:300])
        or _place_after(r"\b(?:native of|raised|grew up|hails from|comes from)\b", text, near=8)
    )


def _death_place(text: str, words: Sequence[str]) -> str | None:
    return (
        _first(rf"\b(?:in|at|to|near|for) ({_PLACE})(?:, {_PLACE})*,? where [^.;]*\bdied\b", text)
        or _place_after(r"\b(?:died|death|killed|executed|murdered|assassinated)\b", text)
        or _first(rf"[–—-]\s*(?:{DATE},? )(?:in |at )?({_PLACE})[^()]*\)", text[:300])
        or _first(rf"[–—-]\s*({_PLACE})(?:, {_PLACE})*,? {DATE}\)", text[:300])
        or _place_after(r"\bburied\b", text)
    )


def _burial_place(text: str, words: Sequence[str]) -> str | None:
    return _place_after(r"\b(?:buried|interred|burial|entombed)\b", text)


def _place(text: str, words: Sequence[str]) -> str | None:
    for word in words:
        place = _place_after(rf"\b{re.escape(word)}", text)
        if place is not None:
            return place
    return _place_after(r"\b(?:located|situated|lies|based|is|was)\b", text)


def _place_after(cue: str, text: str, near: int = 90) -> str | None:
    """Return the place that follows "in", "at" or "near" within the sentence of the cue."""
    pattern = rf"{cue}[^;]{{0,{near}}}?\b(?:in|at|near|from|of) ({_PLACE})"
    for match in re.finditer(pattern, text):
        place = match.group(1).removeprefix("the ").rstrip(".,'’")
        if not re.fullmatch(rf"{_MONTH}(?: .*)?", place) and not re.search(
            r"[a-z]{3}\. ", match.group()
        ):
            return place
    return None


def _country(text: str, words: Sequence[str]) -> str | None:
    return first_country(text)


def _cause(text: str, words: Sequence[str]) -> str | None:
    return _first(
        r"\b(?:died|death)\b[^.;]*?\b(?:of|from|by|due to) (?:an? )?([a-z][a-z -]+)", text
    )


def _employer(text: str, words: Sequence[str]) -> str | None:
    cue = (
        r"\b(?:work(?:s|ed|ing)? (?:at|for)|professor[\w ]* (?:at|in)|teach(?:es|ing)? at|taught at"
    )
    return _first(rf"{cue}|joined|employed (?:at|by)|served (?:at|in)) (?:the )?({_PLACE})", text)


def _school(text: str, words: Sequence[str]) -> str | None:
    cue = r"\b(?:studied[\w ]*?|graduat\w+[\w ]*?|educated|attended|degree[\w ]*?|enrolled)"
    return _first(rf"{cue}(?: (?:at|from|in))? (?:the )?({_PLACE})", text)


def _award(text: str, words: Sequence[str]) -> str | None:
    for name in names_in(text):
        if re.search(r"\b(?:Awards?|Prize|Medal|Order|Oscar|Legion)\b", name.text):
            return name.text
    return None


def _number(text: str, words: Sequence[str]) -> str | None:
    numbers = list(re.finditer(r"\$?\d[\d,.]*\d(?:%| percent| million| billion)?|\d", text))
    near = [at for word in words for at in _places_of(word, text)]
    if not numbers or not near:
        return None
    best = min(numbers, key=lambda number: min(abs(number.start() - at) for at in near))
    return best.group()


def _places_of(word: str, text: str) -> list[int]:
    return [match.start() for match in re.finditer(rf"\b{re.escape(word)}", text, re.I)]


_RULES: dict[Sought, Callable[[str, Sequence[str]], str | None]] = {
    "birth date": _birth_date,
    "death date": _death_date,
    "lifespan": _lifespan,
    "date": _event_date,
    "birth place": _birth_place,
    "death place": _death_place,
    "burial place": _burial_place,
    "place": _place,
    "country": _country,
    "cause of death": _cause,
    "employer": _employer,
    "school": _school,
    "award": _award,
    "number": _number,
}

_NAMES = frozenset[Sought](("person", "thing", "place", "employer", "school", "award"))
"""The kinds of answers that are names, for which the nearest name may be the answer."""

CUES: dict[Sought, tuple[str, ...]] = {
    "birth date": ("born", "birth"),
    "death date": ("died", "death"),
    "lifespan": ("born", "died"),
    "date": ("released", "published", "founded", "established", "opened"),
    "birth place": ("born", "birthplace", "native"),
    "death place": ("died", "death", "killed"),
    "burial place": ("buried", "burial"),
    "cause of death": ("died", "death"),
    "employer": ("worked", "professor", "taught"),
    "school": ("studied", "educated", "graduated", "attended"),
    "award": ("award", "awarded", "prize", "medal"),
}
"""Words for a query about what is sought."""


def _first(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text)
    return match.group(1).strip(" ,.") if match else None


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [
        part
        for part in re.split(r"(?<=[.!?])(?<!\b[A-Z]\.)[\"”)]?\s+(?=[\"“(]?[^\W\d_a-z])", text)
        if part
    ]


def best_span(
    sought: Sought, texts: Sequence[tuple[str, str]], words: Sequence[str], known: Sequence[str]
) -> tuple[str, int] | None:
    """Return the best span over the sentences of (title, text) pairs, and the number of its pair.

    Sentences with more of the words come first; a name that is in the question is not an answer.
    """
    for number, title, sentence in ranked_sentences(texts, words)[:4]:
        span = value_of(sought, sentence, words)
        if span is None and sought in _NAMES:
            span = _nearest_name(title, sentence, words, known)
        if span is not None and fold(span) not in map(fold, known):
            return span, number
    return None


def ranked_sentences(
    texts: Sequence[tuple[str, str]], words: Sequence[str]
) -> list[tuple[int, str, str]]:
    """Return the sentences of (title, text) pairs with the number of their pair and its title,
    those with more of the words first."""
    every = [
        (number, title, sentence)
        for number, (title, text) in enumerate(texts)
        for sentence in sentences_of(text)
    ]
    return sorted(every, key=lambda ranked: -_overlap(f"{ranked[1]} {ranked[2]}", words))


def _overlap(sentence: str, words: Sequence[str]) -> int:
    here = set(re.findall(r"\w+", sentence.casefold()))
    beginnings = [word.casefold()[: max(4, len(word) - 2)] for word in words]
    return sum(any(word.startswith(start) for word in here) for start in beginnings)


def _nearest_name(
    title: str, sentence: str, words: Sequence[str], known: Sequence[str]
) -> str | None:
    """Return the name that is nearest to the words; else the title."""
    folded = " | ".join(f" {fold(name)} " for name in known)
    names = [name for name in names_in(sentence) if f" {fold(name.text)} " not in folded]
    near = [at for word in words for at in _places_of(word[: max(4, len(word) - 2)], sentence)]
    if not names or not near:
        title = unqualified(title)
        return title if f" {fold(title)} " not in folded else None
    return min(names, key=lambda name: sum(abs(name.start - at) for at in near)).text

"""Relations between things, recognised by English words.

A relation is a noun of a question ("director"). Its cues are the words beside which a passage names
the other thing: after them ("directed by X"), or before them ("X directed").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from arag_search.agent.models.offline.names import Name, fold, people_in

_REACH = 60
"""The maximum number of characters from a cue to the name that it refers to."""


@dataclass(frozen=True, slots=True)
class Relation:
    """``after`` and ``before`` are regular expressions of cues: the name is after them, or
    before them. ``words`` are the words for a query. ``second`` takes the second of two names
    joined by "and"."""

    nouns: str
    words: tuple[str, ...]
    after: str
    before: str = ""
    second: bool = False


_CHILD_OF = r"(?:sons?|daughters?|child|children|heir|heiress)(?: \w+)? of|born to|fathered by"

RELATIONS: dict[str, Relation] = {
    "director": Relation(
        "directors?|filmmaker|directed",
        ("directed", "director"),
        r"directed[\w, ]{0,30}? by|directors?|direction of|"
        r"(?:film|movie|directorial debut) (?:by|of)",
        r"directed|director",
    ),
    "composer": Relation(
        "composers?|composed",
        ("composed", "composer", "music"),
        r"(?:music|score|soundtrack|songs?)[\w, ]{0,40} by|composed[\w ]{0,20} by|composers?|"
        r"(?:song|work|opera|piece)[\w ]{0,20} by",
        r"(?:composed|scored|wrote) the|composer|composed",
    ),
    "performer": Relation(
        "performers?|singers?|musician|artist|performed|sang|band",
        ("by", "recorded", "performed", "song"),
        r"(?:recorded|performed|sung|released)[\w ]{0,20} by|"
        r"(?:song|single|album|track|record|ballad|EP)[\w\-, ]{0,60}? (?:by|from|of)|by",
        r"recorded|performed|sang",
    ),
    "author": Relation(
        "authors?|writers?|wrote|written|novelist|poet|playwright|librettist",
        ("written", "author", "novel", "wrote", "by"),
        r"(?:co-)?written[\w ]{0,25} by|(?:novel|book|play|poem|story|series|screenplay|libretto|"
        r"comedy|opera)[\w ]{0,30} (?:by|of)|authors?|work of|(?<!directed )by",
        r"wrote|author|translated|revised",
    ),
    "producer": Relation(
        "producers?|produced", ("produced", "producer"), r"produced[\w ]{0,25} by|producers?"
    ),
    "founder": Relation(
        "founders?|founded",
        ("founded", "founder"),
        r"(?:founded|established|created|formed)[\w ,]{0,30} by|founders?",
        r"founded|founder",
    ),
    "designer": Relation(
        "designers?|designed|engineer|architect",
        ("designed", "designer", "design"),
        r"designed[\w ]{0,25} by|designers?|architect|engineer|work of|(?:design|made) (?:by|of)",
        r"designed|designer",
    ),
    "father": Relation(
        "father|dad",
        ("son", "daughter", "father", "child"),
        rf"{_CHILD_OF}|(?:his|her) (?:late |own )?father(?: was|,)?|father was",
    ),
    "mother": Relation(
        "mother|mom",
        ("son", "daughter", "mother", "child"),
        r"(?:his|her) (?:late |own )?mother(?: was| is|,)?|mother was|by his (?:\w+ )?wife,?|"
        r"and (?:of )?his (?:\w+ ){0,2}(?:wife|consort|mistress|concubine),?",
        second=True,
    ),
    "spouse": Relation(
        "spouse|wife|husband|widow|married|consort",
        ("married", "wife", "husband", "marriage"),
        r"(?:wife|husband|widow|consort|spouse)(?: and \w+)? of|"
        r"(?<!whom he )(?<!whom she )married(?: to)?|"
        r"marriage (?:to|with)|(?:his|her) (?:\w+ )?(?:wife|husband|consort|spouse)"
        r"(?: was| is|,)?|wed|wife|husband",
        r"whom (?:he|she) (?:later )?married",
    ),
    "child": Relation(
        "child|son|daughter|children",
        ("son", "daughter", "mother", "father", "children"),
        r"(?:father|mother|parent)s? of|"
        r"(?:his|her|their) (?:\w+ )?(?:sons?|daughters?|child|children)"
        r"(?: and heir(?: apparent)?)?(?:,| was| were|:)?|(?:sons?|daughters?|children)"
        r"(?: is| was| are| were|:| named| called| including)",
    ),
    "sibling": Relation(
        "sibling|brother|sister",
        ("brother", "sister"),
        r"(?:(?:half-)?(?:brother|sister|sibling)s?)(?: of|,| was)?",
    ),
}

KIN: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"father[- ]in[- ]law", ("spouse", "father")),
    (r"mother[- ]in[- ]law", ("spouse", "mother")),
    (r"(?:child|son|daughter)[- ]in[- ]law", ("child", "spouse")),
    (r"(?:sibling|brother|sister)[- ]in[- ]law", ("spouse", "sibling")),
    (r"maternal grandmother", ("mother", "mother")),
    (r"maternal grandfather", ("mother", "father")),
    (r"(?:paternal )?grandmother", ("father", "mother")),
    (r"(?:paternal )?grandfather", ("father", "father")),
    (r"step-?mother", ("father", "spouse")),
    (r"step-?father", ("mother", "spouse")),
    (r"uncle|aunt", ("father", "sibling")),
    (r"(?:grandchild|grandson|granddaughter)", ("child", "child")),
    (r"nephew|niece", ("sibling", "child")),
    (r"cousin", ("father", "sibling", "child")),
)
"""Relatives who are two or three steps away."""


def related(text: str, relation: Relation, *known: str) -> list[str]:
    """Return the people whom the text names next to cues of the relation, the most likely first,
    without the known names."""
    folded = [set(fold(name).split()) for name in known]
    names = [name for name in people_in(text) if not _is_known(name, folded)]
    people: list[str] = []
    if relation.second:
        people += _second_parent(text, names)
    if relation.after:
        for cue in re.finditer(rf"\b(?:{relation.after})(?!\w)", text):
            people += _following(text, cue.end(), names)
    if relation.before:
        for cue in re.finditer(rf"\b(?:{relation.before})(?!\w)", text):
            earlier = [name for name in names if 0 <= cue.start() - name.end <= _REACH]
            if earlier and not re.search(r"[.;] ", text[earlier[-1].end : cue.start()]):
                people.append(earlier[-1].text)
    return list(dict.fromkeys(people))


def _following(text: str, start: int, names: list[Name]) -> list[str]:
    """Return the first name after a cue, and the names listed with it."""
    people: list[str] = []
    end = start
    for name in names:
        if name.start < start:
            continue
        between = text[end : name.start]
        if not people:
            if name.start - start > _REACH or re.search(r"[.;] |\)", between):
                break
        elif not re.fullmatch(r",? and (?:the )?|, ", between):
            break
        people.append(name.text)
        end = name.end
    return people


def _is_known(name: Name, known: list[set[str]]) -> bool:
    """Return whether a name is one of the known names, a part of one, or an extension of one."""
    words = set(fold(name.text).split())
    return any(words <= name or (len(name) > 1 and name <= words) for name in known)


def _second_parent(text: str, names: list[Name]) -> list[str]:
    """Return the second of two parents: "the son of A and (his wife) B"."""
    for cue in re.finditer(rf"\b(?:{_CHILD_OF})(?!\w)", text):
        later = [name for name in names if name.start >= cue.end()]
        for first, second in pairwise(later):
            if first.start - cue.end() > _REACH:
                break
            between = text[first.end : second.start]
            if re.search(r"\band\b|\bby\b|\bwife\b", between) and not re.search(r"\. ", between):
                return [second.text]
    return []

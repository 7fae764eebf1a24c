"""Made people: attributes by a seed, and a text for each that states, paraphrases or implies them.

A value of an attribute is about half as frequent as the one before it. So there are rare ones in a
corpus of any size. The people of a corpus are the first ones of every larger corpus of the same
seed, and each is made without the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, cast

from arag_search.system.yaml_file import read_mapping

SEED = 1881
BORN, DISTRICT = "born", "district"
FIELDS: Mapping[str, Any] = {BORN: "number", DISTRICT: "keyword"}
"""The metadata of a document, which its text says too."""

_BIRTHS = (1940, 2005)
_RATIO = 0.55


@cache
def words() -> Mapping[str, Any]:
    """Return the words that texts and needs are made of."""
    file = Path(__file__).with_name("people.yaml")
    return cast(Mapping[str, Any], read_mapping(file, "words", holds="keys", allowed="its own"))


@dataclass(frozen=True, slots=True)
class Attribute:
    """A fact that may be true of a person. A need ``says`` it, and ``query`` is the same in its
    words. Documents have one of ``texts``: of hidden attributes a synonym, and a sentence that
    implies it. ``years`` are the first and the last year of birth."""

    kind: str
    query: str
    says: str
    texts: tuple[str, ...] = ()
    years: tuple[int, int] = _BIRTHS

    @property
    def is_hidden(self) -> bool:
        """Whether documents have other words for it."""
        return bool(self.texts) and self.says not in self.texts


@cache
def attributes() -> Mapping[str, Sequence[Attribute]]:
    """Return the attributes by kind, the most frequent first."""
    stated = {
        kind: [Attribute(kind, word, says, tuple(others) or (says,)) for word, says, *others in of]
        for kind, of in words()["values"].items()
    }
    homes = [
        Attribute(DISTRICT, f"district:{name}", f"lives in {name}", ())
        for name in words()["districts"]
    ]
    first, last = _BIRTHS
    years = [(low, low + more) for more in (0, 4, 9) for low in range(first, last + 1 - more)]
    return {**stated, DISTRICT: homes, BORN: [_born(low, high) for low, high in years]}


def _born(low: int, high: int) -> Attribute:
    says = f"was born in {low}" if low == high else f"was born between {low} and {high}"
    return Attribute(BORN, f"born:[{low} TO {high}]", says, (), (low, high))


@dataclass(frozen=True, slots=True)
class Person:
    """A person with attributes, and the document about them."""

    held: frozenset[Attribute]
    document: Mapping[str, Any]

    def has(self, attribute: Attribute) -> bool:
        """Return whether an attribute is true of the person."""
        if attribute.kind == BORN:
            return attribute.years[0] <= self.document[BORN] <= attribute.years[1]
        return attribute in self.held


def id_of(number: int) -> str:
    """Return the id of the document about a person."""
    return f"p{number:07}"


def person(number: int, seed: int = SEED) -> Person:
    """Make the person of a number."""
    random = Random(f"{seed} {number}")
    name = " ".join("".join(random.choices(words()["syllables"], k=k)).title() for k in (2, 3))
    born, (home,) = random.randint(*_BIRTHS), _drawn(attributes()[DISTRICT], 1, random)
    held = [
        attribute
        for kind, bounds in words()["held"].items()
        for attribute in _drawn(attributes()[kind], random.randint(*bounds), random)
    ]
    they, district = random.choice(("she", "he")), home.query.partition(":")[2]
    facts = {"name": name, BORN: born, DISTRICT: district, "they": they, "They": they.title()}
    sentences = [random.choice(words()["openings"]).format_map(facts)]
    said = [random.choice(attribute.texts) for attribute in random.sample(held, len(held))]
    while said:
        form = random.choice(words()["phrasings"])
        if (uses := 1 + ("{b}" in form)) <= len(said):
            sentences.append(form.format(a=said[0], b=said[uses - 1], **facts))
            said = said[uses:]
    document = {"_id": id_of(number), "title": name, "text": " ".join(sentences)}
    return Person(frozenset((home, *held)), {**document, BORN: born, DISTRICT: district})


def _drawn(ordered: Sequence[Attribute], count: int, random: Random) -> list[Attribute]:
    """Draw different ones, each about half as often as the one before it."""
    weights, drawn = [_RATIO**rank for rank in range(len(ordered))], dict[Attribute, None]()
    while len(drawn) < count:
        drawn |= dict.fromkeys(random.choices(ordered, weights))
    return list(drawn)

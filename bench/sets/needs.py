"""Needs whose answer is a set of made people. They have their logic, their wording, the query that
says the same, and the people that they are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.sets.people import SEED, Attribute, attributes, id_of, words

MOST = 200
"""The most people that a need is about."""
DEPTHS = (1, 2, 3, 4)
KINDS = ("plain", "metadata", "hidden")
"""The classes of needs.

- "plain": their words are in the documents.
- "metadata": they are also about year of birth or district.
- "hidden": they have an attribute for which documents have other words.
"""

_SIZES = ((1, 9), (10, 49), (50, MOST))
_TRIES = 6_000
Mask = NDArray[np.bool_]
Holders = Mapping[Attribute, bytearray]
"""Whether each attribute is true of each person, in the order of their numbers."""
Logic = int | Sequence[Any]
"""The number of an attribute, or an operator ("and", "or", "but not") with what it joins."""


@dataclass(frozen=True, slots=True)
class Need:
    """A need, and the query that has its structure and words. ``relevant`` are the ids of the
    people that it is about, ``excluded`` the ids of the people that it excludes."""

    id: str
    text: str
    query: str
    relevant: frozenset[str]
    excluded: frozenset[str] = frozenset()
    depth: int = 1
    kind: str = KINDS[0]
    logic: Logic = 0
    attributes: tuple[Attribute, ...] = ()


def needs(holders: Holders, of_depth: int, seed: int = SEED) -> list[Need]:
    """Draw as many different needs of each depth, or as there are. A third each is of the three
    classes, and about few, some and many people."""
    random = Random(f"{seed} needs")
    drawn: dict[str, Need] = {}
    for depth in DEPTHS:
        for at in range(of_depth):
            if need := _need(holders, depth, at, random, drawn):
                drawn[need.query] = need
    return list(drawn.values())


def _need(
    holders: Holders, depth: int, at: int, random: Random, drawn: Mapping[str, Need]
) -> Need | None:
    """Draw attributes for a shape until each of them matters, and 1 to MOST people are meant; None
    if this is never so."""
    shapes, (turn, kind) = words()["shapes"][depth], divmod(at, len(KINDS))
    shape = shapes[turn % len(shapes)]
    logic, english = shape["logic"], random.choice(shape["english"])
    low, high = _SIZES[turn % len(_SIZES)]
    for tries in range(_TRIES):
        fields = random.choices(list(attributes()), k=english.count("{"))
        chosen = [random.choice(attributes()[field]) for field in fields]
        query = query_of(logic, [attribute.query for attribute in chosen])
        if _kind_of(chosen) != KINDS[kind] or query in drawn or len({*chosen}) < len(chosen):
            continue
        masks = [np.frombuffer(holders[attribute], np.bool_) for attribute in chosen]
        mask = matching(logic, masks)
        if tries > _TRIES // 2:
            low, high = 1, MOST
        if low <= np.count_nonzero(mask) <= high and _each_matters(logic, masks):
            says = english.format(*(attribute.says for attribute in chosen))
            broken = matching(shape["excluded"], masks) & ~mask if "excluded" in shape else mask[:0]
            text, of = random.choice(words()["questions"]).format(says), (_ids(mask), _ids(broken))
            return Need(f"{depth}-{at}", text, query, *of, depth, KINDS[kind], logic, tuple(chosen))
    return None


def _ids(mask: Mask) -> frozenset[str]:
    return frozenset(id_of(int(at)) for at in np.flatnonzero(mask))


def _kind_of(chosen: Sequence[Attribute]) -> str:
    if any(attribute.is_hidden for attribute in chosen):
        return "hidden"
    return "plain" if all(attribute.texts for attribute in chosen) else "metadata"


def matching(logic: Logic, masks: Sequence[Mask]) -> Mask:
    """Return of whom the logic is true."""
    if isinstance(logic, int):
        return masks[logic]
    first, *others = (matching(part, masks) for part in logic[1:])
    if logic[0] == "or":
        return reduce(np.logical_or, others, first)
    others = [~other for other in others] if logic[0] == "but not" else others
    return reduce(np.logical_and, others, first)


def query_of(logic: Logic, queries: Sequence[str]) -> str:
    """Return the logical query, with brackets around everything that has an operator."""
    if isinstance(logic, int):
        return queries[logic]
    joined = {"and": " AND ", "or": " OR ", "but not": " AND NOT "}[logic[0]]
    return f"({joined.join(query_of(part, queries) for part in logic[1:])})"


def _each_matters(logic: Logic, masks: Sequence[Mask]) -> bool:
    whole, none = matching(logic, masks), np.zeros_like(masks[0])
    without = ([*masks[:at], none, *masks[at + 1 :]] for at in range(len(masks)))
    return not any(np.array_equal(whole, matching(logic, some)) for some in without)

"""Plans: the sums of scores that a tree stands for, and their factors.

Lucene simplifies a query before it runs it, and adds the parts of one sum in 64 bits, rounding only
the result to 32 bits. The sums therefore decide the last bits of a score, and so the order of hits
that are nearly equal. These of its simplifications change a sum: equal parts are merged into one
with the sum of their weights; a weight on a weight is multiplied; a sum of one part is that part;
and a sum within a sum of the same kind is merged into it if no weight is between them, unless it
has optional parts. (No tree has the last two, but the first two produce them.) One simplification
is left out: Lucene drops a range that no value of its field can meet, and what depends on it,
before it looks for equal parts.
"""

from __future__ import annotations

from dataclasses import dataclass

from arag_search.plan.matching import Pattern
from arag_search.query.analysis import spellings_of
from arag_search.query.fields import FORM_FIELDS, TEXT_FIELDS
from arag_search.query.forms import folded, normal_spellings
from arag_search.query.operators import DEMOTE, NOT, PREFER, OperatorWord
from arag_search.query.tree import (
    EXACT_MARK,
    And,
    Fuzzy,
    Modifier,
    Node,
    Or,
    Phrase,
    Prefix,
    Term,
    TextLeaf,
    scores,
)
from tests.support.oracle.field import float32

Alternative = tuple[str, Pattern]
"""A field, and the pattern of one spelling that its text matches."""


@dataclass(frozen=True, slots=True)
class Best:
    """A leaf, which scores the greatest score among the alternatives that match."""

    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on metadata, which matches and adds nothing to a score."""

    node: Node


@dataclass(frozen=True, slots=True)
class AllOf:
    """The sum over ``parts``, where they and ``filters`` match and none of ``excluded``; to it is
    added the score of ``optional`` where that matches too."""

    parts: tuple[Plan, ...]
    filters: frozenset[Node]
    excluded: frozenset[Node]
    optional: Plan | None = None


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The sum over the parts that match."""

    parts: tuple[Plan, ...]


@dataclass(frozen=True, slots=True)
class Demoted:
    """A plan whose score is multiplied by the factor of each of ``demoted`` that matches."""

    plan: Plan
    demoted: tuple[tuple[Node, float], ...]


@dataclass(frozen=True, slots=True)
class Boosted:
    """A plan, not boosted itself, whose score is multiplied by ``boost``."""

    boost: float
    plan: Plan


Plan = Best | Filter | AllOf | AnyOf | Demoted | Boosted


def plan_of(node: Node, language: str) -> Plan:
    """Return the plan of a node's scores, whose words match in their normal forms in a language."""
    if isinstance(node, TextLeaf):
        return _boosted(node.weight, Best(alternatives(node, language)))
    if not isinstance(node, And | Or) or not scores(node):
        return Filter(node)
    if isinstance(node, And):
        plan = _all_of(node, language)
        if demoted := having(node, DEMOTE):
            factors = ((demote.child, float32(demote.factor)) for demote in demoted)
            plan = Demoted(plan, tuple(factors))
        return _boosted(node.weight, plan)
    return _boosted(
        node.weight, _any_of(tuple(plan_of(child, language) for child in node.children))
    )


def alternatives(leaf: TextLeaf, language: str) -> tuple[Alternative, ...]:
    """Return the spellings of a leaf in each of its fields, sorted."""
    fields = (leaf.field,) if leaf.field else TEXT_FIELDS
    patterns = [
        pattern._replace(spellings=(words,), slop=pattern.slop if len(words) > 1 else 0)
        for pattern in _patterns(leaf, language)
        for words in pattern.spellings
    ]
    return tuple(
        sorted(
            {
                (FORM_FIELDS[field] if pattern.language else field, pattern)
                for pattern in patterns
                for field in fields
            }
        )
    )


def _patterns(leaf: TextLeaf, language: str) -> list[Pattern]:
    match leaf:
        case Term() | Phrase():
            is_exact = isinstance(leaf, Phrase) and leaf.text.startswith(EXACT_MARK)
            slop = leaf.slop if isinstance(leaf, Phrase) else 0
            if is_exact or not language:
                return [Pattern(spellings_of(leaf.text), slop)]
            return [Pattern(normal_spellings(leaf.text, language), slop, language=language)]
        case Prefix() | Fuzzy():
            edits = leaf.edits if isinstance(leaf, Fuzzy) else 0
            spellings = tuple(words for words in spellings_of(leaf.text) if len(words) == 1)
            pattern = Pattern(spellings, 0, not edits, edits=edits)
            forms = ((folded(leaf.text),),)
            of_forms = pattern._replace(spellings=forms, language=language)
            return [pattern, of_forms] if language else [pattern]


def positive(node: And) -> list[Node]:
    """Return the children that must match."""
    return [child for child in node.children if not isinstance(child, Modifier)]


def having(node: And, operator: OperatorWord) -> list[Modifier]:
    """Return the children that are modifiers of an operator."""
    modifiers = [child for child in node.children if isinstance(child, Modifier)]
    return [modifier for modifier in modifiers if modifier.operator is operator]


def _all_of(node: And, language: str) -> Plan:
    """Return the plan of all children but the demoted ones."""
    filters = {child for child in positive(node) if not scores(child)}
    excluded = {child.child for child in having(node, NOT)}
    parts: list[Plan] = [plan_of(child, language) for child in positive(node) if scores(child)]
    preferred = tuple(plan_of(child.child, language) for child in having(node, PREFER))
    optional = _any_of(preferred) if preferred else None
    while True:
        merged = _merged(tuple(parts))
        parts = []
        for part in merged:
            if isinstance(part, AllOf) and part.optional is None:
                parts += part.parts
                filters |= part.filters
                excluded |= part.excluded
            else:
                parts.append(part)
        if tuple(parts) == merged:
            break
    if len(parts) == 1 and not filters and not excluded and optional is None:
        return parts[0]
    return AllOf(_sorted(merged), frozenset(filters), frozenset(excluded), optional)


def _any_of(parts: tuple[Plan, ...]) -> Plan:
    while True:
        merged = _merged(parts)
        spliced: list[Plan] = []
        for part in merged:
            spliced += part.parts if isinstance(part, AnyOf) else (part,)
        parts = tuple(spliced)
        if parts == merged:
            return parts[0] if len(parts) == 1 else AnyOf(_sorted(parts))


def _merged(parts: tuple[Plan, ...]) -> tuple[Plan, ...]:
    """Return the parts with equal ones merged; the same tuple if there are none."""
    weights: dict[Plan, float] = {}
    for part in parts:
        boost, core = (part.boost, part.plan) if isinstance(part, Boosted) else (1.0, part)
        weights[core] = weights.get(core, 0.0) + boost
    if len(weights) == len(parts):
        return parts
    return tuple(_boosted(weight, core) for core, weight in weights.items())


def _boosted(weight: float, plan: Plan) -> Plan:
    boost = float32(weight)
    if isinstance(plan, Filter):
        return plan
    if isinstance(plan, Boosted):
        return _boosted(float32(boost * plan.boost), plan.plan)
    return plan if boost == 1 else Boosted(boost, plan)


def _sorted(parts: tuple[Plan, ...]) -> tuple[Plan, ...]:
    """Return the parts sorted, so that sums of the same parts are equal."""
    return tuple(sorted(parts, key=repr))

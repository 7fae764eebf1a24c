"""What PREFER and DEMOTE did to the passages shown: which were lowered, and preferences unmet.

The texts of the hits are judged here, so that no engine is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arag_search.corpus import split_at
from arag_search.engines.base import Hit, SearchRequest
from arag_search.query.fields import MetadataType
from arag_search.query.tree import And, Demote, Node, Or, Prefer, all_of, condition_of
from arag_search.search.judging import meeting


def lowered_by(
    query: Node, hits: Sequence[Hit], metadata: Mapping[str, MetadataType]
) -> dict[str, tuple[str, ...]]:
    """Return by id the DEMOTEs that lowered each hit, as written; the hits carry their text.

    At sentence granularity, those that every matching sentence of the hit meets.
    """
    lowered: dict[str, tuple[str, ...]] = {}
    demotions = list(_demotions(query, ()))
    sentences = {hit.id: _sentences(hit) for hit in hits} if demotions else {}
    judged = [sentence for parts in sentences.values() for sentence in parts]
    judgements = meeting([condition for _, condition in demotions], judged, metadata)
    for (demote, _), met in zip(demotions, judgements, strict=True):
        for id, parts in sentences.items():
            if all(part.id in met for part in parts):
                lowered[id] = (*lowered.get(id, ()), str(demote))
    return lowered


def lowering_note(lowered: Mapping[str, tuple[str, ...]], shown: int) -> list[str]:
    """Return the note on how many of the passages shown are lowered, if any are."""
    if not lowered:
        return []
    verb = "is" if len(lowered) == 1 else "are"
    return [f"{len(lowered)} of the {shown} shown {verb} lowered by DEMOTE."]


def unmet_preferences(
    request: SearchRequest, hits: Sequence[Hit], metadata: Mapping[str, MetadataType]
) -> list[tuple[Prefer, Node]]:
    """Return the PREFERs of the whole query that no hit meets, each with the query for the passages
    found that meet it: a PREFER raises what meets it, so that usually none does."""
    query = request.query
    if not isinstance(query, And) or request.granularity == "sentence":
        return []
    condition = condition_of(query)
    judgements = meeting([prefer.child for prefer in query.preferred], hits, metadata)
    return [
        (prefer, all_of(condition, condition_of(prefer.child)))
        for prefer, met in zip(query.preferred, judgements, strict=True)
        if not met
    ]


def _demotions(group: Node, held: tuple[Node, ...]) -> list[tuple[Demote, Node]]:
    """Return the Demotes in a group, each with what a hit meets that it lowers; ``held`` are the
    group and those around it, without the whole query, which every hit meets."""
    if not isinstance(group, And | Or):
        return []
    pairs: list[tuple[Demote, Node]] = []
    for child in group.children:
        inner = child.child if isinstance(child, Prefer) else child
        if isinstance(inner, And | Or):
            pairs += _demotions(inner, (*held, condition_of(inner)))
    if isinstance(group, And):
        pairs += [(demote, all_of(*held, demote.child)) for demote in group.demoted]
    return pairs


def _sentences(hit: Hit) -> list[Hit]:
    """Return the matching sentences of a hit as hits of their own; the hit itself without any."""
    if not hit.matched_sentences:
        return [hit]
    texts = split_at(hit.content or "", hit.sentence_ends)
    return [
        hit._replace(id=f"{hit.id} {number}", content=texts[number], sentence_ends=())
        for number in hit.matched_sentences
    ]

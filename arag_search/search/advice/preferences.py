"""What PREFER and DEMOTE did to the passages shown: which were lowered, and preferences unmet.

The texts of the hits are judged here, so that no engine is asked again.
"""

from __future__ import annotations

from collections.abc import Sequence

from arag_search.corpus import split_at
from arag_search.engines.base import Page
from arag_search.engines.hits import Hit
from arag_search.plan.clauses import Clause, all_clauses, unranked, wanted
from arag_search.search.advice.judging import Judge
from arag_search.search.advice.questions import Subject


def unmet_preferences(subject: Subject, page: Page) -> list[str]:
    """Return the note on the PREFERs of the whole query that no passage of its first page meets.
    Each raises what meets it, so that hardly any other passage does."""
    preferred = subject.query.having("preferred")
    if not preferred or subject.request.granularity == "sentence":
        return []
    met = subject.meeting(page, preferred)
    lacking = [str(prefer) for prefer, ids in zip(preferred, met, strict=True) if not ids]
    pronoun = "it" if len(lacking) == 1 else "them"
    return [f"{', '.join(lacking)}: no passage shown has {pronoun}."] if lacking else []


def lowered_by(query: Clause, hits: Sequence[Hit], judge: Judge) -> dict[str, tuple[str, ...]]:
    """Return by id the DEMOTEs that lowered each hit, as written; the hits carry their text.

    At sentence granularity, a DEMOTE counts if every matching sentence of the hit meets it.
    """
    lowered: dict[str, tuple[str, ...]] = {}
    demotions = list(_demotions(query, ()))
    sentences = {hit.id: _sentences(hit) for hit in hits} if demotions else {}
    judged = [sentence for parts in sentences.values() for sentence in parts]
    judgements = judge.meeting(judged, [condition for _, condition in demotions])
    for (demote, _), met in zip(demotions, judgements, strict=True):
        for id, parts in sentences.items():
            if all(part.id in met for part in parts):
                lowered[id] = (*lowered.get(id, ()), str(demote))
    return lowered


def _demotions(group: Clause, groups: tuple[Clause, ...]) -> list[tuple[Clause, Clause]]:
    """Return the DEMOTEs in a group, each with the condition that a hit meets if it is lowered.
    ``groups``: this group and the groups around it, except the whole query, which every hit
    meets."""
    pairs: list[tuple[Clause, Clause]] = []
    for part in group.parts:
        if part.parts and part.role in ("wanted", "preferred"):
            pairs += _demotions(part, (*groups, wanted(part)))
        elif part.role == "demoted":
            pairs.append((part, all_clauses([*map(unranked, groups), wanted(part)])))
    return pairs


def _sentences(hit: Hit) -> list[Hit]:
    """Return the matching sentences of a hit as hits of their own; the hit itself without any."""
    if not hit.matched_sentences:
        return [hit]
    texts = split_at(hit.content, hit.sentence_ends)
    return [
        hit._replace(id=f"{hit.id} {number}", content=texts[number], sentence_ends=())
        for number in hit.matched_sentences
    ]

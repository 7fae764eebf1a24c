"""The scores that a model gives to its sources (AgenticRAG, section 4): how much each helps.

The paper specifies neither scale nor form. Our scores are from 0 to 1, in the form of
``answer_form_scored.md``. Percentages and scores out of ten are read as fractions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arag_search.tools.references import FORM, References

_SCORE = re.compile(
    rf"(?P<id>{FORM.pattern})(?!\d)(?P<mark>[\]】)]*)(?P<between>[\s:=(\-–—]*?)"
    r"(?P<score>\d{1,3}(?:[.,]\d{1,6})?)\s*(?P<scale>%|/\s*100?(?!\d))?(?!\w|\.\d)\)?"
)


@dataclass(frozen=True, slots=True)
class CitedDocument:
    """A document that an answer cites: its reference, its id, and how much it helps, from 0 to 1,
    as the model says."""

    reference: str
    doc_id: str
    score: float


def split_scores(sources: str) -> tuple[str, dict[str, float]]:
    """Return a list of sources without its scores, and the scores by reference. If a reference has
    several scores, the first counts."""
    scores: dict[str, float] = {}

    def note(match: re.Match[str]) -> str:
        scores.setdefault(match["id"], _fraction(match["score"], match["scale"]))
        return f"{match['id']}{match['mark']}"

    return _SCORE.sub(note, sources), scores


def cited_documents(
    cited: Sequence[str], scores: Mapping[str, float], references: References
) -> tuple[CitedDocument, ...]:
    """Return the documents of references that an answer cites, best first; equal scores stay in
    their order. A reference without a score gets 1 / position. A document is listed once, at its
    best place.
    """
    ranked: list[tuple[float, str, str]] = []
    for position, id in enumerate(cited, 1):
        reference = references.get(id)
        if reference is not None:
            ranked.append((scores.get(id, 1 / position), id, reference.doc_id))
    best: dict[str, CitedDocument] = {}
    for score, id, doc_id in sorted(ranked, key=lambda ranking: -ranking[0]):
        best.setdefault(doc_id, CitedDocument(id, doc_id, score))
    return tuple(best.values())


def _fraction(score: str, scale: str | None) -> float:
    """Return a score as a number from 0 to 1."""
    number = float(score.replace(",", "."))
    if scale == "%" or (scale and scale.rstrip().endswith("100")) or (not scale and number > 10):
        number /= 100
    elif scale or number > 1:
        number /= 10
    return min(max(number, 0.0), 1.0)

"""Whether an answer rests on passages that were shown and cited. An answer from a model's memory
does not, however right it is.

The rule is the strongest that the question allows. With gold evidence, a passage of each of its
pieces (of each hop) must be cited, and have been shown. Without it, a gold answer must stand in the
visible text of a cited passage. That says nothing where it stands in the question as well, or is
yes or no: such questions have no rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from arag_search.agent.record import Record
from arag_search.agent.wording import normalise
from arag_search.evaluation.resolution import EvidencePiece
from arag_search.evaluation.text_match import (
    YES_OR_NO,
    stands_in,
    title_names,
    whole_words,
    without_brackets,
)
from arag_search.questions.question import Question

GroundingRule = Literal["evidence", "answer"]


@dataclass(frozen=True, slots=True)
class Grounding:
    """The rule for a question, and whether its answer is grounded by it."""

    rule: GroundingRule
    holds: bool


def grounding_of(
    question: Question,
    record: Record | None,
    sets: Sequence[Sequence[EvidencePiece]] | None = None,
) -> Grounding | None:
    """Return whether an answer, right or not, is grounded; None if no rule can tell.

    ``sets`` are the pieces of evidence in the index that was searched; without them, titles of
    cited passages are compared. The lines of files that ripgrep shows have no title: they count
    for a title whose words are in them. Sets with a piece that no passage of the index holds do not
    count. Predictions of other programs do not say what they cite.
    """
    if record is not None and record.status != "failed" and record.citation is None:
        return None
    ids = set[str]() if record is None else _cited_ids(record)
    steps = () if record is None else record.trajectory
    shown_by_step = [step.shown_passages() for step in steps]
    # What replies show of passages can be told, or they show nothing.
    is_seen = all(own or not step.hit_ids for step, own in zip(steps, shown_by_step, strict=True))
    shown = [passage for own in shown_by_step for passage in own if passage.id in ids]
    pieces: list[list[bool]] = []
    if sets is not None:
        pieces = [
            [not ids.isdisjoint(piece.chunk_ids) for piece in of_set]
            for of_set in sets
            if of_set and all(piece.chunk_ids for piece in of_set)
        ]
    elif is_seen:
        of_subjects = not question.supporting_titles
        titles = {passage.title for passage in shown if passage.title}
        names = {name for title in titles for name in title_names(title, of_subjects=of_subjects)}
        wanted = (question.gold_titles, *question.alternative_titles)
        untitled = [whole_words(passage.text) for passage in shown if not passage.title]
        pieces = [
            [
                normalise(title) in names
                or any(stands_in(without_brackets(title), text) for text in untitled)
                for title in titles
            ]
            for titles in wanted
            if titles
        ]
    if pieces:
        return Grounding("evidence", any(map(all, pieces)))
    telling = _telling_answers(question)
    if not telling or not is_seen:
        return None
    texts = [whole_words(passage.text) for passage in shown]
    holds = any(stands_in(answer, text) for answer in telling for text in texts)
    return Grounding("answer", holds)


def _telling_answers(question: Question) -> list[str]:
    """Return the gold answers that only a passage can have told; none if one of them is in the
    question, or is yes or no."""
    asked = whole_words(question.text)
    known = any(stands_in(text, asked) or normalise(text) in YES_OR_NO for text in question.answers)
    return [] if known else [text for text in question.answers if whole_words(text)]


def _cited_ids(record: Record) -> set[str]:
    """Return the ids of cited passages that a step listed; a cited reference stands for the
    passages of its document that were shown."""
    cited = set(record.cited_ids)
    ids = {id for step in record.trajectory for id in step.hit_ids if id in cited}
    references = (document for step in record.trajectory for document in step.references)
    ids.update(id for of in references if of.reference in cited for id in of.passages)
    return ids

"""One question: its text, its right answers, and its evidence, as far as known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Triple = tuple[str, str, str]
"""Subject, relation, object."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One step of a chain of facts; what the data does not name is None.

    ``question`` is MuSiQue's sub-question as published: ``#k`` in it stands for the answer of hop
    ``k`` (from 1), ``>>`` is between a name and a relation. ``subject`` and ``relation`` are those
    of a triple. ``answer`` is the result of the hop (the object of a triple). ``title`` and
    ``text`` are those of the passage that holds it, as published.
    """

    question: str | None
    subject: str | None
    relation: str | None
    answer: str
    title: str | None
    text: str | None


@dataclass(frozen=True, slots=True)
class GoldPassage:
    """A text that supports the answer; ``title`` is None if the data names none."""

    title: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    ``answers`` are the gold answer and its aliases, in this order; empty only if a data set has
    judged documents instead. ``type`` is None if the file has none. ``supporting_titles`` are
    those of the passages that hold the answer, ``evidence`` is a chain of facts, in hop order;
    ``alternative_titles`` are other sets of titles, each of which would do as well.

    ``hops`` are the steps of the chain, ``supporting_passages`` what the data names beside the
    titles, ``relevant_documents`` ids with their grades, 0 being irrelevant; ``excluded_documents``
    are left out of rankings before they are measured (BRIGHT). All of these are empty if the file
    has none.

    For a question that is not ``answerable``, the right answer is that there is no answer; its
    ``answers`` are those that it would have otherwise.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    type: str | None = None
    supporting_titles: tuple[str, ...] = ()
    evidence: tuple[Triple, ...] = ()
    hops: tuple[Hop, ...] = ()
    supporting_passages: tuple[GoldPassage, ...] = ()
    alternative_titles: tuple[tuple[str, ...], ...] = ()
    relevant_documents: tuple[tuple[str, int], ...] = ()
    answerable: bool = True
    excluded_documents: tuple[str, ...] = ()

    @property
    def gold_titles(self) -> tuple[str, ...]:
        """The titles that evidence recall looks for: the supporting titles, else the subjects of
        the evidence, each once."""
        subjects = (subject for subject, _, _ in self.evidence)
        return tuple(dict.fromkeys(self.supporting_titles or subjects))

    @property
    def relevant_ids(self) -> tuple[str, ...]:
        """The ids of the documents that are judged relevant."""
        return tuple(id for id, grade in self.relevant_documents if grade > 0)

    def ranked(self, documents: Iterable[str]) -> list[str]:
        """Return documents each once, in their order, without those that are left out of
        rankings."""
        return [id for id in dict.fromkeys(documents) if id not in self.excluded_documents]

"""Measures as values: they print as they are typed, and parse back.

parse_measure("nDCG@10") == Measure(NDCG, 10)
str(Measure(NDCG, 10)) == "nDCG@10"
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from arag_search.errors import ArgumentError

Unit = Literal["share", "tokens", "steps", "seconds", "USD"]
Need = Literal["answers", "evidence", "documents", "judge", "index"]

EVIDENCE_CAP_TOKENS = 8_000
"""Evidence that has cost more retrieved tokens counts as not found."""

_MAX_CUTOFF = 1_000
_FORM = re.compile(r"([A-Za-z][A-Za-z0-9]*)(?:@([0-9]+))?")


@dataclass(frozen=True, slots=True)
class Kind:
    """What is measured.

    ``missing`` is what a question scores that failed or has no record; None: it is left out of the
    mean. ``needs`` are what a question (gold answers, evidence, judged documents) or the caller
    (a judge, an index) must have: without, the value is None. A ranking has a cutoff, which
    ``name@k`` gives. ``meaning`` is one line for people.
    """

    name: str
    unit: Unit
    higher_is_better: bool
    missing: float | None
    needs: frozenset[Need]
    is_ranking: bool
    meaning: str


def _share(name: str, meaning: str, *needs: Need) -> Kind:
    return Kind(name, "share", True, 0.0, frozenset(needs), False, meaning)


def _cost(name: str, unit: Unit, meaning: str) -> Kind:
    return Kind(name, unit, False, None, frozenset(), False, meaning)


def _ranking(name: str, meaning: str) -> Kind:
    return Kind(name, "share", True, 0.0, frozenset({"documents", "index"}), True, meaning)


EM = _share("EM", "the short answer is a gold answer (SQuAD)", "answers")
F1 = _share("F1", "words that short answer and best gold answer share (SQuAD, HotpotQA)", "answers")
CONTAIN_ACC = _share(
    "ContainAcc", "a gold answer stands in short answer or explanation (A-RAG)", "answers"
)
JUDGE_ACC = _share("JudgeAcc", "a language model finds the answer correct", "answers", "judge")
EVIDENCE_RECALL = _share("EvidenceRecall", "share of the evidence that was shown", "evidence")
FULL_EVIDENCE = _share(
    "FullEvidence",
    f"all evidence was shown within {EVIDENCE_CAP_TOKENS:,} retrieved tokens",
    "evidence",
)
TOKENS_TO_EVIDENCE = Kind(
    "TokensToEvidence",
    "tokens",
    False,
    float(EVIDENCE_CAP_TOKENS),
    frozenset({"evidence"}),
    False,
    f"retrieved tokens until all evidence was shown, {EVIDENCE_CAP_TOKENS:,} where it was not",
)
RETRIEVED_TOKENS = _cost("RetrievedTokens", "tokens", "tokens of corpus text in all replies")
STEPS = _cost("Steps", "steps", "tool calls")
SECONDS = _cost("Seconds", "seconds", "time of model and tools")
COST = _cost("Cost", "USD", "price of the model's tokens; needs a run with prices")
RECALL = _ranking("Recall", "relevant documents among the first k that were shown")
PRECISION = _ranking("P", "share of the first k documents that is relevant")
NDCG = _ranking("nDCG", "gain of the first k documents by grade and rank")
RECIPROCAL_RANK = _ranking("RR", "1 / rank of the first relevant document")
AVERAGE_PRECISION = _ranking("AP", "mean precision at the relevant documents")
SUCCESS = _ranking("Success", "a relevant document is among the first k")

KINDS = (
    EM, F1, CONTAIN_ACC, JUDGE_ACC, EVIDENCE_RECALL, FULL_EVIDENCE, TOKENS_TO_EVIDENCE,
    RETRIEVED_TOKENS, STEPS, SECONDS, COST, RECALL, PRECISION, NDCG, RECIPROCAL_RANK,
    AVERAGE_PRECISION, SUCCESS,
)  # fmt: skip
_BY_NAME = {kind.name: kind for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Measure:
    """A kind, and of a ranking the number of documents that are looked at, 1 to 1,000."""

    kind: Kind
    cutoff: int | None = None

    def __str__(self) -> str:
        return self.kind.name if self.cutoff is None else f"{self.kind.name}@{self.cutoff}"

    @property
    def name(self) -> str:
        """As it prints."""
        return str(self)


def parse_measure(text: str) -> Measure:
    """The measure that prints so. Raises ArgumentError listing what is allowed."""
    form = _FORM.fullmatch(text)
    kind = _BY_NAME.get(form[1]) if form is not None else None
    if form is None or kind is None:
        raise _refused(text, f'There is no measure "{text}".')
    if form[2] is None:
        if kind.is_ranking:
            raise _refused(text, f'"{text}" needs a number of documents: {text}@10.')
        return Measure(kind)
    if not kind.is_ranking:
        raise _refused(text, f'"{kind.name}" takes no number of documents.')
    cutoff = int(form[2])
    if not 1 <= cutoff <= _MAX_CUTOFF or form[2] != str(cutoff):
        raise _refused(text, f'"{text}" looks at {form[2]} documents.')
    return Measure(kind, cutoff)


def parse_measures(texts: Iterable[str]) -> tuple[Measure, ...]:
    """Each measure once, in the order given; several may stand in one text, with commas between.

    Raises ArgumentError.
    """
    measures: dict[Measure, None] = {}
    for text in texts:
        names = [name for piece in text.split(",") if (name := piece.strip())]
        if not names:
            raise _refused(text, f'"{text}" names no measure.')
        measures |= dict.fromkeys(map(parse_measure, names))
    return tuple(measures)


def allowed_names() -> str:
    """Every name, for messages and help."""
    return ", ".join(f"{kind.name}@k" if kind.is_ranking else kind.name for kind in KINDS)


def _refused(text: str, what: str) -> ArgumentError:
    close = next((kind.name for kind in KINDS if kind.name.lower() == text.lower()), None)
    return ArgumentError(
        what,
        where="the name of a measure",
        allowed=f"{allowed_names()}; k from 1 to {_MAX_CUTOFF:,}",
        do=f"Write {close}." if close is not None and close != text else "",
    )

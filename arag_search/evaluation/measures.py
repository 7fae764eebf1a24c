"""Measures as values: they print as typed, and parse back.

parse_measure("nDCG@10") == Measure(NDCG, 10)
str(Measure(NDCG, 10)) == "nDCG@10"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from arag_search.errors import ArgumentError
from arag_search.evaluation.evidence import EVIDENCE_CAP_TOKENS, EvidenceValues
from arag_search.evaluation.question_score import QuestionScore

Unit = Literal["share", "tokens", "steps", "seconds", "USD"]
Need = Literal["answers", "evidence", "documents", "judge", "index"]

_MAX_CUTOFF = 1_000
_FORM = re.compile(r"([A-Za-z][A-Za-z0-9]*)(?:@([0-9]+))?")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a question: its score, what was shown of its evidence, and a judge's verdict
    from 0 to 1; the last two are None if they are not known."""

    score: QuestionScore
    evidence: EvidenceValues | None = None
    verdict: float | None = None


Value = Callable[[Outcome], float | None]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of measure.

    ``missing`` is the score of a question that failed or has no record; None leaves it out of
    the mean. ``needs`` names what a question (gold answers, evidence, judged documents) or the
    caller (a judge, an index) must have; otherwise the value is None. A ranking has a cutoff,
    given as ``name@k``. ``meaning`` is one line for people. ``value`` reads the value off the
    outcome of a question; rankings are measured together instead.
    """

    name: str
    unit: Unit
    higher_is_better: bool
    missing: float | None
    needs: frozenset[Need]
    is_ranking: bool
    meaning: str
    value: Value = lambda outcome: None


_BY_NAME: dict[str, Kind] = {}


def _register(kind: Kind) -> Kind:
    return _BY_NAME.setdefault(kind.name, kind)


def _share(name: str, meaning: str, value: Value, *needs: Need) -> Kind:
    return _register(Kind(name, "share", True, 0.0, frozenset(needs), False, meaning, value))


def _cost(name: str, unit: Unit, meaning: str, value: Value) -> Kind:
    return _register(Kind(name, unit, False, None, frozenset(), False, meaning, value))


def _ranking(name: str, meaning: str) -> Kind:
    needs = frozenset[Need]({"documents", "index"})
    return _register(Kind(name, "share", True, 0.0, needs, True, meaning))


EM = _share(
    "EM", "the short answer is a gold answer (SQuAD)", lambda of: of.score.exact_match, "answers"
)
F1 = _share(
    "F1",
    "words that short answer and best gold answer share (SQuAD, HotpotQA)",
    lambda of: of.score.f1,
    "answers",
)
CONTAIN_ACC = _share(
    "ContainAcc",
    "a gold answer occurs in short answer or explanation (A-RAG)",
    lambda of: of.score.contain_accuracy,
    "answers",
)
JUDGE_ACC = _share(
    "JudgeAcc",
    "a language model finds the answer correct",
    lambda of: of.verdict,
    "answers",
    "judge",
)
EVIDENCE_RECALL = _share(
    "EvidenceRecall",
    "share of the evidence that was shown",
    lambda of: of.evidence and of.evidence.recall,
    "evidence",
)
FULL_EVIDENCE = _share(
    "FullEvidence",
    f"all evidence was shown within {EVIDENCE_CAP_TOKENS:,} retrieved tokens",
    lambda of: of.evidence and of.evidence.full,
    "evidence",
)
TOKENS_TO_EVIDENCE = _register(
    Kind(
        "TokensToEvidence",
        "tokens",
        False,
        float(EVIDENCE_CAP_TOKENS),
        frozenset({"evidence"}),
        False,
        f"retrieved tokens until all evidence was shown, {EVIDENCE_CAP_TOKENS:,} where it was not",
        lambda of: of.evidence and of.evidence.tokens,
    )
)
RETRIEVED_TOKENS = _cost(
    "RetrievedTokens",
    "tokens",
    "tokens of corpus text in all replies",
    lambda of: of.score.retrieved_tokens,
)
STEPS = _cost("Steps", "steps", "tool calls", lambda of: of.score.steps)
SECONDS = _cost("Seconds", "seconds", "time of model and tools", lambda of: of.score.seconds)
COST = _cost(
    "Cost",
    "USD",
    "price of the model's tokens; needs a run with prices",
    lambda of: of.score.cost_usd,
)
RECALL = _ranking("Recall", "relevant documents among the first k that were shown")
PRECISION = _ranking("P", "share of the first k documents that is relevant")
NDCG = _ranking("nDCG", "gain of the first k documents by grade and rank")
RECIPROCAL_RANK = _ranking("RR", "1 / rank of the first relevant document")
AVERAGE_PRECISION = _ranking("AP", "mean precision at the relevant documents")
SUCCESS = _ranking("Success", "a relevant document is among the first k")

KINDS = tuple(_BY_NAME.values())


@dataclass(frozen=True, slots=True)
class Measure:
    """A kind of measure and, for a ranking, the number of documents that it considers, 1 to
    1,000."""

    kind: Kind
    cutoff: int | None = None

    def __str__(self) -> str:
        return self.kind.name if self.cutoff is None else f"{self.kind.name}@{self.cutoff}"

    @property
    def name(self) -> str:
        """The name in print."""
        return str(self)


def parse_measure(text: str) -> Measure:
    """Return the measure with this name. Raises ArgumentError listing what is allowed."""
    form = _FORM.fullmatch(text)
    kind = _BY_NAME.get(form[1]) if form is not None else None
    if form is None or kind is None:
        raise _no_such_measure(text, f'There is no measure "{text}".')
    if form[2] is None:
        if kind.is_ranking:
            raise _no_such_measure(text, f'"{text}" needs a number of documents: {text}@10.')
        return Measure(kind)
    if not kind.is_ranking:
        raise _no_such_measure(text, f'"{kind.name}" takes no number of documents.')
    cutoff = int(form[2])
    if not 1 <= cutoff <= _MAX_CUTOFF or form[2] != str(cutoff):
        raise _no_such_measure(text, f'"{text}" looks at {form[2]} documents.')
    return Measure(kind, cutoff)


def parse_measures(texts: Iterable[str]) -> tuple[Measure, ...]:
    """Return each measure once, in the order given; one text may hold several, with commas
    between.

    Raises ArgumentError.
    """
    measures: dict[Measure, None] = {}
    for text in texts:
        names = [name for piece in text.split(",") if (name := piece.strip())]
        if not names:
            raise _no_such_measure(text, f'"{text}" names no measure.')
        measures |= dict.fromkeys(map(parse_measure, names))
    return tuple(measures)


def allowed_names() -> str:
    """Return every name, for messages and help."""
    return ", ".join(f"{kind.name}@k" if kind.is_ranking else kind.name for kind in KINDS)


def _no_such_measure(text: str, what: str) -> ArgumentError:
    close = next((kind.name for kind in KINDS if kind.name.lower() == text.lower()), None)
    return ArgumentError(
        what,
        where="the name of a measure",
        allowed=f"{allowed_names()}; k from 1 to {_MAX_CUTOFF:,}",
        do=f"Write {close}." if close is not None and close != text else "",
    )

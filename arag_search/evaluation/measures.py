"""Measures as values: they print as typed, and parse back.

str(parse_measure("Recall@10")) == "Recall@10"
parse_measure("Recall@10").cutoff == 10
parse_measure("ToolCalls:open").tool == "open"
"""

from __future__ import annotations

import importlib
import math
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from numbers import Real
from pathlib import Path
from typing import Literal

from arag_search.agent.context import SUMMARIZE
from arag_search.agent.record import Record
from arag_search.errors import ArgumentError
from arag_search.evaluation.evidence import EVIDENCE_CAP_TOKENS, EvidenceValues, evidence_values
from arag_search.evaluation.judging.judge import Judgement, Verdict
from arag_search.evaluation.question_score import QuestionScore, Unsupported
from arag_search.evaluation.resolution import EvidencePiece
from arag_search.questions.question import Question
from arag_search.tools.registry import OTHER_NAMES, TOOLS

Unit = Literal["share", "tokens", "steps", "seconds", "USD", "number"]
Need = Literal[
    "answers",
    "no answer",
    "evidence",
    "grounding",
    "documents",
    "judge",
    "factuality judge",
    "index",
]
Ranked = Literal["shown", "cited"]
"""The documents that a measure ranks: shown ones in the order in which tools first showed them, or
cited ones, best first."""

OWN_MEASURE = "MODULE:FUNCTION"
"""The form of a measure of one's own: a function of a record and its question."""
_MAX_CUTOFF = 1_000
_FORM = re.compile(r"([A-Za-z][A-Za-z0-9]*)(?:@([0-9]+)|:([a-z_]+))?")
_OWN_FORM = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*)")
_UNSUPPORTED: dict[Verdict, Unsupported] = {
    "abstained": "refusal",
    "incorrect": "hallucination",
    "correct": "gold leak",
}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a question: its record, if there is one, and its score. ``sets`` are the
    pieces of its evidence in an index, None without one. ``judgement`` and ``factuality`` (from 0
    to 1) come from judges; None if none was asked."""

    question: Question
    record: Record | None
    score: QuestionScore
    sets: Sequence[Sequence[EvidencePiece]] | None = None
    judgement: Judgement | None = None
    factuality: float | None = None

    @property
    def failed(self) -> bool:
        """Whether there is no answer."""
        return self.score.status in ("failed", "missing")

    @cached_property
    def absent(self) -> frozenset[Need]:
        """What measures may need and the question does not have."""
        question = self.question
        has: dict[Need, bool] = {
            "answers": bool(question.answers),
            "no answer": not question.answerable,
            "evidence": bool(question.gold_titles if self.sets is None else self.sets),
            "grounding": self.score.grounding is not None,
        }
        return frozenset(need for need, is_there in has.items() if not is_there)

    @cached_property
    def evidence(self) -> EvidenceValues | None:
        """The measures of the evidence in the record; None if unknown."""
        return self.record and evidence_values(self.question, self.record, self.sets)

    @property
    def verdict(self) -> float | None:
        """1 for the right verdict, else 0; None if there is none."""
        return self.judgement and self.judgement.value(self.question)

    @property
    def unsupported(self) -> Unsupported | None:
        """The kind of an answer to an unanswerable question, by the verdict if it was judged."""
        if self.judgement is None:
            return self.score.unsupported
        return self.judgement.verdict and _UNSUPPORTED[self.judgement.verdict]


Value = Callable[[Outcome], float | None]
ToolValue = Callable[[Outcome, str], float | None]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of measure.

    - ``missing``: the score of a question that failed or has no record. None: it is left out.
    - ``needs``: the needs without which the value is None. A question may need gold answers, no
      answer in the corpus, evidence, a rule of grounding, or judged documents. The caller may need
      a judge or an index.
    - ``ranks``: the documents that a ranking orders. A ranking has a cutoff, given as ``name@k``.
    - ``meaning``: one line for people.
    - ``value``: the value for the outcome of a question. Rankings are measured together instead.
    - ``value_of_tool``: the value of one tool, given as ``name:tool``. None: it has no such form.
    - ``per_right``: whether the sum of values is divided by the number of right answers.
    """

    name: str
    unit: Unit
    higher_is_better: bool
    missing: float | None
    needs: frozenset[Need]
    ranks: Ranked | None
    meaning: str
    value: Value = lambda outcome: None
    value_of_tool: ToolValue | None = None
    per_right: bool = False

    @property
    def is_ranking(self) -> bool:
        """Whether the measure is one of a ranking of documents."""
        return self.ranks is not None

    @property
    def form(self) -> str:
        """The forms of its name, for messages and help."""
        if self.is_ranking:
            return f"{self.name}@k"
        return self.name if self.value_of_tool is None else f"{self.name}, {self.name}:TOOL"


def _share(name: str, meaning: str, value: Value, *needs: Need) -> Kind:
    return Kind(name, "share", True, 0.0, frozenset(needs), None, meaning, value)


def _cost(
    name: str, unit: Unit, meaning: str, value: Value, of_tool: ToolValue | None = None
) -> Kind:
    return Kind(name, unit, False, None, frozenset(), None, meaning, value, of_tool)


def _unsupported(name: Unsupported, meaning: str, *, higher_is_better: bool = False) -> Kind:
    title = name.title().replace(" ", "")
    needs = frozenset[Need]({"answers", "no answer"})
    meaning += ", where the corpus has no answer; by the verdict of a judge if there is one"

    def value(of: Outcome) -> float | None:
        return None if of.unsupported is None else float(of.unsupported == name)

    return Kind(title, "share", higher_is_better, 0.0, needs, None, meaning, value)


def _grounded(name: str, meaning: str, *, right: bool) -> Kind:
    """Return the share of right answers that are grounded or, unless ``right``, are not."""

    def value(of: Outcome) -> float:
        is_right = of.score.contain_accuracy if of.verdict is None else of.verdict
        grounding = of.score.grounding
        return is_right * (grounding is not None and grounding.holds == right)

    needs = frozenset[Need]({"answers", "grounding"})
    return Kind(name, "share", right, 0.0, needs, None, meaning, value)


def _ranking(name: str, ranks: Ranked, meaning: str) -> Kind:
    # Which documents were shown, only an index knows.
    needs = frozenset[Need]({"documents", "index"} if ranks == "shown" else {"documents"})
    return Kind(name, "share", True, 0.0, needs, ranks, meaning)


def _total_tokens(of: Outcome) -> float | None:
    return of.record and of.record.usage.prompt_tokens + of.record.usage.completion_tokens


def _calls_of(outcome: Outcome, tool: str) -> float | None:
    return outcome.record and outcome.record.tool_usage_summary.get(tool, 0)


KINDS = (
    _share(
        "EM",
        "the short answer is a gold answer (SQuAD)",
        lambda of: of.score.exact_match,
        "answers",
    ),
    _share(
        "F1",
        "words that short answer and best gold answer share (SQuAD, HotpotQA)",
        lambda of: of.score.f1,
        "answers",
    ),
    _share(
        "ContainAcc",
        "a gold answer occurs in short answer or explanation (A-RAG)",
        lambda of: of.score.contain_accuracy,
        "answers",
    ),
    _share(
        "JudgeAcc",
        "a language model finds the answer correct",
        lambda of: of.verdict,
        "answers",
        "judge",
    ),
    _share(
        "Factuality",
        "how much of the gold answer the answer states, and nothing against it, as a language "
        "model scores it by our prompt",
        lambda of: of.factuality,
        "answers",
        "factuality judge",
    ),
    _unsupported("refusal", "the answer says that there is none", higher_is_better=True),
    _unsupported("hallucination", "the answer names a wrong one"),
    _unsupported("gold leak", "the answer is right all the same"),
    _grounded(
        "GroundedAcc",
        "the answer is right (JudgeAcc if there is a judge, else ContainAcc), and a passage of "
        "each piece of its evidence was shown and is cited; without gold evidence, it stands in "
        "cited text",
        right=True,
    ),
    _grounded("MemoryShare", "the answer is right and not grounded", right=False),
    _share(
        "EvidenceRecall",
        "share of the evidence that was shown",
        lambda of: of.evidence and of.evidence.recall,
        "evidence",
    ),
    _share(
        "FullEvidence",
        f"all evidence was shown within {EVIDENCE_CAP_TOKENS:,} retrieved tokens",
        lambda of: of.evidence and of.evidence.full,
        "evidence",
    ),
    Kind(
        "TokensToEvidence",
        "tokens",
        False,
        float(EVIDENCE_CAP_TOKENS),
        frozenset({"evidence"}),
        None,
        f"retrieved tokens until all evidence was shown, {EVIDENCE_CAP_TOKENS:,} where it was not",
        lambda of: of.evidence and of.evidence.tokens,
    ),
    _cost(
        "RetrievedTokens",
        "tokens",
        "tokens of corpus text in all replies",
        lambda of: of.score.retrieved_tokens,
    ),
    _cost(
        "PromptTokens",
        "tokens",
        "tokens of all requests to the model; what a request repeats of earlier ones counts again",
        lambda of: of.record and of.record.usage.prompt_tokens,
    ),
    _cost(
        "CompletionTokens",
        "tokens",
        "tokens of all replies of the model, its reasoning included",
        lambda of: of.record and of.record.usage.completion_tokens,
    ),
    _cost("TotalTokens", "tokens", "PromptTokens and CompletionTokens", _total_tokens),
    Kind(
        "TokensToRight",
        "tokens",
        False,
        None,
        frozenset({"answers"}),
        None,
        "TotalTokens of all questions, divided by the number of right answers (JudgeAcc if there "
        "is a judge, else ContainAcc); without a right answer, it has no value",
        _total_tokens,
        per_right=True,
    ),
    _cost(
        "ToolCalls",
        "steps",
        "calls of all tools or, as ToolCalls:open, of one",
        lambda of: of.record and sum(of.record.tool_usage_summary.values()),
        _calls_of,
    ),
    _cost(
        "SummarizeCalls",
        "steps",
        "calls of summarize, those that the loop asked for included",
        lambda of: _calls_of(of, SUMMARIZE),
    ),
    _cost(
        "Iterations",
        "steps",
        "turns of the model in which it could call tools, that of the answer included",
        lambda of: of.record and of.record.loops,
    ),
    _cost("Steps", "steps", "tool calls", lambda of: of.score.steps),
    _cost("Seconds", "seconds", "time of model and tools", lambda of: of.score.seconds),
    _cost(
        "Cost",
        "USD",
        "price of the model's tokens; needs a run with prices",
        lambda of: of.score.cost_usd,
    ),
    _ranking("Recall", "shown", "relevant documents among the first k that were shown"),
    _ranking("nDCG", "shown", "gain of the first k documents by grade and rank"),
    _ranking("AP", "shown", "mean precision at the relevant documents"),
    _ranking(
        "CitedRecall",
        "cited",
        "share of the relevant documents that is among the first k that were cited",
    ),
    _ranking("CitedNDCG", "cited", "gain of the first k cited documents by grade and rank"),
    _ranking("CitedSuccess", "cited", "a relevant document is among the first k cited ones"),
)
_BY_NAME = {kind.name: kind for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Measure:
    """A kind of measure with its cutoff, if it is a ranking (1 to 1,000 documents), or with its
    tool."""

    kind: Kind
    cutoff: int | None = None
    tool: str | None = None

    def __str__(self) -> str:
        if self.cutoff is not None:
            return f"{self.kind.name}@{self.cutoff}"
        return self.kind.name if self.tool is None else f"{self.kind.name}:{self.tool}"

    def value(self, outcome: Outcome) -> float | None:
        """Return the value of the outcome of a question. Return None if the question lacks what the
        measure needs, and for a ranking, which is measured together with others."""
        kind = self.kind
        if kind.is_ranking or kind.needs & outcome.absent:
            return None
        if outcome.failed and kind.missing is not None:
            return kind.missing
        if self.tool is not None and kind.value_of_tool is not None:
            return kind.value_of_tool(outcome, self.tool)
        return kind.value(outcome)


JUDGE_ACC, FACTUALITY = Measure(_BY_NAME["JudgeAcc"]), Measure(_BY_NAME["Factuality"])


def parse_measure(text: str) -> Measure:
    """Return the measure with this name. Raises ArgumentError listing what is allowed."""
    form, own = _FORM.fullmatch(text), _OWN_FORM.fullmatch(text)
    kind = _BY_NAME.get(form[1]) if form is not None else None
    if own is not None and kind is None:
        return Measure(_own_kind(text, own[1], own[2]))
    if form is None or kind is None:
        raise _no_such_measure(text, f'There is no measure "{text}".')
    digits, tool = form[2], form[3]
    if tool is not None:
        return _measure_of_tool(kind, tool, text)
    if digits is None:
        if kind.is_ranking:
            raise _no_such_measure(text, f'"{text}" needs a number of documents: {text}@10.')
        return Measure(kind)
    if not kind.is_ranking:
        raise _no_such_measure(text, f'"{kind.name}" takes no number of documents.')
    cutoff = int(digits)
    if not 1 <= cutoff <= _MAX_CUTOFF or digits != str(cutoff):
        raise _no_such_measure(text, f'"{text}" looks at {digits} documents.')
    return Measure(kind, cutoff)


def _measure_of_tool(kind: Kind, tool: str, text: str) -> Measure:
    if kind.value_of_tool is None:
        raise _no_such_measure(text, f'"{kind.name}" takes no tool.')
    tool = OTHER_NAMES.get(tool, tool)
    if tool not in TOOLS:
        raise ArgumentError(
            f'There is no tool "{tool}".',
            where=f"the measure {text}",
            allowed=", ".join(f"{kind.name}:{name}" for name in TOOLS),
        )
    return Measure(kind, tool=tool)


@cache
def _own_kind(text: str, module: str, name: str) -> Kind:
    """Import a measure of your own. It is a share of quality, in which a question that failed or
    has no record scores 0. If its attribute ``higher_is_better`` is False, it is a cost."""
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        function = getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever the module raises
        raise ArgumentError(
            f"The measure {text} cannot be imported ({type(error).__name__}: {error}).",
            where=folder,
            allowed=f"{OWN_MEASURE} of a module in {folder}, or of one that is installed",
            do=f"Run the command in the folder of the module, with {name}(record, question) in it.",
        ) from error
    finally:  # later imports look there last
        sys.path.remove(folder)
        sys.path.append(folder)

    def value(of: Outcome) -> float | None:
        cause = None
        try:
            returned = of.record and function(of.record, of.question)
            if returned is None or (isinstance(returned, Real) and math.isfinite(returned)):
                return None if returned is None else float(returned)
            what = f"The measure returned {returned!r:.80}."
        except Exception as error:  # whatever the function raises
            what, cause = f"The measure raised {type(error).__name__}: {error}.", error
        raise ArgumentError(
            what,
            where=f"the measure {text}, question {of.question.id}",
            allowed="a finite number, or None for a question that does not count",
            do="Correct the function.",
        ) from cause

    is_higher = getattr(function, "higher_is_better", True)
    meaning = (function.__doc__ or "your own").strip().partition("\n")[0]
    missing = 0.0 if is_higher else None
    return Kind(text, "number", is_higher, missing, frozenset(), None, meaning, value)


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
    return ", ".join([*(kind.form for kind in KINDS), OWN_MEASURE])


def _no_such_measure(text: str, what: str) -> ArgumentError:
    close = next((kind.name for kind in KINDS if kind.name.lower() == text.lower()), None)
    module, dot, function = text.rpartition(".")
    if dot and _OWN_FORM.fullmatch(own := f"{module}:{function}"):
        close = own
    return ArgumentError(
        what,
        where="the name of a measure",
        allowed=f"{allowed_names()}; k from 1 to {_MAX_CUTOFF:,}",
        do=f"Write {close}." if close is not None and close != text else "",
    )

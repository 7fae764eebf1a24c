"""A language model's verdicts on why answers are wrong, in the categories of A-RAG. It sees the
whole trajectory. The authors decided by hand, on the first 100 wrong answers of each setting; the
prompts, and the definitions in them, are in our words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial

from arag_search.agent.models.base import ChatModel
from arag_search.agent.record import Record
from arag_search.evaluation.judging.judge import NOT_JUDGED, AnswerJudge, majority, request_of
from arag_search.evaluation.judging.verdict_cache import VerdictCache
from arag_search.evaluation.resolution import IndexedPassage
from arag_search.questions.question import Question
from arag_search.tokens import cut_to
from bench.ablation.judging.prompts import prompt_text
from bench.ablation.unavailable import is_in_texts, texts_of

MAX_CASES = 100
"""The wrong answers that are judged: the first ones in the order of the questions."""
MAX_STEP_TOKENS = 3_000
"""What the model sees of a tool's reply."""

REASONING = "Reasoning Chain Error"
CATEGORIES = (REASONING, "Judge Error", "Model Gave Up", "Corpus Missing")
KINDS = ("Entity Confusion", "Wrong Strategy", "Question Misunderstanding", "Exceed Budget")
"""Kinds of REASONING, and of nothing else."""
NAIVE_CATEGORIES = (
    "Model Understanding",
    "Multi-hop Retrieval",
    "Judge Error",
    "Top-K Insufficient",
    "Gold Answer Error",
)
"""The categories for answers from one retrieval without a tool call."""
_LINE = r"^[\s>#*_`-]*{}[*_`]*\s*:[\s*_`]*({})[\s*_`.]*$"
_BETWEEN = " / "
_AGAIN = "Your reply does not end with a category. End with a line of its own: Category: {}"


@dataclass(frozen=True, slots=True)
class FailureVerdict:
    """The category of a wrong answer and, for a REASONING error, its kind. The category is None if
    no verdict has a majority."""

    category: str | None
    kind: str | None

    def __str__(self) -> str:
        names = (self.category, self.kind)
        return ": ".join(name for name in names if name is not None) or NOT_JUDGED


class FailureJudge(AnswerJudge[FailureVerdict]):
    """A judge of why answers are wrong, which takes the majority of its verdicts."""

    def __init__(
        self, model: ChatModel, *, repeats: int = 1, cache: VerdictCache | None = None
    ) -> None:
        super().__init__(model, repeats=repeats, cache=cache)
        self.in_corpus: Mapping[str, bool] = {}

    def judge_wrong(
        self,
        questions: Sequence[Question],
        records: Mapping[str, Record],
        passages: Iterable[IndexedPassage],
    ) -> dict[str, FailureVerdict]:
        """Return the verdicts on the first MAX_CASES of these wrong answers, by question.
        ``passages`` are those of the corpus, in which right answers are looked for; none if they
        are not known. Raises the errors of ``judge_all``."""
        wrong, texts = questions[:MAX_CASES], texts_of(passages)
        judge = copy(self)
        judge.in_corpus = {item.id: is_in_texts(item, texts) for item in wrong if texts}
        return judge.judge_all(wrong, records)

    def judge(self, question: Question, record: Record) -> FailureVerdict:
        """See AnswerJudge."""
        is_naive = is_one_retrieval(record)
        shown: dict[str, object] = {
            "question": question.text,
            "right answers": list(question.answers),
            "answer": record.answer,
        }
        if question.id in self.in_corpus:
            shown["a right answer stands in the corpus"] = self.in_corpus[question.id]
        if not is_naive:
            shown["all rounds were used"] = record.status == "forced"
        shown["steps"] = [
            {
                "tool": step.tool_name,
                "arguments": step.tool_input,
                "reply": cut_to(step.tool_output, MAX_STEP_TOKENS),
            }
            for step in record.trajectory
        ]
        prompt = "judge_failure_naive" if is_naive else "judge_failure"
        allowed = NAIVE_CATEGORIES if is_naive else CATEGORIES
        votes = self.votes(
            request_of(prompt_text(prompt), shown, question.id),
            partial(read_failure, allowed=allowed),
            _AGAIN.format(" or ".join(allowed)),
        )
        category, _, kind = (majority(votes) or "").partition(_BETWEEN)
        return FailureVerdict(category or None, kind or None)


def is_one_retrieval(record: Record) -> bool:
    """Return whether the model answered from one retrieval that was given with the question."""
    return record.loops == 1 and len(record.trajectory) == 1


def read_failure(reply: str, allowed: Sequence[str]) -> str | None:
    """Return the last category in a reply, with its kind if it is a REASONING error; None if there
    is none, or if that error has no kind."""
    category = _last("category", allowed, reply)
    if category != REASONING:
        return category
    kind = _last("kind", KINDS, reply)
    return None if kind is None else f"{category}{_BETWEEN}{kind}"


def _last(label: str, names: Sequence[str], reply: str) -> str | None:
    line = _LINE.format(label, "|".join(map(re.escape, names)))
    given = re.findall(line, reply, re.IGNORECASE | re.MULTILINE)
    return next((name for name in names if given and name.lower() == given[-1].lower()), None)


def failure_verdict_counts(verdicts: Mapping[str, FailureVerdict]) -> dict[str, int]:
    """Return how often each category and each kind occurs, zeros left out; "not judged" counts
    answers without one."""
    counts = Counter(verdict.category or NOT_JUDGED for verdict in verdicts.values())
    kinds = Counter(verdict.kind for verdict in verdicts.values() if verdict.kind is not None)
    order = dict.fromkeys((*CATEGORIES, *NAIVE_CATEGORIES, NOT_JUDGED))
    ordered = {name: counts[name] for name in order if counts[name]}
    return ordered | {f"{REASONING}: {name}": kinds[name] for name in KINDS if kinds[name]}

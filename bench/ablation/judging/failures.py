"""A language model's verdicts on why answers are wrong, in the categories of A-RAG. It sees the
whole trajectory. The authors decided by hand, on the first 100 wrong answers of each setting; the
prompts, and the definitions in them, are in our words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from arag_search.agent.models.base import ChatModel
from arag_search.agent.record import Record
from arag_search.evaluation.judging.judge import NOT_JUDGED, AnswerJudge, majority, request_of
from arag_search.evaluation.judging.labelled import last_word
from arag_search.evaluation.judging.verdict_cache import VerdictCache
from arag_search.evaluation.resolution import IndexedPassage
from arag_search.questions.question import Question
from arag_search.tokens import cut_to
from bench.ablation.judging.prompts import prompt_text
from bench.ablation.unavailable import is_in_texts, texts_of

MAX_CASES = 100
"""The wrong answers that are judged: the first ones in the order of the questions."""
MAX_STEP_TOKENS = 3_000
"""The most tokens of a tool's reply that the model sees."""

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
_AGAIN = "Your reply does not end with a category. End with a line of its own: Category: {}"


class FailureJudge(AnswerJudge[str]):
    """A judge of why answers are wrong. The judgement is the category of most of its verdicts, with
    its kind if it is a REASONING error ("category: kind"), or NOT_JUDGED. Right answers are looked
    for in the texts of the corpus, if they are known."""

    def __init__(
        self, model: ChatModel, *, repeats: int = 1, cache: VerdictCache | None = None
    ) -> None:
        super().__init__(model, repeats=repeats, cache=cache)
        self._in_corpus: Mapping[str, bool] = {}

    def judge_wrong(
        self,
        questions: Sequence[Question],
        records: Mapping[str, Record],
        passages: Iterable[IndexedPassage],
    ) -> dict[str, str]:
        """Return the verdicts on the first MAX_CASES of these wrong answers, by question.
        ``passages`` are all passages of the corpus, or none if they are not known. Raises the
        errors of ``judge_all``."""
        wrong, texts = questions[:MAX_CASES], texts_of(passages)
        self._in_corpus = {item.id: is_in_texts(item, texts) for item in wrong if texts}
        return self.judge_all(wrong, records)

    def judge(self, question: Question, record: Record) -> str:
        """See AnswerJudge."""
        # The model answered from one retrieval that was given with the question.
        is_naive = record.loops == 1 and len(record.trajectory) == 1
        shown: dict[str, object] = {
            "question": question.text,
            "right answers": list(question.answers),
            "answer": record.answer,
        }
        if question.id in self._in_corpus:
            shown["a right answer stands in the corpus"] = self._in_corpus[question.id]
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
        return majority(votes) or NOT_JUDGED


def read_failure(reply: str, allowed: Sequence[str]) -> str | None:
    """Return the last category in a reply, with its kind if it is a REASONING error. Return None if
    there is none, or if that error has no kind."""
    category = last_word(reply, "category", allowed)
    if category != REASONING:
        return category
    kind = last_word(reply, "kind", KINDS)
    return None if kind is None else f"{category}: {kind}"

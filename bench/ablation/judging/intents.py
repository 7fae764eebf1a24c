"""How searches for the same fact overlap, and whether a failed one is made up for (LogicalRAG,
Figure 1). A language model groups the searches of a record by intent, seeing their queries alone,
and says which found something relevant to its query.

The paper prints neither prompts nor every rule. These are our choices. All passages that a reply
shows are its top K. The overlap of two results is over the larger one; a pair of two empty results
is left out. A search that was refused or shows nothing has failed. A group counts in recovery if
its verdicts decide it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import cast

from arag_search.agent.record import Record, Step
from arag_search.evaluation.judging.judge import AnswerJudge, majority, request_of
from arag_search.evaluation.judging.labelled import last_word
from arag_search.evaluation.trajectories import arguments_of, found_something, searches_of
from arag_search.questions.question import Question
from arag_search.tokens import cut_to
from bench.ablation.judging.prompts import prompt_text

MAX_PASSAGE_TOKENS = 1_500
"""The most tokens of a passage that the model sees."""
_GROUP = re.compile(r"^[\s>#*_`-]*group[*_`]*\s*:[\s*_`]*([\d,\s]*\d)[\s*_`.]*$", re.I | re.M)
_GROUPS_AGAIN = "Your reply has no groups. End with a line for each group, such as: Group: 1, 2"
_SEARCH_AGAIN = (
    "Your reply does not end with a verdict. End with a line of its own: Search: success or failure"
)


@dataclass(frozen=True, slots=True)
class Intent:
    """The searches of a record for the same fact, in order. ``searches`` are their numbers among
    its searches, from 1, and ``results`` the ids of the passages that each showed. ``successes``
    says whether each was a success, None if that was not judged. Successes of an intent with one
    search are not judged."""

    searches: tuple[int, ...]
    results: tuple[tuple[str, ...], ...]
    successes: tuple[bool | None, ...]

    @property
    def overlap(self) -> float | None:
        """The mean over neighbouring searches of the share of passages in both results; None
        without a pair of which at least one found something."""
        pairs = [(set(first), set(second)) for first, second in pairwise(self.results)]
        shares = [
            len(first & second) / max(len(first), len(second))
            for first, second in pairs
            if first or second
        ]
        return fmean(shares) if shares else None

    @property
    def is_recovered(self) -> bool | None:
        """Whether a later search succeeded after the first one failed. None if there is no later
        one, if the first did not fail, or if verdicts are missing that would decide it."""
        first, *later = self.successes
        if first is not False or not later:
            return None
        return True if True in later else None if None in later else False


Intents = tuple[Intent, ...] | None
"""The intents of a record, None if the model did not group its searches."""


def repeated(records: Iterable[Intents]) -> list[Intent]:
    """Return the intents with several searches, over which overlap and recovery are measured; each
    weighs the same."""
    return [intent for of in records for intent in of or () if len(intent.searches) > 1]


class IntentJudge(AnswerJudge[Intents]):
    """A judge of searches. It groups the searches of a record, and judges the searches in a group
    of several, by the majority of its verdicts."""

    def judges(self, question: Question) -> bool:
        """See AnswerJudge. No gold answer is needed."""
        del question
        return True

    def judge(self, question: Question, record: Record) -> Intents:
        """See AnswerJudge. The model is not asked to group a single search."""
        steps = searches_of(record)
        groups: tuple[tuple[int, ...], ...] | None = ((1,),) if steps else ()
        if len(steps) > 1:
            groups = self._groups(question.id, [query_of(step) for step in steps])
        if groups is None:
            return None
        texts = _texts_of(record)
        intents: list[Intent] = []
        for group in groups:
            members = [steps[number - 1] for number in group]
            alone = len(group) == 1
            successes = (None if alone else self._success(question.id, s, texts) for s in members)
            shown = (step.hit_ids for step in members)
            intents.append(Intent(group, tuple(shown), tuple(successes)))
        return tuple(intents)

    def _groups(self, id: str, queries: Sequence[str]) -> tuple[tuple[int, ...], ...] | None:
        shown = {str(number): query for number, query in enumerate(queries, 1)}
        request = request_of(prompt_text("judge_intents"), shown, id)
        verdict = majority(self.votes(request, _read_groups, _GROUPS_AGAIN))
        return None if verdict is None else grouped(verdict, len(queries))

    def _success(self, id: str, step: Step, texts: Mapping[str, str]) -> bool | None:
        if not found_something(step):
            return False
        passages = [
            {"title": title, "text": cut_to(text or texts.get(passage, ""), MAX_PASSAGE_TOKENS)}
            for passage, title, text in step.shown_passages()
            if passage in step.hit_ids
        ]
        shown = {"query": query_of(step), "passages": passages}
        request = request_of(prompt_text("judge_search"), shown, id)
        verdict = majority(self.votes(request, _read_search, _SEARCH_AGAIN))
        return None if verdict is None else verdict == "success"


def grouped(verdict: str, searches: int) -> tuple[tuple[int, ...], ...]:
    """Return the groups of a verdict such as "1,3;2", with every search in exactly one. This is the
    first group that names the search, or a group of its own. They are in the order of their first
    searches."""
    left = set(range(1, searches + 1))
    groups: list[tuple[int, ...]] = []
    for group in verdict.split(";"):
        numbers = sorted(left & {int(number) for number in group.split(",")})
        left.difference_update(numbers)
        if numbers:
            groups.append(tuple(numbers))
    return tuple(sorted([*groups, *((number,) for number in left)]))


def query_of(step: Step) -> str:
    """Return the query of a search as it was issued; several queries or keywords have a line
    each."""
    given = arguments_of(step)
    texts: list[str] = []
    for name in ("query", "queries", "keywords"):
        value = given.get(name)
        values = cast(list[object], value) if isinstance(value, list) else [value]
        texts += [str(text) for text in values if text]
    return "\n".join(texts)


def _read_groups(reply: str) -> str | None:
    """Return the groups of a reply as a verdict, None if there are none."""
    groups = [re.findall(r"\d{1,4}", numbers) for numbers in _GROUP.findall(reply)]
    return ";".join(",".join(numbers) for numbers in groups) or None


def _read_search(reply: str) -> str | None:
    return last_word(reply, "search", ("success", "failure"))


def _texts_of(record: Record) -> dict[str, str]:
    """Return the longest text that the record shows of each passage: a later reply may leave out
    what was shown before."""
    texts: dict[str, str] = {}
    for step in record.trajectory:
        for id, _, text in step.shown_passages():
            texts[id] = max(texts.get(id, ""), text, key=len)
    return texts

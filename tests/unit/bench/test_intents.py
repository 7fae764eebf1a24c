"""Overlap and recovery of searches for the same fact, on ten trajectories worked out by hand, with
recorded verdicts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arag_search.agent.models.base import ModelReply, ModelRequest
from arag_search.agent.record import Record, Step
from arag_search.evaluation.judging.verdict_cache import VerdictCache
from arag_search.questions.question import Question
from bench.ablation.judging.intents import Intent, IntentJudge, grouped, query_of, repeated
from tests.support.records import read, record, search
from tests.support.scripted_model import ScriptedModel

TRAJECTORIES: dict[str, tuple[str, str]] = {
    # searches: fact, passages shown, + for a success; and the groups of the recorded reply
    "t1": ("A abc -, A bcd +", "Group: 1, 2"),
    "t2": ("A ab +, A ab +", "Group: 1, 2"),
    "t3": ("A ab -, B c +, A ab -", "Group: 1, 3\nGroup: 2"),
    "t4": ("A . -, A a +", "**Group: 1,2**"),
    "t5": ("A . -, A . -", "Group: 1, 2"),
    "t6": ("A abcd -, A cd -, A de +", "Group: 1, 2, 3"),
    "t7": ("A a +", "never asked"),
    "t8": ("A a +, B b -, C c +", "Group: 1\nGroup: 2\nGroup: 3"),
    "t9": ("A ab -, A cd -, B ef -, B ef +", "Group: 1, 2\nGroup: 3, 4"),
    "t10": ("A abc +, A a +, B z +", "Group: 1, 2\nGroup: 2"),
}
QUESTIONS = [Question(id, "?", ()) for id in TRAJECTORIES]


def step_of(id: str, number: int, text: str) -> Step:
    fact, shown, mark = text.split()
    ids = [] if shown == "." else list(shown)
    output = "\n".join(["head", *(f"[{name}] Title\nText of {name}." for name in ids)])
    query = f"{id} {number} {fact} {mark}"
    return search(*ids, text=output, tool_input={"query": query})


def records() -> dict[str, Record]:
    return {
        id: record(id, "x", *(step_of(id, n, text) for n, text in enumerate(searches.split(", "))))
        for id, (searches, _) in TRAJECTORIES.items()
    }


def recorded_reply(request: ModelRequest) -> ModelReply:
    """Return the recorded reply: to the queries of a trajectory, or to one with its passages."""
    system, user = request.messages
    shown = json.loads(user.content)
    if system.content.startswith("You group"):
        assert list(shown) == [str(number) for number in range(1, len(shown) + 1)]
        return ModelReply(TRAJECTORIES[request.question_id][1])
    assert [passage["text"][:8] for passage in shown["passages"]] == ["Text of "] * len(
        shown["passages"]
    )
    return ModelReply("Search: success" if shown["query"].endswith("+") else "Search: failure")


def test_overlap_and_recovery_of_ten_trajectories_are_those_worked_out_by_hand() -> None:
    judge = IntentJudge(ScriptedModel(recorded_reply))
    judged = judge.judge_all(QUESTIONS, records())
    # Intents: 1, 1, 2, 1, 1, 1, 1, 3, 2 and 2; searched for again: one each of t1 to t6, two of
    # t9, one of t10. Overlaps: t1 2/3, t2 1, t3 1, t4 0, t5 none, t6 (2/4 + 1/2) / 2, t9 0 and 1,
    # t10 1/3. First failed: t1, t3, t4, t5, t6 and both of t9; recovered t1, t4, t6, second of t9.
    assert sum(len(intents or ()) for intents in judged.values()) == 15
    again = repeated(judged.values())
    assert len(again) == 9
    overlaps = [share for intent in again if (share := intent.overlap) is not None]
    assert overlaps == pytest.approx([2 / 3, 1, 1, 0, 1 / 2, 0, 1, 1 / 3])
    recovered = [intent.is_recovered for intent in again]
    assert (recovered.count(True), recovered.count(False)) == (4, 3)


def test_verdicts_are_kept_and_the_model_sees_only_what_it_must(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    model = ScriptedModel(recorded_reply)
    first = IntentJudge(model, cache=VerdictCache(path)).judge_all(QUESTIONS, records())
    # 9 groupings, and the searches of intents with several that show something: 2, 2, 2, 1, 0, 3,
    # 0, 0, 4 and 2
    assert len(model.requests) == 9 + 16
    again = IntentJudge(ScriptedModel([]), cache=VerdictCache(path))
    assert again.judge_all(QUESTIONS, records()) == first


@pytest.mark.parametrize(
    ("verdict", "groups"),
    [("1,3;2", ((1, 3), (2,))), ("3,1;2,3;9", ((1, 3), (2,))), ("2", ((1,), (2,), (3,)))],
)
def test_every_search_is_in_exactly_one_group(
    verdict: str, groups: tuple[tuple[int, ...], ...]
) -> None:
    assert grouped(verdict, 3) == groups


def test_without_groups_a_record_is_not_grouped_and_without_searches_it_has_no_intent() -> None:
    question = Question("q", "?", ())
    model = ScriptedModel([ModelReply("They differ."), ModelReply("I said so.")])
    two = record("q", "x", search("a"), search("b"))
    assert IntentJudge(model).judge(question, two) is None
    assert model.requests[1].messages[-1].content.startswith("Your reply has no groups.")
    assert IntentJudge(ScriptedModel([])).judge(question, record("q", "x", read("a"))) == ()
    assert repeated([None, ()]) == []


@pytest.mark.parametrize(
    ("successes", "is_recovered"),
    [
        ((False, None, True), True),
        ((False, None), None),
        ((False, False), False),
        ((None, True), None),
        ((True, False), None),
        ((False,), None),
    ],
)
def test_an_intent_counts_if_its_verdicts_decide_it(
    successes: tuple[bool | None, ...], is_recovered: bool | None
) -> None:
    numbers = tuple(range(1, len(successes) + 1))
    assert Intent(numbers, ((),) * len(numbers), successes).is_recovered is is_recovered


def test_a_text_that_a_later_reply_leaves_out_is_taken_from_the_earlier_one() -> None:
    def reply(request: ModelRequest) -> ModelReply:
        system, user = request.messages
        if system.content.startswith("You group"):
            return ModelReply("Group: 1, 2")
        (passage,) = json.loads(user.content)["passages"]
        return ModelReply(
            "Search: success" if passage["text"] == "All of it." else "Search: failure"
        )

    steps = (search("a", text="head\n[a] T\nAll of it."), search("a", text="head\n[a] T"))
    intents = IntentJudge(ScriptedModel(reply)).judge(
        Question("q", "?", ()), record("q", "x", *steps)
    )
    assert intents is not None
    assert intents[0].successes == (True, True)


def test_a_query_is_shown_as_it_was_issued() -> None:
    given = {"keywords": ["Bea", "Bath"], "top_k": 3}
    assert query_of(search("a", tool_input=given)) == "Bea\nBath"

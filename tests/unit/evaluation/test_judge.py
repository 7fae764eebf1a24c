"""The judge: its requests, verdicts, repeats, stored verdicts, and agreement with people."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from arag_search.agent.models.base import ModelReply, ModelRequest
from arag_search.errors import ArgumentError, ModelUnavailableError, RunError
from arag_search.evaluation.judging.judge import Judge, Judgement, Verdict, read_verdict
from arag_search.evaluation.judging.judges import Judges
from arag_search.evaluation.judging.verdict_cache import VerdictCache
from arag_search.questions.question import Question
from tests.support.records import record
from tests.support.scripted_model import ScriptedModel

QUESTION = Question("q", "Where did Bea die?", ("Bath", "Bath, England"))
UNANSWERABLE = Question("g", "Where did Bea die?", ("Bath",), answerable=False)
ANSWER = record("q", "In Bath", explanation="She died there.")


def scripted_model(*texts: str) -> ScriptedModel:
    return ScriptedModel([ModelReply(text) for text in texts])


def fail_on_request(request: ModelRequest) -> ModelReply:
    raise AssertionError(request)


# Verdicts


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("Same city.\nVerdict: correct", "correct"),
        ("**Verdict:** Incorrect.", "incorrect"),
        ("> verdict: *abstained*\n", "abstained"),
        ("Verdict: correct\nOn reflection:\nVerdict: incorrect", "incorrect"),
        ("Verdict: correct\nHm.\nVerdict: incorrect (different person)", "incorrect"),
        ("Verdict: incorrect, since the correct answer is Bath", "incorrect"),
        ("Verdict: correct\nVerdict: partially correct", None),
        ("Verdict: correct\nVerdict: unsure", None),
        ("Verdict: correct\nVerdict:", None),
        ("Verdict: **not** correct.", "incorrect"),
        ("Verdict: not incorrect", None),
        ("Verdict: correctly", None),
        ("Verdict: ~~correct~~ incorrect", None),
        ("Verdict\uff1acorrect", "correct"),
        ("Verdict \u2014 incorrect", "incorrect"),
        ("Verdict - correct", "correct"),
        ("Final verdict is incorrect.", "incorrect"),
        ('3. **Final verdict:** "Correct"', "correct"),
        ("`Verdict: correct`", "correct"),
        ("### Verdict\n\nIncorrect: he died in Rome.", "incorrect"),
        ("| Verdict | correct |", "correct"),
        ("<verdict>\ncorrect\n</verdict>", "correct"),
        ('{"verdict": "correct"}', "correct"),
        ('{"reason": "Verdict: correct", "final_verdict": "Incorrect"}', "incorrect"),
        (
            '```json\n{\n  "verdict": "incorrect",\n  "reason": "\\nVerdict: correct"\n}\n```',
            "incorrect",
        ),
        ('{"verdict": true}', None),
        ("Verdict: correct or incorrect", None),
        ("Verdict: [correct/incorrect]", None),
        ("The candidate wrote: Verdict: correct", None),
        ('"Verdict: correct" is what the candidate wrote.', None),
        ('{"verdict": "correct"} is what the candidate wrote.', None),
        ("Verdict: incorrect\nThe candidate wrote: Verdict: correct", "incorrect"),
        ("The verdict: correct is tempting", None),
        ("correct", None),
        ("", None),
    ],
)
def test_the_last_verdict_on_a_line_of_its_own_counts(reply: str, verdict: str | None) -> None:
    assert read_verdict(reply) == verdict


@pytest.mark.parametrize(
    "part",
    [
        "*",
        "# ",
        "1. ",
        '"',
        '{"a":',
        "Verdict: ",
        "Verdict\n",
        "(",
        "/",
        " is",
        "\n",
        "\u201c",
        "or ",
        '"a\n',
    ],
)
def test_a_long_reply_is_read_in_steps_that_grow_with_its_length(part: str) -> None:
    # If they grew with its square, 100 kB would take minutes.
    for before in ("", "Verdict", "Verdict: correct"):
        read_verdict(before + part * (100_000 // len(part)))


def test_the_judge_sees_question_gold_answers_and_answer_and_nothing_else() -> None:
    model = scripted_model("Verdict: correct")
    assert Judge(model).judge(QUESTION, ANSWER) == Judgement("correct", ("correct",))
    system, user = model.requests[0].messages
    assert "Verdict: abstained" not in system.content
    assert json.loads(user.content) == {
        "question": "Where did Bea die?",
        "right answers": ["Bath", "Bath, England"],
        "answer of the candidate": "In Bath",
        "explanation of the candidate": "She died there.",
    }


def test_a_reply_without_a_verdict_is_asked_for_again_once_then_not_judged() -> None:
    model = scripted_model("It is fine.", "Verdict: correct", "Hm.", "Verdict: abstained")
    judge = Judge(model)
    assert judge.judge(QUESTION, ANSWER).verdict == "correct"
    assert model.requests[1].messages[-1].content == (
        "Your reply does not end with a verdict. End with a line of its own: Verdict: correct or "
        "incorrect"
    )
    other = judge.judge(QUESTION, record("q", "Rome"))
    assert other == Judgement(None, (None,))
    assert other.value(QUESTION) is None


@pytest.mark.parametrize(
    ("votes", "verdict"),
    [
        (("correct", "incorrect", "correct"), "correct"),
        (("correct", "incorrect"), None),
        (("correct", "x", "incorrect", "incorrect"), "incorrect"),
    ],
)
def test_the_majority_of_the_repeats_counts_and_a_tie_is_no_verdict(
    votes: tuple[str, ...], verdict: str | None
) -> None:
    texts = [f"Verdict: {vote}" for vote in votes for _ in range(2 if vote == "x" else 1)]
    judgement = Judge(scripted_model(*texts), repeats=len(votes)).judge(QUESTION, ANSWER)
    assert judgement.verdict == verdict
    assert judgement.votes == tuple(None if vote == "x" else vote for vote in votes)


@pytest.mark.parametrize("repeats", [0, 16])
def test_repeats_are_bounded(repeats: int) -> None:
    with pytest.raises(ArgumentError) as caught:
        Judge(scripted_model(), repeats=repeats)
    assert str(caught.value) == (
        f"Answers cannot be judged {repeats} times.\nAllowed: 1 to 15 repeats, better an odd number"
    )


@pytest.mark.parametrize(
    ("question", "verdict", "value"),
    [
        (QUESTION, "correct", 1),
        (QUESTION, "incorrect", 0),
        (UNANSWERABLE, "abstained", 1),
        (UNANSWERABLE, "correct", 0),
        (UNANSWERABLE, "incorrect", 0),
    ],
)
def test_for_a_question_without_an_answer_only_abstaining_is_right(
    question: Question, verdict: Verdict, value: float
) -> None:
    model = scripted_model(f"Verdict: {verdict}")
    judgement = Judge(model).judge(question, ANSWER)
    assert (judgement.verdict, judgement.value(question)) == (verdict, value)


def test_an_empty_answer_is_not_shown_to_the_model() -> None:
    judge = Judge(ScriptedModel(fail_on_request), repeats=3)
    assert judge.judge(QUESTION, record("q", " ")) == Judgement("incorrect", ("incorrect",) * 3)
    assert judge.judge(UNANSWERABLE, record("g", "")).verdict == "abstained"


def test_all_questions_with_an_answer_and_a_record_are_judged() -> None:
    model = ScriptedModel(lambda _: ModelReply("Verdict: correct"))
    without_answers = Question("j", "?", ())
    records = {"q": ANSWER, "j": record("j", "x"), "f": record("f", "x", status="failed")}
    questions = [QUESTION, without_answers, Question("f", "?", ("x",)), Question("m", "?", ("x",))]
    assert list(Judge(model).judge_all(questions, records)) == ["q"]


# Stored verdicts


def test_stored_verdicts_are_reused_and_more_repeats_ask_only_for_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    Judge(scripted_model("Verdict: correct"), cache=VerdictCache(path)).judge(QUESTION, ANSWER)
    assert (
        Judge(ScriptedModel(fail_on_request), cache=VerdictCache(path))
        .judge(QUESTION, ANSWER)
        .verdict
    )
    more = scripted_model("Verdict: incorrect", "Verdict: correct")
    judgement = Judge(more, repeats=3, cache=VerdictCache(path)).judge(QUESTION, ANSWER)
    assert judgement.votes == ("correct", "incorrect", "correct")
    assert len(path.read_bytes().splitlines()) == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda question, answer, model: (question, record("q", "Rome"), model),
        lambda question, answer, model: (Question("q", "?", ("Bath",)), answer, model),
        lambda question, answer, model: (question, answer, "other"),
    ],
    ids=["answer", "question", "model"],
)
def test_another_answer_question_or_model_is_judged_anew(
    tmp_path: Path, change: Callable[..., tuple[Question, object, str]]
) -> None:
    path = tmp_path / "v.jsonl"
    Judge(scripted_model("Verdict: correct"), cache=VerdictCache(path)).judge(QUESTION, ANSWER)
    question, answer, name = change(QUESTION, ANSWER, "scripted")
    model = scripted_model("Verdict: incorrect")
    model.fingerprint = name
    judgement = Judge(model, cache=VerdictCache(path)).judge(question, answer)  # type: ignore[arg-type]
    assert judgement.verdict == "incorrect"


def test_a_reply_without_a_verdict_is_not_stored(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    Judge(scripted_model("Hm.", "Hm."), cache=VerdictCache(path)).judge(QUESTION, ANSWER)
    assert not path.exists()


def test_verdicts_before_a_failure_are_stored(tmp_path: Path) -> None:
    def reply(request: ModelRequest) -> ModelReply:
        if request.question_id == "r":
            raise ModelUnavailableError("busy")
        return ModelReply("Verdict: correct")

    path = tmp_path / "v.jsonl"
    questions = [QUESTION, Question("r", "Why?", ("x",))]
    judge = Judge(ScriptedModel(reply), cache=VerdictCache(path))
    with pytest.raises(ModelUnavailableError):
        judge.judge_all(questions, {"q": ANSWER, "r": record("r", "x")})
    assert len(VerdictCache(path)) == 1


def test_a_stored_reply_is_read_again_by_the_rules_of_today(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    Judge(scripted_model("Verdict: correct"), cache=VerdictCache(path)).judge(QUESTION, ANSWER)
    stored = json.loads(path.read_bytes())
    reply = "Verdict: correct, it seems.\nVerdict: incorrect (another person)"
    path.write_text(json.dumps({**stored, "reply": reply}) + "\n")
    judge = Judge(ScriptedModel(fail_on_request), cache=VerdictCache(path))
    assert judge.to_ask([QUESTION], {"q": ANSWER}) == []
    assert judge.judge(QUESTION, ANSWER).verdict == "incorrect"


@pytest.mark.parametrize("reply", [None, "", "Verdict: correct\nVerdict: partially correct"])
def test_a_stored_verdict_that_no_reply_has_is_asked_again_and_counted_before(
    tmp_path: Path, reply: str | None
) -> None:
    path = tmp_path / "v.jsonl"
    Judge(scripted_model("Verdict: correct"), cache=VerdictCache(path)).judge(QUESTION, ANSWER)
    stored = {**json.loads(path.read_bytes()), "reply": reply}
    path.write_text(json.dumps({k: v for k, v in stored.items() if v is not None}) + "\n")
    notes: list[str] = []
    model = scripted_model("Verdict: incorrect", "Verdict: incorrect")
    judges = Judges.of(model, (), 2, VerdictCache(path), notes.append)
    judges.tell_cost([QUESTION], {"q": ANSWER})
    assert notes == [
        "2 verdicts are asked of scripted, 1 of them again: no verdict is in its stored reply."
    ]
    assert not model.requests
    assert judges.verdicts is not None
    assert judges.verdicts.judge(QUESTION, ANSWER).votes == ("incorrect", "incorrect")
    judges.tell_cost([QUESTION], {"q": ANSWER})
    Judges.of(model, (), 2, VerdictCache(path), notes.append).tell_cost([QUESTION], {"q": ANSWER})
    assert len(notes) == 1


def test_an_incomplete_last_line_is_skipped_and_the_next_begins_on_a_new_line(
    tmp_path: Path,
) -> None:
    path = tmp_path / "v.jsonl"
    cache = VerdictCache(path)
    cache.put("a", "q", "correct", "Verdict: correct")
    with path.open("ab") as file:
        file.write(b'{"key": "b", "verd')
    reopened = VerdictCache(path)
    assert (len(reopened), reopened.get("a")) == (1, "Verdict: correct")
    reopened.put("c", "q", "incorrect", "No.")
    assert [VerdictCache(path).get(key) for key in "abc"] == ["Verdict: correct", None, "No."]


def test_a_file_without_verdicts_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text('{"id": 1}\n')
    with pytest.raises(RunError) as caught:
        VerdictCache(path)
    assert caught.value.where == f"{path}, line 1"
    assert "key" in caught.value.what
    path.write_text("a text\n")
    with pytest.raises(RunError, match=r"^A verdict is not JSON"):
        VerdictCache(path)
    with pytest.raises(RunError, match="cannot be read"):
        VerdictCache(tmp_path)

"""The systems of A-RAG's table over the sample, by scripted replies: the calls that they make and
the passages that they read, counted by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from arag_search.agent.models.base import ChatModel, ModelReply, ModelRequest, Usage
from arag_search.agent.record import Record
from arag_search.runs.folder import read_records
from arag_search.tools.replies.parts import ShownPassage
from bench.ablate import main
from bench.ablation.suite import ModelEntry
from bench.rivals import process
from bench.rivals.answerer import prompt
from bench.rivals.entity_graph import Active, EntityGraph
from bench.rivals.ragenta import above, score_of
from tests.support.ablations import read_cells
from tests.support.commands import Command
from tests.support.scripted_model import ScriptedModel

OURS = "(our reading, not the authors' code)"
USAGE = Usage(100, 10, "endpoint", 30)
LAST = "Answer: Paris\nExplanation: So it is said.\nSources: [goldoni.1]"

Reply = str | ModelReply
Replies = Mapping[str, Reply | Callable[[str], Reply]]
"""What a model replies in a role: a reply, or a function of the request."""


class Roles:
    """A model for suites that replies by the role of a request; its requests are kept by role."""

    def __init__(self, replies: Replies, interrupted: tuple[str, str] = ("", "")) -> None:
        self.roles: list[str] = []
        self.requests: list[ModelRequest] = []
        self._replies = {prompt(role): (role, reply) for role, reply in replies.items()}
        self._interrupted = interrupted

    def __call__(self, entry: ModelEntry, seed: int | None) -> ChatModel:
        return ScriptedModel(self._reply)

    def _reply(self, request: ModelRequest) -> ModelReply:
        system, user = (message.content for message in request.messages)
        role, reply = self._replies.get(system, ("agent", "Answer: Paris"))
        if (role, request.question_id) == self._interrupted:
            raise KeyboardInterrupt
        self.roles.append(role)
        self.requests.append(request)
        given = reply(user) if callable(reply) else reply
        return ModelReply(given, usage=USAGE) if isinstance(given, str) else given

    def told(self, role: str) -> list[str]:
        """Return what the requests in a role said."""
        return [
            r.messages[1].content for r in self.requests if r.messages[0].content == prompt(role)
        ]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rivals")
    data = folder / "data" / "sample"
    data.mkdir(parents=True)
    for name in ("corpus.jsonl", "questions.jsonl"):
        (data / name).write_bytes((files("arag_search") / "sample" / name).read_bytes())
    return folder


def run_suite(
    work: Path, name: str, rivals: list[Any], models: Roles, *more: str, level: str = "",
    **experiment: Any,
) -> int:  # fmt: skip
    levels = (
        [level]
        if level
        else [f"{of['rival'] if isinstance(of, dict) else of} {OURS}" for of in rivals]
    )
    suite = {
        "name": name,
        "description": "Rivals.",
        "experiment": {
            "kind": "agent", "sets": ["sample"], "questions": "first 1", "encoder": "hashing:16",
            "presets": ["direct_answer"], "rivals": rivals, "models": ["scripted"], **experiment,
        },
        "comparison": {
            "factor": "preset", "pairs": [["direct_answer", level] for level in levels],
            "primary": "EM", "secondary": ["RetrievedTokens"],
        },
        "measures": ["EvidenceRecall", "Iterations", "Seconds"],
    }  # fmt: skip
    path = work / f"{name}.yaml"
    path.write_text(yaml.safe_dump(suite))
    folders = ["--work", str(work / "work"), "--data", str(work / "data")]
    return main([str(path), *folders, *more], models)


def record_of(work: Path, name: str, rival: str) -> Record:
    """Return the record of the first question that a rival answered in a suite."""
    (run,) = (work / "work" / name / "runs").glob(f"*{rival}*/*/run.json")
    return read_records(run.parent).by_id["s01"]


MA_RAG: Replies = {
    "ma_rag_planner": "1. Who revised the libretto of Griselda?\n2. Where did this person die?",
    "ma_rag_definer": lambda said: (
        "Where did Carlo Goldoni die?"
        if said.endswith("die?")
        else "Who revised the libretto of Antonio Vivaldi's Griselda?"
    ),
    "ma_rag_extractor": "[goldoni.1] He died in Paris.",
    "ma_rag_step_answerer": "Paris [goldoni.1]",
    "ma_rag_answer": LAST,
}


def test_ma_rag_plans_once_and_asks_three_agents_a_step(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = Roles(MA_RAG)
    assert run_suite(work, "planned", ["ma_rag"], models) == 0, capsys.readouterr().err
    step = ["ma_rag_definer", "ma_rag_extractor", "ma_rag_step_answerer"]
    assert models.roles == ["agent", "ma_rag_planner", *step, *step, "ma_rag_answer"]
    record = record_of(work, "planned", "ma_rag")
    search = "naive_embedding_search"
    one_step = ["ma_rag_definer", search, "ma_rag_extractor", "ma_rag_step_answerer"]
    steps = ["ma_rag_planner", *one_step, *one_step, "ma_rag_answer"]
    assert [s.tool_name for s in record.trajectory] == steps
    assert record.loops == 8  # a plan, two steps of three requests, the answer
    assert record.usage == Usage(800, 80, "endpoint", 240)
    assert (record.answer_short, record.status) == ("Paris", "answered")
    searches = [s for s in record.trajectory if s.tool_name == search]
    assert searches[1].tool_input == {"query": "Where did Carlo Goldoni die?", "top_k": 5}
    assert [len(s.hit_ids) for s in searches] == [5, 5]
    assert record.total_retrieved_tokens == sum(s.retrieved_tokens for s in searches) > 0
    shown = searches[1].shown_passages()
    extracting = models.told("ma_rag_extractor")[1]
    assert all(f"[{passage.id}] {passage.title}\n{passage.text}" in extracting for passage in shown)
    assert record.trajectory[3].tool_input["passages"] == list(searches[0].hit_ids)
    assert "1. Who revised" in models.told("ma_rag_definer")[1]


def test_a_killed_run_is_resumed_and_stands_in_report_and_viewer(
    work: Path, arag: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {"questions": "first 3"}
    killed = Roles(MA_RAG, interrupted=("ma_rag_step_answerer", "s02"))
    assert run_suite(work, "killed", ["ma_rag"], killed, **asked) == 130
    resumed = Roles(MA_RAG)
    assert run_suite(work, "killed", ["ma_rag"], resumed, **asked) == 0, capsys.readouterr().err
    questions = [request.question_id for request in resumed.requests]
    assert questions == ["s02"] * 8 + ["s03"] * 8  # those of the agent and the first one stay
    report = (work / "work" / "killed" / "report" / "killed.md").read_text()
    row = next(of for of in report.splitlines() if of.startswith(f"| sample | ma_rag {OURS}"))
    cell = next(c for c in read_cells(work / "work" / "killed") if "ma_rag" in c.key["preset"])
    values = [of.values for of in cell.rows]
    assert [of["EM"] for of in values] == [1, 0, 0]
    assert [of["TotalTokens"] for of in values] == [880] * 3
    assert [of["CachedTokens"] for of in values] == [240] * 3
    assert [of["FixedTokens"] for of in values] == [None] * 3  # no request repeats another
    assert [of["Iterations"] for of in values] == [8] * 3
    assert "| 880 [880, 880], mean 880 [880, 880] | 240 [240, 240] |" in row
    (run,) = (work / "work" / "killed" / "runs").glob("*ma_rag*/*")
    page = work / "page.html"
    questions_file = str(work / "data" / "sample" / "questions.jsonl")
    viewed = arag("view", str(run), "--out", str(page), "--questions", questions_file)
    assert viewed.code == 0, viewed.err
    assert "ma_rag_extractor" in page.read_text()


@pytest.mark.parametrize(
    ("rival", "requests"),
    [
        ("linear_rag", 1),
        ("ma_rag", 11),  # a plan, three steps of three, an answer
        ("faithful_rag", 4),
        ("ragenta", 13),
        ({"rival": "ragenta", "set": {"passages": 20}}, 43),
    ],
)
def test_a_dry_run_counts_the_requests_of_each_system(
    work: Path, capsys: pytest.CaptureFixture[str], rival: Any, requests: int
) -> None:
    assert run_suite(work, "dry", [rival], Roles({}), "--dry-run") == 0
    said = capsys.readouterr().out
    assert f"{OURS}: {requests} requests a question" in said
    # direct_answer makes one more
    assert f"Estimate for scripted: about {requests + 1} requests" in said


GRAPH = EntityGraph(
    names=("A", "B", "C"),
    ids=("p0", "p1", "p2"),
    passages=(0, 100, 200),
    sentences=(0, 100, 200),
    mentions=((0, 1), (1, 2), (0,)),
    edges=np.array([(0, 0, 1), (1, 0, 1), (1, 1, 1), (2, 1, 2), (0, 2, 1)]),
    vectors=np.array([[1, 0], [0.6, 0.8], [0, 1]], np.float32),
)
"""A and B stand in the sentence of the first passage, B and C, C twice, in that of the second, A in
that of the third."""


def test_scores_pass_from_entity_to_entity_by_the_best_unread_sentence() -> None:
    cosines = np.array([0.8, 0.9, 0.1])
    active = GRAPH.activated({0: Active(0.9, 1)}, cosines, 3, 1, 0.5)
    # A passes .9 x .8 by its better sentence; B passes .72 x .9 by the one that is not yet read.
    assert [of.round for of in active.values()] == [1, 2, 3]
    assert [of.score for of in active.values()] == pytest.approx([0.9, 0.72, 0.648])
    assert set(GRAPH.activated({0: Active(0.9, 1)}, cosines, 3, 1, 0.7)) == {0, 1}
    assert set(GRAPH.activated({0: Active(0.9, 1)}, cosines, 1, 1, 0.5)) == {0, 1}


def test_a_passage_weighs_its_dense_score_and_its_active_entities() -> None:
    active = {0: Active(0.9, 1), 1: Active(0.72, 2), 2: Active(0.648, 3)}
    weights = GRAPH.weights(active, np.array([0.2, 0.6, 0.4]), 1.5)
    # log(1 + .9 log 2 + .36 log 2); 1.5 + log(1 + .36 log 2 + .216 log 3); .75 + log(1 + .9 log 2)
    assert weights == pytest.approx([0.62774, 1.89665, 1.23479], abs=1e-5)


def test_page_rank_starts_anew_where_no_edge_leads_on() -> None:
    pair = replace(GRAPH, names=("A",), edges=np.array([(0, 0, 3)]))
    # Entity and first passage lead to each other, the second passage to nothing: with starts of
    # 1/4, 1/4 and 1/2 and half of all steps along edges, x = x / 2 + (1 - x) / 4, so all are 1/3.
    ranks = pair.page_rank({0: Active(1, 1)}, np.array([1.0, 2.0]), 0.5)
    assert ranks == pytest.approx([1 / 3, 1 / 3])


def test_entities_of_a_question_stand_for_the_nearest_of_the_corpus() -> None:
    asked = np.array([[1, 0], [0.8, 0.6], [0.96, 0.28]], np.float32)
    seeds = GRAPH.nearest(asked)
    assert {entity: round(of.score, 4) for entity, of in seeds.items()} == {0: 1.0, 1: 0.96}


def test_linear_rag_asks_once_with_the_passages_that_its_graph_finds(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = Roles({"linear_rag_answer": LAST})
    assert run_suite(work, "linear", ["linear_rag"], models) == 0, capsys.readouterr().err
    record = record_of(work, "linear", "linear_rag")
    step, said = record.trajectory
    assert (step.tool_name, len(step.hit_ids), record.loops) == ("graph_search", 5, 1)
    assert (said.tool_name, said.tool_output) == ("linear_rag_answer", record.answer)
    assert {"Antonio Vivaldi", "Griselda"} <= step.tool_input["entities"].keys()
    (request,) = models.told("linear_rag_answer")
    assert all(f"[{id}]" in request for id in step.hit_ids)
    report = (work / "work" / "linear" / "report" / "linear.md").read_text()
    assert "### Built before the first question" in report
    assert f"| sample | linear_rag {OURS} | 0 | 0 |" in report
    (kept,) = (work / "work" / "linear" / "built").rglob("entities.npy")
    before = kept.stat().st_mtime_ns
    assert (
        run_suite(work, "linear", ["linear_rag"], Roles({})) == 0
    )  # neither asked nor built again
    assert kept.stat().st_mtime_ns == before


def test_a_question_without_a_name_is_searched_for_by_its_vector(
    work: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data" / "sample"
    data.mkdir(parents=True)
    (data / "corpus.jsonl").write_bytes((work / "data" / "sample" / "corpus.jsonl").read_bytes())
    (data / "questions.jsonl").write_text(
        '{"id": "s01", "question": "which opera is the oldest", "answer": "x"}'
    )
    assert run_suite(tmp_path, "plain", ["linear_rag"], Roles({"linear_rag_answer": LAST})) == 0
    step, _ = record_of(tmp_path, "plain", "linear_rag").trajectory
    assert (step.tool_name, len(step.hit_ids)) == ("naive_embedding_search", 5)


FAITHFUL: Replies = {
    "faithful_rag_knowledge": "Who revised the libretto, and where he died.",
    "faithful_rag_context": "Goldoni revised it. He died in Venice.",
    "faithful_rag_facts": "- Carlo Goldoni revised the libretto.\n- Carlo Goldoni died in Venice.",
    "faithful_rag_answer": LAST,
}


def test_faithful_rag_shows_the_pieces_that_are_nearest_to_its_facts(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = Roles(FAITHFUL)
    entry = {"rival": "faithful_rag", "set": {"sentences": 1, "pieces": 3}}
    assert run_suite(work, "faithful", [entry], models) == 0, capsys.readouterr().err
    assert models.roles[1:] == list(FAITHFUL)
    record = record_of(work, "faithful", "faithful_rag")
    step = record.trajectory[-2]
    *mining, last = FAITHFUL
    assert [s.tool_name for s in record.trajectory] == [*mining, "fact_alignment", last]
    assert step.tool_input["facts"] == [
        "Carlo Goldoni revised the libretto.",
        "Carlo Goldoni died in Venice.",
    ]
    assert sum(len(span.sentences or ()) for span in step.passages) == 3  # of five whole passages
    assert record.total_retrieved_tokens == step.retrieved_tokens < 300
    (request,) = models.told("faithful_rag_answer")
    assert all(f"[{passage.id}]" in request for passage in step.shown_passages())


def judged(said: str) -> str:
    """Say yes, as a judge, to passages about Griselda."""
    return "Yes." if "Griselda" in said.split("Passages:")[1] else "no, it does not"


RAGENTA: Replies = {
    "ragenta_predictor": "Paris",
    "ragenta_judge": judged,
    "ragenta_answer": lambda said: LAST if "Follow up question:" in said else "Answer: Venice",
    "ragenta_claims": "place of death: open\nFollow-up: Where did Carlo Goldoni die?",
}


def test_ragenta_keeps_what_its_judge_likes_and_searches_for_the_open_claim(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = Roles(RAGENTA)
    assert run_suite(work, "four", ["ragenta"], models) == 0, capsys.readouterr().err
    pairs = ["ragenta_predictor", "ragenta_judge"] * 5
    assert models.roles[1:] == [*pairs, "ragenta_answer", "ragenta_claims", "ragenta_answer"]
    record = record_of(work, "four", "ragenta")
    searches = [step for step in record.trajectory if step.tool_name == "weighted_search"]
    assert [len(step.hit_ids) for step in searches] == [5, 5]
    liked = [of.id for of in searches[0].shown_passages() if "Griselda" in f"{of.title} {of.text}"]
    assert 0 < len(liked) < 5
    first = next(step for step in record.trajectory if step.tool_name == "ragenta_answer")
    assert first.tool_input["passages"] == liked
    last = models.told("ragenta_answer")[1]
    assert all(f"[{id}]" in last for id in {*liked, *searches[1].hit_ids})
    assert (record.loops, record.answer_short) == (13, "Paris")
    assert all(request.logprobs == (role == "ragenta_judge")
               for role, request in zip(models.roles, models.requests, strict=True))  # fmt: skip


def test_a_judge_scores_by_the_tokens_yes_and_no_or_else_by_its_word() -> None:
    likely = {"Yes": -0.5, " yes": -0.2, "no": -2.0, "Perhaps": -3.0}
    assert score_of(ModelReply("Perhaps", logprobs=likely)) == pytest.approx(1.8)
    assert score_of(ModelReply("**No**", logprobs={"<think>": -0.1})) == -1
    assert [score_of(ModelReply(text)) for text in ("yes!", "Nobody knows", "")] == [1, 0, 0]


def test_passages_below_the_mean_less_half_a_deviation_are_left_out() -> None:
    a, b, c = (ShownPassage(name, "", "") for name in "abc")
    # mean 1, deviation 0.816: the bound is 0.592
    assert above({a: 0.0, b: 1.0, c: 2.0}, 0.5) == [c, b]
    assert above({a: 1.0, b: 1.0}, 0.0) == [a, b]
    assert above({}, 0.5) == []


ODD = (
    "",
    "\x00\ud800 [goldoni.1] " * 3,
    "1. " * 50_000,
    "\n".join(f"- {n}?" for n in range(9_999)),
)


@pytest.mark.parametrize("odd", range(len(ODD)))
@pytest.mark.parametrize("rival", ["ma_rag", "faithful_rag", "ragenta"])
def test_odd_replies_in_every_role_but_the_last_are_steps_of_an_answered_question(
    work: Path, rival: str, odd: int
) -> None:
    replies: dict[str, Reply] = {
        "ma_rag": MA_RAG, "faithful_rag": FAITHFUL, "ragenta": RAGENTA,
    }[rival]  # fmt: skip
    last = f"{rival}_answer"
    models = Roles({role: LAST if role == last else ODD[odd] for role in replies})
    name = f"odd_{rival}_{odd}"
    assert run_suite(work, name, [rival], models) == 0
    record = record_of(work, name, rival)
    assert (record.status, record.answer_short) == ("answered", "Paris")
    said = [step for step in record.trajectory if step.tool_name in replies.keys() - {last}]
    assert all(step.status == ("ok" if ODD[odd] else "error") for step in said)
    assert record.loops == len(said) + models.roles.count(last)
    # An empty reply is asked for once more, and both are paid.
    assert record.usage.prompt_tokens == 100 * (len(models.roles) - 1)
    assert max(len(text) for text in models.told(last)) < 40_000


def test_a_system_without_a_last_answer_has_failed_with_its_cause(work: Path) -> None:
    assert run_suite(work, "silent", ["linear_rag"], Roles({"linear_rag_answer": " "})) == 0
    record = record_of(work, "silent", "linear_rag")
    assert (record.status, record.usage.prompt_tokens) == ("failed", 200)
    cause = "BenchError: There is no last answer. The model replied twice with neither text nor"
    assert str(record.failure).startswith(cause)


STAND_IN = """
import os, sys
from types import SimpleNamespace
from pathlib import Path
sys.path.insert(0, {scripts!r})
from lines import counted, serve

async def answer_in_pieces():
    yield SimpleNamespace(usage=None)
    yield SimpleNamespace(usage=SimpleNamespace(prompt_tokens=40, completion_tokens=4))

async def asked_later():
    details = SimpleNamespace(cached_tokens=9)
    return SimpleNamespace(usage=SimpleNamespace(
        prompt_tokens=50, completion_tokens=5, prompt_tokens_details=details))

def opens(first):
    import asyncio
    print("a library prints this")
    if not Path("built").exists():
        asyncio.run(counted(asked_later)())
        Path("built").write_text(first["model"] + str(first["settings"]["vector_size"]))
    titles = {{of["id"]: of["title"] for of in first["passages"]}}

    def answers(said):
        async def ask():
            await counted(asked_later)()
            stream = counted(lambda **options: answer_in_pieces())(stream=True)
            return [piece async for piece in stream]
        asyncio.run(ask())
        if "Vienna" in said["question"]:
            raise ValueError("no such city")
        if "Spain" in said["question"]:
            os._exit(3)
        if "element" in said["question"]:
            return " ", []
        return "Answer: Paris\\n" + said["form"][:3], ["goldoni.1", "nowhere.1"]
    return answers

serve(opens)
"""


def test_a_system_in_its_own_process_is_built_once_and_asked_by_lines(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN.format(scripts=str(Path(process.__file__).parent / "scripts")))
    monkeypatch.setattr(process, "COMMAND", (sys.executable, str(script)))
    entry = {"rival": "graphrag", "set": {"vector_size": 7}}
    level = "graphrag (as published, graphrag 3)"
    asked = {"questions": "first 5", "workers": 2}
    assert run_suite(work, "lines", [entry], Roles({}), level=level, **asked) == 0, (
        capsys.readouterr().err
    )
    (run,) = (work / "work" / "lines" / "runs").glob("*graphrag*/*/run.json")
    records = read_records(run.parent).by_id
    first = records["s01"]
    assert first.answer == "Answer: Paris\nEnd"
    (step,) = first.trajectory
    assert (step.tool_name, step.hit_ids) == ("local_search", ("goldoni.1",))
    assert (first.loops, first.usage) == (2, Usage(90, 9, "endpoint", 9))
    failed = {id: record.failure for id, record in records.items() if record.failure}
    # After the first two, another process found what was built.
    assert set(failed) == {"s02", "s03", "s04"}
    assert failed["s04"] == "BenchError: There is no last answer."
    assert "The system failed: ValueError: no such city" in str(failed["s02"])
    assert records["s02"].usage == first.usage  # what failed was paid as well
    assert "A process ended: a library prints this" in str(failed["s03"])
    report = (work / "work" / "lines" / "report" / "lines.md").read_text()
    assert f"| sample | {level} | 1 | 55 |" in report
    (built,) = (work / "work" / "lines" / "built").rglob("built")
    assert built.read_text() == "scripted7"


def test_a_script_that_writes_other_lines_ends_a_suite(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(process, "COMMAND", (sys.executable, "-c", "print('hello')"))
    level = "hipporag (as published, not run by us)"
    assert run_suite(work, "none", ["hipporag"], Roles({}), level=level) == 1
    said = capsys.readouterr().err
    assert "The system failed: JSONDecodeError: " in said


@pytest.mark.parametrize("entry", [{"rival": "ragenta", "set": {"pasages": 3}}, "self_rag"])
def test_an_unknown_system_or_setting_is_refused_before_anything_runs(
    work: Path, capsys: pytest.CaptureFixture[str], entry: Any
) -> None:
    assert run_suite(work, "wrong", [entry], Roles({})) == 1
    said = capsys.readouterr().err
    assert ("pasages: Extra inputs are not permitted" in said) or ("'ma_rag'" in said)


@pytest.mark.parametrize("rival", ["faithful_rag", "linear_rag", "ma_rag", "ragenta"])
def test_a_run_of_each_system_is_scored_shown_and_judged_as_any_run(
    work: Path, arag: Command, monkeypatch: pytest.MonkeyPatch, rival: str
) -> None:
    replies: Replies = {**MA_RAG, **FAITHFUL, **RAGENTA, "linear_rag_answer": "Answer: Venice"}

    def verdict(request: ModelRequest) -> ModelReply:
        instructions = request.messages[0].content
        if instructions.startswith("You grade"):
            return ModelReply("Verdict: incorrect")
        if instructions.startswith("You group"):
            return ModelReply("Group: 1, 2")
        return ModelReply("Search: failure\nCategory: Reasoning Chain Error\nKind: Wrong Strategy")

    judge = ScriptedModel(verdict)
    monkeypatch.setattr("bench.ablate.choose_model", lambda name, **_: judge)
    name = f"shown_{rival}"
    options = ("--judge", "some-model", "--judge-trajectories")
    assert run_suite(work, name, [rival], Roles(replies), *options) == 0
    report = (work / "work" / name / "report" / f"{name}.md").read_text()
    assert "| Reasoning Chain Error: Wrong Strategy |" in report
    (run,) = (work / "work" / name / "runs").glob(f"*{rival}*/*")
    questions = ("--questions", str(work / "data" / "sample" / "questions.jsonl"))
    scored = arag("score", str(run), *questions)
    assert scored.code == 0, scored.err
    page = work / f"{name}.html"
    viewed = arag("view", str(run), "--out", str(page), *questions)
    assert viewed.code == 0, viewed.err
    assert arag("view", str(run), "s01").code == 0
    roles = {step.tool_name for step in record_of(work, name, rival).trajectory}
    assert all(role in page.read_text() for role in roles)

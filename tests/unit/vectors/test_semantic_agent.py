"""Presets whose tools search by vectors: their requests, their records and their errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arag_search.agent.loop import Agent
from arag_search.agent.models.base import ModelReply, ModelRequest, ToolCall, Usage
from arag_search.agent.models.choose import choose_model
from arag_search.agent.record import hits_text
from arag_search.agent.state import State
from arag_search.errors import NotServedError, RunError
from arag_search.questions.files import Question
from arag_search.runs.folder import read_description, read_records
from arag_search.runs.run import run
from arag_search.search.index import Index
from arag_search.tools.preset_files import load_preset, preset_names
from arag_search.vectors.encoders.hashing import HashingEncoder
from tests.support.passages import VIVALDI, chunk, index_of
from tests.support.scripted_model import ScriptedModel
from tests.support.semantic_indexes import TableEncoder, vector_index

QUESTION = "Who revised the libretto of Griselda?"
VECTOR_PRESETS = [name for name in preset_names() if load_preset(name).needed_vectors]


@pytest.fixture(scope="module")
def index() -> Index:
    return vector_index(*VIVALDI)


def calling_model(tool: str, **arguments: object) -> ScriptedModel:
    """Return a model that calls a tool once and then answers."""

    def script(request: ModelRequest) -> ModelReply:
        usage = Usage(1, 1, "endpoint")
        if request.tools and request.messages[-1].role != "tool":
            call = ToolCall("1", tool, json.dumps(arguments))
            return ModelReply("", (call,), usage=usage)
        return ModelReply("Answer: Carlo Goldoni\nSources: griselda.1", usage=usage)

    return ScriptedModel(script)


def test_these_presets_need_vectors() -> None:
    assert {name: load_preset(name).needed_vectors for name in VECTOR_PRESETS} == {
        "agentic_hybrid": {"hybrid_search": "passage"},
        "arag_full": {"semantic_search": "sentence"},
        "arag_logical": {"semantic_search": "sentence"},
        "arag_naive": {"naive_embedding_search": "passage"},
        "arag_paper": {"semantic_search": "sentence"},
        "arag_without_chunk_read": {"semantic_search": "sentence"},
        "arag_without_keyword": {"semantic_search": "sentence"},
        "naive_rag": {"given: passages": "passage"},
    }


@pytest.mark.parametrize(
    ("preset", "tool", "shows"),
    [
        ("arag_full", "semantic_search", "sentences"),
        ("arag_logical", "semantic_search", "passages"),
        ("arag_paper", "semantic_search", "sentences"),
        ("arag_without_keyword", "semantic_search", "sentences"),
        ("arag_without_chunk_read", "semantic_search", "passages"),
        ("arag_naive", "naive_embedding_search", "passages"),
        ("agentic_hybrid", "hybrid_search", "passages"),
    ],
)
def test_a_preset_shows_sentences_or_whole_passages(preset: str, tool: str, shows: str) -> None:
    near = {"q": (1, 0, 0), **{f"Near {n}.": (1, 0.1, 0) for n in range(20)}}
    encoder = TableEncoder(near)
    passages = [chunk(n, f"d{n}", "", f"Near {n}. ", f"Far {n}. {'away ' * 60}") for n in range(20)]
    index = vector_index(*passages, encoder=encoder)
    record = Agent(index, load_preset(preset), calling_model(tool, query="q")).ask("q")
    assert record.failure is None
    step = record.trajectory[0]
    assert (step.status, len(step.hit_ids), step.total_hits) == ("ok", 5, None)
    assert ("Far 0." in step.tool_output) is (shows == "passages")
    gap = "left out)" if preset in ("arag_full", "arag_logical") else "..."
    assert (gap in step.tool_output) is (shows == "sentences")
    assert hits_text(step) == "5 nearest"


# One retrieval without a loop


def test_naive_rag_gives_the_nearest_passages_with_the_question(index: Index) -> None:
    model = calling_model("none")
    record = Agent(index, load_preset("naive_rag"), model).ask(QUESTION)
    assert len(model.requests) == 1
    request = model.requests[0]
    assert request.tools == ()
    assert [message.role for message in request.messages] == ["system", "user"]
    results = index.naive_embedding_search(QUESTION)
    lines = request.messages[1].content.splitlines()
    assert (lines[0], *lines[-2:]) == ("Passages:", "", f"Question: {QUESTION}")
    assert [line.split("]")[0][1:] for line in lines if line.startswith("[")] == [
        hit.id for hit in results.hits
    ]
    assert (record.answer_short, record.cited_ids, record.wrong_ids) == (
        "Carlo Goldoni",
        ("griselda.1",),
        (),
    )
    assert (record.status, record.loops, record.tool_usage_summary) == (
        "answered",
        1,
        {"naive_embedding_search": 1},
    )
    step = record.trajectory[0]
    assert step.tool_input == {"query": QUESTION, "top_k": 5}
    assert step.hit_ids == tuple(hit.id for hit in results.hits)
    assert record.total_retrieved_tokens == step.retrieved_tokens > 50


def test_naive_rag_retrieves_once_even_if_a_question_is_resumed(index: Index) -> None:
    agent = Agent(index, load_preset("naive_rag"), calling_model("none"))
    state = agent.start(QUESTION)
    agent.resume(state)
    resumed = State.from_json(state.to_json())
    assert len(agent.resume(resumed).trajectory) == 1
    assert resumed.messages[1] == state.messages[1]


def test_a_question_longer_than_a_query_is_cut_for_the_retrieval(index: Index) -> None:
    model = calling_model("none")
    question = f"{QUESTION} {'Mind this. ' * 300}".strip()
    record = Agent(index, load_preset("naive_rag"), model).ask(question)
    assert record.trajectory[0].status == "ok"
    assert len(record.trajectory[0].tool_input["query"]) == 2000
    assert model.requests[0].messages[1].content.endswith(f"\n\nQuestion: {question}")


def test_the_tokens_of_given_passages_count_towards_the_budget(index: Index) -> None:
    agent = Agent(index, load_preset("naive_rag"), calling_model("none"))
    state = agent.start(QUESTION)
    before = state.context_tokens
    agent.resume(state)
    assert state.context_tokens > before + state.steps[0].result_tokens


# Rejected presets


@pytest.mark.parametrize("name", VECTOR_PRESETS)
def test_a_preset_on_an_index_without_vectors_is_rejected_before_the_first_question(
    name: str, tmp_path: Path
) -> None:
    preset = load_preset(name)
    with pytest.raises(NotServedError) as caught:
        run(index_of(*VIVALDI), [Question("q", QUESTION, ("x",))], preset, calling_model("none"),
            tmp_path / "out")  # fmt: skip
    needed = ", ".join(preset.needed_vectors)
    assert caught.value.where == "memory"
    assert f"{name} needs vectors ({needed})" in caught.value.what
    assert not (tmp_path / "out").exists()


def test_a_preset_reports_which_vectors_are_missing() -> None:
    with pytest.raises(NotServedError) as caught:
        Agent(
            vector_index(*VIVALDI, units=("passage",)),
            load_preset("arag_full"),
            calling_model("none"),
        )
    assert str(caught.value) == (
        "The index does not serve semantic_search (sentence vectors), which preset arag_full "
        "needs.\nWhere: memory\nAllowed: vectors by passage\n"
        "Do: Make the others with arag-search embed, or use another preset."
    )


@pytest.mark.parametrize("name", VECTOR_PRESETS)
def test_the_offline_model_answers_with_every_preset_of_vectors(index: Index, name: str) -> None:
    record = Agent(index, load_preset(name), choose_model("offline")).ask(QUESTION)
    assert (record.failure, record.citation) == (None, "cited")
    assert not {step.status for step in record.trajectory} & {"error"}


# Runs


def test_a_run_records_the_encoder_and_is_not_resumed_with_another(tmp_path: Path) -> None:
    questions = [Question("q", QUESTION, ("Carlo Goldoni",))]
    preset, model = load_preset("arag_full"), calling_model("semantic_search", query=QUESTION)
    small, large = HashingEncoder(64), HashingEncoder(128)
    run(vector_index(*VIVALDI, encoder=small), questions, preset, model, tmp_path)
    description = read_description(tmp_path)
    assert description.encoder == small.identity
    assert description.fingerprints["encoder"] == small.identity.fingerprint
    assert json.loads((tmp_path / "run.json").read_bytes())["encoder"] == {
        "kind": "hashing",
        "name": "hashing:64",
        "dimension": 64,
        "max_tokens": None,
        "query_prefix": "",
        "document_prefix": "",
    }
    assert read_records(tmp_path).by_id["q"].fingerprints == {
        name: text for name, text in description.fingerprints.items() if name != "questions"
    }
    assert (
        run(vector_index(*VIVALDI, encoder=small), questions, preset, model, tmp_path).tally.asked
        == 0
    )
    with pytest.raises(RunError) as caught:
        run(vector_index(*VIVALDI, encoder=large), questions, preset, model, tmp_path)
    assert caught.value.what == "The folder holds a run with another encoder."
    assert caught.value.where == (
        f"{tmp_path / 'run.json'}: encoder hashing:64 ({small.identity.fingerprint}), now "
        f"hashing:128 ({large.identity.fingerprint})"
    )


def test_a_run_without_vectors_names_no_encoder(index: Index, tmp_path: Path) -> None:
    questions = [Question("q", QUESTION, ("Carlo Goldoni",))]
    model = calling_model("logical_search", query="griselda")
    run(index, questions, load_preset("logical_read"), model, tmp_path)
    description = read_description(tmp_path)
    assert description.encoder is None
    assert "encoder" not in description.fingerprints

"""Models without a network, scripted or recorded, and the choice of a model."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from arag_search.agent.loop import Agent
from arag_search.agent.models.base import (
    ChatModel,
    Message,
    ModelReply,
    ModelRequest,
    ToolCall,
    Usage,
)
from arag_search.agent.models.choose import choose_model
from arag_search.agent.models.offline import OfflineModel
from arag_search.agent.models.openai import OpenAIModel
from arag_search.agent.models.replay import RecordingModel, ReplayModel
from arag_search.agent.record import Record
from arag_search.corpus import Chunk, ordinal_of
from arag_search.endpoints.calls import OPENAI_URL, Retry
from arag_search.errors import (
    AragError,
    ConfigError,
    ContextLengthError,
    ModelReplyError,
    ModelUnavailableError,
    NotRecordedError,
    RunError,
)
from arag_search.search.index import Index
from arag_search.tools.preset_files import load_preset
from tests.support.endpoint import completion, refusal, running_endpoint
from tests.support.oracle.engine import MemoryEngine
from tests.support.passages import chunk
from tests.support.scripted_model import ScriptedModel


def request_of(*texts: str, question_id: str = "") -> ModelRequest:
    return ModelRequest([Message("user", text) for text in texts], question_id=question_id)


def test_the_replies_of_a_script_come_in_order_and_its_exceptions_are_raised() -> None:
    model: ChatModel = ScriptedModel(
        [ModelReply("one"), ModelUnavailableError("busy"), ModelReply("two")]
    )
    assert model.reply(request_of("a")).text == "one"
    with pytest.raises(ModelUnavailableError, match=r"^busy$"):
        model.reply(request_of("b"))
    assert model.reply(request_of("c")).text == "two"


def test_a_script_that_is_over_says_how_long_it_was() -> None:
    model = ScriptedModel([ModelReply("one")])
    model.reply(request_of("a"))
    with pytest.raises(ModelReplyError) as raised:
        model.reply(request_of("b", question_id="q7"))
    assert str(raised.value) == (
        "The script is over: it has 1 replies, and reply 2 was requested.\nWhere: question q7"
    )
    assert [request.messages[0].content for request in model.requests] == ["a", "b"]


def test_a_script_may_be_a_function_of_the_request() -> None:
    model = ScriptedModel(lambda request: ModelReply(request.messages[-1].content.upper()))
    assert model.reply(request_of("a", "b")).text == "B"


def test_threads_share_a_script_and_each_reply_is_given_once() -> None:
    model = ScriptedModel([ModelReply(str(number)) for number in range(100)], delay_s=0.0001)
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda _: model.reply(request_of("a")).text, range(100)))
    assert sorted(replies, key=int) == [str(number) for number in range(100)]


# Recorded and replayed

TOOL = {"type": "function", "function": {"name": "search", "parameters": {}}}
CALL_REPLY = ModelReply(
    "Hm.", (ToolCall("x1", "search", '{"query": "ad'),), "Think.", Usage(5, 2, "endpoint"), "length"
)
STEP = ModelRequest(
    [Message("user", "Who?"), Message("assistant", "Hm."), Message("tool", "Ada", (), "x1")],
    [TOOL],
    "q1",
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "replies.jsonl"


def record_calls(file: Path, *calls: tuple[ModelRequest, ModelReply | Exception]) -> None:
    """Record calls in one session."""
    model = RecordingModel(ScriptedModel([reply for _, reply in calls]), file)
    for request, reply in calls:
        if isinstance(reply, Exception):
            with pytest.raises(type(reply)):
                model.reply(request)
        else:
            assert model.reply(request) == reply
    model.close()


def replay_error(file: Path, request: ModelRequest) -> str:
    with pytest.raises(NotRecordedError) as raised:
        ReplayModel(file).reply(request)
    assert raised.value.where == str(file)
    return raised.value.what


def test_recorded_replies_are_replayed_to_the_last_field(file: Path) -> None:
    record_calls(file, (request_of("a", question_id="q1"), CALL_REPLY), (STEP, ModelReply("Ada")))
    model: ChatModel = ReplayModel(file)
    assert model.name == "replay of scripted"
    assert model.reply(STEP) == ModelReply("Ada")
    assert model.reply(request_of("a")) == CALL_REPLY
    model.close()


def test_a_recording_model_has_the_name_of_its_model(file: Path) -> None:
    model = RecordingModel(ScriptedModel([]), file)
    assert (model.name, model.fingerprint) == ("scripted", "scripted")
    model.close()
    model.close()


def test_repeated_requests_are_answered_in_the_recorded_order_and_each_reply_once(
    file: Path,
) -> None:
    record_calls(file, *[(request_of("a"), ModelReply(text)) for text in ("", "one", "two")])
    model = ReplayModel(file)
    assert [model.reply(request_of("a")).text for _ in range(3)] == ["", "one", "two"]
    with pytest.raises(NotRecordedError) as raised:
        model.reply(request_of("a"))
    assert str(raised.value) == (
        "A call of the question was not recorded: "
        "it is in the recording 3 times, and is asked once more.\n"
        f"Where: {file}\n"
        "Do: Replay with the preset, index and questions of the recorded run, or record again."
    )


def test_two_questions_of_the_same_words_get_their_own_replies(file: Path) -> None:
    record_calls(
        file,
        (request_of("a", question_id="q1"), ModelReply("one")),
        (request_of("a", question_id="q2"), ModelReply("two")),
    )
    model = ReplayModel(file)
    assert model.reply(request_of("a", question_id="q2")).text == "two"
    assert model.reply(request_of("a", question_id="q1")).text == "one"


def test_a_request_that_is_too_long_is_recorded_and_other_failures_are_not(file: Path) -> None:
    record_calls(
        file,
        (request_of("a"), ModelUnavailableError("busy")),
        (request_of("a"), ContextLengthError("9 tokens too many")),
        (request_of("a"), ModelReply("short")),
    )
    model = ReplayModel(file)
    with pytest.raises(ContextLengthError) as raised:
        model.reply(request_of("a"))
    assert str(raised.value) == f"9 tokens too many\nWhere: {file}"
    assert model.reply(request_of("a")).text == "short"


def test_a_question_asked_again_is_replayed_from_its_last_session(file: Path) -> None:
    first, second = request_of("a", question_id="q1"), request_of("a", "b", question_id="q1")
    record_calls(file, (first, ModelReply("old")), (second, ModelUnavailableError("busy")))
    record_calls(file, (first, ModelReply("new")), (second, ModelReply("done")))
    model = ReplayModel(file)
    assert [model.reply(first).text, model.reply(second).text] == ["new", "done"]


@pytest.mark.parametrize(
    ("model_request", "difference"),
    [
        (
            ModelRequest([*STEP.messages[:2], Message("tool", "Bob", (), "x1")], [TOOL], "q1"),
            "message 3 (tool) differs: 'Bob' now, recorded 'Ada'",
        ),
        (
            ModelRequest([Message("user", "When?"), *STEP.messages[1:]], [TOOL], "q1"),
            "message 1 (user) differs: 'When?' now, its text is not in the recording",
        ),
        (
            ModelRequest([*STEP.messages, Message("user", "x" * 99)], [TOOL], "q1"),
            f"the recording ends before message 4 (user), which begins '{'x' * 77}...'",
        ),
        (
            ModelRequest(STEP.messages[:2], [TOOL], "q1"),
            "no recorded call has just these 2 messages",
        ),
        (
            ModelRequest(STEP.messages, question_id="q1"),
            "the tools differ (recorded: search; now: none)",
        ),
    ],
)
def test_a_call_that_was_not_recorded_names_its_question_and_what_differs(
    file: Path, model_request: ModelRequest, difference: str
) -> None:
    record_calls(
        file, (request_of("a", question_id="q0"), ModelReply("zero")), (STEP, ModelReply("Ada"))
    )
    assert replay_error(file, model_request) == (
        f"A call of question q1 was not recorded: {difference}."
    )


def test_the_tools_are_part_of_a_request_to_their_last_word(file: Path) -> None:
    record_calls(file, (STEP, ModelReply("Ada")))
    other = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
    assert replay_error(file, ModelRequest(STEP.messages, [other], "q1")) == (
        "A call of question q1 was not recorded: the tools differ: search with another description "
        "or other arguments, as over another index."
    )


def test_a_replay_over_another_index_names_the_tools_that_differ(file: Path) -> None:
    preset = load_preset("logical_read")
    chunks = (chunk(0, "a", "A", "Opera."),)
    recording = RecordingModel(ScriptedModel([ModelReply("Answer: x")]), file)
    Agent(Index(MemoryEngine(chunks, metadata={"lang": "keyword"}), "one"), preset, recording).ask(
        "Who?", "q1"
    )
    recording.close()
    other = Index(MemoryEngine(chunks, metadata={"year": "number"}), "two")
    record = Agent(other, preset, ReplayModel(file)).ask("Who?", "q1")
    assert "the tools differ: logical_search with another description" in str(record.failure)


def test_an_empty_recording_says_so(file: Path) -> None:
    file.touch()
    assert replay_error(file, request_of("a")) == (
        "A call of the question was not recorded: the recording is empty."
    )


def test_a_torn_last_line_is_ignored(file: Path) -> None:
    record_calls(file, (request_of("a"), ModelReply("one")))
    file.write_bytes(file.read_bytes() + b'{"question_id": ')
    assert ReplayModel(file).reply(request_of("a")).text == "one"


@pytest.mark.parametrize("line", ["{", "[]", "{}", ""])
def test_a_broken_line_elsewhere_is_named(file: Path, line: str) -> None:
    record_calls(file, (request_of("a"), ModelReply("one")), (request_of("b"), ModelReply("two")))
    first, second = file.read_text().splitlines()
    file.write_text(f"{first}\n{line}\n{second}\n")
    with pytest.raises(RunError) as raised:
        ReplayModel(file)
    assert raised.value.where == f"{file}, line 2"


def test_a_recording_that_cannot_be_read_or_written_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as read_error:
        ReplayModel(tmp_path / "none.jsonl")
    assert str(read_error.value) == (
        "The recording cannot be read (No such file or directory).\n"
        f"Where: {tmp_path / 'none.jsonl'}"
    )
    with pytest.raises(RunError, match=r"^A recorded call cannot be written \(Is a"):
        RecordingModel(ScriptedModel([]), tmp_path)


def test_several_recorders_and_their_threads_write_whole_lines(file: Path) -> None:
    def echo(request: ModelRequest) -> ModelReply:
        return ModelReply(request.messages[-1].content * 500)

    models = [RecordingModel(ScriptedModel(echo), file) for _ in range(2)]
    requests = [request_of(str(number)) for number in range(60)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: models[number % 2].reply(requests[number]), range(60)))
    for model in models:
        model.close()
    replayed = ReplayModel(file)
    assert [replayed.reply(request) for request in requests] == list(map(echo, requests))


def test_a_replay_has_another_fingerprint_when_its_recording_has_grown(file: Path) -> None:
    record_calls(file, (request_of("a"), ModelReply("one")))
    before = ReplayModel(file).fingerprint
    assert ReplayModel(file).fingerprint == before
    record_calls(file, (request_of("b"), ModelReply("two")))
    assert ReplayModel(file).fingerprint != before


GRISELDA = Chunk(
    "g.1", "g", "Griselda", "An opera by Vivaldi.", 1, 1, ordinal_of(0, 0, 0), (20,), {}
)


def trajectory(model: ChatModel) -> dict[str, object]:
    """Return the record of a question of several turns, without times and fingerprints."""
    index = Index(MemoryEngine([GRISELDA]), "memory")
    record = Agent(index, load_preset("logical_read"), model).ask("Who wrote Griselda?", "q1")
    assert isinstance(record, Record)
    content = record.to_json()
    for step in content["trajectory"]:
        del step["seconds"]
    return {key: value for key, value in content.items() if key not in ("seconds", "fingerprints")}


def test_a_replayed_run_has_the_trajectory_of_the_recorded_one(file: Path) -> None:
    search = ToolCall("c1", "logical_search", json.dumps({"query": "griselda"}))
    script = [
        ModelReply("I search.", (search, search), "Hm.", Usage(50, 5, "endpoint")),
        ModelReply("", (ToolCall("c2", "chunk_read", '{"chunk_ids": ["g.1"'),)),
        ModelReply(""),
        ModelReply("", (ToolCall("c3", "google", "{}"),)),
        ContextLengthError("too long"),
        ModelReply("Answer: Vivaldi\nExplanation: He did.\nSources: g.1"),
    ]
    recorder = RecordingModel(ScriptedModel(script), file)
    first = trajectory(recorder)
    recorder.close()
    assert (first["status"], first["answer_short"]) == ("forced", "Vivaldi")
    assert trajectory(ReplayModel(file)) == first


# The choice of a model


def choose(**options: object) -> ChatModel:
    environment = options.pop("environment", {})
    return choose_model(environment=environment, **options)  # type: ignore[arg-type]


def choice_error(**options: object) -> str:
    with pytest.raises(AragError) as raised:
        choose(**options)
    assert type(raised.value) is ConfigError
    return str(raised.value)


KEY = {"OPENAI_API_KEY": "sk-1"}
HOW_TO_SET = (
    "Set ARAG_MODEL and OPENAI_API_KEY, for another endpoint than OpenAI's also OPENAI_BASE_URL."
)
NAMES = "offline, replay:FILE, or the name of an endpoint's model"


def test_with_nothing_set_the_offline_model_is_chosen() -> None:
    assert isinstance(choose(), OfflineModel)
    empty = {"ARAG_MODEL": "", "OPENAI_API_KEY": " ", "ARAG_BASE_URL": ""}
    assert isinstance(choose(environment=empty), OfflineModel)


def test_where_offline_may_not_be_chosen_by_itself_a_model_must_be_named() -> None:
    assert choice_error(allow_offline=False).startswith("No model is named.\n")
    assert isinstance(choose(allow_offline=False, model="offline"), OfflineModel)


@pytest.mark.parametrize(
    ("options", "variables"),
    [
        ({"environment": KEY}, "OPENAI_API_KEY is"),
        ({"environment": {"ARAG_API_KEY": "k", **KEY}}, "ARAG_API_KEY is"),
        ({"environment": {"OPENAI_BASE_URL": "http://h/v1"}}, "OPENAI_BASE_URL is"),
        (
            {"environment": {"ARAG_BASE_URL": "http://h/v1", **KEY}},
            "OPENAI_API_KEY and ARAG_BASE_URL are",
        ),
        ({"base_url": "http://h/v1"}, "`base_url` is"),
    ],
)
def test_a_key_or_a_base_url_without_a_model_is_an_error(
    options: dict[str, object], variables: str
) -> None:
    assert choice_error(**options).startswith(f"No model is named, but {variables} set.\n")


def test_a_model_without_key_and_base_url_is_an_error() -> None:
    assert choice_error(model="small") == (
        f"Model 'small' needs a key or a base URL, and neither is set.\nAllowed: {NAMES}\n"
        "Do: Set OPENAI_API_KEY, or OPENAI_BASE_URL for a local server without a key."
    )


def test_the_model_of_the_environment_is_behind_openais_endpoint() -> None:
    model = choose(environment={"ARAG_MODEL": "small", **KEY})
    assert isinstance(model, OpenAIModel)
    assert (model.name, model.base_url) == ("small", OPENAI_URL)
    model.close()


def test_an_empty_name_of_a_model_counts_as_none() -> None:
    assert choose(model="", environment={"ARAG_MODEL": " "}).name == "offline"
    assert choice_error(environment={"ARAG_MODEL": " ", **KEY}).startswith(
        "No model is named, but "
    )
    model = choose(model=" ", environment={"ARAG_MODEL": "small ", **KEY})
    assert model.name == "small"
    model.close()


def test_a_base_url_without_a_key_is_a_local_server() -> None:
    model = choose(model="small", environment={"OPENAI_BASE_URL": "http://localhost:8000/v1"})
    assert isinstance(model, OpenAIModel)
    assert model.base_url == "http://localhost:8000/v1"
    model.close()


def test_options_win_over_our_variables_and_ours_over_openais() -> None:
    environment = {
        "ARAG_MODEL": "environment",
        "ARAG_BASE_URL": "http://arag/v1",
        "OPENAI_BASE_URL": "http://openai/v1",
        **KEY,
    }
    by_variable = choose(environment=environment)
    by_option = choose(environment=environment, model="option", base_url="http://option/v1", seed=3)
    expected = OpenAIModel("option", base_url="http://option/v1", seed=3)
    assert isinstance(by_variable, OpenAIModel)
    assert (by_variable.name, by_variable.base_url) == ("environment", "http://arag/v1")
    assert by_option.fingerprint == expected.fingerprint
    for model in (by_variable, by_option, expected):
        model.close()


def test_our_key_wins_over_openais_and_retries_are_reported() -> None:
    retries: list[Retry] = []
    with running_endpoint() as endpoint, pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        endpoint.reply_with(refusal(500, "oops", headers={"Retry-After": "0"}), completion("Ada"))
        model = choose(
            model="m",
            environment={"ARAG_API_KEY": "ours", "ARAG_BASE_URL": endpoint.base_url, **KEY},
            on_retry=retries.append,
        )
        assert model.reply(request_of("a")).text == "Ada"
        model.close()
        assert endpoint.keys == ["Bearer ours"] * 2
    assert [retry.reason for retry in retries] == ["oops"]


def test_a_recording_is_replayed_by_its_file_and_recorded_by_option(file: Path) -> None:
    record_calls(file, (request_of("a"), ModelReply("one")))
    copy = file.with_name("again.jsonl")
    model = choose(model=f"replay:{file}", environment=KEY, record_replies=copy)
    assert model.reply(request_of("a")).text == "one"
    model.close()
    assert ReplayModel(copy).reply(request_of("a")).text == "one"
    assert choice_error(model="replay:").startswith("'replay:' names no file.\n")


def test_offline_and_replay_have_no_options() -> None:
    assert choice_error(model="offline", temperature=0.0, base_url="http://h") == (
        "Model 'offline' has no options: base_url, temperature.\n"
        "Do: Leave them out, or name an endpoint's model."
    )
    assert choice_error(model="replay:f", seed=0).startswith(
        "Model 'replay' has no options: seed.\n"
    )
    assert choice_error(seed=0).startswith("Model 'offline' has no options: seed.\n")

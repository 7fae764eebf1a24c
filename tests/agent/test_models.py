"""Models without a network: scripted, recorded, and how one is chosen."""

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
from arag_search.agent.models.scripted import ScriptedModel
from arag_search.agent.presets import load_preset
from arag_search.agent.record import Record
from arag_search.corpus import Chunk, ordinal_of
from arag_search.endpoints.calls import Retry
from arag_search.endpoints.settings import OPENAI_URL
from arag_search.engines.memory.engine import MemoryEngine
from arag_search.errors import (
    AragError,
    ConfigError,
    ContextLengthError,
    ModelReplyError,
    ModelUnavailableError,
    NotRecordedError,
)
from arag_search.search.index import Index
from tests.support.endpoint import completion, refusal, running_endpoint
from tests.support.passages import chunk


def asked(*texts: str, question_id: str = "") -> ModelRequest:
    return ModelRequest([Message("user", text) for text in texts], question_id=question_id)


def test_a_script_is_given_out_in_order_and_its_exceptions_are_raised() -> None:
    model: ChatModel = ScriptedModel(
        [ModelReply("one"), ModelUnavailableError("busy"), ModelReply("two")]
    )
    assert model.reply(asked("a")).text == "one"
    with pytest.raises(ModelUnavailableError, match=r"^busy$"):
        model.reply(asked("b"))
    assert model.reply(asked("c")).text == "two"


def test_a_script_that_is_over_says_how_long_it_was() -> None:
    model = ScriptedModel([ModelReply("one")])
    model.reply(asked("a"))
    with pytest.raises(ModelReplyError) as refused:
        model.reply(asked("b", question_id="q7"))
    assert str(refused.value) == (
        "The script is over: it has 1 replies, and reply 2 was asked for.\nWhere: question q7"
    )
    assert [request.messages[0].content for request in model.requests] == ["a", "b"]


def test_a_script_may_be_a_function_of_the_request() -> None:
    model = ScriptedModel(lambda request: ModelReply(request.messages[-1].content.upper()))
    assert model.reply(asked("a", "b")).text == "B"


def test_threads_share_a_script_and_each_reply_is_given_once() -> None:
    model = ScriptedModel([ModelReply(str(number)) for number in range(100)], delay_s=0.0001)
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda _: model.reply(asked("a")).text, range(100)))
    assert sorted(replies, key=int) == [str(number) for number in range(100)]


# Recorded and replayed

TOOL = {"type": "function", "function": {"name": "search", "parameters": {}}}
CALLED = ModelReply(
    "Hm.", (ToolCall("x1", "search", '{"query": "ad'),), "Think.", Usage(5, 2, "endpoint")
)
STEP = ModelRequest(
    [Message("user", "Who?"), Message("assistant", "Hm."), Message("tool", "Ada", (), "x1")],
    [TOOL],
    "q1",
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "replies.jsonl"


def recorded(file: Path, *calls: tuple[ModelRequest, ModelReply | Exception]) -> None:
    """Record calls in one session."""
    model = RecordingModel(ScriptedModel([reply for _, reply in calls]), file)
    for request, reply in calls:
        if isinstance(reply, Exception):
            with pytest.raises(type(reply)):
                model.reply(request)
        else:
            assert model.reply(request) == reply
    model.close()


def not_recorded(file: Path, request: ModelRequest) -> str:
    with pytest.raises(NotRecordedError) as raised:
        ReplayModel(file).reply(request)
    assert raised.value.where == str(file)
    return raised.value.what


def test_recorded_replies_are_given_again_to_the_last_field(file: Path) -> None:
    recorded(file, (asked("a", question_id="q1"), CALLED), (STEP, ModelReply("Ada")))
    model: ChatModel = ReplayModel(file)
    assert model.name == "replay of scripted"
    assert model.reply(STEP) == ModelReply("Ada")
    assert model.reply(asked("a")) == CALLED
    model.close()


def test_a_recording_model_goes_by_the_name_of_its_model(file: Path) -> None:
    model = RecordingModel(ScriptedModel([]), file)
    assert (model.name, model.fingerprint) == ("scripted", "scripted")
    model.close()
    model.close()


def test_repeated_requests_are_answered_in_the_recorded_order_and_each_reply_once(
    file: Path,
) -> None:
    recorded(file, *[(asked("a"), ModelReply(text)) for text in ("", "one", "two")])
    model = ReplayModel(file)
    assert [model.reply(asked("a")).text for _ in range(3)] == ["", "one", "two"]
    with pytest.raises(NotRecordedError) as raised:
        model.reply(asked("a"))
    assert str(raised.value) == (
        "A call of the question was not recorded: "
        "it is in the recording 3 times, and is asked once more.\n"
        f"Where: {file}\n"
        "Do: Replay with the preset, index and questions of the recorded run, or record anew."
    )


def test_two_questions_of_the_same_words_get_their_own_replies(file: Path) -> None:
    recorded(
        file,
        (asked("a", question_id="q1"), ModelReply("one")),
        (asked("a", question_id="q2"), ModelReply("two")),
    )
    model = ReplayModel(file)
    assert model.reply(asked("a", question_id="q2")).text == "two"
    assert model.reply(asked("a", question_id="q1")).text == "one"


def test_a_request_that_is_too_long_is_recorded_and_other_failures_are_not(file: Path) -> None:
    recorded(
        file,
        (asked("a"), ModelUnavailableError("busy")),
        (asked("a"), ContextLengthError("9 tokens too many")),
        (asked("a"), ModelReply("short")),
    )
    model = ReplayModel(file)
    with pytest.raises(ContextLengthError) as raised:
        model.reply(asked("a"))
    assert str(raised.value) == f"9 tokens too many\nWhere: {file}"
    assert model.reply(asked("a")).text == "short"


def test_a_question_begun_again_later_is_replayed_as_it_was_then(file: Path) -> None:
    first, second = asked("a", question_id="q1"), asked("a", "b", question_id="q1")
    recorded(file, (first, ModelReply("old")), (second, ModelUnavailableError("busy")))
    recorded(file, (first, ModelReply("new")), (second, ModelReply("done")))
    model = ReplayModel(file)
    assert [model.reply(first).text, model.reply(second).text] == ["new", "done"]


@pytest.mark.parametrize(
    ("request_", "difference"),
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
    file: Path, request_: ModelRequest, difference: str
) -> None:
    recorded(file, (asked("a", question_id="q0"), ModelReply("zero")), (STEP, ModelReply("Ada")))
    assert not_recorded(file, request_) == (
        f"A call of question q1 was not recorded: {difference}."
    )


def test_the_tools_are_part_of_a_request_to_their_last_word(file: Path) -> None:
    recorded(file, (STEP, ModelReply("Ada")))
    other = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
    assert not_recorded(file, ModelRequest(STEP.messages, [other], "q1")) == (
        "A call of question q1 was not recorded: the tools differ: tool search has another schema."
    )


def schema_of(description: str, **arguments: object) -> dict[str, object]:
    parameters = {"type": "object", "properties": arguments}
    described = {"name": "search", "description": description, "parameters": parameters}
    return {"type": "function", "function": described}


@pytest.mark.parametrize(
    ("now", "difference"),
    [
        (schema_of("Searches.\nFields: b.", q=1), "is described otherwise, now 'Fields: b.'"),
        (
            schema_of("Searches.", q=1),
            "is described otherwise, with fewer lines or in another order",
        ),
        (schema_of("Searches.\nFields: a."), "lacks the argument q"),
        (schema_of("Searches.\nFields: a.", q=1, k=2), "has the new argument k"),
        (
            schema_of("Searches.\nFields: b.", q=2),
            "has other bounds or words for q and is described otherwise, now 'Fields: b.'",
        ),
    ],
)
def test_tools_of_the_same_names_say_what_they_have_otherwise(
    file: Path, now: dict[str, object], difference: str
) -> None:
    tool = schema_of("Searches.\nFields: a.", q=1)
    recorded(file, (ModelRequest(STEP.messages, [tool], "q1"), ModelReply("Ada")))
    request = ModelRequest(STEP.messages, [now], "q1")
    said = f"A call of question q1 was not recorded: the tools differ: tool search {difference}."
    assert not_recorded(file, request) == said


def test_a_recording_that_does_not_keep_what_tools_are_names_another_index(file: Path) -> None:
    recorded(file, (ModelRequest(STEP.messages, [schema_of("a")], "q1"), ModelReply("Ada")))
    call = json.loads(file.read_bytes())
    del call["key"]["tool_keys"]
    file.write_text(json.dumps(call) + "\n")
    assert not_recorded(file, ModelRequest(STEP.messages, [schema_of("b")], "q1")) == (
        "A call of question q1 was not recorded: the tools differ: they have the recorded names "
        "(search), but other descriptions or arguments, as over another index."
    )


def test_a_replay_over_another_index_names_the_fields_that_differ(file: Path) -> None:
    preset = load_preset("logical_read")
    chunks = (chunk(0, "a", "A", "Opera."),)
    recording = RecordingModel(ScriptedModel([ModelReply("Answer: x")]), file)
    Agent(Index(MemoryEngine(chunks), "one"), preset, recording).ask("Who?", "q1")
    recording.close()
    other = Index(MemoryEngine(chunks, metadata={"year": "number"}), "two")
    record = Agent(other, preset, ReplayModel(file)).ask("Who?", "q1")
    assert "tool logical_search is described otherwise, now 'Fields of this index: " in str(
        record.failure
    )


def test_an_empty_recording_says_so(file: Path) -> None:
    file.touch()
    assert not_recorded(file, asked("a")) == (
        "A call of the question was not recorded: the recording is empty."
    )


@pytest.mark.parametrize("cut", [2, 40, 200])
def test_a_line_that_a_killed_recorder_left_unfinished_is_ignored_and_cut_off(
    file: Path, cut: int
) -> None:
    recorded(file, (asked("a"), ModelReply("one")), (asked("b"), ModelReply("two")))
    file.write_bytes(file.read_bytes()[:-cut])
    assert ReplayModel(file).reply(asked("a")).text == "one"
    assert not_recorded(file, asked("b")).endswith(
        "message 1 (user) differs: 'b' now, recorded 'a'."
    )
    recorded(file, (asked("c"), ModelReply("three")))
    model = ReplayModel(file)
    assert [model.reply(asked("a")).text, model.reply(asked("c")).text] == ["one", "three"]


def test_a_broken_last_line_that_is_ended_is_ignored_and_cut_off_too(file: Path) -> None:
    recorded(file, (asked("a"), ModelReply("one")))
    file.write_bytes(file.read_bytes() + b'{"question_id": \n')
    assert ReplayModel(file).reply(asked("a")).text == "one"
    recorded(file, (asked("b"), ModelReply("two")))
    assert ReplayModel(file).reply(asked("b")).text == "two"


def test_a_last_line_that_lacks_only_its_end_counts(file: Path) -> None:
    recorded(file, (asked("a"), ModelReply("one")))
    file.write_bytes(file.read_bytes()[:-1])
    assert ReplayModel(file).reply(asked("a")).text == "one"
    recorded(file, (asked("b"), ModelReply("two")))
    model = ReplayModel(file)
    assert [model.reply(asked("a")).text, model.reply(asked("b")).text] == ["one", "two"]


def test_the_end_of_a_long_unfinished_line_is_found(file: Path) -> None:
    recorded(file, (asked("a"), ModelReply("one")))
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"question_id": "' + b"x" * 200_000)
    RecordingModel(ScriptedModel([]), file).close()
    assert file.read_bytes() == whole


@pytest.mark.parametrize("broken", ["{", "[]", "{}", ""])
def test_a_broken_line_elsewhere_is_named(file: Path, broken: str) -> None:
    recorded(file, (asked("a"), ModelReply("one")), (asked("b"), ModelReply("two")))
    first, second = file.read_text().splitlines()
    file.write_text(f"{first}\n{broken}\n{second}\n")
    with pytest.raises(ConfigError) as raised:
        ReplayModel(file)
    assert str(raised.value) == (
        f"Line 2 of the recording is broken.\nWhere: {file}\nDo: Remove the line, or record anew."
    )


def test_a_recording_that_cannot_be_read_or_written_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as reading:
        ReplayModel(tmp_path / "none.jsonl")
    assert str(reading.value) == (
        "The recording cannot be read (No such file or directory).\n"
        f"Where: {tmp_path / 'none.jsonl'}"
    )
    with pytest.raises(ConfigError) as writing:
        RecordingModel(ScriptedModel([]), tmp_path)
    assert str(writing.value) == f"Replies cannot be recorded (Is a directory).\nWhere: {tmp_path}"


def test_several_recorders_and_their_threads_write_whole_lines(file: Path) -> None:
    def echo(request: ModelRequest) -> ModelReply:
        return ModelReply(request.messages[-1].content * 500)

    models = [RecordingModel(ScriptedModel(echo), file) for _ in range(2)]
    requests = [asked(str(number)) for number in range(60)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: models[number % 2].reply(requests[number]), range(60)))
    for model in models:
        model.close()
    replayed = ReplayModel(file)
    assert [replayed.reply(request) for request in requests] == list(map(echo, requests))


def test_a_replay_has_another_fingerprint_when_its_recording_has_grown(file: Path) -> None:
    recorded(file, (asked("a"), ModelReply("one")))
    before = ReplayModel(file).fingerprint
    assert ReplayModel(file).fingerprint == before
    recorded(file, (asked("b"), ModelReply("two")))
    assert ReplayModel(file).fingerprint != before


GRISELDA = Chunk(
    "g.1", "g", "Griselda", "An opera by Vivaldi.", 1, 1, ordinal_of(0, 0, 0), (20,), {}
)


def trajectory(model: ChatModel) -> dict[str, object]:
    """The record of a question of several turns, without times and fingerprints."""
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


# Chosen


def chosen(**options: object) -> ChatModel:
    environment = options.pop("environment", {})
    return choose_model(environment=environment, **options)  # type: ignore[arg-type]


def refused(**options: object) -> str:
    with pytest.raises(AragError) as raised:
        chosen(**options)
    assert type(raised.value) is ConfigError
    return str(raised.value)


KEY = {"OPENAI_API_KEY": "sk-1"}
HOW_TO_SET = (
    "Set ARAG_MODEL (or --model) and OPENAI_API_KEY, for another endpoint than OpenAI's also "
    "OPENAI_BASE_URL."
)
NAMES = "offline, replay:FILE, or the name of an endpoint's model"


def test_with_nothing_set_the_offline_model_is_chosen() -> None:
    assert isinstance(chosen(), OfflineModel)
    empty = {"ARAG_MODEL": "", "OPENAI_API_KEY": " ", "ARAG_BASE_URL": ""}
    assert isinstance(chosen(environment=empty), OfflineModel)


def test_where_offline_may_not_be_chosen_by_itself_a_model_must_be_named() -> None:
    assert refused(allow_offline=False) == (
        f"No model is named.\nAllowed: {NAMES}\n"
        f"Do: {HOW_TO_SET} Give --model offline for the rule-based one."
    )
    assert isinstance(chosen(allow_offline=False, model="offline"), OfflineModel)


@pytest.mark.parametrize(
    ("options", "set_"),
    [
        ({"environment": KEY}, "OPENAI_API_KEY is"),
        ({"environment": {"ARAG_API_KEY": "k", **KEY}}, "ARAG_API_KEY is"),
        ({"environment": {"OPENAI_BASE_URL": "http://h/v1"}}, "OPENAI_BASE_URL is"),
        (
            {"environment": {"ARAG_BASE_URL": "http://h/v1", **KEY}},
            "OPENAI_API_KEY and ARAG_BASE_URL are",
        ),
        ({"base_url": "http://h/v1"}, "--base-url is"),
    ],
)
def test_a_key_or_a_base_url_without_a_model_is_an_error(
    options: dict[str, object], set_: str
) -> None:
    assert refused(**options) == (
        f"No model is named, but {set_} set.\n"
        "Do: Set ARAG_MODEL or give --model; --model offline for the rule-based one."
    )


def test_a_model_without_key_and_base_url_is_an_error() -> None:
    assert refused(model="small") == (
        f"Model 'small' needs a key or a base URL, and neither is set.\nAllowed: {NAMES}\n"
        "Do: Set OPENAI_API_KEY, or OPENAI_BASE_URL for a local server without a key."
    )


def test_the_model_of_the_environment_is_behind_openais_endpoint() -> None:
    model = chosen(environment={"ARAG_MODEL": "small", **KEY})
    assert isinstance(model, OpenAIModel)
    assert (model.name, model.base_url) == ("small", OPENAI_URL)
    model.close()


def test_an_empty_model_is_none() -> None:
    assert chosen(model="", environment={"ARAG_MODEL": " "}).name == "offline"
    assert refused(environment={"ARAG_MODEL": " ", **KEY}).startswith("No model is named, but ")
    model = chosen(model=" ", environment={"ARAG_MODEL": "small ", **KEY})
    assert model.name == "small"
    model.close()


def test_a_base_url_without_a_key_is_a_local_server() -> None:
    model = chosen(model="small", environment={"OPENAI_BASE_URL": "http://localhost:8000/v1"})
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
    by_variable = chosen(environment=environment)
    by_option = chosen(environment=environment, model="option", base_url="http://option/v1", seed=3)
    expected = OpenAIModel("option", base_url="http://option/v1", seed=3)
    assert isinstance(by_variable, OpenAIModel)
    assert (by_variable.name, by_variable.base_url) == ("environment", "http://arag/v1")
    assert by_option.fingerprint == expected.fingerprint
    for model in (by_variable, by_option, expected):
        model.close()


def test_our_key_wins_over_openais_and_retries_are_told() -> None:
    retries: list[Retry] = []
    with running_endpoint() as endpoint, pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        endpoint.reply_with(refusal(500, "oops", headers={"Retry-After": "0"}), completion("Ada"))
        model = chosen(
            model="m",
            environment={"ARAG_API_KEY": "ours", "ARAG_BASE_URL": endpoint.base_url, **KEY},
            on_retry=retries.append,
        )
        assert model.reply(asked("a")).text == "Ada"
        model.close()
        assert endpoint.keys == ["Bearer ours"] * 2
    assert [retry.reason for retry in retries] == ["oops"]


def test_a_recording_is_replayed_by_its_file_and_recorded_by_option(file: Path) -> None:
    recorded(file, (asked("a"), ModelReply("one")))
    again = file.with_name("again.jsonl")
    model = chosen(model=f"replay:{file}", environment=KEY, record_replies=again)
    assert model.reply(asked("a")).text == "one"
    model.close()
    assert ReplayModel(again).reply(asked("a")).text == "one"
    assert refused(model="replay:") == (
        "'replay:' names no file.\nAllowed: replay:FILE, a file that replies were recorded to"
    )


def test_offline_and_replay_have_no_options() -> None:
    assert refused(model="offline", temperature=0.0, base_url="http://h") == (
        "Model 'offline' has no options: base_url, temperature.\n"
        "Do: Leave them out, or name an endpoint's model."
    )
    assert refused(model="replay:f", seed=0).startswith("Model 'replay' has no options: seed.\n")
    assert refused(seed=0).startswith("Model 'offline' has no options: seed.\n")


def test_offline_with_a_preset_that_lacks_logical_search_names_the_one_to_use() -> None:
    assert refused(preset=load_preset("arag_without_semantic")) == (
        "The offline model works with logical_search, which preset arag_without_semantic lacks.\n"
        "Where: tools of arag_without_semantic: keyword_search, chunk_read\n"
        f"Do: Use preset logical_read, or set a model. {HOW_TO_SET}"
    )
    for name in ("logical_read", "logicalrag", "direct_answer"):
        assert isinstance(chosen(preset=load_preset(name)), OfflineModel)

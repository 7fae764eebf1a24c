"""A server that repeats a key: no error and no record of an answer shows the key."""

import json
import urllib.parse
from collections.abc import Iterator

import pytest

from arag_search.agent.loop import Agent
from arag_search.agent.models.openai import OpenAIModel
from arag_search.agent.presets import load_preset
from arag_search.corpus import Chunk, ordinal_of
from arag_search.errors import AragError, ModelAccessError
from arag_search.search.index import Index
from tests.support.endpoint import Answer, Endpoint, completion, refusal, running_endpoint
from tests.support.openai_asking import FINAL
from tests.support.oracle.engine import MemoryEngine
from tests.support.secrets import KEY, forms_of


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with pytest.MonkeyPatch.context() as patch, running_endpoint() as running:
        patch.setenv("NO_PROXY", "127.0.0.1")
        yield running


@pytest.mark.parametrize("form", forms_of(KEY))
def test_no_error_of_an_endpoint_repeats_the_key(endpoint: Endpoint, form: str) -> None:
    model = OpenAIModel("m", base_url=endpoint.base_url, key=KEY, max_retries=0)
    for answer in (
        refusal(401, f"Bad key {form}", code=form),
        refusal(500, f"Bad key {form}"),
        refusal(404, f"Bad key {form}"),
        Answer(400, f"<p>Bad key {form}</p>"),
        Answer(400, {"detail": [{form: [form]}]}),
        Answer(200, f"no JSON {form}"),
        Answer(200, {"choices": form}),
    ):
        endpoint.reply_with(answer)
        with pytest.raises(AragError) as caught:
            model.reply(FINAL)
        assert form.lower() not in str(caught.value).lower()
        assert "[key]" in str(caught.value)
    endpoint.reply_with(Answer(307, "", {"Location": f"http://h:1/{urllib.parse.quote(KEY)}"}))
    with pytest.raises(ModelAccessError, match=r"http://h:1/\[key\]"):
        model.reply(FINAL)
    model.close()


@pytest.mark.parametrize("form", forms_of(KEY))
def test_no_record_of_an_answer_holds_the_key(endpoint: Endpoint, form: str) -> None:
    opera = Chunk("g.1", "g", "Griselda", "By Vivaldi.", 1, 1, ordinal_of(0, 0, 0), (11,), {})
    model = OpenAIModel("m", base_url=endpoint.base_url, key=KEY, max_retries=0)
    agent = Agent(Index(MemoryEngine([opera]), "memory"), load_preset("logical_read"), model)
    search = json.dumps({"query": "griselda", "note": form})
    endpoint.reply_with(
        completion(f"Thinking of {form}", ("logical_search", search), reasoning=f"{form}!"),
        completion(f"Answer: {form}\nExplanation: {form}\nSources: g.1, {form}"),
    )
    record = agent.ask("Who wrote Griselda?", "q1")
    assert record.status == "answered"
    assert "[key]" in record.answer_short
    for line in (record.to_line().decode(), json.dumps(endpoint.requests)):
        assert form not in line
        assert json.dumps(form)[1:-1] not in line
    model.close()


def test_an_answer_may_hold_the_word_that_a_local_server_takes_for_a_key(
    endpoint: Endpoint,
) -> None:
    model = OpenAIModel("m", base_url=endpoint.base_url, key="ollama", max_retries=0)
    endpoint.reply_with(completion("Answer: Ollama"))
    assert model.reply(FINAL).text == "Answer: Ollama"
    endpoint.reply_with(refusal(401, "Bad key ollama"))
    with pytest.raises(ModelAccessError, match="Bad key \\[key\\]"):
        model.reply(FINAL)
    model.close()

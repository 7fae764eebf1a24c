"""The tokens that endpoints report: how they are read, and what says that a request was cut."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag_search.agent.models.usage import (
    RequestTokens,
    Usage,
    most_reported,
    read_usage,
    usage_warning,
)
from arag_search.agent.record import Record
from tests.support.shared_data import DATA


def usage(prompt: int, completion: int, total: int | None = None, **more: Any) -> dict[str, Any]:
    total_tokens = prompt + completion if total is None else total
    counts = {"prompt_tokens": prompt, "completion_tokens": completion}
    return {**counts, "total_tokens": total_tokens, **more}


def cached(count: object, **more: object) -> dict[str, Any]:
    return {"prompt_tokens_details": {"cached_tokens": count, **more}}


def thoughts(count: object) -> dict[str, Any]:
    return {"completion_tokens_details": {"reasoning_tokens": count}}


ANTHROPIC = {"cache_read_input_tokens": 1_800, "cache_creation_input_tokens": 200}


@pytest.mark.parametrize(
    ("reported", "prompt", "completion", "from_cache", "reasoning"),
    [
        (usage(10_000, 300, **cached(9_000), **thoughts(200)), 10_000, 300, 9_000, 200),  # OpenAI
        (usage(25, 1_024, prompt_tokens_details=None, **thoughts(428)), 25, 1_024, 0, 428),  # vLLM
        ({"prompt_tokens": 12, "completion_tokens": 3}, 12, 3, 0, 0),
        (usage(900, 30, **cached(None), **thoughts(None)), 900, 30, 0, 0),  # OpenRouter
        (usage(900, 30, **cached(600, cache_write_tokens=200)), 900, 30, 600, 0),
        (usage(900, 30, prompt_cache_hit_tokens=600, prompt_cache_miss_tokens=300),
         900, 30, 600, 0),  # DeepSeek
        (usage(900, 30, cached_tokens=600), 900, 30, 600, 0),  # Moonshot
        (usage(2_012, 30, **cached(1_800), **ANTHROPIC), 2_012, 30, 1_800, 0),  # LiteLLM
        # Cached tokens apart: by the names, by the size, by the total
        (usage(12, 30, **ANTHROPIC), 2_012, 30, 1_800, 0),  # LiteLLM, older
        ({"input_tokens": 12, "output_tokens": 30, **ANTHROPIC}, 2_012, 30, 1_800, 0),
        (usage(3_000, 30, **ANTHROPIC), 5_000, 30, 1_800, 0),
        (usage(12, 30, **cached(2_495)), 2_507, 30, 2_495, 0),
        (usage(900, 30, 1_530, **cached(600)), 1_500, 30, 600, 0),
        (usage(900, 30, 1_570, **cached(600), **thoughts(40)), 1_500, 70, 600, 40),
        # Thoughts apart
        (usage(32, 9, 135, **thoughts(94)), 32, 103, 0, 94),  # xAI
        (usage(21, 0, 81, **thoughts(60)), 21, 60, 0, 60),  # Gemini behind a proxy
        (usage(21, 0, 21, **thoughts(60)), 21, 60, 0, 60),
        (usage(20, 424, 1_016), 20, 996, 0, 572),  # Gemini
        ({"input_tokens": 50, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 40},
          "output_tokens_details": {"reasoning_tokens": 4}}, 50, 9, 40, 4),
        # What cannot be a number of tokens does not count
        (usage(900, 30, **cached(-5), **thoughts("many")), 900, 30, 0, 0),
        (usage(900, 30, 10**12, **cached(True)), 900, 30, 0, 0),
        (usage(900, 30, 0), 900, 30, 0, 0),
    ],
)  # fmt: skip
def test_usage_is_read_in_the_forms_of_endpoints(
    reported: object, prompt: int, completion: int, from_cache: int, reasoning: int
) -> None:
    assert read_usage(reported) == Usage(prompt, completion, "endpoint", from_cache, reasoning)


@pytest.mark.parametrize(
    "reported",
    [None, {}, usage(0, 0), usage(0, 128), {"prompt_tokens": 5}, {"completion_tokens": 5},
     usage(900, -1), [usage(1, 1)]],
)  # fmt: skip
def test_usage_without_both_numbers_is_counted_by_us(reported: object) -> None:
    assert read_usage(reported) is None


NUMBERS = st.none() | st.integers(-1, 10**10) | st.floats() | st.text(max_size=2)
NAMES = st.sampled_from(
    ["prompt_tokens", "completion_tokens", "total_tokens", "input_tokens", "output_tokens",
     "cached_tokens", "reasoning_tokens", "prompt_cache_hit_tokens", *ANTHROPIC]
)  # fmt: skip
DETAILS = st.sampled_from(["prompt_tokens_details", "completion_tokens_details"])
FIELDS = st.dictionaries(NAMES, NUMBERS)


@given(FIELDS, st.dictionaries(DETAILS, FIELDS | NUMBERS))
def test_any_usage_is_within_its_bounds(fields: dict[str, object], more: dict[str, object]) -> None:
    reported = read_usage({**fields, **more})
    if reported is not None:
        assert 0 <= reported.cached_tokens <= reported.prompt_tokens
        assert 0 <= reported.reasoning_tokens <= reported.completion_tokens


# Whether requests were read whole


def requests(*pairs: tuple[int, int]) -> list[RequestTokens]:
    return [RequestTokens(counted, reported) for counted, reported in pairs]


CUT: dict[str, Sequence[Sequence[RequestTokens]]] = {
    "the front is cut": [
        requests((1_600, 1_700), (3_000, 2_051), (5_000, 2_051), (7_000, 2_051))
    ],
    "the number stays within 16": [requests((1_500, 1_600), (1_800, 1_616))],
    "three small steps are one of 300": [requests((900, 800), (1_050, 804), (1_200, 806))],
    "half of a full context is kept": [requests((4_000, 3_974), (30_000, 2_051))],
    "it stays below a number from before the cut": [
        requests((4_000, 3_974), (4_600, 2_051), (5_300, 2_051))
    ],
    "one request a question": [requests((7_000, 2_051)), requests((6_500, 2_051))],
    "whole messages are dropped": [requests((4_000, 2_040), (5_500, 1_870), (7_000, 2_010))],
    "tools are left out": [requests((1_600, 500), (1_900, 790))],
    "nothing is reported of the cache": [requests((2_500, 40), (3_300, 800), (4_200, 905))],
    "only a later question is cut": [
        requests((1_600, 1_600)), requests((1_600, 1_600), (4_000, 2_048), (6_000, 2_050))
    ],
}  # fmt: skip
WHOLE: dict[str, Sequence[Sequence[RequestTokens]]] = {
    "nothing is reported": [[], []],
    "our count is larger": [requests((1_600, 1_000), (3_000, 2_100), (5_000, 3_100))],
    "our count is smaller": [requests((1_600, 2_600), (3_000, 5_100))],
    "the same request twice": [requests((1_600, 1_600), (1_600, 1_600))],
    "a request grows by less than 300": [requests((1_600, 1_600), (1_899, 1_600))],
    "the prefix is kept": [requests((2_500, 2_500), (3_300, 800), (4_200, 905), (5_100, 900))],
    "the prefix is kept, and a request is sent again": [
        requests((2_500, 2_500), (3_300, 800), (5_000, 1_700), (5_000, 1))
    ],
    "the prefix is kept across questions": [
        requests((2_500, 2_500), (3_300, 800)),
        requests((2_510, 40), (3_400, 890), (4_300, 900), (5_200, 910)),
    ],
    "the conversation is shortened": [requests((8_000, 8_000), (3_000, 3_000))],
    "the answer is asked for without tools": [requests((3_000, 3_000), (3_050, 1_700))],
}


@pytest.mark.parametrize("questions", CUT.values(), ids=CUT)
def test_a_request_that_was_not_read_whole_is_told(
    questions: Sequence[Sequence[RequestTokens]],
) -> None:
    assert usage_warning(questions)


@pytest.mark.parametrize("questions", WHOLE.values(), ids=WHOLE)
def test_requests_that_were_read_whole_have_no_warning(
    questions: Sequence[Sequence[RequestTokens]],
) -> None:
    assert not usage_warning(questions)
    for at, own in enumerate(questions):
        assert not usage_warning([own], most_reported(chain(*questions[:at])))


def test_the_warning_has_both_numbers_and_the_causes_that_it_cannot_tell_apart() -> None:
    assert usage_warning([requests((1_600, 1_700), (7_000, 2_051))]) == (
        "The model may not have read all of its requests: the endpoint reports 2,051 prompt tokens "
        "where we count 7,000. Either its context is too short, and it cuts the front of a "
        "request, with the instructions and the question (Ollama: raise OLLAMA_CONTEXT_LENGTH); or "
        "the model's template leaves the tools out; or it does not report cached tokens, and the "
        "usage is too low."
    )


@pytest.mark.shared_data
def test_replies_of_a_strong_model_are_whole() -> None:
    from arag_search.agent.answers import is_half_sentence

    answers = 0
    for file in sorted(DATA.glob("model_runs*/*.jsonl")):
        for line in file.read_bytes().splitlines():
            if "trajectory" in (fields := json.loads(line)):
                record = Record.from_json(fields)
                assert not is_half_sentence(record.answer), (file, record.answer)
                answers += 1
    assert answers > 200

"""Endpoints of encoders that refuse single texts, or batches of more than they take.

Each row says what a public report saw: the endpoint's answer, to which texts or batches, and what
becomes of six texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from arag_search.errors import EncoderAccessError, EncoderError
from arag_search.vectors.encoders.endpoint import EndpointEncoder
from tests.support.endpoint import Answer, Endpoint, embeddings, refusal
from tests.support.openai_asking import KEY, fail_on_wait

TEXTS = ["one", "two", "BAD three", "four", "BAD five", "six"]
Sent = Callable[[list[str]], Answer | None]


@pytest.fixture
def encoder(endpoint: Endpoint) -> Iterator[EndpointEncoder]:
    endpoint.reply_with(Answer())
    encoder = EndpointEncoder(
        "m?dimensions=2", base_url=endpoint.base_url, key=KEY, sleep=fail_on_wait
    )
    yield encoder
    encoder.close()


def answer(endpoint: Endpoint, sent: Sent) -> None:
    """Let an endpoint answer with what ``sent`` returns for the texts, else with vectors."""

    def answer_to(request: dict[str, Any]) -> Answer:
        texts: list[str] = request["input"]
        return sent(texts) or embeddings(*([len(text), 1] for text in texts))

    endpoint.reply_by(answer_to)


def if_bad(refused: Answer) -> Sent:
    return lambda texts: refused if any("BAD" in text for text in texts) else None


def if_more_than(most: int, refused: Answer) -> Sent:
    return lambda texts: refused if len(texts) > most else None


def nulls(texts: list[str]) -> Answer:
    return embeddings(*([None, None] if "BAD" in text else [len(text), 1] for text in texts))


AZURE = "'$.input' is invalid. Please check the API reference"
NAN = "failed to encode response: json: unsupported value: NaN"
DASHSCOPE = (
    "<400> InternalError.Algo.InvalidParameter: Value error, batch size is invalid, it should not "
    "be larger than 2.: input.contents"
)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        pytest.param(
            if_bad(refusal(400, AZURE)), AZURE, id="Azure-Samples/azure-search-openai-demo#1134"
        ),
        pytest.param(
            if_bad(refusal(422, "Tokenization error")),
            "Tokenization error",
            id="huggingface/text-embeddings-inference#145",
        ),
        pytest.param(if_bad(Answer(500, {"error": NAN})), NAN, id="hang-in/seCall#5"),
        pytest.param(
            nulls,
            "The vector of a text holds numbers that are not finite: 'BAD three'.",
            id="huggingface/text-embeddings-inference#557",
        ),
        pytest.param(
            if_bad(Answer(200, {"data": [{"embedding": None}]})),
            "The endpoint's reply does not hold 1 vector, as lists of numbers: "
            '{"data": [{"embedding": null}]}',
            id="hauselin/ollama-r#36",
        ),
        pytest.param(
            if_bad(Answer(413, {"detail": "the input is blocked"})),
            "the input is blocked",
            id="zosmaai/pi-llm-wiki#103",
        ),
    ],
)
def test_a_refused_text_is_named_and_all_others_have_vectors(
    endpoint: Endpoint, encoder: EndpointEncoder, sent: Sent, words: str
) -> None:
    answer(endpoint, sent)
    with pytest.raises(EncoderError) as raised:
        encoder.encode(TEXTS)
    error = raised.value
    assert sorted(error.refused_texts) == [2, 4]
    assert error.refused_texts[2] == words
    expected = [[len(text), 1] for text in TEXTS]
    for place in (0, 1, 3, 5):
        x, y = error.vectors[place]
        assert x / y == pytest.approx(expected[place][0])
    assert len(endpoint.requests) == 11
    with pytest.raises(EncoderError):
        encoder.encode_queries(["BAD query"])


@pytest.mark.parametrize(
    ("sent", "sizes"),
    [
        pytest.param(
            if_more_than(2, refusal(400, DASHSCOPE, code="InvalidParameter")),
            [6, 3, 1, 2, 2, 1],
            id="memodb-io/memobase#142",
        ),
        pytest.param(
            if_more_than(
                3, Answer(413, {"code": 20042, "message": "input batch size 6 > maximum 3"})
            ),
            [6, 3, 3],
            id="apecloud/ApeRAG#716",
        ),
        pytest.param(
            if_more_than(3, Answer(400, {"detail": "At most 3 instances are allowed"})),
            [6, 3, 3],
            id="zosmaai/pi-llm-wiki#103",
        ),
        pytest.param(
            if_more_than(1, embeddings([1, 1])),
            [6, 3, 1, 2, 1, 1, 1, 1, 1],
            id="ROCm/FastFlowLM#373",
        ),
        pytest.param(
            if_more_than(3, embeddings(*[[None, None]] * 6)), [6, 3, 3], id="jundot/omlx#3545"
        ),
    ],
)
def test_the_batch_that_an_endpoint_takes_is_found_once(
    endpoint: Endpoint, encoder: EndpointEncoder, sent: Sent, sizes: list[int]
) -> None:
    answer(endpoint, sent)
    texts = [text.removeprefix("BAD ") for text in TEXTS]
    assert encoder.encode(texts).shape == (6, 2)
    assert [len(request["input"]) for request in endpoint.requests] == sizes
    endpoint.requests.clear()
    assert encoder.encode(texts).shape == (6, 2)
    most = max(sizes[-2:])
    assert [len(request["input"]) for request in endpoint.requests] == [most] * (6 // most)


@pytest.mark.parametrize(
    ("refused", "requests"),
    [
        (refusal(400, "Unknown parameter: 'encoding_format'."), 9),  # halves, four texts, a probe
        (refusal(401, "Invalid key"), 1),
        (refusal(403, "Forbidden"), 1),
        (refusal(404, "No such model"), 1),
    ],
)
def test_what_every_request_would_meet_is_an_error_at_once(
    endpoint: Endpoint, encoder: EndpointEncoder, refused: Answer, requests: int
) -> None:
    answer(endpoint, lambda texts: refused)
    with pytest.raises(EncoderError) as raised:
        encoder.encode(TEXTS)
    assert not raised.value.refused_texts
    assert len(endpoint.requests) == requests
    assert isinstance(raised.value, EncoderAccessError) == (requests == 1)


def test_texts_in_a_row_that_are_refused_are_told_from_a_fault_of_the_request(
    endpoint: Endpoint, encoder: EndpointEncoder
) -> None:
    answer(endpoint, if_bad(refusal(400, AZURE)))
    with pytest.raises(EncoderError) as raised:
        encoder.encode(["BAD"] * 7 + ["good"])
    assert sorted(raised.value.refused_texts) == [*range(7)]

"""EndpointEncoder over loopback: its requests, its vectors and its errors."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from arag_search.errors import (
    ConfigError,
    EncoderAccessError,
    EncoderError,
    EncoderLengthError,
    EncoderReplyError,
    EncoderUnavailableError,
)
from arag_search.tokens import count_tokens
from arag_search.vectors.base import EncoderIdentity, EncoderOptions
from arag_search.vectors.encoders.endpoint import EndpointEncoder
from tests.support.endpoint import Answer, Endpoint, embeddings, refusal
from tests.support.openai_asking import KEY, WaitLog, fail_on_wait


@pytest.fixture
def make_encoder(endpoint: Endpoint) -> Callable[..., EndpointEncoder]:
    """Return a function that makes encoders that wait for nothing."""

    def make(**options: object) -> EndpointEncoder:
        all_options = {"base_url": endpoint.base_url, "key": KEY, "sleep": fail_on_wait, **options}
        names = EncoderOptions.__annotations__.keys() & all_options.keys()
        encoding = {name: all_options.pop(name) for name in names}
        return EndpointEncoder(**{"model": "m", "encoding": encoding, **all_options})  # type: ignore[arg-type]

    return make


Make = Callable[..., EndpointEncoder]


def error_text(encoder: EndpointEncoder, error: type[EncoderError], *texts: str) -> str:
    with pytest.raises(error) as raised:
        encoder.encode(texts or ("a",))
    assert type(raised.value) is error
    return str(raised.value)


def inputs(endpoint: Endpoint) -> list[list[str]]:
    return [request["input"] for request in endpoint.requests]


def test_vectors_are_of_unit_length_in_the_order_of_their_indexes(
    endpoint: Endpoint, make_encoder: Make
) -> None:
    endpoint.reply_with(embeddings([3, 4], [0, 2], [-5, 0], order=(2, 0, 1)))
    vectors = make_encoder().encode(["a", "b", "c"])
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [pytest.approx([0.6, 0.8]), [0, 1], [-1, 0]]
    assert endpoint.paths == ["/v1/embeddings"]
    assert endpoint.keys == [f"Bearer {KEY}"]
    assert endpoint.requests == [
        {"model": "m", "input": ["a", "b", "c"], "encoding_format": "float"}
    ]


def test_vectors_without_indexes_are_in_the_order_of_the_texts(
    endpoint: Endpoint, make_encoder: Make
) -> None:
    data = [{"embedding": [1, 0]}, {"index": None, "embedding": [0, 1]}]
    endpoint.reply_with(Answer(body={"data": data}))
    assert make_encoder().encode(["a", "b"]).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("model", ["m", "m?dimensions=2"])
def test_what_an_endpoint_says_of_the_form_of_a_request_is_passed_on(
    endpoint: Endpoint, make_encoder: Make, model: str
) -> None:
    endpoint.reply_with(refusal(422, "encoding_format and dimensions are not supported"))
    message = error_text(make_encoder(model=model), EncoderReplyError)
    assert "encoding_format and dimensions are not supported" in message
    assert len(endpoint.requests) == 1


def test_requests_are_bounded_by_texts(endpoint: Endpoint, make_encoder: Make) -> None:
    endpoint.reply_with(embeddings([1, 0], [0, 1]), embeddings([1, 0]))
    assert make_encoder(batch_size=2).encode(["a", "b", "c"]).shape == (3, 2)
    assert inputs(endpoint) == [["a", "b"], ["c"]]


def test_a_long_text_is_truncated_and_counted_and_an_empty_one_becomes_a_blank(
    endpoint: Endpoint, make_encoder: Make
) -> None:
    endpoint.reply_with(embeddings([1, 0], [1, 0], [1, 0]))
    encoder = make_encoder(max_tokens=10)
    encoder.encode(["word " * 10_000, "", "half \ud83d"])
    assert encoder.cut_texts == 1
    [[truncated_text, blank, replaced_text]] = inputs(endpoint)
    assert 8 <= count_tokens(truncated_text) <= 10
    assert (blank, replaced_text) == (" ", "half ?")
    assert encoder.identity.max_tokens == 10


def test_a_request_that_is_too_long_is_halved(endpoint: Endpoint, make_encoder: Make) -> None:
    endpoint.reply_with(
        Answer(413, "Payload too large"),
        embeddings([1, 0]),
        refusal(422, "batch size 2 > maximum allowed batch size 1"),
        embeddings([0, 1]),
        embeddings([-1, 0]),
    )
    assert make_encoder().encode(["a", "b", "c"]).tolist() == [[1, 0], [0, 1], [-1, 0]]
    assert inputs(endpoint) == [["a", "b", "c"], ["a"], ["b", "c"], ["b"], ["c"]]


def test_a_text_that_is_too_long_alone_is_cut_until_it_fits(
    endpoint: Endpoint, make_encoder: Make
) -> None:
    too_long = refusal(400, "the input length exceeds the context length")
    endpoint.reply_with(
        *(too_long, embeddings([1, 0]), too_long, too_long, too_long),
        *(embeddings([0, 1]), embeddings([-1, 0])),
    )
    encoder = make_encoder()
    assert encoder.encode(["a", "word " * 99, "b"]).tolist() == [[1, 0], [0, 1], [-1, 0]]
    sizes = [count_tokens(text) for [text] in inputs(endpoint)[3:6]]
    assert sizes[0] == 100
    assert 70 < sizes[1] <= 75
    assert 50 < sizes[2] <= 56
    assert encoder.cut_texts == 1


def test_a_text_that_is_too_long_however_short_it_is_names_the_variable(
    endpoint: Endpoint, make_encoder: Make
) -> None:
    endpoint.reply_with(refusal(400, "This model's maximum context length is 512 tokens."))
    assert error_text(make_encoder(), EncoderLengthError) == (
        "The request is too long for the model: This model's maximum context length is 512 "
        f"tokens.\nWhere: encoder m at {endpoint.base_url}\n"
        "Do: Set ARAG_EMBEDDING_MAX_TOKENS to what the model takes (it is 8000 now); texts are "
        "cut there."
    )


@pytest.mark.parametrize(
    ("model", "options", "expected"),
    [
        ("m", {}, [["a"], ["a"]]),
        ("m", {"query_prefix": "Find: "}, [["Find: a"], ["a"]]),
        ("nomic-embed-text:latest", {}, [["search_query: a"], ["search_document: a"]]),
        ("nomic-embed-text", {"document_prefix": ""}, [["search_query: a"], ["a"]]),
    ],
)
def test_the_prefixes_are_those_of_the_model_by_its_name_unless_others_are_given(
    endpoint: Endpoint,
    make_encoder: Make,
    model: str,
    options: dict[str, str],
    expected: list[list[str]],
) -> None:
    endpoint.reply_with(embeddings([1, 0]))
    encoder = make_encoder(model=model, **options)
    encoder.encode_queries(["a"])
    encoder.encode(["a"])
    assert inputs(endpoint) == expected


def test_the_dimension_is_learnt_once_and_an_empty_batch_is_not_sent(
    endpoint: Endpoint, make_encoder: Make
) -> None:
    endpoint.reply_with(embeddings([1, 0, 0]))
    encoder = make_encoder(query_prefix="Find: ", document_prefix="Text: ")
    expected = EncoderIdentity(
        kind="endpoint",
        name="endpoint:m",
        dimension=3,
        max_tokens=8_000,
        query_prefix="Find: ",
        document_prefix="Text: ",
    )
    assert encoder.identity == encoder.identity == expected
    assert encoder.encode([]).shape == (0, 3)
    assert len(endpoint.requests) == 1


def test_another_dimension_than_before_is_an_error(endpoint: Endpoint, make_encoder: Make) -> None:
    endpoint.reply_with(embeddings([1, 0]), embeddings([1, 0, 0]))
    encoder = make_encoder()
    encoder.encode(["a"])
    assert error_text(encoder, EncoderReplyError) == (
        "The endpoint gave vectors of 3 numbers, not 2 as before.\n"
        f"Where: encoder m at {endpoint.base_url}"
    )


def test_a_dimension_in_the_name_is_asked_for_and_checked(
    endpoint: Endpoint, make_encoder: Make
) -> None:
    endpoint.reply_with(embeddings([1, 0, 0]))
    encoder = make_encoder(model="m?dimensions=2")
    assert (encoder.identity.name, encoder.identity.dimension) == ("endpoint:m?dimensions=2", 2)
    message = error_text(encoder, EncoderReplyError)
    assert message.startswith("The endpoint gave vectors of 3 numbers, not 2 as asked for.\n")
    assert (endpoint.requests[0]["model"], endpoint.requests[0]["dimensions"]) == ("m", 2)


@pytest.mark.parametrize(
    "body",
    [
        "<p>Welcome</p>",
        {"choices": []},
        {"error": {"message": "overfull"}},
        {"data": []},
        {"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]},
        {"data": [{"index": 1, "embedding": [1]}, {"index": 2, "embedding": [1]}]},
        {"data": [{"index": at, "embedding": [1]} for at in (0, 1, 1)]},
        {"data": [{"embedding": [1]}, {"embedding": [1, 2]}]},
        {"data": [{"embedding": [1]}, {"embedding": None}]},
        {"data": [{"embedding": "AACAPw=="}, {"embedding": "AACAPw=="}]},
        {"data": [{"embedding": []}, {"embedding": []}]},
        {"data": [{"embedding": [1]}, 7]},
        {"data": [{"embedding": [[1]]}, {"embedding": [[1]]}]},
    ],
)
def test_a_body_without_the_vectors_is_shown(
    endpoint: Endpoint, make_encoder: Make, body: object
) -> None:
    endpoint.reply_with(Answer(200, body))
    message = error_text(make_encoder(), EncoderReplyError, "a", "b")
    problem = "The endpoint's reply does not hold 1 vector, as lists of numbers: "
    assert message.startswith(problem)
    assert message.removeprefix(problem)[0] in "<{o"
    assert inputs(endpoint) == [["a", "b"], ["a"], ["b"]]


def test_a_vector_with_a_number_that_is_not_finite_names_its_text(
    endpoint: Endpoint, make_encoder: Make
) -> None:
    endpoint.reply_with(embeddings([1, 0], [None, 0]), embeddings([1, 0]), embeddings([None, 0]))
    assert error_text(make_encoder(), EncoderReplyError, "good", "b" * 99) == (
        f"The vector of a text holds numbers that are not finite: '{'b' * 60}...'.\n"
        f"Where: encoder m at {endpoint.base_url}\nAllowed: finite numbers\n"
        "Do: Run the model with another precision or server, or name another model."
    )


@pytest.mark.parametrize("vector", [[0, 0], [3, 4]])
def test_one_vector_for_all_of_many_texts_is_refused(
    endpoint: Endpoint, make_encoder: Make, vector: list[int]
) -> None:
    endpoint.reply_with(embeddings(*[vector] * 9))
    encoder = make_encoder()
    assert encoder.encode(["a"] * 9).shape == (9, 2)
    assert error_text(encoder, EncoderReplyError, *"abcdefghi").startswith(
        f"The endpoint gave one vector for 9 texts.\nWhere: encoder m at {endpoint.base_url}\n"
    )


def test_a_vector_of_zeros_becomes_the_first_unit_vector(
    endpoint: Endpoint, make_encoder: Make
) -> None:
    endpoint.reply_with(embeddings([0, 0], [0, 7]))
    assert make_encoder().encode(["a", "b"]).tolist() == [[1, 0], [0, 1]]


def test_transient_errors_are_retried_with_the_waits_of_models(
    endpoint: Endpoint, make_encoder: Make, waits: WaitLog
) -> None:
    endpoint.reply_with(
        refusal(429, "Slow down", headers={"Retry-After": "7"}),
        Answer(500, "oops"),
        embeddings([1, 0]),
    )
    encoder = make_encoder(sleep=waits.sleep, chance=lambda: 0.0, on_retry=waits.retries.append)
    assert encoder.encode(["a"]).tolist() == [[1, 0]]
    assert waits.seconds == [7.0, 2.0]
    assert [retry.reason for retry in waits.retries] == ["Slow down", "oops"]


def test_a_refused_key_names_the_variables_and_is_not_shown(
    endpoint: Endpoint, make_encoder: Make
) -> None:
    endpoint.reply_with(refusal(401, f"Incorrect API key provided: {KEY}."))
    assert error_text(make_encoder(), EncoderAccessError) == (
        "The endpoint refused the key (status 401): Incorrect API key provided: [key].\n"
        f"Where: encoder m at {endpoint.base_url}\n"
        "Do: Set ARAG_EMBEDDING_API_KEY or ARAG_API_KEY or OPENAI_API_KEY to a key that "
        f"{endpoint.base_url} accepts."
    )
    assert KEY not in repr(make_encoder())


def test_options_that_no_endpoint_takes_are_refused_together(make_encoder: Make) -> None:
    with pytest.raises(ConfigError) as raised:
        make_encoder(model="m?dimensions=0", base_url="ftp://host", max_retries=-1)
    assert str(raised.value) == (
        "No endpoint takes these options: base URL 'ftp://host' (http:// or https://, host, "
        "path); dimensions '0' (1 or more); max_retries -1 (0 or more)."
    )


def test_threads_share_an_encoder_and_a_closed_one_says_so(
    endpoint: Endpoint, make_encoder: Make
) -> None:
    endpoint.reply_with(embeddings([1, 0]))
    encoder = make_encoder()
    with ThreadPoolExecutor(8) as threads:
        vectors = list(threads.map(lambda text: encoder.encode([text]).tolist(), "abcdefgh"))
    assert vectors == [[[1, 0]]] * 8
    assert sorted(inputs(endpoint)) == [[text] for text in "abcdefgh"]
    encoder.close()
    assert error_text(encoder, EncoderUnavailableError) == (
        f"The encoder was closed.\nWhere: encoder m at {endpoint.base_url}"
    )

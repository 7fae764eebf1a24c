"""EndpointEncoder: models behind any endpoint with OpenAI's /v1/embeddings."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from typing import Any, Unpack, cast

from arag_search.endpoints.calls import (
    KEY_VARIABLES,
    MAX_REPLY_BYTES,
    Endpoint,
    EndpointOptions,
    Request,
)
from arag_search.endpoints.refusals import Failures, Refusal, is_about
from arag_search.errors import (
    EncoderAccessError,
    EncoderLengthError,
    EncoderReplyError,
    EncoderUnavailableError,
)
from arag_search.system.extras import check_extra
from arag_search.tokens import count_tokens, cut_to
from arag_search.vectors.base import EncoderIdentity, EncoderOptions, FloatArray
from arag_search.vectors.encoders.known_models import known_model
from arag_search.vectors.encoders.prefixed import PrefixedEncoder, Task

KEY_VARIABLE = "ARAG_EMBEDDING_API_KEY"
BASE_URL_VARIABLE = "ARAG_EMBEDDING_BASE_URL"
MAX_TOKENS_VARIABLE = "ARAG_EMBEDDING_MAX_TOKENS"
DEFAULT_BATCH_SIZE = 64
DEFAULT_MAX_TOKENS = 8_000  # of a text; OpenAI's models take 8,192
DEFAULT_MAX_REQUEST_TOKENS = 100_000  # OpenAI takes 300,000
_SENT_SHARE = 7 / 8  # of the tokens of a model, which are more than ours in code and other scripts
_LEAST_TOKENS = 16  # a text is not cut further
_MOST_OF_ONE_VECTOR = 8  # texts; fewer may differ in case alone, or behind what the model reads
_MOST_DIMENSIONS = 8_192  # of a model of unknown dimension, for the limit of a reply
_MOST_NUMBER_BYTES = 32  # of a number in decimal, with its comma
FAILURES = Failures(
    noun="encoder",
    access=EncoderAccessError,
    unavailable=EncoderUnavailableError,
    reply=EncoderReplyError,
    length=EncoderLengthError,
    key_variables=(KEY_VARIABLE, *KEY_VARIABLES),
)


class _Sent:
    """A text as it is sent, with its tokens."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = count_tokens(text)
        self.is_cut = False

    def cut(self, max_tokens: int) -> None:
        """Cut the text to a number of tokens."""
        self.text, self.tokens, self.is_cut = cut_to(self.text, max_tokens), max_tokens, True


class EndpointEncoder(PrefixedEncoder):
    """A model behind an OpenAI-compatible endpoint.

    A request holds up to ``batch_size`` texts (DEFAULT_BATCH_SIZE) with ``max_request_tokens`` in
    total (o200k tokens); one that is too long for the endpoint is halved. Texts are cut to
    ``max_tokens``, as a model of this process would cut them (None: what is known of the model,
    else DEFAULT_MAX_TOKENS), and further if the endpoint refuses one as too long; an empty one is
    sent as a blank. Vectors are received as base64 or, if the endpoint refuses that, as lists.
    ``dimension`` is requested from the endpoint, unless it refuses that and has no other; None is
    the model's own, learned from the first reply. ``options`` are those of Endpoint.

    Raises ConfigError for options that no endpoint accepts, and MissingExtraError.
    """

    def __init__(
        self,
        model: str,
        *,
        encoding: EncoderOptions | None = None,
        max_tokens: int | None = None,
        max_request_tokens: int = DEFAULT_MAX_REQUEST_TOKENS,
        **options: Unpack[EndpointOptions],
    ) -> None:
        check_extra("vectors", "numpy")
        encoding = encoding or {}
        batch_size, dimension = encoding.get("batch_size"), encoding.get("dimension")
        batch_size = DEFAULT_BATCH_SIZE if batch_size is None else batch_size
        self._endpoint = Endpoint(
            model,
            failures=FAILURES,
            max_reply_bytes=MAX_REPLY_BYTES
            + batch_size * (dimension or _MOST_DIMENSIONS) * _MOST_NUMBER_BYTES,
            **options,
        )
        if max_tokens is None:
            known = known_model(model).max_tokens
            max_tokens = int(known * _SENT_SHARE) if known else DEFAULT_MAX_TOKENS
        bounds = {
            "batch_size": batch_size,
            "dimension": 1 if dimension is None else dimension,
            "max_tokens": max_tokens,
            "max_request_tokens": max_request_tokens,
        }
        self._endpoint.check(
            [f"{name} {value} (1 or more)" for name, value in bounds.items() if value < 1]
        )
        self._batch_size = batch_size
        super().__init__(model, {}, encoding, self._endpoint.where)
        self._max_tokens = max_tokens
        self._max_request_tokens = max_request_tokens
        self._asked_dimension = dimension
        self._dimension: int | None = dimension
        self._learning = threading.Lock()
        # What is asked for beside the vectors, until the endpoint refuses it.
        self._options: dict[str, object] = {"encoding_format": "base64"}
        if dimension is not None:
            self._options["dimensions"] = dimension

    def __repr__(self) -> str:
        return f"EndpointEncoder({self._endpoint.name!r}, base_url={self._endpoint.base_url!r})"

    @property
    def identity(self) -> EncoderIdentity:
        """The identity of the encoder. Sends a request if the dimension is unknown."""
        if self._dimension is None:
            self.encode_queries(["dimension"])
        return EncoderIdentity(
            kind="endpoint",
            name=f"endpoint:{self._endpoint.name}",
            revision="",
            dimension=cast(int, self._dimension),
            max_tokens=self._max_tokens,
            query_prefix=self._prefixes["query"],
            document_prefix=self._prefixes["document"],
        )

    def close(self) -> None:
        """Close connections and end waits; a waiting call raises EncoderUnavailableError."""
        self._endpoint.close()

    def _rows(self, texts: list[str], task: Task) -> tuple[FloatArray, int]:
        import numpy as np

        sent = [_Sent(self._prefixes[task] + text or " ") for text in texts]
        for text in sent:
            if text.tokens > self._max_tokens:
                text.cut(self._max_tokens)
        rows = np.concatenate([self._vectors(batch) for batch in self._batches(sent)])
        return rows, sum(text.is_cut for text in sent)

    def _batches(self, texts: list[_Sent]) -> Iterator[list[_Sent]]:
        """Yield the texts in batches within both limits."""
        batch: list[_Sent] = []
        room = self._max_request_tokens
        for text in texts:
            if batch and (len(batch) == self._batch_size or text.tokens > room):
                yield batch
                batch, room = [], self._max_request_tokens
            batch.append(text)
            room -= text.tokens
        yield batch

    def _vectors(self, batch: list[_Sent]) -> FloatArray:
        """Return the vectors of a batch. While it is too long, it is halved, and a single text is
        cut: the tokens of the model may be others than ours."""
        import numpy as np

        try:
            vectors = self._request([text.text for text in batch])
        except EncoderLengthError as error:
            if half := len(batch) // 2:
                return np.concatenate([self._vectors(batch[:half]), self._vectors(batch[half:])])
            if batch[0].tokens <= _LEAST_TOKENS:
                raise EncoderLengthError(
                    error.what,
                    where=error.where,
                    do=f"Set {MAX_TOKENS_VARIABLE} to what the model takes (it is "
                    f"{self._max_tokens} now); texts are cut there.",
                ) from error
            batch[0].cut(batch[0].tokens * 3 // 4)
            return self._vectors(batch)
        if (
            len({text.text for text in batch}) > _MOST_OF_ONE_VECTOR
            and not np.ptp(vectors, 0).any()
        ):
            raise EncoderReplyError(
                f"The endpoint gave one vector for {len(batch)} texts.",
                where=self._where,
                allowed="a vector for each text",
                do="Mend or restart the server that runs the model, and run the command again.",
            )
        with self._learning:
            if self._dimension is None:
                self._dimension = vectors.shape[1]
        if vectors.shape[1] != self._dimension:
            origin = "asked for" if self._asked_dimension else "before"
            raise EncoderReplyError(
                f"The endpoint gave vectors of {vectors.shape[1]} numbers, not {self._dimension} "
                f"as {origin}.",
                where=self._where,
            )
        return vectors

    def _request(self, batch: list[str]) -> FloatArray:
        options: dict[str, object] = {}

        def send(client: Any) -> Any:
            nonlocal options
            options = dict(self._options)
            create: Any = client.embeddings.with_raw_response.create
            return create(model=self._endpoint.name, input=batch, **options)

        def again(refusal: Refusal) -> bool:
            if options["encoding_format"] == "base64" and is_about(refusal, "encoding_format"):
                self._options["encoding_format"] = "float"
            elif "dimensions" in options and is_about(refusal, "dimensions"):
                self._options.pop("dimensions", None)  # some refuse even that of the model itself
            else:
                return False
            return True

        return self._endpoint.ask(
            Request(
                send,
                lambda body: read_vectors(body, len(batch)),
                self._where,
                is_shown=False,
                again=again,
            )
        )


def read_vectors(body: str, count: int) -> FloatArray:
    """Return the vectors in the body of a response, by index: float32 of shape (count, n).

    Raises ValueError, with what is wrong, unless there are ``count`` of equal length.
    """
    import numpy as np
    import orjson

    try:
        content: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise ValueError("The endpoint's reply is not JSON") from None
    data = cast(dict[str, object], content).get("data") if isinstance(content, dict) else None
    if not isinstance(data, list):
        raise ValueError("The endpoint's reply holds no vectors")
    vectors: dict[int, FloatArray] = {}
    for position, item in enumerate(cast(list[object], data)):
        fields = cast(dict[str, object], item) if isinstance(item, dict) else {}
        index = fields.get("index")
        index = position if index is None else index
        if type(index) is not int or index in vectors:
            raise ValueError(f"The endpoint's reply has index {index!r} where it cannot be")
        vectors[index] = _numbers(fields.get("embedding"), position)
    if sorted(vectors) != list(range(count)):
        raise ValueError(f"The endpoint's reply holds other vectors than the {count} asked for")
    rows = [vectors[index] for index in range(count)]
    lengths = {len(row) for row in rows}
    if len(lengths) != 1:
        raise ValueError("The endpoint's reply holds vectors of different lengths")
    return np.stack(rows)


def _numbers(embedding: object, position: int) -> FloatArray:
    """Return a vector from base64 (float32, little-endian) or a list of numbers."""
    import numpy as np

    try:
        if isinstance(embedding, str):
            raw = base64.b64decode(embedding, validate=True)
            numbers = np.frombuffer(raw, "<f4").astype(np.float32)
        else:
            numbers = np.array(embedding, np.float32)
    except (ValueError, TypeError):
        numbers = np.empty((0, 0), np.float32)
    if numbers.ndim != 1 or len(numbers) < 1:
        raise ValueError(f"The endpoint's reply holds no vector at data.{position}")
    return numbers

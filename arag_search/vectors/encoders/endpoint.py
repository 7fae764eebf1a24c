"""EndpointEncoder: models behind any endpoint with OpenAI's /v1/embeddings."""

from __future__ import annotations

from typing import Any, Unpack

from arag_search.endpoints.calls import (
    KEY_VARIABLES,
    MAX_REPLY_BYTES,
    Endpoint,
    EndpointOptions,
    Request,
)
from arag_search.endpoints.refusals import Failures, ItemRefusals
from arag_search.errors import (
    EncoderAccessError,
    EncoderError,
    EncoderLengthError,
    EncoderReplyError,
    EncoderUnavailableError,
)
from arag_search.system.extras import check_extra
from arag_search.system.progress import counted
from arag_search.tokens import count_tokens, cut_to
from arag_search.vectors.base import PROBE_TEXTS, EncoderOptions, FloatArray, unit_rows
from arag_search.vectors.encoders.known_models import known_model
from arag_search.vectors.encoders.prefixed import PrefixedEncoder, Task

KEY_VARIABLE = "ARAG_EMBEDDING_API_KEY"
BASE_URL_VARIABLE = "ARAG_EMBEDDING_BASE_URL"
MAX_TOKENS_VARIABLE = "ARAG_EMBEDDING_MAX_TOKENS"
DEFAULT_BATCH_SIZE = 64
DEFAULT_MAX_TOKENS = 8_000  # of a text; OpenAI's models take 8,192
DIMENSIONS = "?dimensions="
_SENT_SHARE = 7 / 8  # of the tokens of a model, which are more than ours in code and other scripts
_LEAST_TOKENS = 16  # a text is not cut further
_MOST_OF_ONE_VECTOR = 8  # texts; fewer may differ in case alone, or behind what the model reads
_MOST_VECTOR_BYTES = 8_192 * 32  # of numbers in decimal, with their commas
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
        self.vector: Any = None
        self.error: EncoderError | None = None

    def cut(self, max_tokens: int) -> None:
        self.text, self.tokens, self.is_cut = cut_to(self.text, max_tokens), max_tokens, True


class EndpointEncoder(PrefixedEncoder):
    """A model behind an OpenAI-compatible endpoint, named ``MODEL``, or ``MODEL?dimensions=N`` to
    ask it for vectors of N numbers.

    A request holds up to ``batch_size`` texts (DEFAULT_BATCH_SIZE). If the endpoint refuses it, it
    is halved, and the size that worked is kept. A text that it refuses alone, or without a finite
    vector, is raised behind all others, with their vectors (see EncoderError). Texts are cut to
    ``max_tokens`` (o200k tokens), as a model of this process would cut them. None stands for the
    known limit of the model, else DEFAULT_MAX_TOKENS. They are cut further if the endpoint refuses
    one as too long. An empty text is sent as a blank. The dimension is learned from the first
    reply. ``options`` are for Endpoint.

    Raises ConfigError for options that no endpoint accepts, and MissingExtraError.
    """

    kind = "endpoint"

    def __init__(
        self,
        model: str,
        *,
        encoding: EncoderOptions | None = None,
        max_tokens: int | None = None,
        **options: Unpack[EndpointOptions],
    ) -> None:
        check_extra("vectors", "numpy")
        name, asks, dimensions = model.partition(DIMENSIONS)
        self._batch_size = (encoding or {}).get("batch_size") or DEFAULT_BATCH_SIZE
        limit = MAX_REPLY_BYTES + self._batch_size * _MOST_VECTOR_BYTES
        self._endpoint = Endpoint(name, failures=FAILURES, max_reply_bytes=limit, **options)
        is_number = dimensions.isascii() and dimensions.isdecimal() and int(dimensions) > 0
        self._endpoint.check(
            [f"dimensions {dimensions!r} (1 or more)"] if asks and not is_number else []
        )
        known = known_model(name).max_tokens
        self._refusals = ItemRefusals()
        self._max_sent = max_tokens or (int(known * _SENT_SHARE) if known else DEFAULT_MAX_TOKENS)
        self._asked = {"dimensions": int(dimensions)} if asks else {}
        super().__init__(
            f"endpoint:{model}",
            self._endpoint.where,
            encoding or {},
            prompts={},
            max_tokens=self._max_sent,
            dimension=self._asked.get("dimensions", 0),
        )

    def __repr__(self) -> str:
        return f"EndpointEncoder({self._endpoint.name!r}, base_url={self._endpoint.base_url!r})"

    def close(self) -> None:
        """Close connections and end waits; a waiting call raises EncoderUnavailableError."""
        self._endpoint.close()

    def _rows(self, texts: list[str], prefix: str, task: Task) -> tuple[FloatArray, int]:
        import numpy as np

        sent = [_Sent(prefix + text or " ") for text in texts]
        for text in sent:
            if text.tokens > self._max_sent:
                text.cut(self._max_sent)
        self._encode(sent)
        cut = sum(text.is_cut for text in sent)
        rows = np.zeros((len(sent), self._dimension), np.float32)
        for row, text in zip(rows, sent, strict=True):
            row[:] = 0 if text.error else text.vector
        if refused := {place: text.error for place, text in enumerate(sent) if text.error}:
            error = next(iter(refused.values()))
            error.refused_texts = {place: own.refused or own.what for place, own in refused.items()}
            error.vectors = unit_rows(rows, texts, self._where) if self._dimension else None
            if task == "document":
                with self._counting:
                    self.cut_texts += cut
            raise error
        return rows, cut

    def _encode(self, texts: list[_Sent]) -> None:
        """Give each text its vector or its error."""
        start = 0
        while batch := texts[start : start + self._batch_size]:
            start += len(batch)
            try:
                vectors = self._request([text.text for text in batch])
                unit_rows(vectors, [text.text for text in batch], self._where)
            except (EncoderLengthError, EncoderReplyError) as error:
                self._divide(batch, error)
                continue
            self._check(batch, vectors)
            self._refusals.add("")
            for text, vector in zip(batch, vectors, strict=True):
                text.vector = vector

    def _divide(self, batch: list[_Sent], error: EncoderLengthError | EncoderReplyError) -> None:
        """Halve a batch that was refused, down to one text.

        A text that is too long is cut: the tokens of the model may be others than ours. Any other
        text gets the error. At every fourth error in a row, a text that is known to be good is
        tried; if it fails too, the error is raised.
        """
        if half := len(batch) // 2:
            self._encode(batch[:half])
            self._encode(batch[half:])
            if not any(text.is_cut or text.error for text in batch):
                self._batch_size = min(self._batch_size, len(batch) - half)
            return
        text = batch[0]
        if isinstance(error, EncoderLengthError):
            if text.tokens > _LEAST_TOKENS:
                text.cut(text.tokens * 3 // 4)
                self._encode(batch)
                return
            error.do = (
                f"Set {MAX_TOKENS_VARIABLE} to what the model takes (it is {self._max_sent} now); "
                "texts are cut there."
            )
        text.error = error
        if self._refusals.add(error.refused or error.what):
            self._request([PROBE_TEXTS[0]])

    def _check(self, batch: list[_Sent], vectors: FloatArray) -> None:
        """Raise EncoderReplyError for vectors by which the whole server is known to be faulty."""
        import numpy as np

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
        self._dimension = self._dimension or vectors.shape[1]
        if vectors.shape[1] != self._dimension:
            origin = "asked for" if self._asked else "before"
            raise EncoderReplyError(
                f"The endpoint gave vectors of {vectors.shape[1]} numbers, not {self._dimension} "
                f"as {origin}.",
                where=self._where,
            )

    def _request(self, batch: list[str]) -> FloatArray:
        def send(client: Any) -> Any:
            create: Any = client.embeddings.with_raw_response.create
            name = self._endpoint.name
            return create(model=name, input=batch, encoding_format="float", **self._asked)

        def read(body: str) -> FloatArray:
            return read_vectors(body, len(batch))

        return self._endpoint.ask(Request(send, read, self._where, is_shown=False))


def read_vectors(body: str, count: int) -> FloatArray:
    """Return the vectors in the body of a response, by index: float32 of shape (count, n).

    Raises ValueError unless there are ``count`` of equal length.
    """
    import numpy as np
    import orjson

    try:
        items: list[Any] = orjson.loads(body)["data"]
        indexes = [
            at if (own := item.get("index")) is None else own for at, item in enumerate(items)
        ]
        by_index = dict(zip(indexes, (item["embedding"] for item in items), strict=True))
        rows = np.array([by_index[index] for index in range(count)], np.float32)
        if rows.ndim == 2 and rows.size and len(items) == count:
            return rows
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    number = counted(count, "vector")
    raise ValueError(f"The endpoint's reply does not hold {number}, as lists of numbers")

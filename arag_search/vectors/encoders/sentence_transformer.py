"""SentenceTransformerEncoder: models that run in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from arag_search.errors import ArgumentError, EncoderUnavailableError
from arag_search.system.extras import check_extra
from arag_search.tokens import encodable
from arag_search.vectors.base import EncoderIdentity
from arag_search.vectors.encoders.hub import hub_folder
from arag_search.vectors.encoders.loading import bound_threads, load_model, usable_device
from arag_search.vectors.encoders.model_folder import local_folder, revision_of
from arag_search.vectors.encoders.unit import unit_rows

if TYPE_CHECKING:
    from arag_search.vectors.base import FloatArray

DEFAULT_BATCH_SIZE = 64
CPU_BATCH_SIZE = 16
"""The batch size on a CPU. On two cores, it was measured to encode a third more sentences and a
quarter more passages per second than 64."""
TASK = "Given a web search query, retrieve relevant passages that answer the query"
_INSTRUCTED = {"qwen3-embedding": f"Instruct: {TASK}\nQuery:"}
"""Instructions in the format of models, for copies of the models that have no instruction."""
_MOST_TOKENS = 10**7  # above it a model has no bound; tokenizers say 1e30


class SentenceTransformerEncoder:
    """A model of sentence-transformers, by folder, installed package, or name on the hub.

    ``query_instruction`` is put directly before a query. None is the model's own prompt "query",
    or the instruction of Qwen3-Embedding for copies of it without one, otherwise nothing. A
    document gets the model's own prompt for documents, if it has one. Texts are cut to the model's
    length, and encoded in batches of ``batch_size`` sorted by length (None: CPU_BATCH_SIZE or
    DEFAULT_BATCH_SIZE). ``dimension`` keeps the first numbers of a vector, for models trained for
    that.

    ``device`` is "auto" (CUDA if available, otherwise the processor) or as torch names it. On CUDA
    the model works in half precision, elsewhere in single, so that vectors of two devices differ by
    about 1e-3. ``threads`` limits those of torch, for the whole process, and of the tokenizer,
    unless that was used before; None is at most the cores that this process may use. Calls from
    several threads take turns.

    Raises MissingExtraError, EncoderNotFoundError, EncoderAccessError, EncoderFilesError, and
    ArgumentError. No code in the model's folder is run.
    """

    def __init__(
        self,
        name: str,
        *,
        device: str | None = None,
        batch_size: int | None = None,
        query_instruction: str | None = None,
        dimension: int | None = None,
        threads: int | None = None,
    ) -> None:
        for option, value in (("batch_size", batch_size), ("threads", threads)):
            if value is not None and value < 1:
                raise ArgumentError(f"{option} is {value}.", allowed="1 or more")
        check_extra("semantic", "sentence-transformers", "sentence_transformers")
        folder = local_folder(name) or hub_folder(name)
        revision = revision_of(folder)
        bound_threads(threads)
        self._lock = threading.Lock()
        self._where = f"encoder {name}"
        chosen = usable_device(device)
        self._batch_size = batch_size or (CPU_BATCH_SIZE if chosen == "cpu" else DEFAULT_BATCH_SIZE)
        self._model: Any = load_model(folder, chosen)
        full = int(self._encoded(self._model.encode, ["a"]).shape[1])
        if dimension is not None and not 1 < dimension <= full:
            raise ArgumentError(
                f"dimension is {dimension}.", where=self._where, allowed=f"2 to {full}"
            )
        self._dimension = dimension or full
        if query_instruction is None:
            query_instruction = _instruction_of(self._model, name)
        bound = self._model.max_seq_length
        self._identity = EncoderIdentity(
            kind="sentence-transformers",
            name=name,
            revision=revision,
            dimension=self._dimension,
            max_tokens=int(bound) if bound and bound < _MOST_TOKENS else None,
            query_instruction=query_instruction,
        )

    @property
    def identity(self) -> EncoderIdentity:
        """The identity of the encoder."""
        return self._identity

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors of documents, float32 of shape (texts, dimension), in their order.

        Raises EncoderUnavailableError once closed, EncoderReplyError for numbers that are not
        finite.
        """
        return self._units(texts, lambda model: model.encode_document)

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Return unit vectors of queries, as ``encode`` does."""
        prompt = self._identity.query_instruction
        return self._units(queries, lambda model: model.encode_query, prompt=prompt)

    def close(self) -> None:
        """Free the model; the encoder cannot be used afterwards."""
        with self._lock:
            self._model = None

    def _units(
        self, texts: Sequence[str], method: Callable[[Any], Callable[..., Any]], **options: str
    ) -> FloatArray:
        import numpy as np

        if not texts:
            return np.empty((0, self._dimension), np.float32)
        with self._lock:  # a tokenizer cannot be used by two threads at once
            if self._model is None:
                raise EncoderUnavailableError("The encoder was closed.", where=self._where)
            rows = self._encoded(method(self._model), texts, **options)
        return unit_rows(rows[:, : self._dimension], texts, self._where)

    def _encoded(self, encode: Callable[..., Any], texts: Sequence[str], **options: str) -> Any:
        # sentence-transformers sorts by length and puts the vectors back in order.
        return encode(
            [encodable(text) for text in texts],
            batch_size=self._batch_size,
            show_progress_bar=False,
            convert_to_numpy=True,
            **options,
        )


def _instruction_of(model: Any, name: str) -> str:
    prompt = model.prompts.get("query")
    if prompt:
        return str(prompt)
    known = (text for part, text in _INSTRUCTED.items() if part in name.lower())
    return next(known, "")

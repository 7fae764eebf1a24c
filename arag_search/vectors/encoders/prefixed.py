"""What encoders with a model have in common: prefixes, counting, and the model of this process."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from arag_search.errors import AragError, EncoderFilesError, EncoderUnavailableError
from arag_search.tokens import encodable
from arag_search.vectors.base import EncoderIdentity, EncoderOptions, FloatArray, unit_rows
from arag_search.vectors.encoders.known_models import prefixes_of

Task: TypeAlias = Literal["query", "document"]


class PrefixedEncoder(ABC):
    """An encoder that puts prefixes before texts, and counts the documents that it cuts."""

    def __init__(
        self, model: str, prompts: Mapping[str, str | None], options: EncoderOptions, where: str
    ) -> None:
        """Take the prefixes of ``prefixes_of``; ``where`` names the encoder in errors."""
        query, document = prefixes_of(
            model, prompts, options.get("query_prefix"), options.get("document_prefix")
        )
        self._prefixes: dict[Task, str] = {"query": query, "document": document}
        self._where = where
        self._counting = threading.Lock()
        self.cut_texts = 0

    @property
    @abstractmethod
    def identity(self) -> EncoderIdentity:
        """The identity of the encoder."""

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors of documents, float32 of shape (texts, dimension), in their order.

        Raises EncoderUnavailableError once closed, EncoderReplyError for numbers that are not
        finite. An endpoint raises EncoderAccessError, EncoderLengthError and EncoderReplyError at
        once, and EncoderUnavailableError if the last attempt failed.
        """
        vectors, cut = self._units(texts, "document")
        with self._counting:
            self.cut_texts += cut
        return vectors

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Return unit vectors of queries, as ``encode`` does."""
        return self._units(queries, "query")[0]

    def _units(self, texts: Sequence[str], task: Task) -> tuple[FloatArray, int]:
        import numpy as np

        if not texts:
            return np.empty((0, self.identity.dimension), np.float32), 0
        rows, cut = self._rows([encodable(text) for text in texts], task)
        return unit_rows(rows, texts, self._where), cut

    @abstractmethod
    def _rows(self, texts: list[str], task: Task) -> tuple[Any, int]:
        """Return the model's vectors of texts with the prefix of a task, and how many it cut."""


class LocalModel(Protocol):
    """A model that runs in this process: the prefixes and the length that its files name."""

    @property
    def prompts(self) -> Mapping[str, str | None]: ...

    @property
    def max_tokens(self) -> int | None: ...

    def rows(self, texts: list[str], prefix: str, task: Task) -> tuple[Any, int]:
        """Return the vectors of texts behind a prefix, in their order, and how many were cut."""
        ...


class LocalEncoder(PrefixedEncoder):
    """An encoder whose model runs in this process."""

    def __init__(
        self,
        kind: str,
        name: str,
        folder: Path,
        options: EncoderOptions,
        open_model: Callable[[], LocalModel],
        advice: str,
    ) -> None:
        """Open the model in a folder. Raises EncoderFilesError, with ``advice``, for whatever its
        libraries raise, and errors of ours of ``open_model``."""
        try:
            model = open_model()
            dimension = int(model.rows(["a"], "", "document")[0].shape[1])
        except AragError:
            raise
        except Exception as error:  # of JSON, torch, the tokenizer, protobuf, onnxruntime
            raise EncoderFilesError(
                f"The files of the model cannot be loaded ({type(error).__name__}: "
                f"{(str(error).splitlines() or [''])[0]}).",
                where=str(folder),
                do=advice,
            ) from error
        self._model: LocalModel | None = model
        super().__init__(name.partition(":")[2] or name, model.prompts, options, f"encoder {name}")
        self._identity = EncoderIdentity(
            kind=kind,
            name=name,
            dimension=dimension,
            max_tokens=model.max_tokens,
            query_prefix=self._prefixes["query"],
            document_prefix=self._prefixes["document"],
        )

    @property
    def identity(self) -> EncoderIdentity:
        """The identity of the encoder."""
        return self._identity

    def close(self) -> None:
        """Free the model; the encoder cannot be used afterwards."""
        self._model = None

    def _rows(self, texts: list[str], task: Task) -> tuple[Any, int]:
        if (model := self._model) is None:
            raise EncoderUnavailableError("The encoder was closed.", where=self._where)
        return model.rows(texts, self._prefixes[task], task)

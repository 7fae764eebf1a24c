"""What encoders have in common: prefixes, counting, the model of this process, and functions."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from arag_search.errors import (
    AragError,
    ArgumentError,
    EncoderFilesError,
    EncoderReplyError,
    EncoderUnavailableError,
)
from arag_search.system.extras import check_extra
from arag_search.tokens import encodable
from arag_search.vectors.base import EncoderIdentity, EncoderOptions, FloatArray, unit_rows
from arag_search.vectors.encoders.known_models import prefixes_of

Task: TypeAlias = Literal["query", "document"]
Prompts: TypeAlias = Mapping[str, str | None]
EncodingFunction: TypeAlias = Callable[[list[str]], Any]


class PrefixedEncoder(ABC):
    """An encoder that puts prefixes before texts, and counts the documents that it cuts."""

    kind: str

    def __init__(
        self,
        name: str,
        where: str,
        options: EncoderOptions,
        *,
        prompts: Prompts,
        max_tokens: int | None,
        dimension: int,
    ) -> None:
        """Take the values of the identity. The prefixes follow from the name (see ``prefixes_of``).
        A dimension of 0 is learned from the first vectors. ``where`` names the encoder in
        errors."""
        model = name.partition(":")[2] or name
        query, document = prefixes_of(
            model, prompts, options.get("query_prefix"), options.get("document_prefix")
        )
        self._prefixes: dict[Task, str] = {"query": query, "document": document}
        self._name = name
        self._where = where
        self._max_tokens = max_tokens
        self._dimension = dimension
        self._counting = threading.Lock()
        self.cut_texts = 0

    @property
    def identity(self) -> EncoderIdentity:
        """The identity of the encoder, which encodes a text if its dimension is unknown."""
        if not self._dimension:
            self.encode_queries(["dimension"])
        return EncoderIdentity(
            kind=self.kind,
            name=self._name,
            dimension=self._dimension,
            max_tokens=self._max_tokens,
            query_prefix=self._prefixes["query"],
            document_prefix=self._prefixes["document"],
        )

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
        rows, cut = self._rows([encodable(text) for text in texts], self._prefixes[task], task)
        return unit_rows(rows, texts, self._where), cut

    @abstractmethod
    def _rows(self, texts: list[str], prefix: str, task: Task) -> tuple[Any, int]:
        """Return the vectors of texts behind a prefix, in their order, and how many were cut."""


class LocalEncoder(PrefixedEncoder):
    """An encoder whose model runs in this process; ``advice`` says what to do about files that
    cannot be loaded."""

    advice: str

    def __init__(self, name: str, folder: Path, options: EncoderOptions) -> None:
        """Load the model in a folder. Raises EncoderFilesError for whatever its libraries raise,
        and errors of ours of ``_load``."""
        try:
            self._model, prompts, max_tokens = self._load(folder, options)
            dimension = int(self._encoded(self._model, ["a"], "", "document")[0].shape[1])
        except AragError:
            raise
        except Exception as error:  # of JSON, torch, the tokenizer, protobuf, onnxruntime
            raise EncoderFilesError(
                f"The files of the model cannot be loaded ({type(error).__name__}: "
                f"{(str(error).splitlines() or [''])[0]}).",
                where=str(folder),
                do=self.advice,
            ) from error
        super().__init__(
            name,
            f"encoder {name}",
            options,
            prompts=prompts,
            max_tokens=max_tokens,
            dimension=dimension,
        )

    def close(self) -> None:
        """Free the model; the encoder cannot be used afterwards."""
        self._model = None

    def _rows(self, texts: list[str], prefix: str, task: Task) -> tuple[Any, int]:
        if (model := self._model) is None:
            raise EncoderUnavailableError("The encoder was closed.", where=self._where)
        return self._encoded(model, texts, prefix, task)

    @abstractmethod
    def _load(self, folder: Path, options: EncoderOptions) -> tuple[Any, Prompts, int | None]:
        """Load the model in a folder; return it with the prompts and the length that its files
        name."""

    @abstractmethod
    def _encoded(self, model: Any, texts: list[str], prefix: str, task: Task) -> tuple[Any, int]:
        """Encode texts, as ``_rows`` does. Safe to use from several threads."""


class FunctionEncoder(PrefixedEncoder):
    """A function from texts to vectors, which several threads may call: see ``open_encoder``.
    Encoding raises EncoderReplyError for other vectors, and what the function raises."""

    kind = "function"

    def __init__(
        self, name: str, function: EncodingFunction, dimension: int, options: EncoderOptions
    ) -> None:
        if dimension < 2:
            raise ArgumentError(f"dimension is {dimension}.", allowed="2 or more")
        check_extra("vectors", "numpy")
        self._function, where = function, f"encoder {name}"
        own: EncoderOptions = {"query_prefix": "", "document_prefix": "", **options}
        super().__init__(name, where, own, prompts={}, max_tokens=None, dimension=dimension)

    def close(self) -> None:
        """Do nothing."""

    def _rows(self, texts: list[str], prefix: str, task: Task) -> tuple[Any, int]:
        import numpy as np

        given = self._function([prefix + text for text in texts])
        try:
            rows: Any = np.asarray(given)
            problem = f"an array of {rows.dtype} of shape {rows.shape}"
        except (TypeError, ValueError, RuntimeError) as error:  # such as rows of unequal lengths
            rows, problem = np.empty(0), f"what is no array: {error}"
        if rows.dtype.kind == "f" and rows.shape == (len(texts), self._dimension):
            return rows, 0
        raise EncoderReplyError(
            f"The function gave {len(texts)} texts {problem}.",
            where=self._where,
            allowed=f"an array of floats of shape ({len(texts)}, {self._dimension})",
        )

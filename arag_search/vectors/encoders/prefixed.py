"""PrefixedEncoder: what encoders with a model have in common."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from arag_search.tokens import encodable
from arag_search.vectors.base import EncoderIdentity, FloatArray, unit_rows

Task: TypeAlias = Literal["query", "document"]


class PrefixedEncoder(ABC):
    """An encoder that puts prefixes before texts, and counts the documents that it cuts."""

    def __init__(self, query_prefix: str, document_prefix: str, where: str) -> None:
        """Take the prefixes, and the name of the encoder in errors."""
        self._prefixes: dict[Task, str] = {"query": query_prefix, "document": document_prefix}
        self._where = where
        self._counting = threading.Lock()
        self._cut_texts = 0

    @property
    @abstractmethod
    def identity(self) -> EncoderIdentity:
        """The identity of the encoder."""

    @property
    def cut_texts(self) -> int:
        """How many documents so far were longer than the encoder reads."""
        return self._cut_texts

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors of documents, float32 of shape (texts, dimension), in their order.

        Raises EncoderUnavailableError once closed, EncoderReplyError for numbers that are not
        finite. An endpoint raises EncoderAccessError, EncoderLengthError and EncoderReplyError at
        once, and EncoderUnavailableError if the last attempt failed.
        """
        vectors, cut = self._units(texts, "document")
        with self._counting:
            self._cut_texts += cut
        return vectors

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Return unit vectors of queries, as ``encode`` does."""
        return self._units(queries, "query")[0]

    def _units(self, texts: Sequence[str], task: Task) -> tuple[FloatArray, int]:
        import numpy as np

        if not texts:
            return np.empty((0, self.identity.dimension), np.float32), 0
        rows, cut = self._rows([encodable(text) for text in texts], task)
        return unit_rows(rows[:, : self.identity.dimension], texts, self._where), cut

    @abstractmethod
    def _rows(self, texts: list[str], task: Task) -> tuple[Any, int]:
        """Return the model's vectors of texts with the prefix of a task, and how many it cut."""

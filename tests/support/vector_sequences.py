"""Random changes to an index, after which searches by vectors are compared with a fresh embedding.

Documents are rebuilt (also in another order, or other documents), added, changed, changed back,
deleted and compacted; they are embedded in every form, with interruptions too; and a second index
of the same documents in another order shares the folder of vectors. After each step semantic,
hybrid and naive search, with and without a scope, are compared with the same searches over vectors
that are encoded from scratch. The number of rows encoded is compared with the number of rows whose
text had no vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import orjson

from arag_search.errors import (
    VectorsError,
    VectorsMismatchError,
    VectorsNotFoundError,
)
from arag_search.query.fields import MetadataType
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.search.results import SearchResult
from arag_search.system.progress import Progress
from arag_search.vectors.base import VECTOR_UNITS, EncoderIdentity, VectorUnit, row_key, rows_of
from arag_search.vectors.folder import stores
from arag_search.vectors.opening import VectorSource
from arag_search.vectors.store import Store
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.options import EmbedOptions
from index_jobs.updates.addition import AddOptions, add_documents
from index_jobs.updates.deletion import delete_documents
from index_jobs.updates.maintenance import compact_index
from tests.support.oracle.vectors import MemoryVectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STEPS = 7
_METADATA: dict[str, MetadataType] = {"kind": "keyword", "year": "number"}
_SCOPES = (None, "kind:a", "NOT kind:a", "year:>=5 AND kind:b", "year:>=99")
_WORDS = ("opera", "venice", "vivaldi", "libretto", "goldoni", "season", "winter", "born", "died")
_DOCUMENTS = 50
_FEWEST_FOR_LISTS = 45
_DIMENSION = 16
_EVERYTHING = 60


class CountingEncoder:
    """An Encoder that counts words, so that scores are whole numbers and exact in any order."""

    identity = EncoderIdentity(kind="bench", name="counts", revision="1", dimension=_DIMENSION)
    cut_texts = 0

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See Encoder."""
        import numpy as np

        vectors = np.zeros((len(texts), _DIMENSION), np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().replace(".", " ").split():
                column = _WORDS.index(word) if word in _WORDS else len(_WORDS) + len(word) % 7
                vectors[row, column] += 1
        return vectors

    encode_queries = encode

    def close(self) -> None:
        """Do nothing; the encoder holds no resources."""


@dataclass
class Outcome:
    """The outcome of a sequence: ``differences`` in words, and counts of what was done."""

    differences: list[str] = field(default_factory=list[str])
    steps: int = 0
    searches: int = 0


def run_sequence(seed: int, location: str, folder: Path, steps: int = STEPS) -> Outcome:
    """Run the sequence of a seed over an index at ``location``; ``folder`` is empty."""
    opening = "arag_search.vectors.encoders.choose.open_encoder"
    with patch(opening, lambda *_, **__: CountingEncoder()):  # updates open it by its name
        return _Sequence(seed, location, folder).run(steps)


class _Stopping(Progress):
    """Progress that raises KeyboardInterrupt once ``rows`` rows are encoded."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def update(self, done: int, encoded: int, details: str = "") -> None:
        """See Progress."""
        if encoded >= self._rows:
            raise KeyboardInterrupt


class _Sequence:
    """An index, a second index of the same documents, and the embedded states of both."""

    def __init__(self, seed: int, location: str, folder: Path) -> None:
        self._random = Random(seed)
        self._name = f"sequence {seed}"
        self._location = location
        self._twin = str(folder / "twin")
        self._folder = folder
        self._root = folder / "vectors"
        self._files = 0
        self._documents: dict[str, dict[str, Any]] = {}
        self._first: dict[str, dict[str, Any]] = {}
        self._fitting: set[str] = set()
        """The placements that vectors must fit, each the one of an index."""
        self._encoder = CountingEncoder()
        self._done: list[str] = []
        self.outcome = Outcome()

    def run(self, steps: int) -> Outcome:
        self._build()
        self._embed()
        actions: Sequence[tuple[int, Callable[[], None]]] = (
            (3, self._build),
            (3, self._shuffle),
            (5, self._add),
            (2, self._change_back),
            (3, self._delete),
            (1, self._compact),
            (6, self._embed),
            (2, self._stop_embedding),
            (2, self._share),
        )
        weights = [weight for weight, _ in actions]
        for _ in range(steps):
            ((_, action),) = self._random.choices(actions, weights)
            action()
            self.outcome.steps += 1
            self._check(self._location)
        return self.outcome

    # Steps

    def _build(self) -> None:
        count = self._random.randint(2, _DOCUMENTS)
        self._documents = {f"d{number}": self._document(f"d{number}") for number in range(count)}
        for doc_id, document in self._documents.items():
            self._first.setdefault(doc_id, document)
            if self._random.random() < 0.7:
                self._documents[doc_id] = self._first[doc_id]
        self._write_index(self._location, "build")

    def _shuffle(self) -> None:
        self._write_index(self._location, "shuffle")

    def _write_index(self, location: str, what: str) -> None:
        documents = list(self._documents.values())
        self._random.shuffle(documents)
        options = BuildOptions(metadata=_METADATA, overwrite=True, workers=0)
        build_index([self._file(documents)], location, options)
        self._done.append(what)

    def _add(self) -> None:
        documents: list[dict[str, Any]] = []
        for _ in range(self._random.randint(1, 8)):
            doc_id = f"d{self._random.randrange(_DOCUMENTS)}"
            document = self._documents.get(doc_id, self._document(doc_id))
            kind = self._random.choice(("same", "text", "metadata"))
            if kind == "text":
                document = self._document(doc_id)
            elif kind == "metadata":
                document = {**document, "kind": self._random.choice("abc")}
            documents.append(document)
        self._added({document["id"]: document for document in documents}, "add")

    def _change_back(self) -> None:
        some = self._random.sample(sorted(self._documents), max(1, len(self._documents) // 3))
        back = {doc_id: self._first.get(doc_id, self._documents[doc_id]) for doc_id in some}
        self._added(back, "change back")

    def _added(self, documents: Mapping[str, dict[str, Any]], what: str) -> None:
        before = self._placement()
        embeds = self._random.random() < 0.7
        options = AddOptions(vectors=self._root, embed=embeds)
        add_documents([self._file(list(documents.values()))], self._location, options)
        self._documents.update(documents)
        if embeds and before in self._fitting:
            self._fitting.add(self._placement())
        self._done.append(f"{what}{'' if embeds else ' without embedding'}")

    def _placement(self) -> str:
        with open_index(self._location, search_timeout_s=None) as index:
            return index.manifest.placement

    def _delete(self) -> None:
        count = self._random.randint(0, len(self._documents) - 1)
        if count:
            gone = self._random.sample(sorted(self._documents), min(count, 6))
            before = self._placement()
            delete_documents(self._location, gone, vectors=self._root)
            if before in self._fitting:
                self._fitting.add(self._placement())
            for doc_id in gone:
                del self._documents[doc_id]
            self._done.append("delete")

    def _compact(self) -> None:
        compact_index(self._location, vectors=self._root)
        self._done.append("compact")

    def _embed(self) -> None:
        self._embedded(self._location, self._form())

    def _form(self) -> EmbedOptions:
        form = self._random.choice(("plain", "plain", "plain", "overwrite"))
        return EmbedOptions(
            vectors=self._root,
            batch_size=self._random.choice((1, 2, 32)),
            overwrite=form == "overwrite",
            sentence_titles=False,
        )

    def _embedded(self, location: str, options: EmbedOptions) -> None:
        with open_index(location, search_timeout_s=None) as index:
            chunks = list(index.scan())
            placement = index.manifest.placement
        if len(chunks) >= _FEWEST_FOR_LISTS:
            options = replace(options, index=self._random.choice(("auto", "IVF1,Flat")))
        keys = {
            (unit, row_key(text))
            for chunk in chunks
            for unit in VECTOR_UNITS
            for _, text in rows_of(chunk, unit)
        }
        without = len(keys if options.overwrite else keys - self._keys())
        report = embed_index(location, self._encoder, options)
        self._done.append(f"embed ({'overwrite' if options.overwrite else options.index})")
        self._fitting.add(placement)
        if not options.overwrite and report.encoded_rows != without:
            self._differ(f"{report.encoded_rows} rows were encoded, {without} had no vector")

    def _stop_embedding(self) -> None:
        options = replace(self._form(), batch_size=1, overwrite=False)
        try:
            report = embed_index(
                self._location, self._encoder, options, _Stopping(self._random.randint(1, 60))
            )
        except KeyboardInterrupt:
            self._done.append("stop embedding")
        else:
            self._fitting.add(report.placement)
            self._done.append("embed")

    def _share(self) -> None:
        self._write_index(self._twin, "share")
        self._embedded(self._twin, replace(self._form(), overwrite=False))
        self._check(self._twin)

    def _keys(self) -> set[tuple[VectorUnit, bytes]]:
        """Unit and key of all texts that have a row somewhere."""
        return {
            (unit, key.tobytes())
            for path, _ in stores(self._root)
            for unit in VECTOR_UNITS
            for key in Store.open(path).keys(unit)
        }

    # Documents

    def _document(self, doc_id: str) -> dict[str, Any]:
        sentences = [
            " ".join(self._random.choices(_WORDS, k=self._random.choice((1, 2, 4)))) + "."
            for _ in range(self._random.choice((1, 2, 5)))
        ]
        return {
            "id": doc_id,
            "title": self._random.choice(("", "Vivaldi", "Winter")),
            "text": " ".join(map(str.capitalize, sentences)),
            "kind": self._random.choice("abc"),
            "year": self._random.randint(1, 9),
        }

    def _file(self, documents: Sequence[Mapping[str, Any]]) -> str:
        self._files += 1
        path = self._folder / f"{self._files}.jsonl"
        path.write_bytes(b"".join(orjson.dumps(document) + b"\n" for document in documents))
        return str(path)

    # Comparing

    def _check(self, location: str) -> None:
        """Compare the searches of an index with those over vectors from scratch."""
        with open_index(location, search_timeout_s=None) as index:
            chunks = list(index.scan())
            fits = index.manifest.placement in self._fitting
        error = self._opening_error(location)
        if not fits:
            self._expect(isinstance(error, VectorsMismatchError), f"not refused: {error}")
            return
        self._expect(error is None, f"refused though they fit: {error}")
        vectors = MemoryVectors(chunks, self._encoder)
        for scope in _SCOPES:
            self._compare(location, vectors, scope)

    def _opening_error(self, location: str) -> VectorsError | None:
        try:
            open_index(location, vectors=self._root, encoder=self._encoder).close()
        except (VectorsMismatchError, VectorsNotFoundError) as error:
            return error
        return None

    def _compare(self, location: str, vectors: MemoryVectors, scope: str | None) -> None:
        """Compare all searches in a scope of the index with those over other vectors."""
        with open_index(
            location,
            vectors=self._root,
            encoder=self._encoder,
            filter=scope,
            search_timeout_s=None,
        ) as index:
            source = VectorSource.of(vectors, self._encoder)
            expected = Index(index.engine, location, index.scope, vectors=source)
            for ask in self._searches():
                self.outcome.searches += 1
                result = _comparable(ask(index))
                if result != _comparable(ask(expected)):
                    self._differ(f"another result in {location} within {scope}: {result[:3]}")

    def _searches(self) -> Iterator[Callable[[Index], SearchResult]]:
        query = " ".join(self._random.choices(_WORDS, k=2))
        filter = self._random.choice(_SCOPES)
        unit = self._random.choice(VECTOR_UNITS)
        yield lambda index: index.semantic_search(query, top_k=_EVERYTHING, filter=filter)
        yield lambda index: index.semantic_search(query, top_k=3, offset=2)
        yield lambda index: index.hybrid_search(
            query, top_k=_EVERYTHING, filter=filter, vectors=unit
        )
        yield lambda index: index.naive_embedding_search(query, top_k=_EVERYTHING)

    def _expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self._differ(otherwise)

    def _differ(self, what: str) -> None:
        self.outcome.differences.append(f"{self._name}, after {', '.join(self._done)}: {what}")


def _comparable(result: SearchResult) -> list[object]:
    return [
        (hit.id, hit.score, hit.title, hit.content, hit.sentences, hit.ranks, hit.metadata)
        for hit in result.hits
    ]

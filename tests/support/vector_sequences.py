"""Random changes to an index, after which searches by vectors are compared with a fresh embedding.

Documents are rebuilt (also in another order, or other documents), added, changed, changed back,
deleted and compacted; they are embedded in every form; and a second index of
the same documents in another order shares the folder of vectors. At times a job is killed, finds
the disk full or is interrupted, and is then run again. After each step semantic, hybrid and naive
search, with and without a scope, are compared with the same searches over vectors that are encoded
from scratch. No text is encoded that has a row already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import orjson
from numpy.typing import NDArray

from arag_search.errors import AragError, VectorsError, VectorsMismatchError, VectorsNotFoundError
from arag_search.query.fields import MetadataType
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.search.results import SearchResult
from arag_search.vectors.base import PROBE_TEXTS, VECTOR_UNITS, EncoderIdentity, VectorUnit, row_key
from arag_search.vectors.folder import StateRecord, state_path, states, stores
from arag_search.vectors.opening import VectorSource
from arag_search.vectors.store import Store
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.options import EmbedOptions
from index_jobs.updates.addition import add_documents
from index_jobs.updates.deletion import delete_documents
from index_jobs.updates.maintenance import compact_index
from index_jobs.updates.options import AddOptions
from tests.support.oracle.vectors import MemoryVectors
from tests.support.stopped_writes import Killed, stopping

STEPS = 8
_METADATA: dict[str, MetadataType] = {"kind": "keyword", "year": "number"}
_SCOPES = (None, "kind:a", "NOT kind:a", "year:>=5 AND kind:b", "year:>=99")
_WORDS = ("opera", "venice", "vivaldi", "libretto", "goldoni", "season", "winter", "born", "died")
_DOCUMENTS = 50
_FEWEST_FOR_LISTS = 45
_DIMENSION = 16
_EVERYTHING = 60
_STOPPED = 0.5
_MOST_CALLS = 40  # of the system, before a job is stopped


class CountingEncoder:
    """An Encoder that counts words, so that scores are whole numbers and exact in any order. It
    notes which texts it has encoded, and raises KeyboardInterrupt once these are ``most``."""

    identity = EncoderIdentity(kind="bench", name="counts", dimension=_DIMENSION)
    cut_texts = 0

    def __init__(self) -> None:
        self.encoded: list[str] = []
        self.most: int | None = None

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See Encoder."""
        self.encoded += (text for text in texts if text not in PROBE_TEXTS)
        if self.most is not None and len(self.encoded) > self.most:
            raise KeyboardInterrupt
        return self.encode_queries(texts)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See Encoder."""
        vectors = np.zeros((len(texts), _DIMENSION), np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().replace(".", " ").split():
                column = _WORDS.index(word) if word in _WORDS else len(_WORDS) + len(word) % 7
                vectors[row, column] += 1
        return vectors

    def close(self) -> None:
        """Do nothing; the encoder holds no resources."""


@dataclass
class Outcome:
    """The outcome of a sequence: ``differences`` in words, and counts of what was done; ``stops``
    are jobs that were stopped."""

    differences: list[str] = field(default_factory=list[str])
    steps: int = 0
    stops: int = 0
    searches: int = 0


def run_sequence(seed: int, location: str, folder: Path, steps: int = STEPS) -> Outcome:
    """Run the sequence of a seed over an index at ``location``; ``folder`` is empty."""
    opening = "arag_search.vectors.encoders.choose.open_encoder"
    sequence = _Sequence(seed, location, folder)
    with patch(opening, lambda *_, **__: sequence.encoder):  # updates open it by its name
        return sequence.run(steps)


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
        self.encoder = CountingEncoder()
        self._done: list[str] = []
        self.outcome = Outcome()

    def run(self, steps: int) -> Outcome:
        self._build()
        self._embed()
        self._check(self._location)
        actions: Sequence[tuple[int, Callable[[], None]]] = (
            (2, self._build), (2, self._shuffle), (5, self._add), (2, self._change_back),
            (3, self._delete), (1, self._compact), (6, self._embed), (2, self._share),
        )  # fmt: skip
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
        embeds = self._random.random() < 0.7
        options = AddOptions(vectors=self._root, embed=embeds, encoder=self.encoder)
        file = self._file(list(documents.values()))
        self._do(
            f"{what}{'' if embeds else ' without embedding'}",
            lambda: add_documents([file], self._location, options),
            keeps_fitting=embeds,
        )
        self._documents.update(documents)

    def _delete(self) -> None:
        count = self._random.randint(0, len(self._documents) - 1)
        if count:
            gone = set(self._random.sample(sorted(self._documents), min(count, 6)))
            self._do("delete", lambda: self._deleted(gone))
            for doc_id in gone:
                del self._documents[doc_id]

    def _deleted(self, gone: set[str]) -> None:
        with open_index(self._location, search_timeout_s=None) as index:
            left = gone & {chunk.doc_id for chunk in index.scan()}
        if left:  # else the run before was stopped after it had published
            delete_documents(self._location, sorted(left), vectors=self._root)

    def _compact(self) -> None:
        self._do("compact", lambda: compact_index(self._location, vectors=self._root))

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
            chunks = index.manifest.chunks
        if chunks >= _FEWEST_FOR_LISTS:
            options = replace(options, index=self._random.choice(("auto", "IVF1,Flat")))
        self._do(
            f"embed ({'overwrite' if options.overwrite else options.index})",
            lambda: embed_index(location, self.encoder, options),
            location=location,
            makes_fitting=True,
            is_new=options.overwrite,
        )

    def _share(self) -> None:
        self._write_index(self._twin, "share")
        self._embedded(self._twin, replace(self._form(), overwrite=False))
        self._check(self._twin)

    # Jobs

    def _do(
        self,
        what: str,
        action: Callable[[], object],
        *,
        location: str = "",
        keeps_fitting: bool = True,
        makes_fitting: bool = False,
        is_new: bool = False,
    ) -> None:
        """Run a job over an index; at times it is stopped, and run again.

        If vectors fit the index, they do afterwards if it ``keeps_fitting`` or ``makes_fitting``
        them. All texts may be encoded if the vectors are ``is_new``, else those without a row.
        """
        location = location or self._location
        stopped = self._random.random() < _STOPPED
        while True:
            fitted = self._placement(location) in self._fitting
            known = set() if is_new else self._known(location)
            self.encoder.encoded = []
            done = self._attempt(action, stopped=stopped)
            self._done.append(what if done else f"stop to {what}")
            self._check_encoded(known)
            now = self._placement(location)
            if (fitted and keeps_fitting) or (done and makes_fitting):
                self._fitting.add(now)
            if done:
                return
            if state_path(self._root, now).exists():
                self._fitting.add(now)
            self._check(location)
            self.outcome.stops += 1
            stopped = False

    def _attempt(self, action: Callable[[], object], *, stopped: bool) -> bool:
        """Run a job, which may be killed, find the disk full or be interrupted at some step. Return
        whether it came to its end."""
        if not stopped:
            action()
            return True
        kind = self._random.choice(("kill", "full disk", "interrupt"))
        self.encoder.most = self._random.randint(0, 60) if kind == "interrupt" else None
        step = 1 << 30 if kind == "interrupt" else self._random.randint(1, _MOST_CALLS)
        try:
            with stopping(step, full_disk=kind == "full disk"):
                action()
        except (Killed, KeyboardInterrupt):
            return False
        except (AragError, OSError):
            if kind != "full disk":
                raise
            return False
        finally:
            self.encoder.most = None
        return True

    def _placement(self, location: str) -> str:
        with open_index(location, search_timeout_s=None) as index:
            return index.manifest.placement

    def _known(self, location: str) -> set[tuple[VectorUnit, bytes]]:
        """Unit and key of each row that a job over an index must find: those of the store of its
        vectors, else of the newest vectors, else of all that an interrupted job has left."""
        records = {
            path.name: record
            for path, record in states(self._root)
            if isinstance(record, StateRecord)
        }
        own = records.get(state_path(self._root, self._placement(location)).name)
        named = own or next(iter(records.values()), None)
        known: set[tuple[VectorUnit, bytes]] = set()
        for path, _ in stores(self._root):
            if named is None or path.name == named.store:
                store = Store.open(path)
                for unit in VECTOR_UNITS:
                    known |= {(unit, key.tobytes()) for key in store.keys(unit)}
        return known

    def _check_encoded(self, known: set[tuple[VectorUnit, bytes]]) -> None:
        """Check that each text was encoded at most once for each unit that had no row of it."""
        for text, count in Counter(self.encoder.encoded).items():
            missing = sum((unit, row_key(text)) not in known for unit in VECTOR_UNITS)
            if count > missing:
                self._differ(f"encoded {count} times, where {missing} had no row: {text}")

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
            refused = isinstance(error, VectorsMismatchError | VectorsNotFoundError)
            self._expect(refused, f"not refused: {error}")
            return
        self._expect(error is None, f"refused though they fit: {error}")
        vectors = MemoryVectors(chunks, self.encoder)
        for scope in _SCOPES:
            self._compare(location, vectors, scope)

    def _opening_error(self, location: str) -> VectorsError | None:
        try:
            open_index(location, vectors=self._root, encoder=self.encoder).close()
        except (VectorsMismatchError, VectorsNotFoundError) as error:
            return error
        return None

    def _compare(self, location: str, vectors: MemoryVectors, scope: str | None) -> None:
        """Compare all searches in a scope of the index with those over other vectors."""
        with open_index(
            location, vectors=self._root, encoder=self.encoder, filter=scope, search_timeout_s=None
        ) as index:
            source = VectorSource.of(vectors, self.encoder)
            expected = Index(
                index.engine, location, index.scope, vectors=source, search_timeout_s=None
            )
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

"""Corpora that change: random updates, and the comparison of the index with a fresh build."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from arag_search.corpus import Chunk
from arag_search.errors import AragError
from arag_search.manifest import CorpusDigest, Manifest, fingerprint_hex
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from arag_search.search.results import SearchResult
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.updates.addition import add_documents
from index_jobs.updates.deletion import delete_documents
from index_jobs.updates.maintenance import compact_index
from index_jobs.updates.options import AddOptions, SyncOptions
from index_jobs.updates.synchronisation import sync_documents
from tests.support.commands import file_of

OPTIONS = BuildOptions(
    chunk_tokens=24, metadata={"year": "number", "lang": "keyword"}, language="en"
)
QUERIES = (
    "opera OR sea", "w1 OR w2 OR w3", '"the sea"', "oper* AND w1", "title:t1 OR w0",
    "sea NOT w1", "year:>=1700 AND (sea OR w2)", "ÿđ",
)  # fmt: skip


def error_message(call: Callable[..., object], *arguments: object, **options: object) -> str:
    """Return the message of the error that a call raises."""
    with pytest.raises(AragError) as raised:
        call(*arguments, **options)
    return str(raised.value)


def run_until_killed(script: str, moment: str, *command: str) -> None:
    """Run a command in a process that kills itself at a moment that the script knows."""
    arguments = [sys.executable, "-c", script, moment, *command]
    process = subprocess.run(arguments, check=False, capture_output=True, text=True)
    assert process.returncode == -signal.SIGKILL, process.stderr


class Corpus:
    """The documents that an index should hold, in order of their last addition."""

    def __init__(self, random: Random, folder: Path) -> None:
        self.documents: dict[str, dict[str, object]] = {}
        self.source: list[str] = []
        """The ids of the documents of the file from which the index was built."""

        self._random = random
        self._folder = folder
        self._files = 0

    def sample_ids(self, count: int) -> list[str]:
        """Draw a number of ids of documents of the corpus, or all if there are fewer."""
        return self._random.sample(sorted(self.documents), min(count, len(self.documents)))

    def document(self, identifier: str) -> dict[str, object]:
        """Draw a random document with this id."""
        chance = self._random
        sentences = [
            " ".join(
                chance.choice(("opera", "the sea", "operetta", "w0", "w1", "w2", "w3", "ÿđ"))
                for _ in range(chance.choice((1, 3, 9)))
            )
            for _ in range(chance.choice((0, 1, 3, 12)))
        ]
        text = ". ".join(map(str.capitalize, sentences))
        document: dict[str, object] = {"id": identifier, "text": text}
        if not text or chance.random() < 0.7:
            document["title"] = f"T{chance.randrange(3)} opera"
        if chance.random() < 0.5:
            document["year"] = chance.randrange(1650, 1750)
            document["lang"] = chance.choice(("en", "it", "de"))
        return document

    def version(self, identifier: str) -> dict[str, object]:
        """Draw a new version of a document, which may differ in its metadata alone."""
        known = self.documents.get(identifier)
        if known is not None and self._random.random() < 0.5:
            return {**known, "year": self._random.randrange(1650, 1750)}
        return self.document(identifier)

    def file_of(self, identifiers: Sequence[str]) -> str:
        """Write a file of new versions of these documents, and update the corpus with them."""
        versions = {identifier: self.version(identifier) for identifier in identifiers}
        for identifier, version in versions.items():
            if self.documents.get(identifier) != version:  # the same document keeps its place
                self.documents.pop(identifier, None)
                self.documents[identifier] = version
        return self.file(list(versions.values()))

    def changed_source(self, *new_ids: str) -> str:
        """Write the file from which the index was built anew, and update the corpus: without some
        of its documents, with others changed, and with new ones."""
        kept = [id for id in self.source if self._random.random() < 0.8]
        for id in set(self.source) - {*kept}:
            del self.documents[id]
        self.source = [*kept, *new_ids]
        self._random.shuffle(self.source)
        for id in self.source:
            if id in new_ids or self._random.random() < 0.3:
                version = self.document(id)
                if self.documents.get(id) != version:  # the same document keeps its place
                    self.documents.pop(id, None)
                    self.documents[id] = version
        return self.file([self.documents[id] for id in self.source], "source.jsonl")

    def file(
        self, documents: Sequence[dict[str, object]] | None = None, name: str | None = None
    ) -> str:
        """Write a file of these documents, by default of all, under a new name."""
        selected = list(self.documents.values()) if documents is None else documents
        self._files += 1
        path = self._folder / (name or f"c{self._files}.jsonl")
        path.write_text("\n".join(map(json.dumps, selected)), encoding="utf-8")
        return str(path)


def comparable(manifest: Manifest) -> Manifest:
    """Return what all manifests of the same corpus have in common, whatever its history."""
    return replace(
        manifest,
        created="",
        sources=(),
        placement="",
        shard_sources=(),
        reading={},
        update=0,
        engine="",
        engine_version="",
        skipped_lines=0,
        field_counts={},
    )


def without_ordinals(chunks: Sequence[Chunk]) -> list[Chunk]:
    return [replace(chunk, ordinal=0) for chunk in chunks]


def _outcome(result: SearchResult, with_scores: bool) -> object:
    hits = [(hit.id, hit.content, hit.sentences) for hit in result.hits]
    total = (result.total, result.total_is_exact, result.passages)
    if not with_scores:
        return total, sorted(hits)
    return total, hits, [round(hit.score, 4) for hit in result.hits]


def assert_counted(index: Index) -> None:
    """Compare the values of fields in the manifest with those that the engine counts."""
    counts = index.manifest.field_counts
    assert counts.keys() == index.manifest.metadata.keys()
    for field in index.fields(*counts, values=1000).fields:
        summary = next(known for known in index.metadata_fields if known.name == field.name)
        assert summary.passages == field.passages
        if counts[field.name].is_exact:
            assert summary.least == field.least
            assert summary.greatest == field.greatest
            if counts[field.name].is_complete:
                assert summary.values == field.values


def assert_equal(updated: Index, fresh: Index, *, compact: bool) -> None:
    """Compare the hits and totals, and also scores and order if the updated index is compact."""
    assert comparable(updated.manifest) == comparable(fresh.manifest)
    for index in (updated, fresh):
        assert_counted(index)
    chunks = list(updated.scan())
    assert updated.manifest.placement == fingerprint_hex(CorpusDigest.of(chunks).placement)
    assert without_ordinals(chunks) == without_ordinals(list(fresh.scan()))
    ordinals = [chunk.ordinal for chunk in chunks]
    assert ordinals == sorted(set(ordinals))
    for query in QUERIES:
        for granularity in ("chunk", "sentence"):
            outcome, expected = (
                _outcome(
                    index.logical_search(query, top_k=1000, granularity=granularity),
                    compact,
                )
                for index in (updated, fresh)
            )
            assert outcome == expected, (query, granularity)
    names = ("title", "content", "doc_id", *updated.manifest.metadata)
    assert updated.fields(*names, values=1000).fields == fresh.fields(*names, values=1000).fields
    if compact:
        for sort in (None, *updated.manifest.metadata):
            pages = (
                index.logical_search(QUERIES[0], top_k=1000, sort=sort, per_document=1)
                for index in (updated, fresh)
            )
            outcome, expected = (_outcome(page, True) for page in pages)
            assert outcome == expected, sort
    for words in (["opera", "the sea"], ["ÿđ"]):
        result, expected = (index.keyword_search(words, top_k=1000) for index in (updated, fresh))
        assert _outcome(result, compact) == _outcome(expected, compact)
    ids = [chunk.id for chunk in chunks[:8]] + [chunk.id for chunk in chunks[8::3]]
    for chunk, expected in zip(updated.chunk_read(ids), fresh.chunk_read(ids), strict=True):
        assert (chunk.previous_id, chunk.next_id) == (expected.previous_id, expected.next_id)


def random_updates(
    seed: int,
    location: str,
    folder: Path,
    steps: int,
    options: BuildOptions = OPTIONS,
    actions: Sequence[str] = ("add", "sync", "delete", "compact"),
) -> None:
    """Build, change and compact an index at random; compare every state with a fresh build."""
    random = Random(seed)
    corpus = Corpus(random, folder)
    build_index([corpus.changed_source(*(f"d{n}" for n in range(8)))], _location(location), options)
    compact, checked = True, 0
    for step in range(steps):
        action = random.choice(actions)
        if (action == "compact" and not compact) or step == steps - 1:
            compact_index(_location(location))
            compact = True
        elif action in ("compact", "delete"):
            deleted = corpus.sample_ids(random.randrange(1, 5))
            if len(deleted) == len(corpus.documents):
                continue
            delete_documents(_location(location), deleted)
            for identifier in deleted:
                del corpus.documents[identifier]
            corpus.source = [id for id in corpus.source if id in corpus.documents]
            compact = False
        elif action == "sync":
            kept = set(corpus.documents) - set(corpus.source)
            new = corpus.changed_source(f"s{seed}-{step}")
            report = sync_documents([new], _location(location), SyncOptions(allow_deletes=True))
            assert sum(report.others.values()) == len(kept)
            compact = compact and not (report.replaced or report.deleted)
        else:
            old_ids = corpus.sample_ids(random.choice((0, 2)))
            corpus.source = [id for id in corpus.source if id not in old_ids]
            new_ids = [f"n{seed}-{step}-{at}" for at in range(random.choice((1, 4)))]
            report = add_documents([corpus.file_of([*old_ids, *new_ids])], _location(location))
            assert (report.added, report.replaced) == (len(new_ids), len(old_ids))
            compact = compact and not old_ids
        fresh = folder / f"fresh{step}"
        build_index([corpus.file()], fresh, OPTIONS)
        with open_index(location) as updated, open_index(fresh) as expected:
            assert_equal(updated, expected, compact=compact)
        checked += 1
    assert checked >= steps // 2


def _location(location: str) -> str | Path:
    return location if "://" in location else Path(location)


INDEX = Path("index")


def document(identifier: str, text: str, **more: object) -> dict[str, object]:
    return {"id": identifier, "title": "Title", "text": text, **more}


def add_report(*documents: dict[str, object], **options: object) -> dict[str, object]:
    report = add_documents([file_of("added.jsonl", *documents)], INDEX, AddOptions(**options))  # type: ignore[arg-type]
    return report.to_dict()

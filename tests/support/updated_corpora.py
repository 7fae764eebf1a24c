"""Corpora that change: random updates, and what the index must then be equal to."""

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
from arag_search.search.index import Index, open_index
from arag_search.search.results import SearchResult
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.updates.addition import AddOptions, add_documents
from index_jobs.updates.compaction import compact_index
from index_jobs.updates.deletion import delete_documents
from tests.support.commands import file_of

OPTIONS = BuildOptions(chunk_tokens=24, metadata={"year": "number", "lang": "keyword"})
QUERIES = (
    "opera OR sea",
    "w1 OR w2 OR w3",
    '"the sea"',
    "oper* AND w1",
    "title:t1 OR w0",
    "sea NOT w1",
    "year:>=1700 AND (sea OR w2)",
    "ÿđ",
)


def error_message(call: Callable[..., object], *arguments: object, **options: object) -> str:
    """What a call says that is refused."""
    with pytest.raises(AragError) as caught:
        call(*arguments, **options)
    return str(caught.value)


def run_until_killed(script: str, moment: str, *command: str) -> None:
    """Run a command in a process that kills itself at a moment that the script knows."""
    arguments = [sys.executable, "-c", script, moment, *command]
    done = subprocess.run(arguments, check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


class Corpus:
    """The documents that an index should hold, in order of their last addition."""

    def __init__(self, random: Random, folder: Path) -> None:
        self.documents: dict[str, dict[str, object]] = {}
        self._random = random
        self._folder = folder
        self._files = 0

    def some(self, count: int) -> list[str]:
        """So many ids of documents that are there, fewer where there are fewer."""
        return self._random.sample(sorted(self.documents), min(count, len(self.documents)))

    def document(self, identifier: str) -> dict[str, object]:
        """A random document with this id."""
        chance = self._random
        sentences = [
            " ".join(
                chance.choice(("opera", "the sea", "operetta", "w0", "w1", "w2", "w3", "ÿđ"))
                for _ in range(chance.choice((1, 3, 9)))
            )
            for _ in range(chance.choice((0, 1, 3, 12)))
        ]
        text = ". ".join(each.capitalize() for each in sentences)
        document: dict[str, object] = {"id": identifier, "text": text}
        if not text or chance.random() < 0.7:
            document["title"] = f"T{chance.randrange(3)} opera"
        if chance.random() < 0.5:
            document["year"] = chance.randrange(1650, 1750)
        return document

    def file_of(self, identifiers: Sequence[str]) -> str:
        """A file of new versions of these documents, which are in the corpus from now on."""
        changed = {each: self.document(each) for each in identifiers}
        for each in identifiers:
            self.documents.pop(each, None)
        self.documents.update(changed)
        return self.file(list(changed.values()))

    def file(self, documents: Sequence[dict[str, object]] | None = None) -> str:
        """A file of these documents, or of all."""
        given = list(self.documents.values()) if documents is None else documents
        self._files += 1
        path = self._folder / f"c{self._files}.jsonl"
        path.write_text("\n".join(map(json.dumps, given)), encoding="utf-8")
        return str(path)


def comparable(manifest: Manifest) -> Manifest:
    """What two indexes of the same corpus have in common, however they came to it."""
    return replace(
        manifest,
        created="",
        sources=(),
        placement="",
        update=0,
        engine="",
        engine_version="",
        skipped_lines=0,
    )


def without_ordinals(chunks: Sequence[Chunk]) -> list[Chunk]:
    return [replace(each, ordinal=0) for each in chunks]


def _outcome(result: SearchResult, with_scores: bool) -> object:
    hits = [(hit.id, hit.content, hit.sentences) for hit in result.hits]
    total = (result.total, result.total_is_exact, result.passages)
    if not with_scores:
        return total, sorted(hits)
    return total, hits, [round(hit.score, 4) for hit in result.hits]


def assert_equal(updated: Index, fresh: Index, *, compact: bool) -> None:
    """Sets and totals always; scores and order where the updated one is compact."""
    assert comparable(updated.manifest) == comparable(fresh.manifest)
    chunks = list(updated.scan())
    assert updated.manifest.placement == fingerprint_hex(CorpusDigest.of(chunks).placement)
    assert without_ordinals(chunks) == without_ordinals(list(fresh.scan()))
    assert [each.ordinal for each in chunks] == sorted({each.ordinal for each in chunks})
    for query in QUERIES:
        for granularity in ("chunk", "sentence"):
            found, expected = (
                _outcome(
                    index.logical_search(query, top_k=1000, granularity=granularity),
                    compact,
                )
                for index in (updated, fresh)
            )
            assert found == expected, (query, granularity)
    for words in (["opera", "the sea"], ["ÿđ"]):
        found, expected = (index.keyword_search(words, top_k=1000) for index in (updated, fresh))
        assert _outcome(found, compact) == _outcome(expected, compact)
    ids = [each.id for each in chunks[:8]] + [each.id for each in chunks[8::3]]
    for one, other in zip(updated.chunk_read(ids), fresh.chunk_read(ids), strict=True):
        assert (one.previous_id, one.next_id) == (other.previous_id, other.next_id)


def random_updates(
    seed: int,
    location: str,
    folder: Path,
    steps: int,
    options: BuildOptions = OPTIONS,
    actions: Sequence[str] = ("add", "add", "delete", "compact"),
) -> None:
    """Build, change and compact an index at random, and compare it with fresh builds in folders."""
    random = Random(seed)
    corpus = Corpus(random, folder)
    build_index([corpus.file_of([f"d{n}" for n in range(8)])], _location(location), options)
    compact, checked = True, 0
    for step in range(steps):
        action = random.choice(actions)
        if (action == "compact" and not compact) or step == steps - 1:
            compact_index(_location(location))
            compact = True
        elif action in ("compact", "delete"):
            gone = corpus.some(random.randrange(1, 5))
            if len(gone) == len(corpus.documents):
                continue
            delete_documents(_location(location), gone)
            for each in gone:
                del corpus.documents[each]
            compact = False
        else:
            there = corpus.some(random.choice((0, 2)))
            new = [f"n{seed}-{step}-{at}" for at in range(random.choice((1, 4)))]
            report = add_documents([corpus.file_of([*there, *new])], _location(location))
            assert (report.added, report.replaced) == (len(new), len(there))
            compact = compact and not there
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
    return json.loads(report.to_json())

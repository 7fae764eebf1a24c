"""An index in a folder that is open while it changes."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arag_search.errors import IndexClosedError, VectorsError
from arag_search.search.index import Index
from arag_search.search.opening import open_index
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.embedding.job import embed_index
from index_jobs.updates.maintenance import compact_index
from index_jobs.updates.options import SyncOptions
from index_jobs.updates.synchronisation import sync_documents
from index_jobs.updates.vectors import VectorUpdate
from tests.support.commands import file_of

DOCUMENTS = 24


@pytest.fixture(name="place")
def an_index_of_one_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(0)
    build_index(["d.jsonl"], "i", BuildOptions(metadata={"state": "number"}))
    return tmp_path


@pytest.fixture(name="index")
def an_index_that_follows(place: Path) -> Iterator[Index]:
    with open_index(place / "i", refresh="auto") as index:
        yield index


def write(number: int) -> None:
    """Write documents that all say the number of their state."""
    documents = (
        {"id": f"d{n}", "text": f"The sea in state{number}.", "state": number}
        for n in range(DOCUMENTS)
    )
    file_of("d.jsonl", *documents)


def publish(number: int) -> None:
    write(number)
    sync_documents(["d.jsonl"], "i")


def states(index: Index, **options: object) -> set[str]:
    """Return the states that a search finds in its hits, and in their passages."""
    hits = index.logical_search("sea", full_text=True, **options).hits  # type: ignore[arg-type]
    return {hit.content.split()[-1] for hit in hits}


def test_an_open_index_stays_as_it_was_unless_it_follows(place: Path, index: Index) -> None:
    with open_index(place / "i") as still:
        publish(1)
        assert states(index) == {"state1."}
        assert states(still) == {"state0."}
        assert index.manifest.update == still.manifest.update + 1
        assert (still.is_outdated(), index.is_outdated()) == (True, False)


def test_a_new_build_and_a_compaction_are_followed(index: Index) -> None:
    publish(1)
    assert states(index) == {"state1."}
    before = index.engine
    compact_index("i")
    assert index.engine is not before
    write(2)
    build_index(["d.jsonl"], "i", BuildOptions(metadata={"state": "number"}, overwrite=True))
    assert states(index) == {"state2."}


def test_further_pages_and_streams_keep_their_state(index: Index) -> None:
    assert states(index, top_k=5) == {"state0."}
    stream = index.scan()
    assert next(stream).content.endswith("state0.")
    publish(1)
    assert states(index, top_k=5, offset=5) == {"state0."}
    assert states(index) == {"state1."}
    assert states(index, top_k=5, offset=5) == {"state1."}
    assert {chunk.content.split()[-1] for chunk in stream} == {"state0."}


def test_a_part_follows_and_keeps_to_its_filter(index: Index) -> None:
    part = index.within("state:<2")
    publish(1)
    assert states(part) == {"state1."}
    publish(2)
    assert states(part) == set()
    part.close()
    assert states(index) == {"state2."}


def test_a_closed_index_says_so(index: Index) -> None:
    index.close()
    with pytest.raises(IndexClosedError):
        index.logical_search("sea")


def test_vectors_switch_with_the_index(index: Index) -> None:
    embed_index("i", "hashing")
    assert index.semantic_search("sea state0").hits
    publish(1)
    assert "state1" in index.semantic_search("sea state1").hits[0].snippet
    write(2)
    sync_documents(["d.jsonl"], "i", SyncOptions(embed=False))
    with pytest.raises(VectorsError):
        index.semantic_search("sea")
    assert states(index) == {"state2."}


def test_vectors_of_new_texts_are_there_before_the_index_shows_these(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed_index("i", "hashing")
    assert index.semantic_search("sea state0").hits
    written = VectorUpdate.before_publishing
    seen: list[set[str]] = []

    def observed(update: VectorUpdate, *arguments: Any, **options: Any) -> None:
        written(update, *arguments, **options)
        seen.append(states(index))
        assert "state0" in index.semantic_search("sea state0").hits[0].snippet

    monkeypatch.setattr(VectorUpdate, "before_publishing", observed)
    publish(1)
    assert seen == [{"state0."}]
    assert "state1" in index.semantic_search("sea state1").hits[0].snippet


def test_no_call_fails_or_mixes_two_states_while_an_index_changes(index: Index) -> None:
    """Two threads search while another synchronises; each answer is of one state."""
    stop = threading.Event()
    problems: list[object] = []
    answers: list[int] = []

    def search() -> None:
        while not stop.is_set():
            try:
                seen = states(index, top_k=DOCUMENTS)
                if len(seen) != 1:
                    problems.append(seen)
                answers.append(len(seen))
            except Exception as error:
                problems.append(error)

    threads = [threading.Thread(target=search) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for number in range(1, 9):
            publish(number)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not problems
    assert answers
    assert states(index) == {"state8."}

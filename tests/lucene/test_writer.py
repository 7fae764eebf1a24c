"""Builds that are resumed, refused and abandoned."""

import os
from pathlib import Path

import pytest

from arag_search.corpus import Chunk
from arag_search.engines.base import SearchRequest
from arag_search.engines.lucene.jvm import java
from arag_search.engines.lucene.reader import LuceneEngine
from arag_search.errors import BuildError, IndexLockedError
from arag_search.query.tree import Term
from tests.support.lucene_indexes import CHUNKS, build, chunk, manifest_of, writer
from tests.support.plans import written


def contents(engine: LuceneEngine) -> tuple[list[Chunk], list[object]]:
    """Return all chunks and the result pages of some searches, and close the engine."""
    try:
        pages = [
            engine.search(SearchRequest(written(Term(word)), 20, granularity=granularity))
            for word in ("opera", "title", "5")
            for granularity in ("chunk", "sentence")
        ]
        return list(engine.scan(None)), list(pages)
    finally:
        engine.close()


def commits(folder: Path) -> int:
    directory = java("org.apache.lucene.store.FSDirectory").open(
        java("java.nio.file.Paths").get(str(folder))
    )
    try:
        return len(java("org.apache.lucene.index.DirectoryReader").listCommits(directory))
    finally:
        directory.close()


def resume_to_the_end(folder: Path, after: int) -> LuceneEngine:
    resumed = writer(folder, resume=True)
    assert resumed.checkpoint == {"after": str(after)}
    assert sorted(resumed.document_ids()) == sorted(passage.doc_id for passage in CHUNKS[:after])
    resumed.add(CHUNKS[after:])
    resumed.finish(manifest_of(CHUNKS), {})
    return LuceneEngine.open(folder, "the test index")


def test_a_new_build_has_no_checkpoint(tmp_path: Path) -> None:
    first = writer(tmp_path, resume=True)
    assert first.checkpoint == {}
    assert list(first.document_ids()) == []
    first.abort()


def test_an_abandoned_build_resumes_from_its_last_checkpoint(tmp_path: Path) -> None:
    first = writer(tmp_path / "a", resume=False)
    first.add(CHUNKS[:3])
    first.commit({"after": "3"})
    first.add(CHUNKS[3:5])
    first.commit({"after": "5"})
    first.add(CHUNKS[5:7])
    first.abort()
    first.abort()
    engine = resume_to_the_end(tmp_path / "a", 5)
    assert contents(engine) == contents(build(tmp_path / "b", CHUNKS))
    assert commits(tmp_path / "a" / "chunks") == commits(tmp_path / "a" / "sentences") == 1


def test_a_commit_that_fails_halfway_leaves_the_previous_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = writer(tmp_path / "a", resume=False)
    first.add(CHUNKS[:4])
    first.commit({"after": "4"})
    first.add(CHUNKS[4:8])

    def fail() -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(first._indexes[1], "commit", fail)  # pyright: ignore
        with pytest.raises(BuildError) as caught:
            first.commit({"after": "8"})
    assert str(caught.value) == (
        "The index cannot be written: No space left on device\n"
        f"Where: {tmp_path / 'a'}\n"
        "Do: Check the free space and the permissions there, then run the same command again to "
        "resume."
    )
    first.abort()
    assert commits(tmp_path / "a" / "chunks") == 2
    assert commits(tmp_path / "a" / "sentences") == 1
    engine = resume_to_the_end(tmp_path / "a", 4)
    assert contents(engine) == contents(build(tmp_path / "b", CHUNKS))
    assert commits(tmp_path / "a" / "chunks") == 1


def test_a_build_that_died_before_its_first_checkpoint_was_complete_starts_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = writer(tmp_path, resume=False)
    first.add(CHUNKS[:4])
    monkeypatch.setattr(first._indexes[1], "commit", first.abort)  # pyright: ignore
    with pytest.raises(BuildError):
        first.commit({"after": "4"})
    resumed = writer(tmp_path, resume=True)
    assert resumed.checkpoint == {}
    assert list(resumed.document_ids()) == []
    resumed.add(CHUNKS)
    resumed.finish(manifest_of(CHUNKS), {})
    engine = LuceneEngine.open(tmp_path, "the test index")
    assert [passage.id for passage in engine.scan(None)] == [passage.id for passage in CHUNKS]
    engine.close()


def test_a_build_that_is_not_resumed_keeps_nothing_of_the_previous_one(tmp_path: Path) -> None:
    build(tmp_path, CHUNKS, segments=2).close()
    second = writer(tmp_path, resume=False)
    assert list(second.document_ids()) == []
    second.add(CHUNKS[:1])
    second.finish(manifest_of(CHUNKS[:1]), {})
    engine = LuceneEngine.open(tmp_path, "the test index")
    assert list(engine.scan(None)) == CHUNKS[:1]
    engine.close()


def test_a_writer_knows_every_document_it_was_given(tmp_path: Path) -> None:
    first = writer(tmp_path, resume=False, sentences=False)
    first.add(CHUNKS[:2])
    assert first.has_document("d1")
    assert not first.has_document("d2")
    first.commit({})
    assert first.has_document("d1")
    first.abort()


def test_a_build_without_sentences_writes_no_index_of_them(tmp_path: Path) -> None:
    build(tmp_path, CHUNKS, sentences=False).close()
    assert [path.name for path in tmp_path.iterdir()] == ["chunks"]


def test_two_writers_on_one_folder_are_one_too_many(tmp_path: Path) -> None:
    first = writer(tmp_path, resume=False)
    with pytest.raises(IndexLockedError) as caught:
        writer(tmp_path, resume=True)
    assert str(caught.value).startswith(f"Another writer is using the folder.\nWhere: {tmp_path}\n")
    first.add(CHUNKS)
    first.finish(manifest_of(CHUNKS), {})


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BuildError) as caught:
        writer(tmp_path / "file", resume=False)
    assert caught.value.what == "The index cannot be written: Not a directory"
    assert caught.value.where == str(tmp_path / "file")


def test_an_id_too_long_for_lucene_is_refused_before_it_is_written(tmp_path: Path) -> None:
    first = writer(tmp_path, resume=False)
    with pytest.raises(BuildError) as caught:
        first.add([chunk(1, "opera", doc_id="é" * 16_383)])
    assert caught.value.where == f"passage {'é' * 60!r}"
    assert "32,768" in caught.value.what
    first.add([chunk(1, "opera", doc_id="é" * 16_380)])
    first.abort()


def test_a_chunk_that_is_not_unicode_is_refused(tmp_path: Path) -> None:
    first = writer(tmp_path, resume=False)
    for malformed in (chunk(1, "opera", title="\ud800"), chunk(1, "opera \ud800")):
        with pytest.raises(BuildError, match="A passage cannot be stored: "):
            first.add([malformed])
    first.abort()

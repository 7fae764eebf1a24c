"""Vectors that fit an index before an update fit it afterwards, or are not searched."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arag_search.errors import (
    AragError,
    ArgumentError,
    EncoderReplyError,
    VectorsLockedError,
    VectorsMismatchError,
)
from arag_search.search.opening import open_index
from arag_search.system.progress import Progress
from arag_search.vectors.base import Encoder
from arag_search.vectors.encoders.choose import open_encoder
from arag_search.vectors.encoders.hashing import HashingEncoder
from arag_search.vectors.folder import writing
from index_jobs.build.report import AddReport
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.options import EmbedOptions
from index_jobs.updates.addition import add_documents
from index_jobs.updates.deletion import delete_documents
from index_jobs.updates.maintenance import compact_index
from index_jobs.updates.options import AddOptions, SyncOptions
from index_jobs.updates.synchronisation import sync_documents
from index_jobs.updates.vectors import VectorUpdate
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.commands import file_of
from tests.support.embeddings import (
    ENCODER,
    SMALL,
    NotingProgress,
    build_small_index,
    check_embedded,
    fitting,
    names,
    with_options,
)
from tests.support.updated_corpora import error_message

FIT = "the vectors fit the index"
NONE_FIT = "no vectors fit the index until: arag-search embed index"


@pytest.fixture(autouse=True)
def an_embedded_index(in_own_folder: None) -> None:  # noqa: F811
    build_small_index(20)
    embed_index("index", ENCODER, SMALL)


def nearest(query: str, vectors: str | None = None) -> str:
    """Return the id of the passage nearest to a query."""
    with open_index("index", vectors=vectors) as index:
        return index.naive_embedding_search(query, top_k=1).hits[0].id


def added(name: str, text: str, progress: Progress | None = None, **options: object) -> AddReport:
    file = file_of(f"{name}.jsonl", {"id": name, "text": text})
    return add_documents([file], "index", AddOptions(**options), progress)  # type: ignore[arg-type]


@pytest.fixture
def without_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no encoder be opened."""

    def refuse(*_: object, **__: object) -> None:
        raise AragError("There is no such encoder.", where="here", do="Install it.")

    monkeypatch.setattr("arag_search.vectors.encoders.choose.open_encoder", refuse)


def test_new_and_changed_texts_are_encoded_by_the_encoder_that_made_the_vectors() -> None:
    noting = NotingProgress()
    report = added("n", "Quokkas nap. Again.", noting)
    assert report.vectors == f"{FIT}; 3 rows encoded"
    assert "Loading the encoder hashing:16, which made the vectors of the index." in noting.notes
    assert nearest("Quokkas nap. Again.") == "n.1"
    assert added("n", "Wombats dig.").vectors == f"{FIT}; 2 rows encoded"
    assert nearest("Wombats dig.") == "n.1"
    check_embedded()


def test_a_condition_selects_the_passages_that_the_updates_have_left() -> None:
    added("n", "Quokkas nap by the lake.")
    added("d7", "Wombats dig by the lake.")
    assert delete_documents("index", ["d3", "d9"]).to_text().splitlines()[-1] == FIT
    with open_index("index") as index:
        ranked = [hit.id for hit in index.naive_embedding_search("sea", top_k=50).hits]
        for where in ("lake", "sea AND w1", "lake OR (sea AND NOT w1)"):
            matching = {hit.id for hit in index.logical_search(where, top_k=50).hits}
            hits = index.naive_embedding_search("sea", top_k=50, where=where).hits
            assert [hit.id for hit in hits] == [id for id in ranked if id in matching]
    assert len(ranked) == 19


@pytest.mark.usefixtures("without_encoder")
def test_deletions_need_no_encoder() -> None:
    with open_index("index") as before:
        assert delete_documents("index", ["d3", "d4"]).vectors == FIT
        assert delete_documents("index", ["d9"]).vectors == FIT
        compact_index("index")
        with open_index("index", encoder=HashingEncoder(16)) as index:
            hits = index.semantic_search("sea", top_k=50).hits
            assert len(hits) == 17
            assert not {"d3.1", "d4.1", "d9.1"} & {hit.id for hit in hits}
        assert before.manifest.chunks == 20
    file_of("index.jsonl", *Path("index.jsonl").read_text().splitlines()[10:])
    report = sync_documents(["index.jsonl"], "index", SyncOptions(allow_deletes=True))
    assert (report.deleted, report.vectors) == (7, FIT)
    assert sync_documents(["index.jsonl"], "index").vectors == FIT


@pytest.mark.usefixtures("without_encoder")
def test_without_the_encoder_nothing_is_written_and_no_embed_goes_on() -> None:
    with open_index("index") as index:
        before = index.manifest
    with pytest.raises(AragError) as caught:
        added("n", "New.")
    assert str(caught.value) == (
        "There is no such encoder.\nWhere: here\n"
        "Do: Install it. Or update the index without its vectors: `embed=False`; searches by"
        " vectors then need arag-search embed index."
    )
    with open_index("index") as index:
        assert index.manifest == before
    assert added("n", "New.", embed=False).to_text().splitlines()[-1] == NONE_FIT
    with (
        open_index("index") as index,
        pytest.raises(VectorsMismatchError, match=r"^The vectors do not fit the index"),
    ):
        index.semantic_search("sea")
    assert added("m", "More.").vectors == NONE_FIT  # they did not fit before
    assert added("m", "More.", dry_run=True).vectors == ""


def test_an_encoder_whose_weights_have_changed_is_refused_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(HashingEncoder, "_place", lambda self, word: (len(word) % 16, 1))
        with pytest.raises(VectorsMismatchError, match=r"^hashing:16 is not the encoder that made"):
            added("n", "New.")
    with open_index("index") as index:
        assert index.semantic_search("sea").hits


@pytest.mark.parametrize("kind", [KeyboardInterrupt, EncoderReplyError])
def test_an_interrupted_update_changes_neither_index_nor_vectors_and_loses_no_row(
    kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EmbedOptions, "piece_rows", 2)
    encode = HashingEncoder.encode
    calls: list[int] = []

    def stopping(encoder: HashingEncoder, texts: Sequence[str]) -> np.ndarray:
        calls.append(len(texts))
        if calls[2:] == [2, 1]:
            raise kind("stopped")
        return encode(encoder, texts)

    before = names()
    with monkeypatch.context() as patched:
        patched.setattr(HashingEncoder, "encode", stopping)
        with pytest.raises(kind):
            added("n", "Quokkas nap. Again. Often.")
    assert names() == before
    check_embedded()
    assert nearest("Quokkas nap.") != "n.1"
    assert added("n", "Quokkas nap. Again. Often.").vectors == f"{FIT}; 2 rows encoded"
    assert nearest("Quokkas nap. Again. Often.") == "n.1"
    check_embedded()


class Adding(NotingProgress):
    """Progress that adds and deletes documents while the vectors are made again."""

    done = 0

    def update(self, done: int, encoded: int, details: str = "") -> None:
        self.done += 1
        if self.done <= 2:
            assert added(f"n{self.done}", f"Quokkas nap {self.done}.").vectors.startswith(FIT)
            assert delete_documents("index", [f"d{self.done}"]).vectors == FIT
            check_embedded()


@pytest.mark.parametrize("dead", [0, 8])
def test_updates_go_on_during_an_embedding(dead: int) -> None:
    for number in range(dead):
        delete_documents("index", [f"d{10 + number}"])
    report = embed_index("index", ENCODER, with_options(overwrite=True), Adding())
    assert report.notes == ()
    assert nearest("Quokkas nap 2.") == "n2.1"
    check_embedded()
    assert added("m", "More.").vectors.startswith(FIT)
    embed_index("index", ENCODER, SMALL)
    check_embedded()


def test_an_update_waits_for_another_that_writes_and_then_goes_on_only_without_encoding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arag_search.vectors.folder.WRITING_S", 0.2)
    with writing(Path("index/vectors")):
        with pytest.raises(VectorsLockedError) as caught:
            added("n", "New.")
        assert str(caught.value) == (
            f"Another process is embedding into this folder (process {os.getpid()}).\n"
            "Where: index/vectors\n"
            "Do: Wait for it, or stop it; or give other `vectors`. Or update the index without"
            " its vectors: `embed=False`; searches by vectors then need arag-search embed index."
        )
        check_embedded()
        assert delete_documents("index", ["d3"]).vectors == FIT
        assert added("n", "New.", embed=False).vectors == NONE_FIT


@pytest.mark.parametrize("texts", [1, 2, 7])
def test_many_texts_are_looked_for_and_encoded_in_parts(
    texts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EmbedOptions, "piece_rows", 2)
    monkeypatch.setattr("index_jobs.embedding.encoding.FOUND_TEXTS", texts)
    many = [{"id": f"m{n}", "text": f"More {n}. Much {n % 5}. Sea."} for n in range(30)]
    assert add_documents([file_of("m.jsonl", *many)], "index").vectors == f"{FIT}; 65 rows encoded"
    check_embedded()


def test_rows_that_were_moved_before_the_lock_was_free_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    delete_documents("index", ["d3"])
    prepared = VectorUpdate.add

    def late(update: VectorUpdate, *arguments: Any) -> None:
        if names()[1] == ["store-00001"]:
            embed_index("index", ENCODER, with_options(overwrite=True))
        prepared(update, *arguments)

    monkeypatch.setattr(VectorUpdate, "add", late)
    assert added("n", "Quokkas nap.").vectors == f"{FIT}; 2 rows encoded"
    check_embedded()


def test_texts_that_have_a_row_are_not_encoded_again() -> None:
    delete_documents("index", ["d3"])
    lines = Path("index.jsonl").read_text().splitlines()
    report = add_documents([file_of("again.jsonl", lines[3])], "index")
    assert report.vectors == FIT
    twice = [{"id": f"t{number}", "text": "Quokkas nap."} for number in range(3)]
    assert add_documents([file_of("t.jsonl", *twice)], "index").vectors == f"{FIT}; 2 rows encoded"
    check_embedded()


def test_vectors_in_another_folder_are_kept_where_it_is_named() -> None:
    embed_index("index", "hashing:8", with_options(vectors="other", unit="passage"))
    report = added("n", "Quokkas nap.", vectors="other")
    assert report.vectors == f"{FIT}; 1 row encoded"
    assert nearest("Quokkas nap.", "other") == "n.1"
    assert delete_documents("index", ["d7"], vectors="other").vectors == FIT
    assert nearest("Quokkas nap.", "other") == "n.1"
    with pytest.raises(VectorsMismatchError):
        open_index("index", vectors="index/vectors")


def test_in_the_folder_of_the_index_only_the_last_state_stays_beside_the_present_one() -> None:
    with open_index("index") as opened_before:
        for number in range(3):
            added(f"n{number}", f"Number {number}.")
            states, stores = names()
            assert states[0] == fitting()[0].path.name
            assert (len(states), stores) == (2, ["store-00001"])
        assert opened_before.manifest.chunks == 20


def test_in_another_folder_an_update_removes_what_only_it_has_changed() -> None:
    options = with_options(vectors="other", unit="passage")
    embed_index("index", "hashing:8", options)
    build_small_index(7, where="another")
    embed_index("another", "hashing:8", options)
    for number in range(4):
        added(f"n{number}", f"Number {number}.", vectors="other")
        assert nearest(f"Number {number}.", "other") == f"n{number}.1"
    with open_index("another", vectors="other") as other:
        assert other.naive_embedding_search("anything", top_k=1).hits
    states, stores = names("other")
    assert (len(states), stores) == (3, ["store-00001"])


def test_an_index_of_equal_content_in_the_same_folder_keeps_its_vectors() -> None:
    options = with_options(vectors="shared")
    build_small_index(20, where="twin")
    for location in ("index", "twin"):
        embed_index(location, ENCODER, options)
    for number in range(3):
        added(f"n{number}", f"Number {number}.", vectors="shared")
    compact_index("index", vectors="shared")
    embed_index("index", ENCODER, with_options(vectors="shared", overwrite=True))
    check_embedded("index", "shared")
    check_embedded("twin", "shared")
    assert delete_documents("twin", ["d3"], vectors="shared").vectors == FIT


def own_encoder(name: str, dimension: int = 32) -> Encoder:
    return open_encoder(name, HashingEncoder(dimension).encode, dimension)


def test_an_encoder_of_a_program_updates_what_it_made() -> None:
    mine = own_encoder("mine")
    embed_index("index", mine, EmbedOptions(overwrite=True))
    new = [{"id": "n1", "text": "Goldoni wrote plays."}]
    message = error_message(add_documents, new, "index")
    assert message.startswith("The vectors were made by mine, an object of a program.")
    assert "AddOptions(encoder=...)" in message
    for other in ("hashing:33", own_encoder("mine", 33)):
        with pytest.raises(VectorsMismatchError, match="is not the encoder that made the vectors"):
            add_documents(new, "index", AddOptions(encoder=other))
    report = add_documents(new, "index", AddOptions(encoder=own_encoder("renamed")))
    assert report.vectors == f"{FIT}; 2 rows encoded"
    source = file_of("n.jsonl", {"id": "n2", "text": "Vivaldi wrote operas."})
    report = sync_documents([source], "index", SyncOptions(encoder=mine))
    assert report.vectors == f"{FIT}; 2 rows encoded"
    with open_index("index", encoder=mine) as index:
        assert index.naive_embedding_search("Vivaldi wrote operas.", top_k=1).hits[0].id == "n2.1"
    with open_index("index") as index, pytest.raises(ArgumentError, match="an object of a program"):
        index.naive_embedding_search("Vivaldi", top_k=1)

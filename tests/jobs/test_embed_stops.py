"""An embedding that was stopped, or damaged in between, resumes and ends with right vectors."""

import dataclasses
import os
from pathlib import Path

import pytest

from arag_search.errors import ArgumentError, VectorsDamagedError, VectorsLockedError
from arag_search.search.opening import open_index
from arag_search.vectors.encoders.choose import open_encoder
from arag_search.vectors.storage.folders import sidecars
from arag_search.vectors.storage.shards import shard_file, vectors_role
from index_jobs.embedding.job import WORK, embed_index
from index_jobs.embedding.plan import Plan, begin
from index_jobs.updates.deletion import delete_documents
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.embeddings import (
    ENCODER,
    LOADING,
    SMALL,
    InterruptingProgress,
    NotingProgress,
    build_small_index,
    check_embedded,
    only_sidecar,
    with_options,
)


def test_after_ctrl_c_finished_shards_are_verified_and_not_made_again() -> None:
    build_small_index(40)
    stopping = InterruptingProgress(100)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, stopping)
    assert stopping.notes == [
        LOADING,
        "Stopped. Run the same command again: it resumes after 2 shards.",
    ]
    assert list(sidecars(Path("index/vectors"))) == []
    noting = NotingProgress()
    report = embed_index("index", ENCODER, SMALL, noting)
    assert noting.notes == [
        LOADING,
        "Resuming: verifying the finished shards.",
        "Reusing the vectors of 16 of 160 texts.",  # "Sea.", of other passages
    ]
    assert (report.continued_shards, report.remade_shards, report.encoded_rows) == (2, 0, 48)
    check_embedded("index")


def test_an_embedding_stopped_before_its_first_shard_leaves_nothing() -> None:
    build_small_index(40)
    stopping = InterruptingProgress(10)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, stopping)
    assert stopping.notes[-1] == "Stopped. Run the same command again: it starts over."
    assert not Path("index/vectors").exists()


class StoppingAtOnce(NotingProgress):
    """Progress that presses Ctrl-C before the first shard is looked for."""

    def begin(self, counted: str, total: int, done: int = 0, count: int | None = None) -> None:
        raise KeyboardInterrupt


def test_stopping_again_before_anything_was_done_loses_no_finished_shard() -> None:
    build_small_index(40)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, InterruptingProgress(100))
    stopping = StoppingAtOnce()
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, stopping)
    assert stopping.notes[-1] == ("Stopped. Run the same command again: it resumes after 2 shards.")
    assert embed_index("index", ENCODER, SMALL).continued_shards == 2


@pytest.mark.parametrize("damage", ["flip", "cut", "remove", "record"])
def test_a_damaged_shard_is_found_and_made_again(damage: str) -> None:
    build_small_index(40)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, InterruptingProgress(100))
    role = "json" if damage == "record" else vectors_role("sentence")
    path = shard_file(Path("index/vectors") / WORK, 1, role)
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content[:-1] if damage == "cut" else content)
    if damage == "remove":
        path.unlink()
    noting = NotingProgress()
    report = embed_index("index", ENCODER, SMALL, noting)
    assert (report.continued_shards, report.remade_shards) == (1, 1)
    assert noting.notes[2].startswith("Shard 1 is damaged, and its texts are being encoded again: ")
    check_embedded("index")


def test_another_plan_is_refused_unless_the_unfinished_one_may_be_discarded() -> None:
    build_small_index(40)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, InterruptingProgress(100))
    other = with_options(shard_rows=60, units=("passage",))
    with pytest.raises(ArgumentError) as caught:
        embed_index("index", ENCODER, other)
    assert str(caught.value) == (
        "An interrupted embedding is there, with other settings: --unit was both, is passage.\n"
        "Where: index/vectors/embedding\n"
        "Allowed: the same options as before\n"
        "Do: Give them to finish it, or --overwrite to start over."
    )
    noting = NotingProgress()
    embed_index("index", ENCODER, dataclasses.replace(other, overwrite=True), noting)
    assert noting.notes[1].startswith(
        "Starting over: an interrupted embedding is there, with other settings: --unit"
    )
    assert only_sidecar("index/vectors")[1].rows == {"passage": 40}


def test_a_stopped_embedding_that_overwrites_resumes() -> None:
    build_small_index(40)
    embed_index("index", "hashing:8", SMALL)
    overwriting = with_options(overwrite=True)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, overwriting, InterruptingProgress(100))
    check_embedded("index", encoder="hashing:8")
    assert embed_index("index", "hashing:8", SMALL).up_to_date
    assert embed_index("index", ENCODER, overwriting).continued_shards == 2
    check_embedded("index")


def test_shards_of_passages_that_changed_since_are_reused_for_texts_that_still_exist() -> None:
    build_small_index(40)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, InterruptingProgress(150))
    delete_documents("index", ["d20"])
    report = embed_index("index", ENCODER, SMALL)
    assert (report.continued_shards, report.remade_shards) == (3, 0)
    assert report.encoded_rows == 12
    check_embedded("index")


class Embedding(NotingProgress):
    """Progress that embeds the same index a second time while it is embedded."""

    error = ""

    def update(self, done: int, encoded: int, details: str = "") -> None:
        if not self.error:
            with pytest.raises(VectorsLockedError) as caught:
                embed_index("index", ENCODER, SMALL)
            self.error = str(caught.value)


def test_a_second_embedding_at_once_is_refused_and_the_first_finishes() -> None:
    build_small_index(20)
    progress = Embedding()
    embed_index("index", ENCODER, SMALL, progress)
    assert progress.error == (
        f"Another process is embedding into this folder (process {os.getpid()}).\n"
        "Where: index/vectors\n"
        "Do: Wait for it, or stop it; or give another --vectors."
    )
    check_embedded("index")


class Changing(NotingProgress):
    """Progress that deletes a document while the index is embedded."""

    done = False

    def update(self, done: int, encoded: int, details: str = "") -> None:
        if not self.done:
            self.done = True
            delete_documents("index", ["d3"])


def test_an_index_that_changes_meanwhile_is_embedded_as_it_was_and_the_report_says_so() -> None:
    build_small_index(20)
    with open_index("index") as index:
        fingerprint = index.manifest.fingerprint
    report = embed_index("index", ENCODER, SMALL, Changing())
    assert report.notes == (
        "the index has changed since this began, and does not fit these vectors: run the same"
        " command again",
    )
    assert (report.fingerprint, report.rows["passage"]) == (fingerprint, 20)


def test_an_impossible_faiss_index_is_refused_before_encoding_or_after_it_without_loss() -> None:
    build_small_index(40)
    for description, rows in (("IVFnone", 0), ("IVF4096,Flat", 160)):
        counting = Counting()
        with pytest.raises(ArgumentError):
            embed_index("index", ENCODER, with_options(index=description), counting)
        assert counting.encoded == rows
    report = embed_index("index", ENCODER, with_options(index="IVF1,Flat"))
    assert (report.continued_shards, report.encoded_rows) == (4, 0)
    assert report.index == {"sentence": "IVF1,Flat", "passage": "IVF1,Flat"}
    check_embedded("index")


class Counting(NotingProgress):
    encoded = 0

    def update(self, done: int, encoded: int, details: str = "") -> None:
        self.encoded = encoded


def test_vectors_that_lost_a_file_are_not_up_to_date() -> None:
    build_small_index(10)
    embed_index("index", ENCODER, SMALL)
    path, _ = only_sidecar("index/vectors")
    shard_file(path, 0, vectors_role("passage")).unlink()
    with pytest.raises(VectorsDamagedError, match=r"^A file is missing") as caught:
        embed_index("index", ENCODER, SMALL)
    assert caught.value.do == "Use --overwrite to make the vectors again."
    (path / "vectors.json").write_text("{")
    with pytest.raises(VectorsDamagedError, match=r"^The record cannot be read"):
        embed_index("index", ENCODER, SMALL)
    assert embed_index("index", ENCODER, with_options(overwrite=True)).encoded_rows == 40
    check_embedded("index")


def test_work_left_by_a_kill_just_after_publishing_is_removed() -> None:
    build_small_index(10)
    embed_index("index", ENCODER, SMALL)
    plan = Plan(open_encoder(ENCODER).identity, SMALL.units, "float32", False)
    begin(Path("index/vectors") / WORK, plan, overwrite=False)
    assert embed_index("index", ENCODER, SMALL).up_to_date
    assert not (Path("index/vectors") / WORK).exists()

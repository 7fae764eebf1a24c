"""An embedding that was stopped resumes after what it has stored, and ends with right vectors."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from arag_search.errors import (
    BuildError,
    EncoderReplyError,
    VectorsLockedError,
    VectorsMismatchError,
)
from arag_search.vectors.encoders.hashing import HashingEncoder
from arag_search.vectors.folder import lock
from index_jobs.embedding.job import embed_index
from index_jobs.updates.deletion import delete_documents
from index_jobs.updates.maintenance import compact_index
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.embeddings import (
    ENCODER,
    LOADING,
    PIECE,
    SMALL,
    STOPPED,
    InterruptingProgress,
    NotingProgress,
    build_small_index,
    check_embedded,
    fitting,
    names,
    texts_of,
    with_options,
)
from tests.support.full_disks import small_files


def test_after_ctrl_c_no_stored_row_is_made_again() -> None:
    build_small_index(40)
    stopping = InterruptingProgress(60)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, stopping)
    assert stopping.notes == [
        LOADING,
        f"Stopped. Run the same command again: it resumes after {STOPPED} rows.",
    ]
    assert names() == ([], ["store-00001"])
    noting = NotingProgress()
    report = embed_index("index", ENCODER, SMALL, noting)
    assert noting.notes == [LOADING]
    assert (report.reused_rows, report.encoded_rows) == (STOPPED, texts_of(40) - STOPPED)
    check_embedded()
    assert names()[1] == ["store-00001"]


class StoppingAtOnce(NotingProgress):
    """Progress that presses Ctrl-C before the first text is encoded."""

    def begin(self, counted: str, total: int, done: int = 0, count: int | None = None) -> None:
        raise KeyboardInterrupt


def test_an_embedding_stopped_before_its_first_row_leaves_nothing() -> None:
    build_small_index(40)
    stopping = StoppingAtOnce()
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, stopping)
    assert stopping.notes[-1] == "Stopped. Run the same command again: it starts over."
    assert names() == ([], [])


def test_stopping_again_before_anything_was_done_loses_no_row() -> None:
    build_small_index(40)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, InterruptingProgress(60))
    stopping = StoppingAtOnce()
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, stopping)
    assert stopping.notes[-1].endswith(f"it resumes after {STOPPED} rows.")
    assert embed_index("index", ENCODER, SMALL).reused_rows == STOPPED


def test_a_stopped_embedding_that_overwrites_resumes_and_leaves_what_was_there() -> None:
    build_small_index(40)
    embed_index("index", "hashing:8", SMALL)
    overwriting = with_options(overwrite=True)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, overwriting, InterruptingProgress(60))
    check_embedded(encoder="hashing:8")
    assert embed_index("index", "hashing:8", SMALL).up_to_date
    delete_documents("index", ["d1"])
    assert embed_index("index", ENCODER, overwriting).reused_rows >= STOPPED - 2
    check_embedded()
    state, store = fitting()
    assert names() == ([state.path.name], [store.folder.name])


def test_rows_of_passages_that_changed_since_are_found_for_the_others() -> None:
    build_small_index(40)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, InterruptingProgress(60))
    delete_documents("index", ["d39"])
    report = embed_index("index", ENCODER, SMALL)
    assert report.encoded_rows == texts_of(39) - report.reused_rows
    check_embedded()


class FailingEncoder(HashingEncoder):
    """An encoder whose endpoint fails after some texts."""

    def __init__(self, texts: int) -> None:
        super().__init__(16)
        self._left = texts

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self._left -= len(texts)
        if self._left < 0:
            raise EncoderReplyError("The endpoint fails.", where="here")
        return super().encode(texts)


def test_an_encoder_that_fails_half_way_keeps_what_it_has_made() -> None:
    build_small_index(40)
    probes = 33
    with pytest.raises(EncoderReplyError, match=r"^The endpoint fails"):
        embed_index("index", FailingEncoder(probes + STOPPED), SMALL)
    assert embed_index("index", ENCODER, SMALL).reused_rows == STOPPED
    check_embedded()


def test_a_full_disk_keeps_what_is_stored_and_says_what_the_next_run_does() -> None:
    build_small_index(40)
    with small_files(PIECE * 64 + 100), pytest.raises(BuildError) as caught:
        embed_index("index", "hashing:16", with_options(unit="passage"))
    assert str(caught.value) == (
        "There is no space left to write the vectors (File too large).\n"
        "Where: index/vectors\n"
        "Do: Free some space and run the same command again: it resumes after 32 rows."
    )
    assert embed_index("index", ENCODER, SMALL).reused_rows == 32
    check_embedded()


class Embedding(NotingProgress):
    """Progress that embeds the same index a second time while it is embedded."""

    error = ""

    def update(self, done: int, encoded: int, details: str = "") -> None:
        if not self.error:
            with pytest.raises(VectorsLockedError) as caught:
                embed_index("index", ENCODER, SMALL)
            self.error = str(caught.value)


def test_a_second_embedding_waits_is_refused_and_the_first_finishes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("arag_search.vectors.folder.WRITING_S", 0.2)
    build_small_index(20)
    progress = Embedding()
    embed_index("index", ENCODER, SMALL, progress)
    assert progress.error == (
        f"Another process is embedding into this folder (process {os.getpid()}).\n"
        "Where: index/vectors\n"
        "Do: Wait for it, or stop it; or give other `vectors`."
    )
    check_embedded()


def test_compacting_waits_for_an_embedding_and_an_embedding_for_it() -> None:
    build_small_index(20)
    embed_index("index", ENCODER, SMALL)
    delete_documents("index", ["d3"])
    jobs = [lambda: compact_index("index"), lambda: embed_index("index", ENCODER, SMALL)]
    for job in jobs:
        with ThreadPoolExecutor(1) as pool:
            with lock(Path("index/vectors")):
                done = pool.submit(job)
                with pytest.raises(TimeoutError):
                    done.result(0.5)
            done.result(60)
    check_embedded()


class Deleting(NotingProgress):
    """Progress that deletes a document as often as is ``left``, while the index is embedded."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left

    def note(self, text: str) -> None:
        super().note(text)
        if text == LOADING and self.left:
            self.left -= 1
            delete_documents("index", [f"d{self.left}"])


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_index_that_changes_meanwhile_is_embedded_again_and_nothing_is_encoded_twice(
    overwrite: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_small_index(20)
    if overwrite:
        embed_index("index", "hashing:8", SMALL)
    encoded: list[int] = []
    encode = HashingEncoder.encode

    def counting(self: HashingEncoder, texts: Sequence[str]) -> np.ndarray:
        encoded.append(len(texts))
        return encode(self, texts)

    with monkeypatch.context() as patched:
        patched.setattr(HashingEncoder, "encode", counting)
        report = embed_index("index", ENCODER, with_options(overwrite=overwrite), Deleting(1))
    assert (report.texts["passage"], report.encoded_rows, report.notes) == (19, 0, ())
    assert sum(encoded) == texts_of(20) + 2 * 33  # the last are the texts that know an encoder
    check_embedded()


def test_an_index_that_changes_all_the_time_is_embedded_as_it_was_and_the_report_says_so() -> None:
    build_small_index(20)
    progress = Deleting(9)
    report = embed_index("index", ENCODER, SMALL, progress)
    assert progress.notes[1] == "The index has changed meanwhile: going on with what is new."
    assert (progress.left, report.texts["passage"]) == (6, 18)
    assert report.notes == (
        "the index has changed since this began, and does not fit these vectors: run the same"
        " command again",
    )
    assert embed_index("index", ENCODER, SMALL).encoded_rows == 0
    check_embedded()


def test_a_deletion_while_rows_are_moved_finds_them_where_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build_small_index(40)
    embed_index("index", ENCODER, SMALL)
    delete_documents("index", [f"d{number}" for number in range(10)])
    delete_documents("index", ["d10"])
    from arag_search.vectors.store import Store

    copy_to = Store.copy_to

    def deleting(store: Store, *arguments: object) -> object:
        copied = copy_to(store, *arguments)  # type: ignore[arg-type]
        delete_documents("index", ["d20"])
        return copied

    monkeypatch.setattr(Store, "copy_to", deleting)
    embed_index("index", ENCODER, SMALL)
    check_embedded()
    assert names()[1] == ["store-00002"]


def test_another_model_behind_the_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    build_small_index(10)
    embed_index("index", ENCODER, SMALL)
    encode = HashingEncoder.encode
    monkeypatch.setattr(
        HashingEncoder, "encode", lambda self, texts: np.roll(encode(self, texts), 1, axis=1)
    )
    with pytest.raises(VectorsMismatchError, match=r"by another model: it gives texts other"):
        embed_index("index", ENCODER, SMALL)
    with lock(fitting()[1].folder.parent):
        pass  # it was released

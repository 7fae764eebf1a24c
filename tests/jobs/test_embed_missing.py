"""Only missing vectors are computed; the others are reused."""

import json
import random
from pathlib import Path

import pytest

from arag_search.errors import ArgumentError, VectorsDamagedError
from arag_search.search.opening import open_index
from index_jobs.build.new_index import build_index
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.options import EmbedReport
from index_jobs.updates.addition import add_documents
from index_jobs.updates.deletion import delete_documents
from index_jobs.updates.options import AddOptions
from tests.support.builds import OVERWRITE, corpus, in_own_folder  # noqa: F401
from tests.support.commands import file_of
from tests.support.embeddings import (
    ENCODER,
    PIECE,
    SMALL,
    STOPPED,
    InterruptingProgress,
    NotingProgress,
    build_small_index,
    check_embedded,
    names,
    texts_of,
    with_options,
)


def embed_missing(**changes: object) -> EmbedReport:
    return embed_index("index", ENCODER, with_options(**changes))


def test_only_added_texts_are_encoded_and_the_other_vectors_are_reused() -> None:
    build_small_index(40)
    embed_index("index", ENCODER, SMALL)
    file_of("new.jsonl", {"id": "n", "text": "New words. Again."}, {"id": "d7", "text": "Other."})
    add_documents(["new.jsonl"], "index", AddOptions(embed=False))
    report = embed_missing()
    assert (report.encoded_rows, report.reused_rows) == (5, texts_of(39))
    assert report.dead_rows == {"sentence": 1, "passage": 1}
    check_embedded()
    assert embed_missing().up_to_date


def test_after_a_new_build_unchanged_texts_keep_their_vectors_wherever_they_are() -> None:
    build_small_index(40)
    embed_index("index", ENCODER, SMALL)
    lines = Path("index.jsonl").read_text().splitlines()
    lines = [json.dumps({"id": "n", "text": "New words. Again."}), *lines[30:], *lines[:20]]
    build_index([file_of("c.jsonl", *lines)], Path("index"), OVERWRITE)
    report = embed_index("index", ENCODER, SMALL)
    assert (report.encoded_rows, report.reused_rows) == (3, texts_of(30))
    check_embedded()


def test_a_shuffled_build_encodes_nothing_and_writes_no_vectors() -> None:
    build_small_index(40)
    before = embed_index("index", ENCODER, SMALL)
    lines = Path("index.jsonl").read_text().splitlines()
    random.Random(1).shuffle(lines)
    build_index([file_of("c.jsonl", *lines)], Path("index"), OVERWRITE)
    report = embed_index("index", ENCODER, SMALL)
    assert (report.encoded_rows, report.reused_rows, report.store) == (
        0,
        texts_of(40),
        before.store,
    )
    assert report.dead_rows == {"sentence": 0, "passage": 0}
    check_embedded()


def test_documents_that_are_changed_and_changed_back_are_not_encoded_again() -> None:
    build_small_index(40)
    embed_index("index", ENCODER, SMALL)
    original_records = [
        json.loads(line) for line in Path("index.jsonl").read_text().splitlines()[:3]
    ]
    changed_records = [
        {**line, "text": f"Changed {number}."} for number, line in enumerate(original_records)
    ]
    add_documents([file_of("changed.jsonl", *changed_records)], "index", AddOptions(embed=False))
    assert embed_missing().encoded_rows == 6
    add_documents([file_of("back.jsonl", *original_records)], "index", AddOptions(embed=False))
    report = embed_missing()
    assert (report.encoded_rows, report.reused_rows) == (0, texts_of(40))
    check_embedded()


def test_without_a_name_the_encoder_is_that_of_the_existing_vectors() -> None:
    build_small_index(10)
    embed_index("index", "hashing:8", SMALL)
    add_documents(
        [file_of("new.jsonl", {"id": "n", "text": "New."})], "index", AddOptions(embed=False)
    )
    noting = NotingProgress()
    report = embed_index("index", None, SMALL, noting)
    assert noting.notes[0] == "Loading the encoder hashing:8."
    assert (report.encoder.name, report.encoder.dimension) == ("hashing:8", 8)
    assert report.encoded_rows == 2


def test_without_a_name_an_index_in_a_shared_folder_keeps_its_own_encoder() -> None:
    shared = with_options(vectors=Path("shared"))
    build_small_index(10)
    embed_index("index", "hashing:8", shared)
    other = [{"id": f"o{number}", "text": f"Other {number}."} for number in range(12)]
    build_index([file_of("other.jsonl", *other)], Path("other"), OVERWRITE)
    embed_index("other", "hashing:16", shared)  # the newest vectors of the folder

    assert embed_index("index", None, shared).encoder.dimension == 8
    delete_documents("index", ["d1"], vectors="shared")
    assert embed_index("index", None, shared).encoder.dimension == 8
    lines = [*reversed(Path("index.jsonl").read_text().splitlines()), '{"text": "Last."}']
    build_index([file_of("c.jsonl", *lines)], Path("index"), OVERWRITE)
    with pytest.raises(ArgumentError) as caught:
        embed_index("index", None, shared)
    assert str(caught.value) == (
        "No encoder is named, none of the vectors fit the index, and several encoders made them.\n"
        "Where: shared\nAllowed: hashing:16, hashing:8\n"
        "Do: Name the one of this index with `encoder`."
    )
    assert embed_index("index", "hashing:8", shared).encoded_rows == 2


def test_without_a_name_an_interrupted_embedding_is_resumed_with_its_encoder() -> None:
    build_small_index(40)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", "hashing:8", SMALL, InterruptingProgress(60))
    report = embed_index("index", None, SMALL)
    assert (report.encoder.dimension, report.reused_rows) == (8, STOPPED)


def test_a_folder_of_vectors_is_shared_by_indexes_of_the_same_texts_in_another_order() -> None:
    build_small_index(40)
    shared = with_options(vectors=Path("shared"))
    embed_index("index", ENCODER, shared)
    lines = Path("index.jsonl").read_text().splitlines()
    build_index([file_of("c.jsonl", *reversed(lines))], Path("other"), OVERWRITE)
    report = embed_index("other", ENCODER, shared)
    assert (report.encoded_rows, report.reused_rows) == (0, texts_of(40))
    for location in ("index", "other"):
        with open_index(location, vectors="shared") as index:
            for chunk in index.scan():
                (hit,) = index.naive_embedding_search(chunk.content, top_k=1).hits
                assert hit.id == chunk.id


def test_leaving_out_dead_rows_moves_the_states_of_all_indexes_of_the_folder() -> None:
    shared = with_options(vectors="shared")
    build_small_index(40)
    embed_index("index", ENCODER, shared)
    build_index([corpus("c.jsonl", 30, 8)], Path("other"), OVERWRITE)
    embed_index("other", ENCODER, shared)
    delete_documents("index", [f"d{number}" for number in range(20)], vectors="shared")
    delete_documents("index", ["d20"], vectors="shared")
    report = embed_index("index", ENCODER, shared)
    assert report.store == "shared/store-00002"
    check_embedded("index", "shared")
    check_embedded("other", "shared")
    assert names("shared")[1] == ["store-00002"]


def test_rows_of_an_embedding_begun_for_another_state_are_found_again() -> None:
    build_small_index(40)
    embed_index("index", ENCODER, SMALL)
    more = [{"id": f"n{number}", "text": f"One {number}. Two. Three."} for number in range(80)]
    add_documents([file_of("more.jsonl", *more)], "index", AddOptions(embed=False))
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, InterruptingProgress(100))
    build_index(["more.jsonl"], Path("index"), OVERWRITE)
    report = embed_index("index", ENCODER, SMALL)
    assert report.reused_rows >= 2 * PIECE
    assert report.encoded_rows == 162 - report.reused_rows
    check_embedded()


def test_a_stopped_embedding_is_not_touched_by_one_of_another_index() -> None:
    build_small_index(40)
    build_index([corpus("c.jsonl", 30, 7)], Path("other"), OVERWRITE)
    shared = with_options(vectors="shared")
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, shared, InterruptingProgress(60))
    for _ in range(2):
        embed_index("other", "hashing:8", shared)
    assert embed_index("index", ENCODER, shared).reused_rows == STOPPED


def test_rows_of_the_state_before_the_last_are_continued_though_that_state_goes() -> None:
    encoders = (ENCODER, "hashing:8", ENCODER)
    lines = [json.dumps({"id": f"d{number}", "text": f"Text {number}."}) for number in range(32)]
    for number, encoder in enumerate(encoders):
        build_index([file_of("c.jsonl", *lines[: 30 + number])], Path("index"), OVERWRITE)
        report = embed_index("index", encoder, SMALL)
    assert (report.store, report.encoded_rows) == ("index/vectors/store-00001", 4)
    check_embedded()
    assert len(names()[0]) == 2


# Damage


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


def test_damaged_rows_are_replaced_by_those_of_another_embedding() -> None:
    build_small_index(40)
    before = embed_index("index", ENCODER, SMALL)
    flip(Path(before.store) / "sentence.vectors")
    assert embed_index("index", ENCODER, SMALL).up_to_date
    report = embed_index("index", ENCODER, with_options(overwrite=True))
    assert report.encoded_rows == texts_of(40)
    check_embedded()
    assert names()[1] == [Path(report.store).name] != [Path(before.store).name]


def test_vectors_that_lost_a_file_are_an_error_until_they_are_overwritten() -> None:
    build_small_index(10)
    report = embed_index("index", ENCODER, SMALL)
    (Path(report.store) / "passage.vectors").unlink()
    with pytest.raises(VectorsDamagedError, match=r"^A file is missing") as caught:
        embed_index("index", ENCODER, SMALL)
    assert caught.value.do == "Use `overwrite=True` to make the vectors again."
    Path(report.state).write_text("{")
    with pytest.raises(VectorsDamagedError, match=r"^The record cannot be read"):
        embed_index("index", ENCODER, SMALL)
    assert embed_index("index", ENCODER, with_options(overwrite=True)).encoded_rows == texts_of(10)
    check_embedded()


def test_a_state_whose_rows_are_gone_is_made_again() -> None:
    build_small_index(10)
    report = embed_index("index", ENCODER, SMALL)
    (Path(report.store) / "store.json").unlink()
    assert embed_index("index", ENCODER, SMALL).encoded_rows == texts_of(10)
    check_embedded()

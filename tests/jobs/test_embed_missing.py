"""Only missing vectors are computed; the others are reused."""

import json
import random
import shutil
from pathlib import Path

import pytest

from arag_search.errors import ArgumentError, VectorsDamagedError
from arag_search.search.opening import open_index
from arag_search.vectors.storage.shards import shard_file, vectors_role
from index_jobs.build.new_index import build_index
from index_jobs.embedding.job import embed_index
from index_jobs.embedding.plan import EmbedReport
from index_jobs.updates.addition import AddOptions, add_documents
from index_jobs.updates.deletion import delete_documents
from tests.support.builds import OVERWRITE, corpus, in_own_folder  # noqa: F401
from tests.support.commands import file_of
from tests.support.embeddings import (
    ENCODER,
    SMALL,
    InterruptingProgress,
    NotingProgress,
    build_small_index,
    check_rows_of_live_chunks,
    only_sidecar,
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
    assert (report.encoded_rows, report.reused_rows) == (5, 39 * 4)
    assert (report.chunks, report.dead_rows) == (41, {"sentence": 3, "passage": 1})
    check_rows_of_live_chunks()
    assert embed_missing().up_to_date
    delete_documents("index", ["d8"])
    report = embed_missing()
    assert (report.encoded_rows, report.reused_rows) == (0, 38 * 4 + 5)
    assert report.dead_rows == {"sentence": 6, "passage": 2}


def test_after_a_new_build_unchanged_texts_keep_their_vectors_wherever_they_are() -> None:
    build_small_index(40)
    embed_index("index", ENCODER, SMALL)
    lines = Path("index.jsonl").read_text().splitlines()
    lines = [json.dumps({"id": "n", "text": "New words. Again."}), *lines[30:], *lines[:20]]
    build_index([file_of("c.jsonl", *lines)], Path("index"), OVERWRITE)
    noting = NotingProgress()
    report = embed_index("index", ENCODER, SMALL, noting)
    assert noting.notes[1] == "Reusing the vectors of 120 of 123 texts."
    assert (report.encoded_rows, report.reused_rows, report.chunks) == (3, 120, 31)
    check_rows_of_live_chunks()


def test_a_shuffled_build_encodes_nothing_and_writes_no_vectors() -> None:
    build_small_index(40)
    before = embed_index("index", ENCODER, SMALL)
    lines = Path("index.jsonl").read_text().splitlines()
    random.Random(1).shuffle(lines)
    build_index([file_of("c.jsonl", *lines)], Path("index"), OVERWRITE)
    report = embed_index("index", ENCODER, SMALL)
    assert (report.encoded_rows, report.reused_rows) == (0, 160)
    assert report.dead_rows == {"sentence": 0, "passage": 0}
    check_rows_of_live_chunks()
    for number in range(before.shards):
        first, second = (
            shard_file(Path(embedding.sidecar), number, vectors_role("sentence"))
            for embedding in (before, report)
        )
        assert first.samefile(second)


def test_documents_that_are_changed_and_changed_back_are_not_encoded_again() -> None:
    build_small_index(40)
    embed_index("index", ENCODER, SMALL)
    original_records = [
        json.loads(line) for line in Path("index.jsonl").read_text().splitlines()[:5]
    ]
    changed_records = [
        {**line, "text": f"Changed {number}."} for number, line in enumerate(original_records)
    ]
    add_documents([file_of("changed.jsonl", *changed_records)], "index", AddOptions(embed=False))
    assert embed_missing().encoded_rows == 10
    add_documents([file_of("back.jsonl", *original_records)], "index", AddOptions(embed=False))
    report = embed_missing()
    assert (report.encoded_rows, report.reused_rows) == (0, 160)
    check_rows_of_live_chunks()


def test_rows_are_copied_from_shards_that_lost_most_of_their_texts() -> None:
    build_small_index(40)
    embed_index("index", ENCODER, SMALL)
    delete_documents("index", [f"d{number}" for number in range(40) if number % 4])
    report = embed_missing()
    assert (report.encoded_rows, report.reused_rows) == (0, 40)
    assert (report.chunks, report.dead_rows) == (10, {"sentence": 0, "passage": 0})
    check_rows_of_live_chunks()


def test_a_text_that_occurs_more_often_than_before_has_its_vector_copied() -> None:
    build_small_index(10)
    embed_index("index", ENCODER, SMALL)
    first = json.loads(Path("index.jsonl").read_text().splitlines()[0])
    copies = [{**first, "id": f"again {number}"} for number in range(3)]
    add_documents([file_of("again.jsonl", *copies)], "index", AddOptions(embed=False))
    report = embed_missing()
    assert (report.encoded_rows, report.reused_rows) == (0, 13 * 4)
    check_rows_of_live_chunks()


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
        "Do: Name the one of this index with --encoder."
    )
    assert embed_index("index", "hashing:8", shared).encoded_rows == 2


def test_without_a_name_an_interrupted_embedding_is_resumed_with_its_encoder() -> None:
    build_small_index(30)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", "hashing:8", SMALL, InterruptingProgress(60))
    report = embed_index("index", None, SMALL)
    assert report.encoder.dimension == 8
    assert report.continued_shards == 1


def test_a_folder_of_vectors_is_shared_by_indexes_of_the_same_texts_in_another_order() -> None:
    build_small_index(40)
    shared = with_options(vectors=Path("shared"))
    embed_index("index", ENCODER, shared)
    lines = Path("index.jsonl").read_text().splitlines()
    build_index([file_of("c.jsonl", *reversed(lines))], Path("other"), OVERWRITE)
    report = embed_index("other", ENCODER, shared)
    assert (report.encoded_rows, report.reused_rows) == (0, 160)
    for location in ("index", "other"):
        with open_index(location, vectors="shared") as index:
            for chunk in index.scan():
                (hit,) = index.naive_embedding_search(chunk.content, top_k=1).hits
                assert hit.id == chunk.id


def test_a_stopped_embedding_of_missing_vectors_resumes() -> None:
    build_small_index(40)
    embed_index("index", ENCODER, SMALL)
    add_documents([corpus("more.jsonl", 80)], "index", AddOptions(embed=False))
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, InterruptingProgress(100))
    report = embed_missing()
    assert (report.continued_shards, report.encoded_rows) == (2, 168)
    check_rows_of_live_chunks()


def test_an_embedding_begun_for_another_state_is_reused_for_texts_that_still_exist() -> None:
    build_small_index(40)
    embed_index("index", ENCODER, SMALL)
    more = [{"id": f"n{number}", "text": f"One {number}. Two. Three."} for number in range(40)]
    add_documents([file_of("more.jsonl", *more)], "index", AddOptions(embed=False))
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, InterruptingProgress(100))
    build_index(["more.jsonl"], Path("index"), OVERWRITE)
    report = embed_index("index", ENCODER, SMALL)
    assert (report.continued_shards, report.encoded_rows) == (2, 32)
    check_rows_of_live_chunks()


def test_a_shard_with_a_flipped_byte_is_not_used_and_its_texts_are_encoded_again() -> None:
    build_small_index(40)
    embed_index("index", ENCODER, SMALL)
    path = shard_file(only_sidecar("index/vectors")[0], 1, vectors_role("sentence"))
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    delete_documents("index", ["d1"])
    noting = NotingProgress()
    report = embed_index("index", ENCODER, SMALL, noting)
    assert noting.notes[1] == (
        f"Shard 1 of {path.parent} is damaged, and its texts are being encoded again: The file has "
        "changed since it was written: its SHA-256 differs."
    )
    assert (report.remade_shards, report.rows["passage"]) == (1, 39)
    assert 0 < report.encoded_rows <= 48
    check_rows_of_live_chunks()


def test_a_sound_copy_of_a_damaged_shard_is_used_instead_of_encoding() -> None:
    build_small_index(40)
    first = embed_index("index", ENCODER, SMALL)
    second = embed_index("index", ENCODER, with_options(overwrite=True, vectors="others"))
    assert (first.encoded_rows, second.encoded_rows) == (160, 160)
    # The copy is newer, and of another placement.
    shutil.move(second.sidecar, Path("index/vectors") / ("0" * 16))
    path = shard_file(Path(first.sidecar), 1, vectors_role("sentence"))
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    delete_documents("index", ["d39"])
    report = embed_missing()
    assert (report.encoded_rows, report.rows["passage"]) == (0, 39)
    check_rows_of_live_chunks()


def test_a_stopped_embedding_is_not_touched_by_one_of_another_index() -> None:
    build_small_index(40)
    build_index([corpus("c.jsonl", 30)], Path("other"), OVERWRITE)
    shared = with_options(vectors="shared")
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, shared, InterruptingProgress(100))
    for _ in range(2):
        embed_index("other", ENCODER, shared)
    assert embed_index("index", ENCODER, shared).continued_shards == 2


def test_a_sidecar_that_a_kill_left_between_two_names_is_found_again() -> None:
    build_small_index(40)
    sidecar = Path(embed_index("index", ENCODER, SMALL).sidecar)
    sidecar.rename(sidecar.with_name(sidecar.name + ".old"))
    delete_documents("index", ["d1"])
    assert embed_missing().encoded_rows == 0
    assert sidecar.exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"rows":{"sentence":120,', b'"rows":{'),
        (b'"nprobe":{"sentence":0,', b'"nprobe":{'),
        (b'"shard-00000', b'"../shard'),
        (b"}", b"}\xff"),
    ],
)
def test_a_manifest_whose_parts_do_not_agree_is_damaged(before: bytes, after: bytes) -> None:
    build_small_index(40)
    path = Path(embed_index("index", ENCODER, SMALL).sidecar) / "vectors.json"
    content = path.read_bytes()
    path.write_bytes(content.replace(before, after))
    if path.read_bytes() == content:
        path.write_bytes(content.replace(b'"chunks.npy"', b'"../chunks.npy"'))
    with pytest.raises(VectorsDamagedError):
        embed_index("index", ENCODER, SMALL)
    with open_index("index") as index, pytest.raises(VectorsDamagedError):
        index.semantic_search("sea")

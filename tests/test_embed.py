"""Embedding an index: every row gets its vector, once; what was stopped goes on."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from arag_search.corpus import MAX_SENTENCES
from arag_search.errors import (
    ArgumentError,
    SourceError,
    VectorsDamagedError,
    VectorsLockedError,
    VectorsMismatchError,
)
from arag_search.index import open_index
from arag_search.vectors.base import VECTOR_UNITS, VectorUnit
from arag_search.vectors.encoders.choose import open_encoder
from arag_search.vectors.manifest import VectorManifest
from arag_search.vectors.place import sidecars
from arag_search.vectors.shards import StoredType, shard_file, vectors_role
from index_jobs.adding import AddOptions, add_documents
from index_jobs.build import build_index
from index_jobs.embed import WORK, embed_index
from index_jobs.embed_estimate import estimate_embedding
from index_jobs.embed_plan import EmbedOptions, Plan, begin
from index_jobs.embed_report import EmbedReport
from index_jobs.embed_shards import cut_shards, make_shard
from index_jobs.options import BuildOptions
from index_jobs.updates import compact_index, delete_documents
from tests.builds import PLAIN, corpus, in_own_folder  # noqa: F401
from tests.commands import Command, file_of
from tests.embeddings import (
    ENCODER,
    SMALL,
    Noting,
    StoppingAt,
    an_index,
    check_embedded,
    only_sidecar,
    rows_in,
    rows_wanted,
)
from tests.lucene_indexes import chunk
from tests.opensearch_indexes import Site

pytestmark = pytest.mark.engine

OVERWRITING = BuildOptions(overwrite=True)
LOADING = f"Loading the encoder {ENCODER}."


def with_options(**changes: object) -> EmbedOptions:
    return dataclasses.replace(SMALL, **changes)  # type: ignore[arg-type]


# Shards


def test_chunks_are_cut_into_shards_of_whole_chunks_always_the_same() -> None:
    chunks = [chunk(number, "One two.\nThree.\n...\n", title="T") for number in range(5)]
    shards = list(cut_shards(chunks, VECTOR_UNITS, 7))
    assert [len(shard.chunks) for shard in shards] == [2, 2, 1]
    assert [shard.number for shard in shards] == [0, 1, 2]
    assert shards[2].texts == {
        "sentence": ["One two.", "Three."],
        "passage": ["T\nOne two.\nThree.\n...\n"],
    }
    assert [shard.texts for shard in cut_shards(iter(chunks), VECTOR_UNITS, 7)] == [
        shard.texts for shard in shards
    ]


def test_a_chunk_with_more_rows_than_a_shard_is_one_of_its_own(tmp_path: Path) -> None:
    large = chunk(1, "a\n" * MAX_SENTENCES)
    shards = list(cut_shards([chunk(0, "b\n"), large, chunk(2, "c\n")], VECTOR_UNITS, 10))
    assert [shard.rows for shard in shards] == [2, MAX_SENTENCES + 1, 2]
    encoder = open_encoder(ENCODER)
    record = make_shard(
        shards[1], encoder.encode, encoder.identity, tmp_path, piece_rows=100, dtype="float32"
    )
    assert record.rows == {"sentence": MAX_SENTENCES, "passage": 1}
    found = np.load(shard_file(tmp_path, 1, vectors_role("sentence")))
    np.testing.assert_array_equal(found, encoder.encode(["a"] * MAX_SENTENCES))


def test_a_shard_without_a_row_is_written_too(tmp_path: Path) -> None:
    (shard,) = cut_shards([chunk(0, ""), chunk(1, "...\n")], VECTOR_UNITS, 10)
    encoder = open_encoder(ENCODER)
    record = make_shard(
        shard, encoder.encode, encoder.identity, tmp_path, piece_rows=10, dtype="float16"
    )
    assert (record.chunks, record.rows) == (2, {"sentence": 0, "passage": 0})
    found = np.load(shard_file(tmp_path, 0, vectors_role("passage")))
    assert (found.shape, found.dtype) == ((0, 16), np.float16)


# Embedding


@pytest.mark.parametrize(("shard_rows", "shards"), [(1, 40), (50, 4), (50_000, 1)])
def test_every_sentence_and_passage_gets_its_vector_in_shards_of_any_size(
    shard_rows: int, shards: int
) -> None:
    an_index(40)
    report = embed_index("index", ENCODER, with_options(shard_rows=shard_rows))
    check_embedded("index")
    path, manifest = only_sidecar("index/vectors")
    assert (report.rows, report.encoded_rows) == ({"sentence": 120, "passage": 40}, 160)
    assert (report.shards, len(manifest.shards), report.chunks) == (shards, shards, 40)
    assert (report.sidecar, report.processes, report.continued_shards) == (str(path), 1, 0)
    assert report.bytes == sum(file.stat().st_size for file in path.iterdir())
    assert report.peak_bytes > 10 << 20
    assert not (path.parent / WORK).exists()


@pytest.mark.parametrize(("unit", "rows"), [("sentence", 60), ("passage", 20)])
def test_one_unit_in_half_precision(unit: VectorUnit, rows: int) -> None:
    an_index(20)
    dtype: StoredType = "float16"
    report = embed_index("index", ENCODER, with_options(units=(unit,), dtype=dtype))
    path, manifest = only_sidecar("index/vectors")
    assert (report.rows, manifest.units, manifest.dtype) == ({unit: rows}, (unit,), dtype)
    ordinals, vectors = rows_in(path, manifest, unit)
    ordinals_wanted, vectors_wanted = rows_wanted("index", unit, open_encoder(ENCODER))
    assert vectors.dtype == np.float16
    assert ordinals.tolist() == ordinals_wanted.tolist()
    np.testing.assert_allclose(vectors, vectors_wanted, atol=1e-3)


def test_vectors_that_are_there_are_left_and_others_replaced_only_when_told_so() -> None:
    an_index(20)
    embed_index("index", ENCODER, SMALL)
    before = only_sidecar("index/vectors")
    report = embed_index("index", ENCODER, with_options(shard_rows=7))
    assert (report.up_to_date, report.encoded_rows) == (True, 0)
    assert only_sidecar("index/vectors") == before
    with pytest.raises(VectorsMismatchError) as caught:
        embed_index("index", "hashing:8", with_options(units=("passage",), dtype="float16"))
    revision = open_encoder(ENCODER).identity.revision[:12]
    assert str(caught.value) == (
        f"There are other vectors of this index: --encoder was hashing:16 (revision {revision}),"
        f" is hashing:8 (revision {revision}); --unit was both, is passage; --dtype was float32,"
        " is float16.\n"
        f"Where: {before[0]}\n"
        "Allowed: the same options, which leave them as they are\n"
        "Do: Say --overwrite to replace them, or give another --vectors."
    )
    with pytest.raises(VectorsMismatchError, match=r"--index was flat, is IVF4,Flat\."):
        embed_index("index", ENCODER, with_options(index="IVF4,Flat"))
    assert only_sidecar("index/vectors") == before
    embed_index("index", "hashing:8", with_options(overwrite=True))
    check_embedded("index", encoder="hashing:8")


def test_an_index_without_text_is_refused_and_nothing_is_left() -> None:
    file_of("c.jsonl", {"id": "a", "text": "... !"}, {"id": "b", "text": "?"})
    build_index(["c.jsonl"], Path("index"), PLAIN)
    for call in (embed_index, estimate_embedding):
        with pytest.raises(SourceError) as caught:
            call("index", ENCODER, SMALL)
        assert caught.value.allowed == "passages with a letter or a digit"
    with pytest.raises(SourceError) as caught:
        embed_index("index", ENCODER, SMALL)
    assert str(caught.value) == (
        "The index holds no text to embed.\n"
        "Where: index\n"
        "Allowed: passages with a letter or a digit"
    )
    assert not Path("index/vectors").exists()


def test_options_that_cannot_be_are_refused_before_anything_is_opened() -> None:
    for changes, expected in (
        ({"shard_rows": 0}, "--shard-size: 0 is outside of the bounds."),
        ({"batch_size": 10_000}, "--batch-size: 10,000 is outside of the bounds."),
        ({"workers": 65}, "--workers: 65 is outside of the bounds."),
        ({"dtype": "int8"}, '--dtype: "int8" is not known.'),
        ({"units": ()}, "--unit: none is not known."),
        ({"index": " "}, "--index: the description is empty."),
        ({"only_missing": True, "overwrite": True},
         "--only-missing and --overwrite are both given."),
    ):  # fmt: skip
        with pytest.raises(ArgumentError) as caught:
            with_options(**changes)
        assert caught.value.what == expected
    an_index(1)
    with pytest.raises(ArgumentError, match=r"^Other processes cannot be given an encoder that"):
        embed_index("index", open_encoder(ENCODER), with_options(workers=1))


# Stopping and going on


def test_after_ctrl_c_finished_shards_are_verified_and_not_made_again() -> None:
    an_index(40)
    stopping = StoppingAt(100)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, stopping)
    assert stopping.notes == [
        LOADING,
        "Stopped. Run the same command again: it continues after 2 shards.",
    ]
    assert list(sidecars(Path("index/vectors"))) == []
    noting = Noting()
    report = embed_index("index", ENCODER, SMALL, noting)
    assert noting.notes == [LOADING, "Continuing: the shards that are there are verified."]
    assert (report.continued_shards, report.remade_shards, report.encoded_rows) == (2, 0, 64)
    check_embedded("index")


def test_what_is_stopped_before_its_first_shard_leaves_nothing() -> None:
    an_index(40)
    stopping = StoppingAt(10)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, stopping)
    assert stopping.notes[-1] == "Stopped. Run the same command again: it begins anew."
    assert not Path("index/vectors").exists()


class StoppingAtOnce(Noting):
    """Presses Ctrl-C before the first shard is looked for."""

    def begin(self, total: int) -> None:
        raise KeyboardInterrupt


def test_stopping_again_before_anything_was_done_loses_no_finished_shard() -> None:
    an_index(40)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, StoppingAt(100))
    stopping = StoppingAtOnce()
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, stopping)
    assert stopping.notes[-1] == (
        "Stopped. Run the same command again: it continues after 2 shards."
    )
    assert embed_index("index", ENCODER, SMALL).continued_shards == 2


@pytest.mark.parametrize("damage", ["flip", "cut", "remove", "record"])
def test_a_damaged_shard_is_found_and_made_again(damage: str) -> None:
    an_index(40)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, StoppingAt(100))
    role = "json" if damage == "record" else vectors_role("sentence")
    path = shard_file(Path("index/vectors") / WORK, 1, role)
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content[:-1] if damage == "cut" else content)
    if damage == "remove":
        path.unlink()
    noting = Noting()
    report = embed_index("index", ENCODER, SMALL, noting)
    assert (report.continued_shards, report.remade_shards) == (1, 1)
    assert noting.notes[2].startswith("Shard 1 is damaged, and made again: ")
    check_embedded("index")


def test_another_plan_is_refused_unless_what_was_begun_may_go() -> None:
    an_index(40)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, StoppingAt(100))
    other = with_options(shard_rows=60, units=("passage",))
    with pytest.raises(ArgumentError) as caught:
        embed_index("index", ENCODER, other)
    assert str(caught.value) == (
        'Another embedding was stopped there: --unit was ["sentence", "passage"], is ["passage"];'
        " --shard-size was 50, is 60.\n"
        "Where: index/vectors/embedding\n"
        "Allowed: the same options as before\n"
        "Do: Give them to finish it, or --overwrite to begin anew."
    )
    noting = Noting()
    embed_index("index", ENCODER, dataclasses.replace(other, overwrite=True), noting)
    assert noting.notes[1].startswith("Beginning anew: another embedding was stopped there: --unit")
    assert only_sidecar("index/vectors")[1].rows == {"passage": 40}


def test_an_overwriting_embedding_that_was_stopped_goes_on() -> None:
    an_index(40)
    embed_index("index", "hashing:8", SMALL)
    overwriting = with_options(overwrite=True)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, overwriting, StoppingAt(100))
    check_embedded("index", encoder="hashing:8")
    assert embed_index("index", ENCODER, overwriting).continued_shards == 2
    check_embedded("index")


def test_shards_of_passages_that_changed_since_are_made_again() -> None:
    an_index(40)
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, SMALL, StoppingAt(150))
    delete_documents("index", ["d20"])
    report = embed_index("index", ENCODER, SMALL)
    assert (report.continued_shards, report.remade_shards) == (1, 0)
    check_embedded("index")


class Embedding(Noting):
    """Embeds the same index once more while it is embedded."""

    error = ""

    def update(self, done: int, encoded: int) -> None:
        if not self.error:
            with pytest.raises(VectorsLockedError) as caught:
                embed_index("index", ENCODER, SMALL)
            self.error = str(caught.value)


def test_of_two_at_once_the_second_is_told_and_the_first_finishes() -> None:
    an_index(20)
    progress = Embedding()
    embed_index("index", ENCODER, SMALL, progress)
    assert progress.error == (
        f"Another process embeds there (process {os.getpid()}).\n"
        "Where: index/vectors\n"
        "Do: Wait for it, or stop it; or give another --vectors."
    )
    check_embedded("index")


class Changing(Noting):
    """Deletes a document while the index is embedded."""

    done = False

    def update(self, done: int, encoded: int) -> None:
        if not self.done:
            self.done = True
            delete_documents("index", ["d3"])


def test_an_index_that_changes_meanwhile_is_embedded_as_it_was_and_that_is_said() -> None:
    an_index(20)
    with open_index("index") as index:
        fingerprint = index.manifest.fingerprint
    report = embed_index("index", ENCODER, SMALL, Changing())
    assert report.notes == (
        "the index has changed since this began: run the same command with --only-missing",
    )
    assert (report.fingerprint, report.rows["passage"]) == (fingerprint, 20)


def test_what_is_searched_in_is_refused_before_encoding_or_after_it_without_loss() -> None:
    an_index(40)
    for wrong, rows in (("IVFnone", 0), ("IVF4096,Flat", 160)):
        counting = Counting()
        with pytest.raises(ArgumentError):
            embed_index("index", ENCODER, with_options(index=wrong), counting)
        assert counting.encoded == rows
    report = embed_index("index", ENCODER, with_options(index="IVF1,Flat"))
    assert (report.continued_shards, report.encoded_rows) == (4, 0)
    assert report.index == {"sentence": "IVF1,Flat", "passage": "IVF1,Flat"}
    check_embedded("index")


class Counting(Noting):
    encoded = 0

    def update(self, done: int, encoded: int) -> None:
        self.encoded = encoded


def test_vectors_that_lost_a_file_are_not_up_to_date() -> None:
    an_index(10)
    embed_index("index", ENCODER, SMALL)
    path, _ = only_sidecar("index/vectors")
    shard_file(path, 0, vectors_role("passage")).unlink()
    with pytest.raises(VectorsDamagedError, match=r"^A file is missing") as caught:
        embed_index("index", ENCODER, SMALL)
    assert caught.value.do == "Say --overwrite to make the vectors anew."
    (path / "vectors.json").write_text("{")
    with pytest.raises(VectorsDamagedError, match=r"^The record cannot be read"):
        embed_index("index", ENCODER, SMALL)
    assert embed_index("index", ENCODER, with_options(overwrite=True)).encoded_rows == 40
    check_embedded("index")


def test_what_was_published_just_before_a_kill_is_tidied_up() -> None:
    an_index(10)
    embed_index("index", ENCODER, SMALL)
    for options, is_left in ((SMALL, False), (with_options(units=("passage",)), True)):
        plan = Plan(open_encoder(ENCODER).identity, options.units, "float32", 7, "")
        begin(Path("index/vectors") / WORK, plan, overwrite=False)
        assert embed_index("index", ENCODER, SMALL).up_to_date
        assert (Path("index/vectors") / WORK).exists() == is_left


# What is missing


def missing(**changes: object) -> EmbedReport:
    return embed_index("index", ENCODER, with_options(only_missing=True, **changes))


def newest_sidecar() -> tuple[Path, VectorManifest]:
    with open_index("index") as index:
        fingerprint = index.manifest.fingerprint
    for path, manifest in sidecars(Path("index/vectors")):
        if isinstance(manifest, VectorManifest) and manifest.fingerprint == fingerprint:
            return path, manifest
    raise AssertionError("none of this state")


def check_rows_of_live_chunks() -> None:
    """Of all chunks of the index there are rows, and the right ones."""
    path, manifest = newest_sidecar()
    encoder = open_encoder(ENCODER)
    for unit in VECTOR_UNITS:
        found = dict(zip(*rows_in(path, manifest, unit), strict=True))
        for ordinal, vector in zip(*rows_wanted("index", unit, encoder), strict=True):
            np.testing.assert_allclose(found[ordinal], vector, atol=1e-6)


def test_only_what_was_added_is_encoded_and_the_rest_taken_over() -> None:
    an_index(40)
    embed_index("index", ENCODER, SMALL)
    file_of("new.jsonl", {"id": "n", "text": "New words. Again."}, {"id": "d7", "text": "Other."})
    add_documents(["new.jsonl"], "index", AddOptions())
    report = missing()
    assert (report.encoded_rows, report.taken_over_chunks) == (5, 39)
    assert (report.chunks, report.deleted_chunks) == (42, 1)
    check_rows_of_live_chunks()
    assert missing().up_to_date
    delete_documents("index", ["d8"])
    report = missing()
    assert (report.encoded_rows, report.taken_over_chunks, report.deleted_chunks) == (0, 40, 2)


def test_after_a_new_build_unchanged_passages_are_copied_wherever_they_are() -> None:
    an_index(40)
    embed_index("index", ENCODER, SMALL)
    lines = Path("index.jsonl").read_text().splitlines()
    lines = [json.dumps({"id": "n", "text": "New words. Again."}), *lines[30:], *lines[:20]]
    build_index([file_of("c.jsonl", *lines)], Path("index"), OVERWRITING)
    noting = Noting()
    report = embed_index("index", ENCODER, with_options(only_missing=True), noting)
    assert noting.notes[1].startswith("Vectors of unchanged passages are copied from index/vectors")
    assert (report.encoded_rows, report.taken_over_chunks, report.chunks) == (3, 30, 31)
    check_rows_of_live_chunks()


def test_a_sidecar_of_which_most_is_deleted_is_copied_from_and_not_carried_on() -> None:
    an_index(40)
    embed_index("index", ENCODER, SMALL)
    delete_documents("index", [f"d{number}" for number in range(25)])
    report = missing()
    assert (report.encoded_rows, report.taken_over_chunks) == (0, 15)
    assert (report.chunks, report.deleted_chunks) == (15, 0)
    check_rows_of_live_chunks()


def test_what_is_missing_is_all_where_nothing_was_made_by_this_encoder() -> None:
    an_index(10)
    noting = Noting()
    report = embed_index("index", ENCODER, with_options(only_missing=True), noting)
    assert noting.notes[1:] == ["There are no such vectors yet: all passages are embedded."]
    assert report.encoded_rows == 40
    add_documents([file_of("new.jsonl", {"id": "n", "text": "New."})], "index", AddOptions())
    assert missing(dtype="float16").encoded_rows == 42


def test_a_stopped_embedding_of_what_is_missing_goes_on() -> None:
    an_index(40)
    embed_index("index", ENCODER, SMALL)
    add_documents([corpus("more.jsonl", 80)], "index", AddOptions())
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, with_options(only_missing=True), StoppingAt(100))
    report = missing()
    assert (report.continued_shards, report.encoded_rows) == (2, 320 - 96)
    check_rows_of_live_chunks()


def test_what_was_begun_for_another_earlier_state_begins_anew() -> None:
    an_index(40)
    embed_index("index", ENCODER, SMALL)
    more = [{"id": f"n{number}", "text": "One. Two. Three."} for number in range(40)]
    add_documents([file_of("more.jsonl", *more)], "index", AddOptions())
    with pytest.raises(KeyboardInterrupt):
        embed_index("index", ENCODER, with_options(only_missing=True), StoppingAt(100))
    build_index(["more.jsonl"], Path("index"), OVERWRITING)
    noting = Noting()
    embed_index("index", ENCODER, with_options(only_missing=True), noting)
    assert noting.notes[2].startswith(
        'Beginning anew: another embedding was stopped there: --only-missing was "shards of '
    )
    check_rows_of_live_chunks()


def test_a_flipped_byte_in_what_would_be_taken_over_is_found() -> None:
    an_index(40)
    embed_index("index", ENCODER, SMALL)
    path = shard_file(only_sidecar("index/vectors")[0], 1, vectors_role("sentence"))
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    for change in (
        lambda: delete_documents("index", ["d1"]),
        lambda: build_index([corpus("c.jsonl", 80)], Path("index"), OVERWRITING),
    ):
        change()
        with pytest.raises(VectorsDamagedError, match=r"SHA-256 differs"):
            missing()


# Beside the index


def test_builds_and_compacting_leave_vectors_alone() -> None:
    an_index(20)
    embed_index("index", ENCODER, SMALL)
    kept = only_sidecar("index/vectors")
    delete_documents("index", ["d1"])
    compact_index("index")
    assert only_sidecar("index/vectors") == kept
    build_index(["index.jsonl"], Path("index"), OVERWRITING)
    assert only_sidecar("index/vectors") == kept
    assert embed_index("index", ENCODER, SMALL).up_to_date
    assert sorted(path.name for path in Path("index").iterdir() if path.is_dir())[-1] == "vectors"


def test_a_dry_run_writes_nothing_and_counts_rows() -> None:
    an_index(30)
    found = estimate_embedding("index", ENCODER, SMALL)
    assert (found.rows, found.is_exact) == ({"sentence": 90, "passage": 30}, True)
    assert found.bytes == 120 * (16 * 4 + 8) + 30 * 150
    text = found.to_text().splitlines()
    assert (
        text[0] == "Nothing was written. index would get vectors of 90 sentences and 30 passages."
    )
    assert text[3] == "disk: about 0.0 MB in index/vectors (float32)"
    assert not Path("index/vectors").exists()
    report = embed_index("index", ENCODER, SMALL)
    assert found.bytes == pytest.approx(report.bytes, rel=0.5)


@pytest.mark.opensearch
def test_an_index_on_a_server_is_embedded_into_a_folder(opensearch: Site) -> None:
    address = opensearch.address
    build_index([corpus("c.jsonl", 40)], address, PLAIN)
    options = with_options(vectors="v")
    with pytest.raises(KeyboardInterrupt):
        embed_index(address, ENCODER, options, StoppingAt(100))
    report = embed_index(address, ENCODER, options)
    assert (report.location, report.continued_shards, report.encoded_rows) == (address, 2, 64)
    check_embedded(address, "v")
    add_documents([file_of("n.jsonl", {"id": "n", "text": "New."})], address, AddOptions())
    report = embed_index(address, ENCODER, dataclasses.replace(options, only_missing=True))
    assert (report.encoded_rows, report.taken_over_chunks, report.chunks) == (2, 40, 41)


@pytest.mark.opensearch
def test_an_index_on_a_server_that_changes_while_it_is_read_is_refused(opensearch: Site) -> None:
    address = opensearch.address
    build_index([corpus("c.jsonl", 400)], address, PLAIN)

    class Deleting(Noting):
        done = False

        def update(self, done: int, encoded: int) -> None:
            if not self.done:
                self.done = True
                delete_documents(address, ["d399"])

    with pytest.raises(SourceError) as caught:
        embed_index(address, ENCODER, with_options(vectors="v"), Deleting())
    assert str(caught.value).startswith(
        "The index was changed while it was embedded.\n"
        f"Where: {address}\n"
        "Do: Run the same command again when nothing updates it: it continues after "
    )
    report = embed_index(address, ENCODER, with_options(vectors="v"))
    assert report.continued_shards > 20
    check_embedded(address, "v")


# The command


def test_the_command_reports_in_words_and_as_json(arag: Command) -> None:
    an_index(10)
    done = arag("embed", "index", "--encoder", ENCODER, "--vectors", "v", "--unit", "passage")
    assert (done.code, done.err) == (0, LOADING + "\n")
    path, _ = only_sidecar("v")
    assert done.lines[0].startswith("Embedded index: vectors of 10 passages in 1 shard, 0.0 MB in ")
    assert done.lines[0].endswith(f" {path}.")
    assert done.lines[1] == "encoder: hashing:16, 16 dimensions; float32; index flat"
    assert done.lines[3].endswith("summed over 1 process")
    again = arag("embed", "index", "--encoder", ENCODER, "--vectors", "v", "--unit", "passage",
                 "--json")  # fmt: skip
    assert (again.json["up_to_date"], again.json["rows"]) == (True, {"passage": 10})
    told = arag("embed", "index", "--encoder", ENCODER, "--dry-run", "--json").json
    assert told["rows"] == {"sentence": 30, "passage": 10}


def test_ctrl_c_ends_the_command_with_130(arag: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    an_index(40)
    options = ("--encoder", ENCODER, "--shard-size", "50", "--batch-size", "1")
    opening = "index_jobs.embed_progress.open_embed_progress"
    with monkeypatch.context() as patch:
        patch.setattr(opening, lambda: StoppingAt(100))
        assert arag("embed", "index", *options).code == 130
    assert arag("embed", "index", *options, "--json").json["continued_shards"] == 2


def test_an_index_on_a_server_needs_to_be_told_where_vectors_go(
    arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ARAG_VECTORS", raising=False)
    done = arag("embed", "http://localhost:1/name", "--encoder", ENCODER)
    assert (done.code, done.out) == (1, "")
    assert "Do: Give --vectors DIR, or set ARAG_VECTORS." in done.err
    help_text = arag("embed", "--help").out
    assert "--ca-certs" in help_text
    assert "hashing, which needs no model" in " ".join(help_text.split())


def test_info_shows_the_vectors_and_whether_they_fit(arag: Command) -> None:
    an_index(10)
    assert "vectors" not in arag("info", "index").out.replace("index/vectors", "")
    embed_index("index", ENCODER, SMALL)
    path, manifest = only_sidecar("index/vectors")
    size = sum(file.stat().st_size for file in path.iterdir())
    assert arag("info", "index").lines[-1] == (
        f"  vectors      {path}: 30 sentences, 10 passages; hashing:16, 16 dimensions; flat,"
        f" float32, {size:,} bytes; fit the index"
    )
    delete_documents("index", ["d1"])
    assert arag("info", "index").lines[-1].endswith("; of another state of the index")
    (told,) = arag("info", "index", "--json").json["vectors"]
    assert (told["fits"], told["rows"]) == (False, {"sentence": 30, "passage": 10})
    assert told["fingerprint"] == manifest.fingerprint
    (path / "vectors.json").write_text("{}")
    assert "damaged: " in arag("info", "index").lines[-1]


def test_without_the_extra_the_command_says_which_line_installs_it() -> None:
    an_index(1)
    script = (
        "import sys\n"
        "sys.modules['numpy'] = None\n"
        "from arag_search.cli.app import run\n"
        f"sys.exit(run(['embed', 'index', '--encoder', '{ENCODER}']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    assert 'Do: Install the extra: pip install "arag-search[semantic]"' in done.stderr

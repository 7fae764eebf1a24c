"""Only what is missing is embedded; the rest is taken over."""

import json
from pathlib import Path

import numpy as np
import pytest

from arag_search.errors import VectorsDamagedError
from arag_search.index import open_index
from arag_search.vectors.base import VECTOR_UNITS
from arag_search.vectors.encoders.choose import open_encoder
from arag_search.vectors.manifest import VectorManifest
from arag_search.vectors.place import sidecars
from arag_search.vectors.shards import shard_file, vectors_role
from index_jobs.adding import AddOptions, add_documents
from index_jobs.build import build_index
from index_jobs.embed import embed_index
from index_jobs.embed_report import EmbedReport
from index_jobs.updates import delete_documents
from tests.builds import OVERWRITE, corpus, in_own_folder  # noqa: F401
from tests.commands import file_of
from tests.embeddings import (
    ENCODER,
    SMALL,
    Noting,
    StoppingAt,
    an_index,
    only_sidecar,
    rows_in,
    rows_wanted,
    with_options,
)

pytestmark = pytest.mark.engine


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
    build_index([file_of("c.jsonl", *lines)], Path("index"), OVERWRITE)
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
    build_index(["more.jsonl"], Path("index"), OVERWRITE)
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
        lambda: build_index([corpus("c.jsonl", 80)], Path("index"), OVERWRITE),
    ):
        change()
        with pytest.raises(VectorsDamagedError, match=r"SHA-256 differs"):
            missing()

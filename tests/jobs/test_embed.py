"""Embedding an index gives every row its vector, once."""

from pathlib import Path

import numpy as np
import pytest

from arag_search.errors import ArgumentError, SourceError, VectorsMismatchError
from arag_search.vectors.base import VectorUnit
from arag_search.vectors.encoders.choose import open_encoder
from arag_search.vectors.storage.shards import StoredType
from index_jobs.build.new_index import build_index
from index_jobs.embedding.job import WORK, embed_index
from index_jobs.updates.deletion import delete_documents
from index_jobs.updates.maintenance import compact_index
from tests.support.builds import OVERWRITE, PLAIN, corpus, in_own_folder  # noqa: F401
from tests.support.commands import file_of
from tests.support.embeddings import (
    ENCODER,
    SMALL,
    build_small_index,
    check_embedded,
    expected_rows,
    only_sidecar,
    rows_in,
    with_options,
)

# Embedding


@pytest.mark.parametrize(("shard_rows", "shards"), [(1, 40), (50, 4), (50_000, 1)])
def test_every_sentence_and_passage_gets_its_vector_in_shards_of_any_size(
    shard_rows: int, shards: int
) -> None:
    build_small_index(40)
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
def test_one_unit_is_embedded_in_half_precision(unit: VectorUnit, rows: int) -> None:
    build_small_index(20)
    dtype: StoredType = "float16"
    report = embed_index("index", ENCODER, with_options(units=(unit,), dtype=dtype))
    path, manifest = only_sidecar("index/vectors")
    assert (report.rows, manifest.units, manifest.dtype) == ({unit: rows}, (unit,), dtype)
    ordinals, vectors = rows_in(path, manifest, unit)
    ordinals_wanted, vectors_wanted = expected_rows("index", unit, open_encoder(ENCODER))
    assert vectors.dtype == np.float16
    assert ordinals.tolist() == ordinals_wanted.tolist()
    np.testing.assert_allclose(vectors, vectors_wanted, atol=1e-3)


def test_existing_vectors_are_left_and_others_replaced_only_with_overwrite() -> None:
    build_small_index(20)
    embed_index("index", ENCODER, SMALL)
    before = only_sidecar("index/vectors")
    report = embed_index("index", ENCODER, with_options(shard_rows=7))
    assert (report.up_to_date, report.encoded_rows) == (True, 0)
    assert only_sidecar("index/vectors") == before
    with pytest.raises(VectorsMismatchError) as caught:
        embed_index("index", "hashing:8", with_options(units=("passage",), dtype="float16"))
    revision = open_encoder(ENCODER).identity.revision[:12]
    assert str(caught.value) == (
        "This index has vectors made with other options: --encoder was hashing:16"
        f" (revision {revision}), is hashing:8 (revision {revision}); --unit was both, is passage;"
        " --dtype was float32, is float16.\n"
        f"Where: {before[0]}\n"
        "Allowed: the same options, which leave the vectors unchanged\n"
        "Do: Use --overwrite to replace them, or give another --vectors."
    )
    with pytest.raises(VectorsMismatchError, match=r"--index was flat, is IVF4,Flat\."):
        embed_index("index", ENCODER, with_options(index="IVF4,Flat"))
    assert only_sidecar("index/vectors") == before
    embed_index("index", "hashing:8", with_options(overwrite=True))
    check_embedded("index", encoder="hashing:8")


def test_an_index_without_text_is_refused_and_nothing_is_left() -> None:
    file_of("c.jsonl", {"id": "a", "text": "... !"}, {"id": "b", "text": "?"})
    build_index(["c.jsonl"], Path("index"), PLAIN)
    with pytest.raises(SourceError) as caught:
        embed_index("index", ENCODER, SMALL)
    assert str(caught.value) == (
        "The index holds no text to embed.\n"
        "Where: index\n"
        "Allowed: passages with a letter or a digit"
    )
    assert not Path("index/vectors").exists()


def test_impossible_options_are_refused_before_anything_is_opened() -> None:
    for changes, expected in (
        ({"shard_rows": 0}, "shard_rows: 0 is out of range."),
        ({"batch_size": 10_000}, "batch_size: 10,000 is out of range."),
        ({"workers": 65}, "--workers: 65 is out of range."),
        ({"dtype": "int8"}, '--dtype: "int8" is not known.'),
        ({"units": ()}, "--unit: none is not known."),
        ({"index": " "}, "--index: the description is empty."),
    ):  # fmt: skip
        with pytest.raises(ArgumentError) as caught:
            with_options(**changes)
        assert caught.value.what == expected
    build_small_index(1)
    with pytest.raises(ArgumentError, match=r"^An open encoder cannot be passed to"):
        embed_index("index", open_encoder(ENCODER), with_options(workers=1))


# Vectors beside an index


def test_builds_and_compacting_leave_vectors_alone() -> None:
    build_small_index(20)
    embed_index("index", ENCODER, SMALL)
    sidecar = only_sidecar("index/vectors")
    delete_documents("index", ["d1"])
    compact_index("index")
    assert only_sidecar("index/vectors") == sidecar
    build_index(["index.jsonl"], Path("index"), OVERWRITE)
    assert only_sidecar("index/vectors") == sidecar
    assert embed_index("index", ENCODER, SMALL).up_to_date
    assert sorted(path.name for path in Path("index").iterdir() if path.is_dir())[-1] == "vectors"

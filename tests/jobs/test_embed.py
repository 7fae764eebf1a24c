"""Embedding an index gives every text its vector, once."""

from pathlib import Path

import numpy as np
import pytest

from arag_search.errors import (
    ArgumentError,
    SourceError,
    VectorsDamagedError,
    VectorsMismatchError,
)
from arag_search.search.opening import open_index
from arag_search.vectors.base import VectorUnit
from arag_search.vectors.encoders.choose import open_encoder
from index_jobs.build.new_index import build_index
from index_jobs.embedding.job import embed_index
from index_jobs.updates.deletion import delete_documents
from index_jobs.updates.maintenance import compact_index
from tests.support.builds import OVERWRITE, PLAIN, in_own_folder  # noqa: F401
from tests.support.commands import file_of
from tests.support.embeddings import (
    ENCODER,
    SMALL,
    build_small_index,
    check_embedded,
    expected_rows,
    fitting,
    names,
    rows_in,
    texts_of,
    with_options,
)

# Embedding


def test_every_sentence_and_passage_gets_its_vector_and_equal_texts_share_one() -> None:
    build_small_index(40)
    report = embed_index("index", ENCODER, SMALL)
    check_embedded()
    state, store = fitting()
    assert (report.texts, report.encoded_rows) == ({"sentence": 120, "passage": 40}, texts_of(40))
    assert report.rows == {"sentence": 41, "passage": 40}
    assert (report.state, report.store) == (str(state.path), str(store.folder))
    assert report.reused_rows == 0
    files = [state.path, *store.folder.iterdir()]
    assert report.bytes == sum(file.stat().st_size for file in files)
    assert names() == ([state.path.name], ["store-00001"])


@pytest.mark.parametrize(("unit", "texts"), [("sentence", 60), ("passage", 20)])
def test_one_unit_is_embedded_in_half_precision_and_the_other_added_later(
    unit: VectorUnit, texts: int
) -> None:
    build_small_index(20)
    half = with_options(unit=unit, dtype="float16")
    report = embed_index("index", ENCODER, half)
    state, store = fitting()
    assert (report.texts, tuple(state.units), store.record.dtype) == (
        {unit: texts},
        (unit,),
        "float16",
    )
    ordinals, vectors = rows_in(state, store, unit)
    ordinals_wanted, vectors_wanted = expected_rows("index", unit, open_encoder(ENCODER))
    assert ordinals.tolist() == ordinals_wanted.tolist()
    np.testing.assert_allclose(vectors, vectors_wanted, atol=1e-3)
    both = embed_index("index", ENCODER, SMALL)
    assert both.encoded_rows == texts_of(20) - report.encoded_rows
    assert (both.texts, both.dtype) == ({"sentence": 60, "passage": 20}, "float16")
    assert embed_index("index", ENCODER, half).up_to_date  # none of the other goes


def test_existing_vectors_are_left_and_others_replaced_only_with_overwrite() -> None:
    build_small_index(20)
    embed_index("index", ENCODER, SMALL)
    before = names()
    report = embed_index("index", ENCODER, with_options(batch_size=2))
    assert (report.up_to_date, report.encoded_rows) == (True, 0)
    with pytest.raises(VectorsMismatchError) as caught:
        embed_index("index", "hashing:8", with_options(dtype="float16"))
    assert str(caught.value) == (
        "There are vectors made with other options, or by another model: dimension 8 instead of"
        " 16, dtype 'float16' instead of 'float32'.\n"
        f"Where: index/vectors/{before[1][0]}\n"
        "Allowed: the same options, which leave the vectors unchanged\n"
        "Do: Use `overwrite=True` to replace them, or give other `vectors`."
    )
    assert names() == before
    embed_index("index", "hashing:8", with_options(overwrite=True))
    check_embedded(encoder="hashing:8")
    assert names() == (before[0], ["store-00002"])


def test_a_faiss_index_is_made_and_left_out_without_encoding() -> None:
    build_small_index(40)
    embed_index("index", ENCODER, SMALL)
    report = embed_index("index", ENCODER, with_options(index="IVF1,Flat"))
    assert (report.up_to_date, report.encoded_rows) == (False, 0)
    assert report.index == {"sentence": "IVF1,Flat", "passage": "IVF1,Flat"}
    check_embedded()
    assert embed_index("index", ENCODER, with_options(index="IVF1,Flat")).up_to_date
    assert embed_index("index", ENCODER, with_options(index="flat")).index["sentence"] == "flat"


def test_an_impossible_faiss_index_is_refused_before_encoding_or_after_it_without_loss() -> None:
    build_small_index(40)
    for description, stored in (("IVFnone", []), ("IVF4096,Flat", ["store-00001"])):
        with pytest.raises(ArgumentError):
            embed_index("index", ENCODER, with_options(index=description))
        assert names() == ([], stored)
    report = embed_index("index", ENCODER, SMALL)
    assert (report.reused_rows, report.encoded_rows) == (texts_of(40), 0)


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
    assert names() == ([], [])


def test_impossible_options_are_refused_before_anything_is_opened() -> None:
    for changes, expected in (
        ({"workers": 65}, "`workers`: 65 is out of range."),
        ({"dtype": "int8"}, '`dtype`: "int8" is not known.'),
        ({"unit": "all"}, '`unit`: "all" is not known.'),
    ):  # fmt: skip
        with pytest.raises(ArgumentError) as caught:
            with_options(**changes)
        assert caught.value.what == expected
    build_small_index(1)
    with pytest.raises(ArgumentError, match=r"^An open encoder cannot be passed to"):
        embed_index("index", open_encoder(ENCODER), with_options(workers=1))


# Rows without a text


def test_builds_leave_vectors_alone() -> None:
    build_small_index(20)
    embed_index("index", ENCODER, SMALL)
    before = names()
    build_index(["index.jsonl"], Path("index"), OVERWRITE)
    assert names() == before
    assert embed_index("index", ENCODER, SMALL).up_to_date


def test_compacting_removes_the_rows_of_deleted_texts_and_keeps_the_index_of_the_others() -> None:
    build_small_index(40)
    embed_index("index", ENCODER, with_options(index="IVF1,Flat"))
    delete_documents("index", ["d1"])
    report = compact_index("index")
    assert report.vector_rows == 2
    assert "vectors: 2 rows without a text removed" in report.to_text()
    check_embedded()
    assert names()[1] == ["store-00002"]
    assert len(names()[0]) == 1
    done = embed_index("index", ENCODER, with_options(index="IVF1,Flat"))
    assert (done.up_to_date, done.dead_rows) == (True, {"sentence": 0, "passage": 0})
    assert compact_index("index").vector_rows == 0


def test_compacting_leaves_vectors_alone_that_do_not_fit() -> None:
    build_small_index(40)
    embed_index("index", ENCODER, SMALL)
    before = names()
    delete_documents("index", ["d1"], vectors="elsewhere")
    assert compact_index("index").vector_rows == 0
    assert names() == before


def test_an_embedding_leaves_out_dead_rows_once_they_are_more_than_a_tenth() -> None:
    build_small_index(40)
    embed_index("index", ENCODER, SMALL)
    for gone, dead in (("d1", 2), ("d2", 4), ("d3", 6), ("d4", 8)):
        delete_documents("index", [gone])
        report = embed_index("index", ENCODER, SMALL)
        assert sum(report.dead_rows.values()) == dead
        check_embedded()
    delete_documents("index", ["d5"])
    report = embed_index("index", ENCODER, SMALL)  # those of d5 are those of the state before
    assert sum(report.dead_rows.values()) == 10
    delete_documents("index", ["d6"])
    report = embed_index("index", ENCODER, SMALL)
    assert sum(report.dead_rows.values()) == 2
    assert names()[1] == ["store-00002"]
    check_embedded()
    with open_index("index") as index:
        assert index.semantic_search("sea").hits


def test_compacting_does_not_copy_rows_that_are_damaged() -> None:
    build_small_index(40)
    embed_index("index", ENCODER, SMALL)
    delete_documents("index", ["d1"])
    before = names()
    path = fitting()[1].folder / "passage.vectors"
    data = bytearray(path.read_bytes())
    data[100] ^= 4
    path.write_bytes(data)
    with pytest.raises(
        VectorsDamagedError, match=r"passage rows \d+ to \d+ have changed"
    ) as caught:
        compact_index("index")
    assert caught.value.do == "Embed the index again: arag-search embed INDEX --overwrite"
    assert names() == before
    embed_index("index", ENCODER, with_options(overwrite=True))

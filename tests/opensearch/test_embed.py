"""Embedding of an index on a server."""

from collections.abc import Iterator

import pytest

from arag_search.errors import SourceError, VectorsMismatchError
from arag_search.search.opening import open_index
from index_jobs.build.new_index import build_index
from index_jobs.embedding.job import embed_index
from index_jobs.updates.addition import add_documents
from index_jobs.updates.deletion import delete_documents
from index_jobs.updates.options import AddOptions
from tests.support.builds import OVERWRITE, PLAIN, corpus, in_own_folder  # noqa: F401
from tests.support.commands import file_of
from tests.support.embeddings import ENCODER, NotingProgress, check_embedded, with_options
from tests.support.opensearch_indexes import Site, fresh_site


def test_an_index_on_a_server_is_embedded_into_a_folder(opensearch: Site) -> None:
    address = opensearch.address
    build_index([corpus("c.jsonl", 40)], address, PLAIN)
    assert embed_index(address, ENCODER, with_options(vectors="v")).location == address
    added = AddOptions(vectors="v")
    report = add_documents([file_of("n.jsonl", {"id": "n", "text": "New."})], address, added)
    assert report.vectors == "the vectors fit the index; 2 rows encoded"
    assert delete_documents(address, ["d1"], vectors="v").vectors == "the vectors fit the index"
    assert _ids(address) == {f"d{number}.1" for number in range(40) if number != 1} | {"n.1"}
    # Without the folder of the vectors, an update does not reach them.
    assert delete_documents(address, ["d2"]).vectors == ""
    with pytest.raises(VectorsMismatchError):
        open_index(address, vectors="v")


def _ids(address: str) -> set[str]:
    with open_index(address, vectors="v") as index:
        return {hit.id for hit in index.semantic_search("sea new", top_k=50).hits}


def test_a_roll_back_finds_the_vectors_of_the_index_before(opensearch: Site) -> None:
    address = opensearch.address
    first = build_index([corpus("c.jsonl", 10)], address, PLAIN).generation
    embed_index(address, ENCODER, with_options(vectors="v"))
    delete_documents(address, ["d3"], vectors="v")
    before = _ids(address)
    second = build_index([corpus("more.jsonl", 12)], address, OVERWRITE).generation
    with pytest.raises(VectorsMismatchError):
        open_index(address, vectors="v")
    embed_index(address, ENCODER, with_options(vectors="v"))
    assert len(_ids(address)) == 12
    opensearch.roll_back(second, first)
    assert _ids(address) == before == {f"d{number}.1" for number in range(10) if number != 3}


@pytest.fixture
def twin(opensearch_url: str) -> Iterator[str]:
    """Provide another name, as ``opensearch`` does."""
    site = fresh_site(opensearch_url)
    yield site.address
    site.remove()
    site.client.close()


def test_two_indexes_on_a_server_share_a_folder_of_vectors(opensearch: Site, twin: str) -> None:
    address = opensearch.address
    for place in (address, twin):
        build_index([corpus("c.jsonl", 40)], place, PLAIN)
    options = with_options(vectors="v")
    assert [embed_index(place, ENCODER, options).encoded_rows for place in (address, twin)] == [
        81,
        0,
    ]
    for number in range(2):
        delete_documents(address, [f"d{number}"], vectors="v")
    for place in (address, twin):
        check_embedded(place, "v")
    added = AddOptions(vectors="v")
    report = add_documents([file_of("n.jsonl", {"id": "n", "text": "New."})], twin, added)
    assert report.vectors == "the vectors fit the index; 2 rows encoded"
    with open_index(twin, vectors="v") as index:
        assert index.naive_embedding_search("New.", top_k=1).hits[0].id == "n.1"
    check_embedded(address, "v")


def test_an_index_on_a_server_that_changes_while_it_is_read_is_refused(
    opensearch: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("index_jobs.embedding.encoding.FOUND_TEXTS", 50)
    address = opensearch.address
    build_index([corpus("c.jsonl", 1_200)], address, PLAIN)

    class DeletingProgress(NotingProgress):
        deleted = False

        def update(self, done: int, encoded: int, details: str = "") -> None:
            if not self.deleted:
                self.deleted = True
                delete_documents(address, ["d1199"])

    with pytest.raises(SourceError) as caught:
        embed_index(address, ENCODER, with_options(vectors="v"), DeletingProgress())
    assert str(caught.value).startswith(
        "The index was changed while it was embedded.\n"
        f"Where: {address}\n"
        "Do: Run the same command again once nothing is updating it: it resumes after "
    )
    report = embed_index(address, ENCODER, with_options(vectors="v"))
    assert report.reused_rows > 300
    check_embedded(address, "v")

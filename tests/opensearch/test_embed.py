"""Embedding of an index on a server."""

import dataclasses

import pytest

from arag_search.errors import SourceError
from index_jobs.build.new_index import build_index
from index_jobs.embed.embedding import embed_index
from index_jobs.updates.addition import AddOptions, add_documents
from index_jobs.updates.deletion import delete_documents
from tests.support.builds import OVERWRITE, PLAIN, corpus, in_own_folder  # noqa: F401
from tests.support.commands import file_of
from tests.support.embeddings import (
    ENCODER,
    InterruptingProgress,
    NotingProgress,
    check_embedded,
    with_options,
)
from tests.support.opensearch_indexes import Site


def test_an_index_on_a_server_is_embedded_into_a_folder(opensearch: Site) -> None:
    address = opensearch.address
    build_index([corpus("c.jsonl", 40)], address, PLAIN)
    options = with_options(vectors="v")
    with pytest.raises(KeyboardInterrupt):
        embed_index(address, ENCODER, options, InterruptingProgress(100))
    report = embed_index(address, ENCODER, options)
    assert (report.location, report.continued_shards, report.encoded_rows) == (address, 2, 48)
    check_embedded(address, "v")
    add_documents([file_of("n.jsonl", {"id": "n", "text": "New."})], address, AddOptions())
    report = embed_index(address, None, dataclasses.replace(options, only_missing=True))
    assert (report.encoded_rows, report.reused_rows, report.chunks) == (2, 160, 41)


def test_an_index_on_a_server_that_changes_while_it_is_read_is_refused(opensearch: Site) -> None:
    address = opensearch.address
    build_index([corpus("c.jsonl", 400)], address, PLAIN)

    class DeletingProgress(NotingProgress):
        deleted = False

        def update(self, done: int, encoded: int, details: str = "") -> None:
            if not self.deleted:
                self.deleted = True
                delete_documents(address, ["d399"])

    with pytest.raises(SourceError) as caught:
        embed_index(address, ENCODER, with_options(vectors="v"), DeletingProgress())
    assert str(caught.value).startswith(
        "The index was changed while it was embedded.\n"
        f"Where: {address}\n"
        "Do: Run the same command again when nothing updates it: it continues after "
    )
    report = embed_index(address, ENCODER, with_options(vectors="v"))
    assert report.continued_shards > 20
    check_embedded(address, "v")

"""An index on a server that is open while it changes."""

from pathlib import Path

import pytest

from arag_search.search import opening
from arag_search.search.opening import open_index
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.updates.synchronisation import sync_documents
from tests.support.commands import file_of
from tests.support.opensearch_indexes import Site


def write(word: str, count: int) -> list[str]:
    documents = ({"id": f"d{n}", "text": f"The sea, {word}."} for n in range(count))
    return [file_of("d.jsonl", *documents)]


def test_updates_and_new_builds_are_followed_and_the_server_is_asked_once_in_a_while(
    opensearch: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    build_index(write("first", 3), opensearch.address)
    monkeypatch.setattr(opening, "SERVER_LOOKS_S", 3_600.0)
    with open_index(opensearch.address, refresh="auto") as patient:
        monkeypatch.setattr(opening, "SERVER_LOOKS_S", 0.0)
        with open_index(opensearch.address, refresh="auto") as index:
            sync_documents(write("second", 4), opensearch.address)
            assert index.logical_search("second").total == 4
            assert index.manifest.update == patient.manifest.update + 1
            build_index(write("third", 5), opensearch.address, BuildOptions(overwrite=True))
            assert index.logical_search("third").total == 5
            assert index.manifest.documents == 5
            assert not index.is_outdated()

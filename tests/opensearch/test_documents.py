"""Documents of an index on a server: listed, read and exported as from a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

import arag_search
from arag_search.cli import documents as command
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.updates.deletion import delete_documents
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.commands import SAMPLE, Command
from tests.support.opensearch_indexes import Site

OPTIONS = BuildOptions(metadata={"year": "number", "kind": "keyword"}, chunk_tokens=60)


def test_documents_on_a_server_are_those_in_a_folder_and_an_update_stops_an_export(
    opensearch: Site, arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_index([SAMPLE], opensearch.address, OPTIONS)
    build_index([SAMPLE], Path("folder"), OPTIONS)
    for arguments in (
        ("--json",),
        ("--json", "--filter", "kind:person", "--offset", "3", "--limit", "4"),
        ("--export", "-", "--filter", "NOT kind:person"),
    ):
        lines = arag("documents", opensearch.address, *arguments).lines
        assert lines == arag("documents", "folder", *arguments).lines
        assert len(lines) > 3
    with arag_search.open_index(opensearch.address, filter="kind:person") as index:
        assert len(index.document_read("vivaldi").chunks) > 1
        with pytest.raises(arag_search.AragError, match='Did you mean "vivaldi"'):
            index.document_read("vivaldy")
        with pytest.raises(arag_search.AragError, match='"griselda-vivaldi"'):
            index.document_read("griselda-vivaldi")

    line = command._line  # pyright: ignore[reportPrivateUsage]

    def updated(value: dict[str, object]) -> bytes:
        if value["id"] == "vivaldi":
            delete_documents(opensearch.address, ["byron"])
        return line(value)

    monkeypatch.setattr(command, "_line", updated)
    result = arag("documents", opensearch.address, "--export", "a.jsonl")
    assert result.err.splitlines()[0] == "arag-search: The index was updated during the export."
    assert not list(Path().glob("a.jsonl*"))

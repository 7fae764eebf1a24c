"""Documents of an index on a server: listed, read and exported as from a folder."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import arag_search
from arag_search.cli import read as command
from arag_search.manifest import Manifest
from arag_search.search.index import Index
from arag_search.search.reading.documents import IndexDocument
from arag_search.tools.preset_files import load_preset
from arag_search.tools.tool import ReadSet
from arag_search.tools.toolbox import tools_of
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.updates.deletion import delete_documents
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.commands import SAMPLE, Command
from tests.support.examples import examples
from tests.support.opensearch_indexes import Site
from tests.support.oracle.engine import MemoryEngine

OPTIONS = BuildOptions(metadata={"year": "number", "kind": "keyword"}, chunk_tokens=60)


def test_documents_on_a_server_are_those_in_a_folder_and_an_update_stops_an_export(
    opensearch: Site, arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_index([SAMPLE], opensearch.address, OPTIONS)
    build_index([SAMPLE], Path("folder"), OPTIONS)
    for arguments in ((), ("--json",), ("--json", "--filter", "NOT kind:person")):
        lines = arag("read", opensearch.address, "--all", *arguments).lines
        assert lines == arag("read", "folder", "--all", *arguments).lines
        assert len(lines) > 3
    with arag_search.open_index(opensearch.address, filter="kind:person") as index:
        assert len(index.document_read("vivaldi").chunks) > 1
        with pytest.raises(arag_search.AragError, match='Did you mean "vivaldi"'):
            index.document_read("vivaldy")
        with pytest.raises(arag_search.AragError, match='"griselda-vivaldi"'):
            index.document_read("griselda-vivaldi")

    record_of = command.record_of

    def updated(document: IndexDocument, manifest: Manifest) -> dict[str, object]:
        if document.id == "vivaldi":
            delete_documents(opensearch.address, ["byron"])
        return record_of(document, manifest)

    monkeypatch.setattr(command, "record_of", updated)
    result = arag("read", opensearch.address, "--all", "--json")
    assert result.code == 2
    assert result.err.splitlines()[0] == (
        "arag-search: The index was updated while its documents were read."
    )


def random_calls(random: Random) -> list[tuple[str, dict[str, object]]]:
    """Return calls of the tools of documents; references are those that searches have given."""
    words = ("opera", "venice", "libretto", "poet", "bridge", "born", "zebra", "griselda")
    calls: list[tuple[str, dict[str, object]]] = []
    for _ in range(6):
        queries = [
            f"{random.choice(words)} {random.choice(('AND', 'OR', ''))} {random.choice(words)}"
            for _ in range(random.choice((1, 2, 5)))
        ]
        scope = random.choice(("", "", "kind:person", "year:>1750"))
        calls.append(("search", {"queries": queries, "filter": scope}))
        for _ in range(3):
            reference = f"turn0search{random.randrange(12)}"
            patterns = random.sample(words, 3)
            calls.append(("find", {"reference_id": reference, "patterns": patterns}))
            line = random.choice((1, 1, 2, 4, 50))
            calls.append(("open", {"reference_id": reference, "line_number": line}))
    return calls


def document_replies(index: Index, preset: str, seed: int) -> list[tuple[str, str]]:
    tools, seen = tools_of(load_preset(preset), index), ReadSet()
    results = [tools[name].run(arguments, seen) for name, arguments in random_calls(Random(seed))]
    return [(result.status, result.text) for result in results]


def test_tools_of_documents_reply_the_same_on_all_engines(opensearch: Site) -> None:
    build_index([SAMPLE], opensearch.address, OPTIONS)
    build_index([SAMPLE], Path("lines"), OPTIONS)
    with (
        arag_search.open_index(opensearch.address) as remote,
        arag_search.open_index("lines") as local,
    ):
        chunks, fields = list(local.scan()), local.manifest.metadata
        memory = Index(MemoryEngine(chunks, metadata=fields), "memory")
        for preset in ("agentic_rag", "agentic_logical"):
            for seed in range(examples(10)):
                replies = document_replies(local, preset, seed)
                assert document_replies(remote, preset, seed) == replies
                assert document_replies(memory, preset, seed) == replies
                assert {status for status, _ in replies} >= {"ok"}

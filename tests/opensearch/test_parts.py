"""Parts of indexes on a server, against indexes in memory of their passages alone."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

import arag_search
from arag_search.corpus import Chunk
from arag_search.engines.base import SearchEngine
from arag_search.search.index import Index
from arag_search.tools.preset_files import load_preset
from arag_search.tools.tool import ReadSet
from arag_search.tools.toolbox import tools_of
from bench.data import SAMPLE
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.updates.addition import add_documents
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.commands import file_of
from tests.support.examples import examples, some_of
from tests.support.named_passages import check_pointers, chunks_with_names
from tests.support.opensearch_indexes import Site
from tests.support.opensearch_server import Server
from tests.support.oracle.engine import MemoryEngine
from tests.support.pages import check_random_pages
from tests.support.parts import check_random_parts
from tests.support.passages import SCHEMA
from tests.support.updated_corpora import document


def test_pages_of_an_or_show_each_match_once(opensearch_url: str, tmp_path: Path) -> None:
    build_index([str(SAMPLE / "corpus.jsonl")], tmp_path / "index", BuildOptions())
    with arag_search.open_index(tmp_path / "index") as index:
        chunks = list(index.scan())
    server = Server(opensearch_url)
    try:
        engine = server.publish("pages", chunks, MemoryEngine(chunks).manifest, 2)
        with Index(engine, "the server") as index:
            check_random_pages(index, Random(7), examples(20))
    finally:
        server.clean()


@pytest.mark.parametrize("seed", range(3))
def test_pointers_are_in_scope_once_and_true_to_their_texts(opensearch_url: str, seed: int) -> None:
    random, server = Random(seed), Server(opensearch_url)
    chunks = chunks_with_names(random)
    memory = MemoryEngine(chunks, metadata=SCHEMA.metadata)
    try:
        with Index(server.publish("named", chunks, memory.manifest, 2), "the server") as index:
            check_pointers(index, chunks, random, None)
            check_pointers(index.within("lang:en"), chunks, random, "lang:en")
    finally:
        server.clean()


@pytest.mark.parametrize("seed", some_of(range(200, 200 + examples(10))))
def test_a_part_answers_as_an_index_of_its_passages_alone(opensearch_url: str, seed: int) -> None:
    server = Server(opensearch_url)

    def indexed(chunks: Sequence[Chunk], memory: MemoryEngine) -> SearchEngine:
        return server.publish("parts", chunks, memory.manifest, 1 + seed % 2)

    try:
        check_random_parts(indexed, seed, parts=2)
    finally:
        server.clean()


def test_a_document_that_is_revoked_while_it_is_served_is_no_longer_there(opensearch: Site) -> None:
    plan, menu = (document(id, f"The {id}.", acl="everyone") for id in ("plan", "menu"))
    options = BuildOptions(metadata={"acl": "keyword"})
    build_index([file_of("built.jsonl", plan, menu)], opensearch.address, options)
    with arag_search.open_index(opensearch.address) as index:
        tools, seen = tools_of(load_preset("agentic_rag"), index.within("acl:everyone")), ReadSet()
        shown = tools["search"].run({"queries": ["plan"]}, seen).references
        assert [document.doc_id for document in shown] == ["plan"]
        opened = {"reference_id": "turn0search0"}
        assert "The plan." in tools["open"].run(opened, seen).text
        add_documents([file_of("added.jsonl", {**plan, "acl": "hr"})], opensearch.address)
        for name, more in (("open", {}), ("find", {"patterns": ["plan"]})):
            gone = tools[name].run({**opened, **more}, seen)
            assert gone.text.startswith("The document of [turn0search0] is no longer there.")
        assert tools["search"].run({"queries": ["plan"]}, seen).status == "empty"
        assert index.document_read("plan").metadata["acl"] == "hr"

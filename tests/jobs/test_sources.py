"""The real corpora as sources."""

import pytest

from arag_search.corpus import nfc
from index_jobs.sources.formats import Fields
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import open_source
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.corpus_files import documents
from tests.support.shared_data import DATA


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "format", "count"),
    [
        ("hotpotqa/corpus.jsonl", "passages", 994),
        ("musique/corpus.jsonl", "documents", 1890),
        ("2wikimultihopqa/arag_chunks.json", "arag-chunks", 658),
        ("medical/corpus.json", "graphrag-bench", 1),
    ],
)
def test_the_real_corpora_are_recognised_and_read(name: str, format: str, count: int) -> None:
    source = open_source(str(DATA / name), None, Fields(), MetadataReader({}))
    corpus = documents(source)
    assert (source.format, len(corpus)) == (format, count)
    assert all(document.text and document.text == nfc(document.text) for document in corpus)

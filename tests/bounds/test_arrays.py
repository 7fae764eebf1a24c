"""Items of a JSON array that are too long, or never end."""

import gzip
import tracemalloc
from pathlib import Path

import pytest

from arag_search.corpus import Document
from arag_search.errors import SourceError
from index_jobs.sources import arrays
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.corpus_files import documents, source_at


@pytest.mark.parametrize(
    "item", ['"1:' + "x" * (5 << 20) + '"', "[" + "[1, 2], " * (1 << 19) + "3]", "x" * (5 << 20)]
)
def test_an_item_that_is_too_long_is_reported_and_later_items_are_read(
    item: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "MAX_LINE_BYTES", 1 << 20)
    Path("c.json.gz").write_bytes(gzip.compress(f'["0:a", {item}, "2:c"]'.encode()))
    entries = [entry for _, entry in source_at("c.json.gz").documents()]
    assert [document.id for document in entries if isinstance(document, Document)] == ["0", "2"]
    assert str(entries[1]) == (
        "The item is longer than 1 MiB.\nWhere: c.json.gz, item 2\n"
        "Do: Fix it, or skip it with --skip-bad-lines."
    )


def test_an_item_that_never_ends_is_not_held_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "MAX_LINE_BYTES", 1 << 20)
    Path("c.json.gz").write_bytes(gzip.compress(b'["0:a", "1:' + b"x" * (50 << 20)))
    tracemalloc.start()
    try:
        with pytest.raises(SourceError, match="The array is not closed"):
            documents(source_at("c.json.gz"))
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()
    Path("c.json").write_bytes(b"[" * (2 << 20))
    with pytest.raises(SourceError, match="An item has more than 1,048,576 open brackets"):
        source_at("c.json")

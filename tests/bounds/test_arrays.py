"""Items of a JSON array that are too long, or never end."""

import gzip
import tracemalloc
from pathlib import Path

import pytest

from arag_search.errors import SourceError
from index_jobs.sources import records
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.corpus_files import documents, source_at


@pytest.mark.parametrize("item", ['"1:' + "x" * (50 << 20), "[" + "[1, 2], " * (1 << 19)])
def test_an_item_that_is_too_long_is_an_error_and_is_not_held_in_memory(
    item: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "MAX_LINE_BYTES", 1 << 20)
    Path("c.json.gz").write_bytes(gzip.compress(f'["0:a", {item}'.encode()))
    tracemalloc.start()
    try:
        with pytest.raises(SourceError) as caught:
            documents(source_at("c.json.gz"))
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
    assert str(caught.value) == (
        "The item is longer than 1 MiB.\nWhere: c.json.gz, after item 1\n"
        "Do: Correct the file; nothing after this can be read."
    )

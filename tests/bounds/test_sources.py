"""Lines of a corpus that are too long."""

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from arag_search.corpus import Document
from index_jobs.sources import records
from index_jobs.sources.formats import Fields
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import open_source
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.corpus_files import FIX


@pytest.mark.parametrize(
    ("name", "head", "row", "allowed"),
    [
        ("a.jsonl", "", '{{"id": "{}", "text": "{}"}}\n', "JSON lines: one record a line"),
        ("a.tsv", "id\ttext\ttitle\n", "{}\t{}\ttitle\n", "one row a line"),
    ],
)
@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_line_that_is_too_long_is_reported_and_later_lines_are_read(
    name: str,
    head: str,
    row: str,
    allowed: str,
    compress: Callable[[bytes], bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(records, "MAX_LINE_BYTES", 1 << 20)
    texts = ("x", "x" * (40 << 20), "x", "x" * (1 << 20))
    raw = head + "".join(row.format(number, text) for number, text in enumerate(texts))
    Path(name).write_bytes(compress(raw.encode()))
    source = open_source(name, None, Fields(), MetadataReader({}))
    tracemalloc.start()
    try:
        entries = [entry for _, entry in source.documents()]
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()
    assert [entry.id if isinstance(entry, Document) else "" for entry in entries] == [
        "0",
        "",
        "2",
        "",
    ]
    line = 2 + bool(head)
    assert str(entries[1]) == (
        f"The line is longer than 1 MiB.\nWhere: {name}, line {line}\nAllowed: {allowed}\nDo: {FIX}"
    )
    assert [number for number, _ in source.documents(line)] == [line + 1, line + 2]

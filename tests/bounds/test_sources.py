"""Lines and items of a corpus that are too long, or never end."""

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from arag_search.corpus import Document
from arag_search.errors import SourceError
from index_jobs.sources.lines import files as records
from index_jobs.sources.lines.files import Fields
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import open_source
from tests.support.builds import in_own_folder  # noqa: F401
from tests.support.corpus_files import FIX, documents, source_at


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
    monkeypatch.setattr(records, "MAX_ROW_BYTES", 1 << 20)
    texts = ("x", "x" * (20 << 20), "x", "x" * (1 << 20))
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


@pytest.mark.parametrize("item", ['"1:' + "x" * (50 << 20), "[" + "[1, 2], " * (1 << 18)])
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

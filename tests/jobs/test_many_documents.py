"""A small file yields no more documents, and takes no more time, than its size allows."""

import gzip
import math
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from arag_search.corpus import Document
from arag_search.errors import BadFileError, SourceError
from index_jobs.sources.conversion import FileLimits, _Child
from index_jobs.sources.converters.child import BYTE_S, Request
from index_jobs.sources.folders.safe_open import Place
from index_jobs.sources.folders.selection import FileSelection
from index_jobs.sources.lines.files import Fields
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import open_source
from tests.support.converted import written


def entries(folder: Path) -> list[Document | SourceError | None]:
    files = FileSelection(skip_bad_files=True).rooted([str(folder)])
    source = open_source(str(folder), "files", Fields(), MetadataReader({}), files)
    return [entry for _, entry in source.documents()]


def test_a_small_table_of_many_equal_rows_is_a_bad_file(tmp_path: Path) -> None:
    written(tmp_path / "a.md", "An otter.")
    path = tmp_path / "b.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"a": ["x"] * 1_000_000}), path, compression="zstd")
    (tmp_path / "c.csv").write_bytes(gzip.compress(b"a\n" * 100_000))
    written(tmp_path / "d.md", "A beaver.")
    first, *errors, last = entries(tmp_path)
    assert isinstance(first, Document)
    assert isinstance(last, Document)
    most = path.stat().st_size + 1_000
    assert [type(error) for error in errors] == [BadFileError, BadFileError]
    assert isinstance(errors[0], SourceError)
    assert errors[0].what == f"The file has more than {most:,} documents."


@pytest.mark.parametrize(
    ("type", "documents", "seconds"),
    [("parquet", 10, 60.2), ("parquet", 10**6, 62), ("text", 0, 62)],
)
def test_the_time_of_a_file_grows_with_its_size_at_most(
    tmp_path: Path, type: str, documents: int, seconds: float
) -> None:
    child = _Child(FileLimits())
    request = Request(type, Place(str(tmp_path / "a")), "a", Fields(), round(2 / BYTE_S))
    child.begin(request, math.inf)
    for _ in range(2):
        child.go_on(documents // 2)
    child.end()
    assert child.left_s == pytest.approx(seconds)

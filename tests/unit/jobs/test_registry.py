"""The registry of source formats, and the lists derived from it."""

import typing

from arag_search.cli.index import index_command
from arag_search.cli.options.build import FormatName
from index_jobs.sources.registry import AUTO, FORMATS, PRE_CHUNKED


def test_the_command_line_offers_and_explains_every_format() -> None:
    assert [choice.value for choice in typing.cast("typing.Any", FormatName)] == [AUTO, *FORMATS]
    for entry in FORMATS.values():
        assert f"{entry.name}  " in (index_command.__doc__ or "")
        assert entry.summary in (index_command.__doc__ or "")


def test_every_format_reads_records_or_folders() -> None:
    for entry in FORMATS.values():
        assert entry.record or entry.folder


def test_chunk_files_and_rows_of_passages_are_pre_chunked() -> None:
    assert {"arag-chunks", "dpr", "pre-chunked"} == PRE_CHUNKED

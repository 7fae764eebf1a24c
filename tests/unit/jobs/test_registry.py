"""The registry of source formats, and the lists derived from it."""

import pytest

from arag_search.cli.app import run
from index_jobs.sources.registry import FORMATS, PRE_CHUNKED
from tests.support.guides import plain_text


def test_the_command_line_offers_and_explains_every_format(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["index", "--formats"]) == 0
    shown = capsys.readouterr().out
    for entry in FORMATS.values():
        assert f"{entry.name}  " in shown
        assert entry.summary in shown


def test_the_guide_says_of_every_format_what_the_command_line_says() -> None:
    guide = plain_text("index_jobs/README.md")
    for entry in FORMATS.values():
        assert f"| {entry.name} | {entry.summary} |" in guide


def test_every_format_reads_records_or_folders() -> None:
    for entry in FORMATS.values():
        assert entry.record or entry.folder


def test_chunk_files_and_rows_of_passages_are_pre_chunked() -> None:
    assert {"arag-chunks", "dpr", "pre-chunked"} == PRE_CHUNKED

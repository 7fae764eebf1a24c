"""A document with more passages than an ordinal can number is a bad file or record, and everything
else is read; long texts are cut by the processes that convert files, as they would be here."""

import json
from pathlib import Path

import pytest

from arag_search.corpus import Document
from arag_search.errors import BadFileError
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from index_jobs.cutting.chunking import cut, cut_up
from index_jobs.sources import source as reading
from index_jobs.sources.converters.registry import LARGE_BYTES
from index_jobs.sources.folders.selection import FileSelection
from index_jobs.sources.lines.files import Fields
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import open_sources
from index_jobs.sources.source import CorpusReader, Position, SeenIds
from index_jobs.updates.addition import add_documents
from index_jobs.updates.options import AddOptions
from tests.support.converted import written

TOO_LONG = "Some otters swim in the river Wye, and some in the sea. " * 17_000
"""Each passage of 16 tokens has half a sentence of it."""

GUIDE = "\n\n".join(
    f"{'#' * (number % 3 + 1)} Part {number}\n\nDr. A. Ada wrote no. {number} of it (“yes”). "
    f"And then:\n\n- one\n- two\n\n```\nfor {number}:\n    go()\n```\n\n水。火。"
    for number in range(1_500)
)


def read(folder: Path, *, skips: bool = True, tokens: int = 16) -> tuple[list[Document], Position]:
    files = FileSelection(skip_bad_files=skips)
    metadata = MetadataReader({})
    sources = open_sources([str(folder)], None, Fields(), metadata, files)
    for source in sources:
        source.chunk_tokens = tokens
    reader = CorpusReader(
        sources,
        metadata,
        Position(),
        SeenIds(),
        lambda _: False,
        skip_bad_lines=skips,
        skip_bad_files=skips,
    )
    batches = list(reader.batches())
    documents = [document for batch in batches for _, _, document in batch.documents]
    return documents, batches[-1].position


def test_a_long_text_is_a_bad_file(tmp_path: Path) -> None:
    written(tmp_path / "a.md", "An otter.")
    long = written(tmp_path / "b.txt", TOO_LONG)
    written(tmp_path / "c.md", "A beaver.")
    documents, position = read(tmp_path)
    assert [document.id for document in documents] == ["a.md", "c.md"]
    assert position.skipped_file_examples == (f"{long}: The document has 34,000 passages.",)
    with pytest.raises(BadFileError) as caught:
        read(tmp_path, skips=False)
    assert str(caught.value) == (
        "The document has 34,000 passages.\n"
        f"Where: {long}\n"
        "Allowed: at most 32,768 passages in one document\n"
        "Do: Split it, or raise `chunk_tokens`. "
        "Fix the file, or skip it with `skip_bad_files=True`."
    )


def test_a_long_record_or_cell_is_a_bad_record(tmp_path: Path) -> None:
    given = {"text": "", "sentence_ends": [], "passage_outlines": [{"sentences": 0}] * 32_769}
    records = [{"id": "a", "text": "An otter."}, {"id": "b", "text": TOO_LONG}]
    records += [given, {"id": "c", "text": "A beaver."}]
    lines = written(tmp_path / "c.jsonl", "\n".join(map(json.dumps, records)))
    rows = written(tmp_path / "c.csv", f'text\nAn otter.\n"{TOO_LONG}"\nA beaver.\n')
    for source, bad in ((lines, 2), (rows, 1)):
        documents, position = read(source)
        assert (len(documents), position.skipped, position.skipped_files) == (2, bad, 0)
        assert "34,000 passages" in position.skipped_examples[0]


def test_a_source_with_too_many_documents_has_bad_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_DOCUMENTS", 2)
    written(tmp_path / "a.csv", "text\na\nb\nc\n")
    written(tmp_path / "b.md", "An otter.")
    documents, position = read(tmp_path)
    assert (len(documents), position.skipped, position.skipped_files) == (2, 1, 1)


def test_a_folder_with_a_long_text_is_built_and_updated(tmp_path: Path) -> None:
    for name in "nm":
        (tmp_path / name).mkdir()
    written(tmp_path / "n" / "a.md", "An otter.")
    written(tmp_path / "n" / "b.txt", TOO_LONG)
    files = FileSelection(skip_bad_files=True)
    options = BuildOptions(files=files, chunk_tokens=16, language="en")
    report = build_index([str(tmp_path / "n")], tmp_path / "i", options)
    assert (report.documents, report.skipped_files) == (1, 1)
    more = written(tmp_path / "m" / "c.md", "A beaver.").parent
    written(more / "d.txt", TOO_LONG)
    added = add_documents([str(more)], tmp_path / "i", AddOptions(files=files))
    assert (added.added, added.skipped_files) == (1, 1)


@pytest.mark.parametrize("name", ["g.md", "g.txt"])
def test_a_long_text_is_cut_by_its_child_as_it_would_be_here(tmp_path: Path, name: str) -> None:
    written(tmp_path / name, GUIDE)
    assert len(GUIDE) > LARGE_BYTES
    (uncut,), _ = read(tmp_path, tokens=0)
    (document,), _ = read(tmp_path, tokens=200)
    assert document.passages
    assert not uncut.passages
    expected = cut(uncut, shard=0, number=0, chunk_tokens=200)
    assert cut(document, shard=0, number=0, chunk_tokens=200) == expected
    assert cut(cut_up(uncut, 200), shard=0, number=0, chunk_tokens=200) == expected

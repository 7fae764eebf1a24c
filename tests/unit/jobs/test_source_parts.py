"""Parts of sources, which other processes read: together they are the source, entry by entry."""

import gzip
import json
import mailbox
import os
import pickle
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from pathlib import Path

import pytest

from index_jobs.sources.folders.selection import FileSelection
from index_jobs.sources.lines.files import Fields
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import open_source
from index_jobs.sources.source import Source, SourcePart
from tests.support.corpus_files import in_own_folder  # noqa: F401

Read = tuple[int, int, str]
"""The position after an entry, its number in the source, and what it is."""

MANY = 40


def lines() -> str:
    records = [json.dumps({"id": f"d{n}", "text": f"Text {n}. " * (n % 7)}) for n in range(MANY)]
    records[3:3] = ["", "   ", "oops", '{"text": 3}']
    Path("c.jsonl").write_text("\ufeff" + "\r\n".join(records) + "\n\n")
    return "c.jsonl"


def packed_lines() -> str:
    Path("c.jsonl.gz").write_bytes(gzip.compress(Path(lines()).read_bytes()))
    return "c.jsonl.gz"


def array() -> str:
    record = {"corpus_name": "Sea", "context": "An opera."}
    Path("g.json").write_text(json.dumps([{**record, "n": n} for n in range(MANY)]))
    return "g.json"


def rows() -> str:
    body = [f'{n}\t"Text {n},\n\nwith ""lines"" of its own."\tT{n}\n' for n in range(MANY)]
    body[5:5] = ["\n", "1\t2\n"]
    Path("psgs.tsv").write_text("id\ttext\ttitle\n" + "".join(body))
    return "psgs.tsv"


def rows_without_names() -> str:
    Path("p.tsv").write_text("".join(f"{n}\tText {n}.\tT{n}\n" for n in range(MANY)))
    return "p.tsv"


def folder() -> str:
    folder = Path("notes/deep")
    folder.mkdir(parents=True)
    for number in range(MANY):
        (folder / f"{number:02}.md").write_text(f"# Title {number}\n\nSea. " * (number % 5 + 1))
    (folder / "07.md").write_bytes(b"\x00\x01\x02")
    (folder / "10-table.csv").write_text("name,year\n" + "".join(f"n{n},{n}\n" for n in range(9)))
    (folder / "11-table.csv").write_text("name,year\nwrong,1,2\nright,3\n")
    (folder / "12-broken.csv").write_bytes(b'a,b\n1,2\n"\x00\x00')
    box = mailbox.mbox("notes/deep/20-mail.mbox")
    for number in range(3):
        message = EmailMessage()
        message["Subject"] = f"Subject {number}"
        message.set_content("Sea.")
        box.add(message)
    box.close()
    return "notes"


def opened(name: str, *, skip_bad_files: bool = True) -> Source:
    selection = FileSelection(skip_bad_files=skip_bad_files).rooted([name])
    format = "dpr" if name == "p.tsv" else None
    return open_source(name, format, Fields(), MetadataReader({"year": "number"}), selection)


def read(source: Source, position: int = 0, entries: int = 0) -> Iterator[Read]:
    """Yield what a source has after a position, with the numbers that a reader gives."""
    for place, entry in source.documents(position):
        if entry is not None:
            yield place, entries, str(entry)
            entries += 1


def reads_of(parts: Iterator[SourcePart], folder: Path) -> list[list[Read]]:
    """Read each part where another process would, and check where it says that it ends."""
    reads: list[list[Read]] = []
    for part in parts:
        there: SourcePart = pickle.loads(pickle.dumps(part))
        before = Path.cwd()
        os.chdir(folder)
        try:
            reads.append(list(read(there.source, there.first, there.entries)))
        finally:
            os.chdir(before)
        if part.last is not None and reads[-1]:
            assert reads[-1][-1][0] == part.last
            assert reads[-1][-1][1] + 1 == part.last_entries
    return reads


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (lines, 42),
        (packed_lines, 42),
        (array, MANY),
        (rows, MANY + 1),
        (rows_without_names, MANY),
        (folder, 55),
    ],
)
def test_the_parts_of_a_source_are_the_source(
    make: Callable[[], str], count: int, tmp_path: Path
) -> None:
    name = make()
    whole = list(read(opened(name)))
    assert len(whole) == count
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for most_bytes in (1, 1 << 20):
        source = opened(name)
        parts = list(source.parts(0, 0, most_bytes))
        is_divided = make not in (packed_lines, array) and most_bytes < 1000
        assert (len(parts) > 1) == is_divided
        reads = reads_of(iter(parts), elsewhere)
        assert [entry for entries in reads for entry in entries] == whole
        assert [part.read_bytes for part in parts] == sorted(part.read_bytes for part in parts)
        assert parts[-1].read_bytes == source.size
    for done in (0, 1, 17, count - 1, count):
        position = whole[done - 1][0] if done else 0
        reads = reads_of(opened(name).parts(position, done, 100), elsewhere)
        assert [entry for entries in reads for entry in entries] == whole[done:]

"""Files of all formats with random changes are read, or refused with an error of ours, in time, and
what they lose is counted."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from random import Random
from typing import Any
from zipfile import ZipFile

import pytest

from index_jobs.sources.converters.registry import FILE_TYPES, file_type_of
from index_jobs.sources.folders.selection import FileSelection
from index_jobs.sources.lines.files import Fields
from index_jobs.sources.metadata import MetadataReader
from index_jobs.sources.opening import open_source
from index_jobs.sources.source import CorpusReader, Position, SeenIds
from tests.support.converted import FILES as KEPT
from tests.support.converted import archive, pdf_bytes
from tests.support.examples import examples

FILES = examples(10_000, share=30)
IN_A_FOLDER = 100
ARCHIVES = {".docx", ".pptx", ".xlsx", ".epub", ".odt", ".ods", ".odp"}
A_FILE_S = 240


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Write a sound file of each type."""
    import docx
    import openpyxl
    import pptx
    import pyarrow
    from pyarrow import parquet

    place = tmp_path_factory.mktemp("originals")
    texts: dict[str, str | bytes] = {
        "a.txt": "Ein Satz über Köln.\nNoch einer.\n",
        "a.md": "---\ntitle: T\n---\n# Heading\n\n```\n# code\n```\n* item\n",
        "a.py": "def f():\n    return 1\n",
        "a.org": "* Heading\nText.\n",
        "a.json": '{"a": ["b", 1]}',
        "conversations.json": '[{"name": "T", "uuid": "u", "chat_messages": [{"sender": "human",'
        ' "text": "Why?", "attachments": [{"extracted_content": "a"}]}]}, {"title": "U", "mapping":'
        ' {"b": {"message": {"author": {"role": "user"}, "content": {"parts": ["c"]}}}}}]',
        "a.jsonl": '{"id": 1, "text": "a"}\n{"id": 2, "text": "b"}\n',
        "a.ipynb": '{"cells": [{"cell_type": "markdown", "source": ["# Heading\\n", "Text."]}]}',
        "a.rst": "Heading\n=======\n\n.. note:: x\n",
        "a.html": "<!doctype html><meta charset=shift_jis><title>T</title><h1><button>Q</button>"
        "</h1><p style='display:block'>a<ruby>b<rt>c</rt></ruby><table><tr><td>1<td>2</table>",
        "a.xhtml": '<?xml version="1.0" encoding="utf-8"?><html><body><p>a<br/>b</p></body></html>',
        "a.csv": 'sep=;\nname;note\n"x; y";1\nz;"two\nlines"\n',
        "a.tsv": 'name\tnote\n"Big" Jim\t1\n',
        "a.pdf": pdf_bytes([[(20, "Title"), (12, "Some words-")], [], [(12, "More.")]], "T"),
        "a.mbox": "From a@b.c Tue Jan  2 10:00:00 2024\nFrom: a@b.c\nSubject: s\n\nBody.\n\n"
        "From \nSubject: t\n\nBody.\n",
    }
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "Jürgen <j@b.c>", "Grüße"
    mail.set_content("Plain.")
    mail.add_alternative("<p>HTML of more words than that.", subtype="html")
    mail.add_attachment(b"\0", maintype="image", subtype="png", filename="a.png")
    texts["a.eml"] = bytes(mail)
    texts["a.mht"] = b"MIME-Version: 1.0\nContent-Type: text/html\n\n<title>T</title><p>Text."
    for name, content in texts.items():
        (place / name).write_bytes(content.encode() if isinstance(content, str) else content)
    word: Any = docx.Document()
    word.add_heading("Heading", 1)
    word.add_paragraph("Text.")
    word.add_table(1, 2).cell(0, 0).text = "cell"
    word.save(str(place / "a.docx"))
    deck: Any = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Title"
    deck.save(str(place / "a.pptx"))
    book: Any = openpyxl.Workbook()
    book.active.append(["a", 1, None, 2.5])
    book.save(place / "a.xlsx")
    parquet.write_table(pyarrow.table({"text": ["a", "b"], "n": [1, 2]}), place / "a.parquet")
    archive(
        place / "a.epub",
        {
            "META-INF/container.xml": '<container><rootfile full-path="p.opf"/></container>',
            "p.opf": '<package><title>T</title><item id="c" href="c.html"'
            ' media-type="text/html"/><itemref idref="c"/></package>',
            "c.html": "<p>Chapter.",
        },
    )
    for name in ("lists_of_libreoffice.odt", "cells_of_libreoffice.ods", "deck_of_libreoffice.odp"):
        shutil.copy(KEPT / name, place)
    files = sorted(place.iterdir())
    types = [file_type_of(file.name) for file in files]
    assert all(kind in types for kind in FILE_TYPES.values())
    return files


def mutated(data: bytes, chance: Random) -> bytes:
    """Return data with one to four random changes."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4))):
        start = chance.randrange(len(changed) + 1)
        end = min(len(changed), start + chance.choice((1, 1, 2, 16, 200)))
        match chance.randrange(7):
            case 0:
                changed[start:end] = chance.randbytes(end - start)
            case 1:
                del changed[start:end]
            case 2:
                changed[start:start] = chance.randbytes(chance.choice((1, 3, 30)))
            case 3:
                changed[start:start] = changed[start:end] * chance.choice((1, 2, 50))
            case 4:
                del changed[start:]
            case 5:
                changed[start:end] = bytes(end - start)
            case _:
                piece = chance.choice(
                    (b"<", b'"', b"\n\n", b"From ", b"\x1b$B", b"\xff\xfe", b"<!--")
                )
                changed[start:start] = piece
    return bytes(changed)


def write_mutated(original: Path, target: Path, chance: Random) -> None:
    """Write a mutated copy; half of the archives are mutated inside, where they still open."""
    if original.suffix in ARCHIVES and chance.random() < 0.5:
        with ZipFile(original) as file:
            members = {name: file.read(name) for name in file.namelist()}
        name = chance.choice(sorted(members))
        archive(target, {**members, name: mutated(members[name], chance)})
    else:
        target.write_bytes(mutated(original.read_bytes(), chance))


@pytest.fixture
def alarmed() -> Iterator[None]:
    """Raise TimeoutError where a folder takes longer than any of its files may."""

    def ring(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("seed", range(max(1, FILES // IN_A_FOLDER)))
def test_mutated_files_are_read_or_refused_and_what_they_lose_is_counted(
    originals: list[Path], tmp_path: Path, alarmed: None, seed: int
) -> None:
    chance = Random(f"{seed} {os.environ.get('ARAG_TEST_SEED', 0)}")
    for number in range(IN_A_FOLDER):
        original = originals[number % len(originals)]
        write_mutated(original, tmp_path / f"{number:03}{original.name}", chance)
    signal.alarm(A_FILE_S)
    metadata = MetadataReader({})
    files = FileSelection(skip_bad_files=True).rooted([str(tmp_path)])
    source = open_source(str(tmp_path), "files", Fields(), metadata, files)
    start = Position()
    reader = CorpusReader(
        [source],
        metadata,
        start,
        SeenIds(),
        lambda _: False,
        skip_bad_lines=True,
        skip_bad_files=True,
    )
    empty = 0
    read: set[str] = set()
    position = start
    for batch in reader.batches():
        documents = [document for _, _, document in batch.documents]
        empty += sum(not document.text for document in documents)
        read.update(document.id.partition("#")[0] for document in documents)
        position = batch.position
    counted = sum(
        entry[0] for kind, entry in position.unread.items() if kind.startswith("documents without")
    )
    assert counted == empty
    bad = {
        example.partition(":")[0].partition(",")[0] for example in position.skipped_file_examples
    }
    unseen = {path.name for path in tmp_path.iterdir()} - read
    unseen -= {Path(name).name for name in bad}
    assert position.skipped_files == len(position.skipped_file_examples)
    not_text = {name for name in unseen if Path(name).suffix in (".json", ".org", ".py")}
    assert position.unread.get("left out, no text", [0])[0] == len(not_text)
    unseen -= not_text
    # what is left is a table or a mailbox of no good records
    records = (".csv", ".tsv", ".mbox", ".parquet", ".jsonl")
    assert {name for name in unseen if Path(name).suffix not in records} == set()
    shutil.rmtree(tmp_path)

"""Slide decks (.pptx): the text of shapes and tables, and the speaker's notes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from index_jobs.sources.converters.archives import check_archive
from index_jobs.sources.converters.base import (
    ConvertedDocument,
    check_length,
    reading,
    sensible_title,
)
from index_jobs.sources.formats import Fields


def convert(path: Path, where: str, fields: Fields) -> Iterator[ConvertedDocument]:
    """Yield the file as one document. Every slide begins with a line ``[slide N]``. See
    Converter."""
    kind = "a slide deck"
    check_archive(path, where, kind)
    with path.open("rb") as file, reading(kind, where):
        document = _document(file, where)
    yield document


def _document(file: IO[bytes], where: str) -> ConvertedDocument:
    from pptx import Presentation

    deck: Any = Presentation(file)
    title = sensible_title(deck.core_properties.title)
    slides: list[str] = []
    characters = 0
    for number, slide in enumerate(deck.slides, 1):
        blocks = [f"[slide {number}]", *_blocks(slide.shapes)]
        if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) is not None:
            notes = _text_of(frame)
            blocks += [f"Notes: {notes}"] if notes else []
        if not title and slide.shapes.title is not None:
            title = sensible_title(slide.shapes.title.text_frame.text)
        slides.append("\n".join(blocks))
        characters += len(slides[-1])
        check_length(characters, where)
    return ConvertedDocument("", title, "\n\n".join(slides))


def _blocks(shapes: Any) -> Iterator[str]:
    """Yield the text of every shape that has some, in the order of the file."""
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _blocks(shape.shapes)
        elif shape.has_text_frame:
            if text := _text_of(shape.text_frame):
                yield text
        elif getattr(shape, "has_table", False):
            for row in shape.table.rows:
                cells = [" ".join(cell.text_frame.text.split()) for cell in row.cells]
                if any(cells):
                    yield " | ".join(cells)


def _text_of(frame: Any) -> str:
    lines = (" ".join(line.split()) for line in frame.text.replace("\v", "\n").split("\n"))
    return "\n".join(line for line in lines if line)

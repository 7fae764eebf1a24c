"""Slide decks: the text of their slides, with notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from index_jobs.sources.converters.archives import converter, joined, sectioned_document, unescaped
from index_jobs.sources.converters.office.runs import FALLBACK, A, SeenText, Styles
from index_jobs.sources.converters.registry import ConvertedDocument, sensible_title

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element  # as which lxml's elements are used here

_SEEN = SeenText(Styles())  # no styles: looks of slides stand at their runs
_TITLES = ".//p:sp[.//p:ph[@type='title' or @type='ctrTitle']]/p:txBody"
_FRAME = "{http://schemas.openxmlformats.org/presentationml/2006/main}txBody"


def _slide_document(file: IO[bytes]) -> ConvertedDocument:
    """Return a deck as a document. Every slide begins with a line ``[slide N]``."""
    from pptx import Presentation

    deck: Any = Presentation(file)
    title = sensible_title(deck.core_properties.title)
    slides: list[tuple[str, list[str]]] = []
    for number, slide in enumerate(deck.slides, 1):
        blocks = list(_blocks(slide.element))
        if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) is not None:
            notes = _text_of(frame._txBody)
            blocks += [f"Notes: {notes}"] if notes else []
        title = title or sensible_title("".join(map(_text_of, slide.element.xpath(_TITLES)[:1])))
        slides.append((str(number), "\n".join(blocks).split("\n")))
    return sectioned_document(title, "slide", slides, [slide.element for slide in deck.slides])


convert = converter("a slide deck", _slide_document)


def _blocks(slide: Any) -> Iterator[str]:
    """Yield the texts of shapes and the lines of tables.

    A shape with a formula stands in the file a second time, without text, for older programs. That
    copy is removed first.
    """
    for fallback in list(slide.iter(FALLBACK)):
        fallback.getparent().remove(fallback)
    for element in slide.iter(_FRAME, f"{A}tr"):
        if element.tag == _FRAME:
            yield from filter(None, (_text_of(element),))
        else:
            cells = (" ".join(_text_of(cell).split()) for cell in element.iter(f"{A}tc"))
            yield from filter(None, (joined(cells),))


def _text_of(element: Element) -> str:
    """Return the lines below an element, with text and symbols as they are seen."""
    text = unescaped(_SEEN.of(element)).replace("\v", "\n")
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(filter(None, lines))

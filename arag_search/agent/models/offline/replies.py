"""Read the passages that tool results show from their text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from arag_search.agent.models.offline.names import plain
from arag_search.tools.document_search import GO_DEEPER
from arag_search.tools.references import FORM
from arag_search.tools.rendering import NOT_SHOWN
from arag_search.tools.reply_text import (
    ShownPassage,
    continues,
    leaves_out,
    passages_at,
    passages_in,
    read_spans,
    total_of,
)

_LABEL = re.compile(r"^(?:lines? )?(\d+)(?:-\d+)?: (?:\.\.\. )?")
_OWN_LINES = (NOT_SHOWN, GO_DEEPER, "Viewing lines [")


@dataclass(frozen=True, slots=True)
class SeenPassage:
    """A passage as a result shows it, or a document, whose first place shown is at ``line``.
    ``whole`` says that no text is left out, ``continues`` that some of it was shown before."""

    id: str
    title: str
    text: str
    whole: bool
    continues: bool = False
    line: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply of a tool. ``total`` is None if it gives none."""

    passages: tuple[SeenPassage, ...]
    total: int | None


def read_reply(text: str, *, whole: bool = False) -> Reply:
    """Read a result. ``whole`` is for results of chunk_read, which show passages in full. The
    nearest passages of a query without a match do not count as found."""
    total = total_of(text)
    shown = [] if total == 0 else passages_in(text, of_read=whole)
    return Reply(tuple(_passage(passage, whole) for passage in shown), total)


def read_documents(text: str, *, opened: bool = False) -> Reply:
    """Read a result of search, or of open, whose passages are documents by their references."""
    spans = read_spans(text, of_read=True)
    documents: list[SeenPassage] = []
    for shown in passages_at(text, spans):
        if not FORM.fullmatch(shown.id):
            continue
        lines = [line for line in shown.text.split("\n") if not line.startswith(_OWN_LINES)]
        place = _LABEL.match(lines[0]) if lines else None
        content = plain(" ".join(_LABEL.sub("", line) for line in lines))
        at = 0 if place is None else int(place[1])
        documents.append(SeenPassage(shown.id, shown.title, content, opened, line=at))
    return Reply(tuple(documents), len(documents))


def _passage(shown: ShownPassage, whole: bool) -> SeenPassage:
    text = plain(shown.text.replace("\n", " "))
    return SeenPassage(shown.id, shown.title, text, whole or not leaves_out(text), continues(text))

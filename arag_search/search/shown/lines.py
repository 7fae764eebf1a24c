"""A list of all sentences that match, each on a line with its number and the name of its unit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from arag_search.corpus import PATH_MARK, split_at
from arag_search.engines.hits import Hit
from arag_search.search.shown.apart import marked
from arag_search.search.shown.form import Entry, Form
from arag_search.search.shown.writing import one_line, shown_id, shown_title
from arag_search.tokens import cut_to

SAME_TEXT = "same"
"""Stands in a list for the text of the line above it."""
LINE_TOKENS = 40
_CLAUSE_END = re.compile(r"[.!?:;][)\]\"'”]* ")


class Lines(Form):
    """All sentences that match best or, at sentence granularity, all that match. Those of a
    document are together, below its title."""

    __slots__ = ()

    def entries(self, hits: Sequence[Hit], first_match: Callable[[str, str], int]) -> list[Entry]:
        """See Form. A text that is that of the line before it is not repeated."""
        entries: list[Entry] = []
        documents: dict[str, list[Hit]] = {}
        for hit in hits:
            documents.setdefault(hit.doc_id, []).append(hit)
        before = ""
        for passages in documents.values():
            intro = shown_title(passages[0].title)
            for hit in sorted(passages, key=lambda passage: passage.part):
                sentences = split_at(hit.content, hit.sentence_ends)
                shown = [number for number in hit.sentences if sentences[number].strip()]
                written: list[str] = []
                for number, name, text in _lines(hit, sentences, shown, first_match):
                    text = "" if text == name else SAME_TEXT if text == before and name else text
                    before = before if text in ("", SAME_TEXT) else text
                    written.append(f"{number}: {': '.join(filter(None, (name, text)))}")
                header = f"[{shown_id(hit.id)}]"
                entries.append(Entry(hit, header, marked(intro and f"{intro}:"), shown, written))
                intro = ""
        return entries


def _lines(
    hit: Hit,
    sentences: Sequence[str],
    shown: Sequence[int],
    first_match: Callable[[str, str], int],
) -> Iterator[tuple[int, str, str]]:
    """Yield for each sentence the number of its line or, in a document that is no file, its own;
    the name of its unit; and its text from the beginning of what matches."""
    starts = list(accumulate(map(len, sentences), initial=0))
    path = hit.outline.path.rpartition(PATH_MARK)[2]
    for number in shown:
        unit = hit.outline.unit_of(number)
        sentence = sentences[number]
        start = starts[number] + len(sentence) - len(sentence.lstrip())
        line = hit.outline.line + hit.content.count("\n", 0, start)
        text = one_line(sentences[number]).lstrip("# ")
        start = _clause_start(text, first_match(text, hit.doc_id))
        text = cut_to(text[start:], LINE_TOKENS)
        name = cut_to(unit.name if unit else path, LINE_TOKENS // 2)
        yield line if hit.outline.line else number + 1, name, text


def _clause_start(text: str, match: int) -> int:
    """Return where a line begins that shows the match in a sentence: after the last mark before it
    or, if that is far away, some words before it."""
    start = max((mark.end() for mark in _CLAUSE_END.finditer(text, 0, match)), default=0)
    far = text.find(" ", match - LINE_TOKENS) + 1 if match - start > 2 * LINE_TOKENS else start
    return max(start, far) if far <= match else start

"""The entries of lists: titles, documents with the numbers of their matches, lines of text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from arag_search.corpus import NO_OUTLINE, PATH_MARK, split_at
from arag_search.engines.hits import Hit
from arag_search.search.results import SearchResult
from arag_search.tokens import cut_to
from arag_search.tools.replies.apart import marked
from arag_search.tools.replies.block import Block, Paragraph, one_paragraph, passage_block
from arag_search.tools.replies.spans import Kind
from arag_search.tools.replies.writing import header_line, one_line, shown_id, shown_title

SAME_TEXT = "same"
"""Stands in a list for the text of the line above it."""
BEFORE = "... "
"""Stands for the beginning of a line that is left out."""
_LINE_TOKENS = 40
_CLAUSE_END = re.compile(r"[.!?:;][)\]\"'”]* ")


def list_blocks(result: SearchResult) -> list[Block]:
    """Return the entries of a list as its form of reply has them: lines of text, documents with
    the numbers of their matches, or titles."""
    form = result.asked.form
    if form.reads_text:
        return list(_lines_by_document(result))
    blocks: list[Block] = []
    for at, hit in enumerate(result.hits):
        parts, outline = (1, NO_OUTLINE) if form.of_documents else (hit.parts, hit.outline)
        header = header_line(hit.id, hit.title, hit.part, parts, outline)
        matches = f": {hit.matches:,}" if form.of_documents else ""
        blocks.append(_block(at, hit, f"{header}{matches}", "title"))
    return blocks


def _block(at: int, hit: Hit, header: str, kind: Kind, **fields: Any) -> Block:
    sentences = split_at(hit.content, hit.sentence_ends)
    return passage_block(hit, header, sentences, kind=kind, at=at, **fields)


def _lines_by_document(result: SearchResult) -> Iterator[Block]:
    """Yield the passages of each document together, below its title, each sentence on a line. A
    text that repeats the line before it is left out."""
    documents: dict[str, list[tuple[int, Hit]]] = {}
    for at, hit in enumerate(result.hits):
        documents.setdefault(hit.doc_id, []).append((at, hit))
    before = ""
    for passages in documents.values():
        title = shown_title(passages[0][1].title)
        intro = marked(f"{title}:") if title else ""
        for at, hit in sorted(passages, key=lambda passage: passage[1].part):
            sentences = split_at(hit.content, hit.sentence_ends)
            shown = [number for number in hit.sentences if sentences[number].strip()]
            written: dict[int, str] = {}
            cut: set[int] = set()
            for number, line, name, text, is_whole in _lines(result, hit, sentences, shown):
                text = "" if text == name else SAME_TEXT if text == before and name else text
                before = before if text in ("", SAME_TEXT) else text
                written[number] = f"{line}: {': '.join(filter(None, (name, text)))}"
                cut.update(() if is_whole else (number,))
            block = _block(at, hit, f"[{shown_id(hit.id)}]", "lines", intro=intro)
            block.shown, block.partial = shown, frozenset(cut)
            block.write = partial(_joined, written)
            yield block
            intro = ""


def _joined(written: Mapping[int, str], block: Block) -> list[Paragraph]:
    return one_paragraph(block, "\n".join([written[number] for number in block.shown]))


def _lines(
    result: SearchResult, hit: Hit, sentences: Sequence[str], shown: Sequence[int]
) -> Iterator[tuple[int, int, str, str, bool]]:
    """Yield the sentences to show. Each has its number, the number of its line, the name of its
    unit, and its text from the beginning of the match. Last comes whether this is all of its text.
    In a document that is no file, its own number, from 1, stands for the line."""
    starts = list(accumulate(map(len, sentences), initial=0))
    path = hit.outline.path.rpartition(PATH_MARK)[2]
    for number in shown:
        unit = hit.outline.unit_of(number)
        sentence = sentences[number]
        start = starts[number] + len(sentence) - len(sentence.lstrip())
        line = hit.outline.line + hit.content.count("\n", 0, start)
        text = one_line(sentence).lstrip("# ")
        start = _clause_start(text, result.first_match(text, hit.doc_id))
        shown_text = cut_to(f"{BEFORE}{text[start:]}" if start else text, _LINE_TOKENS)
        name = cut_to(unit.name if unit else path, _LINE_TOKENS // 2)
        line = line if hit.outline.line else number + 1
        yield number, line, name, shown_text, shown_text == text


def _clause_start(text: str, match: int) -> int:
    """Return where a line that shows the match in a sentence begins. It begins after the last mark
    before the match or, if that is far away, some words before the match."""
    start = max((mark.end() for mark in _CLAUSE_END.finditer(text, 0, match)), default=0)
    far = text.find(" ", match - _LINE_TOKENS) + 1 if match - start > 2 * _LINE_TOKENS else start
    return max(start, far) if far <= match else start

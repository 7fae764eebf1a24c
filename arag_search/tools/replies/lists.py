"""The entries of lists: titles, documents with the numbers of their matches, lines of text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate

from arag_search.corpus import NO_OUTLINE, PATH_MARK, split_at
from arag_search.engines.hits import Hit
from arag_search.search.results import SearchResult
from arag_search.tokens import cut_to
from arag_search.tools.replies.apart import marked
from arag_search.tools.replies.block import WHOLE_DOCUMENT, Block, one_paragraph, passage_block
from arag_search.tools.replies.writing import header_line, one_line, shown_id, shown_title

SAME_TEXT = "same"
"""Stands in a list for the text of the line above it."""
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
        blocks.append(_block(at, hit, f"{header}{matches}"))
    return blocks


def _block(
    at: int, hit: Hit, header: str, intro: str = "", shown: Sequence[int] = (), text: str = ""
) -> Block:
    block = passage_block(hit, header, split_at(hit.content, hit.sentence_ends), intro=intro)
    block.write = partial(one_paragraph, text=text)
    block.shown, block.at = list(shown), at
    block.kind, block.whole = "lines" if text else "title", WHOLE_DOCUMENT
    return block


def _lines_by_document(result: SearchResult) -> Iterator[Block]:
    """Yield the passages of each document together, below its title, each sentence on a line. A
    text that is that of the line before it is not repeated."""
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
            written: list[str] = []
            for number, name, text in _lines(result, hit, sentences, shown):
                text = "" if text == name else SAME_TEXT if text == before and name else text
                before = before if text in ("", SAME_TEXT) else text
                written.append(f"{number}: {': '.join(filter(None, (name, text)))}")
            yield _block(at, hit, f"[{shown_id(hit.id)}]", intro, shown, "\n".join(written))
            intro = ""


def _lines(
    result: SearchResult, hit: Hit, sentences: Sequence[str], shown: Sequence[int]
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
        text = one_line(sentence).lstrip("# ")
        start = _clause_start(text, result.first_match(text, hit.doc_id))
        text = cut_to(text[start:], _LINE_TOKENS)
        name = cut_to(unit.name if unit else path, _LINE_TOKENS // 2)
        yield line if hit.outline.line else number + 1, name, text


def _clause_start(text: str, match: int) -> int:
    """Return where a line begins that shows the match in a sentence: after the last mark before it
    or, if that is far away, some words before it."""
    start = max((mark.end() for mark in _CLAUSE_END.finditer(text, 0, match)), default=0)
    far = text.find(" ", match - _LINE_TOKENS) + 1 if match - start > 2 * _LINE_TOKENS else start
    return max(start, far) if far <= match else start

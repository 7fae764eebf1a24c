"""Replies as papers have them: for each passage its id and text, best first, and nothing else. No
counts, no word on how a query was understood, no note, no mended query.

A-RAG's chunks have no titles, and its snippets are all sentences that match; LogicalRAG shows
whole passages with titles. The papers print no layout, and no reply to a search that finds nothing
or to a query that cannot be parsed: these are our choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from arag_search.corpus import Chunk, split_at
from arag_search.search.hits import SearchHit, join_sentences
from arag_search.search.shown.writing import shown_id, shown_title
from arag_search.tools.base import ReadSet, ToolResult, error_result
from arag_search.tools.preset import ReplyPaper
from arag_search.tools.rendering import Block, PassageSpan, fit, names, retrieved_tokens

NOTHING_FOUND = "Nothing was found."
NOT_READABLE = "Query not run: it cannot be parsed."
READ_BEFORE = "was read before."


@dataclass(slots=True)
class PaperBlock(Block):
    """A passage: its id, its title if the paper has titles, and sentences, with ``...`` for others
    that are left out."""

    has_title: bool = False

    @staticmethod
    def of_hit(hit: SearchHit, paper: ReplyPaper, *, whole: bool) -> PaperBlock:
        """Return the hit of a search, with all sentences if ``whole``, else with its snippet."""
        sentences = split_at(hit.content, hit.sentence_ends)
        shown = range(len(sentences)) if whole else hit.sentences
        return _block(hit.id, hit.title, sentences, shown, paper)

    @property
    def uncut_body(self) -> str:
        return join_sentences(self.sentences, self.shown)

    @property
    def retrieved_title(self) -> str:
        # Only a title that is shown counts.
        return shown_title(self.title) if self.has_title else ""

    def spans(self, start: int) -> Iterator[PassageSpan]:
        end = start + len(str(self))
        yield PassageSpan(
            id=self.id,
            title=self.title,
            start=start,
            text_start=end - len(self.body),
            end=end,
            sentences=tuple(number + 1 for number in self.shown),
            whole=len(self.shown) == len(self.sentences) and self.cut is None,
        )


def _block(
    id: str, title: str, sentences: Sequence[str], shown: Sequence[int], paper: ReplyPaper
) -> PaperBlock:
    has_title = paper == "LogicalRAG" and bool(title)
    header = f"[{shown_id(id)}] {shown_title(title)}" if has_title else f"[{shown_id(id)}]"
    return PaperBlock(id, title, header, sentences, list(shown), has_title=has_title)


def read_reply(
    ids: Sequence[str],
    stored: Mapping[str, Chunk],
    read_set: ReadSet,
    paper: ReplyPaper,
    max_tokens: int,
) -> ToolResult:
    """Return whole passages, with a line for those that were read before and one for ids that no
    passage has. All ids that are asked for count as read (A-RAG's Algorithm 1)."""
    before = [id for id in ids if id in read_set.read]
    unknown = [id for id in ids if id not in stored and id not in before]
    new = [stored[id] for id in ids if id in stored and id not in before]
    read_set.read.update(ids)
    share = max_tokens // 8
    lines = [f"Chunk {names([id], share)} {READ_BEFORE}" for id in before]
    if unknown:
        lines.append(f"Unknown: {names(unknown, share)}.")
    if not new and not before:
        return error_result("\n".join(lines))
    blocks = [
        _block(chunk.id, chunk.title, sentences, range(len(sentences)), paper)
        for chunk in new
        for sentences in (chunk.sentences(),)
    ]
    text, kept, spans = fit(lambda _: ("", "\n".join(lines)), blocks, max_tokens, whole=True)
    return ToolResult(
        text=text,
        status="ok" if kept else "empty",
        ids=tuple(block.id for block in kept),
        retrieved_tokens=retrieved_tokens(kept),
        passages=spans,
    )

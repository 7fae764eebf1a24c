"""Replies as papers have them: for each passage its id and text, best first, and nothing else. No
counts, no word on how a query was understood, no note, no mended query.

A-RAG's chunks have no titles, and its snippets are all sentences that match; LogicalRAG shows whole
passages with titles. The layout is our choice, since the papers print none. So are the replies to a
search that finds nothing and to a query that cannot be parsed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arag_search.corpus import Chunk, split_at
from arag_search.engines.hits import Hit
from arag_search.tools.preset import ReplyPaper
from arag_search.tools.replies.block import Block, joined, retrieved_tokens
from arag_search.tools.replies.fit import fit
from arag_search.tools.replies.spans import names
from arag_search.tools.replies.writing import shown_id, shown_title
from arag_search.tools.tool import ReadSet, ToolResult, error_result

NOTHING_FOUND = "Nothing was found."
NOT_READABLE = "Query not run: it cannot be parsed."
READ_BEFORE = "was read before."


def paper_block(
    passage: Hit | Chunk, paper: ReplyPaper, shown: Sequence[int] | None = None
) -> Block:
    """Return a passage: its id, its title if the paper has titles, and its sentences. ``shown`` are
    the numbers of the sentences to show (default: all); ``...`` stands for the others."""
    title = shown_title(passage.title) if paper == "LogicalRAG" else ""
    sentences = split_at(passage.content, passage.sentence_ends)
    numbers = list(range(len(sentences)) if shown is None else shown)
    header = f"[{shown_id(passage.id)}] {title}".rstrip()
    return Block(passage.id, passage.title, header, sentences, numbers, joined, title)


def read_reply(
    ids: Sequence[str],
    stored: Mapping[str, Chunk],
    read_set: ReadSet,
    paper: ReplyPaper,
    max_tokens: int,
) -> ToolResult:
    """Return whole passages, with a line for passages that were read before and a line for unknown
    ids. All ids that are asked for count as read (A-RAG's Algorithm 1)."""
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
    blocks = [paper_block(chunk, paper) for chunk in new]
    text, kept, spans = fit(lambda _: ("", "\n".join(lines)), blocks, max_tokens, whole=True)
    return ToolResult(
        text=text,
        status="ok" if kept else "empty",
        ids=tuple(block.id for block in kept),
        retrieved_tokens=retrieved_tokens(kept),
        passages=spans,
    )

"""chunk_read: the tool of A-RAG that shows passages in full."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from arag_search.corpus import Chunk, kind_of, typed_id
from arag_search.search.reading.documents import ReadChunk
from arag_search.search.reading.occurrences import Sentences
from arag_search.search.reading.snippets import best_sentence
from arag_search.tokens import count_tokens, cut_to
from arag_search.tools.replies.apart import cut_marked
from arag_search.tools.replies.block import (
    Block,
    note_seen,
    passage_block,
    retrieved_tokens,
    without_visible,
)
from arag_search.tools.replies.fit import LEAST_TOKENS
from arag_search.tools.replies.papers import read_reply
from arag_search.tools.replies.spans import NOT_SHOWN, PassageSpan, metadata_text, names
from arag_search.tools.replies.writing import header_line, meant_id
from arag_search.tools.tool import Arguments, Mistake, ReadSet, Tool, ToolResult

MAX_IDS = 20
NEAR_TOKENS = 160
"""The number of tokens that ``near`` shows, unless a single sentence is longer."""
IN_BRACKETS = "Ids stand in brackets in search replies."
UNKNOWN = "Unknown: "
SHOWN_UP_TO = "Shown up to sentence "
GO_ON = "from_sentence {}"
GO_ON_NEAR = 'near "sentence {}"'

ChunkId = Annotated[str, Field(min_length=1)]
_SENTENCE = re.compile(r"sentence (\d{1,9})", re.ASCII)


class ChunkReadArguments(Arguments):
    """The arguments of chunk_read."""

    chunk_ids: list[ChunkId] = Field(
        min_length=1, max_length=MAX_IDS, description="Ids as searches show them in brackets."
    )
    from_sentence: int = Field(
        1, ge=1, description="Sentence to start from; above 1 with one id only."
    )
    near: str = Field("", description='With one id; also what "Go on:" says.')


class ChunkRead(Tool):
    """A tool that shows whole chunks. A chunk that does not fit is cut after a sentence, and the
    reply says where to continue.

    The reply says for every chunk what is left out, and leaves out sentences that are still
    visible. ``near`` shows the sentences of a chunk around words, or from a sentence on. Tools of
    papers have ``from_sentence`` or, with ``replies``, show whole chunks as their paper does.
    """

    name = "chunk_read"
    arguments = ChunkReadArguments

    def _hidden(self) -> tuple[str, ...]:
        if self.preset.replies is not None:
            return ("from_sentence", "near")
        return ("near",) if self.preset.reproduces else ("from_sentence",)

    def _call(self, arguments: ChunkReadArguments, read_set: ReadSet) -> ToolResult:
        known, ids = self._read(list(dict.fromkeys(map(typed_id, arguments.chunk_ids))))
        if len(ids) > 1 and (part := _part_asked(arguments)):
            raise Mistake(
                f"Tool not run: {part} with {len(ids)} ids. It takes one; read the others in "
                "another call."
            )
        if (paper := self.preset.replies) is not None:
            return read_reply(ids, known, read_set, paper, self.max_result_tokens)
        unknown = [id for id in ids if id not in known]
        if len(unknown) == len(ids):
            none = "No passage has the id" if len(ids) == 1 else "No passages have the ids"
            named = names(unknown, self.max_result_tokens // 2)
            raise Mistake(f"{none} {named}. {IN_BRACKETS}")
        chunks = self.index.with_neighbours([known[id] for id in ids if id in known])
        wanted = self._wanted(arguments, chunks[0].chunk) if len(chunks) == 1 else None
        go_on = GO_ON if "near" in self.hidden else GO_ON_NEAR
        reply = _Reply(self.max_result_tokens, read_set, unknown, go_on)
        for at, read_chunk in enumerate(chunks):
            later = [later.chunk.id for later in chunks[at + 1 :]]
            reply.add(read_chunk, wanted, later, again=bool(arguments.near.strip()))
        return reply.result()

    def _wanted(self, arguments: ChunkReadArguments, chunk: Chunk) -> range:
        """Return the sentences (0-based) of a chunk that are asked for. Raises Mistake if there are
        none."""
        near, sentences = arguments.near.strip(), len(chunk.sentence_ends)
        numbered = _SENTENCE.fullmatch(near)
        if near and not numbered:
            return _near(chunk, near, self.index.manifest.language)
        first = int(numbered[1]) if numbered else arguments.from_sentence
        if not 1 <= first <= max(sentences, 1):
            raise Mistake(
                f'Tool not run: there is no sentence {first} in passage "{chunk.id}", which has '
                f"{sentences}. Allowed: 1 to {max(sentences, 1)}."
            )
        return range(first - 1, sentences)

    def _read(self, ids: list[str]) -> tuple[dict[str, Chunk], list[str]]:
        """Return the chunks that exist, by id, and the ids that are meant by those asked for."""
        asked = list(dict.fromkeys([*ids, *map(meant_id, ids)]))
        known = {chunk.id: chunk for chunk in self.index.read(asked) if chunk is not None}
        return known, list(dict.fromkeys(id if id in known else meant_id(id) for id in ids))


def _part_asked(arguments: ChunkReadArguments) -> str:
    """Return the first argument that asks for a part of a chunk; empty if there is none."""
    for name in ("from_sentence", "near"):
        if getattr(arguments, name) != ChunkReadArguments.model_fields[name].default:
            return name
    return ""


def _near(chunk: Chunk, words: str, language: str) -> range:
    """Return the sentences around the one with most of the words. Raises Mistake if no sentence has
    any of them."""
    text = Sentences(chunk.content, chunk.sentence_ends, kind_of(chunk.doc_id))
    sentences = chunk.sentences()
    best = best_sentence(words, text, language)
    if best is None:
        raise Mistake(
            f'Tool not run: no sentence of passage "{chunk.id}" has a word of near. Use words '
            "that stand in it, or read it without near."
        )
    room = NEAR_TOKENS - count_tokens(sentences[best])
    start, stop = best, best + 1
    while start > 0 or stop < len(sentences):
        after = stop < len(sentences) and stop - best <= best - start + 1
        number = stop if after or start == 0 else start - 1
        room -= count_tokens(sentences[number])
        if room < 0:
            break
        start, stop = min(start, number), max(stop, number + 1)
    return range(start, stop)


class _Reply:
    def __init__(self, max_tokens: int, read_set: ReadSet, unknown: list[str], go_on: str) -> None:
        self.max_tokens = max_tokens
        self.go_on = go_on
        self.read_set = read_set
        self.unknown = unknown
        self.lines: list[str] = []
        self.spans: list[PassageSpan] = []
        self.left_out: list[str] = []
        self.retrieved = 0
        self.has_text = False

    def add(
        self, read_chunk: ReadChunk, wanted: range | None, later: list[str], *, again: bool
    ) -> None:
        """Show the wanted sentences (0-based) of a chunk, or all, with marks for sentences left
        out. If they do not fit, show as many as fit, or leave the chunk out if text of another
        chunk is shown already. ``later`` chunks follow. Sentences that are still visible are shown
        only if they are wanted ``again``."""
        chunk = read_chunk.chunk
        sentences = chunk.sentences()
        header, _, about = chunk_header(read_chunk, self.max_tokens // 4).partition("\n")
        block = passage_block(chunk, header, sentences, about=about)
        numbers = range(len(sentences)) if wanted is None else wanted
        chosen = [number for number in numbers if number < len(sentences)]
        without_visible(block, chosen, self.read_set, again=again)
        if not self._add_if_it_fits(block, later) and (
            self.has_text or not self._put_beginning(block, later)
        ):
            self.left_out.append(chunk.id)
            return
        self.has_text = self.has_text or bool(block.body)
        self.retrieved += retrieved_tokens([block])
        note_seen(block, self.read_set)

    def _put_beginning(self, block: Block, later: list[str]) -> bool:
        """Show as many sentences as fit, at least one, cut if it alone is too long; return False if
        not even that fits."""
        is_cut = False
        while block.shown:
            over = count_tokens(self._text(block, is_cut)) - self._room(later)
            if over <= 0:
                return self._add_if_it_fits(block, later, is_cut)
            is_cut = True
            while over > 0 and len(block.shown) > 1:
                over -= count_tokens(block.sentences[block.shown.pop()])
            if over > 0:
                room = count_tokens(block.body) - over - 2
                if room >= LEAST_TOKENS:
                    block.cut = cut_marked(block.body, room)
                elif block.about:
                    block.about = ""
                else:
                    return False
        return False

    def _add_if_it_fits(self, block: Block, later: list[str], is_cut: bool = False) -> bool:
        text = self._text(block, is_cut)
        if count_tokens(text) > self._room(later):
            return False
        self.spans += block.spans(sum(len(line) + 1 for line in self.lines), len(str(block)))
        self.lines.append(text)
        return True

    def _text(self, block: Block, is_cut: bool) -> str:
        """Return the lines of a chunk, and where to continue after it if it is cut."""
        text = str(block)
        last, count = block.shown[-1] + 1 if block.shown else 0, len(block.sentences)
        if is_cut and last < count:
            go_on = self.go_on.format(last + 1)
            text += f'\n{SHOWN_UP_TO}{last} of {count}. Go on: chunk_ids ["{block.id}"], {go_on}.'
        return text

    def _room(self, later: list[str]) -> int:
        written = [*self.lines, *self._last_lines([*self.left_out, *later])]
        return self.max_tokens - sum(count_tokens(line) + 1 for line in written) - 1

    def _last_lines(self, left_out: list[str]) -> list[str]:
        lines: list[str] = []
        share = self.max_tokens // 8
        if left_out:
            lines.append(f"{NOT_SHOWN}chunk_ids [{names(left_out, share)}].")
        if self.unknown:
            lines.append(f"{UNKNOWN}{names(self.unknown, share)}. {IN_BRACKETS}")
        return lines

    def result(self) -> ToolResult:
        """Return the reply."""
        text = "\n".join([*self.lines, *self._last_lines(self.left_out)])
        return ToolResult(
            text=text,
            status="ok",
            ids=tuple(span.id for span in self.spans),
            retrieved_tokens=self.retrieved,
            passages=tuple(self.spans),
        )


def chunk_header(read_chunk: ReadChunk, max_tokens: int | None = None) -> str:
    """Title and part, then neighbours and metadata if there are any, cut at ``max_tokens``."""
    chunk = read_chunk.chunk
    about: list[str] = []
    if read_chunk.previous_id is not None:
        about.append(f"previous: {read_chunk.previous_id}")
    if read_chunk.next_id is not None:
        about.append(f"next: {read_chunk.next_id}")
    if chunk.metadata:
        about.append(metadata_text(chunk.metadata))
    header = header_line(chunk.id, chunk.title, chunk.part, chunk.parts, chunk.outline)
    text = "; ".join(about)
    if max_tokens is not None:
        text = cut_to(text, max_tokens)
    return f"{header}\n({text})" if text else header

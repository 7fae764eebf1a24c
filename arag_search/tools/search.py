"""The base of the search tools: from a search result to the reply that a model sees."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar

from arag_search.query.problems import QueryError
from arag_search.search.index import Index
from arag_search.search.results import CORPUS_ORDER, SearchResult
from arag_search.system.progress import counted
from arag_search.tokens import count_tokens
from arag_search.tools.base import (
    DEFAULT_RESULT_TOKENS,
    FULL_TEXT_RESULT_TOKENS,
    MAX_TITLES,
    MAX_TOOL_OFFSET,
    ReadSet,
    Tool,
    ToolResult,
    error_result,
)
from arag_search.tools.marked import (
    LOWERED,
    MarkedBlock,
    are_whole,
    blocks_beside,
    branch_counts,
    join_near_duplicates,
    line_blocks,
    marked_block,
    note_seen,
)
from arag_search.tools.paper_replies import NOT_READABLE, NOTHING_FOUND, PaperBlock
from arag_search.tools.preset import Preset, ReplyPaper
from arag_search.tools.rendering import (
    Block,
    Fitted,
    cut_to,
    fit,
    one_line,
    retrieved_tokens,
    shown_id,
)

SHOW = f'"titles": a list of {MAX_TITLES} ids and titles; "lines": of all sentences that match.'
_SHARE_OF_TITLES = 5 / 8
_SHARE_OF_QUERY = 4  # the query takes at most a quarter of a reply
_SHARE_OF_NOTES = 8
WHOLE_UP_TO_TOKENS = 64
"""The length up to which ``arag-search search`` and logical_read show passages whole."""
MAX_REPEATED_TOKENS = 12
"""A longer query is not repeated if it was understood as it was written."""
AS_WRITTEN = "this query"
MORE = "More: offset="
_NO_FURTHER = ": there are no further ones."


@dataclass(frozen=True, slots=True)
class ReplyStyle:
    """The style in which a search tool replies.

    ``full_text`` shows whole passages instead of snippets (presets without chunk_read).
    ``max_offset`` is the largest offset that a caller may pass; 0 if there is no paging. Passages
    of at most ``whole_up_to_tokens`` are shown whole, and with ``relax`` a query that matches
    nothing shows the nearest passages. With ``paper``, replies are those of a paper instead: see
    ``paper_replies``.
    """

    full_text: bool = False
    max_result_tokens: int | None = None
    max_offset: int = MAX_TOOL_OFFSET
    whole_up_to_tokens: int = 0
    relax: bool = False
    paper: ReplyPaper | None = None

    @staticmethod
    def of(preset: Preset) -> ReplyStyle:
        """Return the style of a preset."""
        return ReplyStyle(
            full_text=preset.full_text,
            max_result_tokens=preset.max_result_tokens,
            whole_up_to_tokens=preset.whole_up_to_tokens,
            relax=preset.relax,
            paper=preset.replies,
        )

    @property
    def is_ours(self) -> bool:
        """Whether replies say more than a paper's: how a query was understood, and what helps."""
        return self.paper is None

    @property
    def bound(self) -> int:
        """The maximum number of tokens of a reply."""
        if self.max_result_tokens is not None:
            return self.max_result_tokens
        return FULL_TEXT_RESULT_TOKENS if self.full_text else DEFAULT_RESULT_TOKENS


class SearchTool(Tool):
    """A tool that searches for passages."""

    of_paper: ClassVar[Collection[str]] = ()
    """The arguments that the tool has in its paper."""

    def __init__(
        self,
        index: Index,
        *,
        description: str,
        style: ReplyStyle | None = None,
        hidden: Sequence[str] = (),
    ) -> None:
        self.style = style or ReplyStyle()
        if not self.style.is_ours:
            others = [name for name in self.arguments.model_fields if name not in self.of_paper]
            hidden = [*hidden, *others]
        super().__init__(
            index,
            description=description,
            max_result_tokens=self.style.bound,
            hidden=hidden,
        )

    def _call(self, arguments: Any, read_set: ReadSet) -> ToolResult:
        try:
            result = self._search(arguments)
        except QueryError as error:
            return error_result(str(error) if self.style.is_ours else NOT_READABLE)
        return reply(result, self.style, read_set)

    @abstractmethod
    def _search(self, arguments: Any) -> SearchResult:
        """Search the index. Raises QueryError for a query that the model can correct."""


def reply(result: SearchResult, style: ReplyStyle, read_set: ReadSet) -> ToolResult:
    """Return the bounded text of a search result."""
    if style.paper is not None:
        return _paper_reply(result, style.paper, style)
    understood = _understood(result, style.bound // _SHARE_OF_QUERY) + _order(result)
    notes = "\n".join(f"Note: {note}" for note in result.notes)
    notes = cut_to(notes, style.bound // _SHARE_OF_NOTES)
    blocks = _blocks(result, style, read_set)
    if not blocks:
        lines = [*_empty_lines(result, understood), *([notes] if notes else [])]
        text = "\n".join(lines)
        return _tool_result(Fitted(cut_to(text, style.bound), [], ()), result)
    hits = {hit.id for hit in result.hits}

    def frame(kept: Sequence[Block]) -> tuple[str, str]:
        shown = len(hits.intersection(id for block in kept for id in block.ids))
        heading = [_heading(result, understood, shown)]
        if not hits:
            heading = _empty_lines(result, understood)
        lines = [*heading, branch_counts(result), notes]
        head = "\n".join(line for line in lines if line)
        return head, _footer(result, kept, shown, style)

    fitted = fit(frame, blocks, style.bound, whole=style.full_text)
    for kept in fitted.blocks:
        note_seen(kept, read_set)
    return _tool_result(fitted, result)


def _paper_reply(result: SearchResult, paper: ReplyPaper, style: ReplyStyle) -> ToolResult:
    blocks = [PaperBlock.of_hit(hit, paper, whole=style.full_text) for hit in result.hits]
    if not blocks:
        return _tool_result(Fitted(NOTHING_FOUND, [], ()), result)
    fitted = fit(lambda _: ("", ""), blocks, style.bound, whole=style.full_text)
    return _tool_result(fitted, result)


def _tool_result(fitted: Fitted, result: SearchResult) -> ToolResult:
    text, kept, spans = fitted
    shown = {id for block in kept for id in block.ids}
    ids = tuple(hit.id for hit in result.hits if hit.id in shown)
    return ToolResult(
        text=text,
        status="ok" if ids else "empty",
        ids=ids,
        total=result.total,
        total_is_exact=result.total_is_exact,
        retrieved_tokens=retrieved_tokens(kept),
        result_tokens=count_tokens(text),
        passages=spans,
    )


def _blocks(result: SearchResult, style: ReplyStyle, read_set: ReadSet) -> Sequence[MarkedBlock]:
    whole_up_to = None if style.full_text else style.whole_up_to_tokens
    wholes = are_whole(result.hits, whole_up_to)
    hits = [
        marked_block(hit, at, read_set, whole=whole)
        for at, (hit, whole) in enumerate(zip(result.hits, wholes, strict=True))
    ]
    for block, hit in zip(hits, result.hits, strict=True):
        if result.total is None and hit.ranks is None:  # a search by vectors
            block.rank = f"cosine {hit.score:.2f}"
        elif hit.lowered:
            block.rank = LOWERED
    if result.show != "text":
        if result.show == "lines":
            hits = line_blocks(result)
        else:
            for block in hits:
                block.kind = "title"
        used = accumulate(count_tokens(str(block)) + 1 for block in hits)
        fitting = [n <= _SHARE_OF_TITLES * style.bound for n in used].count(True)
        hits = hits[: max(fitting, 1)]
        if result.show == "lines":
            return hits
    return [*join_near_duplicates(hits), *blocks_beside(result, read_set, whole_up_to)]


def _heading(result: SearchResult, understood: str, shown: int) -> str:
    if result.total is None:
        return _nearest(result, understood, shown)
    total = result.total_text
    first, last = result.offset + 1, result.offset + shown
    page = f"Passage {first}" if shown == 1 else f"Passages {first} to {last}"
    from_start = not result.offset or not shown
    if result.total_unit == "sentences":
        which = f"{shown} {'passage' if shown == 1 else 'passages'}" if from_start else page
        sentences = "1 sentence matches" if total == "1" else f"{total} sentences match"
        return f"{which} for {understood}: {sentences}"
    if from_start:
        return f"{shown} of {total} {'passage' if total == '1' else 'passages'} for {understood}"
    return f"{page} of {total} for {understood}"


def _understood(result: SearchResult, max_tokens: int) -> str:
    # A long query is repeated only if it was not understood as written.
    understood = result.understood
    is_long = count_tokens(understood) > MAX_REPEATED_TOKENS
    if is_long and is_as_written(result.query, understood):
        return AS_WRITTEN
    return cut_to(understood, max_tokens)


def is_as_written(query: str, understood: str) -> bool:
    """Return whether a query was understood as it was written, but for parentheses around it."""
    return understood.removeprefix("(").removesuffix(")") == query.strip()


def _order(result: SearchResult) -> str:
    if not result.total:
        return ""
    by = "in" if result.sort == CORPUS_ORDER else "sorted by"
    order = f", {by} {result.sort}" if result.sort else ""
    most = result.per_document
    if most == 1 and result.show == "titles" and result.passages is not None:
        return f"{order}, 1 of each of {counted(result.passages, 'document')}"
    return f"{order}, at most {most} of a document" if most is not None else order


def _nearest(result: SearchResult, understood: str, shown: int) -> str:
    if result.offset and shown:
        first, last = result.offset + 1, result.offset + shown
        which = f"{first}" if shown == 1 else f"{first} to {last}"
        return f"Nearest {'passage' if shown == 1 else 'passages'} {which} for {understood}"
    return f"{shown} nearest {'passage' if shown == 1 else 'passages'} for {understood}"


def _empty_lines(result: SearchResult, understood: str) -> list[str]:
    if result.total is None and not result.passages:
        return [f"No passage is in scope for {understood}."]
    if result.total is None:
        some = "1 passage was" if result.passages == 1 else f"{result.passages:,} passages were"
        return [f"Only {some} found for {understood}{_NO_FURTHER}"]
    if result.total:
        number = result.passages or result.total
        match = "passage matches" if number == 1 else "passages match"
        if result.per_document is not None:
            match = "passage is shown for" if number == 1 else "passages are shown for"
        return [f"Only {number:,} {match} {understood}{_NO_FURTHER}"]
    unit = "sentence" if result.total_unit == "sentences" else "passage"
    lines = [f"No {unit} matches {understood}."]
    if result.feedback is not None:
        lines.append(str(result.feedback))
    return lines


def _footer(result: SearchResult, kept: Sequence[Block], shown: int, style: ReplyStyle) -> str:
    reached = result.offset + max(shown, 1)
    end = result.passages
    counts_pages = result.total_unit == "passages" and result.per_document is None
    if result.total is not None and counts_pages and result.total_is_exact:
        end = result.total
    more = end is None or reached < end or shown < len(result.hits)
    if result.sort == CORPUS_ORDER:
        goes_on = result.passages is None or shown < len(result.hits)
        return f'More: after="{one_line(shown_id(kept[-1].id))}".' if goes_on else ""
    return f"{MORE}{reached}." if more and reached <= style.max_offset else ""

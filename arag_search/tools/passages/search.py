"""The base of the search tools: from a search result to the reply that a model sees."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import MISSING, fields, replace
from itertools import accumulate
from typing import Any, ClassVar, get_args, get_type_hints

from pydantic import Field, create_model

from arag_search.plan.clauses import wanted_leaves
from arag_search.query.problems import QueryError
from arag_search.search.asked import MAX_TOOL_OFFSET, OPTIONS, Asked, Keywords
from arag_search.search.counting.reply_forms import LIST_HITS
from arag_search.search.index import Index
from arag_search.search.results import CORPUS_ORDER, SearchResult
from arag_search.system.progress import counted
from arag_search.tokens import count_tokens, cut_to
from arag_search.tools.preset import PLAIN, Preset, ReplyPaper
from arag_search.tools.replies.beside import blocks_beside, branch_counts, list_other_titles
from arag_search.tools.replies.block import LOWERED, Block, note_seen, retrieved_tokens
from arag_search.tools.replies.chosen import blocks_of
from arag_search.tools.replies.fit import Fitted, fit
from arag_search.tools.replies.lists import list_blocks
from arag_search.tools.replies.papers import NOT_READABLE, NOTHING_FOUND, paper_block
from arag_search.tools.replies.pointers import with_pointers
from arag_search.tools.replies.spans import FURTHER
from arag_search.tools.replies.writing import one_line, shown_id
from arag_search.tools.tool import Arguments, ReadSet, Tool, ToolResult, error_result

_SHARE_OF_LIST = 5 / 8
_SHARE_OF_QUERY = 4  # the query takes at most a quarter of a reply
_SHARE_OF_NOTES = 8
WHOLE_UP_TO_TOKENS = 64
"""The length up to which ``arag-search search`` and logical_read show passages whole."""
AS_WRITTEN = "this query"
_NO_FURTHER = ": there are no further ones."


class SearchTool(Tool):
    """A tool that searches for passages."""

    asked: ClassVar[type[Any]]
    """The kind of search."""

    of_paper: ClassVar[Collection[str]] = ()
    """The arguments that the tool has in its paper."""

    max_offset: ClassVar[int] = MAX_TOOL_OFFSET
    """The largest offset that a caller may pass; 0 if there is no paging."""

    def __init__(self, index: Index, preset: Preset = PLAIN) -> None:
        super().__init__(index, preset)
        self._defaults = {part.name: part.default for part in fields(self.asked)}
        if not preset.explains:
            self.hidden |= set(self.arguments.model_fields).difference(self.of_paper)
        self.paging = "after" if "after" in self.parameters["properties"] else "offset"
        """The argument that goes on after a page."""

    def _call(self, arguments: Any, read_set: ReadSet) -> ToolResult:
        try:
            result = self._search(arguments)
        except QueryError:
            if self.preset.explains:
                raise
            return error_result(NOT_READABLE)
        text = reply(result, self.preset, read_set, self.max_offset, self.paging)
        return with_pointers(text, result, self.index, self.preset, read_set)

    def _search(self, arguments: Any) -> SearchResult:
        """Search the index. Raises QueryError for a query that the model can correct."""
        given: dict[str, Any] = {}
        for name, value in arguments:
            default = self._defaults.get(name, value)
            if value is not default:
                is_empty = not (value.strip() if isinstance(value, str) else value)
                given[name] = None if default is None and is_empty else value
        asked = self.asked(**(given | self._options(arguments)))
        if asked.form.is_list and "top_k" not in arguments.model_fields_set:
            asked = replace(asked, top_k=LIST_HITS)
        return self.index.search(asked)

    @abstractmethod
    def _options(self, arguments: Any) -> dict[str, Any]:
        """Return the fields of a search that the preset decides, or that are named or written
        otherwise in the arguments."""


def arguments_of(asked: type[Asked], *names: str, **own: tuple[Any, Any]) -> type[Arguments]:
    """Return the arguments of a tool: the fields of a search with these names, unless the tool has
    its ``own``. An empty text or 0 stands for None."""
    made: Any = {name: own.get(name) or argument_of(asked, name) for name in names}
    return create_model(f"{asked.__name__}Arguments", __base__=Arguments, **made)


def argument_of(asked: type[Asked], name: str, **changed: Any) -> tuple[Any, Any]:
    """Return the type of an argument, and what is said of it."""
    kind = get_type_hints(asked)[name]
    default = next(part.default for part in fields(asked) if part.name == name)
    option = OPTIONS[name]
    says: dict[str, Any] = {"description": option.says, "ge": option.least, "le": option.most}
    if default is None:
        kind = get_args(kind)[0]  # text, or what it is made of
        default = kind()
    if default is not MISSING:
        says["default"] = default
    return kind, Field(**(says | changed))


def reply(
    result: SearchResult,
    preset: Preset,
    read_set: ReadSet,
    max_offset: int = MAX_TOOL_OFFSET,
    paging: str = "offset",
) -> ToolResult:
    """Return the bounded text of a search result. ``max_offset`` is the largest offset that it
    names to go on with, by the argument ``paging``."""
    if preset.replies is not None:
        return _paper_reply(result, preset.replies, preset)
    understood = _understood(result, preset.max_result_tokens // _SHARE_OF_QUERY) + _order(result)
    notes = "\n".join(f"Note: {note}" for note in result.notes)
    notes = cut_to(notes, preset.max_result_tokens // _SHARE_OF_NOTES)
    blocks = _blocks(result, preset, read_set)
    if not blocks:
        lines = [*_empty_lines(result, understood), *([notes] if notes else [])]
        text = "\n".join(lines)
        return _tool_result(Fitted(cut_to(text, preset.max_result_tokens), [], ()), result)
    hits = {hit.id for hit in result.hits}

    def frame(kept: Sequence[Block]) -> tuple[str, str]:
        shown = len(hits.intersection(id for block in kept for id in block.ids))
        heading = [_heading(result, understood, shown)]
        if not hits:
            heading = _empty_lines(result, understood)
        absent = map(str, result.absent if hits else ())
        lines = [*heading, *absent, branch_counts(result, shown, read_set), notes]
        head = "\n".join(line for line in lines if line)
        return head, _footer(result, kept, shown, max_offset, paging)

    fitted = fit(frame, blocks, preset.max_result_tokens, whole=preset.full_text)
    for kept in fitted.blocks:
        note_seen(kept, read_set)
    return _tool_result(fitted, result)


def _paper_reply(result: SearchResult, paper: ReplyPaper, preset: Preset) -> ToolResult:
    blocks = [
        paper_block(hit, paper, None if preset.full_text else hit.sentences) for hit in result.hits
    ]
    if not blocks:
        return _tool_result(Fitted(NOTHING_FOUND, [], ()), result)
    fitted = fit(lambda _: ("", ""), blocks, preset.max_result_tokens, whole=preset.full_text)
    return _tool_result(fitted, result)


def _tool_result(fitted: Fitted, result: SearchResult) -> ToolResult:
    text, kept, spans = fitted
    shown = {span.id for span in spans}
    ids = tuple([hit.id for hit in result.hits if hit.id in shown])
    return ToolResult(
        text=text,
        status="ok" if ids else "empty",
        ids=ids,
        total=result.total,
        total_is_exact=result.total_is_exact,
        is_absent=not (result.hits or result.total or result.passages),
        retrieved_tokens=retrieved_tokens(kept),
        passages=spans,
        is_of_names=_is_of_names(result),
        search_result=result,
    )


def _is_of_names(result: SearchResult) -> bool:
    """Return whether a query is a name alone: words with capitals, a phrase or a title, or OR."""
    query = None if result.highlighter is None else result.highlighter.query
    if query is None or query.kind == "all" or isinstance(result.asked, Keywords):
        return False
    return all(leaf.is_name or leaf.typed[:1].isupper() for leaf in wanted_leaves(query))


def _blocks(result: SearchResult, preset: Preset, read_set: ReadSet) -> Sequence[Block]:
    if result.asked.form.is_list:
        listed = list_blocks(result)
        used = accumulate(count_tokens(str(block)) + 1 for block in listed)
        fitting = [n <= _SHARE_OF_LIST * preset.max_result_tokens for n in used].count(True)
        return listed[: max(fitting, 1)]
    whole_up_to = None if preset.full_text else preset.whole_up_to_tokens
    blocks = blocks_of(result, read_set, whole_up_to)
    list_other_titles(result, blocks)
    for block in blocks:
        hit = result.hits[block.at]
        block.by_sentence |= result.asked.unit == "sentences"
        if result.total is None and hit.ranks is None:  # a search by vectors
            block.rank = f"cosine {hit.score:.2f}"
        elif hit.lowered:
            block.rank = LOWERED
    return [*blocks, *blocks_beside(result, read_set, whole_up_to)]


def _heading(result: SearchResult, understood: str, shown: int) -> str:
    asked = f" for {understood}".removeprefix(f" for {AS_WRITTEN}")
    first, last = result.offset + 1, result.offset + shown
    page = f"Passage {first}" if shown == 1 else f"Passages {first} to {last}"
    from_start = not result.offset or not shown
    if result.total is None:
        nearest = counted(shown, "nearest passage") if from_start else f"Nearest {page.lower()}"
        return f"{nearest}{asked}"
    total = result.total_text
    if result.asked.form.of_documents:
        unit = result.asked.unit.removesuffix("s" if total == "1" else "")
        return f"{total} {unit}{asked}: documents {first} to {last} of {result.passages:,}"
    if result.asked.unit == "sentences":
        which = counted(shown, "passage") if from_start else page
        sentences = "1 sentence matches" if total == "1" else f"{total} sentences match"
        return f"{which}{asked}: {sentences}"
    if from_start:
        return f"{shown} of {total} {'passage' if total == '1' else 'passages'}{asked}"
    return f"{page} of {total}{asked}"


def _understood(result: SearchResult, max_tokens: int) -> str:
    # Only what was not understood as written is repeated.
    if is_as_written(result.query, result.understood):
        return AS_WRITTEN
    return cut_to(result.understood, max_tokens)


def is_as_written(query: str, understood: str) -> bool:
    """Return whether a query was understood as it was written, but for parentheses around it."""
    return understood.removeprefix("(").removesuffix(")") == query.strip()


def _order(result: SearchResult) -> str:
    if not result.total:
        return ""
    by = "in" if result.sort == CORPUS_ORDER else "sorted by"
    order = f", {by} {result.sort}" if result.sort else ""
    most = result.per_document
    if most == 1 and result.asked.form.is_list and result.passages is not None:
        return f"{order}, 1 of each of {counted(result.passages, 'document')}"
    return f"{order}, at most {most} of a document" if most is not None else order


def _empty_lines(result: SearchResult, understood: str) -> list[str]:
    if result.total is None and not result.passages:
        return [f"No passage is in scope for {understood}."]
    if result.total is None:
        some = "1 passage was" if result.passages == 1 else f"{result.passages:,} passages were"
        return [f"Only {some} found for {understood}{_NO_FURTHER}"]
    if result.total:
        number = result.passages or result.total
        kind = "document" if result.asked.form.of_documents else "passage"
        match = f"{kind} matches" if number == 1 else f"{kind}s match"
        if result.per_document is not None:
            match = "passage is shown for" if number == 1 else "passages are shown for"
        return [f"Only {number:,} {match} {understood}{_NO_FURTHER}"]
    unit = "sentence" if result.asked.unit == "sentences" else "passage"
    lines = [f"No {unit} matches {understood}."]
    if result.feedback is not None:
        lines += map(str, result.absent or (result.feedback.line(),))
    return lines


def _footer(
    result: SearchResult, kept: Sequence[Block], shown: int, max_offset: int, paging: str
) -> str:
    reached = result.offset + max(shown, 1)
    end = result.passages
    is_limited = result.per_document is not None or result.asked.form.of_documents
    counts_pages = result.asked.unit == "passages" and not is_limited
    if result.total is not None and counts_pages and result.total_is_exact:
        end = result.total
    more = end is None or reached < end or shown < len(result.hits)
    if result.sort == CORPUS_ORDER:
        goes_on = result.passages is None or shown < len(result.hits)
        return f'{FURTHER}after="[{one_line(shown_id(kept[-1].id))}]".' if goes_on else ""
    first = f"/{result.first_page}" if result.first_page not in (0, reached) else ""
    return f"{FURTHER}{paging}={reached}{first}." if more and reached <= max_offset else ""

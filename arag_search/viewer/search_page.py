"""The answers to the page that searches an index by hand. Tools, parser and index do all the work;
here their results are put together for a browser."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from arag_search.errors import (
    AragError,
    ArgumentError,
    ConfigError,
    NotServedError,
    VectorsError,
    VectorsNotNamedError,
)
from arag_search.query.fields import DOC_ID
from arag_search.query.printing import keyword_text, quoted, range_text
from arag_search.query.problems import QueryError
from arag_search.query.reading import Query, parse
from arag_search.query.tree import all_of, leaves, render
from arag_search.search.asked import Keywords, Search
from arag_search.search.counting.words import MAX_COUNTED_WORDS
from arag_search.search.index import Index
from arag_search.search.reading.lines import DocumentLines
from arag_search.search.results import SearchResult
from arag_search.tools.preset import Preset
from arag_search.tools.registry import FOUND_BY_SEARCH, TOOLS
from arag_search.tools.replies.parts import further_page
from arag_search.tools.tool import ReadSet, ToolResult
from arag_search.tools.toolbox import Toolbox
from arag_search.viewer.pieces import KINDS, pieces
from arag_search.viewer.questions import reading_dict, utf16_places
from arag_search.viewer.reading import Reading, keywords_reading, operator_in

if TYPE_CHECKING:
    from arag_search.mcp_server.folders import ServedFolder

MAX_SHOWN_CHARACTERS = 10_000
"""The most characters of a passage on the page."""
WINDOW_LINES = 200
"""The lines of a document that the reader shows at once."""
MAX_MARKED_CHARACTERS = 2_000_000
"""The length of the longest document in which the reader marks what a query matches."""
_OF_THE_LOOP = {
    *("name", "description", "tools", "prompt", "plan_first", "max_loops", "token_budget"),
    *("given", "switcher", "memory_tokens", "context_management", "semantic_find"),
}
"""The keys of presets that change no reply of a search."""
_OWN_ARGUMENTS = ("query", "queries", "keywords", "after", "offset")
_KEYWORD = re.compile(r'"([^"]+)"|([^\s",]+)')
_NUMBER = re.compile(r"\d+(?:/\d+)?")


class Call(BaseModel):
    """A call of a tool, as the page asks for it.

    ``query``: the query as it was typed.
    ``arguments``: the other arguments, as the tool takes them.
    ``window``: a name that tells the windows of a browser apart.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    preset: str
    tool: str
    query: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict)
    window: str = ""


class Asked(BaseModel):
    """A question of the page.

    ``call``: the call that it is about.
    ``field``, ``value``: a condition to add, with a value or the ends of a range.
    ``passage`` or ``document``: what to open, at a ``line`` by its number, from 0.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    call: Call
    field: str = ""
    value: str | tuple[str, str] = ""
    document: str = ""
    passage: str = ""
    line: int | None = Field(default=None, ge=0, le=2**31)


class SearchPage:
    """The answers to what the page asks of one index, each in types of JSON.

    ``location`` is the index as the user named it, ``filter`` the scope that nothing on the page
    leaves. ``presets``, by name or path, are offered with the searches that the index can serve;
    presets with the same replies are offered once. ``folder`` keeps the index of a folder of files
    up to date.
    """

    def __init__(
        self,
        index: Index,
        location: str,
        filter: str | None,
        presets: Mapping[str, Preset],
        folder: ServedFolder | None = None,
    ) -> None:
        self._index, self._folder = index, folder
        self._location, self._filter = location, filter
        self._toolboxes: dict[str, Toolbox] = {}
        self._tools: list[tuple[str, str]] = []
        known: set[str] = set()
        for name, preset in presets.items():
            with suppress(NotServedError, VectorsError, VectorsNotNamedError, ConfigError):
                self._toolboxes[name] = Toolbox(index, preset)
                for tool in (tool for tool in preset.tools if tool in FOUND_BY_SEARCH):
                    same = f"{tool} {preset.model_dump(exclude=_OF_THE_LOOP)}"
                    if same not in known:
                        known.add(same)
                        self._tools.append((name, tool))

    def answer(self, question: str, asked: Asked) -> dict[str, Any]:
        """Answer one of the QUESTIONS. Raises AragError, such as UnavailableError while the index
        of a folder is being built."""
        folder = self._folder
        if folder is None:
            return QUESTIONS[question](self, asked)
        folder.compare()
        try:
            if (coming := folder.coming()) is not None:
                raise coming.error()
            return QUESTIONS[question](self, asked)
        except AragError as error:
            folder.withdraw(error)
            raise

    def about(self) -> dict[str, Any]:
        """Return what the page shows before the first search."""
        manifest = self._index.manifest
        fields = [*manifest.query_schema.metadata, DOC_ID]
        return {
            "location": self._location,
            "filter": self._filter,
            "documents": manifest.documents,
            "passages": self._index.contents.passages,
            "kinds": KINDS,
            "fields": fields,
            "sorts": [f"{name}:{way}" for name in fields for way in ("desc", "asc")],
            "tools": [
                {
                    "preset": preset,
                    "tool": tool,
                    "controls": self._controls(Call(preset=preset, tool=tool)),
                    "narrows": self._narrows(Call(preset=preset, tool=tool)),
                }
                for preset, tool in self._tools
            ],
        }

    def read(self, asked: Asked) -> dict[str, Any]:
        """Return how the query of a call is understood, before it is searched."""
        return reading_dict(self._reading(asked.call))

    def call(self, asked: Asked) -> dict[str, Any]:
        """Return the reply of a call, with the passages that it shows."""
        call = asked.call
        began = time.perf_counter()
        result = self._result(call)
        milliseconds = (time.perf_counter() - began) * 1000
        values: dict[str, Any] = {"hits": _hits_of_spans(result), "offset": 0, "total": None}
        if result.search_result is not None:
            values = result.search_result.to_dict()
        shown = {span.id for span in result.passages}.union(result.ids)
        for kind in ("hits", "nearest", "unrepresented"):
            values[kind] = [hit for hit in values.get(kind, ()) if hit["id"] in shown]
            for hit in values[kind]:
                self._prepare(hit)
        return {
            **values,
            "reading": reading_dict(self._reading(call)),
            "status": result.status,
            "text": result.text,
            "tokens": result.tokens,
            "milliseconds": round(milliseconds, 1),
            "next": further_page(result.text, result.passages),
            "commands": self._commands(call, result),
        }

    def why(self, asked: Asked) -> dict[str, Any]:
        """Return the counts of each part of a query, and the scores of its hits."""
        result = self._searched(asked.call)
        search = result.asked
        if not isinstance(search, Search | Keywords):
            return {"parts": [], "hits": result.to_dict()["hits"]}
        explained = self._index.search(replace(search, explain=True))
        texts, _, as_written = self._counted(asked.call, search)
        counts = self._index.words(*texts, filter=search.filter, as_written=as_written)
        return {"parts": counts, "hits": explained.to_dict()["hits"]}

    def fields(self, asked: Asked) -> dict[str, Any]:
        """Return the metadata fields of the passages that match a call. Without a query, or if its
        tool ranks all passages, all are counted."""
        where, as_written, filter = None, False, None
        if asked.call.query.strip():
            search = self._searched(asked.call).asked
            filter = search.filter
            if isinstance(search, Search | Keywords):
                _, where, as_written = self._counted(asked.call, search)
            else:
                where = search.where
        result = self._index.fields(values=10, filter=filter, where=where, as_written=as_written)
        fields = [field for field in result.fields if field.kind != "text" and field.name != DOC_ID]
        return {"passages": result.passages, "where": where, "fields": fields}

    def add(self, asked: Asked) -> dict[str, Any]:
        """Return the query of a call with a condition added, or its argument for conditions."""
        call, value = asked.call, asked.value
        text = keyword_text(value) if isinstance(value, str) else range_text(*value, True, True)
        added = parse(f"{asked.field}:{text}", self._index.manifest.query_schema, ranked=False).tree
        name = self._narrows(call)
        if name == "query":
            tree = self._parsed(call).tree if call.query.strip() else None
            return {"query": render(added if tree is None else all_of(tree, added))}
        if not name:
            raise ArgumentError(
                "This tool takes no condition.",
                where=f"{call.tool} of {call.preset}",
                allowed="logical_search, or a tool with where or filter",
                do="Choose another tool in the menu.",
            )
        given = str(call.arguments.get(name) or "")
        return {"argument": name, "value": f"({given}) AND {added}" if given else str(added)}

    def open(self, asked: Asked) -> dict[str, Any]:
        """Return lines of a document around a passage or a line, and which lines of it have what
        the query of a call matches."""
        document, at = asked.document, asked.line
        if not document:
            document = self._index.chunk_read([asked.passage])[0].chunk.doc_id
        lines = self._index.document_lines([document])[0]
        if lines is None:
            raise ArgumentError(
                f'The index has no document "{document}" any more.',
                where=self._location,
                do="Search again: the index has changed.",
            )
        result = self._result(asked.call).search_result
        if at is None:
            hits = result.hits if result is not None else ()
            sentences = next((hit.sentences for hit in hits if hit.id == asked.passage), ())
            place = lines.lines_of_sentences(asked.passage, sentences)
            at = 0 if place is None else place[0]
        return _window(lines, at, result)

    def _result(self, call: Call) -> ToolResult:
        """Return the result of a call as the first one of a conversation."""
        toolbox = self._toolbox(call).in_conversation(ReadSet(key=call.window))
        return toolbox.call(call.tool, self._arguments(call))

    def _searched(self, call: Call) -> SearchResult:
        """Return what a call found. Raises ArgumentError for a call that its tool refuses, and for
        one of the tool that searches for documents."""
        result = self._result(call)
        if result.status == "error":
            raise ArgumentError(result.text)
        if result.search_result is None:
            raise ArgumentError("This tool makes several searches, which are not counted here.",
                                allowed="tools that make one search")  # fmt: skip
        return result.search_result

    def _toolbox(self, call: Call) -> Toolbox:
        if (call.preset, call.tool) not in self._tools:
            raise ArgumentError(
                f'The page has no tool "{call.tool}" of a preset "{call.preset}".',
                allowed="the tools of the menu",
                do="Load the page again.",
            )
        return self._toolboxes[call.preset]

    def _form(self, call: Call) -> str | None:
        self._toolbox(call)
        return TOOLS[call.tool].query_form

    def _narrows(self, call: Call) -> str:
        """Return the argument that takes conditions; empty if there is none."""
        if self._form(call) == "logical":
            return "query"
        return next((name for name in ("where", "filter") if name in self._known(call)), "")

    def _known(self, call: Call) -> Mapping[str, Any]:
        return self._toolbox(call).tools[call.tool].parameters["properties"]

    def _controls(self, call: Call) -> dict[str, Any]:
        known = self._known(call)
        return {name: schema for name, schema in known.items() if name not in _OWN_ARGUMENTS}

    def _arguments(self, call: Call) -> dict[str, Any]:
        """Return the arguments of a call, its query as its tool takes it."""
        known, query = self._known(call), call.query
        if "keywords" in known:
            return {"keywords": _keywords(query), **call.arguments}
        return {
            **({"queries": [query]} if "queries" in known else {"query": query}),
            **call.arguments,
        }

    def _parsed(self, call: Call) -> Query:
        """Parse the query of a call as its logical tool does. Raises QueryError."""
        preset = self._toolbox(call).preset
        return parse(
            call.query,
            self._index.manifest.query_schema,
            default_operator=operator_in(call.arguments),
            operators=preset.operators,
            as_written=preset.reproduces is not None,
        )

    def _reading(self, call: Call) -> Reading:
        """Return how the query of a call is understood."""
        form, query = self._form(call), call.query
        if form == "keywords":
            return keywords_reading(_keywords(query))
        if form != "logical" or not query.strip():
            return Reading(query)
        try:
            return Reading(query, pieces=tuple(pieces(self._parsed(call).text)))
        except QueryError as error:
            return Reading(query, problems=error.problems, mended=error.mended)

    def _counted(self, call: Call, search: Search | Keywords) -> tuple[list[str], str, bool]:
        """Return the smallest parts of a query, the logical query of all that it matches, and
        whether both match as they are written. Raises ArgumentError for keywords that match within
        words."""
        if not isinstance(search, Keywords):
            tree = self._parsed(call).tree
            texts = list(dict.fromkeys(map(str, leaves(tree))))
            return texts[:MAX_COUNTED_WORDS], render(tree), search.as_written
        if search.matching == "substring":
            raise ArgumentError("This tool finds keywords within words, which is not counted here.",
                                allowed="tools that match whole words")  # fmt: skip
        texts = [quoted(word) for word in dict.fromkeys(search.keywords)]
        return texts, " OR ".join(texts), True

    def _prepare(self, hit: dict[str, Any]) -> None:
        """Cut what a page shows of a hit, and count its marks as a browser does."""
        marks = hit.pop("highlights", {"title": [], "snippet": []})
        text: str = hit["snippet"]
        hit["snippet"] = text[:MAX_SHOWN_CHARACTERS]
        hit["left_out"] = len(text) - len(hit["snippet"])
        inside = [mark for mark in marks["snippet"] if mark[1] <= MAX_SHOWN_CHARACTERS]
        hit["marks"] = utf16_places(text, inside)
        hit["title_marks"] = utf16_places(hit["title"], marks["title"])
        paths = hit.get("metadata", {}).get("path")
        if "path" in self._index.manifest.file_metadata and paths:
            line = f":{hit['line']}" if "line" in hit else ""
            hit["file"] = f"{paths[-1] if isinstance(paths, list) else paths}{line}"

    def _commands(self, call: Call, result: ToolResult) -> dict[str, str]:
        """Return the same call in the protocol of MCP and in Python. If the preset reproduces no
        paper, add the same query on the command line."""
        arguments = self._arguments(call)
        message = {"method": "tools/call", "params": {"name": call.tool, "arguments": arguments}}
        narrowed = f", filter={self._filter!r}" if self._filter else ""
        commands = {
            "The call for MCP": json.dumps(message, ensure_ascii=False, indent=1),
            "The call in Python": "from arag_search import Toolbox, open_index\n\n"
            f"with open_index({self._location!r}{narrowed}) as index:\n"
            f"    tools = Toolbox(index, {call.preset!r})\n"
            f"    print(tools.call({call.tool!r}, {arguments!r}).text)",
        }
        preset, search = self._toolbox(call).preset, result.search_result
        if search is None or preset.reproduces or not preset.explains:
            return commands
        options = {
            **call.arguments,
            "top_k": search.asked.top_k,
            "offset": search.asked.offset or None,
        }
        after = str(options.pop("after", ""))
        if not _NUMBER.fullmatch(after):
            options["after"] = after.removeprefix("[").removesuffix("]")
        conditions = self._filter, search.asked.filter
        options["filter"] = " AND ".join(f"({text})" for text in conditions if text)
        line = ["arag-search", "search", self._location]
        line += ["--tool", call.tool.partition("_")[0]] * (call.tool != "logical_search")
        for name, value in options.items():
            if value not in (None, "") and name != "max_results":
                line += [f"--{name.replace('_', '-')}", str(value)]
        words = search.asked.keywords if isinstance(search.asked, Keywords) else [call.query]
        return {**commands, "The query on the command line": shlex.join([*line, "--", *words])}


QUESTIONS: Mapping[str, Callable[[SearchPage, Asked], dict[str, Any]]] = {
    "read": SearchPage.read,
    "call": SearchPage.call,
    "why": SearchPage.why,
    "fields": SearchPage.fields,
    "add": SearchPage.add,
    "open": SearchPage.open,
}
"""The questions of the page, by the names in their addresses."""


def _keywords(text: str) -> list[str]:
    """Return the phrases in quotes and the words of a text: the keywords that it stands for."""
    return [phrase or word for phrase, word in _KEYWORD.findall(text)]


def _hits_of_spans(result: ToolResult) -> list[dict[str, Any]]:
    """Return the passages in the reply of a tool that does more than one search."""
    spans = {span.id: span for span in result.passages}
    return [
        {"id": span.id, "title": span.title, "snippet": span.text_in(result.text)}
        for span in spans.values()
    ]


def _window(lines: DocumentLines, at: int, result: SearchResult | None) -> dict[str, Any]:
    """Return the lines of a document around one, and the numbers of those with a match."""
    first = max(min(at - WINDOW_LINES // 4, len(lines) - WINDOW_LINES), 0)
    text, marks = lines.text, list[tuple[int, int]]()
    highlighter = None if result is None else result.highlighter
    if highlighter is not None and len(text) <= MAX_MARKED_CHARACTERS:
        blanks = len(text) - len(text.lstrip())
        for start, end in highlighter.highlights("", text, (len(text),), (0,)).snippet:
            marks.append((start + blanks, end + blanks))
    shown: list[dict[str, Any]] = []
    for number in range(first, min(first + WINDOW_LINES, len(lines))):
        start, end = lines.starts[number], lines.ends[number]
        own = [
            (max(begin, start) - start, min(stop, end) - start)
            for begin, stop in marks
            if begin < end and stop > start
        ]
        line = lines.line(number)
        places = utf16_places(line, own)
        shown.append({"name": lines.name(number), "text": line, "marks": places})
    return {
        "document": lines.doc_id,
        "title": lines.title,
        "first": first,
        "count": len(lines),
        "at": at,
        "lines": shown,
        "matches": list(dict.fromkeys(lines.line_at(start) for start, _ in marks)),
    }

"""The base of all tools: name, description, arguments and bounds are written once, and read by
the agent, by servers and by the command line.

A mistake of the model (arguments, query, ids) is returned to it as a result with status "error". A
failure that it cannot correct is raised.
"""

from __future__ import annotations

import copy
import functools
import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from arag_search.errors import ArgumentError, QueryTimeoutError, UnknownChunkError
from arag_search.query.problems import QueryError
from arag_search.search.index import Index
from arag_search.search.results import SearchResult
from arag_search.tokens import count_tokens
from arag_search.tools.arguments import OF_CLIENTS, instead_of, spelling, taken
from arag_search.tools.conversation import References, ShownReference
from arag_search.tools.descriptions import described, documents_of
from arag_search.tools.preset import PLAIN, Preset
from arag_search.tools.registry import TOOLS
from arag_search.tools.replies.apart import safe_signs
from arag_search.tools.replies.spans import PassageSpan, bounded, clipped

Status = Literal["ok", "empty", "error"]

STATE = "state"
"""The key that says in structured replies how the index stands beside its files."""
_SHOWN_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call.

    ``text``: the text for the model, of ``tokens`` o200k tokens.
    ``ids``: the chunks shown.
    ``total``: how many passages match, or sentences at sentence granularity. None for reads,
    errors, searches by vectors, and searches for documents that found some.
    ``is_absent``: whether something that was asked for occurs nowhere.
    ``is_of_names``: whether the query was a name alone, or several.
    ``retrieved_tokens``: the tokens of corpus text in ``text``.
    ``passages``: where each passage is in the text, in order.
    ``structured``: the object whose JSON is the text; only the tools of connectors have it.
    ``references``: the documents that a document tool shows.
    ``kept``: the references that summarize keeps; None for other tools.
    ``search_result``: the result of the one search that the text words; None for other tools.
    """

    text: str
    status: Status
    ids: tuple[str, ...] = ()
    total: int | None = None
    total_is_exact: bool = True
    is_absent: bool = False
    retrieved_tokens: int = 0
    passages: tuple[PassageSpan, ...] = ()
    structured: Mapping[str, Any] | None = None
    references: tuple[ShownReference, ...] = ()
    kept: tuple[str, ...] | None = None
    is_of_names: bool = False
    search_result: SearchResult | None = field(default=None, compare=False, repr=False)
    tokens: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", count_tokens(self.text))


Repeated = tuple[str, Status, tuple[str, ...], int | None, bool]
"""The first fields of the result of a call that was run before."""


class Window(NamedTuple):
    """Pieces of lines of the document of a reference that were opened, their name in an editor, and
    the step that shows them."""

    reference: str
    first: int
    last: int
    name: str
    step: int


@dataclass(slots=True)
class ReadSet:
    """The passages and documents that have been shown in one conversation so far.

    - ``seen``: for each chunk, the checksums of its sentences that searches or reads have shown.
    - ``is_kept``: whether everything shown is still visible to the model. A server cannot know.
    - ``references``: the names of the documents.
    - ``windows``: their lines that were opened and are still visible.
    - ``step``: the number of the current call.
    - ``read``: the ids of passages asked for, in presets that reply as A-RAG (its context tracker).
    - ``noted``: the unknown arguments that a note has named.
    - ``key`` tells the conversation from others: further pages of a result are read from the state
      of the index of its first page.

    A ``Toolbox`` itself writes:

    - ``ids``: the ids of passages.
    - ``calls``: the calls that were run, with what answers them again.
    - ``stale_steps``: the number of steps since something new was shown.
    """

    seen: dict[str, frozenset[int]] = field(default_factory=dict[str, frozenset[int]])
    is_kept: bool = True
    references: References = field(default_factory=References)
    windows: list[Window] = field(default_factory=list[Window])
    step: int = 0
    read: set[str] = field(default_factory=set[str])
    noted: set[str] = field(default_factory=set[str])
    ids: set[str] = field(default_factory=set[str])
    calls: dict[str, Repeated] = field(default_factory=dict[str, Repeated])
    stale_steps: int = 0
    key: Annotated[object, Field(exclude=True)] = field(default_factory=object, compare=False)

    def begin(self) -> None:
        """Begin another question of the same conversation."""
        self.calls.clear()
        self.stale_steps = 0
        self.references.question += 1

    def copy(self) -> ReadSet:
        """Return a copy for a call, without what a ``Toolbox`` notes itself. References are shared,
        so that concurrent calls never give the same name twice."""
        seen, windows, read = dict(self.seen), list(self.windows), set(self.read)
        noted = set(self.noted)
        return ReadSet(seen, self.is_kept, self.references, windows, self.step, read, noted)

    def note(self, chunk: str, checksums: Iterable[int]) -> None:
        """Count sentences of a chunk as shown."""
        self.seen[chunk] = self.seen.get(chunk, frozenset()).union(checksums)

    def window(self, reference: str, first: int, last: int) -> Window | None:
        """Return an opened window that holds all these lines of a reference, or None."""
        for window in self.windows:
            if window.reference == reference and window.first <= first and last <= window.last:
                return window
        return None

    def forget(self, passages: Collection[str], references: Collection[str]) -> None:
        """Count passages, and the windows of references, as no longer visible."""
        for chunk in passages:
            self.seen.pop(chunk, None)
        self.read.difference_update(passages)
        self.windows = [window for window in self.windows if window.reference not in references]

    def add(self, other: ReadSet) -> bool:
        """Add everything that another set counts as shown, and return whether a sentence is new."""
        is_new = False
        for chunk, checksums in other.seen.items():
            if self.seen.get(chunk) is not checksums:
                is_new |= not checksums <= self.seen.get(chunk, frozenset())
                self.note(chunk, checksums)
        self.read |= other.read
        self.noted |= other.noted
        self.windows += [window for window in other.windows if window not in self.windows]
        return is_new


class Arguments(BaseModel):
    """The base of all argument types: unknown arguments are rejected, and no value is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Mistake(Exception):
    """A mistake that a model made in a call, worded for the model."""


class Tool(ABC):
    """A tool over one index, set up by the keys of a preset. ``hidden`` arguments are left out of
    the schema and rejected. ``max_result_tokens`` bounds the text of a result (o200k tokens, hard).
    """

    name: ClassVar[str]
    arguments: type[Arguments]
    output_schema: ClassVar[dict[str, Any] | None] = None
    """The JSON schema of ``ToolResult.structured``, None for replies that are text alone."""

    def __init__(self, index: Index, preset: Preset = PLAIN) -> None:
        self.index = index
        self.preset = preset
        self.max_result_tokens = preset.max_result_tokens
        self.hidden: frozenset[str] = frozenset(self._hidden())
        self.description = self._description()

    def _hidden(self) -> Iterable[str]:
        return ()

    def _features(self) -> dict[str, bool]:
        """Return what the conditions of the description may ask of the tool itself."""
        return {}

    def _description(self) -> str:
        return described(self.name, self.index, self.preset, self._features())

    @functools.cached_property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        schema = _schema_of(self.arguments)
        # Titles repeat the names, and a default that is empty says nothing.
        properties = {
            name: {key: value for key, value in schema_of.items() if key != "title" and value != ""}
            for name, schema_of in schema["properties"].items()
            if name not in self.hidden
        }
        return {
            "type": "object",
            "properties": properties,
            "required": [name for name in schema.get("required", []) if name not in self.hidden],
            "additionalProperties": False,
        }

    def served_as(self, name: str) -> Tool:
        """Return the tool over the index that clients of a server know by this name."""
        served = copy.copy(self)
        what = documents_of(self.index)
        served.description = self.description.replace(what, f"{what} in {name}", 1)
        return served

    def openai_schema(self, name: str | None = None) -> dict[str, Any]:
        """Return the tool as OpenAI-compatible endpoints take it in ``tools``, by any name."""
        return {
            "type": "function",
            "function": {
                "name": name or self.name,
                "description": self.description,
                "parameters": self.parameters,
            },
        }

    def run(
        self,
        arguments: object,
        read_set: ReadSet | None = None,
        *,
        skips_unknown: bool = False,
        tells_standing: bool = True,
    ) -> ToolResult:
        """Check the arguments, which should be a mapping of names to values, and call the tool.

        Arguments that only a client can have got wrong are taken as meant, with a note (see
        ``arguments.taken``). ``skips_unknown`` also leaves out arguments that no such tool has.
        Wrong arguments, and a query that takes too long, give a result with status "error". Raises
        only errors that a model cannot correct.

        The reply ends with the state of the index beside its files, if there is something to say.
        Presets that reply as a paper leave it out. Without ``tells_standing``, the reply depends on
        the index alone.
        """
        standing = self.index.standing if tells_standing and self.preset.explains else None
        line = "" if standing is None else standing.line()
        tool = self._with_room_for(line) if line else self
        read_set = read_set if read_set is not None else ReadSet()
        result = tool._run(arguments, read_set, skips_unknown)
        missing = standing.missing() if standing is not None and result.is_absent else ""
        lines = [text for text in (missing, line) if text]
        if result.structured is not None:
            return _with_state(result, lines) if lines else result
        text = safe_signs(result.text)
        if text != result.text:
            result = replace(result, text=text)
        below = safe_signs("".join(f"\n{line}" for line in lines))
        room = self.max_result_tokens - (count_tokens(below) if below else 0)
        if result.tokens > room:
            text = bounded(result.text, room)
            result = replace(result, text=text, passages=clipped(result.passages, len(text)))
        return replace(result, text=f"{result.text}{below}") if below else result

    def _with_room_for(self, line: str) -> Tool:
        tokens = count_tokens(json_text({STATE: line}))
        tool = copy.copy(self)
        tool.max_result_tokens -= tokens
        most = self.preset.max_result_tokens - tokens
        tool.preset = self.preset.model_copy(update={"max_result_tokens": most})
        return tool

    def _run(self, arguments: object, read_set: ReadSet, skips_unknown: bool) -> ToolResult:
        known = self.parameters["properties"]
        if not isinstance(arguments, Mapping):
            names = ", ".join(known)
            problem = f"the arguments, {_preview(arguments)}. Allowed: a JSON object of {names}."
            return not_run([problem])
        given, notes = taken(cast(Mapping[object, object], arguments), self.parameters)
        problems: list[str] = []
        for name, value in given.items():
            if name not in known:
                if skips_unknown and value in (None, "", [], {}):
                    continue
                problem = unknown_argument(name, list(known))
                by, instead = instead_of(name, self.index.manifest.metadata)
                problem = f"{problem} {instead}".rstrip() if by in known else problem
                is_skipped = skips_unknown and name not in self.arguments.model_fields
                if not is_skipped or instead:  # a result that was not narrowed would mislead
                    problems.append(problem)
                elif not (spelling(name) in OF_CLIENTS or str(name) in read_set.noted):
                    read_set.noted.add(str(name))
                    notes.append(problem)
        try:
            checked = self.arguments.model_validate(
                {name: value for name, value in given.items() if name in known}
            )
        except ValidationError as error:
            problems += self._problem_texts(error)
        else:
            if not problems:
                return _noted(self._answer(checked, read_set), notes)
        return _noted(not_run(problems), notes)

    def _answer(self, arguments: Any, read_set: ReadSet) -> ToolResult:
        try:
            return self._call(arguments, read_set)
        except (Mistake, QueryError) as error:
            return error_result(str(error))
        except (ArgumentError, UnknownChunkError) as error:
            allowed = f"Allowed: {error.allowed}." if error.allowed else ""
            return not_run([" ".join(filter(None, (error.what, allowed, error.do)))])
        except QueryTimeoutError as error:
            return error_result(f"{error.what} {error.do}".strip())

    @abstractmethod
    def _call(self, arguments: Any, read_set: ReadSet) -> ToolResult:
        """Return the result of a call with checked arguments. Raises Mistake, and the errors of
        queries and arguments, for what the model can correct."""

    def _problem_texts(self, error: ValidationError) -> list[str]:
        lines: dict[str, str] = {}
        for detail in error.errors(include_url=False):
            name = str(detail["loc"][0])
            schema = self.parameters["properties"][name]
            if detail["type"] == "missing":
                lines[name] = missing_argument(name, schema)
            else:
                lines.setdefault(name, wrong_argument(name, detail["input"], schema))
        return list(lines.values())


def tool_class(name: str) -> type[Tool]:
    """Return the class of a registered tool, imported here so that ``--help`` stays fast."""
    module, _, class_name = TOOLS[name].defined_as.rpartition(".")
    return getattr(import_module(f"{__package__}.{module}"), class_name)


@functools.cache
def _schema_of(arguments: type[Arguments]) -> dict[str, Any]:
    # Servers set tools up for every address.
    return arguments.model_json_schema()


def allowed_text(schema: Mapping[str, Any]) -> str:
    """Return what a JSON schema allows, in words."""
    if "anyOf" in schema:
        return " or ".join(map(allowed_text, cast(list[Mapping[str, Any]], schema["anyOf"])))
    if "enum" in schema:
        return " or ".join(f'"{choice}"' for choice in schema["enum"])
    kind = schema.get("type")
    if kind == "integer":
        low, high = schema["minimum"], schema.get("maximum")
        if high is None:
            return f"a whole number, {low} or more"
        return f"a whole number from {low} to {high}"
    if kind == "array":
        low, high = schema.get("minItems", 0), schema.get("maxItems")
        items = cast(Mapping[str, Any], schema["items"])
        longest = items.get("maxLength")
        limit = f" of at most {longest} characters each" if longest else ""
        return f"a list of {low} to {high} strings{limit}"
    if kind == "number":
        low = schema.get("exclusiveMinimum", schema.get("minimum"))
        return f"a number above {low:g}, at most {schema['maximum']:g}"
    if kind == "boolean":
        return "true or false"
    return "null" if kind == "null" else "a string"


def error_result(text: str) -> ToolResult:
    """Return a result that tells the model what it did wrong."""
    return ToolResult(_whole(text), "error")


def _noted(result: ToolResult, notes: Sequence[str]) -> ToolResult:
    if not notes:
        return result
    text = "\n".join([result.text, *(f"Note: {_whole(note)}" for note in notes)])
    return replace(result, text=text)


def json_text(content: Mapping[str, Any]) -> str:
    """Return an object as JSON in one line."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _with_state(result: ToolResult, lines: Sequence[str]) -> ToolResult:
    content = {**(result.structured or {}), STATE: " ".join(lines)}
    return replace(result, text=json_text(content), structured=content)


def _whole(text: str) -> str:
    # Pieces of arguments may hold halves of characters.
    return text.encode("utf-8", "replace").decode("utf-8")


def not_run(problems: Sequence[str]) -> ToolResult:
    """Return the result of a call with wrong arguments."""
    many = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    lines = [f"{number}. {problem}" for number, problem in enumerate(problems, 1)]
    return error_result("\n".join([f"Tool not run: {many}.", *lines]))


def unknown_argument(name: object, known: Sequence[str]) -> str:
    """Return the problem of an argument that a tool does not have."""
    allowed = ", ".join(known) or "none"
    return f"argument {_preview(name)}: there is no such argument. Arguments: {allowed}."


def missing_argument(name: str, schema: Mapping[str, Any]) -> str:
    """Return the problem of an argument that was not given."""
    return f'argument "{name}" is missing. Allowed: {allowed_text(schema)}.'


def wrong_argument(name: str, value: object, schema: Mapping[str, Any]) -> str:
    """Return the problem of an argument whose value is not allowed."""
    return f'argument "{name}", {_preview(value)}. Allowed: {allowed_text(schema)}.'


def no_such_tool(name: str, tools: Iterable[str]) -> ToolResult:
    """Return the result of a call of an unknown tool."""
    shown = name[:_SHOWN_CHARACTERS]
    return error_result(f'Tool not run: there is no tool "{shown}". Tools: {", ".join(tools)}.')


def _preview(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 60 else text[:57] + "..."

"""OfflineModel: rules with the interface of a language model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from arag_search.agent.answers import NOT_FOUND, has_answer_line
from arag_search.agent.models.base import Message, ModelReply, ModelRequest, ToolCall
from arag_search.agent.models.offline.questions import parse_question
from arag_search.agent.models.offline.reader import SEARCH, Call, DocumentQueries, Reader, Verdict
from arag_search.agent.models.offline.replies import Reply, read_documents, read_reply
from arag_search.agent.prompts import prompt_text
from arag_search.errors import ArgumentError
from arag_search.tools.logical_search import LogicalSearch
from arag_search.tools.registry import DOCUMENT_TOOLS, READ_TOOLS

VERSION = "2"
"""The version of the rules; increase it if the same question may get another answer."""
RULES: dict[str, str] = {
    "titles": "looks for names in titles",
    "widen": "looks for the words of a name that is not found",
    "bridge": "continues from a name to the name that it leads to",
    "kin": "resolves relatives by marriage, such as a father-in-law, in two steps",
    "read": "reads a passage in full where its snippet does not answer",
    "both": "looks for both names of a comparison",
    "countries": "knows which people live in which country",
    "exclusions": "ranks lower what the question excludes",
    "words": "looks for content words where no relation is known",
    "spans": "answers with the best span where no rule has found a value",
}
"""The rules that may be left out, and what each does."""


class OfflineModel:
    """Rules in place of a language model, which need no key and no network. The model writes
    logical queries from the names and content words of the question, follows relations from one
    name to the next, and answers with the best short span. It is deterministic, and takes
    everything from the request. ``without`` names rules to leave out (see RULES). Raises
    ArgumentError for an unknown rule.
    """

    def __init__(self, without: frozenset[str] = frozenset()) -> None:
        unknown = sorted(without - RULES.keys())
        if unknown:
            raise ArgumentError(
                f"OfflineModel has no rule {', '.join(unknown)}.", allowed=", ".join(RULES)
            )
        self.without = without

    @property
    def name(self) -> str:
        """``offline``, and the rules that are left out."""
        return "offline" + "".join(f" -{rule}" for rule in sorted(self.without))

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the version and the rules."""
        text = json.dumps([VERSION, sorted(self.without)])
        return hashlib.sha256(f"offline {text}".encode()).hexdigest()[:16]

    def reply(self, request: ModelRequest) -> ModelReply:
        """Return the next call, or the answer if nothing is left to do or no tool may be
        called."""
        messages = request.messages
        asked, start = _question(messages)
        results = [message for message in messages[start:] if message.role == "tool"]
        calls = {call.id: call for message in messages[start:] for call in message.tool_calls}
        reader = Reader(
            parse_question(asked, kin="kin" not in self.without),
            frozenset(str(tool["function"]["name"]) for tool in request.tools)
            or frozenset(call.name for call in calls.values()),
            self.without,
            _takes_operators(request),
            "exclusions" not in self.without and _takes_demote(request),
            _document_queries(request, calls.values()),
        )
        reader.seen |= {passage.id: passage for passage in _given(messages[:start]).passages}
        call = _next_call(reader, [_read_result(result, calls) for result in results])
        if call is None or not request.tools:
            return ModelReply(_answer_text(reader.verdict()))
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        return ModelReply("", (ToolCall(f"offline-{len(results) + 1}", call.tool, arguments),))

    def close(self) -> None:
        """Do nothing: there is nothing to free."""


def _question(messages: Sequence[Message]) -> tuple[str, int]:
    """Return the last user message before the first move, and the number of the message after it.
    In a conversation, moves before the last answer do not count. Text that is given with a question
    is below it."""
    begin = 0
    for at, message in enumerate(messages[:-1]):
        is_answer = message.role == "assistant" and has_answer_line(message.content)
        if is_answer and messages[at + 1].content != prompt_text("escalated"):
            begin = at + 1
    text, start = "", 0
    for at, message in enumerate(messages[begin:], begin):
        if message.role in ("assistant", "tool"):
            break
        if message.role == "user":
            text, start = message.content, at + 1
    return text.split("\n\n")[0], start


def _given(messages: Sequence[Message]) -> Reply:
    """Return the documents given with the question, which is the last message."""
    _, _, below = messages[-1].content.partition("\n\n") if messages else ("", "", "")
    return read_documents(below)


def _document_queries(request: ModelRequest, made: Iterable[ToolCall]) -> DocumentQueries | None:
    """Return the form of the queries of a search for documents; None if there is no such search. A
    request for the answer has no tools, so the form is derived from the earlier calls."""
    for tool in request.tools:
        function = tool["function"]
        if function["name"] == SEARCH:
            is_logical = "query is logical" in function["description"]
            return DocumentQueries(is_logical, "queries" in function["parameters"]["properties"])
    for call in made:
        if call.name == SEARCH:
            is_logical = '"' in call.arguments.replace('"queries"', "").strip('{}[]: "')
            return DocumentQueries(is_logical, '"queries"' in call.arguments)
    return None


def _takes_operators(request: ModelRequest) -> bool:
    """Return whether queries may hold AND and OR: a tool that rejects them has no default
    operator."""
    return all(
        "default_operator" in tool["function"]["parameters"]["properties"]
        for tool in request.tools
        if tool["function"]["name"] == LogicalSearch.name
    )


def _takes_demote(request: ModelRequest) -> bool:
    """Return whether queries may hold DEMOTE: the description of the search then names it."""
    return any(
        "DEMOTE" in tool["function"]["description"]
        for tool in request.tools
        if tool["function"]["name"] == LogicalSearch.name
    )


def _read_result(result: Message, calls: dict[str, ToolCall]) -> Reply:
    call = calls.get(result.tool_call_id or "")
    name = "" if call is None else call.name
    if name in DOCUMENT_TOOLS:
        return read_documents(result.content, opened=name != SEARCH)
    return read_reply(result.content, whole=name in READ_TOOLS)


def _next_call(reader: Reader, replies: Sequence[Reply]) -> Call | None:
    """Return the call that follows these replies; None if there is none."""
    steps = reader.steps()
    try:
        call = next(steps)
        for reply in replies:
            call = steps.send(reply)
    except StopIteration:
        return None
    return call


def _answer_text(verdict: Verdict) -> str:
    """Return the answer in the form that prompts ask for."""
    if not verdict.answer:
        return f"Answer: {NOT_FOUND}\nExplanation: No rule found it.\nSources: "
    why = verdict.why or "It stands in the passage named"
    return f"Answer: {verdict.answer}\nExplanation: {why}.\nSources: {', '.join(verdict.sources)}"

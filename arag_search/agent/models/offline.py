"""OfflineModel: a few rules with the interface of a language model.

The rules know words and names, and nothing of any subject. They search for each name of a question
beside its other words. Then they search for the names in the best passages beside the words that
these lack. The answer is the sentence that has most of the words, with the id of its passage.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from arag_search.agent.answers import has_answer_line
from arag_search.agent.models.base import Message, ModelReply, ModelRequest, ToolCall
from arag_search.agent.prompts import PASSAGES_ABOVE, QUESTION_BELOW, prompt_text
from arag_search.agent.wording import NOT_FOUND
from arag_search.tools.conversation import FORM
from arag_search.tools.documents.search import GO_DEEPER
from arag_search.tools.registry import DOCUMENT_TOOLS, FOUND_BY_SEARCH, READ_TOOLS, TOOLS
from arag_search.tools.replies.parts import leaves_out, passages_at, read_spans
from arag_search.tools.replies.spans import NOT_SHOWN

VERSION = "3"
"""The version of the rules; increase it if the same question may get another answer."""

_MAX_NAMES = 3
_MAX_FURTHER_NAMES = 8
_MAX_WORDS = 12
_HITS = 2
_FURTHER_HITS = 3
_LINES_ABOVE = 2
_LABEL = re.compile(r"^(?:lines? )?(\d+)(?::\d+)?(?:-\d+(?::\d+)?)?: (?:\.\.\. )?")
_OWN_LINES = (NOT_SHOWN, GO_DEEPER, "Viewing lines [")
_GAP = re.compile(r"(?:^| )(?:\.\.\.|\(\d+ (?:left out|shown before)[^()]*\))(?= |$)")
"""What stands for sentences of a passage that are not shown."""
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)[\"”)]?\s+(?=[\"“(]?[^\W\d_a-z])")


_Call = tuple[str, str]
"""The name of a tool, and its arguments."""


@dataclass(slots=True)
class _Passage:
    """A passage, or a document by its reference, with the sentences that were shown of it.
    ``line`` is the first line shown of a document; ``lacks`` says that sentences are left out."""

    id: str
    title: str
    line: int
    lacks: bool
    sentences: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """The title and everything that was shown."""
        return " ".join((self.title, *self.sentences))

    def best_sentence(self, words: Sequence[str]) -> str:
        """Return the sentence with the most of these words that are not in the title. Of equals,
        return the sentence that has the latest word, since a question ends with what it asks."""
        words = [word for word in words if not _fit([word], self.title)[0]]
        return max(self.sentences, key=lambda text: _fit(words, text))


class _Reading:
    """The evidence that the passages shown so far have for a question.

    - ``spans``: the names that the question seems to have.
    - ``names``: the names to look for. A span that no passage contains is taken apart.
    - ``words``: its content words. ``other_words``: its content words outside of names.
    - ``best``: the passages that mention the names. ``missing``: the words that these lack.
    - ``further``: the names in the best passages that the question does not have.
    """

    def __init__(self, question: str, passages: Sequence[_Passage]) -> None:
        self.passages = [passage for passage in passages if passage.sentences]
        self.spans = list(dict.fromkeys(capitalised_spans(question)))[:_MAX_NAMES]
        self.names = [
            name
            for span in self.spans
            for name in ([span] if self._is_shown(span) else _parts(span))
        ]
        self.is_lacking = not self.names or not all(map(self._is_shown, self.names))
        rest = question
        for span in self.spans:
            rest = rest.replace(span, " ")
        self.words, self.other_words = _content_words(question), _content_words(rest)
        self.best = self._best()
        shown = " ".join(passage.text for passage in self.best)
        self.missing = [word for word in self.other_words if not _fit([word], shown)[0]]
        self.further = self._further(question) if self.missing else []

    def sources(self) -> list[_Passage]:
        """Return the passage that the answer is in, then the passages that led to it."""
        linked = [
            passage
            for name in self.further
            for passage in self.passages
            if passage not in self.best and _same_name(name, passage.title)
        ]
        words = self.missing if linked else self.other_words
        texts = [passage.text for passage in self.passages]
        weights = {word: 1 / (1 + sum(_fit([word], text)[0] for text in texts)) for word in words}

        def rank(passage: _Passage) -> float:
            return sum(weights[word] for word in words if _fit([word], passage.text)[0])

        first = max(linked or self.best, key=rank, default=None)
        return [] if first is None else [first, *(p for p in self.best if p is not first)]

    def _is_shown(self, name: str) -> bool:
        return any(_mentions(passage, name) for passage in self.passages)

    def _best(self) -> list[_Passage]:
        """Return passages that together mention all names that were shown. Passages of several
        names, or with one as title, come first. Without names, return the passage with most
        words."""
        if not self.names and self.passages:
            return [max(self.passages, key=partial(self._rank, ()))]
        best: list[_Passage] = []
        names: list[str] = [name for name in self.names if self._is_shown(name)]
        while names:
            passage = max(self.passages, key=partial(self._rank, names))
            best.append(passage)
            names = [name for name in names if not _mentions(passage, name)]
        return best

    def _rank(self, names: Sequence[str], passage: _Passage) -> tuple[int, bool, int]:
        return (
            sum(_mentions(passage, name) for name in names),
            any(_same_name(name, passage.title) for name in names),
            _fit(self.words, passage.text)[0],
        )

    def _further(self, question: str) -> list[str]:
        """Return names in the best passages, those beside most words of the question first."""
        known = f"{question} {' '.join(passage.title for passage in self.best)}".casefold()
        sentences = [text for passage in self.best for text in passage.sentences]
        ranked = sorted(sentences, key=lambda text: _fit(self.other_words, text)[0], reverse=True)
        names = dict.fromkeys(name for text in ranked for name in capitalised_spans(text))
        return [name for name in names if name.casefold() not in known][:_MAX_FURTHER_NAMES]


class OfflineModel:
    """Rules in place of a language model, which need no key and no network: the baseline that a
    real model has to beat. It is deterministic, and takes everything from the request."""

    name = "offline"
    fingerprint = hashlib.sha256(f"offline {VERSION}".encode()).hexdigest()[:16]

    def reply(self, request: ModelRequest) -> ModelReply:
        """Return the next call, or the answer if nothing is left to look up or no tool may be
        called."""
        text, start = _asked(request.messages)
        reading = _Reading(text, _shown(request.messages, start))
        calls = [call for message in request.messages[start:] for call in message.tool_calls]
        made = [(call.name, call.arguments) for call in calls]
        call = _next_call(reading, request.tools, made) if request.may_call else None
        if call is None:
            return ModelReply(_answer(reading))
        return ModelReply("", (ToolCall(f"offline-{len(made) + 1}", *call),))

    def close(self) -> None:
        """Do nothing: there is nothing to free."""


def _asked(messages: Sequence[Message]) -> tuple[str, int]:
    """Return the question, and the number of the message after it: the last message of the user
    before the first call after the last answer. Text that is given with it is below it, or above
    it under a heading."""
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
    if text.startswith(PASSAGES_ABOVE):
        return text.rpartition(QUESTION_BELOW)[2], start
    return text.split("\n\n")[0], start


def _parts(span: str) -> list[str]:
    return re.sub(r"['’]s ", " and ", span).split(" and ")


def _content_words(text: str) -> tuple[str, ...]:
    """Return the distinct words of a text except stop words, in a form that a query may hold."""
    words = re.findall(r"\w[\w'’-]*", text.casefold())
    content = dict.fromkeys(word for word in words if len(word) > 1 and word not in STOP_WORDS)
    return tuple(content)[:_MAX_WORDS]


def _next_call(
    reading: _Reading, tools: Sequence[Mapping[str, Any]], made: Collection[_Call]
) -> _Call | None:
    """Return the next call, or None if nothing is left to look up. First come searches for each
    name, and for all words if a name is not found. Then comes a search for the names in the best
    passages, then reads of passages that leave out sentences."""
    offered = {str(tool["function"]["name"]): tool["function"] for tool in tools}
    search = next((offered[name] for name in offered if name in FOUND_BY_SEARCH), None)
    if search is not None:
        by_name = {
            name: _search(search, [name], reading.other_words)
            for span in reading.spans
            for name in (span, *_parts(span))
        }
        by_words = _search(search, (), reading.words)
        first = [by_name[name] for name in reading.names]
        for call in [*first, by_words] if reading.is_lacking and reading.words else first:
            if call not in made:
                return call
        searches = {call for call in made if call[0] in FOUND_BY_SEARCH}
        if reading.further and searches <= {*by_name.values(), by_words}:
            return _search(search, reading.further, reading.missing)
    read = offered.get("chunk_read") or offered.get("open")
    if read is not None:
        for passage in reading.sources():
            call = _read(read, passage)
            if passage.lacks and call not in made:
                return call
    return None


def _search(tool: Mapping[str, Any], names: Sequence[str], words: Sequence[str]) -> _Call:
    name, fields = str(tool["name"]), tool["parameters"]["properties"]
    plain = " ".join((*names, *words))
    form = TOOLS[name].query_form
    if form == "logical" or "query is logical" in tool["description"]:
        text = _logical(names, words, operators="are refused" not in tool["description"])
    else:
        text = plain
    arguments: dict[str, Any] = {"query": text}
    if "keywords" in fields:
        arguments = {"keywords": [*names, *words]}
    elif "queries" in fields:
        arguments = {"queries": [text]}
    for most in ("top_k", "max_results"):
        if most in fields:
            arguments[most] = _HITS if len(names) == 1 else _FURTHER_HITS
    return name, json.dumps(arguments, ensure_ascii=False)


def _logical(names: Sequence[str], words: Sequence[str], *, operators: bool) -> str:
    """Return a query that ranks passages about the names first. Below them are passages that
    mention the names beside one of the words."""
    phrases = [f'"{_plain(name)}"' for name in names if _plain(name)]
    titles = [f"title:{phrase}^4" for phrase in phrases]
    if not operators or not phrases or not words:
        return " ".join((*titles, *phrases, *words))
    mentions = f"({' OR '.join(phrases)}) AND ({' OR '.join(words)})"
    return f"{' OR '.join(titles)} OR ({mentions})"


def one_query(question: str) -> str:
    """Return the logical query for all names of a question at once, or for its words; "" if it has
    neither. The rules themselves look for one name after the other."""
    reading = _Reading(question, ())
    words = reading.other_words if reading.names else reading.words
    return _logical(reading.names, words, operators=True)


def _plain(name: str) -> str:
    return " ".join(re.sub(r'["“”\\*?/<>]', " ", name).split())


def _read(tool: Mapping[str, Any], passage: _Passage) -> _Call:
    line = max(passage.line - _LINES_ABOVE, 1)
    arguments: dict[str, Any] = {"chunk_ids": [passage.id]}
    if tool["name"] == "open":
        arguments = {"reference_id": passage.id, "line_number": line}
    return str(tool["name"]), json.dumps(arguments, ensure_ascii=False)


def _shown(messages: Sequence[Message], start: int) -> list[_Passage]:
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    passages: dict[str, _Passage] = {}
    for at, message in enumerate(messages):
        if at == start - 1:
            is_above = message.content.startswith(PASSAGES_ABOVE)
            given = message.content if is_above else message.content.partition("\n\n")[2]
            given = given.rpartition(QUESTION_BELOW)[0] if is_above else given
            _note(passages, given, "search" if FORM.search(given) else "chunk_read")
        elif message.role == "tool":
            _note(passages, message.content, names.get(message.tool_call_id or "", ""))
    return list(passages.values())


def _note(passages: dict[str, _Passage], reply: str, tool: str) -> None:
    """Add the passages of a reply. The nearest passages of a search without a match count, too."""
    are_documents = tool in DOCUMENT_TOOLS
    spans = read_spans(reply, of_read=are_documents or tool in READ_TOOLS)
    for shown in passages_at(reply, spans):
        if are_documents and not FORM.fullmatch(shown.id):
            continue
        lines = [line for line in shown.text.split("\n") if not line.startswith(_OWN_LINES)]
        label = _LABEL.match(shown.text) if are_documents else None
        text = " ".join(_LABEL.sub("", line) if are_documents else line for line in lines)
        lacks = tool == "search" if are_documents else leaves_out(text)
        passage = passages.setdefault(
            shown.id, _Passage(shown.id, shown.title, int(label[1]) if label else 0, lacks)
        )
        passage.lacks = passage.lacks and lacks
        parts = _SENTENCE_END.split(" ".join(_GAP.sub(" ", text).split()))
        passage.sentences += [part for part in parts if part and part not in passage.sentences]


def _answer(reading: _Reading) -> str:
    sources = reading.sources()
    if not sources:
        return f"Answer: {NOT_FOUND}\nExplanation: No passage was found.\nSources: "
    source = sources[0]
    words = reading.words if source in reading.best else reading.missing
    sentence = source.best_sentence(words)
    about = "" if source.title in sentence else f"{source.title}: "
    ids = ", ".join(passage.id for passage in sources)
    why = "The sentence has most words of the question among those that its names lead to."
    return f"Answer: {about}{sentence}\nExplanation: {why}\nSources: {ids}"


def _fit(words: Sequence[str], text: str) -> tuple[int, int]:
    """Return how many of the words begin a word of the text, and the number of the last word that
    does. The last two letters of a word may differ."""
    here = set(re.findall(r"\w+", text.casefold()))
    fitting = [
        at
        for at, word in enumerate(words, 1)
        if any(other.startswith(word[: max(4, len(word) - 2)]) for other in here)
    ]
    return len(fitting), fitting[-1] if fitting else 0


def _mentions(passage: _Passage, name: str) -> bool:
    return name.casefold() in passage.text.casefold()


def _same_name(name: str, title: str) -> bool:
    return set(re.findall(r"\w+", title.casefold())).issuperset(re.findall(r"\w+", name.casefold()))


# Small English words, and the names between them


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP_WORDS = _listed(
    """a an the of in on at to for from by with as and or but than that this these those is are was
    were be been being do does did done has have had who whom whose which what when where why how
    it its his her their he she they them there both same either out not no s film films movie
    movies song songs one two other first later earlier which name named called also into during
    after before between while until because if so such more most many much year ever"""
)
"""Words that say nothing of what a passage is about."""

JOINS = _listed(
    """of the – — - de del della di da dos du des la le les el al von van der den af av ibn bin y
    mac ap no ul al- st. d' &"""
)
"""Small words that stand inside a name."""

NOT_NAMES = _listed(
    """a an the he she it they his her its their i we in on at of by for from to with as after
    before during since until when where while although this that these those there and or but
    if both who whom whose what which why how is are was were be do does did has have had can could
    will would may also however according despite following between among not no one two some many
    most all another other each such name out"""
)
"""Words that are capitalised only because a sentence begins with them."""

_POSSESSIVE = re.compile(r"['’]s?$")
_ENDS_OF_SPANS = ",;:?!"
_AROUND_WORDS = "\"'“”‘’«»().,;:?!"
_INSIDE_NAMES = JOINS | {"and", "for"}


def capitalised_spans(text: str) -> list[str]:
    """Return the runs of capitalised words, in order.

    Small words may stand inside a run ("Jump for Glory"). A first word does not count if it is
    capitalised only because a sentence begins with it. A comma ends a run, and so do brackets.
    """
    runs: list[list[str]] = []
    joins: list[str] | None = None  # small words since the last capital; None: no open run
    for at, word in enumerate(text.split()):
        bare = word.strip(_AROUND_WORDS)
        begins = at == 0 and bare.casefold() in NOT_NAMES
        if word[:1] == "(":
            joins = None
        if bare[:1].isupper() and not begins:
            if joins is None:
                runs.append([])
            runs[-1] += [*(joins or ()), word]
            joins = []
        elif joins is not None and bare.casefold() in _INSIDE_NAMES:
            joins.append(word)
        else:
            joins = None
        if word[-1:] in _ENDS_OF_SPANS:
            joins = None
    return [span for run in runs if (span := _trimmed(" ".join(run)))]


def _trimmed(span: str) -> str:
    """Strip quotes, brackets, punctuation and a possessive 's; a full stop may be part of a
    name."""
    return _POSSESSIVE.sub("", span.strip(_AROUND_WORDS))

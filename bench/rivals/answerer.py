"""The seam: a system that answers a question over an index, with a record of our agent's kind.

A system has no tool calls of a model but a fixed course: it asks the model in roles, and searches
by itself. Both are steps of the record, named by the role or by the search, so that a run is
scored, shown, priced and resumed as every run is. ``loops`` counts the requests to the model.

What a model said is cut to MAX_SAID_TOKENS before another request repeats it. A role that replies
twice with nothing to read is a step with status "error", and the system goes on without it; without
a last answer, the question has failed.
"""

from __future__ import annotations

import functools
import hashlib
import re
import time
from abc import abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from arag_search.agent.loop import Agent, Ended, add_step
from arag_search.agent.models.base import ChatModel, Message, ModelReply
from arag_search.agent.presets import preset_fingerprint
from arag_search.agent.record import Step
from arag_search.agent.state import State
from arag_search.errors import ModelReplyError
from arag_search.query.limits import MAX_CHARACTERS
from arag_search.search.index import Index
from arag_search.tokens import cut_to
from arag_search.tools.base import ReadSet, ToolResult, error_result
from arag_search.tools.chunk_read import ChunkRead
from arag_search.tools.preset import Preset, plain_preset
from arag_search.tools.reply_text import ShownPassage, passages_at

MAX_SAID_TOKENS = 2_000
MAX_ITEM_TOKENS = 200
DENSE = "naive_embedding_search"
WORDS = "logical_search"
SENTENCES = "semantic_search"

_PROMPTS = Path(__file__).parent / "prompts"
_MAX_RESULT_TOKENS = 200_000
_BULLET = re.compile(r"^(?:[-*•#]+|\(?\d{1,3}[.):])\s+")


class Settings(BaseModel):
    """The settings of a system, as a suite may ``set`` them; ``passages`` is A-RAG's k."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    passages: int = Field(5, ge=1, le=20)


@dataclass(frozen=True, slots=True)
class Building:
    """What a system took before the first question: calls of models and their tokens, seconds, and
    the bytes that it keeps."""

    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    bytes: int = 0


@dataclass(frozen=True)
class Built:
    """What a system builds before the first question, and all questions share; None: nothing."""

    building: Building | None = None

    def close(self) -> None:
        """Free what is open."""


S = TypeVar("S", bound=Settings)
B = TypeVar("B", bound=Built)


class Answerer(Agent, Generic[S, B]):
    """A system over one index and one model. Threads may share it.

    ``searches`` are those of the index that it makes. ``roles`` are the prompts of its requests,
    that of the answer last.
    """

    searches: ClassVar[tuple[str, ...]] = (DENSE,)
    roles: ClassVar[tuple[str, ...]]
    settings_type: ClassVar[type[Settings]] = Settings

    def __init__(
        self, index: Index, preset: Preset, model: ChatModel, settings: S, built: B
    ) -> None:
        super().__init__(index, preset, model)
        self.settings, self.built = settings, built
        self._read = ChunkRead(index, preset)
        parts = [preset_fingerprint(preset), settings.model_dump_json(), *map(prompt, self.roles)]
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
        self.fingerprints |= {"preset": f"{preset.name}-{digest}", "system": type(self).__name__}

    @classmethod
    def preset_of(cls, name: str) -> Preset:
        """Return the preset by whose name and searches a run describes the system."""
        return plain_preset(
            name=name, description=name, tools=cls.searches, replies="LogicalRAG",
            prompt=str(_PROMPTS / f"{cls.roles[-1]}.md"), max_result_tokens=_MAX_RESULT_TOKENS,
        )  # fmt: skip

    @classmethod
    def build(cls, index: Index, settings: Settings, model: str, folder: Path) -> Built:
        """Build in ``folder`` what is not there yet; most systems need nothing beside the index.
        ``model`` is the model of systems that ask one by themselves."""
        del index, settings, model, folder
        return Built()

    @classmethod
    @abstractmethod
    def usual_calls(cls, settings: Any) -> Iterator[tuple[str, int]]:
        """Yield the requests of a usual question: the role, and how many passages it is shown."""

    @abstractmethod
    def answer(self, state: State) -> ModelReply:
        """Answer the question of a state; requests and searches become steps of it."""

    def _steps(self, state: State) -> Generator[Step, None, Ended]:
        reply = self.answer(state)
        yield from state.steps
        return self._end_of(state, reply, "answered")

    # The model

    def reply(
        self, state: State, role: str, passages: Sequence[ShownPassage] = (), **said: str
    ) -> ModelReply:
        """Ask the model in a role, by a request of its own. Raises ModelReplyError if it replies
        twice with nothing to read."""
        self.begin_request(state, role, passages, said)
        return self._reply(state, ())

    def say(
        self, state: State, role: str, passages: Sequence[ShownPassage] = (), **said: str
    ) -> str:
        """Ask the model in a role as a step, and return what it said; "" if that is nothing."""
        began = time.perf_counter()
        try:
            text = cut_to(self.reply(state, role, passages, **said).text.strip(), MAX_SAID_TOKENS)
            result = ToolResult(text, "ok")
        except ModelReplyError as error:
            text, result = "", error_result(str(error))
        add_step(state, role, recorded(passages, said), "", result, began)
        return text

    def begin_request(
        self, state: State, role: str, passages: Sequence[ShownPassage], said: Mapping[str, str]
    ) -> None:
        """Replace the messages of a state by those of a request: what is ``said`` comes under its
        names, then the passages."""
        parts = [f"{name.replace('_', ' ').capitalize()}:\n{text}" for name, text in said.items()]
        if passages:
            parts.append("Passages:\n" + "\n\n".join(map(passage_text, passages)))
        state.messages.clear()
        state.context_tokens = 0
        state.add(Message("system", prompt(role)))
        state.add(Message("user", "\n\n".join(parts)))
        state.loops += 1

    # The index

    def nearest(self, state: State, query: str) -> list[ShownPassage]:
        """Return the passages nearest to a query, as a step."""
        began = time.perf_counter()
        arguments = {"query": searched(query, state), "top_k": self.settings.passages}
        result = self.calls.tools[DENSE].run(arguments, ReadSet(), tells_standing=False)
        return _add_search(state, DENSE, arguments, result, began)

    def show(
        self, state: State, search: str, arguments: Mapping[str, Any], ids: Sequence[str],
        began: float,
    ) -> list[ShownPassage]:  # fmt: skip
        """Return the passages with these ids, as the step of a search that found them."""
        result = ToolResult("Nothing was found.", "empty")
        if ids:
            given = {"chunk_ids": list(ids)}
            result = self._read.run(given, ReadSet(), tells_standing=False)
        return _add_search(state, search, arguments, result, began)


def _add_search(
    state: State, search: str, arguments: Mapping[str, Any], result: ToolResult, began: float
) -> list[ShownPassage]:
    state.shown_ids.update(result.ids)
    add_step(state, search, dict(arguments), "", result, began)
    return passages_at(result.text, result.passages)


@functools.cache
def prompt(role: str) -> str:
    """Return the prompt of a role; one that answers says in which form."""
    text = (_PROMPTS / f"{role}.md").read_text("utf-8").strip()
    return text.replace("{answer_form}", (_PROMPTS / "answer_form.md").read_text("utf-8").strip())


def passage_text(passage: ShownPassage) -> str:
    """Return a passage as requests show it."""
    return f"[{passage.id}] {passage.title}".rstrip() + f"\n{passage.text}"


def recorded(passages: Sequence[ShownPassage], said: Mapping[str, str]) -> dict[str, Any]:
    """Return what a step records of a request: passages by their ids."""
    return {**said, **({"passages": [passage.id for passage in passages]} if passages else {})}


def searched(query: str, state: State) -> str:
    """Return a text that a search takes: the question in place of one without a word."""
    text = query if any(map(str.isalnum, query)) else state.question
    return text.strip()[:MAX_CHARACTERS]


def items(text: str, most: int) -> list[str]:
    """Return the lines of a list that a model wrote, without bullets and numbers: at most ``most``,
    each once and cut to MAX_ITEM_TOKENS."""
    lines = (_BULLET.sub("", line.strip()).strip() for line in text.splitlines())
    named = dict.fromkeys(line for line in lines if any(map(str.isalnum, line)))
    return [cut_to(line, MAX_ITEM_TOKENS) for line in list(named)[:most]]

"""The seam: a system that answers a question over an index, with a record of our agent's kind.

A system has no tool calls of a model but a fixed course: it asks the model in roles, and searches
by itself. Both are steps of the record, named by the role or by the search. So a run is scored,
shown, priced and resumed as every run is. ``loops`` counts the requests to the model.

Text of earlier replies that a request repeats is cut to MAX_SAID_TOKENS. If a role replies twice
with nothing to read, its step has the status "error", and the system goes on without it. Without a
last answer, the question has failed.
"""

from __future__ import annotations

import functools
import hashlib
import re
import time
from abc import abstractmethod
from collections.abc import Generator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from arag_search.agent.loop import Agent, Ended, add_step
from arag_search.agent.models.base import ChatModel, Message, ModelReply
from arag_search.agent.prompts import preset_fingerprint
from arag_search.agent.record import Step
from arag_search.agent.state import State
from arag_search.errors import ConfigError, ModelReplyError
from arag_search.query.limits import MAX_CHARACTERS
from arag_search.search.index import Index
from arag_search.system.yaml_file import numbered
from arag_search.tokens import cut_to
from arag_search.tools.preset import Preset, plain_preset
from arag_search.tools.replies.apart import marked, safe_signs
from arag_search.tools.replies.block import retrieved_tokens
from arag_search.tools.replies.fit import fit
from arag_search.tools.replies.papers import paper_block
from arag_search.tools.replies.parts import ShownPassage, passages_at
from arag_search.tools.tool import ToolResult, error_result
from bench import BenchError
from bench.rivals import RIVALS, RivalName
from bench.workbench import Building

MAX_SAID_TOKENS = 2_000
MAX_ITEM_TOKENS = 200
DENSE = "naive_embedding_search"
WORDS = "logical_search"
SENTENCES = "semantic_search"
NOTHING = "(nothing)"
"""What stands in a request for a reply that is missing."""

_PROMPTS = Path(__file__).parent / "prompts"
_MAX_RESULT_TOKENS = 200_000
"""More than 20 passages have, unless they are longer than any model reads."""
_BULLET = re.compile(r"^(?:[-*•#]+|\(?\d{1,3}[.):])\s+")


class Settings(BaseModel):
    """The settings of a system, as a suite may ``set`` them; ``passages`` is A-RAG's k."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    passages: int = Field(5, ge=1, le=20)


class Built:
    """The parts of a system that are built before the first question, and that all questions
    share."""

    building: Building | None = None

    def close(self) -> None:
        """Free what is open."""


class Answerer(Agent):
    """A system over one index and one model. Threads may share it.

    ``searches`` are the searches of the index that it makes. ``roles`` are the prompts of its
    requests; the prompt of the answer is last. Log-probabilities are asked for in the roles that
    are ``scored``.
    """

    searches: ClassVar[tuple[str, ...]] = (DENSE,)
    roles: ClassVar[tuple[str, ...]]
    scored: ClassVar[tuple[str, ...]] = ()
    settings_type: ClassVar[type[Settings]] = Settings

    def __init__(
        self, index: Index, preset: Preset, model: ChatModel, settings: Any, built: Any
    ) -> None:
        super().__init__(index, preset, model)
        self.settings, self.built = settings, built
        parts = [preset_fingerprint(preset), settings.model_dump_json(), *map(prompt, self.roles)]
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
        self.fingerprints |= {"preset": f"{preset.name}-{digest}", "system": type(self).__name__}

    @classmethod
    def preset_of(cls, name: str) -> Preset:
        """Return the preset by whose name and searches a run describes the system."""
        return plain_preset(
            name=name, description=name, tools=cls.searches, replies="LogicalRAG",
            prompt=str(_PROMPTS / f"{cls.roles[-1]}.md"),
        )  # fmt: skip

    @classmethod
    def build(cls, index: Index, settings: Settings, model: str, folder: Path) -> Built:
        """Build in ``folder`` what is not there yet; most systems need nothing beside the index.
        ``model`` is the model of systems that ask one by themselves."""
        del index, settings, model, folder
        return Built()

    @abstractmethod
    def answer(self, state: State) -> ModelReply:
        """Return the last reply to the question of a state; requests and searches become steps."""

    def _steps(self, state: State) -> Generator[Step, None, Ended]:
        reply = self.answer(state)
        yield from state.steps
        if not reply.text.strip():
            *_, last = state.steps
            why = last.tool_output if last.status == "error" else ""
            raise BenchError(f"There is no last answer. {why}".strip())
        return self._end_of(state, reply, "answered")

    def say(
        self, state: State, role: str, passages: Sequence[ShownPassage] = (), **said: str
    ) -> ModelReply:
        """Ask the model in a role as a step, by a request of its own. The texts of ``said`` come
        under their names, cut to MAX_SAID_TOKENS, then the passages. A reply with nothing to read
        is empty."""
        began = time.perf_counter()
        asked: dict[str, Any] = {name: cut_to(text, MAX_SAID_TOKENS) for name, text in said.items()}
        parts = [f"{name.replace('_', ' ').capitalize()}:\n{text}" for name, text in asked.items()]
        if passages:
            texts = (f"[{of.id}] {of.title}".rstrip() + f"\n{marked(of.text)}" for of in passages)
            parts.append("Passages:\n" + "\n\n".join(texts))
            asked["passages"] = [passage.id for passage in passages]
        state.messages.clear()
        state.context_tokens = 0
        state.add(Message("system", prompt(role)))
        state.add(Message("user", "\n\n".join(parts)))
        state.loops += 1
        try:
            reply = self._reply(state, (), logprobs=role in self.scored)
            result = ToolResult(reply.text, "ok")
        except ModelReplyError as error:
            reply, result = ModelReply(""), error_result(str(error))
        add_step(state, role, asked, "", result, began)
        return reply

    def nearest(self, state: State, query: str) -> list[ShownPassage]:
        """Return the passages nearest to a query, as a step."""
        began = time.perf_counter()
        arguments = {"query": searched(query, state), "top_k": self.settings.passages}
        hits = self.index.naive_embedding_search(**arguments, snippets=False).hits
        return self.show(state, DENSE, arguments, dict.fromkeys(hit.id for hit in hits), began)

    def show(
        self, state: State, search: str, arguments: Mapping[str, Any],
        shown: Mapping[str, Sequence[int] | None], began: float,
    ) -> list[ShownPassage]:  # fmt: skip
        """Return passages as the step of a search that found them. ``shown`` has their ids, best
        first, each with the numbers of the sentences that are shown, None for all."""
        chunks = filter(None, self.index.read(list(shown)))
        blocks = [paper_block(chunk, "LogicalRAG", shown.get(chunk.id)) for chunk in chunks]
        text, kept, spans = fit(lambda _: ("", ""), blocks, _MAX_RESULT_TOKENS, whole=True)
        ids, tokens = tuple(block.id for block in kept), retrieved_tokens(kept)
        text = safe_signs(text)
        status = "ok" if ids else "empty"
        result = ToolResult(text, status, ids, retrieved_tokens=tokens, passages=spans)
        state.read_set.ids.update(ids)
        add_step(state, search, dict(arguments), "", result, began)
        return passages_at(text, spans)


@functools.cache
def prompt(role: str) -> str:
    """Return the prompt of a role. If the role answers, the prompt says in which form."""
    text = (_PROMPTS / f"{role}.md").read_text("utf-8").strip()
    return text.replace("{answer_form}", (_PROMPTS / "answer_form.md").read_text("utf-8").strip())


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


def rival_of(name: RivalName, changes: dict[str, Any]) -> tuple[type[Answerer], Settings]:
    """Return a system, whose module is imported now, and its settings with some changed. Raises
    ConfigError naming what is wrong."""
    module, _, class_name = RIVALS[name].answerer.partition(".")
    answerer: type[Answerer] = getattr(import_module(f"{__package__}.{module}"), class_name)
    try:
        return answerer, answerer.settings_type.model_validate(changes)
    except ValidationError as error:
        problems = [f"{of['loc'][0]}: {of['msg']}." for of in error.errors(include_url=False)]
        allowed = ", ".join(answerer.settings_type.model_fields)
        raise ConfigError(numbered("entry", problems), where="set", allowed=allowed) from error

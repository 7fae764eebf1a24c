"""Systems as their authors publish them: each in a process of its own that speaks JSON lines.

``uv run --script`` makes an environment for a script beside this module from the requirements in
it, so that its pins never meet ours. ``scripts/lines.py`` says what the lines hold. The system asks
model and encoder by itself, at the endpoint that our variables name. Of ours it gets the question
and, where it takes one, the form of the answer. Questions wait for each other.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from arag_search.agent.models.base import ModelReply
from arag_search.agent.models.usage import MAX_USAGE_TOKENS, Usage
from arag_search.agent.state import State
from arag_search.endpoints.calls import BASE_URL_VARIABLES, KEY_VARIABLES, first_set
from arag_search.search.index import Index
from bench import BenchError
from bench.processes import Process, quiet_environment
from bench.rivals.answerer import Answerer, Built, Settings, prompt
from bench.workbench import built_once

COMMAND = ("uv", "run", "--quiet", "--script")
MAX_PASSAGES = 200
_COUNT = Field(0, ge=0, le=MAX_USAGE_TOKENS)


class Reply(BaseModel):
    """A line of a script."""

    answer: str = ""
    passages: list[str] = []
    error: str = ""
    calls: int = _COUNT
    prompt_tokens: int = _COUNT
    completion_tokens: int = _COUNT
    cached_tokens: int = _COUNT

    def check(self) -> None:
        """Raise BenchError for an error."""
        if self.error:
            raise BenchError(f"The system failed: {self.error}")


class ProcessSettings(Settings):
    """``embedding_model`` is one of the endpoint, with vectors of ``vector_size`` numbers."""

    embedding_model: str = "text-embedding-3-small"
    vector_size: int = Field(1536, ge=1)


class Script(Built):
    """A script; ``opening`` is its first line. It runs from building on or, where that was done
    before, from the first question."""

    def __init__(self, name: str, opening: dict[str, Any]) -> None:
        self._command = [*COMMAND, Path(__file__).parent / "scripts" / name]
        self._opening = opening
        self._running: Process | None = None
        self._stack = ExitStack()
        self._lock = threading.Lock()

    def open(self) -> tuple[int, int]:
        """Start the script, and return the calls and tokens that it took until it was open. Raises
        BenchError if it does not open."""
        names = {"OPENAI_API_KEY": KEY_VARIABLES, "OPENAI_BASE_URL": BASE_URL_VARIABLES}
        ours = {name: first_set(os.environ, known)[0] for name, known in names.items()}
        environment = quiet_environment(**{name: value for name, value in ours.items() if value})
        self._running = Process(self._stack, self._command, environment)
        reply = self._reply_to(self._running, self._opening)
        reply.check()
        return reply.calls, reply.prompt_tokens + reply.completion_tokens

    def ask(self, **said: str) -> Reply:
        """Return the reply to a question, which may be an error; then the next question starts the
        script again."""
        with self._lock:
            if self._running is None:
                self.open()
            return self._reply_to(self._running, said)

    def _reply_to(self, running: Any, said: dict[str, Any]) -> Reply:
        try:
            reply = Reply.model_validate(running.ask(said))
        except (BenchError, ValueError) as error:  # it has ended, or wrote no line of the kind
            reply = Reply(error=f"{type(error).__name__}: {error}")
        if reply.error:
            self.close()
        return reply

    def close(self) -> None:
        self._running = None
        self._stack.close()


class GraphRag(Answerer):
    """GraphRAG's local search, over communities of entities that a model extracted."""

    searches = ()
    roles = ("answer_form",)
    settings_type = ProcessSettings
    script, search = "graphrag_rival.py", "local_search"

    @classmethod
    def build(cls, index: Index, settings: Settings, model: str, folder: Path) -> Script:
        """Let the script build in a folder for this model and these settings."""
        folder /= hashlib.sha256(repr((model, settings)).encode()).hexdigest()[:8]
        passages = [{"id": of.id, "title": of.title, "text": of.content} for of in index.scan()]
        script = Script(cls.script, {
            "folder": str(folder.absolute()), "model": model, "settings": settings.model_dump(),
            "passages": passages,
        })  # fmt: skip
        script.building = built_once(folder, script.open)
        return script

    def answer(self, state: State) -> ModelReply:
        began = time.perf_counter()
        reply = self.built.ask(question=state.question, form=prompt(self.roles[-1]))
        state.loops += reply.calls
        used = (reply.prompt_tokens, reply.completion_tokens, "endpoint", reply.cached_tokens)
        state.spend(Usage(*used), reply.prompt_tokens)
        reply.check()
        shown = dict.fromkeys(reply.passages[:MAX_PASSAGES])
        self.show(state, self.search, {"query": state.question}, shown, began)
        return ModelReply(reply.answer)


class HippoRag(GraphRag):
    """HippoRAG2's PageRank over facts and passages, with a filter of facts, and its answer."""

    script, search = "hipporag_rival.py", "hippo_search"

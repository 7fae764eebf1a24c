"""Systems as their authors publish them: each in a process of its own that speaks JSON lines.

``uv run --script`` makes an environment for a script beside this module from the requirements that
stand in it, so that its pins never meet ours; ``scripts/lines.py`` says what the lines hold. The
system asks model and encoder by itself, at the endpoint that our variables name. Of ours it gets
the question and, where it takes one, the form of the answer. Questions wait for each other.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, Field, ValidationError

from arag_search.agent.models.base import ModelReply
from arag_search.agent.models.usage import MAX_USAGE_TOKENS, Usage
from arag_search.agent.state import State
from arag_search.endpoints.calls import BASE_URL_VARIABLES, KEY_VARIABLES, first_set
from arag_search.errors import ModelReplyError
from arag_search.search.index import Index
from bench import BenchError
from bench.rivals.answerer import Answerer, Built, Settings, prompt
from bench.workbench import built_once

COMMAND = ("uv", "run", "--quiet", "--script")
MAX_PASSAGES = 200
_COUNT = Field(0, ge=0, le=MAX_USAGE_TOKENS)
_END_S = 60


class Reply(BaseModel):
    """A line of a script."""

    answer: str = ""
    passages: list[str] = []
    error: str = ""
    calls: int = _COUNT
    prompt_tokens: int = _COUNT
    completion_tokens: int = _COUNT
    cached_tokens: int = _COUNT


class ProcessSettings(Settings):
    """``embedding_model`` is one of the endpoint, with vectors of ``vector_size`` numbers."""

    embedding_model: str = "text-embedding-3-small"
    vector_size: int = Field(1536, ge=1)


class Process(Built):
    """A script in the folder of what it builds; ``opening`` is its first line. It is started for
    building and, where that is done, by the first question."""

    def __init__(self, script: str, folder: Path, opening: dict[str, Any]) -> None:
        self.log = folder / "stderr.log"
        self._command = [*COMMAND, str(Path(__file__).parent / "scripts" / script)]
        self._opening = opening
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def open(self) -> tuple[int, int]:
        """Start the script, and return the calls and tokens that it took until it was open."""
        names = {"OPENAI_API_KEY": KEY_VARIABLES, "OPENAI_BASE_URL": BASE_URL_VARIABLES}
        ours = {name: first_set(os.environ, known)[0] for name, known in names.items()}
        environment = {**os.environ, **{name: value for name, value in ours.items() if value}}
        with self.log.open("ab") as errors:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                cwd=self.log.parent, env=environment,
            )  # fmt: skip
        reply = self._exchange(self._process, self._opening)
        return reply.calls, reply.prompt_tokens + reply.completion_tokens

    def ask(self, **said: str) -> Reply:
        """Return the reply to a question. Raises BenchError for an error of the system, and for a
        line that is no reply, such as that of a process that has ended; the next question then
        starts another."""
        with self._lock:
            if self._process is None:
                self.open()
            return self._exchange(self._process, said)

    def _exchange(self, process: Any, said: dict[str, Any]) -> Reply:
        try:
            process.stdin.write(orjson.dumps(said, option=orjson.OPT_APPEND_NEWLINE))
            process.stdin.flush()
            reply = Reply.model_validate_json(process.stdout.readline())
        except (OSError, ValidationError) as error:
            reply = Reply(error=f"it gave no reply that can be read ({type(error).__name__})")
        if reply.error:
            self.close()
            raise BenchError(f"The system failed: {reply.error}", where=str(self.log))
        return reply

    def close(self) -> None:
        """End the process, which ends with its input, or else is killed."""
        process, self._process = self._process, None
        if process is not None:
            try:
                process.communicate(timeout=_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


class GraphRag(Answerer):
    """GraphRAG's local search, over communities of entities that a model extracted."""

    searches = ()
    roles = ("answer_form",)
    settings_type = ProcessSettings
    script, search = "graphrag_rival.py", "local_search"

    @classmethod
    def build(cls, index: Index, settings: Settings, model: str, folder: Path) -> Process:
        """Let the script build in a folder for this model and these settings."""
        folder /= hashlib.sha256(repr((model, settings)).encode()).hexdigest()[:8]
        folder.mkdir(parents=True, exist_ok=True)
        passages = [{"id": of.id, "title": of.title, "text": of.content} for of in index.scan()]
        (folder / "passages.json").write_bytes(orjson.dumps(passages))
        opening = {"model": model, "settings": settings.model_dump()}
        process = Process(cls.script, folder, opening)
        process.building = built_once(folder, process.open)
        return process

    def answer(self, state: State) -> ModelReply:
        began = time.perf_counter()
        reply = self.built.ask(question=state.question, form=prompt(self.roles[-1]))
        state.loops += reply.calls
        used = (reply.prompt_tokens, reply.completion_tokens, "endpoint", reply.cached_tokens)
        state.spend(Usage(*used), reply.prompt_tokens)
        shown = dict.fromkeys(reply.passages[:MAX_PASSAGES])
        self.show(state, self.search, {"query": state.question}, shown, began)
        if not reply.answer.strip():
            raise ModelReplyError("The system gave no answer.", where=str(self.built.log))
        return ModelReply(reply.answer)


class HippoRag(GraphRag):
    """HippoRAG2's PageRank over facts and passages, with a filter of facts, and its answer."""

    script, search = "hipporag_rival.py", "hippo_search"

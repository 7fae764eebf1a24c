"""A batch: many questions over one index, with one preset and one model, into a folder of records.

Questions are answered by threads that share index and model. A thread records a question before
it takes the next one, so that a crash loses only the questions in progress. A run that ended
early, for whatever reason, is resumed by running it again: questions with a record that did not
fail are skipped.
"""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from typing import Literal

from arag_search.agent.given import Evidence
from arag_search.agent.loop import Agent
from arag_search.agent.models.base import ChatModel, ModelReply, ModelRequest
from arag_search.agent.models.usage import RequestTokens, most_reported, usage_warning
from arag_search.agent.record import Record, other_models_warning
from arag_search.errors import ArgumentError, ModelAccessError
from arag_search.questions.files import Question, questions_fingerprint
from arag_search.runs.folder import RunDescription, RunFolder, RunRecords
from arag_search.runs.prices import Prices, check_cost_limit
from arag_search.search.index import Index
from arag_search.system import release
from arag_search.system.processes import Interrupts
from arag_search.system.progress import Progress, counted
from arag_search.tools.preset import Preset

MAX_WORKERS = 256

Stopped = Literal["interrupted", "cost"]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run. ``limit`` is the number of questions to ask, from the first.
    ``max_cost_usd`` starts no question once the records of the folder have cost this much.
    ``questions_file`` and ``filter`` are noted in run.json."""

    workers: int = 1
    limit: int | None = None
    max_cost_usd: float | None = None
    questions_file: str = ""
    filter: str | None = None

    def check(self) -> None:
        """Raise ArgumentError for numbers that are not allowed."""
        if not 1 <= self.workers <= MAX_WORKERS:
            raise ArgumentError(f"workers is {self.workers}.", allowed=f"1 to {MAX_WORKERS}")
        if self.limit is not None and self.limit < 1:
            raise ArgumentError(f"limit is {self.limit}.", allowed="1 or more")


@dataclass(frozen=True, slots=True)
class Tally:
    """The progress of a run.

    ``total`` questions are to be answered; ``answered`` and ``failed`` have a record, also of
    earlier runs into the folder, unless they are retried. ``asked`` were recorded by this run, in
    ``seconds``. Tokens are of model calls of this run. ``full_price_tokens`` are tokens in the
    endpoint's cache that have no price of their own. ``cost_usd`` is of the whole folder, None if
    there are no prices.
    """

    total: int
    answered: int = 0
    failed: int = 0
    asked: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    full_price_tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0

    @property
    def left(self) -> int:
        """Questions that have no record yet."""
        return self.total - self.answered - self.failed

    def with_record(self, record: Record, seconds: float, full_price_tokens: int = 0) -> Tally:
        """Return the tally after one more record."""
        failed = record.status == "failed"
        cost = self.cost_usd
        if record.total_cost is not None:
            cost = (cost or 0.0) + record.total_cost
        return replace(
            self,
            answered=self.answered + (not failed),
            failed=self.failed + failed,
            asked=self.asked + 1,
            prompt_tokens=self.prompt_tokens + record.usage.prompt_tokens,
            completion_tokens=self.completion_tokens + record.usage.completion_tokens,
            full_price_tokens=self.full_price_tokens + full_price_tokens,
            cost_usd=cost,
            seconds=seconds,
        )

    def to_text(self) -> str:
        """Return the numbers of answers and failures, tokens and, if known, the cost, in words."""
        tokens = self.prompt_tokens + self.completion_tokens
        cost = "" if self.cost_usd is None else f", ${self.cost_usd:.4f}"
        if self.full_price_tokens:
            cost += f" ({self.full_price_tokens:,} cached tokens at full price)"
        return f"{self.answered:,} answered, {self.failed:,} failed, {tokens:,} tokens{cost}"


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The end of a run; ``stopped`` says why it started no more questions, None if it started
    all."""

    tally: Tally
    stopped: Stopped | None


def run(
    index: Index,
    questions: Sequence[Question],
    preset: Preset,
    model: ChatModel,
    out: Path | str,
    *,
    options: RunOptions | None = None,
    prices: Prices | None = None,
    progress: Progress | None = None,
    answerer: Callable[[Index, Preset, ChatModel], Agent] = Agent,
) -> RunOutcome:
    """Answer the questions that have no record in the folder ``out`` yet, or a failed one, by the
    agent or another ``answerer`` of its kind.

    In the main thread, the first Ctrl-C starts no more questions and waits for those in progress;
    the second one raises KeyboardInterrupt and abandons them. A failure of the model is a failed
    record, and the run continues. But if the model refuses access before its first reply, nothing
    is recorded and its ModelAccessError is raised. Raises ArgumentError without questions and for
    options out of bounds, and RunError for a folder of another run, in use, or full. Raises
    ConfigError for a cost limit without prices, and NotServedError if the index cannot serve a tool
    of the preset.
    """
    options = options or RunOptions()
    options.check()
    if not questions:
        raise ArgumentError("There are no questions.", allowed="one or more")
    if options.max_cost_usd is not None:
        check_cost_limit(options.max_cost_usd, prices, model.name)
    progress = progress or Progress()
    watched = _WatchedModel(model)
    agent = answerer(index, preset, watched)
    description = _description(agent, questions, options)
    try:
        with RunFolder(Path(out), description) as folder:
            asked = questions[: options.limit]
            texts = {question.id: question.text for question in asked}
            records = folder.records.of_run(description, texts)
            _say_what_is_there(folder, records, description, progress)
            _say_what_it_costs(agent, asked, records, prices, progress)
            batch = _Batch(agent, watched, folder, prices, options, progress)
            return batch.run(asked, records.own)
    finally:
        progress.end()


def _description(
    agent: Agent, questions: Sequence[Question], options: RunOptions
) -> RunDescription:
    return RunDescription(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        preset=agent.preset.name,
        index=agent.index.location,
        filter=options.filter,
        model=agent.model.name,
        questions=options.questions_file,
        count=len(questions),
        limit=options.limit,
        encoder=agent.encoder,
        versions=_versions(agent),
        fingerprints={**agent.fingerprints, "questions": questions_fingerprint(questions)},
    )


def _versions(agent: Agent) -> dict[str, str]:
    """Return the commit, a digest of the sources, and the versions of what they run on."""
    manifest, encoder = agent.index.manifest, agent.encoder
    package = {"onnx": "onnxruntime", "sentence-transformers": "sentence-transformers"}
    used = {"tokenizer": "bpe-openai", "encoder": package.get(encoder.kind) if encoder else None}
    return {
        "commit": release.commit() or "unknown",
        "sources": release.sources(),
        "python": platform.python_version(),
        "engine": f"{manifest.engine} {manifest.engine_version}",
        **{what: f"{name} {version(name)}" for what, name in used.items() if name},
    }


def _say_what_is_there(
    folder: RunFolder, records: RunRecords, now: RunDescription, progress: Progress
) -> None:
    if folder.dropped_bytes:
        progress.note(
            f"The last record was incomplete: {folder.dropped_bytes:,} bytes were dropped, and "
            "its question is asked again."
        )
    again = [id for id in records.foreign if id not in records.own]
    if records.foreign:
        progress.note(
            f"Records of another run are left out: {records.foreign_text()}. Questions that are "
            f"asked again for it: {len(again):,}."
        )
    code = now.fingerprints["code"]
    before = code if folder.previous is None else folder.previous.fingerprints.get("code")
    if before != code:
        progress.note(f"The run was started by version {before} and continues with version {code}.")


def _say_what_it_costs(
    agent: Agent,
    asked: Sequence[Question],
    records: RunRecords,
    prices: Prices | None,
    progress: Progress,
) -> None:
    """Report the estimate of a preset that reads in order, before it begins."""
    left = sum(_is_unanswered(records.own.get(question.id)) for question in asked)
    if agent.reader is None or not left:
        return
    cost = None if prices is None else prices.cost(agent.reader.estimate(), agent.model.name)
    money = "" if cost is None else f", ${cost * left:.2f} for {counted(left, 'question')}"
    progress.note(f"{agent.reader.estimate_text()}{money}.")


class _WatchedModel:
    """A model that remembers whether it has replied, and whether it refused access before that."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.name = model.name
        self.fingerprint = model.fingerprint
        self.has_replied = False
        self.refusal: ModelAccessError | None = None
        self.refused_ids: set[str] = set()

    def reply(self, request: ModelRequest) -> ModelReply:
        try:
            reply = self._model.reply(request)
        except ModelAccessError as error:
            if not self.has_replied:
                self.refused_ids.add(request.question_id)
                self.refusal = error
            raise
        self.has_replied = True
        return reply

    def close(self) -> None:
        self._model.close()


_ENDED = object()
_INTERRUPTED = object()


class _Batch:
    """The threads of one run, and what they share."""

    def __init__(
        self,
        agent: Agent,
        model: _WatchedModel,
        folder: RunFolder,
        prices: Prices | None,
        options: RunOptions,
        progress: Progress,
    ) -> None:
        self._agent = agent
        self._model = model
        self._folder = folder
        self._prices = prices
        self._options = options
        self._progress = progress
        self._lock = threading.Lock()  # over the tally and what is waiting
        self._waiting: list[Question] = []
        self._tally = Tally(0)
        self._requests: list[Sequence[RequestTokens]] = []
        self._other_models: list[Sequence[str]] = []
        self._most_reported = 0
        self._began = time.monotonic()
        # What a signal handler touches must not need a lock that the main thread may hold.
        self._news: SimpleQueue[object] = SimpleQueue()
        self._stopping = False
        self._stopped: Stopped | None = None

    def run(self, questions: Sequence[Question], records: Mapping[str, Record]) -> RunOutcome:
        """Answer the questions that have no answer in the records of the run."""
        stored = self._folder.records
        waiting = [question for question in questions if _is_unanswered(records.get(question.id))]
        self._waiting = waiting[::-1]  # taken from the end
        self._requests += [record.requests for record in records.values()]
        self._other_models += [record.other_models for record in records.values()]
        self._most_reported = most_reported(chain(*self._requests))
        has_price = self._prices is not None and self._model.name in self._prices.by_model
        cost = stored.cost if has_price or stored.cost else None
        self._tally = Tally(len(questions), len(questions) - len(waiting), cost_usd=cost)
        self._check_cost()
        workers = min(self._options.workers, len(waiting))
        try:
            with Interrupts(self._interrupt):
                self._show(self._tally, begins=True)
                for number in range(workers):
                    # Daemons, so that a second Ctrl-C need not wait for what is in flight.
                    name = f"worker-{number + 1}"
                    threading.Thread(target=self._work, name=name, daemon=True).start()
                self._watch(workers)
        finally:
            self._stopping = True
        for warning in (usage_warning(self._requests), other_models_warning(self._other_models)):
            if warning:
                self._progress.note(warning)
        if self._model.refusal is not None and not self._model.has_replied:
            self._folder.discard()
            raise self._model.refusal
        return RunOutcome(self._tally, self._stopped if self._tally.left else None)

    def _work(self) -> None:
        try:
            while (question := self._next()) is not None:
                evidence = [
                    Evidence(passage.title or "", passage.text)
                    for passage in question.supporting_passages
                ]
                record = self._agent.ask(question.text, question.id, evidence=evidence)
                self._record(record)
        except BaseException as error:
            self._stopping = True
            self._news.put(error)
        finally:
            self._news.put(_ENDED)

    def _next(self) -> Question | None:
        with self._lock:
            return self._waiting.pop() if self._waiting and not self._stopping else None

    def _record(self, record: Record) -> None:
        if record.question_id in self._model.refused_ids and not self._model.has_replied:
            self._stopping = True
            return
        full_price = 0
        if self._prices is not None:
            cost = self._prices.cost(record.usage, self._model.name)
            full_price = self._prices.full_price_tokens(record.usage, self._model.name)
            record = replace(record, total_cost=cost)
        with self._lock:
            warning = usage_warning([record.requests], self._most_reported)
            self._most_reported = most_reported(record.requests, self._most_reported)
        self._folder.append(replace(record, usage_warning=warning))
        with self._lock:
            self._requests.append(record.requests)
            self._other_models.append(record.other_models)
            seconds = time.monotonic() - self._began
            self._tally = self._tally.with_record(record, seconds, full_price)
            self._check_cost()
            self._news.put(self._tally)

    def _watch(self, working: int) -> None:
        problem: BaseException | None = None
        while working:
            news = self._news.get()
            if news is _ENDED:
                working -= 1
            elif news is _INTERRUPTED:
                self._progress.note(
                    "Interrupted: finishing the questions in progress, and starting no "
                    "more. Press Ctrl-C again to abandon them."
                )
            elif isinstance(news, Tally):
                self._show(news)
            elif isinstance(news, BaseException):
                problem = problem or news
        if problem is not None:
            raise problem

    def _show(self, tally: Tally, *, begins: bool = False) -> None:
        done = tally.total - tally.left
        if begins:
            self._progress.begin(f"of {tally.total:,} questions", tally.total, done, done)
        self._progress.update(done, done, tally.to_text())

    def _check_cost(self) -> None:
        limit = self._options.max_cost_usd
        if limit is not None and (self._tally.cost_usd or 0.0) >= limit and not self._stopping:
            self._stopping = True
            self._stopped = "cost"

    def _interrupt(self) -> None:
        self._stopping = True
        self._stopped = "interrupted"
        self._news.put(_INTERRUPTED)


def _is_unanswered(record: Record | None) -> bool:
    return record is None or record.status == "failed"

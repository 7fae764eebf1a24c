"""The record of one question: the question, every step, the answer, and its cost.

One record is one line of JSON. Where A-RAG has a field, its name is A-RAG's. The results of a step
and the citations of an answer are worded here for all who show a record.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
from pydantic import TypeAdapter, ValidationError

from arag_search.agent.answers import Citation, CitedDocument
from arag_search.agent.models.usage import RequestTokens, Usage
from arag_search.agent.wording import is_refusal
from arag_search.errors import RunError, on_one_line
from arag_search.tools.conversation import ShownReference
from arag_search.tools.registry import READ_TOOLS, TOOLS
from arag_search.tools.replies.parts import ShownPassage, passages_at, passages_under
from arag_search.tools.replies.spans import PassageSpan, check_spans
from arag_search.tools.tool import Status

Outcome = Literal["answered", "forced", "failed"]
_MOST_NAMED_MODELS = 5
ContextEventKind = Literal["warning", "forced", "voluntary", "exhausted"]


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call and its result; the same for log, replay, record and display.

    - ``step``: its number, from 1.
    - ``tool_input``: the arguments, or their text if they are not JSON.
    - ``reasoning``: the text of the model next to the call.
    - ``hit_ids``: the chunks shown. ``passages`` say where each is in ``tool_output``.
    - ``total_is_exact``: false if there are more than ``total_hits``.
    - ``retrieved_tokens``: the o200k tokens of corpus text. ``result_tokens``: of all output.
    - ``seconds``: the time of model and tool.
    - ``turn``: the turn of the model with the call, if a turn may have several calls.
    - ``references``: the documents that the output names.
    - ``from_text``: whether the call was read from the text of the reply.
    """

    step: int
    tool_name: str
    tool_input: Any
    tool_output: str
    reasoning: str
    status: Status
    hit_ids: tuple[str, ...]
    total_hits: int | None
    retrieved_tokens: int
    result_tokens: int
    seconds: float
    passages: tuple[PassageSpan, ...] = ()
    total_is_exact: bool = True
    turn: int | None = None
    references: tuple[ShownReference, ...] = ()
    from_text: bool = False

    def __post_init__(self) -> None:
        check_spans(self.passages, self.tool_output)

    @property
    def is_read(self) -> bool:
        """Whether the step read passages instead of searching."""
        return self.tool_name in READ_TOOLS

    def shown_passages(self) -> list[ShownPassage]:
        """Return the text that the output shows of each passage, in the order of the output. If the
        tool is not one of ours and records no places, it is what stands under each id, without a
        title."""
        if self.passages or self.tool_name in TOOLS:
            return passages_at(self.tool_output, self.passages)
        return passages_under(self.tool_output, self.hit_ids)


@dataclass(frozen=True, slots=True)
class ContextEvent:
    """An action that shortened a long conversation (AgenticRAG, section 3.4).

    ``after_step`` is the number of the last step before the action. ``tokens_before`` and
    ``tokens_after`` count the conversation with the schemas of the tools (o200k). ``kept`` and
    ``removed`` are the references whose content stayed or was removed.
    """

    after_step: int
    kind: ContextEventKind
    tokens_before: int
    tokens_after: int
    kept: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """The way that a question took, and why: to one search, to the loop, or to the loop after one
    search did not answer it."""

    kind: Literal["simple", "complex", "escalated"]
    why: str


@dataclass(frozen=True, slots=True)
class MemoryState:
    """The last memory of a model that reads in order, and the number of passages that it read."""

    final_memory: str
    history_size: int


@dataclass(frozen=True, slots=True)
class Record:
    """The complete record of one question.

    - ``answer``: the last reply as the model wrote it, empty if there is none. The parts
      ``answer_short``, ``explanation`` and ``cited_ids`` are parsed from it unless the question
      failed. A reply that was cut off is a failure.
    - ``answer_form_read``: the ``form`` of the answer.
    - ``wrong_ids``: named as sources but never shown. ``invented_ids``: those without a passage.
    - ``citation``, ``failure`` (kind and message): None if there is none.
    - ``loops``: the turns in which tools could be called, with the turn of the answer.
    - ``total_cost``: None without prices.
    - ``requests``: the tokens of the requests whose usage the endpoint reported.
    - ``usage_warning``: a sentence if the endpoint seems not to have read requests whole.
    - ``fingerprints``: of preset, index, model and code.
    - ``answer_from_turn``: the turn of an answer beside a call that the last reply did not repeat.
    - ``other_models``: the models that answered although another was asked.
    - ``reply_forms``: how often each rule was needed to read the replies.
    - ``route``: None without a switcher. ``memory_state``: None without a memory.

    Presets with document tools have further fields, which are empty in other records.

    - ``citations``: the documents that the answer cites, best first.
    - ``context``: the steps that shortened the conversation.
    - ``reused``: the cited references that an earlier question of the conversation showed first.
    """

    question_id: str
    question: str
    answer: str
    answer_short: str
    explanation: str
    cited_ids: tuple[str, ...]
    wrong_ids: tuple[str, ...]
    citation: Citation | None
    status: Outcome
    failure: str | None
    trajectory: tuple[Step, ...]
    total_cost: float | None
    loops: int
    tool_usage_summary: dict[str, int]
    total_retrieved_tokens: int
    chunks_read_count: int
    chunks_read_ids: tuple[str, ...]
    usage: Usage
    seconds: float
    fingerprints: dict[str, str]
    invented_ids: tuple[str, ...] = ()
    citations: tuple[CitedDocument, ...] = ()
    context: tuple[ContextEvent, ...] = ()
    route: Route | None = None
    reused: tuple[str, ...] = ()
    memory_state: MemoryState | None = None
    requests: tuple[RequestTokens, ...] = ()
    usage_warning: str = ""
    answer_from_turn: int | None = None
    answer_form_read: str = ""
    other_models: tuple[str, ...] = ()
    reply_forms: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about faults in the replies of the endpoint."""
        return tuple(filter(None, (self.usage_warning, other_models_warning([self.other_models]))))

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return _adapter().dump_python(self, mode="json")

    def to_line(self) -> bytes:
        """Return the record as one line with its line end."""
        return orjson.dumps(self.to_json(), option=orjson.OPT_APPEND_NEWLINE)

    @staticmethod
    def from_json(value: object) -> Record:
        """Parse the output of ``to_json``. Raises RunError, naming every field that is wrong."""
        try:
            return _adapter().validate_python(value)
        except ValidationError as error:
            fields = sorted(
                {".".join(map(str, problem["loc"])) or "record" for problem in error.errors()}
            )
            raise RunError(
                f"A record cannot be read: {', '.join(fields)}.",
                allowed="records as this version of arag-search writes them",
            ) from error


@functools.cache
def _adapter() -> TypeAdapter[Record]:
    return TypeAdapter(Record)


def other_models_warning(questions: Iterable[Sequence[str]]) -> str:
    """Return in words which models answered although another was asked, over all questions; the
    text is empty if none did."""
    names = list(dict.fromkeys(name for models in questions for name in models))
    if not names:
        return ""
    shown = ", ".join(map(on_one_line, names[:_MOST_NAMED_MODELS]))
    more = ", ..." if len(names) > _MOST_NAMED_MODELS else "."
    return f"Another model answered than the one that was asked: {shown}{more}"


def hits_text(step: Step) -> str:
    """Return in words how many passages a step found or read, or that it failed."""
    if step.status == "error":
        return "refused"
    if step.references:
        count = len(step.references)
        return f"{count} documents" if count != 1 else "1 document"
    if step.tool_name == "summarize":
        return "context freed"
    shown = len(step.hit_ids) - sum(span.kind == "pointer" for span in step.passages)
    if step.total_hits is None and not step.hit_ids and step.status == "ok":
        return "replied"  # a model in one of the roles of a system
    if step.total_hits is None:
        return f"{shown} {'read' if step.is_read else 'nearest'}"
    total = f"{step.total_hits:,}"
    if not step.total_is_exact:
        total = f"more than {total}"
    return f"{shown} of {total} hits"


def citation_warning(record: Record) -> str:
    """Return what is wrong with the citations of an answer; the text is empty if nothing is wrong,
    or if the answer is a refusal."""
    if record.citation == "wrong":
        warning = f"Wrongly cited, never shown to the model: {', '.join(record.wrong_ids)}."
        if record.invented_ids:
            warning += f"\nNo passage has these ids: {', '.join(record.invented_ids)}."
        return warning
    if record.citation == "uncited" and not is_refusal(record.answer_short):
        return "Uncited: the answer names no passage that it rests on."
    return ""

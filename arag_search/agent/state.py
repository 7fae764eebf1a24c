"""The state of one question between two turns: all that the loop knows, as plain data.

It can be written out after any step and read back elsewhere; the loop then resumes as if it had
never stopped.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from arag_search.agent.models.base import Message, ModelReply, ToolCall
from arag_search.agent.models.usage import RequestTokens, Usage, most_reported
from arag_search.agent.record import ContextEvent, Route, Step
from arag_search.tokens import count_tokens
from arag_search.tools.tool import ReadSet

_TOKENS_A_MESSAGE = 4  # role and separators, about what chat templates spend on them


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A pending call as the model wrote it, with its id in the conversation, and the text that the
    model wrote next to it."""

    call: ToolCall
    id: str
    reasoning: str = ""


@dataclass(slots=True)
class State:
    """The state of a question. A conversation of several questions has one state.

    - ``context_tokens``: the o200k tokens of all messages, counted as they are added.
    - ``seconds``: the time spent so far.
    - ``pending``: the calls of the last reply that have not been run.
    - ``messages_of_steps``: for each step, the number of the message with its result. -1: none.
    - ``removed``: for each step, the references whose content was removed from its result.
    - ``context``: the actions that shortened the conversation.
    - ``context_warned``: whether the model was warned of its length.
    - ``memory``: the notes of a model that reads in order.
    - ``requests``: the tokens of the question's requests whose usage the endpoint reported.
    - ``most_reported``: the highest number that the endpoint reported for earlier questions.
    - ``answer``: the last reply with a call and an answer line. ``answer_turn``: its turn.
    - ``other_models``: the models that answered although another was asked.
    - ``reply_forms``: how often each rule was needed to read replies.
    - ``first_step``, ``first_event``: the numbers of the first step, and of the first event of the
      context, of the present question.
    """

    question_id: str
    question: str
    messages: list[Message] = field(default_factory=list[Message])
    context_tokens: int = 0
    steps: list[Step] = field(default_factory=list[Step])
    read_set: ReadSet = field(default_factory=ReadSet)
    loops: int = 0
    planned: bool = False
    pending: list[PendingCall] = field(default_factory=list[PendingCall])
    messages_of_steps: list[int] = field(default_factory=list[int])
    removed: dict[int, set[str]] = field(default_factory=dict[int, set[str]])
    context: list[ContextEvent] = field(default_factory=list[ContextEvent])
    context_warned: bool = False
    first_step: int = 0
    first_event: int = 0
    route: Route | None = None
    memory: str = ""
    usage: Usage | None = None
    requests: list[RequestTokens] = field(default_factory=list[RequestTokens])
    most_reported: int = 0
    seconds: float = 0.0
    answer: str = ""
    answer_turn: int = 0
    other_models: list[str] = field(default_factory=list[str])
    reply_forms: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, message: Message, content_tokens: int | None = None) -> None:
        """Append a message; pass ``content_tokens`` if already counted. O(len(message))."""
        self.messages.append(message)
        self.context_tokens += message_tokens(message, content_tokens)

    def begin(self, question_id: str, question: str) -> None:
        """Begin another question of the same conversation."""
        self.question_id, self.question = question_id, question
        self.first_step, self.first_event = len(self.steps), len(self.context)
        self.loops = 0
        self.planned = False
        self.route = None
        self.usage = None
        self.most_reported = most_reported(self.requests, self.most_reported)
        self.requests.clear()
        self.answer = ""
        self.other_models.clear()
        self.reply_forms.clear()
        self.seconds = 0.0
        self.read_set.begin()

    def replace(self, at: int, message: Message) -> None:
        """Replace a message with another one."""
        self.context_tokens += message_tokens(message) - message_tokens(self.messages[at])
        self.messages[at] = message

    def spend(self, usage: Usage, counted: int) -> None:
        """Add the usage of one reply to a request of so many tokens by our count."""
        self.usage = usage if self.usage is None else self.usage + usage
        if usage.source == "endpoint":
            self.requests.append(RequestTokens(counted, usage.prompt_tokens))

    def note_reading(self, reply: ModelReply) -> None:
        """Note which model replied, and the rules that were needed to read its reply."""
        if reply.other_model and reply.other_model not in self.other_models:
            self.other_models.append(reply.other_model)
        for form in reply.forms:
            self.reply_forms[form] = self.reply_forms.get(form, 0) + 1

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return _adapter().dump_python(self, mode="json")

    @staticmethod
    def from_json(value: object) -> State:
        """Read the output of ``to_json``. Raises pydantic's ValidationError for anything else."""
        return _adapter().validate_python(value)


def message_tokens(message: Message, content_tokens: int | None = None) -> int:
    """Count the o200k tokens of a message, including its calls and what stands beside them, which
    is sent again with every request."""
    tokens = count_tokens(message.content) if content_tokens is None else content_tokens
    for call in message.tool_calls:
        tokens += count_tokens(call.name) + count_tokens(call.arguments) + _TOKENS_A_MESSAGE
    return tokens + count_tokens(message.beside) + _TOKENS_A_MESSAGE


@functools.cache
def _adapter() -> TypeAdapter[State]:
    return TypeAdapter(State)

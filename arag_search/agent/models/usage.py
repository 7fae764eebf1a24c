"""The tokens of calls of a model: as endpoints report them, and whether a request was read whole.

A server with too short a context cuts the front of a request, with the instructions and the
question. It answers the rest with a good status. The number of prompt tokens that it reports,
beside our own count of the request, is the only trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeGuard

from arag_search.endpoints.refusals import fields_of

MAX_USAGE_TOKENS = 1_000_000_000
"""An upper bound on the tokens of any call: an endpoint that reports more counts something else."""
_SAME_TOKENS = 16  # numbers of a server that cuts differ by so little
_GROWN_TOKENS = 300
_READ_SHARE = 0.6  # of our count; tokenizers and templates of tools differ by less
_CACHE_NAMES = ("cached_tokens", "cache_read_input_tokens", "prompt_cache_hit_tokens")
_APART_NAMES = ("cache_read_input_tokens", "cache_creation_input_tokens")
"""Anthropic's names for prompt tokens of the cache. Its number of prompt tokens leaves these
out."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more calls. The source is ``counted`` if an endpoint reported none and we
    counted them (o200k tokens). ``cached_tokens`` are the prompt tokens that the endpoint read from
    its cache. ``reasoning_tokens`` are the completion tokens of thoughts."""

    prompt_tokens: int
    completion_tokens: int
    source: Literal["endpoint", "counted"]
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def is_plausible(self) -> bool:
        """Whether one call can take this many tokens; no request is empty."""
        counts: tuple[object, object] = (self.prompt_tokens, self.completion_tokens)
        return self.prompt_tokens != 0 and all(map(_is_count, counts))

    def __add__(self, other: Usage) -> Usage:
        """Return the sum. If either includes our own count, the sum is marked as counted."""
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            "counted" if "counted" in (self.source, other.source) else "endpoint",
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )


@dataclass(frozen=True, slots=True)
class RequestTokens:
    """The tokens of one request: by our count (o200k), and as the endpoint reported them."""

    counted: int
    reported: int


def read_usage(reported: object) -> Usage | None:
    """Return what an endpoint reports; None if that is absent, partial or impossible.

    OpenAI's prompt tokens include those from the cache, and its completion tokens the thoughts.
    Where they are reported apart (Anthropic's names; xAI's and Gemini's thoughts), which the names,
    the sizes or the total say, they are added.
    """
    fields = fields_of(reported)
    prompt, completion = (
        next((fields[name] for name in names if name in fields), None)
        for names in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))
    )
    if not (_is_count(prompt) and _is_count(completion)):
        return None
    details = _details(fields, "prompt_tokens_details", "input_tokens_details")
    thoughts = _details(fields, "completion_tokens_details", "output_tokens_details")
    cached = _first(details, _CACHE_NAMES) or _first(fields, _CACHE_NAMES)
    written = _first(fields, ("cache_creation_input_tokens",))
    reasoning = _first({**fields, **thoughts}, ("reasoning_tokens",))
    apart = cached + written
    rest = max(_first(fields, ("total_tokens",)) - prompt - completion, 0)
    is_named_apart = "cached_tokens" not in details and any(name in fields for name in _APART_NAMES)
    if apart > prompt or is_named_apart or (apart and rest in (apart, apart + reasoning)):
        prompt, rest = prompt + apart, max(rest - apart, 0)
    # What only the total holds are thoughts.
    reasoning = reasoning or rest
    if reasoning > completion or (reasoning and rest == reasoning):
        completion += reasoning
    usage = Usage(prompt, completion, "endpoint", cached, reasoning)
    return usage if usage.is_plausible else None


def usage_warning(questions: Iterable[Sequence[RequestTokens]], before: int = 0) -> str:
    """Return that a server seems not to have read whole requests, and why; empty if it has.

    Each question has its requests in order. ``before`` is the highest number that the endpoint
    reported in the run before them. Two signs count: a number that stays while requests grow, and a
    highest number far below the largest request. A number may fall to the new tokens of a request
    if a server leaves out the tokens in its cache. This is no sign.
    """
    highest, largest, cut = before, 0, None
    for requests in questions:
        previous, level = 0, None
        for request in requests:
            new, previous = request.counted - previous, request.counted
            is_below = request.reported < highest - _SAME_TOKENS
            is_cached = is_below and (new == 0 or _READ_SHARE * request.reported <= new)
            if is_cached and _READ_SHARE * new <= request.reported:
                continue
            largest = max(largest, request.counted)
            if level is None or abs(request.reported - level.reported) > _SAME_TOKENS:
                level = request
            elif request.counted - level.counted >= _GROWN_TOKENS and not is_cached:
                cut = request
            highest = max(highest, request.reported)
    if highest < _READ_SHARE * largest:
        cut = RequestTokens(largest, highest)
    if cut is None:
        return ""
    return (
        f"The model may not have read all of its requests: the endpoint reports {cut.reported:,} "
        f"prompt tokens where we count {cut.counted:,}. Either its context is too short, and it "
        "cuts the front of a request, with the instructions and the question (Ollama: raise "
        "OLLAMA_CONTEXT_LENGTH); or the model's template leaves the tools out; or it does not "
        "report cached tokens, and the usage is too low."
    )


def most_reported(requests: Iterable[RequestTokens], before: int = 0) -> int:
    """Return the highest number that the endpoint reported, now or ``before``."""
    return max([before, *(request.reported for request in requests)])


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= MAX_USAGE_TOKENS


def _details(fields: Mapping[str, object], *names: str) -> Mapping[str, object]:
    return fields_of(next((fields[name] for name in names if fields.get(name)), None))


def _first(fields: Mapping[str, object], names: Sequence[str]) -> int:
    """Return the first of these numbers that is above 0, else 0."""
    return next((count for name in names if _is_count(count := fields.get(name)) and count), 0)

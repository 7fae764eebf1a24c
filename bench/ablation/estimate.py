"""The requests of a suite to models: calls, tokens and cost, estimated before anything runs.

The usual question takes five searches or reads, whose replies have 1,000 tokens each. (LogicalRAG
states 3.8 searches a question and AgenticRAG 4.8 calls; a strong model's recorded runs over short
passages took 2 to 3, with fewer tokens.) Reasoning is part of the output and differs tenfold
between models, so a run of 20 questions (``--with questions=20``) is the better estimate of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from arag_search.agent.models.usage import Usage
from arag_search.agent.prompts import system_prompt
from arag_search.runs.prices import Prices
from arag_search.tokens import count_tokens
from arag_search.tools.preset import GIVEN_PASSAGES, Preset
from bench.ablation.judging.failures import MAX_CASES

USUAL_CALLS = 5
REPLY_TOKENS = 1_000
OUTPUT_TOKENS = 300
TOOL_TOKENS = 300
ROLE_TOKENS = 150
QUESTION_TOKENS = 40
JUDGE_TOKENS = 500


@dataclass(frozen=True, slots=True)
class Estimate:
    """Requests to a model, and the tokens of their prompts."""

    model: str
    requests: int
    tokens: int


def estimate(preset: Preset, model: str, answers: int) -> Estimate:
    """Estimate a number of answers with a preset. Each request repeats the earlier replies."""
    given = REPLY_TOKENS if preset.given != "none" else 0
    fixed = count_tokens(system_prompt(preset)) + len(preset.tools) * TOOL_TOKENS
    requests = 1 + (min(preset.max_loops, USUAL_CALLS) if preset.tools else 0)
    sizes = (fixed + QUESTION_TOKENS + given + number * (REPLY_TOKENS + OUTPUT_TOKENS)
             for number in range(requests))  # fmt: skip
    tokens = sum(min(size, preset.token_budget) for size in sizes)
    return Estimate(model, answers * requests, answers * tokens)


def estimate_rival(requests: int, shown: int, model: str, answers: int) -> Estimate:
    """Estimate a number of answers of a system that takes so many requests for each, which show so
    many passages."""
    tokens = requests * (ROLE_TOKENS + QUESTION_TOKENS) + shown * REPLY_TOKENS // GIVEN_PASSAGES
    return Estimate(model, answers * requests, answers * tokens)


def estimate_judge(preset: Preset, judge: str, answers: int, *, trajectories: bool) -> Estimate:
    """Estimate the judging of the answers of a run. With ``trajectories``, also estimate the
    grouping of their searches, the judging of each search, and the reasons of half of the
    answers."""
    searches = min(preset.max_loops, USUAL_CALLS) if preset.tools and trajectories else 0
    cases = min(answers, MAX_CASES) // 2 if trajectories else 0
    requests = answers * (1 + bool(searches) + searches) + cases
    replies = REPLY_TOKENS * searches * (answers + cases)
    return Estimate(judge, requests, requests * JUDGE_TOKENS + replies)


def estimate_lines(estimates: Iterable[Estimate], prices: Prices | None) -> Iterator[str]:
    """Yield a line for each model, with the sum of its estimates, and how to read them."""
    by_model: dict[str, list[Estimate]] = {}
    for part in estimates:
        by_model.setdefault(part.model, []).append(part)
    for model, parts in by_model.items():
        requests = sum(part.requests for part in parts)
        tokens, output = sum(part.tokens for part in parts), requests * OUTPUT_TOKENS
        cost = prices and prices.cost(Usage(tokens, output, "counted"), model)
        priced = "no price (--prices)" if cost is None else f"about {cost:,.2f} USD"
        yield (
            f"Estimate for {model}: about {requests:,} requests, {tokens:,} prompt tokens, "
            f"{output:,} completion tokens, {priced}."
        )
    if by_model:
        yield (
            f"It assumes {USUAL_CALLS} tool calls a question with replies of {REPLY_TOKENS:,} "
            f"tokens, and {OUTPUT_TOKENS} tokens of output a request; models that reason take more."
        )

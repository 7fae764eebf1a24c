"""What a suite would ask of models: calls, tokens and cost, estimated before anything runs.

The usual question takes five searches or reads, whose replies have 1,000 tokens each. (LogicalRAG
states 3.8 searches a question and AgenticRAG 4.8 calls; a strong model's recorded runs over short
passages took 2 to 3, with fewer tokens.) Reasoning is part of the output and differs tenfold
between models, so a run of 20 questions (``--limit 20``) is the better estimate of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from arag_search.agent.models.usage import Usage
from arag_search.agent.prompts import system_prompt
from arag_search.runs.prices import Prices
from arag_search.tokens import count_tokens
from arag_search.tools.preset import Preset
from bench.ablation.judging.failures import MAX_CASES

USUAL_CALLS = 5
REPLY_TOKENS = 1_000
OUTPUT_TOKENS = 300
TOOL_TOKENS = 300
QUESTION_TOKENS = 40
JUDGE_TOKENS = 500


@dataclass(frozen=True, slots=True)
class Estimate:
    """Requests to a model and their tokens; ``most_requests`` and ``most_prompt_tokens`` are what
    the bounds of the preset allow."""

    model: str
    requests: int
    prompt_tokens: int
    completion_tokens: int
    most_requests: int
    most_prompt_tokens: int

    def cost(self, prices: Prices | None) -> float | None:
        """USD of the usual tokens; None without a price."""
        usage = Usage(self.prompt_tokens, self.completion_tokens, "counted")
        return None if prices is None else prices.cost(usage, self.model)


def estimate(preset: Preset, model: str, answers: int) -> Estimate:
    """Return the estimate of a number of answers with a preset."""
    given = REPLY_TOKENS if preset.given != "none" else 0
    fixed = count_tokens(system_prompt(preset)) + len(preset.tools) * TOOL_TOKENS
    fixed += QUESTION_TOKENS + given
    most_calls = preset.max_loops if preset.tools else 0
    usual_calls = min(most_calls, USUAL_CALLS)
    requests, most = usual_calls + 1, most_calls + 1
    usual = _prompt_tokens(requests, fixed, REPLY_TOKENS, preset.token_budget)
    bound = _prompt_tokens(most, fixed, preset.max_result_tokens, preset.token_budget)
    return Estimate(
        model,
        answers * requests,
        answers * usual,
        answers * requests * OUTPUT_TOKENS,
        answers * most,
        answers * bound,
    )


def estimate_judge(
    preset: Preset, judge: str, answers: int, runs: int, *, trajectories: bool
) -> Estimate:
    """Return the estimate of judging the answers of as many runs; with ``trajectories``, also of
    grouping their searches, judging each of them, and the reasons of half of the answers, all of
    which could be wrong."""
    searches = preset.max_loops if preset.tools else 0
    usual, most = (min(searches, USUAL_CALLS), searches) if trajectories else (0, 0)
    cases = min(answers, runs * MAX_CASES) if trajectories else 0
    groupings = answers * bool(most)
    requests = answers + groupings + answers * usual + cases // 2
    bound = answers + groupings + answers * most + cases
    of_replies = REPLY_TOKENS * (answers * usual + cases // 2 * usual)
    most_of_replies = preset.max_result_tokens * (answers * most + cases * most)
    return Estimate(
        judge,
        requests,
        requests * JUDGE_TOKENS + of_replies,
        requests * OUTPUT_TOKENS,
        bound,
        bound * JUDGE_TOKENS + most_of_replies,
    )


def _prompt_tokens(requests: int, fixed: int, reply: int, budget: int) -> int:
    """Return the tokens of all requests, each of which repeats the earlier replies."""
    step = reply + OUTPUT_TOKENS
    return sum(min(fixed + number * step, budget) for number in range(requests))


def estimate_lines(estimates: Iterable[Estimate], prices: Prices | None) -> Iterator[str]:
    """Yield a line for each model, with the sum of its estimates, and how to read them."""
    by_model: dict[str, list[Estimate]] = {}
    for part in estimates:
        by_model.setdefault(part.model, []).append(part)
    for model, parts in by_model.items():
        whole = Estimate(
            model,
            sum(part.requests for part in parts),
            sum(part.prompt_tokens for part in parts),
            sum(part.completion_tokens for part in parts),
            sum(part.most_requests for part in parts),
            sum(part.most_prompt_tokens for part in parts),
        )
        cost = whole.cost(prices)
        priced = "no price (--prices)" if cost is None else f"about {cost:,.2f} USD"
        yield (
            f"Estimate for {model}: about {whole.requests:,} requests (at most "
            f"{whole.most_requests:,}), {whole.prompt_tokens:,} prompt tokens (at most "
            f"{whole.most_prompt_tokens:,}), {whole.completion_tokens:,} completion tokens, "
            f"{priced}."
        )
    if by_model:
        yield (
            f"It assumes {USUAL_CALLS} tool calls a question with replies of {REPLY_TOKENS:,} "
            f"tokens, and {OUTPUT_TOKENS} tokens of output a request; models that reason take more."
        )

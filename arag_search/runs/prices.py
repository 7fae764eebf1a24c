"""Prices of models, from a file that the user provides; and the cost of a call."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from arag_search.agent.models.usage import Usage
from arag_search.errors import ConfigError
from arag_search.system.yaml_file import numbered, read_mapping

TOKENS_A_PRICE = 1_000_000
FIELDS = ("prompt", "completion", "cached")
_NAMED = 20  # models in a message
_FORM = "model: {prompt: USD per million tokens, completion: USD per million tokens}"
_ALLOWED = f"{_FORM}, and cached, for tokens of the prompt that the endpoint read from its cache"


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens; without ``cached``, cached tokens cost as much as others."""

    prompt: float
    completion: float
    cached: float | None = None


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices by the name of a model."""

    by_model: Mapping[str, Price]
    file: str = ""

    @classmethod
    def load(cls, file: Path | str) -> Prices:
        """Return the prices in a YAML file, one entry per model:

        gpt-5-mini: {prompt: 0.25, completion: 2, cached: 0.025}

        Raises ConfigError that names every entry that is wrong.
        """
        entries = read_mapping(Path(file), "price list", holds="models", allowed=_FORM)
        problems: list[str] = []
        by_model: dict[str, Price] = {}
        for model, entry in entries.items():
            entry_problems = _price_problems(model, entry)
            problems += entry_problems
            if not entry_problems:
                fields = cast(dict[str, float], entry)
                by_model[str(model)] = Price(**{key: float(fields[key]) for key in fields})
        if problems:
            raise ConfigError(numbered("price list", problems), where=str(file), allowed=_ALLOWED)
        return cls(by_model, str(file))

    def cost(self, usage: Usage, model: str) -> float | None:
        """USD of ``usage``; None if the model has no price."""
        price = self.by_model.get(model)
        if price is None:
            return None
        cached = price.prompt if price.cached is None else price.cached
        return (
            (usage.prompt_tokens - usage.cached_tokens) * price.prompt
            + usage.cached_tokens * cached
            + usage.completion_tokens * price.completion
        ) / TOKENS_A_PRICE

    def full_price_tokens(self, usage: Usage, model: str) -> int:
        """Return how many cached tokens ``cost`` counts at full price, for want of their own."""
        price = self.by_model.get(model)
        return 0 if price is None or price.cached is not None else usage.cached_tokens


def check_cost_limit(max_cost_usd: float, prices: Prices | None, model: str) -> None:
    """Raise ConfigError if a limit cannot be enforced: it is not above 0, or ``model`` has no
    price."""
    if not (math.isfinite(max_cost_usd) and max_cost_usd > 0):
        raise ConfigError(
            f"The cost limit {max_cost_usd:g} is not allowed.", allowed="USD, above 0"
        )
    if prices is None:
        raise ConfigError(
            f"A cost limit needs the price of model {model!r}, and no price list is given.",
            do="Name a file of prices with `prices`.",
        )
    if model not in prices.by_model:
        priced = sorted(prices.by_model)
        more = f" and {len(priced) - _NAMED:,} more" if len(priced) > _NAMED else ""
        raise ConfigError(
            f"A cost limit needs the price of model {model!r}, which the price list lacks.",
            where=prices.file,
            allowed=f"{', '.join(priced[:_NAMED])}{more}" or "none is priced",
            do=f"Add {_FORM.replace('model', repr(model), 1)}",
        )


def _price_problems(model: object, entry: object) -> list[str]:
    if not isinstance(model, str):
        return [f"model {model!r} is not text (put it in quotes)"]
    if not isinstance(entry, dict):
        return [f"{model}: {entry!r} is not a price"]
    fields = cast(dict[object, object], entry)
    problems = [f"{model}.{key} is unknown" for key in fields if key not in FIELDS]
    for key in FIELDS:
        value = fields.get(key)
        if key not in fields:
            problems += [f"{model}.{key} is missing"] if key != "cached" else []
        elif isinstance(value, bool) or not isinstance(value, int | float):
            problems.append(f"{model}.{key} is {value!r}, no number")
        elif not 0 <= value <= sys.float_info.max:
            problems.append(f"{model}.{key} is {value!r}, not 0 or above")
    return problems

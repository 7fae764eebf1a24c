"""Price lists, the costs of calls, and enforceable cost limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from arag_search.agent.models.base import Usage
from arag_search.errors import ConfigError
from arag_search.runs.prices import Price, Prices, check_cost_limit

FORM = (
    "model: {prompt: USD per million tokens, completion: USD per million tokens}, and cached, for "
    "tokens of the prompt that the endpoint read from its cache"
)


def load(folder: Path, text: str) -> Prices:
    file = folder / "prices.yaml"
    file.write_text(text, encoding="utf-8")
    return Prices.load(file)


def problems(folder: Path, text: str) -> str:
    with pytest.raises(ConfigError) as raised:
        load(folder, text)
    assert raised.value.where == str(folder / "prices.yaml")
    return raised.value.what


def test_a_cost_is_tokens_times_usd_per_million(tmp_path: Path) -> None:
    prices = load(
        tmp_path, "small: {prompt: 0.25, completion: 2}\nfree: {prompt: 0, completion: 0}"
    )
    assert prices.by_model == {"small": Price(0.25, 2.0), "free": Price(0.0, 0.0)}
    assert prices.cost(Usage(1_000_000, 500_000, "endpoint"), "small") == 1.25
    assert prices.cost(Usage(8, 1, "counted"), "small") == pytest.approx(4e-6)
    assert prices.cost(Usage(8, 1, "endpoint"), "free") == 0.0
    assert prices.cost(Usage(8, 1, "endpoint"), "large") is None


def test_cached_tokens_have_a_price_of_their_own_or_the_full_one(tmp_path: Path) -> None:
    text = "own: {prompt: 1, completion: 2, cached: 0.1}\nfull: {prompt: 1, completion: 2}"
    prices = load(tmp_path, text)
    usage = Usage(10_000, 500, "endpoint", cached_tokens=9_000, reasoning_tokens=400)
    assert prices.cost(usage, "own") == pytest.approx((1_000 + 900 + 1_000) / 1e6)
    assert prices.cost(usage, "full") == pytest.approx((10_000 + 1_000) / 1e6)
    names = ("own", "full", "none")
    assert [prices.full_price_tokens(usage, name) for name in names] == [0, 9_000, 0]
    assert problems(tmp_path, "a: {prompt: 1, completion: 2, cached: -1}").endswith(
        "a.cached is -1, not 0 or above"
    )


def test_every_wrong_entry_of_a_price_list_is_named(tmp_path: Path) -> None:
    text = """
a: {prompt: 1}
b: {prompt: 1, completion: 2, cashed: 3}
c: {prompt: cheap, completion: true}
d: {prompt: -1, completion: .nan}
e: 3
4: {prompt: 1, completion: 1}
good: {prompt: 1, completion: 1}
"""
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, text)
    assert str(raised.value) == (
        "The price list has 8 problems.\n"
        "1. a.completion is missing\n"
        "2. b.cashed is unknown\n"
        "3. c.prompt is 'cheap', no number\n"
        "4. c.completion is True, no number\n"
        "5. d.prompt is -1, not 0 or above\n"
        "6. d.completion is nan, not 0 or above\n"
        "7. e: 3 is not a price\n"
        "8. model 4 is not text (put it in quotes)\n"
        f"Where: {tmp_path / 'prices.yaml'}\n"
        f"Allowed: {FORM}"
    )


def test_a_huge_price_is_shown_as_it_is_written(tmp_path: Path) -> None:
    text = f"a: {{prompt: {10**400}, completion: 1}}"
    assert f"1. a.prompt is {10**400}, not 0 or above" in problems(tmp_path, text)


def test_a_cost_limit_without_a_price_is_rejected() -> None:
    check_cost_limit(0.5, Prices({"small": Price(1, 2)}), "small")
    with pytest.raises(ConfigError) as no_list:
        check_cost_limit(0.5, None, "small")
    assert str(no_list.value) == (
        "A cost limit needs the price of model 'small', and no price list is given.\n"
        "Do: Name a file of prices with `prices`."
    )
    with pytest.raises(ConfigError) as not_in_it:
        check_cost_limit(0.5, Prices({"b": Price(1, 2), "a": Price(1, 2)}, "p.yaml"), "small")
    assert str(not_in_it.value).startswith(
        "A cost limit needs the price of model 'small', which the price list lacks.\nWhere: "
        "p.yaml\n"
    )


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf")])
def test_a_cost_limit_is_above_zero(limit: float) -> None:
    with pytest.raises(ConfigError) as raised:
        check_cost_limit(limit, Prices({"small": Price(1, 2)}), "small")
    assert str(raised.value) == f"The cost limit {limit:g} is not allowed.\nAllowed: USD, above 0"

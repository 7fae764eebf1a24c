"""A long list in a YAML file."""

from pathlib import Path

import pytest

from arag_search.errors import ConfigError
from arag_search.runs.prices import Prices, check_cost_limit


def test_a_list_of_many_models_is_read_and_not_repeated_in_messages(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("".join(f"m{at}: {{prompt: 1, completion: 2}}\n" for at in range(2_000)))
    prices = Prices.load(file)
    assert len(prices.by_model) == 2_000
    with pytest.raises(ConfigError) as raised:
        check_cost_limit(1.0, prices, "other")
    assert raised.value.allowed.endswith(" and 1,980 more")

"""Counts and means as rows with their intervals."""

from bench.report.estimates import counted, mean
from bench.report.rows import Row


def test_a_count_has_an_interval_also_at_its_bounds() -> None:
    rows = [counted("what", flags) for flags in ([True] * 60, [False] * 60, [True, False])]
    assert [(row.value, row.low, row.high) for row in rows] == [
        (60, 56.4, 60),
        (0, 0, 3.6),
        (1, 0.2, 1.8),
    ]


def test_a_mean_of_a_single_value_has_no_interval() -> None:
    assert mean("tokens", [3]) == Row("tokens", 3, "")
    assert mean("tokens", [2, 2]) == Row("tokens", 2, "", 2, 2)

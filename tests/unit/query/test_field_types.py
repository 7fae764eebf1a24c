"""The types of metadata fields."""

from __future__ import annotations

import pytest

from arag_search.query.field_types import date_text, period_ms


@pytest.mark.parametrize(
    "text",
    [
        "0001",
        "1678",
        "2001-05-31",
        "2001-05-31T12:30",
        "2001-05-31T12:30:05",
        "1950-01-02T00:00:00.5",
    ],
)
def test_a_moment_is_written_as_the_shortest_date_that_begins_there(text: str) -> None:
    moment = period_ms(text)[0]
    assert period_ms(date_text(moment))[0] == moment
    assert len(date_text(moment)) <= max(len(text), 10) + 2


def test_moments_that_a_zone_moves_out_of_the_calendar_become_its_ends() -> None:
    assert date_text(period_ms("0001-01-01T00:00+05:00")[0]) == "0001"
    assert date_text(period_ms("9999-12-31T23:59-05:00")[0]) == "9999"

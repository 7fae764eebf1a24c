"""Published files of questions are read without conversion."""

from __future__ import annotations

import pytest

from arag_search.questions.files import load_questions
from tests.support.shared_data import DATA


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "count", "titles", "types", "hops"),
    [
        ("2wikimultihopqa", 400, 992, 4, 1005),
        ("musique", 60, 145, 1, 145),
        ("hotpotqa", 60, 120, 2, 0),
        ("medical", 400, 0, 4, 0),
    ],
)
def test_published_sets_are_read_as_they_are_with_whole_chains(
    name: str, count: int, titles: int, types: int, hops: int
) -> None:
    questions = load_questions(DATA / name / "questions.jsonl")
    assert len(questions) == count
    assert sum(len(question.gold_titles) for question in questions) == titles
    assert len({question.type for question in questions}) == types
    chain = [hop for question in questions for hop in question.hops]
    assert len(chain) == hops
    if name == "musique":
        assert all(hop.title and hop.text for hop in chain)

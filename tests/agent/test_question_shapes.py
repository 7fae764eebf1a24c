"""Published files of questions: their chains of evidence are complete."""

from __future__ import annotations

import pytest

from arag_search.questions.files import (
    load_questions,
)
from tests.support.shared_data import DATA


@pytest.mark.shared_data
def test_published_chains_are_complete() -> None:
    wiki = load_questions(DATA / "2wikimultihopqa" / "questions.jsonl")
    assert sum(len(one.hops) for one in wiki) == 1005
    musique = load_questions(DATA / "musique" / "questions.jsonl")
    assert sum(len(one.hops) for one in musique) == 145
    assert all(hop.title and hop.text for one in musique for hop in one.hops)
    hotpot = load_questions(DATA / "hotpotqa" / "questions.jsonl")
    assert all(one.supporting_sentences and not one.hops for one in hotpot)

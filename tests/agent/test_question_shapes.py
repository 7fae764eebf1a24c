"""Published files of questions have complete chains of evidence."""

from __future__ import annotations

import pytest

from arag_search.questions.files import (
    load_questions,
)
from tests.support.shared_data import DATA


@pytest.mark.shared_data
def test_published_chains_are_complete() -> None:
    wiki = load_questions(DATA / "2wikimultihopqa" / "questions.jsonl")
    assert sum(len(question.hops) for question in wiki) == 1005
    musique = load_questions(DATA / "musique" / "questions.jsonl")
    assert sum(len(question.hops) for question in musique) == 145
    assert all(hop.title and hop.text for question in musique for hop in question.hops)
    hotpot = load_questions(DATA / "hotpotqa" / "questions.jsonl")
    assert all(question.supporting_sentences and not question.hops for question in hotpot)

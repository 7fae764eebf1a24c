"""Evidence of published questions is resolved to passages of their corpora."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from arag_search.evaluation.resolution import Passages, resolve_hops
from arag_search.questions.files import load_questions
from tests.support.passages import chunk
from tests.support.shared_data import DATA


def published_passages(name: str) -> Passages:
    lines = (DATA / name / "corpus.jsonl").read_bytes().splitlines()
    records = [json.loads(line) for line in lines]
    return Passages(
        chunk(
            number, str(number), record["title"], record.get("text") or "".join(record["sentences"])
        )
        for number, record in enumerate(records)
    )


@pytest.mark.shared_data
def test_47_subjects_of_2wikimultihopqa_are_not_titles() -> None:
    passages = published_passages("2wikimultihopqa")
    questions = load_questions(DATA / "2wikimultihopqa" / "questions.jsonl")
    subjects = [subject for question in questions for subject, _, _ in question.evidence]
    assert (len(subjects), sum(not list(passages.titled(subject)) for subject in subjects)) == (
        1005,
        47,
    )


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "counts", "with_answer"),
    [
        (
            "2wikimultihopqa",
            {"title": 904, "normalised": 1, "brackets": 51, "subject and object": 46,
             "unresolved": 3},
            996,
        ),
        ("musique", {"text": 145}, 144),
    ],
)  # fmt: skip
def test_every_hop_is_resolved_or_counted(
    name: str, counts: dict[str, int], with_answer: int
) -> None:
    passages = published_passages(name)
    questions = load_questions(DATA / name / "questions.jsonl")
    hops = [hop for question in questions for hop in resolve_hops(question, passages)]
    assert Counter(hop.rule or "unresolved" for hop in hops) == counts
    assert sum(hop.answer is not None for hop in hops) == with_answer

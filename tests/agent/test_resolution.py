"""Evidence of published questions, resolved to passages of their corpora."""

from __future__ import annotations

import json

import pytest

from arag_search.evaluation.resolution import (
    Passages,
    resolve_hops,
    rule_counts,
)
from arag_search.questions.files import load_questions
from tests.support.passages import chunk
from tests.support.shared_data import DATA


def published(name: str) -> Passages:
    lines = (DATA / name / "corpus.jsonl").read_bytes().splitlines()
    records = [json.loads(line) for line in lines]
    return Passages(
        chunk(number, str(number), one["title"], one.get("text") or "".join(one["sentences"]))
        for number, one in enumerate(records)
    )


@pytest.mark.shared_data
def test_47_subjects_of_2wikimultihopqa_are_no_title() -> None:
    passages = published("2wikimultihopqa")
    questions = load_questions(DATA / "2wikimultihopqa" / "questions.jsonl")
    subjects = [subject for one in questions for subject, _, _ in one.evidence]
    assert (len(subjects), sum(not list(passages.titled(one)) for one in subjects)) == (1005, 47)


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
    passages = published(name)
    questions = load_questions(DATA / name / "questions.jsonl")
    found = [hop for one in questions for hop in resolve_hops(one, passages)]
    assert rule_counts(hop.rule for hop in found) == counts
    assert sum(hop.holds_answer for hop in found) == with_answer

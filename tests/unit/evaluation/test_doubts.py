"""Records that cannot be trusted, and the reasons."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arag_search.agent.models.base import Usage
from arag_search.agent.record import Record
from arag_search.evaluation.doubts import doubts_of, trust_notes
from arag_search.viewer.view import view
from tests.support.commands import Command
from tests.support.examples import examples
from tests.support.hostile_passages import hostile_chunks, random_record
from tests.support.passages import index_of
from tests.support.records import record, search
from tests.support.viewed_runs import answered_record, question_row, run_folder

TEXT = "1 of 1 passage for x\n[a.1] Ann\nAnn was a singer.\nFull text: chunk_read."
OLD_STEP = search("a.1", text=TEXT, tokens=6)


def older_version(original: Record) -> Record:
    """Return the record as an older version wrote it, without the places of passages."""
    steps = (replace(step, passages=None) for step in original.trajectory)
    return replace(original, trajectory=tuple(steps))


@given(st.integers(0, 1_000_000).map(Random))
@settings(max_examples=examples(60))
def test_an_older_record_is_read_as_it_was_written_or_doubted(random: Random) -> None:
    chunks = hostile_chunks(random)
    original = random_record(index_of(*chunks), random, [chunk.id for chunk in chunks])
    assert doubts_of(original) == ()
    older_record = older_version(original)
    assert older_record.is_read_from_text
    if not doubts_of(older_record):
        assert [step.shown_passages() for step in older_record.trajectory] == [
            step.shown_passages() for step in original.trajectory
        ]


def test_an_older_record_whose_reply_is_plain_is_trusted() -> None:
    assert doubts_of(record("q", "x", OLD_STEP)) == ()


@pytest.mark.parametrize(
    ("text", "tokens", "doubt"),
    [
        (f"{TEXT}\n[a.1] Ann", 6, "several lines could begin the same passage"),
        (TEXT, 7, "the passages found have other tokens than the tool counted"),
        (TEXT.replace("Ann\n", "Ann ...\n"), 7, "a title is cut, by which it is not found"),
    ],
)
def test_evidence_of_an_ambiguous_reply_is_doubted(text: str, tokens: int, doubt: str) -> None:
    step = search("a.1", text=text, tokens=tokens)
    assert doubts_of(record("q", "x", step)) == (f"its evidence: in step 1 {doubt}",)


def test_impossible_usage_and_answers_that_are_parsed_differently_today_are_doubted() -> None:
    invented = record("q", "V [nope.9]", OLD_STEP)
    assert doubts_of(invented) == (
        "its citations: by today's rules those never shown are nope.9",
        "its short answer: by today's rules it is 'V'",
    )
    assert doubts_of(replace(record("q", "V"), usage=Usage(-1, 5, "endpoint"))) == (
        "its usage and cost: no model takes so many tokens",
    )
    assert doubts_of(replace(record("q", "V"), usage=Usage(10**30, 5, "endpoint"))) != ()


def test_score_and_pages_name_the_records_that_cannot_be_trusted_with_reasons(
    tmp_path: Path, arag: Command
) -> None:
    records = [
        answered_record("q", "Paris", OLD_STEP),
        answered_record("r", "V [nope.9]", OLD_STEP),
        answered_record("s", "x"),
    ]
    folder = run_folder(tmp_path / "a", [question_row(id) for id in "qrs"], records)
    notes = [
        "2 records are of an older version: where passages are is read from the text of replies, "
        "and whether an answer was cut off is not known.",
        "The record of r cannot be trusted: its citations: by today's rules those never shown are "
        "nope.9; its short answer: by today's rules it is 'V'.",
    ]
    result = arag("score", str(folder))
    assert result.out.splitlines()[-2:] == notes
    scores = json.loads(arag("score", str(folder), "--json").out)
    assert (scores["older_records"], list(scores["doubts"])) == (2, ["r"])
    html = view([folder]).html.decode()
    assert '"isReadFromText":true,"doubts":["its citations: ' in html


def test_a_few_records_are_named_and_the_others_counted() -> None:
    notes = trust_notes(1, {str(number): ("why",) for number in range(5)})
    assert len(notes) == 5
    assert notes[0].startswith("1 record is of an older version")
    assert notes[-1] == "Nor can 2 more records (arag-search score --json names them)."

"""The steps at which a record shows the evidence: sections of replies, titles, passages, tokens."""

from __future__ import annotations

import pytest

from arag_search.agent.record import Record
from arag_search.evaluation.evidence import (
    FAILURES,
    EvidenceValues,
    Sighting,
    evidence_values,
    failure_counts,
    failure_of,
    sightings_of,
)
from arag_search.evaluation.resolution import EvidencePiece
from arag_search.questions.question import Hop, Question
from arag_search.tools.replies.parts import ShownPassage
from tests.support.records import read, record, search

ANN = "1 of 3 passages for ann\n[a.1] Ann, part 1 of 2\nAnn was a singer. ...\nMore: offset=1."
ANN_READ = "[a.1] Ann, part 1 of 2\n(next: a.2)\nAnn was a singer. Bea was her mother."
BEA = "1 of 1 passage for bea\n[b.1] Bea\nBea died in Bath."
HOPS = (
    Hop(None, "Ann", "mother", "Bea", "Ann", None),
    Hop(None, "Bea", "place of death", "Bath", "Bea", None),
)
QUESTION = Question("q", "?", ("Bath",), None, ("Ann", "Bea"), hops=HOPS)
PIECES = (
    (
        EvidencePiece("Ann", ("a.1", "a.9"), "title", "Bea"),
        EvidencePiece("Bea", ("b.1",), "title", "Bath"),
    ),
)

SNIPPET = search("a.1", text=ANN, tokens=50)
WHOLE_READ = read("a.1", text=ANN_READ, tokens=200)
SECOND_SEARCH = search("b.1", text=BEA, tokens=30)
EMPTY_SEARCH = search()


def test_a_reply_is_split_into_the_text_of_each_passage() -> None:
    step = search(
        "a.1",
        "b.2",
        "d.1",
        text="3 of 9 passages\n[a.1] Ann, Queen\nText [b.2] here.\n"
        "[b.2]\nNo title.\n[d.1] Dee, part 2 of 2 (shown before)\n"
        "Not shown for want of room: [e.1].\nMore: offset=5.",
    )
    assert step.shown_passages() == [
        ShownPassage("a.1", "Ann, Queen", "Text [b.2] here."),
        ShownPassage("b.2", "", "No title."),
        ShownPassage("d.1", "Dee", ""),
    ]


def test_a_title_is_shown_with_its_passage_and_its_answer_is_visible_with_the_text() -> None:
    (sightings,) = sightings_of(QUESTION, record("q", "x", EMPTY_SEARCH, SNIPPET, WHOLE_READ), None)
    assert sightings == [Sighting("Ann", 1, 2, 2), Sighting("Bea", None, None, None)]


def test_subjects_match_titles_with_more_in_brackets() -> None:
    question = Question("q", "?", ("Bea",), evidence=(("Ann", "mother", "Bea"),))
    step = search("a.1", text="head\n[a.1] Ann (singer)\nText.")
    assert sightings_of(question, record("q", "x", step), None) == [[Sighting("Ann", 0, 0, None)]]


def test_a_passage_is_shown_by_its_id_and_visible_with_the_answer() -> None:
    (sightings,) = sightings_of(
        QUESTION, record("q", "x", SNIPPET, SECOND_SEARCH, WHOLE_READ), PIECES
    )
    assert sightings == [Sighting("Ann", 0, 2, 2), Sighting("Bea", 1, 1, None)]


def test_a_passage_is_read_at_the_first_chunk_read_of_its_text_with_or_without_the_answer() -> None:
    read_before = read("a.1", text="[a.1] This chunk has been read before.")
    without_answer = read("a.1", text="[a.1] Ann, part 1 of 2\nAnn was a singer.")
    (sightings,) = sightings_of(
        QUESTION, record("q", "x", SNIPPET, read_before, without_answer, WHOLE_READ), PIECES
    )
    assert sightings[0] == Sighting("Ann", 0, 3, 2)


@pytest.mark.parametrize(
    ("steps", "by_title", "by_passage"),
    [
        ((), (0, 0, 8_000), (0, 0, 8_000)),
        ((SNIPPET,), (0.5, 0, 8_000), (0, 0, 8_000)),
        ((SNIPPET, SECOND_SEARCH), (1, 1, 80), (0.5, 0, 8_000)),
        ((SNIPPET, SECOND_SEARCH, WHOLE_READ), (1, 1, 80), (1, 1, 280)),
        ((SNIPPET, WHOLE_READ, EMPTY_SEARCH, SECOND_SEARCH, SECOND_SEARCH), (1, 1, 280),
         (1, 1, 280)),
    ],
)  # fmt: skip
def test_evidence_costs_the_tokens_up_to_its_last_piece(
    steps: tuple[object, ...], by_title: tuple[float, ...], by_passage: tuple[float, ...]
) -> None:
    run_record = record("q", "x", *steps)  # type: ignore[arg-type]
    assert evidence_values(QUESTION, run_record) == EvidenceValues(*by_title)
    assert evidence_values(QUESTION, run_record, PIECES) == EvidenceValues(*by_passage)


@pytest.mark.parametrize(("tokens", "full"), [(8_000, 1), (8_001, 0)])
def test_evidence_for_more_than_the_cap_counts_as_not_found(tokens: int, full: float) -> None:
    question = Question("q", "?", ("x",), None, ("Ann",))
    run_record = record("q", "x", search("a.1", text=ANN, tokens=tokens))
    assert evidence_values(question, run_record) == EvidenceValues(1, full, 8_000)


def test_of_several_sets_the_best_counts() -> None:
    question = Question("q", "?", ("x",), None, ("Cid", "Dee"), alternative_titles=(("Bea",),))
    values = evidence_values(question, record("q", "x", SNIPPET, SECOND_SEARCH))
    assert values == EvidenceValues(1, 1, 80)


def test_evidence_without_a_passage_is_never_shown_and_no_evidence_is_not_measured() -> None:
    unresolved = ((*PIECES[0], EvidencePiece("Cid", (), None)),)
    run_record = record("q", "x", WHOLE_READ, SECOND_SEARCH)
    assert evidence_values(QUESTION, run_record, unresolved) == EvidenceValues(2 / 3, 0, 8_000)
    assert evidence_values(Question("q", "?", ("x",)), run_record) is None
    assert evidence_values(QUESTION, run_record, ()) is None


# Failures


@pytest.mark.parametrize(
    ("run_record", "failure"),
    [
        (None, "no answer"),
        (record("q", "", WHOLE_READ, SECOND_SEARCH, status="failed"), "no answer"),
        (record("q", "Rome", WHOLE_READ, SECOND_SEARCH), "read not used"),
        (record("q", "Rome", WHOLE_READ, SECOND_SEARCH, status="forced"), "read not used"),
        (record("q", "Rome", SNIPPET, SECOND_SEARCH), "shown not read"),
        (record("q", "Rome", SNIPPET, SECOND_SEARCH, status="forced"), "budget"),
        (record("q", "Rome", WHOLE_READ), "never shown"),
        (record("q", "Rome"), "never shown"),
        (record("q", "Rome", status="forced"), "budget"),
    ],
)
def test_a_wrong_answer_has_the_first_category_that_applies(
    run_record: Record | None, failure: str
) -> None:
    assert failure_of(QUESTION, run_record, PIECES) == failure
    assert failure_of(QUESTION, run_record) == failure


def test_a_wrong_answer_without_evidence_is_not_measured() -> None:
    assert failure_of(Question("q", "?", ("x",)), record("q", "Rome", WHOLE_READ)) == "not measured"


def test_of_several_sets_the_one_that_was_read_most_counts() -> None:
    sets = ((EvidencePiece("Cid", ("c.1",), "title"),), PIECES[0])
    assert (
        failure_of(QUESTION, record("q", "Rome", SNIPPET, SECOND_SEARCH), sets) == "shown not read"
    )


def test_counts_name_every_category() -> None:
    assert failure_counts(["budget", "budget"]) == {
        **dict.fromkeys(FAILURES, 0), "budget": 2,
    }  # fmt: skip

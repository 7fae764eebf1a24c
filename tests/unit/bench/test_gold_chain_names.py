"""The names and relations that the gold-chain agent knows of a hop, worked by hand."""

from __future__ import annotations

import pytest

from arag_search.questions.question import Hop, Question
from bench.gold_chain.names import (
    Known,
    capitalised_spans,
    content_span,
    dropped,
    known,
    longest,
    without_words,
)


def triple(subject: str, relation: str, answer: str) -> Hop:
    return Hop(None, subject, relation, answer, None, None)


def step(question: str, answer: str) -> Hop:
    return Hop(question, None, None, answer, None, None)


def known_hops(text: str, *hops: Hop) -> tuple[Known, ...]:
    return known(Question("q", text, ("x",), hops=hops))


# Triples


def test_a_name_is_the_subject_or_as_the_question_writes_it() -> None:
    (first, second) = known_hops(
        "When did Lothair Ii's mother die?",
        triple("Lothair II", "mother", "Ermengarde of Tours"),
        triple("Ermengarde of Tours", "date of death", "20 March 851"),
    )
    assert first == Known("Lothair II", "Lothair Ii", "mother")
    assert second == Known("Ermengarde of Tours", "Ermengarde of Tours", "date of death")


def test_text_in_brackets_is_no_part_of_a_name() -> None:
    (hop,) = known_hops("Who made Camille?", triple("Camille (1936 film)", "director", "Cukor"))
    assert hop == Known("Camille", "Camille", "director")


@pytest.mark.parametrize(
    ("subject", "question", "earlier", "surface"),
    [
        ("Vita Sackville-West", "Who wed Lord Sackville's child?", "Victoria Sackville-West",
         "Victoria Sackville-West"),
        ("Hermann II of Hesse", "Who is the father of Hermann Ii, Landgrave Of Hesse?", "x",
         "Hermann Ii"),
        ("Margaret Wambui Kenyatta", "When did Margaret Kenyatta (Mayor)'s mother die?", "x",
         "Margaret Kenyatta"),
        ("Endangered", "Who directed film Into The Grizzly Maze?", "x", "Into The Grizzly Maze"),
        ("nobody", "who is it?", "x", "nobody"),
    ],
)  # fmt: skip
def test_a_subject_with_another_name_in_the_question_is_known_by_that_name(
    subject: str, question: str, earlier: str, surface: str
) -> None:
    hops = (triple("e", "r", earlier), triple(subject, "r", "o"))
    assert known_hops(question, *hops)[1] == Known(subject, surface, "r")


def test_a_name_within_another_word_is_not_revealed() -> None:
    (hop,) = known_hops("Is Anna here?", triple("Ann", "r", "o"))
    assert hop.surface == "Anna"


# Steps


@pytest.mark.parametrize(
    ("text", "name", "relation"),
    [
        ("Hello Love >> performer", "Hello Love", "performer"),
        ("Aschenbrödel>>composer", "Aschenbrödel", "composer"),
        ("#1 >> country", "Hank Snow", "country"),
        ("What city did #1 live when he died?", "Hank Snow", "What city did live when he died"),
        ("Midway, #2 , #1 >> country", "Ohio", "Midway, , Hank Snow country"),
        ("Where is the Philbrook Museum?", "Philbrook Museum", "Where is the"),
        ("The director of Jump for Glory is who?", "Jump for Glory", "The director of is who"),
        ("who broke salt law in belgaum", "broke salt law", "who in belgaum"),
        ("what is #9 of Ann Lee", "Ann Lee", "what is #9 of"),
    ],
)
def test_the_name_of_a_step_is_an_answer_or_the_capitalised_span(
    text: str, name: str, relation: str
) -> None:
    hops = (step("a >> b", "Hank Snow (singer)"), step("c >> d", "Ohio"), step(text, "o"))
    assert known_hops("?", *hops)[2] == Known(name, name, relation)


def test_the_answer_is_removed_from_the_relation() -> None:
    (hop,) = known_hops("?", step("Ann Lee >> lives in New York City", "New York"))
    assert hop == Known("Ann Lee", "Ann Lee", "lives in City")
    assert without_words("born in OSLO, Oslo", "Oslo") == "born in"
    assert without_words("born", "") == "born"
    assert without_words("東京 タワー", "東京") == "タワー"


# Words


def test_spans_hold_small_words_and_end_at_commas_and_brackets() -> None:
    text = 'The Lord of the Rings, Frodo (Baggins) met "Sam Gamgee" in St. Ives'
    assert capitalised_spans(text) == [
        "Lord of the Rings", "Frodo", "Baggins", "Sam Gamgee", "St. Ives",
    ]  # fmt: skip
    assert capitalised_spans("") == []
    assert longest(capitalised_spans("Ann met Bob Lee and Cy")) == "Bob Lee and Cy"


def test_without_capitals_the_longest_run_of_content_words_is_the_name() -> None:
    assert content_span("who is captain miller in saving private ryan") == "saving private ryan"
    assert content_span("who is it") == "who is it"
    assert content_span("") == ""


def test_the_seed_drops_one_word_and_never_the_only_one() -> None:
    name = "Alexander and the Terrible Day"
    shortened = {dropped(name, str(seed)) for seed in range(100)}
    assert len(shortened) == 5
    assert all(len(short.split()) == 4 for short in shortened)
    assert dropped(name, "7") == dropped(name, "7")
    assert dropped("Oslo", "1") == "Oslo"
    assert dropped("", "1") == ""
    assert Known("Ann Lee", "Anne Lee", "r").name("surface", "1") == "Anne Lee"
    assert Known("Ann Lee", "Anne Lee", "r").name("dropped", "1") in {"Ann", "Lee"}

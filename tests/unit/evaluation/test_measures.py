"""Measures of answers and evidence: worked examples, agreement with the official SQuAD script, and
with HotpotQA's rule for yes and no."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from types import ModuleType

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from arag_search.agent.wording import is_refusal, normalise
from arag_search.evaluation.text_match import (
    contains,
    evidence_recall,
    exact_match,
    f1,
    rests_on_a_mark,
)
from arag_search.questions.files import Question


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The Four Seasons", "four seasons"),
        ("  a   Night at\tthe Opera!\n", "night at opera"),
        ("U.S.", "us"),
        ("Vivaldi's", "vivaldis"),
        ("rock-and-roll", "rockandroll"),
        ("Anthem", "anthem"),
        ("4 March 1678", "4 march 1678"),
        ("“Griselda”", "griselda"),
        ("ＡＢＣ １９１４", "abc 1914"),
        ("10²", "10²"),
        ("5 €", "5 €"),
        ("Cafe\u0301", "caf\u00e9"),
        ("the", ""),
        ("", ""),
    ],
)
def test_normalisation(text: str, normal: str) -> None:
    assert normalise(text) == normal


@pytest.mark.parametrize(
    ("answer", "golds", "exact", "overlap", "contained"),
    [
        ("Paris", ["Paris"], 1, 1, 1),
        ("the paris.", ["Paris"], 1, 1, 1),
        ("Paris, France", ["Paris", "Paris, France"], 1, 1, 1),
        ("in Paris", ["Paris"], 0, 2 / 3, 1),
        ("Paris", ["Paris, France"], 0, 2 / 3, 0),
        ("Antonio Lucio Vivaldi", ["Antonio Vivaldi"], 0, 4 / 5, 0),
        ("one one two", ["one two two"], 0, 2 / 3, 0),
        ("Rome", ["Paris", "Vienna"], 0, 0, 0),
        ("Norway", ["no"], 0, 0, 1),
        ("", ["Paris"], 0, 0, 0),
        ("", ["The"], 0, 0, 0),
        ("The", ["A"], 0, 0, 0),
        ("a.", ["A"], 1, 1, 1),
        ("a the", ["A"], 0, 0, 0),
        ("+", ["-"], 0, 0, 0),
        ("+", ["+", "-"], 1, 1, 1),
        ("...", [""], 0, 0, 0),
        ("O’Brien", ["O'Brien"], 1, 1, 1),
        ("Oʻahu", ["O`ahu"], 1, 1, 1),
        ("1914–1918", ["1914-1918"], 1, 1, 1),
        ("non\u2011stop \u201ehit\u201c", ["non-stop hit"], 1, 1, 1),
        ("ﬁ\u200bnance", ["finance"], 1, 1, 1),
        ("«x»…", ["“x”"], 1, 1, 1),
        ("−5", ["-5"], 1, 1, 1),
        ("東京。", ["東京"], 1, 1, 1),
        ("東京、２０２０年", ["東京2020年"], 1, 1, 1),
        ("東京都", ["東京"], 0, 4 / 5, 1),
        ("in 東京 2020", ["東京2020"], 0, 6 / 7, 0),
        ("กรุง", ["กรุงเทพ"], 0, 8 / 11, 0),
        ("ﾄﾞｲﾂ", ["ドイツ"], 1, 1, 1),
        ("C", ["C++"], 1, 1, 1),
        ("5", ["-5"], 1, 1, 1),
        ("Paris", ["The"], 0, 0, 0),
        ("Paris", [], 0, 0, 0),
        ("yes it is", ["yes"], 0, 0, 1),
        ("no", ["no trace"], 0, 0, 0),
        ("noanswer", ["answer noanswer"], 0, 0, 0),
        ("The yes!", ["yes"], 1, 1, 1),
        ("yes and no", ["no yes and"], 0, 1, 0),
    ],
)
def test_worked_examples(
    answer: str, golds: list[str], exact: float, overlap: float, contained: float
) -> None:
    assert exact_match(answer, golds) == exact
    assert f1(answer, golds) == pytest.approx(overlap)
    assert contains(answer, golds) == contained


@pytest.mark.parametrize(
    ("answer", "gold", "rests"),
    [
        ("C", "C++", True),
        ("C#", "C++", True),
        ("5", "-5", True),
        ("15", "1.5", True),
        ("5", ".5", True),
        ("1.5", "1,5", True),
        ("5", "5%", True),
        ("911", "9/11", True),
        ("5", "−5", True),
        ("-5", "−5", False),
        ("1,500", "1500", False),
        ("the U.S.", "US", False),
        ("rock-and-roll", "rockandroll", False),
        ("(1914-1918)", "1914-1918.", False),
        ("C", "D++", False),
    ],
)
def test_a_match_rests_on_a_mark_that_changes_what_a_text_means(
    answer: str, gold: str, rests: bool
) -> None:
    assert rests_on_a_mark(answer, [gold]) == rests
    assert not rests_on_a_mark(answer, [gold, answer])


# A second implementation


@pytest.fixture(scope="module")
def squad() -> ModuleType:
    """Load the official script for SQuAD 2.0 from allennlp-models: the module alone, because its
    package needs torch."""
    for file in importlib.metadata.files("allennlp-models") or ():
        if str(file) == "allennlp_models/rc/tools/squad.py":
            spec = importlib.util.spec_from_file_location("official_squad", file.locate())
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    pytest.fail("allennlp-models has no module for SQuAD")


POLAR = {"yes", "no", "noanswer"}
"""Answers that get F1 from HotpotQA's script for an exact match alone; SQuAD's has no such rule."""


def texts_of(characters: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    words = ["the", "A", "Vivaldi", "vivaldi's", "U.S.", "-", "4", "and", "...", "yes", "No"]
    drawn = st.one_of(st.sampled_from(words), st.text(characters, max_size=4))
    return st.lists(drawn, max_size=8).map(" ".join)


ASCII = texts_of(st.characters(max_codepoint=127))


@given(answer=ASCII, golds=st.lists(ASCII, min_size=1, max_size=3))
def test_the_measures_agree_with_the_official_script_on_ascii(
    squad: ModuleType, answer: str, golds: list[str]
) -> None:
    assume(all(map(normalise, [answer, *golds])))
    scores = [squad.get_metric_score(answer, [gold]) for gold in golds]
    assert exact_match(answer, golds) == max(exact for exact, _ in scores)
    assert f1(answer, golds) == pytest.approx(
        max(
            exact if POLAR & {normalise(answer), normalise(gold)} else overlap
            for gold, (exact, overlap) in zip(golds, scores, strict=True)
        )
    )
    assert contains(answer, golds) == any(
        squad.normalize_answer(gold) in squad.normalize_answer(answer) for gold in golds
    )


@given(text=texts_of(st.characters()))
def test_every_text_agrees_with_itself(text: str) -> None:
    assert exact_match(text, [text]) == f1(text, [text]) == contains(text, [text]) == 1


# Evidence


def question_with(titles: tuple[str, ...] = (), *subjects: str) -> Question:
    return Question(
        "q", "?", ("x",), None, titles, tuple((subject, "r", "o") for subject in subjects)
    )


def test_evidence_recall_is_the_share_of_gold_titles_shown() -> None:
    question = question_with(("Griselda (Vivaldi)", "Carlo Goldoni"))
    assert evidence_recall(question, []) == 0
    assert evidence_recall(question, ["carlo goldoni", "Other"]) == 0.5
    assert evidence_recall(question, ["Griselda (Vivaldi)", "Carlo  Goldoni"]) == 1
    assert evidence_recall(question, ["Griselda (Scarlatti)", "Griselda"]) == 0


def test_the_subject_of_a_fact_matches_a_title_with_more_in_brackets() -> None:
    assert evidence_recall(question_with((), "Camille"), ["Camille (1936 film)"]) == 1
    assert evidence_recall(question_with(("Camille",)), ["Camille (1936 film)"]) == 0
    assert evidence_recall(question_with((), "Camille (1936 film)"), ["Camille"]) == 0


def test_evidence_recall_is_none_without_gold_titles() -> None:
    assert evidence_recall(question_with(), ["Anything"]) is None


# Refusals


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Not found in the corpus.",
        "not found in the corpus",
        "The answer could not be found",
        "The information is not available.",
        "It cannot be determined from the passages",
        "I don't know",
        "Unknown",
        "N/A",
        "No information about this question was found.",
        "Insufficient information",
        "None",
        "none.",
        "I couldn't find it",
        "I couldn\u2019t find it.",
        "There is no information",
        "There isn\u2019t any information about it.",
        "\u201cNot found\u201d",
        "\u2018not found in the corpus\u2019",
        "\u00abUnknown\u00bb",
        "The passages don't mention it",
        "The corpus does not contain this information.",
        "not found in the corpus, but it cannot be determined",
        "Not found; the passages mention nothing but operas",
        "not found but " * 5_000,
    ],
)
def test_a_refusal_is_recognised(answer: str) -> None:
    assert is_refusal(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "No",
        "no.",
        "Norway",
        "Unknown Pleasures",
        "Do Not Go Gentle",
        "The Answer",
        "Can",
        "None of them",
        "Can\u2019t Buy Me Love",
        "There is no Paris",
        "not mentioned in the corpus, but Paris",
        "Not found in the corpus; however, Paris is likely.",
    ],
)
def test_an_answer_is_no_refusal(answer: str) -> None:
    assert not is_refusal(answer)

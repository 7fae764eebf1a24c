"""Evidence resolved to passages: each rule, and packed passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from arag_search.corpus import Chunk
from arag_search.evaluation.resolution import (
    EvidencePiece,
    Passages,
    resolve_evidence,
    resolve_hops,
)
from arag_search.questions.question import GoldPassage, Hop, Question
from tests.support.passages import VIVALDI, chunk


def triple(subject: str, answer: str, *, title: str | None = None) -> Hop:
    return Hop(None, subject, "r", answer, title, None)


def question_of(*hops: Hop) -> Question:
    return Question("q", "?", ("x",), hops=hops)


def resolution_of(hop: Hop, chunks: Sequence[Chunk] = VIVALDI) -> tuple[object, ...]:
    (hop_evidence,) = resolve_hops(question_of(hop), Passages(chunks))
    return (hop_evidence.rule, hop_evidence.chunk_ids, hop_evidence.answer is not None)


def test_an_exact_title_comes_first_and_of_its_parts_the_one_with_the_answer() -> None:
    assert resolution_of(triple("Antonio Vivaldi", "Vienna")) == ("title", ("vivaldi.2",), True)


def test_if_no_part_has_the_answer_all_parts_are_returned() -> None:
    resolution = resolution_of(triple("Antonio Vivaldi", "4 March 1678"))
    assert resolution == ("title", ("vivaldi.1", "vivaldi.2"), False)


def test_titles_match_after_normalisation_then_without_brackets() -> None:
    assert resolution_of(triple("the antonio VIVALDI", "violin")) == (
        "normalised",
        ("vivaldi.1",),
        True,
    )
    assert resolution_of(triple("Griselda", "older")) == ("brackets", ("scarlatti.1",), True)
    ids = ("griselda.1", "scarlatti.1")
    assert resolution_of(triple("Griselda", "opera")) == ("brackets", ids, True)
    assert resolution_of(triple("Antonio Vivaldi (composer)", "x"))[0] is None


def test_a_title_whose_passage_lacks_the_answer_yields_to_a_later_rule_with_the_answer() -> None:
    pages = (
        chunk(0, "other", "Pine", "Pine may be any of these."),
        chunk(1, "film", "Pine (1916 film)", "It was directed by Maigne."),
        chunk(2, "book", "Trail", "A novel before the film Pine was made in 1910."),
    )
    assert resolution_of(triple("Pine", "Maigne"), pages) == ("brackets", ("film.1",), True)
    assert resolution_of(triple("Pine", "1910"), pages) == ("subject and object", ("book.1",), True)
    assert resolution_of(triple("Pine", "DeMille"), pages) == ("title", ("other.1",), False)


def test_the_last_rule_is_the_only_passage_with_subject_and_answer() -> None:
    rule = "subject and object"
    assert resolution_of(triple("young Carlo Goldoni", "libretto")) == (rule, ("griselda.1",), True)
    assert resolution_of(triple("opera", "Venice")) == (rule, ("griselda.1",), True)
    assert resolution_of(triple("in Venice", "Vivaldi"))[:2] == (None, ())
    assert resolution_of(triple("Carlo Gold", "libretto"))[:2] == (None, ())


def test_a_published_text_is_matched_before_its_title() -> None:
    text = VIVALDI[2].content
    hop = Hop("#1 >> composer", None, None, "Vivaldi", "Griselda (Vivaldi)", text)
    assert resolution_of(hop) == ("text", ("griselda.1",), True)
    twin = chunk(9, "twin", "Griselda", text)
    assert resolution_of(hop, [twin, *VIVALDI]) == ("text", ("griselda.1",), True)
    unknown = Hop("?", None, None, "Venice", "Griselda (Vivaldi)", "Text of another edition.")
    assert resolution_of(unknown) == ("title", ("griselda.1",), True)


def test_titles_and_texts_of_punctuation_alone_match_nothing() -> None:
    empty = chunk(9, "e", "?", "!")
    assert resolution_of(triple("...", "."), [empty])[:2] == (None, ())
    assert resolution_of(Hop("?", None, None, "!", "...", "--"), [empty])[:2] == (None, ())


def test_a_split_text_is_located_by_its_sentences_but_not_by_short_ones() -> None:
    passages = [
        chunk(0, "w", "W", "He was born in old Venice. ", "Yes. ", parts=2),
        chunk(0, "w", "W", "He died in far Vienna.", part=2, parts=2),
        chunk(1, "o", "O", "Yes. ", "An answer of another kind."),
    ]
    text = "He was born in old Venice. Yes. He died in far Vienna."
    for answer, ids, holds in (
        ("Vienna", ("w.2",), True),
        ("Yes", ("w.1",), True),
        ("1741", ("w.1", "w.2"), False),
    ):
        assert resolution_of(Hop("?", None, None, answer, "W", text), passages) == (
            "text", ids, holds
        )  # fmt: skip


# Pieces


def test_pieces_are_hops_else_titles_else_texts() -> None:
    passages = Passages(VIVALDI)
    hop = triple("Griselda", "older")
    titled = Question("q", "?", ("x",), None, ("Griselda (Vivaldi)", "Unknown"))
    assert resolve_evidence(Question("q", "?", ("x",), None, ("T",), hops=(hop,)), passages) == (
        (EvidencePiece("Griselda", ("scarlatti.1",), "brackets", "older"),),
    )
    assert resolve_evidence(titled, passages) == (
        (
            EvidencePiece("Griselda (Vivaldi)", ("griselda.1",), "title"),
            EvidencePiece("Unknown", (), None),
        ),
    )
    text = GoldPassage(None, "Its premiere was in Venice.")
    assert resolve_evidence(Question("q", "?", ("x",), supporting_passages=(text,)), passages) == (
        (EvidencePiece("Its premiere was in Venice.", ("griselda.1",), "text"),),
    )
    assert resolve_evidence(Question("q", "?", ("x",)), passages) == ()


def test_alternative_titles_are_separate_sets() -> None:
    question = Question(
        "q", "?", ("x",), None, ("Antonio Vivaldi",),
        alternative_titles=(("Griselda (Vivaldi)", "Griselda (Scarlatti)"),),
    )  # fmt: skip
    sets = resolve_evidence(question, Passages(VIVALDI))
    assert [[piece.chunk_ids for piece in pieces] for pieces in sets] == [
        [("vivaldi.1", "vivaldi.2")],
        [("griselda.1",), ("scarlatti.1",)],
    ]


def test_a_text_is_looked_for_in_the_relevant_documents_and_where_most_of_it_is() -> None:
    shared = "This report has been filed with the commission by us. "
    half = "Capital expenditures were 1,577 million dollars in the year. "
    rest = "Proceeds from sales of businesses were 846 million dollars there. "
    page = shared + half + rest
    chunks = (
        chunk(0, "2017.pdf", "Report", shared, half, rest, "And more."),
        chunk(1, "2018.pdf", "Report", shared, "Contents.", part=1, parts=3),
        chunk(1, "2018.pdf", "Report", shared, half, part=2, parts=3),
        chunk(1, "2018.pdf", "Report", rest, "And more.", part=3, parts=3),
    )
    question = Question(
        "q", "?", ("1,577",), supporting_passages=(GoldPassage("2018.pdf", page),),
        relevant_documents=(("2018.pdf", 1), ("2017.pdf", 0)),
    )  # fmt: skip
    piece = EvidencePiece("2018.pdf", ("2018.pdf.2", "2018.pdf.3"), "text")
    assert resolve_evidence(question, Passages(chunks)) == ((piece,),)
    elsewhere = replace(question, relevant_documents=(("2016.pdf", 1),))
    assert resolve_evidence(elsewhere, Passages(chunks)) == (
        (EvidencePiece("2018.pdf", (), None),),
    )
    anywhere = replace(question, relevant_documents=())
    ((whole,),) = resolve_evidence(anywhere, Passages(chunks))
    assert whole.chunk_ids == ("2017.pdf.1",)

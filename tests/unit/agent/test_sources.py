"""Sources with scores, and how an answer names them: by title, file, page and lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag_search.agent.answers import cited_documents, parse_answer, split_scores
from arag_search.agent.loop import Agent
from arag_search.agent.models.base import ModelReply
from arag_search.agent.sources import Source, sources_of, with_titles
from arag_search.cli.output.answers import answer_text
from arag_search.tools.conversation import FORM, References
from arag_search.tools.preset_files import load_preset
from tests.support.asking import call, calls
from tests.support.long_documents import index_of_documents, long_document
from tests.support.scripted_model import ScriptedModel


@pytest.mark.parametrize(
    ("sources", "scores"),
    [
        ("[turn0search3] 0.95, [turn2search14] 0.4", {"turn0search3": 0.95, "turn2search14": 0.4}),
        ("turn0search3 (0.5); turn0search4: 80%", {"turn0search3": 0.5, "turn0search4": 0.8}),
        (
            "- [turn0search3]: 9/10\n- [turn0search4] - 7",
            {"turn0search3": 0.9, "turn0search4": 0.7},
        ),
        ("[turn0search3] 1, [turn0search4] 0", {"turn0search3": 1.0, "turn0search4": 0.0}),
        ("[turn0search3] 45/100 [turn0search4] 95", {"turn0search3": 0.45, "turn0search4": 0.95}),
        ("[turn0search3] 0,75", {"turn0search3": 0.75}),
        ("turn0search10, turn1search123", {}),
        ("[turn0search3], [turn0search4] 0.1", {"turn0search4": 0.1}),
        ("[turn0search3] 3M 2018 report", {}),
        ("[turn0search3] 0.9 [turn0search3] 0.1", {"turn0search3": 0.9}),
        ("", {}),
    ],
)
def test_scores_are_read_in_the_forms_that_models_use(
    sources: str, scores: dict[str, float]
) -> None:
    assert split_scores(sources)[1] == pytest.approx(scores)


@given(st.text(st.sampled_from("turn0search1 []0.9%/,:()-\n"), max_size=60))
def test_any_list_of_sources_is_read(sources: str) -> None:
    text, scores = split_scores(sources)
    assert all(0 <= score <= 1 for score in scores.values())
    assert set(scores) <= set(FORM.findall(sources))
    assert FORM.findall(text) == FORM.findall(sources)
    parse_answer(f"Answer: x\nSources: {sources}", {"turn0search1"}, lambda _: (), scored=True)


def test_documents_are_ranked_by_score_and_by_place_without_one() -> None:
    references = References()
    for number in range(4):
        references.of_document(f"d{number}", "", 0)
    cited = ("turn0search0", "turn0search1", "turn0search2", "turn9search9")
    ranked = cited_documents(cited, {"turn0search1": 0.6}, references)
    assert [(document.doc_id, round(document.score, 2)) for document in ranked] == [
        ("d0", 1.0),
        ("d1", 0.6),
        ("d2", 0.33),
    ]


PDF = "[page 1]\nThe 3M Company.\n[page 2]\nSales were 32,765.\nCapital: 1,577."
ANSWER = ModelReply(
    "Answer: 1,577 [turn0search0]\nExplanation: It says so [turn0search0].\n"
    "Sources: [turn0search0] 0.9"
)


def test_an_answer_names_title_file_page_and_lines() -> None:
    index = index_of_documents(
        long_document(0, "3m", "3M report", PDF, file="3m.pdf", path="reports/3m.pdf")
    )
    script = [
        calls(call("search", queries=["capital"])),
        calls(call("open", reference_id="turn0search0", line_number=4)),
        ANSWER,
    ]
    record = Agent(index, load_preset("agentic_rag"), ScriptedModel(script)).ask("How much?")
    (source,) = sources_of(record, index)
    assert source == Source(
        "turn0search0", "3m", 0.9, "3M report", "3m.pdf", "reports/3m.pdf", 2, (4, 5)
    )
    assert source.link == "reports/3m.pdf#page=2"
    assert source.name == "3M report, 3m.pdf, page 2, lines 4-5"
    assert answer_text(record, index) == (
        "1,577\n\nIt says so [3M report, 3m.pdf, page 2, lines 4-5].\n\n"
        "Sources, with how much each helps:\n"
        "  0.90  [turn0search0] 3M report, 3m.pdf, page 2, lines 4-5  reports/3m.pdf#page=2"
    )


def test_a_text_is_linked_by_its_line_and_a_lost_document_has_its_id() -> None:
    source = Source("turn0search0", "notes", 1.0, "", "notes.txt", None, None, (19, 22))
    assert (source.link, source.name) == ("notes.txt:19", "notes, notes.txt, lines 19-22")
    lost = Source("turn0search1", "gone", 0.5, "")
    assert (lost.link, lost.name) == (None, "gone")
    assert with_titles("See [turn0search1] [turn5search5].", [lost]) == "See [gone] [turn5search5]."

"""Records of every published format, with the evidence that they name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arag_search.errors import QuestionsError
from arag_search.questions.files import load_questions, read_questions
from arag_search.questions.question import GoldPassage, Hop, Question
from arag_search.questions.record import NO_ID, read_record

MUSIQUE: dict[str, Any] = {
    "id": "2hop__1_2",
    "paragraphs": [
        {"idx": 0, "title": "Vienna", "paragraph_text": "A city.", "is_supporting": False},
        {"idx": 1, "title": "Griselda", "paragraph_text": "By Vivaldi.", "is_supporting": True},
        {"idx": 2, "title": "Vivaldi", "paragraph_text": "Died in Vienna.", "is_supporting": True},
    ],
    "question": "Where did the composer of Griselda die?",
    "question_decomposition": [
        {"id": 1, "question": "Griselda >> composer", "answer": "Vivaldi",
         "paragraph_support_idx": 1},
        {"id": 2, "question": "Where did #1 die?", "answer": "Vienna", "paragraph_support_idx": 2},
    ],
    "answer": "Vienna",
    "answer_aliases": ["Wien"],
    "answerable": True,
}  # fmt: skip
HOPS = (
    Hop("Griselda >> composer", None, None, "Vivaldi", "Griselda", "By Vivaldi."),
    Hop("Where did #1 die?", None, None, "Vienna", "Vivaldi", "Died in Vienna."),
)
HOTPOT: dict[str, Any] = {
    "_id": "h",
    "question": "Which city?",
    "answer": "Vienna",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": [["Vivaldi", 1], ["Griselda", 0], ["Vivaldi", 0]],
    "context": [["Vivaldi", ["He. ", "Died."]], ["Rome", ["A city."]], ["Griselda", ["Opera."]]],
}
KILT: dict[str, Any] = {
    "id": "k",
    "input": "Where did Vivaldi die?",
    "output": [
        {"answer": "Vienna", "provenance": [
            {"wikipedia_id": "7", "title": "Vivaldi", "start_paragraph_id": 3},
            {"wikipedia_id": "7", "title": "Vivaldi", "start_paragraph_id": 4},
        ]},
        {"answer": "Wien"},
        {"provenance": [{"wikipedia_id": "8", "title": "Vienna"},
                        {"wikipedia_id": "9", "title": "Opera"}]},
    ],
}  # fmt: skip


def load(tmp_path: Path, *records: dict[str, Any]) -> tuple[Question, ...]:
    path = tmp_path / "q.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    return load_questions(path)


def rejection(tmp_path: Path, *records: dict[str, Any]) -> str:
    with pytest.raises(QuestionsError) as caught:
        load(tmp_path, *records)
    return str(caught.value).replace(str(tmp_path), "")


def test_musique_gives_its_decomposition_with_the_supporting_paragraph_of_each_step(
    tmp_path: Path,
) -> None:
    (question,) = load(tmp_path, MUSIQUE)
    assert question.hops == HOPS
    assert question.supporting_titles == ("Griselda", "Vivaldi")
    assert question.supporting_passages == (
        GoldPassage("Griselda", "By Vivaldi."),
        GoldPassage("Vivaldi", "Died in Vienna."),
    )
    assert question.answers == ("Vienna", "Wien")


def test_musique_without_paragraphs_uses_the_title_of_each_step_and_the_text_with_its_answer(
    tmp_path: Path,
) -> None:
    steps = {name: value for name, value in MUSIQUE.items() if name != "paragraphs"}
    steps["decomposition_support"] = ["Griselda", "Vivaldi"]
    steps["supporting"] = [
        {"title": "Vivaldi", "text": "Born in Venice."},
        {"title": "Vivaldi", "text": "Died in Vienna."},
        {"title": "Griselda", "text": "By Vivaldi."},
    ]
    assert load(tmp_path, steps)[0].hops == HOPS
    del steps["supporting"]
    assert [hop.text for hop in load(tmp_path, steps)[0].hops] == [None, None]
    steps["decomposition_support"] = ["Griselda"]
    assert rejection(tmp_path, steps) == (
        'The field "decomposition_support" is ["Griselda"].\n'
        "Where: /q.json, record 1\n"
        "Allowed: 2 titles, one a step\n"
        "Do: Fix the record."
    )


def test_an_unanswerable_question_of_musique_gets_an_id_that_differs_from_its_twin(
    tmp_path: Path,
) -> None:
    steps = [{**step, "paragraph_support_idx": None} for step in MUSIQUE["question_decomposition"]]
    twin = {**MUSIQUE, "answerable": False, "question_decomposition": steps}
    for records in ([MUSIQUE, twin], [twin, MUSIQUE]):
        by_id = {question.id: question for question in load(tmp_path, *records)}
        assert by_id["2hop__1_2"].answerable
        assert not by_id["2hop__1_2__unanswerable"].answerable
        assert [hop.title for hop in by_id["2hop__1_2__unanswerable"].hops] == [None, None]
    assert read_questions(tmp_path / "q.json").notes == (
        '1 unanswerable question has the id of an answerable twin, to which "__unanswerable" was '
        "added.",
    )
    assert rejection(tmp_path, twin, twin).startswith('The id "2hop__1_2" is duplicated.\n')


def test_a_step_whose_paragraph_is_missing_is_rejected(tmp_path: Path) -> None:
    steps = [{**MUSIQUE["question_decomposition"][0], "paragraph_support_idx": 9}]
    assert rejection(tmp_path, {**MUSIQUE, "question_decomposition": steps}).startswith(
        'The field "paragraph_support_idx" is 9.\nWhere: /q.json, record 1, '
        "question_decomposition 1\n"
    )


def test_hotpotqa_gives_titles_and_the_passages_with_them(tmp_path: Path) -> None:
    (question,) = load(tmp_path, HOTPOT)
    assert question.supporting_titles == ("Vivaldi", "Griselda")
    assert question.supporting_passages == (
        GoldPassage("Vivaldi", "He. Died."),
        GoldPassage("Griselda", "Opera."),
    )
    assert question.hops == ()


def test_hotpotqa_in_columns_gives_the_same_question(tmp_path: Path) -> None:
    columns = {
        **HOTPOT,
        "supporting_facts": {"title": ["Vivaldi", "Griselda", "Vivaldi"], "sent_id": [1, 0, 0]},
        "context": {
            "title": ["Vivaldi", "Rome", "Griselda"],
            "sentences": [["He. ", "Died."], ["A city."], ["Opera."]],
        },
    }
    assert load(tmp_path, columns) == load(tmp_path, HOTPOT)
    columns["supporting_facts"] = {"title": ["Vivaldi"], "sent_id": []}
    assert 'Allowed: a list of [title, sentence number], or {"title": [], "sent_id": []}' in (
        rejection(tmp_path, columns)
    )


def test_2wikimultihopqa_gives_triples_as_hops_with_the_titles_of_supporting_passages(
    tmp_path: Path,
) -> None:
    triples = [["Griselda", "composer", "Vivaldi"], ["Antonio Vivaldi", "place of death", "Vienna"]]
    (question,) = load(tmp_path, {**HOTPOT, "evidences": triples})
    assert question.hops == (
        Hop(None, "Griselda", "composer", "Vivaldi", "Griselda", None),
        Hop(None, "Antonio Vivaldi", "place of death", "Vienna", None, None),
    )


def test_kilt_gives_answers_pages_and_alternative_sets_of_titles(tmp_path: Path) -> None:
    assert load(tmp_path, KILT) == (
        Question(
            "k",
            "Where did Vivaldi die?",
            ("Vienna", "Wien"),
            supporting_titles=("Vivaldi",),
            alternative_titles=(("Vienna", "Opera"),),
            relevant_documents=(("7", 1), ("8", 1), ("9", 1)),
        ),
    )


def test_kilt_without_answers_names_the_parts_that_have_them(tmp_path: Path) -> None:
    assert rejection(tmp_path, {**KILT, "output": [KILT["output"][2]]}) == (
        "No output has an answer.\n"
        "Where: /q.json, record 1\n"
        'Allowed: "output": [{"answer": "...", "provenance": [...]}, ...]\n'
        "Do: Use a part of the task that is published with answers, train or dev."
    )
    without_output = {name: value for name, value in KILT.items() if name != "output"}
    assert rejection(tmp_path, without_output).startswith('The record has no "output".\n')


def test_hops_and_passages_can_be_written_plainly(tmp_path: Path) -> None:
    hop = {"question": "Griselda >> composer", "answer": "Vivaldi", "title": "Griselda",
           "text": "By Vivaldi."}  # fmt: skip
    record = {
        "id": "p", "question": "?", "answer": "Vivaldi", "hops": [hop],
        "supporting_passages": [{"text": "By Vivaldi."}],
        "answerable": False,
    }  # fmt: skip
    (question,) = load(tmp_path, record)
    assert question.hops == HOPS[:1]
    assert question.supporting_titles == ("Griselda",)
    assert question.supporting_passages == (GoldPassage(None, "By Vivaldi."),)
    assert not question.answerable


def test_a_hop_without_an_answer_names_its_place(tmp_path: Path) -> None:
    record = {"id": "p", "question": "?", "answer": "a", "hops": [{"answer": "a"}, {"title": "T"}]}
    assert rejection(tmp_path, record) == (
        'The record has no "answer".\n'
        'Where: /q.json, record 1, hops 2, with the fields ["title"]\n'
        "Allowed: steps of answer"
    )


KEYS = (
    "id", "question", "answer", "answer_aliases", "question_type", "supporting_titles",
    "supporting_facts", "supporting_passages", "supporting", "decomposition_support", "context",
    "question_decomposition", "paragraphs", "evidence", "evidences", "hops", "answerable",
    "source", "input", "output", "title", "sent_id", "sentences", "text", "paragraph_text", "idx",
    "paragraph_support_idx", "is_supporting", "provenance", "wikipedia_id",
)  # fmt: skip
VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-1, 2), st.text(max_size=3),
        st.sampled_from([1.5, "a", "Vivaldi"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
    ),
    max_leaves=20,
)  # fmt: skip
MUTABLE = (MUSIQUE, HOTPOT, KILT, {"id": "p", "question": "?", "answer": "a"})


@given(record=st.sampled_from(MUTABLE), changes=st.dictionaries(st.sampled_from(KEYS), VALUES))
def test_any_record_is_either_read_or_rejected(
    record: dict[str, Any], changes: dict[str, Any]
) -> None:
    changed = {**record, **changes}
    try:
        question = read_record(changed, "here")
    except QuestionsError as error:
        assert "here" in error.where
    else:
        # A null is as good as nothing, and gives way to the other name.
        assert (question.id == NO_ID) is all(changed.get(name) is None for name in ("id", "_id"))
        assert question.text
        assert question.answers


# WixQA and FinanceBench


WIXQA: dict[str, Any] = {
    "question": "How do I publish?",
    "answer": "1. Open the editor.\n2. Click Publish.",
    "article_ids": ["b7d", "a1f", "b7d"],
}
FINANCEBENCH: dict[str, Any] = {
    "financebench_id": "financebench_id_03029",
    "company": "3M",
    "doc_name": "3M_2018_10K",
    "question_type": "metrics-generated",
    "question_reasoning": "Information extraction",
    "domain_question_num": None,
    "question": "What is the capital expenditure?",
    "answer": "$1577.00",
    "justification": None,
    "dataset_subset_label": "OPEN_SOURCE",
    "evidence": [
        {"evidence_text": "PP&E (1,577)", "doc_name": "3M_2018_10K", "evidence_page_num": 59,
         "evidence_text_full_page": "Cash Flow\nPP&E (1,577)"},
        {"evidence_text": "Page two", "evidence_doc_name": "3M_2017_10K", "evidence_page_num": 2},
    ],
}  # fmt: skip


def test_articles_of_wixqa_are_relevant_documents() -> None:
    assert read_record(WIXQA, "x") == Question(
        NO_ID,
        "How do I publish?",
        ("1. Open the editor.\n2. Click Publish.",),
        relevant_documents=(("b7d", 1), ("a1f", 1)),
    )


def test_pages_of_financebench_are_passages_of_the_files_that_hold_them() -> None:
    assert read_record(FINANCEBENCH, "x") == Question(
        "financebench_id_03029",
        "What is the capital expenditure?",
        ("$1577.00",),
        "metrics-generated",
        supporting_passages=(
            GoldPassage("3M_2018_10K.pdf", "Cash Flow\nPP&E (1,577)"),
            GoldPassage("3M_2017_10K.pdf", "Page two"),
        ),
        relevant_documents=(("3M_2018_10K.pdf", 1), ("3M_2017_10K.pdf", 1)),
    )
    without = read_record({**FINANCEBENCH, "evidence": []}, "x")
    assert without.relevant_documents == (("3M_2018_10K.pdf", 1),)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (WIXQA | {"article_ids": "b7d"}, 'The field "article_ids" is "b7d".'),
        (
            FINANCEBENCH | {"evidence": [{"evidence_text": "x"}]},
            'The record has no "evidence_doc_name".\nWhere: x, evidence 1, with',
        ),
    ],
)
def test_wrong_records_of_wixqa_and_financebench_are_rejected(
    record: dict[str, Any], message: str
) -> None:
    with pytest.raises(QuestionsError) as caught:
        read_record(record, "x")
    assert str(caught.value).startswith(message)


# BEIR


def beir(folder: Path, qrels: str = "q1\td1\t2\nq1\td2\t0\nq3\td1\t1\n", *parts: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "qrels").mkdir(exist_ok=True)
    queries = [{"_id": "q1", "text": "Who?"}, {"_id": "q2", "text": "Why?"}]
    queries.append({"_id": "q3", "text": "Caf\u0065\u0301?"})
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    for part in parts or ("test",):
        (folder / "qrels" / f"{part}.tsv").write_text("query-id\tcorpus-id\tscore\n" + qrels)
    return folder


def beir_rejection(path: Path) -> str:
    with pytest.raises(QuestionsError) as caught:
        load_questions(path)
    return str(caught.value).replace(str(path), "B")


def test_a_beir_folder_gives_the_queries_with_judgements(tmp_path: Path) -> None:
    beir_file = read_questions(beir(tmp_path / "b"))
    assert beir_file.questions == (
        Question("q1", "Who?", (), relevant_documents=(("d1", 2), ("d2", 0))),
        Question("q3", "Caf\u00e9?", (), relevant_documents=(("d1", 1),)),
    )
    assert beir_file.notes == ("The judgements are test.tsv of 3 queries; there are no answers.",)


def test_a_beir_query_may_name_documents_that_its_rankings_leave_out(tmp_path: Path) -> None:
    folder = beir(tmp_path / "b", "q1\td1\t1\n")
    query = {"_id": "q1", "text": "Who?", "metadata": {"excluded_ids": ["d7", "d8"], "url": "u"}}
    (folder / "queries.jsonl").write_text(json.dumps(query))
    (question,) = load_questions(folder)
    assert question.excluded_documents == ("d7", "d8")
    (folder / "queries.jsonl").write_text(json.dumps(query | {"metadata": {"excluded_ids": 7}}))
    assert beir_rejection(folder).startswith('The field "excluded_ids" is 7.\n')


def test_of_several_beir_parts_the_named_one_or_test_is_read(tmp_path: Path) -> None:
    folder = beir(tmp_path / "b", "q2\td\t1\n", "dev", "train")
    assert beir_rejection(folder).startswith(
        "The folder has several parts: dev.tsv, train.tsv.\nWhere: B/qrels\n"
    )
    assert [question.id for question in load_questions(folder / "qrels" / "dev.tsv")] == ["q2"]
    beir(folder)
    assert [question.id for question in load_questions(folder)] == ["q1", "q3"]


@pytest.mark.parametrize(
    ("qrels", "message"),
    [
        ("q1 d1 2\n", 'The row is "q1 d1 2".\nWhere: B/qrels/test.tsv, line 2\n'),
        ("q1\td1\tx\n", 'The row is "q1\\td1\\tx".\nWhere: B/qrels/test.tsv, line 2\n'),
        ("q1\t\t1\n", 'The row is "q1\\t\\t1".\nWhere: B/qrels/test.tsv, line 2\n'),
        ("", "There are no judgements.\nWhere: B/qrels/test.tsv\n"),
        (
            "q1\td\t1\nq8\td\t1\nq9\td\t1\n",
            'The query "q8" has judgements, but does not exist, nor do 1 others.\n'
            "Where: B/qrels/test.tsv, and B/queries.jsonl\n",
        ),
    ],
)
def test_wrong_judgements_are_reported_with_their_line(
    tmp_path: Path, qrels: str, message: str
) -> None:
    assert beir_rejection(beir(tmp_path / "b", qrels)).startswith(message)


def test_judgements_without_a_header_and_folders_without_questions_are_rejected(
    tmp_path: Path,
) -> None:
    folder = beir(tmp_path / "b")
    (folder / "qrels" / "test.tsv").write_text("q1\td1\t1\n")
    assert beir_rejection(folder).startswith('The first line is "q1\\td1\\t1".\n')
    (folder / "qrels" / "test.tsv").unlink()
    assert beir_rejection(folder).startswith("The folder holds no questions.\nWhere: B\n")


# BrowseComp-Plus


def test_gold_documents_of_browsecomp_plus_have_the_higher_grade() -> None:
    record = {
        "query_id": 769, "query": "Who?", "answer": "Ada",
        "gold_docs": [{"docid": "11", "text": "Ada."}],
        "evidence_docs": [{"docid": "12"}, {"docid": "11"}],
    }  # fmt: skip
    grades = (("11", 2), ("12", 1))
    question = Question("769", "Who?", ("Ada",), relevant_documents=grades)
    assert read_record(record, "x") == question
    with pytest.raises(QuestionsError, match=r'The record has no "docid"'):
        read_record({**record, "gold_docs": [{"id": "11"}]}, "x")

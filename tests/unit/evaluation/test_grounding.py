"""Whether answers rest on what was shown and cited, by each rule."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from arag_search.agent.answers import CitedDocument
from arag_search.agent.record import Record
from arag_search.evaluation.grounding import Grounding, grounding_of
from arag_search.evaluation.measurement import measure_questions
from arag_search.evaluation.measures import parse_measures
from arag_search.evaluation.resolution import EvidencePiece, LocatedEvidence, Passages
from arag_search.questions.files import load_questions
from arag_search.questions.question import Question
from arag_search.search.opening import open_index
from arag_search.tools.conversation import ShownReference
from index_jobs.build.new_index import build_index
from index_jobs.build.options import BuildOptions
from tests.support.records import record, search
from tests.support.shared_data import DATA

HOPS = (EvidencePiece("a", ("a.1", "a.2"), "title"), EvidencePiece("b", ("b.1",), "title"))
WHOLE = Question("q", "Where was the director born?", ("Bath",))
TOLD = search("x.1", text="head\n[x.1] Ann\nAnn was born in Bath.")


def cites(*ids: str, steps: tuple[object, ...], status: str = "answered") -> Record:
    made = record("q", "Bath", *steps, status=status)  # type: ignore[arg-type]
    return replace(made, cited_ids=ids, citation="cited" if status != "failed" else None)


@pytest.mark.parametrize(
    ("shown", "cited", "holds"),
    [
        (("a.2", "b.1"), ("a.2", "b.1"), True),
        (("a.1", "b.1"), ("b.1",), False),  # a hop from memory
        (("b.1",), ("a.1", "b.1"), False),  # cited, and never shown
        ((), (), False),
    ],
)
def test_with_gold_evidence_a_passage_of_each_piece_is_cited_and_was_shown(
    shown: tuple[str, ...], cited: tuple[str, ...], holds: bool
) -> None:
    answer = cites(*cited, steps=(search(*shown),))
    assert grounding_of(WHOLE, answer, [HOPS]) == Grounding("evidence", holds)


def test_any_sufficient_set_grounds_and_one_that_the_index_does_not_hold_does_not_count() -> None:
    answer = cites("x.1", steps=(TOLD,))
    missing = (EvidencePiece("c", (), None),)
    other = (EvidencePiece("d", ("x.1",), "title"),)
    assert grounding_of(WHOLE, answer, [HOPS, other]) == Grounding("evidence", True)
    assert grounding_of(WHOLE, answer, [missing]) == Grounding("answer", True)


def test_without_gold_evidence_the_answer_stands_in_visible_cited_text() -> None:
    other = search("y.1", text="head\n[y.1] Bob\nBob was born in York.")
    steps = (TOLD, other)
    assert grounding_of(WHOLE, cites("x.1", steps=steps), []) == Grounding("answer", True)
    assert grounding_of(WHOLE, cites("y.1", steps=steps), []) == Grounding("answer", False)
    assert grounding_of(WHOLE, cites(steps=steps), []) == Grounding("answer", False)
    assert grounding_of(WHOLE, cites(steps=(), status="failed"), []) == Grounding("answer", False)


@pytest.mark.parametrize("answers", [("yes",), ("The director",), ()])
def test_answers_that_a_passage_need_not_tell_have_no_rule_without_evidence(
    answers: tuple[str, ...],
) -> None:
    assert grounding_of(replace(WHOLE, answers=answers), cites("x.1", steps=(TOLD,)), []) is None


def test_a_cited_reference_stands_for_the_passages_of_its_document_that_were_shown() -> None:
    step = replace(TOLD, references=(ShownReference("turn0search0", "x", ("x.1",)),))
    answer = replace(
        cites("turn0search0", steps=(step,)), citations=(CitedDocument("turn0search0", "x", 1.0),)
    )
    assert grounding_of(WHOLE, answer, []) == Grounding("answer", True)


def test_titles_of_cited_passages_count_without_an_index_and_predictions_cite_nothing() -> None:
    question = replace(WHOLE, supporting_titles=("Ann",))
    assert grounding_of(question, cites("x.1", steps=(TOLD,))) == Grounding("evidence", True)
    assert grounding_of(question, cites("z.1", steps=(TOLD,))) == Grounding("evidence", False)
    assert grounding_of(question, record("q", "Bath", TOLD)) is None


@pytest.mark.parametrize(
    ("output", "holds"),
    [
        ("./x.1:2:Ann was born in Bath.\n./y.1:2:Bob.", True),
        ("2 lines in 2 files\n[x.1] 2: Ann was born in Bath.\n[y.1] 2: Bob.", True),
        ("[x.1]\nAnn\nShe was born in Bath.\n\n[y.1]\nBob", True),
        ("./x.1:2:Born in Bath.\n./y.1:2:Ann.", False),
        ("./x.1\n./y.1", False),  # names of files, and no text
    ],
)
def test_lines_of_files_ground_as_passages_do_with_an_index_and_without(
    output: str, holds: bool
) -> None:
    question = replace(WHOLE, supporting_titles=("Ann (writer)",))
    step = replace(search("x.1", "y.1", tool="ripgrep", text=output), passages=())
    answer = cites("x.1", steps=(step,))
    assert grounding_of(question, answer) == Grounding("evidence", holds)
    located = [(EvidencePiece("Ann (writer)", ("x.1",), "title"),)]
    assert grounding_of(question, answer, located) == Grounding("evidence", True)


def test_lines_without_names_are_those_of_the_only_file_and_of_several_nobody_knows() -> None:
    lines = replace(search("x.1", tool="ripgrep", text="Ann was born in Bath."), passages=())
    assert grounding_of(WHOLE, cites("x.1", steps=(lines,)), []) == Grounding("answer", True)
    lines = replace(lines, hit_ids=("x.1", "y.1"))
    assert grounding_of(WHOLE, cites("x.1", steps=(lines,)), []) is None
    nothing = replace(lines, hit_ids=(), tool_output="No file\n\nmatches.")
    assert nothing.shown_passages() == []


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("run", "right", "grounded", "from_memory"),
    [
        ("2wikimultihopqa.logical_read", 0.95, 0.95, 0.0),
        ("2wikimultihopqa.direct_answer", 0.95, 0.0, 0.95),
        ("musique.logical_read", 0.9, 0.65, 0.25),
    ],
)
def test_what_a_strong_model_knows_by_heart_is_not_grounded(
    run: str,
    right: float,
    grounded: float,
    from_memory: float,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    name = run.partition(".")[0]
    lines = (DATA / "model_runs" / f"{run}.jsonl").read_bytes().splitlines()
    records = [Record.from_json(json.loads(line)) for line in lines]
    questions = load_questions(DATA / "model_runs" / f"{name}.questions.jsonl")
    location = tmp_path_factory.mktemp("index") / name
    build_index([str(DATA / name / "corpus.jsonl")], location, BuildOptions())
    with open_index(location) as index:
        located = LocatedEvidence.of(questions, Passages(index.scan()))
    measures = parse_measures(["ContainAcc,GroundedAcc,MemoryShare"])
    _, values = measure_questions(
        questions, {of.question_id: of for of in records}, measures, located=located
    )
    means = [sum(of[str(m)] or 0 for of in values.values()) / len(values) for m in measures]
    assert means == pytest.approx([right, grounded, from_memory])


@pytest.mark.shared_data
@pytest.mark.parametrize(("name", "grounded"), [("2wiki_cf", 14), ("musique_cf", 10)])
def test_recorded_lines_of_ripgrep_are_grounded_without_an_index(name: str, grounded: int) -> None:
    lines = (DATA / "model_runs_3" / f"{name}.ripgrep.jsonl").read_bytes().splitlines()
    records = {of.question_id: of for of in map(Record.from_json, map(json.loads, lines))}
    questions = load_questions(DATA / "model_runs_3" / name / "questions.jsonl")
    _, values = measure_questions(questions, records, parse_measures(["GroundedAcc"]))
    assert sum(of["GroundedAcc"] or 0 for of in values.values()) == grounded

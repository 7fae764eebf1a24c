"""Judgements beside the documents of an index: ids that it lacks, and queries that it holds."""

from __future__ import annotations

import pytest

from arag_search.errors import QuestionsError
from arag_search.evaluation.judgements import checked_judgements
from arag_search.evaluation.loaded_run import LoadedRun
from arag_search.evaluation.measures import parse_measures
from arag_search.evaluation.score import score_run
from arag_search.questions.question import Question
from arag_search.runs.folder import RunDescription
from tests.support.passages import VIVALDI, chunk, index_of
from tests.support.records import record, search

INDEX = index_of(*VIVALDI)
TEXT = "".join(passage.content for passage in VIVALDI if passage.doc_id == "vivaldi")
DESCRIPTION = RunDescription(
    created="", preset="p", index="memory", filter=None, model="m", questions="q", count=1,
    limit=None, fingerprints={},
)  # fmt: skip

FOREIGN_IDS = {
    "run-llama/llama_index#16361, passages for documents": ("vivaldi.1", "griselda.1"),
    "iit-cs429/main#71, numbers for names": ("1", "2"),
    "usnistgov/trec_eval#46, with a suffix": ("vivaldi#1", "griselda.X"),
    "linagora/openrag#815, with escapes": ("viv%61ldi", "griselda.pdf"),
    "embeddings-benchmark/mteb#5021, of another corpus": ("Q42", "Q43"),
    "trailing blanks": ("vivaldi ", "griselda\t"),
    "another case": ("Vivaldi", "GRISELDA"),
    "a prefix": ("doc_vivaldi", "doc_griselda"),
}
"""Judged ids that the index does not have."""


def question(*ids: str, id: str = "q", text: str = "?", grade: int = 1) -> Question:
    return Question(id, text, (), relevant_documents=tuple((judged, grade) for judged in ids))


@pytest.mark.parametrize("report", FOREIGN_IDS)
def test_judged_documents_of_which_the_index_has_none_are_refused(report: str) -> None:
    with pytest.raises(QuestionsError, match="None of the relevant documents is in the index"):
        checked_judgements([question(*FOREIGN_IDS[report])], INDEX)


def test_the_refusal_shows_both_kinds_of_ids() -> None:
    ids = [f"doc_{number}\n" for number in range(5)]
    with pytest.raises(QuestionsError) as caught:
        checked_judgements([question(id, id=id) for id in ids], INDEX)
    assert str(caught.value) == (
        'None of the relevant documents is in the index: "doc_0\\n", "doc_1\\n", "doc_2\\n".\n'
        "Where: memory\n"
        'Allowed: ids of its documents, such as "vivaldi", "griselda", "scarlatti"\n'
        "Do: Write the ids of the index into the judgements, or name the index of their corpus."
    )


@pytest.mark.parametrize(
    ("ids", "notes"),
    [
        (("vivaldi", "griselda"), []),
        (("vivaldi", "lost"), ['1 relevant document is not in the index (of 2): "lost".']),
        (
            ("vivaldi", *"abcd"),
            ['4 relevant documents are not in the index (of 5): "a", "b", "c".'],
        ),
    ],
    ids=["all", "beir-cellar/beir#101 and #172", "castorini/anserini#515"],
)
def test_some_missing_documents_are_named(ids: tuple[str, ...], notes: list[str]) -> None:
    questions = (
        question(*ids),
        question("lost", id="r", grade=0),
    )  # what is irrelevant may be missing
    assert checked_judgements(questions, INDEX) == (questions, notes)


def test_documents_outside_of_the_scope_are_missing() -> None:
    with pytest.raises(QuestionsError, match="None of the relevant"):
        checked_judgements([question("vivaldi")], index_of(*VIVALDI, scope="doc_id:griselda"))


def test_many_judged_documents_are_looked_up() -> None:
    index = index_of(*(chunk(number, f"d{number}", "T", "A text.") for number in range(1_200)))
    (_, notes) = checked_judgements([question(*(f"d{n}" for n in range(1_201)))], index)
    assert notes == ['1 relevant document is not in the index (of 1,201): "d1200".']


OWN = {
    "beir-cellar/beir#14, ArguAna": (question("griselda", id="vivaldi", text=TEXT), True),
    "beir-cellar/beir#37, Quora": (question("vivaldi", "page", id="griselda", text=(
        VIVALDI[2].content.strip())), True),
    "castorini/pyserini#1441, with its title": (
        question("griselda", id="vivaldi", text=f"Antonio Vivaldi  {TEXT}"), True),
    "lightonai/pylate#198, other blanks": (
        question("griselda", id="vivaldi", text=TEXT.replace(" ", "\n")), True),
    "embeddings-benchmark/mteb#642, ids that coincide": (
        question("griselda", id="vivaldi", text="When was he born?"), False),
    "embeddings-benchmark/mteb#978, ids that coincide": (
        question("vivaldi", id="vivaldi", text="When was he born?"), False),
    "embeddings-benchmark/mteb#5045, another id": (
        question("griselda", id="q1", text=TEXT), False),
    "judged relevant to itself": (question("vivaldi", id="vivaldi", text=TEXT), False),
    "the beginning alone": (question("griselda", id="vivaldi", text=VIVALDI[0].content), False),
}  # fmt: skip


@pytest.mark.parametrize("report", OWN)
def test_the_document_that_a_question_is_itself_is_left_out_of_its_ranking(report: str) -> None:
    asked, is_left_out = OWN[report]
    ((checked,), notes) = checked_judgements([asked], INDEX)
    ranked = checked.ranked(["vivaldi", "griselda", "page"])
    assert set(ranked) == {"vivaldi", "griselda", "page"} - ({asked.id} if is_left_out else set())
    left_out = ["Rankings of 1 question leave out the document with their own id and text."]
    assert notes == left_out * is_left_out


def test_scores_of_rankings_check_their_judgements_and_others_do_not() -> None:
    def scored(asked: Question, measure: str) -> tuple[float | None, tuple[str, ...]]:
        answered = record(asked.id, "x", search("vivaldi.1", "griselda.1"))
        run = LoadedRun(DESCRIPTION, (asked,), {asked.id: answered}, ())
        score = score_run(run, measures=parse_measures([measure]), index=INDEX)
        return score.means[0].values[measure], score.notes

    own = question("griselda", id="vivaldi", text=TEXT)
    value, notes = scored(own, "Recall@1")
    assert value == 1
    assert any(note.startswith("Rankings of 1 question leave out") for note in notes)
    foreign = question("doc_1")
    with pytest.raises(QuestionsError, match="None of the relevant documents"):
        scored(foreign, "Recall@1")
    assert scored(foreign, "Steps")[0] == 1

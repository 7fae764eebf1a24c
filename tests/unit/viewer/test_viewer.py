"""The page of a run: its data, its policy, and the runs that give no page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arag_search.agent import context
from arag_search.agent.loop import Agent
from arag_search.agent.models.base import ModelReply, ModelRequest
from arag_search.errors import AragError, ArgumentError, QuestionsError
from arag_search.evaluation.judging.judges import Judges
from arag_search.evaluation.judging.verdict_cache import VerdictCache
from arag_search.query.fields import ANY_SCHEMA
from arag_search.runs.folder import RECORDS_FILE, StoredRecords, read_records
from arag_search.tools.documents.open import OpenLines
from arag_search.tools.preset_files import changed_preset, load_preset
from arag_search.viewer.frame import SCRIPTS, json_in_html, page
from arag_search.viewer.questions import Steps, Texts, utf16_places
from arag_search.viewer.reading import reading_of
from arag_search.viewer.view import view
from tests.support.asking import call, calls
from tests.support.commands import Command
from tests.support.long_documents import index_of_documents, long_document, report
from tests.support.passages import VIVALDI, index_of
from tests.support.records import read, record, search
from tests.support.scripted_model import ScriptedModel
from tests.support.viewed_runs import answered_record, question_row, run_folder

GOLDONI = "[a.1] Carlo Goldoni\nGoldoni died in Paris.\nMore: offset=1."
REPLY = f'1 of 3 passages for ("carlo goldoni" AND died)\nNote: a note.\n{GOLDONI}'
QUERY = {"query": '"carlo goldoni" AND died', "top_k": 1}


def page_data(html: bytes) -> Any:
    """Return the data in a page."""
    element = re.search(rb'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    assert element is not None
    return json.loads(element[1])


def data_of(folder: Path, **options: Any) -> Any:
    return page_data(view(folder, **options).html)


# One question


def test_a_step_has_its_query_as_understood_and_its_passages_with_marks(tmp_path: Path) -> None:
    step = search("a.1", text=REPLY, tool_input=QUERY)
    data = data_of(
        run_folder(tmp_path / "a", [question_row("q")], [answered_record("q", "Paris", step)])
    )
    (viewed,) = data["questions"][0]["result"]["steps"]
    assert [piece for piece in viewed["query"]["pieces"] if piece[0] != "blank"] == [
        ["group", "("], ["phrase", '"carlo goldoni"'], ["operator", "AND"], ["word", "died"],
        ["group", ")"],
    ]  # fmt: skip
    assert viewed["arguments"] == [["top_k", "1"]]
    assert viewed["above"] == '1 of 3 passages for ("carlo goldoni" AND died)\nNote: a note.'
    (passage,) = viewed["passages"]
    text, title = data["texts"][passage["text"]], data["texts"][passage["title"]]
    assert (passage["id"], title, text) == ("a.1", "Carlo Goldoni", "Goldoni died in Paris.")
    assert [title[slice(*passage["titleMarks"])], text[slice(*passage["textMarks"])]] == [
        "Carlo Goldoni", "died"
    ]  # fmt: skip
    assert passage["below"] == "More: offset=1."


def test_the_same_text_is_stored_once(tmp_path: Path) -> None:
    records = [
        answered_record(id, "Paris", search("a.1", text=REPLY, tool_input=QUERY)) for id in "qr"
    ]
    data = data_of(run_folder(tmp_path / "a", [question_row("q"), question_row("r")], records))
    assert data["texts"].count("Goldoni died in Paris.") == 1


def test_evidence_has_the_steps_that_first_showed_its_title_its_text_and_read_it(
    tmp_path: Path,
) -> None:
    triple = ["Carlo Goldoni", "place of death", "Paris"]
    steps = (
        search(),
        search("a.1", text="1 of 1 passage for x\n[a.1] Carlo Goldoni\nHe wrote."),
        read("a.1", text="[a.1] Carlo Goldoni\nHe wrote. He died in Paris."),
    )
    questions = [
        question_row("q", evidence=[triple], supporting_titles=["Carlo Goldoni", "Venice"])
    ]
    data = data_of(run_folder(tmp_path / "a", questions, [answered_record("q", "Rome", *steps)]))
    viewed = data["questions"][0]["result"]
    assert viewed["evidence"] == [[["Carlo Goldoni", 1, 2, 2], ["Venice", None, None, None]]]
    assert (viewed["right"], viewed["failureKind"]) == (False, "never shown")


def test_a_snippet_makes_text_visible_but_does_not_count_as_a_read(tmp_path: Path) -> None:
    step = search("a.1", text=REPLY, tool_input=QUERY)
    questions = [question_row("q", supporting_titles=["Carlo Goldoni"])]
    data = data_of(run_folder(tmp_path / "a", questions, [answered_record("q", "Paris", step)]))
    assert data["questions"][0]["result"]["evidence"] == [[["Carlo Goldoni", 0, 0, None]]]


def test_a_citation_names_the_first_step_that_showed_it_or_none(tmp_path: Path) -> None:
    answer = answered_record("q", "Paris", search(), search("a.1"), read("a.1"))
    answer = replace(answer, cited_ids=("a.1", "b.9"), wrong_ids=("b.9",), citation="wrong")
    data = data_of(run_folder(tmp_path / "a", [question_row("q")], [answer]))
    viewed = data["questions"][0]["result"]
    assert viewed["cited"] == [["a.1", 1], ["b.9", None]]
    assert viewed["warning"] == "Wrongly cited, never shown to the model: b.9."


def test_a_query_is_not_shown_as_understood_if_the_reply_has_another() -> None:
    step = search("a.1", text="1 of 1 passage for (goldoni AND died)\n[a.1]", tool_input=QUERY)
    reading = reading_of(step, ANY_SCHEMA)
    assert reading is not None
    assert (reading.pieces, reading.leaves, reading.typed) == ((), (), QUERY["query"])


def test_a_query_that_only_a_passage_quotes_is_not_shown_as_understood() -> None:
    text = f"1 of 1 passage for something else\n[a.1] A\n({QUERY['query']})"
    reading = reading_of(search("a.1", text=text, tool_input=QUERY), ANY_SCHEMA)
    assert reading is not None
    assert reading.pieces == ()


@pytest.mark.parametrize(
    ("tool", "arguments", "head", "read_as", "looks_for"),
    [
        ("keyword_search", {"keywords": ["Carlo Goldoni", "?"]}, "", '"Carlo Goldoni" "?"',
         ['"Carlo Goldoni"']),
        ("hybrid_search", {"query": "Who was Goldoni?"}, "", "", ["who", "was", "goldoni"]),
        ("semantic_search", {"query": "Who was Goldoni?"}, "", "", []),
        ("logical_search", {"query": "goldoni died"}, "goldoni died)", "(goldoni died)",
         ["goldoni", "died"]),
        ("logical_search", {"query": "goldoni died", "default_operator": "AND"},
         "goldoni AND died)", "(goldoni AND died)", ["goldoni", "died"]),
    ],
)  # fmt: skip
def test_each_tool_looks_for_the_words_of_its_query(
    tool: str, arguments: dict[str, Any], head: str, read_as: str, looks_for: list[str]
) -> None:
    step = search("a.1", text=f"1 of 1 passage for ({head}\n[a.1]", tool_input=arguments, tool=tool)
    reading = reading_of(step, ANY_SCHEMA)
    assert reading is not None
    assert "".join(piece.text for piece in reading.pieces) == read_as
    assert [str(leaf) for leaf in reading.leaves] == looks_for


def test_a_rejected_query_has_its_problems_if_they_are_those_of_the_reply() -> None:
    typed = "vivaldi OR NOT opera"
    from arag_search.tools.passages.logical import LogicalSearch

    rejected = LogicalSearch(index_of(*VIVALDI)).run({"query": typed})
    step = search(text=rejected.text, tool_input={"query": typed}, status="error")
    reading = reading_of(step, ANY_SCHEMA)
    assert reading is not None
    assert [(problem.column, problem.piece) for problem in reading.problems] == [(12, "NOT opera")]
    assert reading.mended == "(vivaldi AND NOT opera)"
    other = reading_of(replace(step, tool_output="Tool not run: something else."), ANY_SCHEMA)
    assert other is not None
    assert other.problems == ()


@pytest.mark.parametrize("tool", ["logical_search", "keyword_search", "chunk_read"])
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("not JSON", [["", "not JSON"]]),
        (7, [["", "7"]]),
        (None, [["", "null"]]),
        ([1], [["", "[1]"]]),
        ({"query": 3}, [["query", "3"]]),
        ({"query": ["a"], "top_k": "3"}, [["query", '["a"]'], ["top_k", '"3"']]),
        ({"keywords": "x"}, [["keywords", "x"]]),
        ({"keywords": "[1]"}, [["keywords", '"[1]"']]),
        ({"keywords": [1, "a"]}, [["keywords", '[1, "a"]']]),
        ({"keywords": []}, [["keywords", "[]"]]),
    ],
)
def test_arguments_of_any_shape_are_shown(
    tool: str, arguments: Any, expected: list[list[str]]
) -> None:
    step = replace(search(status="error", text="Tool not run.", tool=tool), tool_input=arguments)
    (viewed,) = Steps(Texts(), ANY_SCHEMA).of(record("q", "x", step))
    assert (viewed["above"], viewed["query"], viewed["arguments"]) == (
        "Tool not run.",
        None,
        expected,
    )


def test_a_query_is_listed_with_the_arguments_if_its_tool_takes_none() -> None:
    arguments = {"query": "Goldoni", "keywords": ["Goldoni"]}
    step = search(tool_input=arguments, tool="keyword_search")
    (viewed,) = Steps(Texts(), ANY_SCHEMA).of(record("q", "x", step))
    assert viewed["arguments"] == [["query", "Goldoni"]]
    (viewed,) = Steps(Texts(), ANY_SCHEMA).of(record("q", "x", search(tool_input=arguments)))
    assert viewed["arguments"] == [["keywords", '["Goldoni"]']]


def test_a_keyword_with_a_comma_is_distinguished_from_two_keywords() -> None:
    typed = [
        reading.typed
        for keywords in (["a, b"], ["a", "b"], ['a" "b'])
        if (reading := reading_of(search(tool_input={"keywords": keywords}, tool="keyword_search"),
                                  ANY_SCHEMA))
    ]  # fmt: skip
    assert len(set(typed)) == 3


def test_a_reply_that_cannot_be_reassembled_is_stored_whole(tmp_path: Path) -> None:
    text = "1 of 1 passage for x\n[a.1] A\n"
    data = data_of(
        run_folder(
            tmp_path / "a",
            [question_row("q")],
            [answered_record("q", "x", search("a.1", text=text))],
        )
    )
    assert data["texts"][data["questions"][0]["result"]["steps"][0]["reply"]] == text


def test_places_are_counted_as_a_browser_counts() -> None:
    assert utf16_places("a𝒳b𝒳", [(2, 3), (3, 4)]) == [3, 4, 4, 6]
    texts = Texts()
    assert [texts.number(character) for character in "aba"] == [0, 1, 0]


# Figures


def test_measures_have_intervals(tmp_path: Path) -> None:
    questions = [question_row(str(at)) for at in range(8)]
    answers = [answered_record(str(at), "Rome" if at % 2 else "Paris") for at in range(8)]
    data = data_of(run_folder(tmp_path / "a", questions, answers))
    measures = {measure["name"]: measure for measure in data["overview"]["measures"]}
    exact = measures["EM"]
    assert exact["value"] == 0.5
    assert 0 <= exact["low"] < 0.5 < exact["high"] <= 1
    assert "Cost" not in measures


def test_verdicts_of_a_judge_are_shown_where_one_is_given(tmp_path: Path) -> None:
    steps = (search("a.1", tool_input=QUERY), search("a.1", tool_input=QUERY))
    answers = [answered_record("q", "Rome", *steps), answered_record("r", "Paris", *steps)]
    folder = run_folder(tmp_path / "a", [question_row("q"), question_row("r")], answers)

    def verdict(request: ModelRequest) -> ModelReply:
        instructions, shown = (message.content for message in request.messages)
        assert instructions.startswith("You grade")
        return ModelReply(f"Verdict: {'in' * ('Rome' in shown)}correct")

    model, cache = ScriptedModel(verdict), VerdictCache(None)
    judges = Judges.of(model, (), 1, cache)
    data = data_of(folder, judges=judges)
    silent = Judges.of(ScriptedModel([]), (), 1, cache)
    assert data_of(folder, judges=silent) == data
    assert [question["result"]["judged"] for question in data["questions"]] == [
        "incorrect", "correct",
    ]  # fmt: skip
    without = data_of(folder)
    assert without["questions"][0]["result"]["judged"] == ""


def test_without_numpy_there_are_means_without_intervals_and_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arag_search.viewer.overview.find_spec", lambda name: None)
    data = data_of(run_folder(tmp_path / "a", [question_row("q")], [answered_record("q", "Paris")]))
    assert data["overview"]["measures"][0]["value"] == 1.0
    assert data["overview"]["measures"][0]["low"] is None
    assert "no intervals" in data["notes"][0]


def test_each_mean_gives_its_number_of_questions(tmp_path: Path) -> None:
    questions = [
        question_row("q", supporting_titles=["Venice"]),
        question_row("r"),
        question_row("s"),
    ]
    data = data_of(
        run_folder(tmp_path / "a", questions, [answered_record(id, "Paris") for id in "qr"])
    )
    counted = {measure["name"]: measure["counted"] for measure in data["overview"]["measures"]}
    assert (counted["EM"], counted["EvidenceRecall"], counted["Steps"]) == (3, 1, 2)
    assert data["overview"]["types"][0]["counted"].items() >= counted.items()


# Incomplete runs, and runs that give no page


def test_a_running_run_is_shown_up_to_its_last_whole_record(tmp_path: Path) -> None:
    folder = run_folder(
        tmp_path / "a", [question_row("q"), question_row("r")], [answered_record("q", "Paris")]
    )
    with (folder / RECORDS_FILE).open("ab") as file:
        file.write(b'{"question_id": "r", "ques')
    data = data_of(folder)
    assert [question["result"]["status"] for question in data["questions"]] == [
        "answered",
        "missing",
    ]
    notes = data["run"]["notes"]
    assert (
        "The last record is incomplete and is left out: the run was interrupted, or is still "
        "running."
    ) in notes
    assert "1 question has no record yet and counts as 0: the same run asks again." in notes


def test_a_record_written_while_a_run_is_read_is_not_reported_as_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run_folder(
        tmp_path / "a", [question_row("q"), question_row("r")], [answered_record("q", "Paris")]
    )

    def read_and_write(path: Path) -> StoredRecords:
        stored = read_records(path)
        with (path / RECORDS_FILE).open("ab") as file:
            file.write(answered_record("r", "Paris").to_line())
        return stored

    monkeypatch.setattr("arag_search.evaluation.loaded_run.read_records", read_and_write)
    notes = [note for note in data_of(folder)["run"]["notes"] if "record" in note]
    assert notes == ["1 question has no record yet and counts as 0: the same run asks again."]


def test_a_run_without_a_record_is_a_table_of_missing_questions(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "a", [question_row("q")], [])
    assert data_of(folder)["questions"][0]["result"]["status"] == "missing"
    (folder / RECORDS_FILE).unlink()
    assert data_of(folder)["questions"][0]["result"]["status"] == "missing"


def test_a_run_whose_questions_are_missing_can_be_shown_without_gold_answers(
    tmp_path: Path,
) -> None:
    folder = run_folder(tmp_path / "a", [question_row("q")], [answered_record("q", "Paris")])
    (folder / "questions.jsonl").unlink()
    with pytest.raises(QuestionsError, match="Or show the records without gold"):
        view(folder)
    data = data_of(folder, gold=False)
    assert data["questions"][0]["text"] == "Where did Goldoni die?"
    assert data["questions"][0]["result"]["right"] is None
    assert [measure["name"] for measure in data["overview"]["measures"]] == [
        "RetrievedTokens", "TotalTokens", "Steps", "Seconds"
    ]  # fmt: skip


@pytest.mark.parametrize("broken", ["nothing", "no run", "broken run", "broken record"])
def test_a_folder_that_is_no_run_is_rejected(tmp_path: Path, broken: str) -> None:
    folder = tmp_path / "a"
    if broken != "nothing":
        folder = run_folder(
            folder, [question_row("q")], [answered_record("q", "x"), answered_record("q", "y")]
        )
    if broken == "no run":
        (folder / "run.json").unlink()
    if broken == "broken run":
        (folder / "run.json").write_text("{")
    if broken == "broken record":
        path = folder / RECORDS_FILE
        path.write_bytes(path.read_bytes()[9:])
    with pytest.raises(AragError):
        view(folder)


def test_a_page_does_not_replace_a_file_that_is_no_page(tmp_path: Path, arag: Command) -> None:
    folder = run_folder(tmp_path / "a", [question_row("q")], [answered_record("q", "Paris")])
    result = arag("view", str(folder))
    assert (result.code, result.out) == (
        0, f"{folder}/view.html: 1 question, {(folder / 'view.html').stat().st_size / 1e6:.1f} MB\n"
    )  # fmt: skip
    assert arag("view", str(folder)).code == 0
    before = (folder / RECORDS_FILE).read_bytes()
    result = arag("view", str(folder), "--out", str(folder / RECORDS_FILE))
    assert result.code == 1
    assert "would replace a file that is not the page" in result.err
    assert (folder / RECORDS_FILE).read_bytes() == before
    with pytest.raises(ArgumentError, match="is a folder"):
        view(folder).write(folder)


def test_options_that_exclude_each_other_are_errors(tmp_path: Path, arag: Command) -> None:
    folder = str(run_folder(tmp_path / "a", [question_row("q")], [answered_record("q", "Paris")]))
    assert arag("view", folder, "--no-gold", "--questions", "x").code == 1


# The page


def test_data_in_a_page_can_end_neither_its_element_nor_a_line_of_javascript() -> None:
    hostile = {"</script><script>alert(1)</script>": "<!-- & \u2028 \u2029 ' \" {{ 7 * 7 }}"}
    html = json_in_html(hostile)
    assert not set("<>&\u2028\u2029") & set(html.decode())
    assert json.loads(html) == hostile


def test_the_policy_allows_only_the_style_and_the_script_of_the_page() -> None:
    html = page("<b>{{ title }}", {"a": 1}).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    rules = policy[1].replace("&#39;", "'")
    for name, element in (
        ("script", r"<script>(.*?)</script>"),
        ("style", r"<style>(.*?)</style>"),
    ):
        (text,) = re.findall(element, html, re.S)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in rules
    assert rules.startswith("default-src 'none'")
    assert "unsafe" not in rules
    assert "&lt;b&gt;{{ title }}" in html
    assert "http" not in re.sub(r'http-equiv|"http://www.w3.org/2000/svg"', "", html)


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_create_text_and_never_markup(name: str) -> None:
    from importlib.resources import files

    text = (files("arag_search.viewer") / "assets" / name).read_text(encoding="utf-8")
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert forbidden not in text
    assert "</" not in text


def test_a_record_with_another_question_text_shows_that_text(tmp_path: Path) -> None:
    answer = replace(record("q", "Paris"), question="Who was Goldoni?")
    data = data_of(run_folder(tmp_path / "a", [question_row("q")], [answer]))
    assert data["questions"][0]["result"]["asked"] == "Who was Goldoni?"


# Documents


def test_documents_are_shown_by_their_references_with_scores_and_removals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = report("3M", 400, {20: "Purchases of property (1,577)"})
    index = index_of_documents(long_document(0, "3m", "3M annual report", long))
    monkeypatch.setattr(context, "REPLY_RESERVE", 0)
    monkeypatch.setattr(OpenLines, "most_lines", 150)
    preset = changed_preset(load_preset("agentic_rag"), {"token_budget": 6_000}, "test")
    script = [
        calls(call("search", queries=["property"])),
        calls(call("open", reference_id="turn0search0")),
        calls(call("open", reference_id="turn0search0", line_number=150)),
        calls(call("summarize", summary="Known.", candidate_reference_ids=[])),
        ModelReply("Answer: 1,577\nExplanation: x\nSources: [turn0search0] 0.9"),
    ]
    row = question_row("q")
    made = Agent(index, preset, ScriptedModel(script)).ask(str(row["question"]), "q")
    made = replace(made, fingerprints=answered_record("q", "x").fingerprints)
    data = data_of(run_folder(tmp_path / "a", [row], [made]))
    shown = data["questions"][0]["result"]
    assert shown["cited"] == [["turn0search0", 0, 0.9, False]]
    first, window, last, freed = shown["steps"]
    assert {passage["id"] for passage in first["passages"]} == {"turn0search0"}
    assert all(passage["removed"] for passage in first["passages"] + window["passages"])
    assert first["hits"] == window["hits"] == "1 document"
    assert freed["hits"] == "context freed"
    said = [event for step in (first, window, last, freed) for event in step.get("events", [])]
    assert [re.sub(r"[\d,]+", "N", event) for event in said] == [
        "The model was warned: N tokens.",
        "The model freed N of N tokens.",
    ]

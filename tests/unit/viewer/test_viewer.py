"""What a page is made of: its data, its policy, and when there is none."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arag_search.errors import AragError, ArgumentError, QuestionsError, RunError
from arag_search.query.fields import ANY_SCHEMA
from arag_search.runs.folder import RECORDS_FILE, StoredRecords, read_records
from arag_search.viewer.comparison import difference
from arag_search.viewer.page import SCRIPTS, json_in_html, page
from arag_search.viewer.reading import reading_of
from arag_search.viewer.steps import Steps
from arag_search.viewer.texts import Texts, utf16_places
from arag_search.viewer.view import view
from tests.support.commands import Command
from tests.support.passages import VIVALDI, index_of
from tests.support.records import read, record, search
from tests.support.viewed_runs import answered_record, question_row, run_folder

GOLDONI = "[a.1] Carlo Goldoni\nGoldoni died in Paris.\nMore: offset=1. Full text: chunk_read."
FOUND = f'1 of 3 passages for ("carlo goldoni" AND died)\nNote: a note.\n{GOLDONI}'
QUERY = {"query": '"carlo goldoni" AND died', "top_k": 1}


def shown(html: bytes) -> Any:
    """The data in a page."""
    found = re.search(rb'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    assert found is not None
    return json.loads(found[1])


def of(folder: Path, *others: Path, **options: Any) -> Any:
    return shown(view([folder, *others], **options).html)


# One question


def test_a_step_has_its_query_as_understood_its_passages_and_what_is_marked(tmp_path: Path) -> None:
    step = search("a.1", text=FOUND, tool_input=QUERY)
    data = of(
        run_folder(tmp_path / "a", [question_row("q")], [answered_record("q", "Paris", step)])
    )
    (told,) = data["questions"][0]["runs"][0]["steps"]
    assert [piece for piece in told["query"]["pieces"] if piece[0] != "blank"] == [
        ["group", "("], ["phrase", '"carlo goldoni"'], ["operator", "AND"], ["word", "died"],
        ["group", ")"],
    ]  # fmt: skip
    assert told["arguments"] == [["top_k", "1"]]
    assert told["above"] == '1 of 3 passages for ("carlo goldoni" AND died)\nNote: a note.'
    (passage,) = told["passages"]
    text, title = data["texts"][passage["text"]], data["texts"][passage["title"]]
    assert (passage["id"], title, text) == ("a.1", "Carlo Goldoni", "Goldoni died in Paris.")
    assert [title[slice(*passage["titleMarks"])], text[slice(*passage["textMarks"])]] == [
        "Carlo Goldoni", "died"
    ]  # fmt: skip
    assert passage["below"] == "More: offset=1. Full text: chunk_read."


def test_the_same_text_is_stored_once(tmp_path: Path) -> None:
    records = [
        answered_record(id, "Paris", search("a.1", text=FOUND, tool_input=QUERY)) for id in "qr"
    ]
    data = of(run_folder(tmp_path / "a", [question_row("q"), question_row("r")], records))
    assert data["texts"].count("Goldoni died in Paris.") == 1


def test_evidence_has_the_steps_at_which_it_was_first_shown_its_text_visible_and_read(
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
    data = of(run_folder(tmp_path / "a", questions, [answered_record("q", "Rome", *steps)]))
    (told,) = data["questions"][0]["runs"]
    assert told["evidence"] == [[["Carlo Goldoni", 1, 2, 2], ["Venice", None, None, None]]]
    assert (told["right"], told["failureKind"]) == (False, "never shown")


def test_a_snippet_makes_text_visible_and_reads_nothing(tmp_path: Path) -> None:
    step = search("a.1", text=FOUND, tool_input=QUERY)
    questions = [question_row("q", supporting_titles=["Carlo Goldoni"])]
    data = of(run_folder(tmp_path / "a", questions, [answered_record("q", "Paris", step)]))
    assert data["questions"][0]["runs"][0]["evidence"] == [[["Carlo Goldoni", 0, 0, None]]]


def test_a_citation_names_the_step_that_showed_it_first_and_one_never_shown_says_so(
    tmp_path: Path,
) -> None:
    made = answered_record("q", "Paris", search(), search("a.1"), read("a.1"))
    made = replace(made, cited_ids=("a.1", "b.9"), wrong_ids=("b.9",), citation="wrong")
    (told,) = of(run_folder(tmp_path / "a", [question_row("q")], [made]))["questions"][0]["runs"]
    assert told["cited"] == [["a.1", 1], ["b.9", None]]
    assert told["warning"] == "Wrongly cited, never shown to the model: b.9."


def test_a_query_is_not_told_as_understood_where_the_reply_says_something_else() -> None:
    step = search("a.1", text="1 of 1 passage for (goldoni AND died)\n[a.1]", tool_input=QUERY)
    reading = reading_of(step, ANY_SCHEMA)
    assert reading is not None
    assert (reading.pieces, reading.leaves, reading.typed) == ((), (), QUERY["query"])


def test_a_query_that_a_passage_quotes_is_not_told_as_understood() -> None:
    text = f"1 of 1 passage for something else\n[a.1] A\n({QUERY['query']})"
    reading = reading_of(search("a.1", text=text, tool_input=QUERY), ANY_SCHEMA)
    assert reading is not None
    assert reading.pieces == ()


@pytest.mark.parametrize(
    ("tool", "given", "head", "read_as", "looks_for"),
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
def test_each_tool_looks_for_what_its_query_says(
    tool: str, given: dict[str, Any], head: str, read_as: str, looks_for: list[str]
) -> None:
    step = search("a.1", text=f"1 of 1 passage for ({head}\n[a.1]", tool_input=given, tool=tool)
    reading = reading_of(step, ANY_SCHEMA)
    assert reading is not None
    assert "".join(one.text for one in reading.pieces) == read_as
    assert [str(leaf) for leaf in reading.leaves] == looks_for


def test_a_refused_query_has_its_problems_where_they_are_those_of_the_reply() -> None:
    typed = "vivaldi OR NOT opera"
    from arag_search.tools.logical_search import LogicalSearch

    refused = LogicalSearch(index_of(*VIVALDI)).run({"query": typed})
    step = search(text=refused.text, tool_input={"query": typed}, status="error")
    reading = reading_of(step, ANY_SCHEMA)
    assert reading is not None
    assert [(one.column, one.piece) for one in reading.problems] == [(12, "NOT opera")]
    assert reading.mended == "(vivaldi AND NOT opera)"
    other = reading_of(replace(step, tool_output="Tool not run: something else."), ANY_SCHEMA)
    assert other is not None
    assert other.problems == ()


@pytest.mark.parametrize("tool", ["logical_search", "keyword_search", "chunk_read"])
@pytest.mark.parametrize(
    ("given", "told"),
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
    tmp_path: Path, tool: str, given: Any, told: list[list[str]]
) -> None:
    step = replace(search(status="error", text="Tool not run.", tool=tool), tool_input=given)
    data = of(run_folder(tmp_path / "a", [question_row("q")], [answered_record("q", "x", step)]))
    shown = data["questions"][0]["runs"][0]["steps"][0]
    assert (shown["above"], shown["query"], shown["arguments"]) == ("Tool not run.", None, told)


def test_a_query_stands_among_the_arguments_where_its_tool_takes_none() -> None:
    given = {"query": "Goldoni", "keywords": ["Goldoni"]}
    step = search(tool_input=given, tool="keyword_search")
    (told,) = Steps(Texts(), ANY_SCHEMA).of(record("q", "x", step))
    assert told["arguments"] == [["query", "Goldoni"]]
    (told,) = Steps(Texts(), ANY_SCHEMA).of(record("q", "x", search(tool_input=given)))
    assert told["arguments"] == [["keywords", '["Goldoni"]']]


def test_one_keyword_with_a_comma_is_told_from_two() -> None:
    typed = [
        reading.typed
        for keywords in (["a, b"], ["a", "b"], ['a" "b'])
        if (reading := reading_of(search(tool_input={"keywords": keywords}, tool="keyword_search"),
                                  ANY_SCHEMA))
    ]  # fmt: skip
    assert len(set(typed)) == 3


def test_a_reply_that_cannot_be_put_together_again_is_stored_whole(tmp_path: Path) -> None:
    text = "1 of 1 passage for x\n[a.1] A\n"
    data = of(
        run_folder(
            tmp_path / "a",
            [question_row("q")],
            [answered_record("q", "x", search("a.1", text=text))],
        )
    )
    assert data["texts"][data["questions"][0]["runs"][0]["steps"][0]["reply"]] == text


def test_places_are_counted_as_a_browser_counts() -> None:
    assert utf16_places("a𝒳b𝒳", [(2, 3), (3, 4)]) == [3, 4, 4, 6]
    texts = Texts()
    assert [texts.number(one) for one in "aba"] == [0, 1, 0]


# Figures


def test_measures_have_intervals_and_two_runs_a_difference(tmp_path: Path) -> None:
    questions = [question_row(str(at)) for at in range(8)]
    one = run_folder(
        tmp_path / "a", questions, [answered_record(str(at), "Paris") for at in range(8)]
    )
    other = run_folder(
        tmp_path / "b",
        questions,
        [answered_record(str(at), "Rome" if at % 2 else "Paris") for at in range(8)],
    )
    measures = {each["name"]: each for each in of(one, other)["overview"]["measures"]}
    exact = measures["EM"]
    assert [each["value"] for each in exact["runs"]] == [1.0, 0.5]
    assert exact["runs"][1]["low"] < 0.5 < exact["runs"][1]["high"]
    assert exact["difference"]["value"] == -0.5
    assert -1 <= exact["difference"]["low"] < -0.5 < exact["difference"]["high"] <= 0
    assert "Cost" not in measures


def test_without_numpy_there_are_means_and_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arag_search.viewer.overview.find_spec", lambda name: None)
    data = of(run_folder(tmp_path / "a", [question_row("q")], [answered_record("q", "Paris")]))
    assert data["overview"]["measures"][0]["runs"][0]["value"] == 1.0
    assert data["overview"]["measures"][0]["runs"][0]["low"] is None
    assert "no intervals" in data["notes"][0]


def test_two_runs_differ_by_who_is_right_then_by_status_and_answer(tmp_path: Path) -> None:
    answers = {"a": ("Paris", "Rome"), "b": ("Rome", "Paris"), "c": ("x", "y"), "d": ("x", "x")}
    questions = [question_row(id) for id in (*answers, "e", "n", "f")]
    folders = [
        run_folder(
            tmp_path / str(at),
            questions[: 7 - at],
            [
                *(answered_record(id, short[at]) for id, short in answers.items()),
                answered_record("e", "", status="failed" if at else "forced"),
                answered_record("n", "", status="failed"),
            ],
        )
        for at in (0, 1)
    ]
    data = of(*folders)
    assert [one["difference"] for one in data["questions"]] == [
        "first", "second", "answer", "same", "status", "none", "one"
    ]  # fmt: skip
    assert data["questions"][6]["runs"][1] is None
    assert data["notes"] == ["6 questions are in both runs, and differences are over these."]


def test_runs_over_the_same_file_of_which_one_asked_less_say_over_what_they_differ(
    tmp_path: Path,
) -> None:
    questions = [question_row("q"), question_row("r")]
    one = run_folder(tmp_path / "a", questions, [answered_record("q", "Paris")])
    other = run_folder(tmp_path / "b", questions, [answered_record("q", "Paris")], limit=1)
    assert of(one, other)["notes"] == ["1 question is in both runs, and differences are over it."]
    assert of(one, one)["notes"] == []


def test_each_run_is_judged_by_its_own_questions_and_other_gold_answers_are_said(
    tmp_path: Path,
) -> None:
    step = search("a.1", text=FOUND, tool_input=QUERY)
    made = [answered_record("q", "Paris", step)]
    mine = [question_row("q", supporting_titles=["Carlo Goldoni"])]
    theirs = [question_row("q", answer="Venice", supporting_titles=["Venice"])]
    one = run_folder(tmp_path / "a", mine, made)
    other = run_folder(tmp_path / "b", theirs, made)
    data = of(one, other)
    (question,) = data["questions"]
    assert [side["right"] for side in question["runs"]] == [True, False]
    assert [side["evidence"][0][0][:2] for side in question["runs"]] == [
        ["Carlo Goldoni", 0], ["Venice", None]
    ]  # fmt: skip
    assert question["gold"] == ["Paris"]
    assert question["difference"] == "first"
    assert data["notes"] == [
        "1 question has other gold answers in B, by which its answers are judged: those of A are "
        "shown. Give both runs one file with --questions."
    ]
    data = of(one, other, questions_file=one / "questions.jsonl")
    assert [side["right"] for side in data["questions"][0]["runs"]] == [True, True]
    assert data["notes"] == []


@pytest.mark.parametrize("unjudged", [0, 1])
def test_only_one_is_right_where_both_are_judged(unjudged: int) -> None:
    sides: list[dict[str, Any]] = [
        {"right": True, "status": "answered", "answer": one} for one in ("Paris", "Rome")
    ]
    sides[unjudged]["right"] = None
    assert difference(sides) == "answer"


def test_each_mean_says_over_how_many_questions_it_is(tmp_path: Path) -> None:
    questions = [
        question_row("q", supporting_titles=["Venice"]),
        question_row("r"),
        question_row("s"),
    ]
    data = of(run_folder(tmp_path / "a", questions, [answered_record(id, "Paris") for id in "qr"]))
    counted = {one["name"]: one["runs"][0]["counted"] for one in data["overview"]["measures"]}
    assert (counted["EM"], counted["EvidenceRecall"], counted["Steps"]) == (3, 1, 2)
    assert data["overview"]["types"][0][0]["counted"].items() >= counted.items()


# Runs that are not whole, and pages that are not made


def test_a_run_that_goes_on_is_shown_as_far_as_it_is(tmp_path: Path) -> None:
    folder = run_folder(
        tmp_path / "a", [question_row("q"), question_row("r")], [answered_record("q", "Paris")]
    )
    with (folder / RECORDS_FILE).open("ab") as file:
        file.write(b'{"question_id": "r", "ques')
    data = of(folder)
    assert [one["runs"][0]["status"] for one in data["questions"]] == ["answered", "missing"]
    notes = data["runs"][0]["notes"]
    assert (
        "The last record is incomplete and is left out: the run was interrupted, or is still "
        "running."
    ) in notes
    assert "1 question has no record yet and counts as 0: the same run asks again." in notes


def test_a_record_that_is_written_while_a_run_is_read_is_no_broken_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run_folder(
        tmp_path / "a", [question_row("q"), question_row("r")], [answered_record("q", "Paris")]
    )

    def read_and_write(path: Path) -> StoredRecords:
        found = read_records(path)
        with (path / RECORDS_FILE).open("ab") as file:
            file.write(answered_record("r", "Paris").to_line())
        return found

    monkeypatch.setattr("arag_search.evaluation.loaded_run.read_records", read_and_write)
    assert not any("incomplete" in note for note in of(folder)["runs"][0]["notes"])


def test_a_run_without_a_record_is_a_table_of_missing_questions(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "a", [question_row("q")], [])
    assert of(folder)["questions"][0]["runs"][0]["status"] == "missing"
    (folder / RECORDS_FILE).unlink()
    assert of(folder)["questions"][0]["runs"][0]["status"] == "missing"


def test_a_run_whose_questions_are_gone_can_be_shown_without_gold_answers(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "a", [question_row("q")], [answered_record("q", "Paris")])
    (folder / "questions.jsonl").unlink()
    with pytest.raises(QuestionsError, match="Or show the records without gold"):
        view([folder])
    data = of(folder, gold=False)
    assert data["questions"][0]["text"] == "Where did Goldoni die?"
    assert data["questions"][0]["runs"][0]["right"] is None
    assert [one["name"] for one in data["overview"]["measures"]] == [
        "RetrievedTokens", "Steps", "Seconds"
    ]  # fmt: skip


def test_runs_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    one = run_folder(tmp_path / "a", [question_row("q")], [answered_record("q", "Paris")])
    other = run_folder(tmp_path / "b", [question_row("r")], [answered_record("r", "Paris")])
    with pytest.raises(RunError) as caught:
        view([one, other])
    assert str(caught.value) == (
        "The two runs share no question.\n"
        f"Where: {one} and {other}\n"
        "Allowed: two runs over the same questions, or with some of the same ids"
    )
    third = run_folder(tmp_path / "c", [question_row("q", "Who?")], [answered_record("q", "Paris")])
    with pytest.raises(RunError, match="ask something else under the same id: q"):
        view([one, third])


def test_runs_over_different_indexes_say_so(tmp_path: Path) -> None:
    one = run_folder(tmp_path / "a", [question_row("q")], [answered_record("q", "Paris")])
    other = run_folder(tmp_path / "b", [question_row("q")], [answered_record("q", "Paris")])
    path = other / "run.json"
    path.write_text(path.read_text().replace('"index":"i"', '"index":"j"'))
    assert "The runs searched different indexes" in of(one, other)["notes"][0]


@pytest.mark.parametrize("broken", ["nothing", "no run", "broken run", "broken record"])
def test_a_folder_that_is_no_run_is_refused(tmp_path: Path, broken: str) -> None:
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
        view([folder])


def test_a_page_does_not_replace_what_is_no_page(tmp_path: Path, arag: Command) -> None:
    folder = run_folder(tmp_path / "a", [question_row("q")], [answered_record("q", "Paris")])
    done = arag("view", str(folder))
    assert (done.code, done.out) == (
        0, f"{folder}/view.html: 1 question, {(folder / 'view.html').stat().st_size / 1e6:.1f} MB\n"
    )  # fmt: skip
    assert arag("view", str(folder)).code == 0
    before = (folder / RECORDS_FILE).read_bytes()
    done = arag("view", str(folder), "--out", str(folder / RECORDS_FILE))
    assert done.code == 1
    assert "would replace a file that is no page" in done.err
    assert (folder / RECORDS_FILE).read_bytes() == before
    with pytest.raises(ArgumentError, match="is a folder"):
        view([folder]).write(folder)


def test_options_that_exclude_each_other_and_a_browser_that_is_not_there(
    tmp_path: Path, arag: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(run_folder(tmp_path / "a", [question_row("q")], [answered_record("q", "Paris")]))
    assert arag("view", folder, "--no-gold", "--questions", "x").code == 1
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: bool(opened.append(address)))
    done = arag("view", folder, "--open")
    assert (done.code, opened) == (1, [(tmp_path / "a" / "view.html").as_uri()])
    assert "No browser could be started; the page is written." in done.err


# The page


def test_data_in_a_page_can_neither_end_its_element_nor_a_line_of_javascript() -> None:
    hostile = {"</script><script>alert(1)</script>": "<!-- & \u2028 \u2029 ' \" {{ 7 * 7 }}"}
    written = json_in_html(hostile)
    assert not set("<>&\u2028\u2029") & set(written.decode())
    assert json.loads(written) == hostile


def test_the_policy_admits_the_one_style_and_the_one_script_alone() -> None:
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
def test_scripts_make_text_never_markup(name: str) -> None:
    from importlib.resources import files

    text = (files("arag_search.viewer") / "assets" / name).read_text(encoding="utf-8")
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert forbidden not in text
    assert "</" not in text


def test_a_record_that_asked_something_else_says_so(tmp_path: Path) -> None:
    made = replace(record("q", "Paris"), question="Who was Goldoni?")
    data = of(run_folder(tmp_path / "a", [question_row("q")], [made]))
    assert data["questions"][0]["runs"][0]["asked"] == "Who was Goldoni?"

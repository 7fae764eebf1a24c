"""The ablation runner over data sets of the size and in the forms in which they are published."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import index_jobs
from arag_search.agent.models.base import ChatModel, ModelReply, ModelRequest, ToolCall, Usage
from arag_search.tools.preset_files import changed_preset, load_preset
from bench.ablate import changed_suite, main, parser_of
from bench.ablation.estimate import estimate, estimate_judge
from bench.ablation.suite import AgentRuns, ModelEntry, Suite, load_suite
from tests.support.ablations import read_cells
from tests.support.examples import is_long
from tests.support.scripted_model import ScriptedModel

SUITES = Path(__file__).parents[2] / "bench" / "suites"
NAMES = {path.stem: path for path in sorted(SUITES.glob("*.yaml"))}
QUESTIONS = 1_000

Rows = list[dict[str, Any]]


def towns(count: int) -> tuple[list[str], Rows]:
    """Return as many texts as questions about them, in the shape of A-RAG and GraphRAG-Bench."""
    texts = [f"Town {n} lies on river {n % 97}. Its mayor is Ada Lane {n}." for n in range(count)]
    questions = [
        {"id": f"q{n}", "source": "Towns", "question": f"Who is the mayor of town {n}?",
         "answer": f"Ada Lane {n}", "question_type": "Fact Retrieval", "evidence": texts[n]}
        for n in range(count)
    ]  # fmt: skip
    return texts, questions


def write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def arag_form(folder: Path, name: str) -> None:
    texts, questions = towns(QUESTIONS)
    write(folder / "chunks.json", [f"{number}:{text}" for number, text in enumerate(texts)])
    write(folder / "questions.json", questions)
    (folder / "index").mkdir(exist_ok=True)
    (folder / "index" / "sentence_index.pkl").write_bytes(b"vectors of A-RAG's own program")


def hipporag_form(folder: Path, name: str) -> None:
    texts, questions = towns(QUESTIONS)
    corpus = [{"title": f"Town {n}", "text": text, "idx": n} for n, text in enumerate(texts)]
    write(folder / f"{name}_corpus.json", corpus)
    records = [
        {"_id": row["id"], "question": row["question"], "answer": row["answer"], "type": "bridge",
         "supporting_facts": [[f"Town {n}", 0]], "context": [[f"Town {n}", [texts[n]]]]}
        for n, row in enumerate(questions)
    ]  # fmt: skip
    write(folder / f"{name}.json", records)


def graphrag_bench_form(folder: Path, name: str) -> None:
    texts, questions = towns(QUESTIONS)
    books = [
        {"corpus_name": f"Novel-{part}", "context": " ".join(texts[part::10])} for part in range(10)
    ]
    write(folder / "Corpus" / f"{name}.json", books)
    write(folder / "Questions" / f"{name}_questions.json", questions)


FORMS: dict[str, Callable[[Path, str], None]] = {
    "chunks": arag_form,
    "hotpotqa": hipporag_form,
    "novel": graphrag_bench_form,
}


def suite_of(name: str, **experiment: Any) -> dict[str, Any]:
    return {
        "name": f"size_{name}",
        "description": "One preset twice.",
        "experiment": {
            "kind": "agent",
            "sets": [name],
            "presets": ["logical_read", {"preset": "direct_answer", "label": "no search"}],
            "models": ["scripted"],
            "questions": QUESTIONS,
            "workers": 4,
            **experiment,
        },
        "comparison": {
            "factor": "preset",
            "pairs": [["logical_read", "no search"]],
            "primary": "F1",
        },
    }


def answers(entry: ModelEntry, seed: int | None) -> ChatModel:
    return ScriptedModel(lambda request: ModelReply("Answer: Ada", usage=Usage(1, 1, "endpoint")))


def command(folder: Path, suite: dict[str, Any], *more: str) -> list[str]:
    path = folder / f"{suite['name']}.yaml"
    path.write_text(yaml.safe_dump(suite))
    folders = ["--work", str(folder / "work"), "--data", str(folder / "data")]
    return [str(path), *folders, *more]


def asked(folder: Path) -> list[list[str]]:
    return [[row.question_id for row in cell.rows] for cell in read_cells(folder)]


@pytest.mark.parametrize("name", FORMS)
def test_a_published_set_of_a_thousand_questions_is_asked_whole_or_from_its_beginning(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    FORMS[name](tmp_path / "data" / name, name)
    arguments = command(tmp_path, suite_of(name))
    if name == "chunks" and is_long():  # once, as all forms are kept and measured in the same way
        assert main(arguments, answers) == 0, capsys.readouterr().err
        whole = asked(tmp_path / "work" / f"size_{name}")
        assert whole == [[f"q{number}" for number in range(QUESTIONS)]] * 2
    assert main([*arguments, "--with", "questions=first 20"], answers) == 0
    first = asked(tmp_path / "work" / f"size_{name}-questions-first-20")
    assert first == [[f"q{number}" for number in range(20)]] * 2
    assert main([*arguments, "--with", "questions=first 400", "--dry-run"], answers) == 0
    # 400 questions, of which each takes a request without a search and six with five searches.
    assert "Estimate for scripted: about 2,800 requests" in capsys.readouterr().out


def test_a_given_index_serves_all_sets_and_nothing_is_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    location = tmp_path / "owners-index"
    for name in ("one", "other"):
        arag_form(tmp_path / "data" / name, name)
        if name == "one":
            index_jobs.build_index([str(tmp_path / "data" / "one" / "chunks.json")], location)
        (tmp_path / "data" / name / "chunks.json").unlink()
    before = sorted(path.stat().st_mtime_ns for path in location.rglob("*"))
    suite = suite_of("one", sets=["one", "other"], questions="first 5")
    arguments = command(tmp_path, suite, "--index", str(location))
    assert main(arguments, answers) == 0, capsys.readouterr().err
    assert asked(tmp_path / "work" / "size_one") == [["q0", "q1", "q2", "q3", "q4"]] * 4
    assert not (tmp_path / "work" / "sets").exists()
    assert sorted(path.stat().st_mtime_ns for path in location.rglob("*")) == before


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write every data set that a suite names, with 1,000 questions, in A-RAG's form."""
    data = tmp_path_factory.mktemp("all") / "data"
    for path in NAMES.values():
        for name in load_suite(path).experiment.sets:
            arag_form(data / name, name)
    return data


@pytest.mark.parametrize(
    "name", [name for name, path in NAMES.items() if "kind: agent" in path.read_text()]
)
def test_every_suite_estimates_its_calls_tokens_and_cost_without_a_key(
    name: str, published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("some-model: {prompt: 1, completion: 10}\n")
    arguments = ["--data", str(published), "--work", str(tmp_path), "--prices", str(prices)]
    arguments += ["--dry-run", "--judge", "some-model", "--with", "questions=10"]
    arguments += ["--judge-trajectories"]
    is_over_kilt = "KILT" in NAMES[name].read_text()
    arguments += ["--index", "https://nowhere.invalid/kilt"] if is_over_kilt else []
    assert main([str(NAMES[name]), *arguments]) == 0, capsys.readouterr().err
    lines = capsys.readouterr().out.splitlines()
    (line,) = [line for line in lines if line.startswith("Estimate for some-model: about ")]
    assert " prompt tokens, " in line
    assert line.endswith(" USD.")
    assert lines[-1].endswith(" cells, nothing was run.")


def test_an_estimate_repeats_earlier_replies_and_keeps_the_bounds_of_the_preset() -> None:
    assert estimate(load_preset("direct_answer"), "m", 10).requests == 10
    two = changed_preset(load_preset("logical_read"), {"max_loops": 1}, "here")
    searching = estimate(two, "m", 10)
    assert searching.requests == 20
    first = (searching.tokens - 10 * 1_300) // 20
    assert searching.tokens == 10 * (first + first + 1_300)


def test_the_calls_of_a_judge_are_estimated_for_answers_and_for_trajectories() -> None:
    preset = load_preset("logical_read")
    alone = estimate_judge(preset, "j", 1_000, trajectories=False)
    assert (alone.model, alone.requests) == ("j", 1_000)
    # Each answer, its grouping and five searches, and half of the first hundred.
    judging = estimate_judge(preset, "j", 1_000, trajectories=True)
    assert judging.requests == 7_050
    assert judging.tokens == 7_050 * 500 + 1_000 * (5_000 + 250)
    assert estimate_judge(load_preset("direct_answer"), "j", 50, trajectories=True).requests == 75


def changed(name: str, *options: str) -> Suite:
    return changed_suite(parser_of().parse_args([str(NAMES[name]), *options]))


def test_another_model_keeps_the_levels_and_seeds_of_a_suite() -> None:
    suite = changed("reasoning_effort", "--model", "one", "--with", "questions=first 7")
    assert isinstance(suite.experiment, AgentRuns)
    efforts = [(entry.model, entry.reasoning_effort) for entry in suite.experiment.models]
    assert efforts == [("one", effort) for effort in ("low", "medium", "high")]
    assert suite.compared == load_suite(NAMES["reasoning_effort"]).compared
    assert (suite.experiment.seeds, suite.experiment.questions) == ((1, 2, 3), "first 7")


def test_an_index_too_large_to_read_measures_all_but_named_evidence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hipporag_form(tmp_path / "data" / "towns", "towns")
    suite = suite_of("towns", questions="first 3")
    suite["measures"] = ["EvidenceRecall", "RetrievedTokens"]

    def searching(entry: ModelEntry, seed: int | None) -> ChatModel:
        def reply(request: ModelRequest) -> ModelReply:
            usage = Usage(1, 1, "endpoint")
            if request.tools and request.messages[-1].role != "tool":
                call = ToolCall("1", "logical_search", '{"query": "town AND 0"}')
                return ModelReply("", (call,), usage=usage)
            return ModelReply("Answer: Ada Lane 0", usage=usage)

        return ScriptedModel(reply)

    values: list[Any] = []
    for bound, folder in ((500_000, "small"), (10, "large")):
        monkeypatch.setattr("bench.ablation.agent_runs.MAX_READ_PASSAGES", bound)
        arguments = [*command(tmp_path, suite), "--work", str(tmp_path / folder)]
        assert main(arguments, searching) == 0, capsys.readouterr().err
        cells = read_cells(tmp_path / folder)
        (rows,) = [cell.rows for cell in cells if cell.key["preset"] == "logical_read"]
        values.append([(row.values["EvidenceRecall"], row.values["EM"]) for row in rows])
        assert all(row.values["RetrievedTokens"] for row in rows)
    assert values == [[(1, 1), (0, 0), (0, 0)], [(None, 1), (None, 0), (None, 0)]]

"""The ablation runner over the sample corpus: presets, models and seeds through the agent."""

from __future__ import annotations

import json
import re
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

import index_jobs
from arag_search.agent.models.base import ChatModel, ModelReply, ModelRequest, ToolCall, Usage
from arag_search.agent.models.offline import OfflineModel
from bench.ablate import main
from bench.ablation.suite import ModelEntry
from bench.data import SAMPLE as SAMPLE_FOLDER
from tests.support.ablations import read_cells, suite_values
from tests.support.scripted_model import ScriptedModel

SAMPLE = ("corpus.jsonl", "questions.jsonl")

SUITES = Path(__file__).parents[2] / "bench" / "suites"
AGENTS: dict[str, Any] = {
    "name": "trial",
    "description": "Two presets.",
    "experiment": {
        "kind": "agent",
        "sets": ["sample"],
        "presets": [
            "logical_read",
            {"preset": "logical_read", "label": "2 steps", "set": {"max_loops": 2}},
        ],
        "models": ["offline", "scripted"],
        "seeds": [1, 2],
        "workers": 2,
    },
    "comparison": {
        "factor": "preset",
        "pairs": [["logical_read", "2 steps"]],
        "primary": "F1",
        "secondary": ["EM", "TokensToEvidence"],
        "apart": ["model"],
    },
    "measures": ["ContainAcc", "EvidenceRecall", "FullEvidence", "RetrievedTokens", "Cost"],
}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepare the data and the folder of indexes that all tests share."""
    folder = tmp_path_factory.mktemp("ablate")
    data = folder / "data" / "sample"
    data.mkdir(parents=True)
    for name in SAMPLE:
        (data / name).write_bytes((files("arag_search") / "sample" / name).read_bytes())
    return folder


def command(work: Path, suite: dict[str, Any], *more: str) -> list[str]:
    path = work / f"{suite['name']}.yaml"
    path.write_text(yaml.safe_dump(suite))
    folders = ["--work", str(work / "work"), "--data", str(work / "data")]
    return [str(path), *folders, *more]


class SuiteModels:
    """Models for a suite: the offline one, and a scripted one whose answers depend on the seed."""

    def __init__(self, failing: str = "", error: BaseException | None = None) -> None:
        self.choices: list[tuple[str, int | None]] = []
        self.questions: list[str] = []
        self.failing = failing
        self.error = error or RuntimeError("The endpoint is on fire.")

    def __call__(self, entry: ModelEntry, seed: int | None) -> ChatModel:
        self.choices.append((entry.level, seed))
        if entry.model == "offline":
            return OfflineModel()
        return ScriptedModel(lambda request: self._reply(request, seed))

    def _reply(self, request: ModelRequest, seed: int | None) -> ModelReply:
        self.questions.append(request.question_id)
        if self.failing == request.question_id:
            raise self.error
        usage = Usage(1, 1, "endpoint")
        if request.tools and request.messages[-1].role != "tool":
            call = ToolCall("1", "logical_search", '{"query": "opera"}')
            return ModelReply("", (call,), usage=usage)
        return ModelReply("Answer: Venice" if seed == 1 else "Answer: nothing", usage=usage)


def test_two_presets_two_models_and_two_seeds_are_run_once_and_reported(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = work / "kept.json"
    words = command(work, AGENTS, "--json", str(results))
    assert main(words, SuiteModels()) == 0, capsys.readouterr().err
    first = capsys.readouterr()
    assert "- F1, model offline, intervals at 97.500%: logical_read against 2 steps" in first.out
    assert first.out.index("- F1, model offline") < first.out.index("Report: ")
    assert "4 of 4 cells" in first.err
    runs = sorted(path.parent.name for path in (work / "work").rglob("run.json"))
    # The offline model follows rules and ignores the seed, so it is run only once.
    assert sum(name.endswith("seed-1") for name in runs) == 4
    assert sum(name.endswith("seed-2") for name in runs) == 2
    report = work / "work" / "trial" / "report"
    figure = json.loads((report / "trial.json").read_bytes())["figures"]["trial"]
    assert {"command", "code", "seed", "commit"} <= figure["run"].keys()
    assert json.loads(results.read_bytes())["figures"]["trial"] == figure
    fingerprints = figure["details"]["fingerprints"]
    assert {"preset", "index", "model", "questions", "prompt"} <= fingerprints.keys()
    assert len(fingerprints["preset"]) == 2
    text = (report / "trial.md").read_text()
    assert "| TotalTokens | FixedTokens | CachedTokens |" in text.split("### Values")[1]
    assert str(work) not in text

    new_models = SuiteModels()
    assert main(words, new_models) == 0
    assert new_models.questions == []
    assert (report / "trial.md").read_text() == text


def test_a_changed_preset_is_asked_again_and_its_old_records_are_kept(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = json.loads(json.dumps(AGENTS)) | {"name": "changed"}
    suite["experiment"]["models"] = ["scripted"]
    assert main(command(work, suite, "--with", "questions=2"), SuiteModels()) == 0
    suite["experiment"]["presets"][1]["set"]["max_loops"] = 3
    models = SuiteModels()
    assert main(command(work, suite, "--with", "questions=2"), models) == 0
    assert len(set(models.questions)) == 2
    assert len(list((work / "work" / "changed-questions-2").rglob("run.json"))) == 6


def test_rules_answer_again_after_a_change_of_the_code_and_paid_replies_stay(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = json.loads(json.dumps(AGENTS)) | {"name": "changed_code"}
    suite["experiment"] |= {"questions": 1, "seeds": [1]}
    models = SuiteModels()
    for code, folders in (("one", 4), ("other", 6)):
        monkeypatch.setattr("bench.ablation.agent_runs.code_fingerprint", lambda code=code: code)
        models = SuiteModels()
        assert main(command(work, suite), models) == 0
        assert len(list((work / "work" / "changed_code").rglob("run.json"))) == folders
    assert models.questions == []


def test_a_judge_judges_each_answer_once(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = json.loads(json.dumps(AGENTS)) | {"name": "judged"}
    suite["experiment"] |= {"models": ["scripted"], "seeds": [1], "questions": 2}
    suite["measures"] = ["JudgeAcc"]
    judge = ScriptedModel(lambda request: ModelReply("Fine.\nVerdict: correct"))
    suite["experiment"]["judge"] = {"temperature": 0.3}
    decodings: list[Any] = []

    def chosen(name: str, **options: Any) -> ScriptedModel:
        decodings.append((name, options["temperature"], options["top_p"]))
        return judge

    monkeypatch.setattr("bench.ablate.choose_model", chosen)
    assert main(command(work, suite, "--judge", "some-model"), SuiteModels()) == 0
    assert decodings == [("some-model", 0.3, None)]
    (report,) = (work / "work" / "judged").rglob("judged.md")
    assert re.search(
        r"\| logical_read \| [^|]*\| [^|]*\| [^|]*\| 1 \[1, 1\] \|", report.read_text()
    )
    assert len(judge.requests) == 2  # both presets give the same answers
    assert "wrong answers" not in report.read_text().lower()
    assert capsys.readouterr().out


def test_trajectories_are_judged_where_they_are_asked_for_and_verdicts_are_kept(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = json.loads(json.dumps(AGENTS)) | {"name": "trajectories"}
    suite["experiment"] |= {"models": ["scripted"], "seeds": [1], "questions": 2}
    replies = {
        "You grade": "Verdict: incorrect",
        "You group": "Group: 1, 2",
        "You judge": "Search: failure",
    }

    def verdict(request: ModelRequest) -> ModelReply:
        instructions = request.messages[0].content
        given = (reply for start, reply in replies.items() if instructions.startswith(start))
        return ModelReply(next(given, "Category: Reasoning Chain Error\nKind: Wrong Strategy"))

    class Twice(SuiteModels):
        def _reply(self, request: ModelRequest, seed: int | None) -> ModelReply:
            calls = sum(message.role == "tool" for message in request.messages)
            usage = Usage(1, 1, "endpoint")
            if request.tools and calls < 2:
                query = json.dumps({"query": ("opera", "libretto")[calls]})
                return ModelReply("", (ToolCall("1", "logical_search", query),), usage=usage)
            return ModelReply("Answer: nothing", usage=usage)

    judge = ScriptedModel(verdict)
    monkeypatch.setattr("bench.ablate.choose_model", lambda name, **_: judge)
    arguments = command(work, suite, "--judge", "some-model")
    assert main([*arguments, "--judge-trajectories"], Twice()) == 0, capsys.readouterr().err
    (report,) = (work / "work" / "trajectories").rglob("trajectories.md")
    text = report.read_text()
    # Two questions: an intent each, searched for twice; the judge finds that both searches failed.
    assert re.search(
        r"\| sample \| logical_read \| 2 \| 2 \| 0 \| 0\.\d+ \(2\) \| 0.000 \(2\) \|", text
    )
    assert "| Reasoning Chain Error: Wrong Strategy |\n| --- | --- | --- |" in text
    assert "| sample | logical_read | 2 |\n| sample | 2 steps | 2 |" in text
    asked = len(judge.requests)
    assert main([*arguments, "--judge-trajectories"], Twice()) == 0
    assert len(judge.requests) == asked
    assert main(arguments, Twice()) == 0
    assert "by verdict" not in report.read_text()
    assert len(judge.requests) == asked
    assert main([*command(work, suite), "--judge-trajectories"], Twice()) == 1
    assert capsys.readouterr().err.endswith(
        "Trajectories cannot be judged without a model that judges.\n"
        "Where: --judge\nDo: Name the model with --judge MODEL.\n"
    )


def test_the_sample_is_named_once_it_is_known_that_a_suite_can_be_measured(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = json.loads(json.dumps(AGENTS)) | {"name": "named"}
    suite["experiment"] |= {"models": ["offline"], "seeds": [1], "questions": 1}
    for sets, code in ((["musique"], 1), (["sample"], 0)):
        suite["experiment"]["sets"] = sets
        words = command(work, suite, "--data", str(SAMPLE_FOLDER))
        assert main(words, SuiteModels()) == code
        notice = "The data sets are not here: this measures the sample"
        assert (notice in capsys.readouterr().err) is (code == 0)


def test_factuality_is_judged_where_a_suite_rests_on_it_and_never_without_a_judge(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = json.loads(json.dumps(AGENTS)) | {"name": "factual", "measures": []}
    suite["experiment"] |= {"models": ["scripted"], "seeds": [1], "questions": 2}
    suite["comparison"] |= {"primary": "Factuality", "secondary": []}
    models = SuiteModels()
    assert main(command(work, suite), models) == 1
    assert capsys.readouterr().err == (
        "Factuality of factual cannot be judged without a model that judges.\nWhere: --judge\n"
        "Do: Name the model with --judge MODEL.\n"
    )
    assert models.questions == []
    judge = ScriptedModel(lambda request: ModelReply("Fine.\nScore: 0.75"))
    monkeypatch.setattr("bench.ablate.choose_model", lambda name, **_: judge)
    assert main(command(work, suite, "--judge", "some-model"), models) == 0
    (report,) = (work / "work" / "factual").rglob("factual.md")
    assert "| sample | logical_read | 0.75 [0.75, 0.75] |" in report.read_text()
    assert len(judge.requests) == 2


def test_only_failed_questions_are_asked_again(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = json.loads(json.dumps(AGENTS)) | {"name": "failing"}
    suite["experiment"] |= {"models": ["scripted"], "seeds": [1], "questions": 3}
    failing = "s01"  # the first of the file
    suite["experiment"]["questions"] = "first 3"
    assert main(command(work, suite), SuiteModels(failing=failing)) == 0
    capsys.readouterr()
    mended_models = SuiteModels()
    assert main(command(work, suite), mended_models) == 0
    assert set(mended_models.questions) == {failing}


def test_an_interrupted_run_says_how_to_resume(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = json.loads(json.dumps(AGENTS)) | {"name": "interrupted"}
    suite["experiment"] |= {"models": ["scripted"], "seeds": [1], "workers": 1}
    interrupted = SuiteModels(failing="s03", error=KeyboardInterrupt())
    words = command(work, suite)
    assert main(words, interrupted) == 130
    resume_command = shlex.join(["python", "-m", "bench", "ablate", *words])
    assert capsys.readouterr().err.endswith(f"Interrupted. Resume with: {resume_command}\n")
    resumed = SuiteModels()
    assert main(words, resumed) == 0
    finished = [question for question in interrupted.questions if question != "s03"]
    assert finished
    assert len(resumed.questions) == 2 * (24 - len(set(finished)))


def small_suite(name: str, questions: int) -> dict[str, Any]:
    """Return a suite of the repository over the sample corpus, with few questions and one seed."""
    suite = yaml.safe_load((SUITES / f"{name}.yaml").read_text())
    suite["experiment"] |= {"sets": ["sample"], "questions": questions, "seeds": [1]}
    if "encoder" in suite["experiment"]:
        suite["experiment"]["encoder"] = "hashing:16"
    return suite


def test_a_suite_with_vectors_runs_over_the_sample(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "arag_main"
    suite = small_suite(name, 2)
    assert main(command(work, suite), SuiteModels()) == 0, capsys.readouterr().err
    report = next((work / "work" / name).rglob(f"{name}.md"))
    text = report.read_text()
    assert "## Not measured here" in text
    assert "JudgeAcc" not in text.split("## Not measured here")[0].split("### Values")[1]
    cells = read_cells(work / "work" / name)
    assert not any(row.unresolved for cell in cells for row in cell.rows)


def test_a_book_whose_questions_name_no_evidence_is_measured_by_its_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data" / "book"
    data.mkdir(parents=True)
    text = " ".join(
        f"In {year} the opera of Venice gave a new piece." for year in range(1600, 1750)
    )
    (data / "corpus.json").write_text(json.dumps([{"corpus_name": "Book", "context": text}]))
    question = {"id": "b1", "source": "Book", "question": "Where?", "answer": "It is in Venice.",
                "question_type": "Fact Retrieval"}  # fmt: skip
    (data / "questions.jsonl").write_text(json.dumps(question))
    suite = json.loads(json.dumps(AGENTS)) | {"name": "book", "measures": ["EvidenceRecall"]}
    suite["experiment"] |= {"sets": ["book"], "models": ["scripted"], "seeds": [1]}
    suite["comparison"] |= {"secondary": ["RetrievedTokens"]}
    assert main(command(tmp_path, suite), SuiteModels()) == 0, capsys.readouterr().err
    report = next((tmp_path / "work" / "book").rglob("book.md")).read_text()
    assert "| book | logical_read | 0.4 [0.4, 0.4] |" in report
    assert "EvidenceRecall" not in report
    assert "| data set | level | not measured |" in report


class DecliningModels(SuiteModels):
    """A model that declines, one that makes an answer up, and one that knows every answer; each
    searches once."""

    def __init__(self, gold: dict[str, str]) -> None:
        super().__init__()
        self.gold = gold

    def __call__(self, entry: ModelEntry, seed: int | None) -> ChatModel:
        return ScriptedModel(lambda request: self._answer(entry.model, request))

    def _answer(self, name: str, request: ModelRequest) -> ModelReply:
        usage = Usage(1, 1, "endpoint")
        if request.messages[-1].role != "tool":
            words = " OR ".join(re.findall(r"[A-Z][a-z]+", request.messages[-1].content))
            call = ToolCall("1", "logical_search", json.dumps({"query": words, "top_k": 20}))
            return ModelReply("", (call,), usage=usage)
        answer = {"declines": "not found in the corpus", "invents": "Atlantis"}
        text = answer[name] if name in answer else self.gold[request.question_id]
        return ModelReply(f"Answer: {text}", usage=usage)


WITHHELD: dict[str, Any] = {
    "name": "withheld",
    "description": "Three models.",
    "experiment": {
        "kind": "agent",
        "sets": ["sample"],
        "questions": 6,
        "withheld": True,
        "presets": ["logical_read"],
        "models": ["declines", "invents", "knows"],
    },
    "comparison": {
        "factor": "model",
        "pairs": [["declines", "invents"], ["invents", "knows"]],
        "primary": "Refusal",
        "secondary": ["Hallucination", "GoldLeak"],
    },
    "measures": ["ContainAcc"],
}


def test_evidence_is_withheld_and_refusals_are_compared(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = work / "data" / "sample" / "questions.jsonl"
    rows = [json.loads(line) for line in data.read_text().splitlines()]
    models = DecliningModels({row["id"]: row["answer"] for row in rows})
    arguments = command(work, WITHHELD)
    assert main([*arguments, "--dry-run"]) == 0, capsys.readouterr().err
    assert "Estimate for declines: about 36 requests" in capsys.readouterr().out  # 6 x 6
    assert not (work / "work" / "withheld").exists()
    assert main(arguments, models) == 0
    output = capsys.readouterr()
    assert "| Refusal | declines | invents | sample | +1.000 [" in output.out
    assert re.search(r"sample: \d+ documents are withheld from 4 questions.", output.err)
    names = ("Refusal", "Hallucination", "GoldLeak", "ContainAcc", "EvidenceRecall")
    expected = {"declines": (1, 0, 0, 1, 0), "invents": (0, 1, 0, 0, 0), "knows": (0, 0, 1, 0, 0)}
    for cell in read_cells(work / "work" / "withheld"):
        assert len(cell.rows) == 4
        for row in cell.rows:
            assert tuple(row.values[name] for name in names) == expected[cell.key["model"]]


def test_answers_without_evidence_are_judged_in_three_classes(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = json.loads(json.dumps(WITHHELD)) | {"name": "withheld_judged"}
    suite["experiment"] |= {"models": ["declines", "invents"]}
    suite["comparison"] |= {"pairs": [["declines", "invents"]]}
    verdicts = {"not found in the corpus": "correct", "Atlantis": "abstained"}

    def judged(request: ModelRequest) -> ModelReply:
        answer = json.loads(request.messages[1].content)["answer of the candidate"]
        return ModelReply(f"Verdict: {verdicts[answer]}")

    monkeypatch.setattr("bench.ablate.choose_model", lambda name, **_: ScriptedModel(judged))
    arguments = command(work, suite, "--judge", "some-model")
    assert main(arguments, DecliningModels({})) == 0
    for cell in read_cells(work / "work" / "withheld_judged"):  # whatever the rules say
        declines = cell.key["model"] == "declines"
        assert {row.values["GoldLeak"] for row in cell.rows} == {declines}
        assert {row.values["Refusal"] for row in cell.rows} == {not declines}


def test_evidence_is_not_withheld_where_it_is_given_or_the_index_is_too_large(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = command(work, WITHHELD)
    monkeypatch.setattr("bench.ablation.agent_runs.MAX_READ_PASSAGES", 10)
    assert main(arguments, DecliningModels({})) == 1
    assert "Evidence cannot be withheld from this index, because" in capsys.readouterr().err
    suite = json.loads(json.dumps(WITHHELD)) | {"name": "given"}
    suite["experiment"]["presets"] = ["oracle_evidence"]
    assert main(command(work, suite), DecliningModels({})) == 1
    assert "preset oracle_evidence: It is given the evidence, which is withheld." in (
        capsys.readouterr().err
    )


def write_beir(folder: Path, *, with_index: bool) -> None:
    """Write a folder of BEIR whose second query excludes the document that is cited first."""
    texts = {"vivaldi": "Vivaldi wrote an opera in Venice.", "page": "An opera is a drama."}
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": id, "title": id.title(), "text": text} for id, text in texts.items()]
    queries = [
        {"_id": "b1", "text": "Who wrote an opera?"},
        {"_id": "b2", "text": "And an opera?", "metadata": {"excluded_ids": ["page"]}},
        {"_id": "b3", "text": "Which opera?"},
    ]
    source = folder / ("source.jsonl" if with_index else "corpus.jsonl")
    for path, rows in ((source, corpus), (folder / "queries.jsonl", queries)):
        path.write_text("\n".join(map(json.dumps, rows)))
    judged = "".join(f"b{number}\tvivaldi\t1\n" for number in (1, 2, 3))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    if with_index:
        index_jobs.build_index([str(source)], folder / "index")


class CitingModels(SuiteModels):
    """Models that search once for documents and cite both of the index, the wrong one first."""

    def _reply(self, request: ModelRequest, seed: int | None) -> ModelReply:
        usage = Usage(100, 10, "endpoint")
        if request.messages[-1].role != "tool":
            call = ToolCall("1", "search", '{"queries": ["opera"]}')
            return ModelReply("", (call,), usage=usage)
        shown = re.findall(r"\[(turn\d+search\d+)\] (\w+)", request.messages[-1].content)
        ids = {title: id for id, title in shown}
        text = f"Answer: Vivaldi\nSources: [{ids['Page']}] 0.9, [{ids['Vivaldi']}] 0.5"
        return ModelReply(text, usage=usage)


DOCUMENTS: dict[str, Any] = {
    "name": "documents",
    "description": "Documents.",
    "experiment": {
        "kind": "agent",
        "sets": ["beir", "indexed"],
        "presets": [
            {"preset": "agentic_rag", "label": "documents", "set": {
                "search_backend": "words", "semantic_find": False}},
            {"preset": "agentic_rag", "label": "one query", "set": {
                "search_backend": "words", "semantic_find": False,
                "max_loops": 3}},
        ],
        "models": ["scripted"],
        "questions": None,
    },
    "comparison": {
        "factor": "preset",
        "pairs": [["documents", "one query"]],
        "primary": "CitedRecall@1",
        "secondary": ["TotalTokens", "ToolCalls:search"],
    },
    "measures": ["CitedNDCG@10", "SummarizeCalls", "Recall@5", "CitedSuccess@2"],
}  # fmt: skip


def test_folders_of_beir_and_indexes_of_their_own_are_sets_with_cited_documents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("beir", "indexed"):
        write_beir(tmp_path / "data" / name, with_index=name == "indexed")
    assert main(command(tmp_path, DOCUMENTS), CitingModels()) == 0, capsys.readouterr().err
    work = tmp_path / "work"
    cells = read_cells(work / "documents")
    assert len(cells) == 4
    for cell in cells:
        values = {row.question_id: row.values for row in cell.rows}
        cited = [values[id]["CitedRecall@1"] for id in ("b1", "b2", "b3")]
        assert cited == [0, 1, 0]
        assert values["b1"]["CitedSuccess@2"] == values["b1"]["Recall@5"] == 1
        assert values["b1"]["TotalTokens"] == 220
        assert values["b1"]["ToolCalls:search"] == 1
        assert values["b1"]["EM"] is None
    report = next(work.rglob("documents.md")).read_text()
    assert "| CitedRecall@1 | documents | one query | macro-average | +0.000" in report
    assert (
        "| beir | documents | 0.333 [0, 1] | 220 [220, 220], mean 220 [220, 220] | 1 [1, 1] |"
        in report
    )
    kept = {path.parent.name for path in (work / "sets").rglob("made_of.sha256")}
    assert kept == {"beir"}  # the other set is searched in its own index


def test_another_number_of_questions_may_exceed_that_of_the_suite_and_is_kept_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_beir(tmp_path / "data" / "beir", with_index=False)
    suite = json.loads(json.dumps(DOCUMENTS)) | {"name": "counted"}
    suite["experiment"] |= {"sets": ["beir"], "questions": 1}
    counts: dict[str, set[int]] = {}
    for count, folder in (("2", "2"), ("null", "None"), ("99", "99")):
        given = ["--with", f"questions={count}"]
        assert main(command(tmp_path, suite, *given), CitingModels()) == 0
        folder = f"counted-questions-{folder}"
        cells = read_cells(tmp_path / "work" / folder)
        counts[folder] = {len(cell.rows) for cell in cells}
    assert list(counts.values()) == [{2}, {3}, {3}]
    capsys.readouterr()
    assert main(command(tmp_path, suite, "--with", "questions=0", "--with", "colour=red")) == 1
    errors = capsys.readouterr().err
    assert "experiment.questions must be" in errors
    assert "experiment.colour is no key here." in errors
    with pytest.raises(SystemExit):
        main(command(tmp_path, suite, "--with", "questions"))
    assert "questions is not KEY=VALUE" in capsys.readouterr().err


def test_a_dry_run_says_what_would_be_run(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = AGENTS | {"name": "dry"}
    assert main(command(work, suite, "--dry-run"), SuiteModels()) == 0
    output = capsys.readouterr().out
    assert "- sample, 2 steps, offline" in output
    assert output.endswith("4 cells, nothing was run.\n")
    assert not (work / "work" / "dry").exists()


def test_all_problems_of_a_suite_are_reported_before_anything_runs(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = json.loads(json.dumps(AGENTS)) | {"name": "wrong"}
    suite["experiment"] |= {
        "sets": ["sample", "nowhere"],
        "presets": [
            "logical_read",
            "arag_full",
            {"preset": "logical_read", "label": "a", "set": {"max_lops": 2}},
        ],
        "models": ["environment", "offline"],
    }
    suite["comparison"] |= {"pairs": [["a", "logical_read"]]}
    assert main(command(work, suite)) == 1
    errors = capsys.readouterr().err
    assert errors.startswith("The suite has ")
    for part in (
        'There is no data set "nowhere".',
        'preset a: The preset has 1 problem. 1. key "max_lops"',
        "preset arag_full: semantic_search needs vectors, and no encoder is named.",
        "model environment: No model is named.",
    ):
        assert part in errors, part


def test_a_suite_that_needs_a_model_and_has_none_says_how_to_set_it(
    capsys: pytest.CaptureFixture[str], work: Path
) -> None:
    data = ["--data", str(work / "data"), "--work", str(work / "work")]
    assert main([str(SUITES / "max_steps.yaml"), *data]) == 1
    errors = capsys.readouterr().err
    assert "No model is named." in errors
    assert "OPENAI_API_KEY" in errors


def test_a_gold_chain_suite_asks_no_model(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(work, suite_values(name="chain"), "--model", "offline")) == 1
    assert capsys.readouterr().err.startswith('Suite chain has no model "environment".\n')


def test_decoding_of_a_suite_is_left_out_for_the_rules_with_a_note(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = json.loads(json.dumps(AGENTS)) | {"name": "decoded"}
    suite["experiment"]["models"] = [
        {"model": "environment", "temperature": 0.0, "reasoning_effort": "medium"}
    ]
    suite["comparison"]["apart"] = []
    assert main(command(work, suite, "--model", "offline", "--with", "seeds=[1]")) == 0
    assert "offline has no decoding: reasoning_effort, temperature are left out." in (
        capsys.readouterr().err
    )


def test_a_preset_of_ones_own_without_a_label_has_the_name_of_its_file(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "three_steps.yaml").write_text("extends: logical_read\nmax_loops: 3\n")
    suite = json.loads(json.dumps(AGENTS)) | {"name": "own_preset"}
    suite["experiment"] |= {
        "presets": ["logical_read", str(work / "three_steps.yaml")],
        "models": ["offline"],
    }
    suite["comparison"] |= {"pairs": [["logical_read", "three_steps"]], "apart": []}
    assert main(command(work, suite)) == 0
    assert "| F1 | logical_read | three_steps | sample |" in capsys.readouterr().out
